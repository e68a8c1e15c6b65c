"""One pass over many games: every output of a batched step written by one kernel, which threads call for a part each.

Each game is a row of state words as in `board.py`. What a step returns is a `Seen`, made anew for every step.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mergefall.game2048 import block, square
from mergefall.game2048 import board as core
from mergefall.kernels import kernel, unowned

U = np.uint64


class Seen(NamedTuple):
    """What n games show after a step: the columns of Gymnasium's batched returns.

    `cells` are the words of the states that hold the ranks, so that a kernel copies words: uint64[n, words]; `masks`
    likewise the four bytes of each action mask in a word.
    """

    cells: NDArray[np.uint64]
    rewards: NDArray[np.float64]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    masks: NDArray[np.uint32]
    scores: NDArray[np.int64]
    max_tiles: NDArray[np.int64]
    legal: NDArray[np.bool_]

    @classmethod
    def empty(cls, states: NDArray[np.uint64]) -> Seen:
        """Room for what the games of `states` uint64[n, words] show."""
        n = len(states)
        return cls(
            np.empty((n, states.shape[1] - core.CELLS), np.uint64),
            np.empty(n, np.float64),
            np.empty(n, np.bool_),
            np.empty(n, np.bool_),
            np.empty(n, np.uint32),
            np.empty(n, np.int64),
            np.empty(n, np.int64),
            np.empty(n, np.bool_),
        )


class EpisodeRules(NamedTuple):
    """What an environment adds to the game: how rewards are told, and when an episode ends early."""

    lines: NDArray[np.uint64]  # square.lines_for the boards' size
    log2: bool  # rewards are log2(1 + score of the move)
    illegal_limit: int
    max_steps: int  # 0 for no cap


@kernel(inline="always")
def _show(i, states, seen, cells, masks, scores, max_tiles, legal):
    """Write what game `i` shows, of the packed integer that a step or a start returned."""
    if cells.shape[1] == 2:  # 4×4, for which a loop would take as long as the rest of this
        cells[i, 0], cells[i, 1] = states[i, core.CELLS], states[i, core.CELLS + 1]
    else:
        for j in range(cells.shape[1]):
            cells[i, j] = states[i, core.CELLS + j]
    masks[i] = (seen & 15) * 0x204081 & 0x1010101  # bit a of the mask to the lowest bit of byte a
    scores[i] = np.int64(states[i, core.SCORE])
    max_tiles[i] = 1 << (seen >> core.RANK_SHIFT & 255)
    legal[i] = seen >> core.LEGAL_BIT & 1


@kernel(inline="always")
def _play(i, states, action, fresh, pool):
    """Step game `i`, or begin it where it is to be fresh; returns the packed integer, not over at a beginning."""
    if fresh:
        seen = square.begin(states, i, pool) & ~(1 << core.OVER_BIT) | 1 << core.LEGAL_BIT
    else:
        seen = core.step(states[i], action)
    return seen


@kernel(inline="always")
def _judge(i, states, seen, log2, illegal_limit, max_steps, rewards, terminated, truncated):
    """Write what the step pays and whether it ends the episode."""
    gain = np.float64(seen >> core.GAIN_SHIFT)
    rewards[i] = np.log2(1.0 + gain) if log2 else gain
    terminated[i] = seen >> core.OVER_BIT & 1
    stuck = np.int64(states[i, core.ILLEGAL]) >= illegal_limit
    truncated[i] = stuck | ((max_steps > 0) & (np.int64(states[i, core.STEPS]) >= max_steps))


@kernel
def step(
    first,
    end,
    states,
    actions,
    fresh,
    pool,
    lines,
    log2,
    illegal_limit,
    max_steps,
    cells,
    rewards,
    terminated,
    truncated,
    masks,
    scores,
    max_tiles,
    legal,
):
    """Step games `first` to `end` - 1 of states uint64[n, words]; those marked in `fresh` bool[n] begin anew instead.

    After actions int64[n], the marks and the pool of starts come the fields of `EpisodeRules` and of `Seen`, one by
    one: from a tuple in a loop, Numba takes arrays with a count of references each, which takes longer than the step.
    """
    states, actions, fresh, pool, lines = unowned((states, actions, fresh, pool, lines))
    cells, rewards, terminated, truncated = unowned((cells, rewards, terminated, truncated))
    masks, scores, max_tiles, legal = unowned((masks, scores, max_tiles, legal))
    four_by_four = lines.size > 0
    scratch = np.empty(block.SCRATCH, np.uint64)
    for start in range(U(first), U(end), block.BLOCK):  # unsigned, so that no index is looked at for being negative
        count = min(block.BLOCK, U(end) - start)
        if four_by_four:
            block.advance(states, actions, start, count, lines, scratch)
        for j in range(U(0), count):
            i = start + j
            if four_by_four and not fresh[i] and square.all_below_15(states[i, core.CELLS], states[i, core.CELLS + 1]):
                seen = block.keep(states, i, scratch, j)
            else:
                seen = _play(i, states, actions[i], fresh[i], pool)
            _judge(i, states, seen, log2, illegal_limit, max_steps, rewards, terminated, truncated)
            _show(i, states, seen, cells, masks, scores, max_tiles, legal)


@kernel
def begin(states, which, pool):
    """Begin the games with the indices `which` int64[k] anew."""
    states, pool = unowned((states, pool))
    for i in which:
        square.begin(states, U(i), pool)


@kernel
def begin_from(states, which, ranks):
    """Begin the games with the indices `which` int64[k] on the board `ranks` uint8[rows·cols]."""
    for i in which:
        core.start_from(states[i], ranks)


@kernel
def look(states, which, out):
    """Write what the games with the indices `which` int64[k] show after a beginning."""
    states, out = unowned((states, out))
    for k in which:
        i = U(k)
        seen = core.observe(states[i]) | 1 << core.LEGAL_BIT
        _show(i, states, seen, out.cells, out.masks, out.scores, out.max_tiles, out.legal)


@kernel
def observe(states, masks, over):
    """Write the action masks of n games into bool[n, 4], and into bool[n] whether each is over."""
    for i in range(len(states)):
        seen = core.observe(states[i])
        over[i] = seen >> core.OVER_BIT & 1
        for action in range(4):
            masks[i, action] = seen >> action & 1


@kernel
def afterstates(states, boards, gains):
    """`board.afterstates` of n games: boards uint8[n, 4, rows·cols], scores int64[n, 4]."""
    for i in range(len(states)):
        core.afterstates(states[i], boards[i], gains[i])
