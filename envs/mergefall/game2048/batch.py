"""Many games of 2048 stepped by one kernel call. This form exists for batched environments: 4×4 games go 64 at a time.

Each game is a row of state words as in `board.py`. A step writes its results into a `Seen` of fresh arrays. Threads
call `step` for a part of the batch each.

On 4×4, `step` reads a block of games into a scratch with one column per quantity, and each loop does one thing to all
of them with the arithmetic of `packed.py`, so that compilers turn it into vector instructions. Table look-ups and
copies to and from rows of states do not vectorise, so each has a loop to itself. All columns lie in one array at known
distances: otherwise the compiler could not tell that they do not overlap, and would not vectorise.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mergefall.game2048 import board as core
from mergefall.game2048 import packed
from mergefall.kernels import direct, kernel, unowned
from mergefall.words import next_bits

U = np.uint64
BLOCK = U(64)  # games
COLUMNS = 9
UPPER, LOWER, STREAM, SHAPE, ACTION, BOARD, ROWS, GAIN, SEEN = (U(64 * i) for i in range(COLUMNS))
SCRATCH = int(BLOCK) * COLUMNS  # words
REWARDS = ("score", "log2", "goal")
SCORE, LOG2, GOAL = range(3)


class Seen(NamedTuple):
    """What n games show after a step: the columns of Gymnasium's batched returns.

    - `cells: uint64[n, words]`: the words of the states that hold the ranks (a kernel copies words faster than bytes).
    - `masks: uint32[n]`: the four bytes of each action mask.
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
        """Uninitialised arrays for the games of `states` uint64[n, words]."""
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
    """What an environment adds to the game: the reward, and when an episode ends early."""

    lines: NDArray[np.uint64]  # packed.lines_for the boards' size
    reward: int  # SCORE, LOG2 or GOAL
    illegal_limit: int
    max_steps: int  # 0 for no cap


# -- a block of 4×4 games ----------------------------------------------------------------------------------------------


@kernel
def _read_block(states, actions, first, count, s):
    for j in range(U(0), count):
        i = first + j
        s[UPPER + j], s[LOWER + j] = states[i, core.CELLS], states[i, core.CELLS + 1]
        s[STREAM + j], s[SHAPE + j] = states[i, core.STREAM], states[i, core.SHAPE]
        s[ACTION + j] = U(actions[i])


@kernel
def _turn_block(count, s):
    for j in range(U(0), count):
        board = packed.from_words(s[UPPER + j], s[LOWER + j])
        s[BOARD + j], s[ROWS + j] = board, packed.turned(board, s[ACTION + j])


@kernel
def _slide_block(count, lines, s):
    for j in range(U(0), count):
        s[ROWS + j], s[GAIN + j] = packed.slide_one_way(s[ROWS + j], s[ACTION + j], lines)


@kernel
def _finish_block(count, s):
    for j in range(U(0), count):
        board, stream = s[BOARD + j], s[STREAM + j]
        after = packed.turned(s[ROWS + j], s[ACTION + j])
        legal = U(after != board)
        onward, bits = next_bits(stream)
        board = packed.choose(legal, packed.add_tile(after, bits), board)
        s[STREAM + j] = packed.choose(legal, onward, stream)
        s[UPPER + j], s[LOWER + j] = packed.to_words(board)
        seen = U(packed.status(board, core.goal_of(s[SHAPE + j])))
        s[SEEN + j] = seen | legal << U(core.LEGAL_BIT) | s[GAIN + j] << U(core.GAIN_SHIFT)


@kernel(inline="always")
def _step_block(states, actions, first, count, lines, s):
    """Step `count` ≤ BLOCK games from `first` on in the scratch `s` uint64[SCRATCH]; the states stay as they are.

    The results of games that are not `packed.all_below_15` are meaningless.
    """
    _read_block(states, actions, first, count, s)
    _turn_block(count, s)
    _slide_block(count, lines, s)
    _finish_block(count, s)


@kernel(inline="always")
def _take_over(states, i, s, j):
    """Write the block's `j`th game, after its step, to the state of game `i`; returns what `board.step` returns."""
    seen = np.int64(s[SEEN + j])
    states[i, core.STREAM] = s[STREAM + j]
    states[i, core.SCORE] += U(core.gain_of(seen))
    states[i, core.ILLEGAL] = packed.choose(U(core.is_legal(seen)), U(0), states[i, core.ILLEGAL] + U(1))
    states[i, core.STEPS] += U(1)
    states[i, core.CELLS], states[i, core.CELLS + 1] = s[UPPER + j], s[LOWER + j]
    return seen


# -- all games ---------------------------------------------------------------------------------------------------------


@kernel(inline="always")
def _as_reset(seen):
    """`seen` at the beginning of an episode: legal, not over."""
    return seen & ~(1 << core.OVER_BIT) | 1 << core.LEGAL_BIT


@kernel(inline="always")
def _play(i, states, action, fresh, pool):
    """Step game `i`, or begin it anew if `fresh`; returns `seen`."""
    if fresh:
        seen = _as_reset(packed.begin(states, i, pool))
    else:
        seen = core.step(states[i], action)
    return seen


@kernel(inline="always")
def _judge(i, states, seen, rules, out):
    """Write what the step pays and whether it ends the episode."""
    gain = np.float64(core.gain_of(seen))
    if rules.reward == LOG2:
        gain = np.log2(1.0 + gain)
    elif rules.reward == GOAL:
        gain = np.float64(core.top_of(seen) >= core.goal_of(states[i, core.SHAPE]))
    out.rewards[i] = gain
    out.terminated[i] = core.is_over(seen)
    stuck = np.int64(states[i, core.ILLEGAL]) >= rules.illegal_limit
    out.truncated[i] = stuck | ((rules.max_steps > 0) & (np.int64(states[i, core.STEPS]) >= rules.max_steps))


@kernel(inline="always")
def _show(i, states, seen, out):
    """Write what game `i` shows."""
    if out.cells.shape[1] == 2:  # 4×4, where a loop would take as long as the rest of this
        out.cells[i, 0], out.cells[i, 1] = states[i, core.CELLS], states[i, core.CELLS + 1]
    else:
        for j in range(out.cells.shape[1]):
            out.cells[i, j] = states[i, core.CELLS + j]
    out.masks[i] = core.mask_of(seen) * 0x204081 & 0x1010101  # bit a of the mask to the lowest bit of byte a
    out.scores[i] = np.int64(states[i, core.SCORE])
    out.max_tiles[i] = 1 << core.top_of(seen)
    out.legal[i] = core.is_legal(seen)


@kernel
def step(first, end, states, actions, fresh, pool, rules, out):
    """Step games `first` to `end` - 1, or begin anew those marked in `fresh`.

    - `states: uint64[games, words]`, `actions: int64[games]`, `fresh: bool[games]`.
    - `pool: uint8[n, rows·cols]`: starts, for `board.begin`.
    - `rules`: an `EpisodeRules`.
    - `out`: a `Seen`, which the results are written to.
    """
    states, actions, fresh, pool, rules, out = unowned((states, actions, fresh, pool, rules, out))
    four_by_four = rules.lines.size > 0
    scratch = np.empty(SCRATCH, np.uint64)
    for start in range(U(first), U(end), BLOCK):  # unsigned, so that no index is looked at for being negative
        count = min(BLOCK, U(end) - start)
        if four_by_four:
            _step_block(states, actions, start, count, rules.lines, scratch)
        for j in range(U(0), count):
            i = start + j
            if four_by_four and not fresh[i] and packed.all_below_15(states[i, core.CELLS], states[i, core.CELLS + 1]):
                seen = _take_over(states, i, scratch, j)
            else:
                seen = _play(i, states, actions[i], fresh[i], pool)
            _judge(i, states, seen, rules, out)
            _show(i, states, seen, out)


@cache
def stepper() -> Any:
    """`step` compiled for what `Game2048VectorEnv` passes, to be called without Numba's look at each argument's type.

    Numba takes as long to recognise two records as 64 games take to play.
    """
    states, rules = core.new_states(1, 4, 4), EpisodeRules(packed.lines_for(4, 4), LOG2, 1, 0)
    actions, fresh, pool = np.zeros(1, np.int64), np.zeros(1, np.bool_), np.zeros((0, 16), np.uint8)
    return direct(step, 0, 1, states, actions, fresh, pool, rules, Seen.empty(states))


@kernel
def begin(states, which, pool):
    """Begin the games with the indices `which` int64[k] anew."""
    states, pool = unowned((states, pool))
    for i in which:
        packed.begin(states, U(i), pool)


@kernel
def begin_from(states, which, ranks):
    """Begin the games with the indices `which` int64[k] on the board `ranks` uint8[rows·cols]."""
    for i in which:
        core.start_from(states[i], ranks)


@kernel
def look(states, which, out):
    """Write what the games with the indices `which` int64[k] show after a reset."""
    states, out = unowned((states, out))
    for k in which:
        i = U(k)
        _show(i, states, _as_reset(core.observe(states[i])), out)


@kernel
def observe(states, masks, over):
    """Write the action masks of n games to `masks` bool[n, 4], and whether each is over to `over` bool[n]."""
    for i in range(len(states)):
        seen = core.observe(states[i])
        over[i] = core.is_over(seen)
        for action in range(4):
            masks[i, action] = seen >> action & 1


@kernel
def action_masks(boards, rows, cols, masks):
    """Write the action masks of n boards uint8[n, rows·cols] to `masks` bool[n, 4]."""
    for i in range(len(boards)):
        legal = core.legal_mask(boards[i], rows, cols)
        for action in range(4):
            masks[i, action] = legal >> action & 1


@kernel
def afterstates(states, boards, gains):
    """`board.afterstates` of n games: boards uint8[n, 4, rows·cols], scores int64[n, 4]."""
    for i in range(len(states)):
        core.afterstates(states[i], boards[i], gains[i])
