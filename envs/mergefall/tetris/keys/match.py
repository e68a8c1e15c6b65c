"""A game by keys alone, or a match of two: each side sends the other the garbage that its clears are worth.

A match is a row of words: the state of one side, then that of the other, its opponent. A step is one key for each;
garbage that is sent waits on the other side before the next step. A game alone has no second half.
"""

import numpy as np

from mergefall.kernels import kernel
from mergefall.tetris import game as words
from mergefall.tetris.game import OPPONENTS_KEY, OVER, PENDING, STREAM, size_of
from mergefall.tetris.keys import game
from mergefall.tetris.keys.game import MOST_WAITING, Lock


@kernel(inline="always")
def sides(state):
    """(one side, its opponent, which is empty in a game alone)"""
    half = words.COLUMNS + size_of(state)[0]
    return state[:half], state[half:]


@kernel
def is_over(state):
    own, other = sides(state)
    return own[OVER] > 0 or (other.size > 0 and other[OVER] > 0)


@kernel(forceinline=True)
def won(own, other):
    """1 if only the opponent's game is over, -1 if only the own one is, else 0; 0 in a game alone."""
    return np.int64(other[OVER]) - np.int64(own[OVER]) if other.size else 0


@kernel
def begin_sides(state, start, others):
    """Begin a game, or a match in which both sides draw the same pieces, from a row of starts for each, or none."""
    own, other = sides(state)
    if other.size:
        other[STREAM] = own[STREAM]
        game.begin(other, others, False, 1)
    game.begin(own, start, False, 0)


@kernel
def begin(state, starts, drawn):
    """Begin a game or match, the opponent on an empty board; the arguments: see `mergefall.tetris.game.begin`."""
    begin_sides(state, words.choose(state, starts, drawn), starts[:0])


@kernel
def receive(side, rows):
    side[PENDING] = min(np.int64(side[PENDING]) + rows, MOST_WAITING)


@kernel
def answer(own, other, sent):
    """Play the opponent's key after the own one, which sent so many rows; returns the opponent's `Lock`."""
    _, _, _, locked = game.step(other, np.int64(other[OPPONENTS_KEY]))
    other[OPPONENTS_KEY] = 0  # a wait, until it chooses again
    receive(other, sent)
    receive(own, locked.sent)
    return locked


@kernel(forceinline=True)
def step(own, other, key):
    """Play a key, and in a match the opponent's: (legal, whether it is over, points, `Lock`, the opponent's `Lock`)."""
    locked = Lock(0, 0, 0, 0)
    if other.size and (own[OVER] or other[OVER]):
        return False, True, 0, locked, locked
    legal, over, points, own_lock = game.step(own, key)
    if other.size:
        locked = answer(own, other, own_lock.sent)
        over |= other[OVER] > 0
    return legal, over, points, own_lock, locked
