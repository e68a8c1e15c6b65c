"""Many games in one pass: kernels that write everything a step returns. Threads call them for a part of the games each.

Each game is a row of state words (`game.py`). A step's outputs are a new `Seen`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mergefall.kernels import kernel, unowned
from mergefall.tetris import game as words
from mergefall.tetris.field import write_board
from mergefall.tetris.game import columns_in, queued, size_of
from mergefall.tetris.keys import game, match
from mergefall.tetris.keys.game import STORAGE, get
from mergefall.tetris.pieces import MASKS, WIDTHS
from mergefall.tetris.srs import SHAPES

U = np.uint64


class Seen(NamedTuple):
    boards: NDArray[np.uint8]  # [n, (rows + 4) · cols]
    pieces: NDArray[np.int64]
    places: NDArray[np.int64]  # [n, 3]
    statuses: NDArray[np.int64]  # [n, 9]
    holds: NDArray[np.int64]
    nexts: NDArray[np.int64]  # [n, preview]
    opponents: NDArray[np.uint8]  # [n, (rows + 4) · cols] in matches, else [n, 0]
    rewards: NDArray[np.float64]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    masks: NDArray[np.int8]  # [n, keys]
    lines: NDArray[np.int64]
    scores: NDArray[np.int64]
    placed: NDArray[np.int64]
    attacks: NDArray[np.int64]
    clears: NDArray[np.int64]
    victories: NDArray[np.int64]  # 1 won, -1 lost, else 0
    legal: NDArray[np.bool_]


@kernel(forceinline=True)  # because a call passes seven numbers for each array
def show(own, other, board, place, status, following, opponent, mask):
    """Write what a player sees, except the current piece and the held one; returns the latter, 7 for none."""
    (_, rows), falling = size_of(own), own[words.FALLING]
    write_board(columns_in(own), rows + STORAGE, board)
    if other.size:
        write_board(columns_in(other), rows + STORAGE, opponent)
    place[0], place[1], place[2] = get(falling, game.ROTATION), get(falling, game.COLUMN), get(falling, game.ROW)
    status[0], status[1], status[2] = get(falling, game.HELD), get(falling, game.SPIN), get(falling, game.PHASE)
    status[3], status[4] = get(falling, game.GROUNDED), get(falling, game.RESETS)
    status[5] = get(own[words.CHAIN], game.CLEARS_IN_A_ROW)
    status[6] = get(own[words.CHAIN], game.BACK_TO_BACK)
    status[7], status[8] = get(own[words.GARBAGE], game.PENDING), game.level_of(own)
    for i in range(following.size):
        following[i] = queued(own, 1 + i)
    game.write_mask(own, match.is_over(own, other), mask)
    held = np.int64(own[words.HOLD])
    return held - 1 if held else 7


@kernel
def step_one(states, key, boards, places, statuses, nexts, opponents, masks):
    """Step the one game of a batch: (held piece, won, legal, over, lines, points, attack, clear)."""
    states, boards, places, statuses, nexts, opponents, masks = unowned(
        (states, boards, places, statuses, nexts, opponents, masks)
    )
    own, other = match.sides(states[0])
    legal, over, points, locked, _ = match.step(own, other, key)
    held = show(own, other, boards[0], places[0], statuses[0], nexts[0], opponents[0], masks[0])
    return held, match.won(own, other), legal, over, locked.lines, points, locked.attack, locked.clear


@kernel(forceinline=True)  # because a call passes seven numbers for each array
def _figures(i, own, other, pieces, lines, scores, placed, attacks, victories):
    """Write the current piece and the figures of game `i`."""
    pieces[i], victories[i] = queued(own, 0), match.won(own, other)
    lines[i], scores[i], placed[i] = own[words.LINES], own[words.SCORE], own[words.PIECES]
    attacks[i] = own[words.ATTACK]


@kernel
def step(first, end, states, keys, fresh, pool, rules, seen):
    """Step games `first` to `end` - 1; games marked in `fresh` bool[n] begin anew instead.

    `rules`: (index of the reward, steps that truncate, 0 for no cap).
    """
    states, keys, fresh, pool, seen = unowned((states, keys, fresh, pool, seen))
    # Outside the loop: from a record in a loop, Numba takes arrays with a count of references each.
    (
        boards,
        pieces,
        places,
        statuses,
        holds,
        nexts,
        opponents,
        rewards,
        terminated,
        truncated,
        masks,
        lines,
        scores,
        placed,
        attacks,
        clears,
        victories,
        legal,
    ) = seen
    reward, max_steps = rules
    for i in range(U(first), U(end)):
        (own, other), paid = match.sides(states[i]), 0
        if fresh[i]:
            match.begin(states[i], pool, True)
            legal[i], over, clears[i] = True, False, 0
        else:
            legal[i], over, points, locked, _ = match.step(own, other, keys[i])
            paid, clears[i] = (locked.lines, points, locked.attack, match.won(own, other))[reward], locked.clear
        rewards[i], terminated[i] = paid, over
        truncated[i] = max_steps > 0 and np.int64(own[words.STEPS]) >= max_steps
        holds[i] = show(own, other, boards[i], places[i], statuses[i], nexts[i], opponents[i], masks[i])
        _figures(i, own, other, pieces, lines, scores, placed, attacks, victories)


@kernel
def begin(states, which, starts, drawn):
    """Begin the games with the indices `which` int64[k] anew; see `match.begin`."""
    for i in which:
        match.begin(states[i], starts, drawn)


@kernel
def look(states, which, seen):
    """Write what the games with the indices `which` int64[k] show, as after a reset."""
    states, seen = unowned((states, seen))
    for i in which:
        (own, other), board, place, status = match.sides(states[i]), seen.boards[i], seen.places[i], seen.statuses[i]
        seen.legal[i], seen.clears[i] = True, 0
        seen.holds[i] = show(own, other, board, place, status, seen.nexts[i], seen.opponents[i], seen.masks[i])
        _figures(i, own, other, seen.pieces, seen.lines, seen.scores, seen.placed, seen.attacks, seen.victories)


@kernel
def observe(states, masks, over):
    """Write the masks of n games to `masks` bool[n, keys], and whether each is over to `over` bool[n]."""
    states, masks = unowned((states, masks))
    for i in range(len(states)):
        own, other = match.sides(states[i])
        over[i] = match.is_over(own, other)
        game.write_mask(own, over[i], masks[i])


@kernel
def draw_falling(pieces, places, boards, cols):
    """Mark the cells of falling pieces in boards uint8[n, rows·cols] of 0, row 0 on top; cells above are left out."""
    for i in range(len(pieces)):
        piece, (rotation, column, y) = pieces[i], places[i]
        shape, rows = SHAPES[piece, rotation], boards.shape[1] // cols
        for c in range(WIDTHS[piece, shape]):
            for r in range(4):
                if MASKS[piece, shape, c] >> U(r) & U(1) and y + r < rows:
                    boards[i, (rows - 1 - y - r) * cols + column + c] = 1
