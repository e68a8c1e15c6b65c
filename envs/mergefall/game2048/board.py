"""The rules of 2048, compiled: boards of any size as flat cells, and the state of a game as a few words.

A game's state is one row of unsigned 64-bit words, so that a copy of it is the whole game, random stream included:

    word    STREAM   SCORE   ILLEGAL   STEPS         SHAPE                            CELLS …
            random   so far  in a row  this episode  rows | cols << 8 | goal << 16    ranks, a byte each, row-major

`goal` is the rank that ends the game, 0 for none. STEPS counts actions, illegal ones too, for who caps episodes.
Nothing derived (empty cells, legality, largest tile) is kept. The usual 4×4 board has a faster twin in `square.py`, and
boards up to 4×4 are packed into one word by `packed.py`; the slow twin of all is `reference.py`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mergefall.kernels import kernel, unowned
from mergefall.words import next_bits

U = np.uint64
STREAM, SCORE, ILLEGAL, STEPS, SHAPE, CELLS = range(6)
UP, RIGHT, DOWN, LEFT = range(4)
ALL_ACTIONS = 15  # the mask of a terminal state: samplers need an entry
MOST_COUNTED = U(1 << 53)  # actions of an episode: more than any has
FOUR_IN_2_32 = U(429496730)  # round(0.1 · 2³²): a draw below it makes the new tile a 4

# What `step` returns in one integer, from the lowest bit: action mask (4 bits, bit a is action a), whether the action
# was legal, whether the game is over, the largest rank (8 bits), and above them the score of the move.
LEGAL_BIT, OVER_BIT, RANK_SHIFT, GAIN_SHIFT = 4, 5, 8, 16


def new_states(count: int, rows: int, cols: int, goal: int = 0) -> NDArray[np.uint64]:
    """States of `count` games on empty boards, uint64[count, words]; `goal` is a rank or 0."""
    states = np.zeros((count, CELLS + (rows * cols + 7) // 8), dtype=np.uint64)
    states[:, SHAPE] = rows | cols << 8 | goal << 16
    return states


def cells_of(states: NDArray[np.uint64], rows: int, cols: int) -> NDArray[np.uint8]:
    """The ranks in states uint64[..., words] as a view uint8[..., rows, cols]."""
    cells = states.view(np.uint8)[..., 8 * CELLS : 8 * CELLS + rows * cols]
    return cells.reshape((*states.shape[:-1], rows, cols))


@kernel
def draw(state):
    """64 random bits; moves the state's stream on."""
    state[STREAM], bits = next_bits(state[STREAM])
    return bits


@kernel
def slide(cells, start, stride, length):
    """Slide one line of flat cells towards `start`, in place; returns the score of its merges, -1 if nothing moved.

    Free of branches that depend on the tiles, for no processor can predict those.

    Example: ranks 1 0 1 3 become 2 3 0 0 and score 4.
    """
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
    """Which of two neighbouring cells can move: bit 0 that `there` moves to `here`, bit 1 the other way."""
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


@kernel
def spawn(state, cells):
    """Put a 2 (0.9) or a 4 on a uniformly drawn empty cell; there must be one.

    The upper half of one draw picks the cell (to within 10⁻⁸), the lower half the tile.
    """
    empty = 0
    for i in range(cells.size):
        empty += cells[i] == 0
    bits = draw(state)
    skip = np.int64(((bits >> U(32)) * U(empty)) >> U(32))
    rank = 1 + np.int64((bits & U(0xFFFFFFFF)) < FOUR_IN_2_32)
    for i in range(cells.size):
        free = cells[i] == 0
        cells[i] += np.uint8(rank * np.int64(free & (skip == 0)))
        skip -= np.int64(free)


@kernel
def shape_of(state):
    """(rows, cols, goal rank) of a state."""
    shape = np.int64(state[SHAPE])
    return shape & 255, shape >> 8 & 255, shape >> 16


@kernel
def flat_cells(state, rows, cols):
    """The ranks of a state uint64[words] as a view uint8[rows·cols]."""
    return state[CELLS:].view(np.uint8)[: rows * cols]


@kernel
def status(cells, rows, cols, goal):
    """What `step` returns about a board: action mask, whether the game is over, largest rank."""
    top = 0
    for i in range(cells.size):
        top = max(top, np.int64(cells[i]))
    mask = legal_mask(cells, rows, cols)
    over = mask == 0 or (goal > 0 and top >= goal)
    return (ALL_ACTIONS if over else mask) | over << OVER_BIT | top << RANK_SHIFT


@kernel
def start(state):
    """Begin a game: an empty board and two tiles. Returns what `step` returns."""
    rows, cols, goal = shape_of(state)
    cells = flat_cells(state, rows, cols)
    state[SCORE] = 0
    state[ILLEGAL] = 0
    state[STEPS] = 0
    for i in range(cells.size):
        cells[i] = 0
    spawn(state, cells)
    spawn(state, cells)
    return status(cells, rows, cols, goal)


@kernel
def start_from(state, ranks):
    """Begin a game on the given ranks uint8[rows·cols]; nothing is drawn. Returns what `step` returns."""
    rows, cols, goal = shape_of(state)
    cells = flat_cells(state, rows, cols)
    state[SCORE] = 0
    state[ILLEGAL] = 0
    state[STEPS] = 0
    for i in range(cells.size):
        cells[i] = ranks[i]
    return status(cells, rows, cols, goal)


@kernel
def begin(state, pool):
    """Begin a game on a board drawn from `pool` uint8[n, rows·cols], an empty one standing for two random tiles.

    With an empty pool nothing is drawn for the choice. Returns what `step` returns.
    """
    if pool.shape[0] > 0:
        ranks = pool[np.int64(((draw(state) >> U(32)) * U(pool.shape[0])) >> U(32))]
        for i in range(ranks.size):
            if ranks[i]:
                return start_from(state, ranks)
    return start(state)


@kernel
def observe(state):
    """What `step` returns, of a state as it stands."""
    rows, cols, goal = shape_of(state)
    return status(flat_cells(state, rows, cols), rows, cols, goal)


@kernel
def wrong_word(state, shape):
    """The first word of a state that no game of `shape` (the word SHAPE) can hold; -1 if there is none.

    A game may start with rows·cols tiles of the highest rank m; what they merge to is all that is ever above: the sum
    of 2^(rank − m) over these tiles is at most rows·cols. A score is a multiple of 4, and no more than Σ (rank − 1) ·
    2^rank, which grows by the score of a merge with each, and with each new 4 besides.
    """
    if state[SHAPE] != U(shape):
        return SHAPE
    if state[STEPS] > MOST_COUNTED:
        return STEPS
    if state[ILLEGAL] > state[STEPS]:
        return ILLEGAL
    rows, cols, _ = shape_of(state)
    cells, highest, top, above, most = state[CELLS:].view(np.uint8), rows * cols + 1, 0, 0, 0
    for i in range(rows * cols):
        rank = np.int64(cells[i])
        top = max(top, rank)
        most += max(rank - 1, 0) << (rank & 63)
    if top > highest + 5:  # 2⁵ is the most below the 36 cells of the largest board
        return CELLS
    for i in range(rows * cols if top > highest else 0):
        above += 1 << (cells[i] - highest) if cells[i] > highest else 0
    for i in range(rows * cols, cells.size):  # no cells: what fills the last word
        above += 64 * np.int64(cells[i])
    if above > rows * cols:
        return CELLS
    return SCORE if state[SCORE] > U(most) or state[SCORE] & U(3) else -1


@kernel
def first_wrong(states, shape):
    """(game, word) of the first `wrong_word` in states uint64[n, words]; (-1, -1) if there is none."""
    states = unowned(states)
    for i in range(len(states)):
        word = wrong_word(states[i], shape)
        if word >= 0:
            return i, word
    return -1, -1


@kernel
def step(state, action):
    """Play one action: slide, and if the board changed, score and spawn. Returns the packed integer described above.

    An illegal action changes only the counts of steps and of illegal actions in a row.
    """
    rows, cols, goal = shape_of(state)
    cells = flat_cells(state, rows, cols)
    gain = move_cells(cells, rows, cols, action)
    state[STEPS] += U(1)
    if gain < 0:
        state[ILLEGAL] += U(1)
        return status(cells, rows, cols, goal)
    state[ILLEGAL] = 0
    state[SCORE] += U(gain)
    spawn(state, cells)
    return status(cells, rows, cols, goal) | 1 << LEGAL_BIT | gain << GAIN_SHIFT


@kernel
def afterstates(state, boards, gains):
    """Write the boards the four actions slide to, uint8[4, rows·cols], and their scores int64[4], -1 if illegal."""
    rows, cols, _ = shape_of(state)
    for action in range(4):
        cells = flat_cells(state, rows, cols)
        for i in range(cells.size):
            boards[action, i] = cells[i]
        gains[action] = move_cells(boards[action], rows, cols, action)
