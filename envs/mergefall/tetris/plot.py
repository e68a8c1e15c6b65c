"""Plots of Tetris: boards, placements, and the terms of a heuristic. Needs matplotlib."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mergefall.draw import INK, NEW, draw_bars, new_figure, short_number
from mergefall.tetris.heuristics.base import Heuristic
from mergefall.tetris.rules import Placement, board_array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FILLED, EMPTY, HOLE = "#8a93a0", "#eceef1", "#f3c9bf"


def plot_terms(h: Heuristic, states: Any, titles: Sequence[str] | None = None) -> Figure:
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
        ImportError: without matplotlib, which ``pip install 'mergefall[render]'`` brings.
    """
    several = np.ndim(states[0]) != 1 if isinstance(states, list) and states else np.ndim(states) == 3
    shown: list[Any] = list(states) if several else [states]
    placements = [state if isinstance(state, Placement) else None for state in shown]
    boards = [p.locked if p else board_array(state) for p, state in zip(placements, shown, strict=True)]
    parts = [_weighted(h, state if p else board) for p, state, board in zip(placements, shown, boards, strict=True)]
    rows, cols = max(board.shape[0] for board in boards), max(board.shape[1] for board in boards)
    figure = new_figure(8, len(boards) * min(4.0, max(2.2, 0.16 * rows)))
    axes = figure.subplots(len(boards), 2, width_ratios=(0.5 * max(cols / 10, 0.6), 1.5), squeeze=False)
    everything = [0.0, *(value for part in parts for value in part.values())]
    for i, (left, right) in enumerate(axes):
        placement = placements[i]
        draw_board(left, boards[i], placement.cells if placement else ())
        draw_bars(right, parts[i], min(everything), max(everything))
        value = h(placement) if placement else h.board(boards[i])
        note = f"empty board {short_number(h.board(np.zeros_like(boards[i])))} included"
        right.set_title(f"{h.name}: {short_number(value)}  ({note})", loc="left", fontsize=10, color=INK)
        if titles:
            left.set_title(titles[i], loc="left", fontsize=10, color=INK)
    return figure


def draw_board(axes: Axes, board: Any, cells: Iterable[tuple[int, int]] = ()) -> None:
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


def _weighted(h: Heuristic, state: Placement | NDArray[np.uint8]) -> dict[str, float]:
    """weight·term of a placement or a board; board terms are the difference to an empty board."""
    terms, board = (h.terms(state), state.board) if isinstance(state, Placement) else (h.board_terms(state), state)
    empty = h.board_terms(np.zeros_like(board))
    return {name: getattr(h, name) * (term - empty.get(name, 0.0)) + 0.0 for name, term in terms.items()}
