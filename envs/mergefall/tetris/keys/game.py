"""One game of Tetris by keys as a row of words: pieces fall and turn, lock, clear lines, score and attack.

The state is that of `mergefall.tetris.game`. These words belong to this game; their fields follow below:

    KEYS      the rules: gravity, lock delay, what is allowed
    FALLING   the falling piece: its place, and what time has done to it; its id is the first of QUEUE
    CHAIN     locks in a row that cleared lines, and whether a back-to-back chain is on
    ATTACK    rows of garbage that the clears would have sent so far
    GARBAGE   rows of garbage to come, and where their hole is
    RATES     the rules of garbage

A step is one key, then one tick of the clock. The slow twin is `reference.py`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mergefall.kernels import kernel
from mergefall.tetris import game
from mergefall.tetris.field import clear, fall, full_rows, is_free, put
from mergefall.tetris.game import (
    ATTACK,
    CHAIN,
    FALLING,
    GARBAGE,
    HOLD,
    KEYS,
    LINES,
    NIBBLE_BITS,
    PIECES,
    QUEUE,
    RATES,
    SCORE,
    STEPS,
    columns_in,
    draw_piece,
    queued,
    size_of,
)
from mergefall.tetris.pieces import NAMES, WIDTHS
from mergefall.tetris.reach import highest_in
from mergefall.tetris.srs import MOVES, SHAPES, TESTS
from mergefall.words import below, draw, popcount

U = np.uint64
WAIT, LEFT, RIGHT, CLOCKWISE, COUNTERCLOCKWISE, SOFT_DROP, HARD_DROP, HOLD_KEY, HALF_TURN = range(9)
QUARTERS = np.array([0, 0, 0, 1, 3, 0, 0, 0, 2], np.int64)  # quarter turns clockwise of each key
STORAGE = 4  # rows above the field
ONE = 1 << 16  # a row, in gravity and in rates of garbage

# Fields as (lowest bit, bits).
GRAVITY, LOCK_DELAY, LOCK_RESETS = (0, 24), (24, 10), (34, 8)  # of KEYS
MAY_HOLD, LEVELS, BY_KEYS = (42, 1), (43, 1), (44, 1)
ROTATION, COLUMN, ROW, SPIN, HELD, OVER = (0, 2), (2, 4), (6, 6), (12, 2), (14, 1), (game.OVER_BIT, 1)  # of FALLING
PHASE, GROUNDED, RESETS = (16, 16), (32, 10), (42, 8)
CLEARS_IN_A_ROW, BACK_TO_BACK = (0, 16), (16, 1)  # of CHAIN
PENDING, HOLE, OWED = (0, 16), (16, 4), (20, 16)  # of GARBAGE
RATE, HOLES, MOVING = (0, 20), (20, 4), (24, 17)  # of RATES

T = NAMES.index("T")
NO_SPIN, MINI, FULL = range(3)
TURNED, KICKED = 1, 2  # values of SPIN: the last move was a turn; a turn by its fifth test

# By kind of spin and number of lines. Points and gravity are the guideline's, attack is Jstris's.
POINTS = np.array([[0, 100, 300, 500, 800], [100, 200, 400, 0, 0], [400, 800, 1200, 1600, 0]], np.int64)
ATTACKS = np.array([[0, 0, 1, 2, 4], [0, 0, 4, 0, 0], [0, 2, 4, 6, 0]], np.int64)
PERFECT_POINTS = np.array([0, 800, 1200, 1800, 2000], np.int64)
PERFECT_CHAINED = 3200  # of a perfect clear by a tetris that goes on with a chain
PERFECT_ATTACK = 10
COMBO_POINTS = 50
COMBO_ATTACKS = np.array([0, 0, 0, 1, 1, 1, 2, 2, 3, 3, 4, 4, 4, 5], np.int64)  # by clears in a row
LEVEL_LINES, TOP_LEVEL = 10, 20
STEPS_PER_SECOND = 60
FALLS = np.array([ONE / STEPS_PER_SECOND / (0.8 - 0.007 * n) ** n for n in range(TOP_LEVEL)]).astype(np.int64)

_COUNTS = ("", "single", "double", "triple", "tetris")
_KINDS = ("", "mini T-spin", "T-spin")
CLEARS = tuple(
    " ".join(filter(None, (perfect, kind, count)))
    for perfect in ("", "perfect clear")
    for kind in _KINDS
    for count in _COUNTS
)
"""The names of `info["clear"]`: lines + 5 · (0 no spin, 1 mini, 2 full) + 15 for a perfect clear."""


class Lock(NamedTuple):
    """What locking a piece did."""

    clear: Any  # int, an index of `CLEARS`
    lines: Any  # int
    attack: Any  # int
    sent: Any  # int, what is left of the attack after it cancelled garbage


@kernel(inline="always")
def get(word, field):
    return np.int64(word >> U(field[0])) & ((1 << field[1]) - 1)


@kernel(inline="always")
def with_field(word, field, value):
    """The word with another value in a field."""
    mask = U(((1 << field[1]) - 1) << field[0])
    return word & ~mask | U(value) << U(field[0])


@kernel
def level_of(state):
    return min(1 + np.int64(state[LINES]) // LEVEL_LINES, TOP_LEVEL) if get(state[KEYS], LEVELS) else 1


@kernel
def gravity_of(state):
    """How far a piece falls in a step, in 1/65536 rows."""
    keys = state[KEYS]
    return FALLS[level_of(state) - 1] if get(keys, LEVELS) else get(keys, GRAVITY)


@kernel
def fits(columns, piece, rotation, column, y):
    return y >= 0 and is_free(columns, piece, SHAPES[piece, rotation], column, y)


@kernel
def turned(columns, piece, rotation, column, y, quarters):
    """(rotation, column, y, test) after a turn; the test is -1 if none of them finds room."""
    after = (rotation + quarters) & 3
    for test in range(TESTS if quarters != 2 else 1):
        to, up = column + MOVES[piece, rotation, quarters, test, 0], y + MOVES[piece, rotation, quarters, test, 1]
        if fits(columns, piece, after, to, up):
            return after, to, up, test
    return rotation, column, y, -1


@kernel
def moved(columns, piece, rotation, column, y, key):
    """(rotation, column, y, test) after one of the keys that move a piece; the test is -1 if it stays where it is."""
    if QUARTERS[key] and WIDTHS[piece, 1]:  # O looks the same in all rotations
        return turned(columns, piece, rotation, column, y, QUARTERS[key])
    to, down = column + (key == RIGHT) - (key == LEFT), y - (key == SOFT_DROP)
    if QUARTERS[key] == 0 and fits(columns, piece, rotation, to, down):
        return rotation, to, down, 0
    return rotation, column, y, -1


@kernel
def corner(columns, column, row):
    """Whether a corner beside a T is filled; the walls and the floor count."""
    if column < 0 or column >= columns.size or row < 0:
        return 1
    return np.int64(columns[column] >> U(row) & U(1))


@kernel
def spin_of(columns, piece, rotation, column, y, turn):
    """The kind of spin with which a piece locks at a place: by the T's last move and the corners of its box.

    Three filled corners make a spin. It is a full one if both corners beside the stub are filled, or if the fifth test
    of the turn led here; else a mini.

    - `turn`: the value of SPIN: 0, TURNED or KICKED.
    """
    if piece != T or turn == 0:
        return NO_SPIN
    left, bottom = column - (rotation == 1), y - (rotation == 0)
    corners = corner(columns, left, bottom + 2) | corner(columns, left + 2, bottom + 2) << 1  # clockwise, as bits
    corners |= corner(columns, left + 2, bottom) << 2 | corner(columns, left, bottom) << 3
    if popcount(U(corners)) < 3:
        return NO_SPIN
    return FULL if (corners | corners << 4) >> rotation & 3 == 3 or turn == KICKED else MINI


@kernel
def appear(state, held):
    """Let the current piece appear above the field; the game is over if there is no room (block out)."""
    (cols, rows), piece = size_of(state), queued(state, 0)
    column = (cols - WIDTHS[piece, 0]) // 2
    over = not fits(columns_in(state), piece, 0, column, rows)
    falling = with_field(with_field(U(0), COLUMN, column), ROW, rows)
    state[FALLING] = with_field(with_field(falling, HELD, held), OVER, over)


@kernel
def advance(state):
    """Draw a piece onto the queue; the first one leaves it."""
    _, _, preview, _, _ = game.settings_of(state)
    state[QUEUE] = state[QUEUE] >> U(NIBBLE_BITS) | U(draw_piece(state)) << U(NIBBLE_BITS * preview)


@kernel
def raise_garbage(state, count):
    """Push rows of garbage in from below; returns whether a cell was pushed out of the rows above the field."""
    columns, (cols, rows), out = columns_in(state), size_of(state), False
    holes = get(state[RATES], HOLES)
    for _ in range(count):
        bits, hole = draw(state), get(state[GARBAGE], HOLE)
        if np.int64(bits & U(0xFFFF)) < get(state[RATES], MOVING):
            to = below(bits, cols - holes)
            hole = to + 1 if to >= hole else to
            state[GARBAGE] = with_field(state[GARBAGE], HOLE, hole)
        for c in range(cols):
            columns[c] = columns[c] << U(1) | U(c < hole or c >= hole + holes)
            out |= columns[c] >> U(rows + STORAGE) != 0
            columns[c] &= (U(1) << U(rows + STORAGE)) - U(1)
    return out


@kernel
def clear_full(columns, full, spin, row, chained):
    """Clear the full rows: (lines, attack, clears in a row, whether a chain is on, whether the board is empty now).

    - `full`: the full rows as bits.
    - `spin`: the kind of spin with which the piece locked.
    - `row`, `chained`: clears in a row so far, and whether a back-to-back chain was on: 0 or 1.
    """
    lines = popcount(full)
    if lines == 0:
        return lines, 0, 0, chained, False
    clear(columns, full)
    attack, hard, perfect = ATTACKS[spin, lines], spin != NO_SPIN or lines == 4, highest_in(columns) == 0
    if hard and chained and attack:
        attack += 1
    if perfect:
        attack = PERFECT_ATTACK
    attack += COMBO_ATTACKS[min(row + 1, COMBO_ATTACKS.size - 1)]
    return lines, attack, row + 1, np.int64(hard), perfect


@kernel
def lock(state):
    """Lock the falling piece where it is, clear, score, take garbage, and let the next piece appear."""
    columns, (_, rows), falling, piece = columns_in(state), size_of(state), state[FALLING], queued(state, 0)
    rotation, column, y = get(falling, ROTATION), get(falling, COLUMN), get(falling, ROW)
    spin = spin_of(columns, piece, rotation, column, y, get(falling, SPIN))
    over = y >= rows  # lock out: all of it above the field
    put(columns, piece, SHAPES[piece, rotation], column, y)
    before, level, full = get(state[CHAIN], BACK_TO_BACK), level_of(state), full_rows(columns)
    lines, attack, row, chained, perfect = clear_full(columns, full, spin, get(state[CHAIN], CLEARS_IN_A_ROW), before)
    points = POINTS[spin, lines]
    if lines:
        if before and chained:
            points += points // 2
        if perfect:
            points += PERFECT_CHAINED if before and lines == 4 else PERFECT_POINTS[lines]
        points += COMBO_POINTS * (row - 1)
    state[CHAIN] = with_field(with_field(U(0), CLEARS_IN_A_ROW, row), BACK_TO_BACK, chained)
    state[PIECES] += U(1)
    state[LINES] += U(lines)
    state[SCORE] += U(points * level)
    state[ATTACK] += U(attack)
    pending = get(state[GARBAGE], PENDING)
    cancelled = min(pending, attack)
    pending -= cancelled
    if lines == 0 and pending:
        over |= raise_garbage(state, pending)
        pending = 0
    owed = get(state[GARBAGE], OWED) + get(state[RATES], RATE)
    state[GARBAGE] = with_field(state[GARBAGE], OWED, owed & (ONE - 1))
    state[GARBAGE] = with_field(state[GARBAGE], PENDING, pending + owed // ONE)
    advance(state)
    appear(state, False)
    if over:
        state[FALLING] = with_field(state[FALLING], OVER, True)
    return Lock(lines + 5 * spin + 15 * perfect, lines, attack, attack - cancelled)


@kernel
def begin(state, starts, drawn):
    """Begin a game; the arguments are those of `mergefall.tetris.game.begin`."""
    game.begin(state, starts, drawn)
    state[CHAIN], state[ATTACK], state[GARBAGE] = U(0), U(0), U(0)
    if state[RATES]:
        cols, _ = size_of(state)
        hole = below(draw(state), cols - get(state[RATES], HOLES) + 1)
        state[GARBAGE] = with_field(state[GARBAGE], HOLE, hole)
    appear(state, False)


@kernel
def exchange(state):
    """Hold the current piece; the held one appears, or the next one of the queue if none was held."""
    held, current = state[HOLD], queued(state, 0)
    state[HOLD] = U(current + 1)
    if held:
        state[QUEUE] = state[QUEUE] & ~U(game.NIBBLE) | held - U(1)
    else:
        advance(state)
    appear(state, True)


@kernel
def press(state, key):
    """Press a key other than `HARD_DROP`; returns whether its mask is 1."""
    if key == WAIT:
        return True
    columns, falling, piece = columns_in(state), state[FALLING], queued(state, 0)
    if key == HOLD_KEY:
        if get(state[KEYS], MAY_HOLD) == 0 or get(falling, HELD):
            return False
        exchange(state)
        return True
    rotation, column, y = get(falling, ROTATION), get(falling, COLUMN), get(falling, ROW)
    rotation, column, y, test = moved(columns, piece, rotation, column, y, key)
    if test < 0:
        return False
    falling = with_field(with_field(with_field(falling, ROTATION, rotation), COLUMN, column), ROW, y)
    spin = 0
    if QUARTERS[key]:
        spin = KICKED if test == TESTS - 1 else TURNED
    falling = with_field(falling, SPIN, spin)
    if key == SOFT_DROP:
        falling = with_field(falling, GROUNDED, 0)
        state[SCORE] += U(1)
    elif get(falling, GROUNDED) and get(falling, RESETS) < get(state[KEYS], LOCK_RESETS):
        falling = with_field(with_field(falling, RESETS, get(falling, RESETS) + 1), GROUNDED, 0)
    state[FALLING] = falling
    return True


@kernel
def tick(state):
    """Let a step's time pass: gravity, then the lock delay; returns whether the piece has to lock."""
    gravity = gravity_of(state)
    if gravity == 0:
        return False
    columns, falling, piece = columns_in(state), state[FALLING], queued(state, 0)
    rotation, column, y = get(falling, ROTATION), get(falling, COLUMN), get(falling, ROW)
    phase = get(falling, PHASE) + gravity
    most = phase // ONE
    before = y
    while y > before - most and fits(columns, piece, rotation, column, y - 1):
        y -= 1
    if y < before:
        falling = with_field(with_field(with_field(falling, ROW, y), SPIN, 0), GROUNDED, 0)
    falling = with_field(falling, PHASE, phase % ONE)
    if fits(columns, piece, rotation, column, y - 1):
        state[FALLING] = falling
        return False
    grounded = get(falling, GROUNDED) + 1
    state[FALLING] = with_field(with_field(falling, GROUNDED, grounded), PHASE, 0)
    return grounded > get(state[KEYS], LOCK_DELAY)


@kernel
def act(state, key):
    """Press a key, then let time pass: (whether the key's mask was 1, whether the piece has to lock now)."""
    if key != HARD_DROP:
        changed = press(state, key)
        return changed, not game.is_over(state) and tick(state)
    falling, piece = state[FALLING], queued(state, 0)
    y, shape = get(falling, ROW), SHAPES[piece, get(falling, ROTATION)]
    low = fall(columns_in(state), piece, shape, get(falling, COLUMN), y)
    if low < y:
        state[FALLING] = with_field(with_field(falling, ROW, low), SPIN, 0)
        state[SCORE] += U(2 * (y - low))
    return True, True


@kernel
def step(state, key):
    """Play a key: (whether its mask was 1, whether the game is over, points, `Lock`).

    Once the game is over only STEPS changes.
    """
    state[STEPS] += U(1)
    locked = Lock(0, 0, 0, 0)
    if game.is_over(state):
        return False, True, 0, locked
    before = np.int64(state[SCORE])
    changed, locks = act(state, key)
    if locks:
        locked = lock(state)
    return changed, game.is_over(state), np.int64(state[SCORE]) - before, locked


@kernel
def write_mask(state, over, mask):
    """Write 1 for each key that changes something into int8[keys], and for `WAIT`; all 1 once the game is `over`."""
    columns, falling, piece = columns_in(state), state[FALLING], queued(state, 0)
    rotation, column, y = get(falling, ROTATION), get(falling, COLUMN), get(falling, ROW)
    for key in range(mask.size):
        changes = over or key in (WAIT, HARD_DROP)
        if key == HOLD_KEY:
            changes |= get(state[KEYS], MAY_HOLD) == 1 and get(falling, HELD) == 0
        elif not changes:
            changes = moved(columns, piece, rotation, column, y, key)[3] >= 0
        mask[key] = changes
