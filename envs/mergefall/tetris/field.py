"""The rules of placement Tetris, compiled: a board is one 64-bit word per column.

- `columns`: uint64[cols]. Bit r is the cell r rows above the floor; storage rows above the field are included.
- `piece`, `rotation`: indices into the tables of `pieces.py`.
- `column`, `y`: the piece's leftmost column and the row of its lowest cell.

So a column's height is the position of its highest bit, a drop is a maximum over a few heights, and counts over a board
are counts of bits. The slow twin is `reference.py`.
"""

import numpy as np

from mergefall.kernels import kernel
from mergefall.tetris.pieces import BOTTOMS, HEIGHTS, MASKS, WIDTHS
from mergefall.typing import Bytes, Words
from mergefall.words import leading_zeros, popcount

U = np.uint64


@kernel
def height_of(column):
    """Rows from the floor to the highest filled cell of a column."""
    return 64 - leading_zeros(column)


@kernel(inline="always")
def highest_in(columns):
    """Rows from the floor to the highest filled cell of a board."""
    filled = U(0)
    for c in range(U(columns.size)):
        filled |= columns[c]
    return height_of(filled)


@kernel
def field_mask(rows):
    """A column that is full up to the field's top, like a wall."""
    return (U(1) << U(rows)) - U(1)


@kernel
def holes_in(column):
    """The empty cells below a column's height."""
    return field_mask(height_of(column)) & ~column


@kernel(forceinline=True)
def landing(columns, piece, rotation, column):
    """The row y in which a piece dropped from above comes to rest."""
    # Unsigned indices need no test for being negative, and a chain of tests takes a third of a loop's time.
    shape, turn, at = U(piece), U(rotation), U(column)
    width = WIDTHS[shape, turn]
    y = height_of(columns[at]) - BOTTOMS[shape, turn, U(0)]
    if width > 1:
        y = max(y, height_of(columns[at + U(1)]) - BOTTOMS[shape, turn, U(1)])
    if width > 2:
        y = max(y, height_of(columns[at + U(2)]) - BOTTOMS[shape, turn, U(2)])
    if width > 3:
        y = max(y, height_of(columns[at + U(3)]) - BOTTOMS[shape, turn, U(3)])
    if width > 4:
        y = max(y, height_of(columns[at + U(4)]) - BOTTOMS[shape, turn, U(4)])
    return y


@kernel(forceinline=True)
def is_free(columns, piece, rotation, column, y):
    """Whether a piece at row y lies within the walls on empty cells."""
    width = WIDTHS[piece, rotation]
    if column < 0 or column + width > columns.size:
        return False
    met = U(0)
    for i in range(width):
        met |= columns[column + i] & (MASKS[piece, rotation, i] << U(y))
    return met == 0


@kernel
def fall(columns, piece, rotation, column, y):
    """The row in which a piece that is free at row y comes to rest, straight down, under overhangs too."""
    # Row by row, because a cell may catch a piece in its own hollow: a U on its side reaches around it.
    while y > 0 and is_free(columns, piece, rotation, column, y - 1):
        y -= 1
    return y


@kernel(inline="always")
def copy(columns, target):
    for i in range(columns.size):
        target[i] = columns[i]


@kernel
def put(columns, piece, rotation, column, y):
    for i in range(WIDTHS[piece, rotation]):
        columns[column + i] |= MASKS[piece, rotation, i] << U(y)


@kernel
def full_rows(columns):
    full = columns[0]
    for i in range(1, columns.size):
        full &= columns[i]
    return full


@kernel
def clear(columns, full):
    """Remove the rows whose bits are set in `full`, in place; the rows above move down."""
    while full:
        row = U(63 - leading_zeros(full))  # from the top, so that the bits below stay where they are
        beneath = (U(1) << row) - U(1)
        for i in range(columns.size):
            columns[i] = (columns[i] & beneath) | (columns[i] >> U(1) & ~beneath)
        full &= beneath


@kernel
def place(columns, piece, rotation, column, y, rows, clear_first):
    """Lock a piece at rest and clear, in place: (lines, the piece's own cells in them, whether the game is over).

    - `clear_first` False (strict): if the piece rests with a cell above the field, the game is over and nothing is
      cleared.
    - `clear_first` True: full rows are cleared, and the game is over if a cell is left above the field.
    """
    put(columns, piece, rotation, column, y)
    above = y + HEIGHTS[piece, rotation] > rows
    if above and not clear_first:
        return 0, 0, True
    full = full_rows(columns)  # the piece's own rows, and any that were full on a caller's board
    if full == 0:
        return 0, 0, above
    own = 0
    for i in range(WIDTHS[piece, rotation]):
        own += popcount((MASKS[piece, rotation, i] << U(y)) & full)
    clear(columns, full)
    return popcount(full), own, clear_first and highest_in(columns) > rows


@kernel
def write_board(columns, rows, board):
    """Write the field as cells uint8[rows·cols], row 0 on top, without storage rows."""
    cols = U(columns.size)  # unsigned, so that no index is tested for being negative
    above = U(rows) - min(U(highest_in(columns)), U(rows))
    for k in range(above * cols):
        board[k] = 0
    for r in range(above, U(rows)):
        shift = U(rows) - U(1) - r
        for c in range(cols):
            board[r * cols + c] = np.uint8(columns[c] >> shift & U(1))


def columns_of(board: Bytes) -> Words:
    """The columns uint64[..., cols] of boards uint8[..., rows, cols], row 0 on top.

    >>> columns_of(np.array([[0, 1], [1, 1]], dtype=np.uint8)).tolist()
    [1, 3]
    """
    rows = board.shape[-2]
    weights = np.uint64(1) << np.arange(rows - 1, -1, -1, dtype=np.uint64)
    return ((board != 0) * weights[:, None]).sum(axis=-2, dtype=np.uint64)


def boards_of(columns: Words, rows: int) -> Bytes:
    """The fields uint8[..., rows, cols] of columns uint64[..., cols], without storage rows.

    >>> boards_of(np.array([1, 3], dtype=np.uint64), 2).tolist()
    [[0, 1], [1, 1]]
    """
    bits = np.arange(rows - 1, -1, -1, dtype=np.uint64)
    return (columns[..., None, :] >> bits[:, None] & np.uint64(1)).astype(np.uint8)
