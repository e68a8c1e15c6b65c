"""The rules of placement Tetris as functions of one board: checked, without side effects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mergefall import checks
from mergefall.checks import choice, integer
from mergefall.tetris import field
from mergefall.tetris.pieces import HEIGHTS, MASKS, NAMES, WIDTHS
from mergefall.tetris.placements import ROTATIONS, SLIDES, column_of, rest_of, row_of

FEWEST_COLS, MOST_COLS = 4, 16
FEWEST_ROWS, MOST_ROWS = 4, 40
OVERFLOWS = ("strict", "clear_first")


@dataclass(frozen=True, eq=False)
class Placement:
    """A piece at rest, and what follows: the field before and after clearing, uint8[rows, cols], row 0 on top.

    `cells` are the piece's (row, column) pairs in `locked`, rows above the field negative; `lines` the full rows
    removed and `removed_cells` the piece's own cells in them; `landing_height` the rows beneath its lowest cell plus
    half its height less one; `over` whether it ended the game. Strictly, nothing is cleared by what ends the game.
    """

    locked: NDArray[np.uint8]
    board: NDArray[np.uint8]
    cells: tuple[tuple[int, int], ...]
    lines: int
    removed_cells: int
    landing_height: float
    over: bool


def board_array(board: Any, cols: int | None = None, rows: int | None = None) -> NDArray[np.uint8]:
    """One field as uint8[rows, cols] of 0 and 1, row 0 on top; a ValueError names the first thing that is wrong.

    Takes an array or nested lists of 0 and 1 (or bools), or a text form: a row a line or between `/`, `.` for empty,
    `#` for filled. Any size from 4×4 to 16 columns by 40 rows will do where `cols` and `rows` are left out.
    """
    if isinstance(board, str):
        lines = board.replace("/", "\n").split()
        if wrong := set("".join(lines)) - {".", "#"}:
            raise ValueError(f"board text holds {sorted(wrong)[0]!r}; expected rows of '.' and '#'")
        board = [[cell == "#" for cell in line] for line in lines]
    array = checks.array("board", board, "rows × columns of 0 and 1")
    limits = f"{FEWEST_ROWS} to {MOST_ROWS} rows of {FEWEST_COLS} to {MOST_COLS} columns"
    fitting = array.ndim == 2 and (
        array.shape == (rows, cols)
        if rows
        else FEWEST_ROWS <= array.shape[0] <= MOST_ROWS and FEWEST_COLS <= array.shape[1] <= MOST_COLS
    )
    if not fitting:
        raise ValueError(f"board has shape {array.shape}; expected {(rows, cols) if rows else limits}")
    if array.dtype.kind not in "iub" or not np.isin(array, (0, 1)).all():
        raise ValueError(f"board holds {array.dtype} {np.unique(array).tolist()}; expected cells of 0 and 1")
    return array.astype(np.uint8, order="C")


def to_text(board: Any) -> str:
    """A board's text form: `.` empty, `#` filled, `/` between rows, the top row first.

    >>> to_text([[0, 0, 0, 0], [0, 0, 0, 0], [1, 0, 0, 0], [1, 1, 0, 1]])
    '..../..../#.../##.#'
    """
    return "/".join("".join(".#"[cell] for cell in row) for row in board_array(board).tolist())


def from_text(text: str) -> NDArray[np.uint8]:
    """The board uint8[rows, cols] of a text form; a ValueError for anything that is not one.

    >>> from_text("..../..../#.../##.#")[3]
    array([1, 1, 0, 1], dtype=uint8)
    """
    return board_array(text)


def piece_index(piece: Any) -> int:
    """The row of a piece in the tables of `pieces.py`, from its name, or from a tetromino's id 0 to 6."""
    if isinstance(piece, str):
        return NAMES.index(choice("piece", piece, NAMES))
    return integer("piece", piece, 0, 6)


def place(
    board: Any,
    piece: str | int,
    rotation: int,
    column: int,
    slide: int = 0,
    overflow: Literal["strict", "clear_first"] = "strict",
) -> Placement:
    """Drop a piece on a board (slide 1 and 2: then move it a column left or right, and let it fall to rest).

    Args:
        board: the field, as `board_array` takes it. Rows that are full already go with the first clear.
        piece: a name, or a tetromino's id (I O T S Z J L = 0 … 6).
        rotation: quarter turns clockwise from the spawn orientation, 0 to 3.
        column: the piece's leftmost filled column when it is dropped.

    Raises a ValueError for a placement that does not exist: one beyond the wall, a rotation that repeats another, a
    slide that is blocked or that ends in the cells of a lower action.

    >>> placed = place("..../..../..../##.#", "T", rotation=2, column=1)
    >>> placed.lines, placed.removed_cells, placed.landing_height, to_text(placed.board)
    (1, 1, 0.5, '..../..../..../.###')
    """
    cells = board_array(board)
    rows, cols = cells.shape
    index = piece_index(piece)
    name, clear_first = NAMES[index], choice("overflow", overflow, OVERFLOWS) == "clear_first"
    rotation, column = integer("rotation", rotation, 0, ROTATIONS - 1), integer("column", column, 0, cols - 1)
    slide = integer("slide", slide, 0, SLIDES - 1)
    columns = field.columns_of(cells)
    placement = rest_of(columns, index, (slide * ROTATIONS + rotation) * cols + column, True)
    if placement < 0:
        if WIDTHS[index, rotation] == 0:
            why = "a rotation that repeats another"
        elif column + WIDTHS[index, rotation] > cols:
            why = "beyond the wall"
        else:
            why = "a slide that is blocked or repeats another placement"
        raise ValueError(
            f"{name} at rotation {rotation}, column {column}, slide {slide} is {why}; expected a legal one"
        )
    y, leftmost = row_of(placement), column_of(placement)
    locked = columns.copy()
    field.put(locked, index, rotation, leftmost, y)
    lines, removed, over = field.place(columns, index, rotation, leftmost, y, rows, clear_first)
    own = [
        (rows - 1 - y - bit, leftmost + i)
        for i in range(WIDTHS[index, rotation])
        for bit in range(HEIGHTS[index, rotation])
        if int(MASKS[index, rotation, i]) >> bit & 1
    ]
    return Placement(
        locked=field.boards_of(locked, rows),
        board=field.boards_of(columns, rows),
        cells=tuple(sorted(own)),
        lines=lines,
        removed_cells=removed,
        landing_height=y + (int(HEIGHTS[index, rotation]) - 1) / 2,
        over=over,
    )
