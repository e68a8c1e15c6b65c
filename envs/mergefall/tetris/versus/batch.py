"""Matches of two games by keys: each sends the other the garbage that its clears are worth.

A match is a row of words: the state of one side, then that of the other, its opponent (`keys/game.py`). A step is one
key for each; garbage that is sent waits on the other side before the next step. The opponent's key stands in its word
ILLEGAL, which nothing else uses.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mergefall.kernels import kernel, unowned
from mergefall.tetris import game as words
from mergefall.tetris.field import write_board
from mergefall.tetris.game import ILLEGAL, STREAM, columns_in, queued, size_of
from mergefall.tetris.keys import batch as sides
from mergefall.tetris.keys import game
from mergefall.tetris.keys.game import PENDING, STORAGE, get, with_field
from mergefall.words import draw

U = np.uint64


class Seen(NamedTuple):
    boards: NDArray[np.uint8]  # [n, (rows + 4) · cols]
    pieces: NDArray[np.int64]
    places: NDArray[np.int64]  # [n, 3]
    statuses: NDArray[np.int64]  # [n, 9]
    holds: NDArray[np.int64]
    nexts: NDArray[np.int64]  # [n, preview]
    opponents: NDArray[np.uint8]  # [n, (rows + 4) · cols]
    rewards: NDArray[np.float64]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    masks: NDArray[np.int8]  # [n, keys]
    lines: NDArray[np.int64]
    scores: NDArray[np.int64]
    placed: NDArray[np.int64]
    attacks: NDArray[np.int64]
    clears: NDArray[np.int64]
    won: NDArray[np.int64]
    legal: NDArray[np.bool_]


@kernel(inline="always")
def halves(state):
    """(one side, its opponent)"""
    half = state.size // 2
    return state[:half], state[half:]


@kernel
def won(state):
    """1 if only the opponent's game is over, -1 if only the own one is, else 0."""
    own, other = halves(state)
    return np.int64(words.is_over(other)) - np.int64(words.is_over(own))


@kernel
def is_over(state):
    own, other = halves(state)
    return words.is_over(own) or words.is_over(other)


@kernel
def begin_match(state, starts, drawn):
    """Begin a match; only the own side begins from one of the `starts`."""
    own, other = halves(state)
    game.begin(own, starts, drawn)
    other[STREAM] = draw(own)
    game.begin(other, starts[:0], True)
    other[ILLEGAL] = U(0)


@kernel
def begin_side(side, starts):
    """Begin a side of a match again, from the one row of `starts`."""
    game.begin(side, starts, False)


@kernel
def receive(state, sent):
    state[words.GARBAGE] = with_field(state[words.GARBAGE], PENDING, get(state[words.GARBAGE], PENDING) + sent)


@kernel
def step_match(state, key):
    """Play a key and the opponent's: (legal, whether the match is over, points, `Lock`, the opponent's `Lock`)."""
    own, other = halves(state)
    nothing = game.Lock(0, 0, 0, 0)
    if is_over(state):
        return False, True, 0, nothing, nothing
    legal, _, points, locked = game.step(own, key)
    _, _, _, answer = game.step(other, np.int64(other[ILLEGAL]))
    receive(other, locked.sent)
    receive(own, answer.sent)
    return legal, is_over(state), points, locked, answer


@kernel
def show(state, board, place, status, following, opponent, mask):
    """Write what a player sees; returns the held piece. In a match that is over all keys count as legal."""
    own, other = halves(state)
    write_board(columns_in(other), size_of(other)[1] + STORAGE, opponent)
    held = sides.show(own, board, place, status, following, mask)
    if is_over(state):
        for key in range(mask.size):
            mask[key] = 1
    return held


@kernel
def step_one(states, key, boards, places, statuses, nexts, opponents, masks):
    """Step the one match of a batch: (held piece, won, legal, over, lines, points, attack, clear)."""
    states, boards, places, statuses, nexts, opponents, masks = unowned(
        (states, boards, places, statuses, nexts, opponents, masks)
    )
    state = states[0]
    legal, over, points, locked, _ = step_match(state, key)
    held = show(state, boards[0], places[0], statuses[0], nexts[0], opponents[0], masks[0])
    return held, won(state), legal, over, locked.lines, points, locked.attack, locked.clear


@kernel
def _figures(i, state, pieces, lines, scores, placed, attacks, victories):
    """Write the current piece and the figures of match `i`."""
    own, _ = halves(state)
    pieces[i], victories[i] = queued(own, 0), won(state)
    lines[i], scores[i], placed[i] = own[words.LINES], own[words.SCORE], own[words.PIECES]
    attacks[i] = own[words.ATTACK]


@kernel
def step(first, end, states, keys, fresh, pool, rules, seen):
    """Step matches `first` to `end` - 1; those marked in `fresh` bool[n] begin anew instead.

    `rules`: (index of the reward, steps that truncate, 0 for no cap).
    """
    states, keys, fresh, pool, seen = unowned((states, keys, fresh, pool, seen))
    # Outside the loop: from a record in a loop, Numba takes arrays with a count of references each.
    boards, pieces, places, statuses, holds, nexts, opponents, rewards, terminated, truncated, masks = seen[:11]
    lines, scores, placed, attacks, clears, victories, legal = seen[11:]
    reward, max_steps = rules
    for i in range(U(first), U(end)):
        state, paid = states[i], 0
        if fresh[i]:
            begin_match(state, pool, True)
            legal[i], over, clears[i] = True, False, 0
        else:
            legal[i], over, points, locked, _ = step_match(state, keys[i])
            paid, clears[i] = (won(state), locked.lines, points, locked.attack)[reward], locked.clear
        rewards[i], terminated[i] = paid, over
        truncated[i] = max_steps > 0 and np.int64(state[words.STEPS]) >= max_steps
        holds[i] = show(state, boards[i], places[i], statuses[i], nexts[i], opponents[i], masks[i])
        _figures(i, state, pieces, lines, scores, placed, attacks, victories)


@kernel
def begin(states, which, starts, drawn):
    """Begin the matches with the indices `which` int64[k] anew."""
    for i in which:
        begin_match(states[i], starts, drawn)


@kernel
def look(states, which, seen):
    """Write what the matches with the indices `which` int64[k] show, as after a reset."""
    states, seen = unowned((states, seen))
    for i in which:
        state, place, status, following = states[i], seen.places[i], seen.statuses[i], seen.nexts[i]
        seen.legal[i], seen.clears[i] = True, 0
        seen.holds[i] = show(state, seen.boards[i], place, status, following, seen.opponents[i], seen.masks[i])
        _figures(i, state, seen.pieces, seen.lines, seen.scores, seen.placed, seen.attacks, seen.won)


@kernel
def observe(states, masks, over):
    """Write the masks of n matches to `masks` bool[n, keys], and whether each is over to `over` bool[n]."""
    states, masks = unowned((states, masks))
    for i in range(len(states)):
        over[i] = is_over(states[i])
        game.write_mask(halves(states[i])[0], masks[i])
        masks[i] |= over[i]
