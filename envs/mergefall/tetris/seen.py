"""What many games show, and the kernels that step them and write it in one pass, for both ways to play.

Each game is a row of state words (`game.py`). A step's outputs are a new `Seen`. Threads call kernels for a part of the
games each.
"""

from collections import namedtuple
from typing import NamedTuple

import numpy as np
from numba.np.unsafe.ndarray import to_fixed_tuple

from mergefall.kernels import borrow, kernel, unowned
from mergefall.tetris import game
from mergefall.typing import Array, Bools, Bytes, Floats, Ints, Kernel

U = np.uint64
LINES, SCORE, PIECES, PIECE, HOLD, ATTACK, CLEAR, WON, OWN = range(9)  # in a row of numbers; see `PieceRules`
STATE, WORDS, NUMBERS, CELLS, ACTIONS, REWARD, LIMIT = range(7)  # in the plan of `step_one`
LOOK = -1  # in place of an action: none is played


class Seen(NamedTuple):
    """What n games show."""

    boards: Bytes  # [n, rows · cols]; in a match [n, 2 · rows · cols], the opponent's behind the own one
    numbers: Ints  # [n, k]; `PieceRules.numbers` and `PieceRules.info_numbers` say what stands where
    masks: Array  # [n, actions]
    rewards: Floats
    terminated: Bools
    truncated: Bools
    legal: Bools


Kernels = namedtuple("Kernels", "step step_one begin look observe")


@kernel(inline="always")
def write_pieces(state, first, numbers):
    """Write a game's figures and pieces into its row of numbers, the queue from `first` on; returns where it ends."""
    numbers[LINES], numbers[SCORE], numbers[PIECES] = state[game.LINES], state[game.SCORE], state[game.PIECES]
    pieces, _, preview, _, _ = game.settings_of(state)
    held = np.int64(state[game.HOLD])
    numbers[PIECE], numbers[HOLD] = game.queued(state, 0), held - 1 if held else game.NAMED[pieces]
    for i in range(preview):
        numbers[first + i] = game.queued(state, 1 + i)
    return first + preview


def kernels_of(begin_one: Kernel, play: Kernel, show: Kernel, is_over: Kernel, write_mask: Kernel) -> Kernels:
    """The kernels of a way to play, from those of one game.

    - `begin_one`: (state, starts, drawn).
    - `play`: (state, action, reward, reach, numbers) -> (legal, whether the game is over, what it pays), writes numbers
      that only a step has. `reward` is an index of `Rules.rewards`; `reach`: see `placements.py`.
    - `show`: (state, over, reach, board, numbers, mask), writes what a player sees.
    - `is_over`: (state).
    - `write_mask`: (state, over, reach, mask), writes 1 for each legal action, for all once the game is over.
    """

    @kernel
    def step(first, end, states, actions, fresh, pool, limits, seen):
        """Step games `first` to `end` - 1; games marked in `fresh` bool[n] begin anew instead.

        `limits`: (index of the reward, illegal actions and steps that truncate, 0 for no cap; `reach`).
        """
        states, actions, fresh, pool, limits, seen = unowned((states, actions, fresh, pool, limits, seen))
        # Outside the loop: from a record in a loop, Numba takes arrays with a count of references each.
        boards, numbers, masks, rewards, terminated, truncated, legal = seen
        reward, illegal_limit, max_steps, reach = limits
        for i in range(U(first), U(end)):
            state = states[i]
            if fresh[i]:
                begin_one(state, pool, True)
                legal[i], over, rewards[i], numbers[i] = True, False, 0.0, 0
            else:
                legal[i], over, rewards[i] = play(state, actions[i], reward, reach, numbers[i])
            stuck = np.int64(state[game.ILLEGAL]) >= illegal_limit
            truncated[i] = stuck or (max_steps > 0 and np.int64(state[game.STEPS]) >= max_steps)
            terminated[i] = over
            show(state, over, reach, boards[i], numbers[i], masks[i])

    @kernel
    def step_one(plan, row, action, reach):
        """Step one game: (legal, over, whether it is truncated, what it pays, and its first `OWN` numbers).

        Addresses, because to take an array from Python takes as long as a tenth of a step.

        - `plan`: the address of int64[7], by the names above: the address and size of the state, the sizes of what a
          row holds, the index of the reward, illegal actions that truncate.
        - `row`: the address to write to: int64 numbers, then the cells of boards, then the mask.
        """
        plan = borrow(plan, np.int64, 7)
        state, numbers = borrow(plan[STATE], np.uint64, plan[WORDS]), borrow(row, np.int64, plan[NUMBERS])
        row += numbers.size * 8
        board, mask = borrow(row, np.uint8, plan[CELLS]), borrow(row + plan[CELLS], np.int8, plan[ACTIONS])
        if action == LOOK:
            legal, over, paid, numbers[CLEAR] = True, is_over(state), 0.0, 0
        else:
            legal, over, paid = play(state, action, plan[REWARD], reach, numbers)
        show(state, over, reach, board, numbers, mask)
        stuck = np.int64(state[game.ILLEGAL]) >= plan[LIMIT]
        return legal, over, stuck, paid, *to_fixed_tuple(numbers, OWN)  # pyright: ignore[reportCallIssue]

    @kernel
    def begin(states, which, starts, drawn):
        """Begin the games with the indices `which` int64[k] anew; see `game.begin`."""
        for i in which:
            begin_one(states[i], starts, drawn)

    @kernel
    def look(states, which, seen, reach):
        """Write what the games with the indices `which` int64[k] show, as after a reset."""
        states, seen = unowned((states, seen))
        boards, numbers, masks, _, _, _, legal = seen
        for i in which:
            legal[i], numbers[i] = True, 0
            show(states[i], is_over(states[i]), reach, boards[i], numbers[i], masks[i])

    @kernel
    def observe(states, masks, over, reach):
        """Write the legal actions of n games to `masks` bool[n, actions], to `over` bool[n] whether each is over."""
        states, masks = unowned((states, masks))
        for i in range(len(states)):
            over[i] = is_over(states[i])
            write_mask(states[i], over[i], reach, masks[i])

    return Kernels(step, step_one, begin, look, observe)
