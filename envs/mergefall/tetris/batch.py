"""Many games by placements in one pass: the masks of actions, all that a step returns (`seen.py`), and afterstates."""

import numpy as np

from mergefall.kernels import kernel, unowned
from mergefall.tetris import game
from mergefall.tetris.field import copy, landing, place, write_board
from mergefall.tetris.game import columns_in, table_row
from mergefall.tetris.pieces import WIDTHS
from mergefall.tetris.placements import ROTATIONS, action_of, at_rest, list_reachable, row_at_rest
from mergefall.tetris.seen import OWN, kernels_of, write_pieces

U = np.uint64


@kernel
def write_legal(state, over, reach, mask):
    """Write 1 for each legal action of a state into int8[actions], for all of them once the game is over.

    Every drop within the walls is legal. A legal slide goes under something; otherwise it would end where a drop does.
    So of two neighbouring drops only the one that ends lower can slide towards the other.
    """
    if over:
        mask[:] = 1
        return
    columns, slides, per_piece = columns_in(state), game.settings_of(state)[3], game.actions_of(state)
    cols = U(columns.size)  # unsigned, so that no index is tested for being negative
    drops = U(ROTATIONS) * cols
    for held in range(game.choices_of(state)):
        piece, own = table_row(state, game.placed_by(state, held)), mask[held * per_piece : (held + 1) * per_piece]
        own[:] = 0
        if reach is not None:
            placements = np.empty(own.size, np.int64)
            for i in range(list_reachable(columns, piece, reach, placements)):
                own[action_of(placements[i])] = 1
            continue
        for rotation in range(U(ROTATIONS)):
            width = U(WIDTHS[piece, rotation])
            room = cols + U(1) - width if U(0) < width <= cols else U(0)
            first = rotation * cols
            for column in range(room):
                own[first + column] = 1
            before, turn = 0, np.int64(rotation)
            for column in range(np.int64(room) if slides else 0):
                y = landing(columns, piece, turn, column)
                if column > 0 and y != before:
                    slide, at = (1, column) if y < before else (2, column - 1)
                    own[U(slide) * drops + first + U(at)] = row_at_rest(columns, piece, slide, turn, at) >= 0
                before = y


@kernel
def play(state, action, reward, reach, numbers):
    """Play an action; `reward`: its index in (lines, score)."""
    legal, over, lines = game.step(state, action, reach)
    return legal, over, np.float64((lines, game.LINE_SCORES[lines])[reward])


@kernel
def show(state, over, reach, board, numbers, mask):
    """Write what a player sees, then the hidden copies of each piece."""
    columns = columns_in(state)
    write_board(columns, board.size // columns.size, board)
    end = write_pieces(state, OWN, numbers)
    for piece in range(numbers.size - end):
        numbers[end + piece] = game.nibble(state[game.BAG], piece)
    if mask.size:
        write_legal(state, over, reach, mask)


KERNELS = kernels_of(game.begin, play, show, game.is_over, write_legal)


@kernel
def afterstates(states, reach, boards, lines, fatal):
    """Write what every action leads to: boards uint8[n, actions, rows · cols], lines int64[n, actions].

    Sets `fatal` bool[n, actions], which is False before, where a placement ends the game. An illegal action leaves
    the board as it is, with -1 lines; so does every action once the game is over.
    """
    states, boards, lines, fatal = unowned((states, boards, lines, fatal))
    after, placements = np.empty(states.shape[1] - game.COLUMNS, np.uint64), np.empty(lines.shape[1], np.int64)
    for i in range(len(states)):
        state = states[i]
        columns, (_, rows), clear_first = columns_in(state), game.size_of(state), game.settings_of(state)[4]
        lines[i] = -1
        for placement in placements[: game.list_legal(state, reach, placements)]:
            action, (rotation, column, y) = action_of(placement), at_rest(placement)
            piece = table_row(state, game.placed_by(state, action >= game.actions_of(state)))
            copy(columns, after)
            lines[i, action], _, fatal[i, action] = place(after, piece, rotation, column, y, rows, clear_first)
            write_board(after, rows, boards[i, action])
        for action in range(lines.shape[1]):
            if lines[i, action] < 0:
                write_board(columns, rows, boards[i, action])
