"""Many games by keys in one pass: all that a step returns (`mergefall.tetris.seen`)."""

import numpy as np

from mergefall.kernels import kernel
from mergefall.tetris import game as words
from mergefall.tetris.field import write_board
from mergefall.tetris.game import HELD, PENDING, ROTATION, columns_in, size_of
from mergefall.tetris.keys import game, match
from mergefall.tetris.keys.game import STORAGE
from mergefall.tetris.pieces import MASKS, WIDTHS
from mergefall.tetris.seen import ATTACK, CLEAR, OWN, WON, kernels_of, write_pieces
from mergefall.tetris.srs import SHAPES

U = np.uint64
PLACE = OWN  # in a row of numbers; then the status and the queue
STATUS = PLACE + HELD - ROTATION
LEVEL = STATUS + PENDING + 1 - HELD
QUEUE = LEVEL + 1


@kernel(forceinline=True)  # because a call passes seven numbers for each array
def show(state, over, reach, board, numbers, mask):
    """Write what a player sees, except `CLEAR`."""
    own, other = match.sides(state)
    cols, rows = size_of(own)
    write_board(columns_in(own), rows + STORAGE, board)
    if other.size:
        write_board(columns_in(other), rows + STORAGE, board[(rows + STORAGE) * cols :])
    write_pieces(own, QUEUE, numbers)
    numbers[ATTACK], numbers[WON] = own[words.ATTACK], match.won(own, other)
    for word in range(ROTATION, PENDING + 1):
        numbers[PLACE + word - ROTATION] = own[word]
    numbers[LEVEL] = game.level_of(own)
    game.write_mask(own, over, mask)


@kernel(forceinline=True)
def play(state, key, reward, reach, numbers):
    """Play a key; `reward`: its index in (lines, points, attack, won)."""
    own, other = match.sides(state)
    legal, over, points, locked, _ = match.step(own, other, key)
    numbers[CLEAR] = locked.clear
    return legal, over, np.float64((locked.lines, points, locked.attack, match.won(own, other))[reward])


@kernel
def write_mask(state, over, reach, mask):
    game.write_mask(match.sides(state)[0], over, mask)


KERNELS = kernels_of(match.begin, play, show, match.is_over, write_mask)


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
