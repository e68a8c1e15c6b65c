"""Many games in one pass: kernels that write everything a step returns. Threads call them for a part of the games each.

Each game is a row of state words (`game.py`). A step's outputs are a new `Seen`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mergefall.kernels import kernel, unowned
from mergefall.tetris import game
from mergefall.tetris.field import copy, landing, place, write_board
from mergefall.tetris.game import columns_in, queued, table_row
from mergefall.tetris.pieces import WIDTHS
from mergefall.tetris.placements import ROTATIONS, action_of, at_rest, list_reachable, rest, row_at_rest

U = np.uint64


class Seen(NamedTuple):
    boards: NDArray[np.uint8]  # [n, rows · cols]
    pieces: NDArray[np.int64]
    nexts: NDArray[np.int64]  # [n, preview]
    holds: NDArray[np.int64]  # written in games with hold
    rewards: NDArray[np.float64]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    masks: NDArray[np.int8]  # [n, actions]
    lines: NDArray[np.int64]
    scores: NDArray[np.int64]
    placed: NDArray[np.int64]
    legal: NDArray[np.bool_]
    multisets: NDArray[np.int64]  # [n, piece ids]; [n, 0] unless the randomizer is "hidden"


@kernel
def write_mask(columns, piece, slides, reach, mask):
    """Write 1 for each legal action of a piece into int8[actions], those of one piece.

    Every drop within the walls is legal. A legal slide goes under something; otherwise it would end where a drop does.
    So of two neighbouring drops only the one that ends lower can slide towards the other.
    """
    cols = U(columns.size)  # unsigned, so that no index is tested for being negative
    drops = U(ROTATIONS) * cols
    for action in range(drops, U(mask.size)):
        mask[action] = 0
    if reach is not None:
        if reach > 0:
            for action in range(drops):
                mask[action] = 0
            placements = np.empty(mask.size, np.int64)
            for i in range(list_reachable(columns, piece, reach, placements)):
                mask[action_of(placements[i])] = 1
            return
    for rotation in range(U(ROTATIONS)):
        width = U(WIDTHS[piece, rotation])
        room = cols + U(1) - width if U(0) < width <= cols else U(0)
        first = rotation * cols
        for column in range(cols):
            mask[first + column] = column < room
        before, turn = 0, np.int64(rotation)
        for column in range(np.int64(room) if slides else 0):
            y = landing(columns, piece, turn, column)
            if column > 0 and y != before:
                slide, at = (1, column) if y < before else (2, column - 1)
                mask[U(slide) * drops + first + U(at)] = row_at_rest(columns, piece, slide, turn, at) >= 0
            before = y


@kernel
def write_legal(state, reach, mask):
    """Write 1 for each legal action of a state in which the game goes on."""
    slides, columns = game.settings_of(state)[3], columns_in(state)
    write_mask(columns, table_row(state, queued(state, 0)), slides, reach, mask)
    if reach is not None:
        if game.choices_of(state) > 1:
            other = table_row(state, game.placed_by(state, 1))
            write_mask(columns, other, slides, reach, mask[game.actions_of(state) :])


@kernel
def held_in(state):
    """The id of the held piece, the number of ids for none."""
    return np.int64(state[game.HOLD]) - 1 if state[game.HOLD] else game.NAMED[game.settings_of(state)[0]]


@kernel
def show(state, over, reach, board, following, mask):
    """Write what a player sees, except the current piece; once the game is over all actions are marked legal."""
    columns = columns_in(state)
    write_board(columns, board.size // columns.size, board)
    for i in range(following.size):
        following[i] = queued(state, 1 + i)
    if over:
        for action in range(mask.size):
            mask[action] = 1
    else:
        write_legal(state, reach, mask)


@kernel
def step_one(states, action, reach, boards, nexts, masks):
    """Step the one game of a batch; returns what `game.step` returns."""
    states, boards, nexts, masks = unowned((states, boards, nexts, masks))
    legal, over, lines = game.step(states[0], action, reach)
    show(states[0], over, reach, boards[0], nexts[0], masks[0])
    return legal, over, lines


@kernel
def _figures(i, state, reach, seen_pieces, holds, lines, scores, placed, multisets):
    """Write the current piece, the held one and the figures of game `i`."""
    seen_pieces[i] = queued(state, 0)
    if reach is not None:
        holds[i] = held_in(state)
    lines[i], scores[i], placed[i] = state[game.LINES], state[game.SCORE], state[game.PIECES]
    for piece in range(multisets.shape[1]):
        multisets[i, piece] = game.nibble(state[game.BAG], piece)


@kernel
def step(first, end, states, actions, fresh, pool, rules, seen):
    """Step games `first` to `end` - 1; games marked in `fresh` bool[n] begin anew instead.

    `rules`: (rewards float64[6] for clearing 0, 1, … lines, illegal actions and steps that truncate; 0 for no cap;
    `reach`, see `placements.py`).
    """
    states, actions, fresh, pool, rules, seen = unowned((states, actions, fresh, pool, rules, seen))
    # Outside the loop: from a record in a loop, Numba takes arrays with a count of references each.
    boards, pieces, nexts, holds, rewards, terminated, truncated, masks, lines, scores, placed, legal, multisets = seen
    payments, illegal_limit, max_steps, reach = rules
    for i in range(U(first), U(end)):
        state = states[i]
        if fresh[i]:
            game.begin(state, pool, True)
            legal[i], over, cleared = True, False, 0
        else:
            legal[i], over, cleared = game.step(state, actions[i], reach)
        stuck = np.int64(state[game.ILLEGAL]) >= illegal_limit
        rewards[i], terminated[i] = payments[cleared], over
        truncated[i] = stuck or (max_steps > 0 and np.int64(state[game.STEPS]) >= max_steps)
        show(state, over, reach, boards[i], nexts[i], masks[i])
        _figures(i, state, reach, pieces, holds, lines, scores, placed, multisets)


@kernel
def begin(states, which, starts, drawn):
    """Begin the games with the indices `which` int64[k] anew; see `game.begin`."""
    for i in which:
        game.begin(states[i], starts, drawn)


@kernel
def look(states, which, seen, reach):
    """Write what the games with the indices `which` int64[k] show, as after a reset."""
    states, seen = unowned((states, seen))
    for i in which:
        state = states[i]
        seen.legal[i] = True
        show(state, game.is_over(state), reach, seen.boards[i], seen.nexts[i], seen.masks[i])
        _figures(i, state, reach, seen.pieces, seen.holds, seen.lines, seen.scores, seen.placed, seen.multisets)


@kernel
def observe(states, masks, over, reach):
    """Write the legal actions of n games to `masks` bool[n, actions], and whether each is over to `over` bool[n]."""
    states, masks = unowned((states, masks))
    for i in range(len(states)):
        over[i] = game.is_over(states[i])
        masks[i] = True
        if not over[i]:
            write_legal(states[i], reach, masks[i])


@kernel
def afterstates(states, reach, boards, lines, fatal):
    """Write what every action leads to: boards uint8[n, actions, rows · cols], lines int64[n, actions].

    Sets `fatal` bool[n, actions], which is False before, where a placement ends the game. An illegal action leaves
    the board as it is, with -1 lines; so does every action once the game is over.
    """
    states, boards, lines, fatal = unowned((states, boards, lines, fatal))
    after = np.empty(states.shape[1] - game.COLUMNS, np.uint64)
    for i in range(len(states)):
        state = states[i]
        columns, (_, rows), over = columns_in(state), game.size_of(state), game.is_over(state)
        piece, (_, _, _, slides, clear_first) = table_row(state, queued(state, 0)), game.settings_of(state)
        placements, first, count, k = np.empty(0, np.int64), lines.shape[1], 0, 0
        if reach is not None:  # a list, because one search finds all
            placements, first = np.empty(lines.shape[1], np.int64), game.actions_of(state)
            count = game.list_legal(state, reach, placements)
        for action in range(lines.shape[1]):
            rotation, column, y = 0, 0, -1
            if reach is None:
                rotation, column, y = rest(columns, piece, action, slides, reach)
            elif k < count and action_of(placements[k]) == action:
                rotation, column, y = at_rest(placements[k])
                piece, k = table_row(state, game.placed_by(state, 1 if action >= first else 0)), k + 1
            copy(columns, after)
            lines[i, action] = -1
            if y >= 0 and not over:
                lines[i, action], _, fatal[i, action] = place(after, piece, rotation, column, y, rows, clear_first)
            write_board(after, rows, boards[i, action])
