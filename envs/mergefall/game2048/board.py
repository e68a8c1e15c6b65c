"""The rules of 2048, compiled: boards as flat cells, a byte each. This form exists because it holds any size and rank.

The state of a game is one row of unsigned 64-bit words, so a copy of it is the whole game, random stream included:

    word    STREAM   SCORE   ILLEGAL   STEPS         SHAPE                            CELLS …
            random   so far  in a row  this episode  rows | cols << 8 | goal << 16    ranks, a byte each, row-major

`goal` is the rank that ends the game, 0 for none. STEPS counts all actions, illegal ones included, for a cap on the
length of episodes. Nothing derived (empty cells, legality, largest tile) is kept. `packed.py` plays faster on boards up
to 4×4, `batch.py` steps many games at once; `reference.py` states the same rules in plain Python.

What a board shows is its *status*: the action mask (bit a is action a), whether the game is over, the largest rank.
"""

import numpy as np

from mergefall.kernels import kernel
from mergefall.typing import Bytes, Words
from mergefall.words import below, draw

U = np.uint64
STREAM, SCORE, ILLEGAL, STEPS, SHAPE, CELLS = range(6)
UP, RIGHT, DOWN, LEFT = range(4)
ALL_ACTIONS = 15  # the mask of a terminal state: samplers need an entry
FOUR_IN_2_32 = U(429496730)  # round(0.1 · 2³²): a draw below it makes the new tile a 4

COLS_SHIFT, GOAL_SHIFT = 8, 16  # within the word SHAPE


def shape_word(rows: int, cols: int, goal: int = 0) -> int:
    """The word SHAPE of a state; `goal` is a rank or 0."""
    return rows | cols << COLS_SHIFT | goal << GOAL_SHIFT


def new_states(count: int, rows: int, cols: int, goal: int = 0) -> Words:
    """States of `count` games on empty boards, uint64[count, words]; `goal` is a rank or 0."""
    states = np.zeros((count, CELLS + (rows * cols + 7) // 8), dtype=np.uint64)
    states[:, SHAPE] = shape_word(rows, cols, goal)
    return states


def cells_of(states: Words, rows: int, cols: int) -> Bytes:
    """The ranks in states uint64[..., words] as a view uint8[..., rows, cols]."""
    cells = states.view(np.uint8)[..., 8 * CELLS : 8 * CELLS + rows * cols]
    return cells.reshape((*states.shape[:-1], rows, cols))


@kernel
def slide(cells, start, stride, length):
    """Slide one line of flat cells towards `start`, in place; returns the score of its merges, -1 if nothing moved.

    Example: ranks 1 0 1 3 become 2 3 0 0 and score 4.
    """
    # No branch depends on the tiles: a processor could not predict it.
    target, waiting, gain, moved = 0, 0, 0, False
    for i in range(length):
        rank = np.int64(cells[start + i * stride])
        tile = rank != 0
        merges = tile & (rank == waiting)
        place = target - np.int64(merges)
        moved |= tile & (place != i)
        cells[start + place * stride] = rank + np.int64(merges)  # an empty cell writes 0 where the next tile will go
        gain += np.int64(merges) << (rank + 1)
        target = place + np.int64(tile)
        waiting = rank if tile & ~merges else (0 if merges else waiting)
    for i in range(length):
        cells[start + i * stride] *= np.uint8(i < target)
    return gain if moved else -1


@kernel
def move_cells(cells, rows, cols, action):
    """Slide flat cells uint8[rows·cols] in place; returns the score of the merges, -1 if the action is illegal."""
    across = action in (LEFT, RIGHT)
    lines, length = (rows, cols) if across else (cols, rows)
    stride, between = (1, cols) if across else (cols, 1)
    first = 0
    if action in (RIGHT, DOWN):
        first = (length - 1) * stride
        stride = -stride
    gain, moved = 0, False
    for line in range(lines):
        score = slide(cells, first + line * between, stride, length)
        if score >= 0:
            gain += score
            moved = True
    return gain if moved else -1


@kernel
def pair_mask(here, there):
    """Which of two neighbouring cells can move: bit 0 if `there` can move to `here`, bit 1 the other way."""
    equal = here == there
    towards = (there != 0) & (equal | (here == 0))
    away = (here != 0) & (equal | (there == 0))
    return np.int64(towards) | np.int64(away) << 1


@kernel
def legal_mask(cells, rows, cols):
    """The legal actions of flat cells as bits 0 to 3; 0 when the game is over."""
    across, along = 0, 0
    for r in range(rows):
        for i in range(r * cols, r * cols + cols - 1):
            across |= pair_mask(cells[i], cells[i + 1])
    for i in range((rows - 1) * cols):
        along |= pair_mask(cells[i], cells[i + cols])
    return (across & 1) << LEFT | (across >> 1) << RIGHT | (along & 1) << UP | (along >> 1) << DOWN


@kernel(inline="always")
def new_rank(bits):
    """The rank of the new tile that 64 random bits decide on: the lower half decides."""
    return 1 + np.int64((bits & U(0xFFFFFFFF)) < FOUR_IN_2_32)


@kernel
def put_tile(cells, bits):
    """Put a 2 (0.9) or a 4 on a uniformly drawn empty cell, as 64 random bits decide; there must be one.

    The upper half of the bits picks the cell (to within 10⁻⁸), the lower half the tile. Returns 2 · (number of the
    empty cell) + (1 for a 4).
    """
    empty = 0
    for i in range(cells.size):
        empty += cells[i] == 0
    skip = below(bits, empty)
    rank = new_rank(bits)
    outcome = 2 * skip + rank - 1
    for i in range(cells.size):
        free = cells[i] == 0
        cells[i] += np.uint8(rank * np.int64(free & (skip == 0)))
        skip -= np.int64(free)
    return outcome


@kernel(inline="always")
def goal_of(shape):
    return np.int64(shape >> U(GOAL_SHIFT))


@kernel(inline="always")
def board_in(state):
    """(the ranks of a state uint64[words] as a view uint8[rows·cols], rows, cols)."""
    shape = np.int64(state[SHAPE])
    rows, cols = shape & 255, shape >> COLS_SHIFT & 255
    return state[CELLS:].view(np.uint8)[: rows * cols], rows, cols


@kernel
def status(cells, rows, cols, goal):
    """(action mask, whether the game is over, largest rank) of flat cells."""
    top = 0
    for i in range(cells.size):
        top = max(top, np.int64(cells[i]))
    mask = legal_mask(cells, rows, cols)
    over = mask == 0 or (goal > 0 and top >= goal)
    return (ALL_ACTIONS if over else mask), over, top


@kernel
def observe(state):
    cells, rows, cols = board_in(state)
    return status(cells, rows, cols, goal_of(state[SHAPE]))


@kernel
def begin(state, starts, drawn):
    """Begin a game on one of the boards `starts` uint8[n, rows·cols]: a random one if `drawn`, else the first.

    Without any, and on an empty one, it begins with two random tiles.
    """
    cells, _, _ = board_in(state)
    row, empty = below(draw(state), len(starts)) if drawn and len(starts) else 0, True
    for i in range(cells.size):
        cells[i] = starts[row, i] if len(starts) else 0
        empty &= cells[i] == 0
    for _ in range(2 if empty else 0):
        put_tile(cells, draw(state))
    state[SCORE] = state[ILLEGAL] = state[STEPS] = U(0)


@kernel
def step(state, action):
    """Play one action: slide, and if the board changed, score and spawn. Returns (score, then what `status` returns).

    The score of an illegal action is -1. It changes only the counts of steps and of illegal actions in a row.
    """
    cells, rows, cols = board_in(state)
    gain = move_cells(cells, rows, cols, action)
    state[STEPS] += U(1)
    if gain < 0:
        state[ILLEGAL] += U(1)
    else:
        state[ILLEGAL] = U(0)
        state[SCORE] += U(gain)
        put_tile(cells, draw(state))
    mask, over, top = status(cells, rows, cols, goal_of(state[SHAPE]))
    return gain, mask, over, top
