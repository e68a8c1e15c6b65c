"""Plots of Tetris: boards, placements, and the terms of a heuristic. Needs matplotlib."""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from mergefall.draw import INK, NEW, draw_terms, short_number
from mergefall.tetris.heuristics.base import Heuristic
from mergefall.tetris.rules import Placement, board_array
from mergefall.typing import Bytes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FILLED, EMPTY, HOLE = "#8a93a0", "#eceef1", "#f3c9bf"


def plot_terms(h: Heuristic, states: Any, titles: Sequence[str] | None = None) -> "Figure":
    """Draw boards or placements, and beside each a bar for weight·term of each term.

    Board terms are drawn as the difference to an empty board. The title shows the value of the empty board: value =
    Σ bars + value of the empty board. All bars share one linear axis, so that a small bar is a small term.

    Args:
        h: the heuristic.
        states: a board, a placement, or a list of them. Boards are given as `board_array` takes them, and only their
            board terms are drawn. Placements are drawn before clearing, with all terms.
        titles: one for each state.

    Raises:
        ValueError: if `states` are neither boards nor placements.
        DependencyNotInstalled: without matplotlib, which the extra `render` brings.
    """
    several = np.ndim(states[0]) != 1 if isinstance(states, list) and states else np.ndim(states) == 3
    rows, tall, wide = [], 0, 0
    for state in states if several else [states]:
        placed = isinstance(state, Placement)
        board = state.locked if placed else board_array(state)
        tall, wide = max(tall, board.shape[0]), max(wide, board.shape[1])
        value, empty = h(state) if placed else h.board(board), h.board(np.zeros_like(board))
        about = f"{h.name}: {short_number(value)}  (empty board {short_number(empty)} included)"
        drawing = partial(draw_board, board=board, cells=state.cells if placed else ())
        rows.append((drawing, _weighted(h, state if placed else board), about))
    return draw_terms(min(4.0, max(2.2, 0.16 * tall)), (0.5 * max(wide / 10, 0.6), 1.5), rows, titles)


def draw_board(axes: Any, board: Any, cells: Iterable[tuple[int, int]] = ()) -> None:
    """Draw a board into matplotlib axes, with its holes shaded and the (row, column) pairs `cells` in a colour.

    The cell in row r, column c is a unit square at (c, r); negative rows are drawn above the field.
    """
    from matplotlib.patches import Rectangle

    array = board_array(board)
    rows, cols = array.shape
    colours = np.where(array, FILLED, np.where(np.maximum.accumulate(array, axis=0), HOLE, EMPTY))
    drawn = dict(np.ndenumerate(colours)) | dict.fromkeys(cells, NEW)
    for (r, c), colour in drawn.items():
        axes.add_patch(Rectangle((c + 0.04, r + 0.04), 0.92, 0.92, facecolor=colour, linewidth=0))
    axes.plot([0, 0, cols, cols], [0, rows, rows, 0], color=INK, linewidth=1)
    top = min(row for row, _ in drawn)
    axes.set(xlim=(-0.1, cols + 0.1), ylim=(rows + 0.1, top - 0.1), aspect="equal", anchor="N")
    axes.axis("off")


def _weighted(h: Heuristic, state: Placement | Bytes) -> dict[str, float]:
    """weight·term of a placement or a board; board terms are the difference to an empty board."""
    terms, board = (h.terms(state), state.board) if isinstance(state, Placement) else (h.board_terms(state), state)
    empty = h.board_terms(np.zeros_like(board))
    return {name: getattr(h, name) * (term - empty.get(name, 0.0)) + 0.0 for name, term in terms.items()}
