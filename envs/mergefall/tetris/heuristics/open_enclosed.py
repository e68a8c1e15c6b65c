"""`open-enclosed`: full rows count in favour, empty cells against, more so beneath others (the expectimax document).

A cell's depth is its row number, 0 at the top. Both costs follow from heights and filled cells: open cells lie above
their column's height (and below the highest column's), enclosed ones below it without being filled. So a placement on
columns of known heights is valued without looking at single cells.
"""

from dataclasses import dataclass

import numpy as np

from mergefall.kernels import kernel
from mergefall.tetris.field import field_mask, height_of
from mergefall.tetris.heuristics.base import Heuristic, Memo
from mergefall.tetris.pieces import HEIGHTS, MASKS, OFFSETS, SIZES, WIDTHS
from mergefall.weighted import Terms
from mergefall.words import popcount, trailing_zeros

U = np.uint64


@kernel
def above(height, rows):
    """Σ depth of a column's cells above a height."""
    return (rows - 1 - height) * (rows - height) // 2


@kernel
def counts(columns, rows):
    """(full rows as bits, Σ depth above the columns, the largest height, Σ depth of the filled cells) of a field."""
    wall = field_mask(rows)
    full, empty, top, filled = wall, 0, 0, 0
    for i in range(columns.size):
        column = columns[i] & wall
        full &= column
        empty += above(height_of(column), rows)
        top = max(top, height_of(column))
        while column:
            filled += rows - 1 - trailing_zeros(column)
            column &= column - U(1)
    return full, empty, top, filled


@kernel(forceinline=True)
def terms_of(full, empty, top, filled, rows, cols):
    of_open = empty - cols * above(max(top, 1), rows)
    enclosed = cols * above(0, rows) - empty - filled
    return popcount(full), np.float64(of_open) / rows, np.float64(enclosed) / rows


@kernel(forceinline=True)
def board_terms(columns, rows, weights):
    full, empty, top, filled = counts(columns, rows)
    return terms_of(full, empty, top, filled, rows, columns.size)


# The memo of a board: its largest height and the Σ depth of its filled cells; then four words for each border between
# columns: the full rows on its left and on its right, and Σ depth above the columns on its left and on its right.
TOP, FILLED, BORDERS = U(0), U(1), U(2)
FULL, EMPTY, BORDER = U(0), U(2), U(4)


@kernel
def prepare(columns, rows, memo):
    _, _, top, filled = counts(columns, rows)
    memo[TOP], memo[FILLED], cols = U(top), U(filled), U(columns.size)
    for side in range(U(2)):
        full, empty = field_mask(rows), 0
        for k in range(cols + U(1)):
            border = cols - k if side else k
            at = BORDERS + BORDER * border + side
            memo[at + FULL], memo[at + EMPTY] = full, U(empty)
            if k < cols:
                full &= columns[border - side]
                empty += above(height_of(columns[border - side]), rows)


@kernel(forceinline=True)
def after(columns, memo, piece, rotation, column, y, rows, scratch):
    width, first = U(WIDTHS[piece, rotation]), U(column)
    left, right = BORDERS + BORDER * first, BORDERS + BORDER * (first + width) + U(1)
    full = memo[left + FULL] & memo[right + FULL]
    empty = np.int64(memo[left + EMPTY] + memo[right + EMPTY])
    for i in range(width):
        new = columns[first + i] | MASKS[piece, rotation, i] << U(y)
        full &= new
        empty += above(height_of(new), rows)
    top = max(np.int64(memo[TOP]), y + HEIGHTS[piece, rotation])
    filled = np.int64(memo[FILLED]) + SIZES[piece] * (rows - 1 - y) - OFFSETS[piece, rotation]
    return full, terms_of(full, empty, top, filled, rows, columns.size)


@dataclass(frozen=True)
class OpenEnclosed(Heuristic):
    """Reward full rows; punish empty cells by depth, and more if a filled cell lies above them.

    Terms of the board before clearing:

    - `full_rows`: the number of full rows
    - `open`: Σ y / rows over the empty cells without a filled cell above them in their column
    - `enclosed`: Σ y / rows over the empty cells with one

    y is the row number, 0 at the top. Rows above the first filled cell do not count; on an empty board only the last
    row does.

    Source: the expectimax document of a pentomino player (25 rows × 15 columns) and its program's constants.

    Example:
        >>> OpenEnclosed().board_terms([[0, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0], [1, 1, 1, 1]])
        {'full_rows': 1.0, 'open': 1.75, 'enclosed': 0.5}
    """

    name = "open-enclosed"
    of_board = Terms(("full_rows", "open", "enclosed"), board_terms)
    before_clearing = True
    memo = Memo(prepare, after)

    full_rows: float = 1000.0
    open: float = -1.0
    enclosed: float = -20.0
