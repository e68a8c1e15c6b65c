"""Boards up to 4×4 in one 64-bit word. This form exists for speed: one move is four table look-ups.

Cell (r, c) is the four bits at 16·r + 4·c; rows and columns beyond a smaller board stay zero:

    bits  0- 3  4- 7  8-11 12-15        row 0
         16-19 20-23 24-27 28-31        row 1 …

Ranks go up to 15. A board of 13 cells or more can outgrow that (two 32768 make 65536), so a search first asks `fits`.
Lines are slid by a table with one entry for each of the 65536 lines, built from `board.slide`:

    bits 0-15 towards the first cell, 16-31 towards the last, 32-61 score, 62 / 63 whether the line changes so

Searches move with `moves`, which gives all four afterstates of boards up to 4×4. Environments (`batch.py`) play one
action on the usual 4×4 board, without loops and without branches that depend on the tiles. Both are tested against
`board.py`.
"""

from functools import cache
from typing import Any

import numpy as np

from mergefall.game2048 import board as core
from mergefall.game2048.board import CELLS, ILLEGAL, SCORE, SHAPE, STEPS, STREAM
from mergefall.kernels import kernel
from mergefall.typing import Words
from mergefall.words import below, next_bits

U = np.uint64
LINE = U(0xFFFF)
GAIN = U(0x3FFFFFFF)
CHANGES_SHIFT = 62
LOW_BITS = U(0x1111111111111111)  # the lowest bit of each cell
HAS_RIGHT = U(0x0111011101110111)  # the lowest bit of each cell that has a neighbour to its right
HAS_BELOW = U(0x0000111111111111)
SHAPE_MASK, SHAPE_4X4 = U(0xFFFF), U(core.shape_word(4, 4))
LOWER_HALF = U(0xFFFFFFFF)
BYTES = U(0x0101010101010101)
NIBBLE_PER_BYTE = U(0x0F0F0F0F0F0F0F0F)
TOP_BIT_PER_BYTE = U(0x8080808080808080)
RANK_15 = U(0x7171717171717171)  # added to bytes below 128, it sets the top bit of those from 15 up


# -- boards and lines -------------------------------------------------------------------------------------------------


@kernel
def pack(cells, rows, cols):
    """Flat cells uint8[rows·cols], ranks up to 15, as a packed board."""
    board = U(0)
    for r in range(rows):
        for c in range(cols):
            board |= U(cells[r * cols + c]) << U(16 * r + 4 * c)
    return board


@kernel
def unpack(board, cells, rows, cols):
    for r in range(rows):
        for c in range(cols):
            cells[r * cols + c] = board >> U(16 * r + 4 * c) & U(15)


@kernel
def fits(cells, rows, cols, moves):
    """Whether `moves` own moves from these cells cannot make a rank above 15.

    A tile of rank 16 takes tiles that sum to 65536, and each move adds at most 4 to the sum.
    """
    if rows > 4 or cols > 4:
        return False
    total = 0
    for i in range(cells.size):
        if cells[i] > 15:
            return False
        if cells[i]:
            total += 1 << cells[i]
    return total + 4 * moves < 1 << 16


@kernel
def fill_line_table(table, cells):
    """Fill a table of line entries uint64[65536] for lines as long as the scratch `cells` uint8[length] (2 to 4)."""
    length = cells.size
    for line in range(1 << (4 * length)):
        entry = U(0)
        for back in range(2):
            unpack(U(line), cells, 1, length)
            score = core.slide(cells, back * (length - 1), 1 - 2 * back, length)
            for i in range(length):
                entry |= U(min(cells[i], 15)) << U(16 * back + 4 * i)  # rank 16 never arises where `fits` holds
            if score >= 0:
                entry |= U(1) << U(CHANGES_SHIFT + back)
                if back == 0:
                    entry |= U(score) << U(32)
        table[line] = entry


@cache
def line_table(length: int) -> Words:
    """The line table for boards whose lines have `length` cells, uint64[65536], read-only."""
    table = np.zeros(1 << 16, dtype=np.uint64)
    fill_line_table(table, np.zeros(length, dtype=np.uint8))
    table.flags.writeable = False
    return table


@kernel(forceinline=True)
def rows_of(board):
    """The four rows; of a transposed board the columns."""
    return board & LINE, board >> U(16) & LINE, board >> U(32) & LINE, board >> U(48)


@kernel(forceinline=True)
def entries(table, board):
    """What a table of lines holds for each of the four rows."""
    r0, r1, r2, r3 = rows_of(board)
    return table[r0], table[r1], table[r2], table[r3]


@kernel(forceinline=True)
def score_of(e0, e1, e2, e3):
    """The score of four entries of the line table."""
    return (e0 >> U(32) & GAIN) + (e1 >> U(32) & GAIN) + (e2 >> U(32) & GAIN) + (e3 >> U(32) & GAIN)


@kernel
def empties(board):
    """One bit (the lowest of its four) for each zero cell of the whole 4×4 word."""
    board |= board >> U(1)
    return ~(board | board >> U(2)) & LOW_BITS


@kernel
def area(rows, cols):
    """One bit (the lowest of its four) for each cell of a rows×cols board."""
    bits = U(0)
    for r in range(rows):
        for c in range(cols):
            bits |= U(1) << U(16 * r + 4 * c)
    return bits


@kernel
def transpose(board):
    """Exchange rows and columns.

    0 1 2 3      0 4 8 c
    4 5 6 7  →   1 5 9 d
    8 9 a b      2 6 a e
    c d e f      3 7 b f
    """
    a = (
        (board & U(0xF0F00F0FF0F00F0F))
        | (board & U(0x0000F0F00000F0F0)) << U(12)
        | (board & U(0x0F0F00000F0F0000)) >> U(12)
    )
    return (a & U(0xFF00FF0000FF00FF)) | (a & U(0x00FF00FF00000000)) >> U(24) | (a & U(0x00000000FF00FF00)) << U(24)


@kernel
def mirror(board):
    """Reverse each row."""
    board = (board & NIBBLE_PER_BYTE) << U(4) | (board >> U(4) & NIBBLE_PER_BYTE)
    return (board & U(0x00FF00FF00FF00FF)) << U(8) | (board >> U(8) & U(0x00FF00FF00FF00FF))


@kernel
def flip(board):
    """Reverse the order of the four rows."""
    board = board << U(32) | board >> U(32)
    return (board & U(0x0000FFFF0000FFFF)) << U(16) | board >> U(16) & U(0x0000FFFF0000FFFF)


def spread(line: Any) -> Any:
    """Lay a line out as a column: its four cells at bits 0, 16, 32 and 48."""
    pairs = (line & U(0xFF)) | (line & U(0xFF00)) << U(24)
    return (pairs & U(0x0000000F0000000F)) | (pairs & U(0x000000F0000000F0)) << U(12)


# -- all four moves, for searches -------------------------------------------------------------------------------------


@kernel
def slide_both_ways(board, lines):
    """All rows slid both ways: (towards column 0, towards the last column, score).

    A result equal to `board` means that the action is illegal. For columns, pass the transposed board.
    """
    e0, e1, e2, e3 = entries(lines, board)
    left = (e0 & LINE) | (e1 & LINE) << U(16) | (e2 & LINE) << U(32) | (e3 & LINE) << U(48)
    right = (e0 >> U(16) & LINE) | (e1 & U(0xFFFF0000)) | (e2 & U(0xFFFF0000)) << U(16) | (e3 & U(0xFFFF0000)) << U(32)
    return left, right, score_of(e0, e1, e2, e3)


@kernel
def moves(board, row_lines, column_lines):
    """The four afterstates in the order of the actions, then the scores of a vertical and of a horizontal move.

    An afterstate equal to `board` means that its action is illegal.
    """
    left, right, across = slide_both_ways(board, row_lines)
    up, down, along = slide_both_ways(transpose(board), column_lines)
    return transpose(up), right, transpose(down), left, along, across


# -- one action on 4×4, for environments ------------------------------------------------------------------------------


@kernel(inline="always")
def choose(condition, a, b):
    """`a` where `condition` is 1, `b` where it is 0, without a branch."""
    mask = U(0) - condition
    return (a & mask) | (b & ~mask)


@kernel
def turned(board, action):
    """The board with its columns as rows where the action is up or down, which are even; its own inverse."""
    return choose(~U(action) & U(1), transpose(board), board)


@kernel
def slide_one_way(rows, action, lines):
    """(all rows slid towards the first cell where the action is up or left, else towards the last; their score)."""
    shift = (U(action) ^ U(action) >> U(1)) << U(4) & U(16)  # RIGHT and DOWN are 1 and 2
    e0, e1, e2, e3 = entries(lines, rows)
    slid = (
        (e0 >> shift & LINE)
        | (e1 >> shift & LINE) << U(16)
        | (e2 >> shift & LINE) << U(32)
        | (e3 >> shift & LINE) << U(48)
    )
    return slid, score_of(e0, e1, e2, e3)


@kernel
def legal_mask(board):
    """The legal actions of a 4×4 board as bits 0 to 3, from its cells and their shifted neighbours."""
    empty = empties(board)
    tiles = empty ^ LOW_BITS
    equal_right = empties(board ^ board >> U(4)) & tiles & HAS_RIGHT
    equal_below = empties(board ^ board >> U(16)) & tiles & HAS_BELOW
    left = (empty & tiles >> U(4) & HAS_RIGHT) | equal_right
    right = (tiles & empty >> U(4) & HAS_RIGHT) | equal_right
    up = (empty & tiles >> U(16) & HAS_BELOW) | equal_below
    down = (tiles & empty >> U(16) & HAS_BELOW) | equal_below
    return np.int64(up != 0) | np.int64(right != 0) << 1 | np.int64(down != 0) << 2 | np.int64(left != 0) << 3


@kernel
def _larger(a, b):
    """The larger of each two bytes; all are below 128."""
    mine = ((a | TOP_BIT_PER_BYTE) - b) & TOP_BIT_PER_BYTE
    mine -= mine >> U(7)
    return (a & mine) | (b & ~mine)


@kernel
def top_rank(board):
    """The largest of the sixteen ranks: a tournament between the bytes of one word."""
    best = _larger(board & NIBBLE_PER_BYTE, board >> U(4) & NIBBLE_PER_BYTE)
    best = _larger(best, best >> U(8))
    best = _larger(best, best >> U(16))
    return np.int64(_larger(best, best >> U(32)) & U(15))


@kernel
def put_tile(board, free, bits):
    """A board with the new tile that 64 random bits decide on, as `board.spawn` places it.

    `free` has one bit (the lowest of its four) for each empty cell, one to fifteen of them. Multiplying these marks by
    0x11…1 counts them up along the board: nibble i then holds the number of empty cells up to i. The cell to fill is
    the first whose count exceeds the number drawn, so its index is the number of counts that do not.
    """
    counts = free * LOW_BITS
    skip = U(below(bits, counts >> U(60)))
    limit = skip * BYTES | TOP_BIT_PER_BYTE
    even = (limit - (counts & NIBBLE_PER_BYTE)) >> U(7) & BYTES
    odd = (limit - (counts >> U(4) & NIBBLE_PER_BYTE)) >> U(7) & BYTES
    cell = ((even + odd) * BYTES) >> U(56)
    return board | U(core.new_rank(bits)) << (cell << U(2) & U(63))


@kernel
def two_tiles(stream):
    """(the next state of the random stream, a 4×4 board with two tiles), as `board.begin` draws them."""
    stream, bits = next_bits(stream)
    board = U(core.new_rank(bits)) << (bits >> U(60) << U(2))
    stream, bits = next_bits(stream)
    return stream, put_tile(board, empties(board), bits)


@kernel(inline="always")
def status(board, goal):
    """Like `board.status`, for a packed 4×4 board."""
    top = top_rank(board)
    mask = legal_mask(board)
    over = (mask == 0) | ((goal > 0) & (top >= goal))
    return (core.ALL_ACTIONS if over else mask), over, top


# -- one action on the state of a game ---------------------------------------------------------------------------------
#
# A state holds the sixteen ranks as bytes, in two words. They are packed for the step and unpacked after it.


@kernel
def squeeze(word):
    """Eight ranks, a byte each, as eight nibbles: 0a 0b 0c … → abc…

    >>> hex(squeeze.py_func(np.uint64(0x0102030405060708)))
    '0x12345678'
    """
    word = (word | word >> U(4)) & U(0x00FF00FF00FF00FF)
    word = (word | word >> U(8)) & U(0x0000FFFF0000FFFF)
    return (word | word >> U(16)) & U(0x00000000FFFFFFFF)


@kernel
def widen(half):
    """The inverse of `squeeze`: the lowest eight nibbles as eight bytes.

    >>> hex(widen.py_func(np.uint64(0x12345678)))
    '0x102030405060708'
    """
    half = (half & LOWER_HALF | half << U(16)) & U(0x0000FFFF0000FFFF)
    half = (half | half << U(8)) & U(0x00FF00FF00FF00FF)
    return (half | half << U(4)) & NIBBLE_PER_BYTE


@kernel
def all_below_15(upper, lower):
    """Whether the sixteen ranks in two words, none above 127, are all below 15: then no merge outgrows a nibble."""
    return ((upper + RANK_15) | (lower + RANK_15)) & TOP_BIT_PER_BYTE == 0


def lines_for(rows: int, cols: int) -> Words:
    """The table that `batch.step` takes for a board size: the line table for 4×4, an empty one for any other."""
    return line_table(4)[: 1 << 16 if rows == cols == 4 else 0]


@kernel
def begin(states, i, starts, drawn):
    """`board.begin` on row `i` of states uint64[n, words], fast on 4×4 without boards to start from."""
    if len(starts) == 0 and states[i, SHAPE] & SHAPE_MASK == SHAPE_4X4:
        states[i, STREAM], board = two_tiles(states[i, STREAM])
        states[i, SCORE] = states[i, ILLEGAL] = states[i, STEPS] = U(0)
        states[i, CELLS], states[i, CELLS + 1] = widen(board), widen(board >> U(32))
    else:
        core.begin(states[i], starts, drawn)
