"""Many games in one pass: kernels that write everything a step returns. Threads call them for a part of the games each.

Each game is a row of state words (`game.py`). A step's outputs are a new `Seen`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mergefall.kernels import direct, kernel, unowned
from mergefall.tetris import game
from mergefall.tetris.field import copy, landing, place, write_board
from mergefall.tetris.game import columns_in, queued, table_row
from mergefall.tetris.pieces import WIDTHS
from mergefall.tetris.placements import ROTATIONS, column_of, drop_of, rest_of, rotation_of, row_at_rest, row_of
from mergefall.tetris.rules import Rules
from mergefall.typing import Kernel

U = np.uint64


class Seen(NamedTuple):
    """What n games show after a step: a row for each game."""

    boards: NDArray[np.uint8]  # [n, rows · cols]
    pieces: NDArray[np.int64]
    nexts: NDArray[np.int64]  # [n, preview]
    rewards: NDArray[np.float64]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    masks: NDArray[np.int8]  # [n, actions]
    lines: NDArray[np.int64]
    scores: NDArray[np.int64]
    placed: NDArray[np.int64]
    legal: NDArray[np.bool_]
    multisets: NDArray[np.int64]  # [n, piece ids]; [n, 0] unless the randomizer is "hidden"

    @classmethod
    def empty(cls, n: int, rules: Rules) -> Seen:
        """Uninitialized arrays for n games."""
        return cls(
            boards=np.empty((n, rules.rows * rules.cols), np.uint8),
            pieces=np.empty(n, np.int64),
            nexts=np.empty((n, rules.preview), np.int64),
            rewards=np.empty(n, np.float64),
            terminated=np.empty(n, np.bool_),
            truncated=np.empty(n, np.bool_),
            masks=np.empty((n, rules.n_actions), np.int8),
            lines=np.empty(n, np.int64),
            scores=np.empty(n, np.int64),
            placed=np.empty(n, np.int64),
            legal=np.empty(n, np.bool_),
            multisets=np.empty((n, rules.n_pieces if rules.randomizer == "hidden" else 0), np.int64),
        )


class EpisodeRules(NamedTuple):
    """What an environment adds to the game: rewards, and when an episode is truncated."""

    payments: NDArray[np.float64]  # the reward for clearing 0, 1, … lines
    illegal_limit: int
    max_steps: int  # 0 for no cap


class Kernels(NamedTuple):
    """The kernels for one kind of placements; those for drops do not compile what only slides need."""

    step_one: Kernel  # (states, action, boards, nexts, masks) -> the result of `game.take`, for a batch of one
    step: Kernel  # (first, end, states, actions, fresh, pool, rules: EpisodeRules, seen: Seen)
    look: Kernel  # (states, which, seen: Seen)
    afterstates: Kernel  # (states, boards, lines)


@kernel
def _drop_mask(columns, piece, mask):
    """Write 1 for each legal drop of a piece into int8[4 · cols]: every drop within the walls."""
    cols = U(columns.size)  # unsigned, so that no index is tested for being negative
    for rotation in range(U(ROTATIONS)):
        width = U(WIDTHS[piece, rotation])
        room = cols + U(1) - width if U(0) < width <= cols else U(0)
        for column in range(cols):
            mask[rotation * cols + column] = column < room


@kernel
def _slide(columns, piece, action):
    """`rest_of` with slides."""
    return rest_of(columns, piece, action, True)


@kernel
def _slide_mask(columns, piece, mask):
    """Write 1 for each legal action into int8[12 · cols].

    A legal slide goes under something; otherwise it would end where a drop does. So of two neighbouring drops only the
    one that ends lower can slide towards the other.
    """
    cols = columns.size
    _drop_mask(columns, piece, mask)
    for action in range(ROTATIONS * cols, mask.size):
        mask[action] = 0
    for rotation in range(ROTATIONS):
        left, right = (ROTATIONS + rotation) * cols, (2 * ROTATIONS + rotation) * cols
        before, last = 0, cols - WIDTHS[piece, rotation]
        for column in range(last + 1 if last < cols else 0):
            y = landing(columns, piece, rotation, column)
            if column > 0 and y < before:
                mask[left + column] = row_at_rest(columns, piece, 1, rotation, column) >= 0
            if column > 0 and y > before:
                mask[right + column - 1] = row_at_rest(columns, piece, 2, rotation, column - 1) >= 0
            before = y


@kernel
def _count(i, state, lines, scores, placed, multisets):
    """Write the figures of game `i`."""
    lines[i], scores[i], placed[i] = state[game.LINES], state[game.SCORE], state[game.PIECES]
    for piece in range(multisets.shape[1]):
        multisets[i, piece] = game.copies_of(state, piece)


@kernel
def begin(states, which, pool):
    """Begin the games with the indices `which` int64[k], from starts drawn from `pool` if it holds any."""
    for i in which:
        game.begin(states[i], pool)


@kernel
def begin_from(states, which, given):
    """Begin the games with the indices `which` int64[k] from a start as `Rules.start` returns it."""
    for i in which:
        game.start_from(states[i], given)


@cache
def kernels_for(slides: bool) -> Kernels:
    """The kernels for placements "slide" (True) or "drop" (False)."""
    variant = "slide" if slides else "drop"
    rest, write_mask = (_slide, _slide_mask) if slides else (drop_of, _drop_mask)

    @kernel(variant=variant)
    def play(state, action):
        """Play one action; returns the result of `game.take`."""
        return game.take(state, rest(columns_in(state), table_row(state, queued(state, 0)), action))

    @kernel(variant=variant)
    def show(state, over, board, following, mask):
        """Write what a player sees, except the current piece; once the game is over all actions are marked legal."""
        columns = columns_in(state)
        write_board(columns, board.size // columns.size, board)
        for i in range(following.size):
            following[i] = queued(state, 1 + i)
        if over:
            for action in range(mask.size):
                mask[action] = 1
        else:
            write_mask(columns, table_row(state, queued(state, 0)), mask)

    @kernel(variant=variant)
    def step_one(states, action, boards, nexts, masks):
        states, boards, nexts, masks = unowned((states, boards, nexts, masks))
        result = play(states[0], action)
        show(states[0], game.ends(result), boards[0], nexts[0], masks[0])
        return result

    @kernel(variant=variant)
    def step(first, end, states, actions, fresh, pool, rules, seen):
        """Step games `first` to `end` - 1; games marked in `fresh` bool[n] begin anew instead."""
        states, actions, fresh, pool, rules, seen = unowned((states, actions, fresh, pool, rules, seen))
        # Outside the loop: from a record in a loop, Numba takes arrays with a count of references each.
        boards, pieces, nexts, rewards, terminated, truncated, masks, lines, scores, placed, legal, multisets = seen
        payments, illegal_limit, max_steps = rules
        for i in range(U(first), U(end)):
            state = states[i]
            if fresh[i]:
                game.begin(state, pool)
                result = 1 << game.LEGAL_BIT
            else:
                result = play(state, actions[i])
            over = game.ends(result)
            stuck = np.int64(state[game.ILLEGAL]) >= illegal_limit
            rewards[i], terminated[i] = payments[game.lines_of(result)], over
            truncated[i] = stuck or (max_steps > 0 and np.int64(state[game.STEPS]) >= max_steps)
            legal[i], pieces[i] = game.is_legal(result), queued(state, 0)
            show(state, over, boards[i], nexts[i], masks[i])
            _count(i, state, lines, scores, placed, multisets)

    @kernel(variant=variant)
    def look(states, which, seen):
        """Write what the games with the indices `which` int64[k] show, as after a reset."""
        states, seen = unowned((states, seen))
        for i in which:
            state = states[i]
            seen.legal[i], seen.pieces[i] = True, queued(state, 0)
            _count(i, state, seen.lines, seen.scores, seen.placed, seen.multisets)
            show(state, game.is_over(state), seen.boards[i], seen.nexts[i], seen.masks[i])

    return Kernels(step_one, step, look, _afterstates(rest, variant))


def _afterstates(rest: Kernel, variant: str) -> Kernel:
    @kernel(variant=variant)
    def afterstates(states, boards, lines, fatal):
        """Write what every action leads to: boards uint8[n, actions, rows · cols], lines int64[n, actions].

        Sets `fatal` bool[n, actions], which is False before, where a placement ends the game. An illegal action leaves
        the board as it is, with -1 lines; so does every action once the game is over.
        """
        states, boards, lines, fatal = unowned((states, boards, lines, fatal))
        after = np.empty(states.shape[1] - game.COLUMNS, np.uint64)
        for i in range(len(states)):
            state = states[i]
            columns = columns_in(state)
            _, rows = game.size_of(state)
            piece, over = table_row(state, queued(state, 0)), game.is_over(state)
            for action in range(lines.shape[1]):
                placement = -1 if over else rest(columns, piece, action)
                copy(columns, after)
                lines[i, action] = -1
                if placement >= 0:
                    y, column, rotation = row_of(placement), column_of(placement), rotation_of(placement)
                    lines[i, action], _, fatal[i, action] = place(
                        after, piece, rotation, column, y, rows, game.clears_first(state)
                    )
                write_board(after, rows, boards[i, action])

    return afterstates


@cache
def compiled_step(slides: bool) -> Callable[..., None]:
    """`Kernels.step`, compiled for arguments of its types: contiguous arrays, ints and records (see `direct`)."""
    rules = Rules(placements="slide" if slides else "drop")
    states, actions, fresh = rules.new_states(1), np.zeros(1, np.int64), np.zeros(1, np.bool_)
    records = EpisodeRules(rules.payments(), rules.illegal_limit, 0), Seen.empty(1, rules)
    return direct(kernels_for(slides).step, 0, 1, states, actions, fresh, rules.pool(None), *records)


class Afterstates(NamedTuple):
    """What the actions of n games lead to.

    - `boards`: uint8[n, actions, rows, cols]
    - `rewards`: float64[n, actions]
    - `legal`, `fatal`: bool[n, actions], whether an action is legal, and whether it ends the game
    """

    boards: NDArray[np.uint8]
    rewards: NDArray[np.float64]
    legal: NDArray[np.bool_]
    fatal: NDArray[np.bool_]


def afterstates(states: NDArray[np.uint64], rules: Rules) -> Afterstates:
    """What the actions lead to in games uint64[n, words]."""
    n, actions, rows, cols = len(states), rules.n_actions, rules.rows, rules.cols
    boards, lines = np.empty((n, actions, rows * cols), np.uint8), np.empty((n, actions), np.int64)
    fatal = np.zeros((n, actions), np.bool_)
    kernels_for(rules.placements == "slide").afterstates(states, boards, lines, fatal)
    return Afterstates(boards.reshape(n, actions, rows, cols), rules.rewards(lines), lines >= 0, fatal)
