"""One step on the usual 4×4 board without loops, and without branches that depend on the tiles.

The 16 ranks of a state lie in two words of eight bytes each. While all are below 15 (no merge can then outgrow a
nibble) they are squeezed into one packed board, moved by the line table of `packed.py`, and spread out again. Boards of
other sizes or with a larger rank go through `board.py`. Results and random stream are those of `board.step`.

"SWAR" below means arithmetic on all the cells of a word at once (SIMD within a register).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mergefall.game2048 import board as core
from mergefall.game2048.packed import GAIN, LINE, LOW_BITS, empties, line_table, transpose
from mergefall.kernels import kernel
from mergefall.words import next_bits

U = np.uint64
STREAM, SCORE, ILLEGAL, STEPS, SHAPE, CELLS = range(6)  # as in board.py
SHAPE_MASK, SHAPE_4X4 = U(0xFFFF), U(4 | 4 << 8)
BYTES = U(0x0101010101010101)
NIBBLE_PER_BYTE = U(0x0F0F0F0F0F0F0F0F)
TOP_BIT_PER_BYTE = U(0x8080808080808080)
RANK_15 = U(0x7171717171717171)  # added to bytes below 128, it sets the top bit of those from 15 up
HAS_RIGHT = U(0x0111011101110111)  # the lowest bit of each cell that has a neighbour to its right
HAS_BELOW = U(0x0000111111111111)
_NO_LINES = np.zeros(0, dtype=np.uint64)
_NO_LINES.flags.writeable = False


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
    """The inverse of `squeeze`: eight nibbles as eight bytes.

    >>> hex(widen.py_func(np.uint64(0x12345678)))
    '0x102030405060708'
    """
    half = (half | half << U(16)) & U(0x0000FFFF0000FFFF)
    half = (half | half << U(8)) & U(0x00FF00FF00FF00FF)
    return (half | half << U(4)) & NIBBLE_PER_BYTE


@kernel
def all_below_15(upper, lower):
    """Whether the sixteen ranks in two words are all below 15; none is above 127."""
    return ((upper + RANK_15) | (lower + RANK_15)) & TOP_BIT_PER_BYTE == 0


@kernel
def choose(condition, a, b):
    """`a` where `condition` is 1, `b` where it is 0, without a branch."""
    mask = U(0) - condition
    return (a & mask) | (b & ~mask)


@kernel
def turned(board, action):
    """The board with its columns as rows where the action is up or down, which are even; its own inverse."""
    return choose(~U(action) & U(1), transpose(board), board)


@kernel
def slide_rows(rows, action, lines):
    """All rows slid towards the first cell where the action is up or left, else towards the last; and the score."""
    shift = (U(action) ^ U(action) >> U(1)) << U(4) & U(16)  # RIGHT and DOWN are 1 and 2
    e0 = lines[rows & LINE]
    e1 = lines[rows >> U(16) & LINE]
    e2 = lines[rows >> U(32) & LINE]
    e3 = lines[rows >> U(48)]
    slid = (
        (e0 >> shift & LINE)
        | (e1 >> shift & LINE) << U(16)
        | (e2 >> shift & LINE) << U(32)
        | (e3 >> shift & LINE) << U(48)
    )
    return slid, (e0 >> U(32) & GAIN) + (e1 >> U(32) & GAIN) + (e2 >> U(32) & GAIN) + (e3 >> U(32) & GAIN)


@kernel(inline="always")
def slide(board, action, lines):
    """(the board after an action, score): four look-ups; the board comes back unchanged where the action is illegal."""
    slid, gain = slide_rows(turned(board, action), action, lines)
    return turned(slid, action), np.int64(gain)


@kernel
def legal_mask(board):
    """The legal actions of a 4×4 board as bits 0 to 3, from its cells and their shifted neighbours."""
    empty = empties(board)
    filled = ~empty & LOW_BITS
    equal_right = empties(board ^ board >> U(4)) & filled & HAS_RIGHT
    equal_below = empties(board ^ board >> U(16)) & filled & HAS_BELOW
    left = (empty & filled >> U(4) & HAS_RIGHT) | equal_right
    right = (filled & empty >> U(4) & HAS_RIGHT) | equal_right
    up = (empty & filled >> U(16) & HAS_BELOW) | equal_below
    down = (filled & empty >> U(16) & HAS_BELOW) | equal_below
    return np.int64(up != 0) | np.int64(right != 0) << 1 | np.int64(down != 0) << 2 | np.int64(left != 0) << 3


@kernel
def _larger(a, b):
    """The larger of each two bytes; all are below 128."""
    mine = ((a | TOP_BIT_PER_BYTE) - b) & TOP_BIT_PER_BYTE
    mine -= mine >> U(7)
    return (a & mine) | (b & ~mine)


@kernel
def top_rank(board):
    """The largest of the sixteen ranks: a tournament, SWAR."""
    best = _larger(board & NIBBLE_PER_BYTE, board >> U(4) & NIBBLE_PER_BYTE)
    best = _larger(best, best >> U(8))
    best = _larger(best, best >> U(16))
    return np.int64(_larger(best, best >> U(32)) & U(15))


@kernel
def new_rank(bits):
    """The rank of the new tile that 64 random bits decide on."""
    return U(1) + U((bits & U(0xFFFFFFFF)) < core.FOUR_IN_2_32)


@kernel
def put_tile(board, free, bits):
    """A board with the new tile that 64 random bits decide on, as `board.spawn` does.

    `free` has one bit (the lowest of its four) for each empty cell, one to fifteen of them. Multiplying these marks by
    0x11…1 counts them up along the board: nibble i then holds the number of empty cells up to i. The cell to fill is
    the first whose count exceeds the number drawn, so its index is the number of counts that do not.
    """
    counts = free * LOW_BITS
    skip = ((bits >> U(32)) * (counts >> U(60))) >> U(32)
    limit = skip * BYTES | TOP_BIT_PER_BYTE
    even = (limit - (counts & NIBBLE_PER_BYTE)) >> U(7) & BYTES
    odd = (limit - (counts >> U(4) & NIBBLE_PER_BYTE)) >> U(7) & BYTES
    cell = ((even + odd) * BYTES) >> U(56)
    return board | new_rank(bits) << (cell << U(2) & U(63))


@kernel
def add_tile(board, bits):
    """`put_tile` on a 4×4 board with an empty cell and a tile, as every merge and every slide leaves it."""
    return put_tile(board, empties(board), bits)


@kernel
def two_tiles(stream):
    """(the stream moved on, a 4×4 board with two tiles), as `board.start` draws them."""
    stream, bits = next_bits(stream)
    board = new_rank(bits) << (bits >> U(60) << U(2))
    stream, bits = next_bits(stream)
    return stream, add_tile(board, bits)


@kernel(inline="always")
def status(board, goal):
    """What `board.status` returns, of a packed 4×4 board."""
    top = top_rank(board)
    mask = legal_mask(board)
    over = (mask == 0) | ((goal > 0) & (top >= goal))
    return (core.ALL_ACTIONS if over else mask) | np.int64(over) << core.OVER_BIT | top << core.RANK_SHIFT


def lines_for(rows: int, cols: int) -> NDArray[np.uint64]:
    """The table that `step` wants for boards of a size: the line table for 4×4, an empty one for any other."""
    return line_table(4) if rows == cols == 4 else _NO_LINES


@kernel(inline="always")
def advance(board, action, bits, lines):
    """Slide a packed board and, if that changed it, add the tile that 64 random bits decide on.

    Returns the board, the score and whether the action was legal (1 or 0).
    """
    after, gain = slide(board, action, lines)
    legal = U(after != board)
    return choose(legal, add_tile(after, bits), board), gain, legal


@kernel(inline="always")
def step(states, i, action, lines):
    """What `board.step` does, on row `i` of states uint64[n, words], fast on 4×4; `lines` is from `lines_for`.

    Inlined, and without a view of the row: that would count references, which takes as long as the step itself.
    """
    small, upper, lower = states[i, SHAPE] & SHAPE_MASK == SHAPE_4X4, U(0), U(0)
    if small:
        upper, lower = states[i, CELLS], states[i, CELLS + 1]
        small = all_below_15(upper, lower)
    if small:
        stream, bits = next_bits(states[i, STREAM])
        board = squeeze(upper) | squeeze(lower) << U(32)
        board, gain, legal = advance(board, action, bits, lines)
        states[i, STREAM] = choose(legal, stream, states[i, STREAM])
        states[i, SCORE] += U(gain)
        states[i, ILLEGAL] = choose(legal, U(0), states[i, ILLEGAL] + U(1))
        states[i, STEPS] += U(1)
        states[i, CELLS], states[i, CELLS + 1] = widen(board & U(0xFFFFFFFF)), widen(board >> U(32))
        goal = np.int64(states[i, SHAPE] >> U(16))
        seen = status(board, goal) | np.int64(legal) << core.LEGAL_BIT | gain << core.GAIN_SHIFT
    else:
        seen = core.step(states[i], action)
    return seen


@kernel
def begin(states, i, pool):
    """What `board.begin` does, on row `i` of states uint64[n, words], fast on 4×4 without a pool to draw from."""
    if pool.shape[0] == 0 and states[i, SHAPE] & SHAPE_MASK == SHAPE_4X4:
        states[i, STREAM], board = two_tiles(states[i, STREAM])
        states[i, SCORE] = states[i, ILLEGAL] = states[i, STEPS] = U(0)
        states[i, CELLS], states[i, CELLS + 1] = widen(board & U(0xFFFFFFFF)), widen(board >> U(32))
        seen = status(board, np.int64(states[i, SHAPE] >> U(16)))
    else:
        seen = core.begin(states[i], pool)
    return seen
