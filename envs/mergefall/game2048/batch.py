"""Many games of 2048 stepped by one kernel call. This form exists for batched environments: 4×4 games go 64 at a time.

Each game is a row of state words as in `board.py`. A step writes its results into a `Seen` of fresh arrays. Threads
call `step` for a part of the batch each.

On 4×4, `step` reads a block of games into a scratch with one column per quantity, and each loop does one thing to all
of them with the arithmetic of `packed.py`, so that compilers turn it into vector instructions. Table look-ups and
copies to and from rows of states do not vectorise, so each has a loop to itself. All columns lie in one array at known
distances: otherwise the compiler could not tell that they do not overlap, and would not vectorise.
"""

from typing import NamedTuple

import numpy as np

from mergefall.game2048 import board as core
from mergefall.game2048 import packed
from mergefall.kernels import kernel, unowned
from mergefall.typing import Array, Bools, Floats, Ints, Words
from mergefall.words import next_bits

U = np.uint64
BLOCK = U(64)  # games
COLUMNS = 9
UPPER, LOWER, STREAM, SHAPE, ACTION, BOARD, ROWS, GAIN, STATUS = (U(64 * i) for i in range(COLUMNS))
SCRATCH = int(BLOCK) * COLUMNS  # words
SCORE, LOG2, GOAL, SURVIVAL = range(4)  # the rewards, in the order of `Rules.reward`


class Seen(NamedTuple):
    """The outputs of a step of n games: the columns of Gymnasium's batched returns.

    - `cells: uint64[n, words]`: the words of the states that hold the ranks (a kernel copies words faster than bytes).
    - `masks: uint32[n]`: the four bytes of each action mask.
    """

    cells: Words
    rewards: Floats
    terminated: Bools
    truncated: Bools
    masks: Array
    scores: Ints
    max_tiles: Ints
    legal: Bools


@kernel
def payment(score, top, goal, paid, over):
    """The reward of a move: NaN for one that is not described here.

    - `score`: of the move, 0 if it is illegal. `top`, `goal`: the largest rank after it, and that which is the goal.
    - `over`: whether the game is over, by the goal or because no move is legal.
    - `paid`: SCORE, LOG2, GOAL or SURVIVAL.
    """
    if paid == SCORE:
        return np.float64(score)
    if paid == LOG2:
        return np.log2(1.0 + score)
    if paid == SURVIVAL:
        return -np.float64(over and (goal == 0 or top < goal))
    return np.float64(top >= goal) if paid == GOAL else np.nan


# -- a block of 4×4 games ----------------------------------------------------------------------------------------------


@kernel
def _step_block(states, first, count, lines, s):
    """Step `count` ≤ BLOCK games from `first` on in the scratch `s` uint64[SCRATCH]; the states stay as they are.

    `s` holds the actions. The results of games that are not `packed.all_below_15` are meaningless.
    """
    for j in range(U(0), count):
        i = first + j
        s[UPPER + j], s[LOWER + j] = states[i, core.CELLS], states[i, core.CELLS + 1]
        s[STREAM + j], s[SHAPE + j] = states[i, core.STREAM], states[i, core.SHAPE]
    for j in range(U(0), count):
        board = packed.squeeze(s[UPPER + j]) | packed.squeeze(s[LOWER + j]) << U(32)
        s[BOARD + j], s[ROWS + j] = board, packed.turned(board, s[ACTION + j])
    for j in range(U(0), count):
        s[ROWS + j], s[GAIN + j] = packed.slide_one_way(s[ROWS + j], s[ACTION + j], lines)
    for j in range(U(0), count):
        board, stream = s[BOARD + j], s[STREAM + j]
        after = packed.turned(s[ROWS + j], s[ACTION + j])
        legal = U(after != board)
        onward, bits = next_bits(stream)
        board = packed.choose(legal, packed.put_tile(after, packed.empties(after), bits), board)
        s[STREAM + j] = packed.choose(legal, onward, stream)
        s[UPPER + j], s[LOWER + j] = packed.widen(board), packed.widen(board >> U(32))
        mask, over, top = packed.status(board, core.goal_of(s[SHAPE + j]))
        s[STATUS + j] = U(mask) | legal << U(4) | U(over) << U(5) | U(top) << U(8)


@kernel(inline="always")
def _finish(states, i, four_by_four, s, j):
    """Write the block's `j`th game, after its step, to the state of game `i`, or play `board.step` where it must.

    Returns (whether the action was legal, its score, action mask, whether the game is over, largest rank).
    """
    if four_by_four and packed.all_below_15(states[i, core.CELLS], states[i, core.CELLS + 1]):
        gain, status = np.int64(s[GAIN + j]), np.int64(s[STATUS + j])
        states[i, core.STREAM] = s[STREAM + j]
        states[i, core.SCORE] += s[GAIN + j]
        states[i, core.ILLEGAL] = packed.choose(U(status >> 4 & 1), U(0), states[i, core.ILLEGAL] + U(1))
        states[i, core.STEPS] += U(1)
        states[i, core.CELLS], states[i, core.CELLS + 1] = s[UPPER + j], s[LOWER + j]
        legal, mask, over, top = status & 16 != 0, status & core.ALL_ACTIONS, status & 32 != 0, status >> 8
    else:
        gain, mask, over, top = core.step(states[i], np.int64(s[ACTION + j]))
        legal, gain = gain >= 0, max(gain, 0)
    return legal, gain, mask, over, top


@kernel
def step_one(states, action, lines, s):
    """Step the one game of a batch: what `_finish` returns; `lines` and `s` as for `_step_block`, or no lines."""
    states, lines, s = unowned((states, lines, s))
    s[ACTION] = U(action)
    if lines.size:
        _step_block(states, U(0), U(1), lines, s)
    return _finish(states, U(0), lines.size > 0, s, U(0))


# -- all games ---------------------------------------------------------------------------------------------------------


@kernel(inline="always")
def _show(i, states, mask, top, legal, out):
    """Write what game `i` shows."""
    if out.cells.shape[1] == 2:  # 4×4, where a loop would take as long as the rest of this
        out.cells[i, 0], out.cells[i, 1] = states[i, core.CELLS], states[i, core.CELLS + 1]
    else:
        for j in range(out.cells.shape[1]):
            out.cells[i, j] = states[i, core.CELLS + j]
    out.masks[i] = mask * 0x204081 & 0x1010101  # bit a of the mask to the lowest bit of byte a
    out.scores[i] = np.int64(states[i, core.SCORE])
    out.max_tiles[i] = 1 << top
    out.legal[i] = legal


@kernel
def step(first, end, states, actions, fresh, pool, rules, out):
    """Step games `first` to `end` - 1, or begin anew those marked in `fresh`.

    - `states: uint64[games, words]`, `actions: int64[games]`, `fresh: bool[games]`.
    - `pool: uint8[n, rows·cols]`: starts, for `board.begin`.
    - `rules`: (`packed.lines_for` the boards' size, the index of the reward, illegal actions and steps that
      truncate; 0 for no cap).
    - `out`: a `Seen`, which the results are written to.
    """
    states, actions, fresh, pool, rules, out = unowned((states, actions, fresh, pool, rules, out))
    lines, paid, illegal_limit, max_steps = rules
    four_by_four = lines.size > 0
    scratch = np.empty(SCRATCH, np.uint64)
    for start in range(U(first), U(end), BLOCK):  # unsigned, so that no index is looked at for being negative
        count = min(BLOCK, U(end) - start)
        for j in range(U(0), count):
            scratch[ACTION + j] = U(actions[start + j])
        if four_by_four:
            _step_block(states, start, count, lines, scratch)
        for j in range(U(0), count):
            i = start + j
            if fresh[i]:
                packed.begin(states, i, pool, True)
                mask, _, top = core.observe(states[i])
                legal, gain, over = True, 0, False
            else:
                legal, gain, mask, over, top = _finish(states, i, four_by_four, scratch, j)
            reward = payment(gain, top, core.goal_of(states[i, core.SHAPE]), paid, over)
            stuck = np.int64(states[i, core.ILLEGAL]) >= illegal_limit
            capped = (max_steps > 0) & (np.int64(states[i, core.STEPS]) >= max_steps)
            out.rewards[i], out.terminated[i], out.truncated[i] = reward, over, stuck | capped
            _show(i, states, mask, top, legal, out)


@kernel
def begin(states, which, starts, drawn):
    """Begin the games with the indices `which` int64[k] anew; see `board.begin`."""
    states, starts = unowned((states, starts))
    for i in which:
        packed.begin(states, U(i), starts, drawn)


@kernel
def look(states, which, out):
    """Write what the games with the indices `which` int64[k] show after a reset."""
    states, out = unowned((states, out))
    for k in which:
        i = U(k)
        mask, _, top = core.observe(states[i])
        _show(i, states, mask, top, True, out)


@kernel
def observe(states, masks, over):
    """Write the action masks of n games to `masks` bool[n, 4], and whether each is over to `over` bool[n]."""
    for i in range(len(states)):
        mask, over[i], _ = core.observe(states[i])
        for action in range(4):
            masks[i, action] = mask >> action & 1


@kernel
def afterstates(states, paid, boards, rewards, legal):
    """Write the afterstates of n games, uint8[n, 4, rows·cols], the rewards float64[n, 4] and what is legal."""
    states, boards, rewards, legal = unowned((states, boards, rewards, legal))
    for i in range(len(states)):
        cells, rows, cols = core.board_in(states[i])
        for action in range(4):
            for k in range(cells.size):
                boards[i, action, k] = cells[k]
            gain = core.move_cells(boards[i, action], rows, cols, action)
            legal[i, action], rewards[i, action] = gain >= 0, 0.0
            if gain >= 0:
                goal = core.goal_of(states[i, core.SHAPE])
                rewards[i, action] = payment(gain, boards[i, action].max(), goal, paid, False)
