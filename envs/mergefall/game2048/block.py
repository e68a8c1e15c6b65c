"""One step of many 4×4 games: the arithmetic of `square.py` in loops that compilers turn into vector instructions.

A block of games is read into a scratch, one column for each quantity, and every loop does one thing to all of them.
Looking up lines does not lend itself to vectors, nor does copying to and from rows of states, so each has a loop of its
own. All columns lie in one array at known distances: a compiler that could not tell that they do not overlap would
leave the loops as they are.
"""

from __future__ import annotations

import numpy as np

from mergefall.game2048 import board as core
from mergefall.game2048 import square
from mergefall.kernels import kernel

U = np.uint64
BLOCK = U(64)  # games
COLUMNS = 9
_UPPER, _LOWER, _STREAM, _SHAPE, _ACTION, _BOARD, _ROWS, _GAIN, _SEEN = (U(64 * i) for i in range(COLUMNS))
SCRATCH = int(BLOCK) * COLUMNS  # words


@kernel
def _read(states, actions, first, count, s):
    for j in range(U(0), count):
        i = first + j
        s[_UPPER + j], s[_LOWER + j] = states[i, square.CELLS], states[i, square.CELLS + 1]
        s[_STREAM + j], s[_SHAPE + j] = states[i, square.STREAM], states[i, square.SHAPE]
        s[_ACTION + j] = U(actions[i])


@kernel
def _turn(count, s):
    for j in range(U(0), count):
        board = square.squeeze(s[_UPPER + j]) | square.squeeze(s[_LOWER + j]) << U(32)
        s[_BOARD + j], s[_ROWS + j] = board, square.turned(board, s[_ACTION + j])


@kernel
def _slide(count, lines, s):
    for j in range(U(0), count):
        s[_ROWS + j], s[_GAIN + j] = square.slide_rows(s[_ROWS + j], s[_ACTION + j], lines)


@kernel
def _finish(count, s):
    for j in range(U(0), count):
        board, stream = s[_BOARD + j], s[_STREAM + j]
        after = square.turned(s[_ROWS + j], s[_ACTION + j])
        legal = U(after != board)
        onward, bits = core.next_bits(stream)
        board = square.choose(legal, square.add_tile(after, bits), board)
        s[_STREAM + j] = square.choose(legal, onward, stream)
        s[_UPPER + j], s[_LOWER + j] = square.widen(board & U(0xFFFFFFFF)), square.widen(board >> U(32))
        seen = U(square.status(board, np.int64(s[_SHAPE + j] >> U(16))))
        s[_SEEN + j] = seen | legal << U(core.LEGAL_BIT) | s[_GAIN + j] << U(core.GAIN_SHIFT)


@kernel(inline="always")
def advance(states, actions, first, count, lines, s):
    """Step `count` ≤ BLOCK games from `first` on in the scratch `s` uint64[SCRATCH]; the states stay as they are.

    What comes of games that `square.all_below_15` does not hold for means nothing.
    """
    _read(states, actions, first, count, s)
    _turn(count, s)
    _slide(count, lines, s)
    _finish(count, s)


@kernel(inline="always")
def keep(states, i, s, j):
    """Write the state of game `i`, the block's `j`th, after its step; returns what `board.step` does."""
    seen = np.int64(s[_SEEN + j])
    legal = U(seen >> core.LEGAL_BIT & 1)
    states[i, square.STREAM] = s[_STREAM + j]
    states[i, square.SCORE] += U(seen >> core.GAIN_SHIFT)
    states[i, square.ILLEGAL] = square.choose(legal, U(0), states[i, square.ILLEGAL] + U(1))
    states[i, square.STEPS] += U(1)
    states[i, square.CELLS], states[i, square.CELLS + 1] = s[_UPPER + j], s[_LOWER + j]
    return seen
