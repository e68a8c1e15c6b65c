"""One game of Tetris by keys as a row of words: pieces fall and turn, lock, clear lines, score and attack.

The state is that of `mergefall.tetris.game`; `Rules.words` says what each word holds. A step is one key, then one tick
of the clock. The slow twin is `reference.py`.
"""

from typing import Any, NamedTuple

import numpy as np

from mergefall.kernels import kernel
from mergefall.tetris import game
from mergefall.tetris.field import clear, fall, field_mask, full_rows, highest_in, is_free, put
from mergefall.tetris.game import (
    ATTACK,
    BACK_TO_BACK,
    COLUMN,
    COMBO,
    GRAVITY,
    GROUNDED,
    HELD,
    HOLD,
    HOLE,
    HOLE_STREAM,
    HOLES,
    LEVELS,
    LINES,
    LOCK_DELAY,
    LOCK_RESETS,
    LOWEST,
    MOVING,
    OVER,
    OWED,
    PENDING,
    PHASE,
    PIECES,
    RATE,
    RESETS,
    ROTATION,
    ROW,
    SCORE,
    SPIN,
    STEPS,
    STREAM,
    columns_in,
    queued,
    size_of,
)
from mergefall.tetris.pieces import NAMES, WIDTHS
from mergefall.tetris.srs import MOVES, SHAPES, TESTS
from mergefall.words import below, draw, popcount

U = np.uint64
WAIT, LEFT, RIGHT, CLOCKWISE, COUNTERCLOCKWISE, SOFT_DROP, HARD_DROP, HOLD_KEY, HALF_TURN = range(9)
QUARTERS = np.array([0, 0, 0, 1, 3, 0, 0, 0, 2], np.int64)  # quarter turns clockwise of each key
STORAGE = 4  # rows above the field
ONE = 1 << 16  # a row, in gravity and in rates of garbage

# A stream of holes begins at the stream of pieces xor one of these, so that the order of pieces depends on no play.
HOLE_STREAMS = np.array([0xA0761D6478BD642F, 0xE7037ED1A0B428DB], U)
MOST_WAITING = ONE - 1  # clears in a row and rows of garbage that are counted

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
def place_of(state):
    """(rotation, column, row) of the falling piece."""
    # Masked, so that the compiler knows their ranges and tests no index for being negative: half of a mask's time.
    return np.int64(state[ROTATION] & U(3)), np.int64(state[COLUMN] & U(15)), np.int64(state[ROW] & U(63))


@kernel
def level_of(state):
    return min(1 + np.int64(state[LINES]) // LEVEL_LINES, TOP_LEVEL) if state[LEVELS] else 1


@kernel
def gravity_of(state):
    """How far a piece falls in a step, in 1/65536 rows."""
    return FALLS[level_of(state) - 1] if state[LEVELS] else np.int64(state[GRAVITY])


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
    for word in range(ROTATION, LOWEST):
        state[word] = 0
    state[COLUMN], state[ROW], state[LOWEST], state[HELD] = (cols - WIDTHS[piece, 0]) // 2, rows, rows, held
    if not fits(columns_in(state), piece, *place_of(state)):
        state[OVER] = 1


@kernel
def raise_garbage(state, count):
    """Push rows of garbage in from below; returns whether a cell was pushed out of the rows above the field."""
    columns, (cols, rows), out = columns_in(state), size_of(state), False
    holes = np.int64(state[HOLES])
    for _ in range(count):
        bits, hole = draw(state[HOLE_STREAM:]), np.int64(state[HOLE])
        if bits & U(0xFFFF) < state[MOVING]:
            to = below(bits, cols - holes)
            hole = to + 1 if to >= hole else to
            state[HOLE] = hole
        for c in range(cols):
            columns[c] = columns[c] << U(1) | U(c < hole or c >= hole + holes)
            out |= columns[c] >> U(rows + STORAGE) != 0
            columns[c] &= field_mask(rows + STORAGE)
    return out


@kernel
def clear_full(columns, full, spin, combo, chained):
    """Clear the full rows: (lines, attack, clears in a row, whether a chain is on, whether the board is empty now).

    - `full`: the full rows as bits; of more than four, which no game has, the attack is that of four.
    - `spin`: the kind of spin with which the piece locked.
    - `combo`, `chained`: clears in a row so far, and whether a back-to-back chain was on: 0 or 1.
    """
    lines = popcount(full)
    if lines == 0:
        return lines, 0, 0, chained, False
    clear(columns, full)
    attack, hard, perfect = ATTACKS[spin, min(lines, 4)], spin != NO_SPIN or lines == 4, highest_in(columns) == 0
    if hard and chained and attack:
        attack += 1
    if perfect:
        attack = PERFECT_ATTACK
    attack += COMBO_ATTACKS[min(combo + 1, COMBO_ATTACKS.size - 1)]
    return lines, attack, combo + 1, np.int64(hard), perfect


@kernel
def lock(state):
    """Lock the falling piece where it is, clear, score, take garbage, and let the next piece appear."""
    columns, (_, rows), piece, before = columns_in(state), size_of(state), queued(state, 0), state[BACK_TO_BACK]
    rotation, column, y = place_of(state)
    spin, level = spin_of(columns, piece, rotation, column, y, state[SPIN]), level_of(state)
    over = y >= rows  # lock out: all of it above the field
    put(columns, piece, SHAPES[piece, rotation], column, y)
    result = clear_full(columns, full_rows(columns), spin, np.int64(state[COMBO]), np.int64(before))
    lines, attack, combo, chained, perfect = result
    for c in range(columns.size if over else 0):  # cells above the rows that are kept are lost
        columns[c] &= field_mask(rows + STORAGE)
    points = POINTS[spin, lines]
    if lines:
        if before and chained:
            points += points // 2
        if perfect:
            points += PERFECT_CHAINED if before and lines == 4 else PERFECT_POINTS[lines]
        points += COMBO_POINTS * (combo - 1)
    state[COMBO], state[BACK_TO_BACK] = min(combo, MOST_WAITING), chained
    state[PIECES] += U(1)
    state[LINES] += U(lines)
    state[SCORE] += U(points * level)
    state[ATTACK] += U(attack)
    pending = np.int64(state[PENDING])
    cancelled = min(pending, attack)
    pending -= cancelled
    if lines == 0 and pending:
        over |= raise_garbage(state, pending)
        pending = 0
    owed = np.int64(state[OWED] + state[RATE])
    state[OWED], state[PENDING] = owed % ONE, min(pending + owed // ONE, MOST_WAITING)
    game.advance(state, draw(state))
    appear(state, 0)
    if over:
        state[OVER] = 1
    return Lock(lines + 5 * spin + 15 * perfect, lines, attack, attack - cancelled)


@kernel
def begin(state, starts, drawn, chair=0):
    """Begin a game; see `mergefall.tetris.game.begin`. `chair`: 1 for the opponent in a match, whose holes differ."""
    for word in range(ROTATION, game.COLUMNS):
        state[word] = 0
    state[HOLE_STREAM] = state[STREAM] ^ HOLE_STREAMS[chair]
    game.begin(state, starts, drawn)
    state[HOLE] = below(draw(state[HOLE_STREAM:]), size_of(state)[0] - np.int64(state[HOLES]) + 1)
    appear(state, 0)


@kernel
def may_hold(state):
    return game.choices_of(state) > 1 and state[HELD] == 0


@kernel
def press(state, key):
    """Press a key other than `HARD_DROP`; returns whether its mask is 1."""
    if key == WAIT:
        return True
    if key == HOLD_KEY:
        if not may_hold(state):
            return False
        game.exchange(state, U(0) if state[HOLD] else draw(state))
        appear(state, 1)
        return True
    rotation, column, y, test = moved(columns_in(state), queued(state, 0), *place_of(state), key)
    if test < 0:
        return False
    state[ROTATION], state[COLUMN], state[ROW], state[SPIN] = rotation, column, y, 0
    if QUARTERS[key]:
        state[SPIN] = KICKED if test == TESTS - 1 else TURNED
    if key == SOFT_DROP:
        state[SCORE] += U(1)
    elif (state[GROUNDED] or state[RESETS]) and state[RESETS] < state[LOCK_RESETS]:  # it has landed
        state[RESETS] += U(1)
        state[GROUNDED] = 0
    return True


@kernel
def tick(state):
    """Let a step's time pass: gravity, then the lock delay; returns whether the piece has to lock.

    A piece that falls below its lowest row so far has not landed there. One that has used up its resets locks as soon
    as it rests.
    """
    gravity = gravity_of(state)
    if gravity == 0:
        return False
    columns, piece, (rotation, column, before) = columns_in(state), queued(state, 0), place_of(state)
    phase, y = np.int64(state[PHASE]) + gravity, before
    while y > before - phase // ONE and fits(columns, piece, rotation, column, y - 1):
        y -= 1
    if y < before:
        state[ROW], state[SPIN] = y, 0
    if y < np.int64(state[LOWEST]):
        state[LOWEST], state[GROUNDED], state[RESETS] = y, 0, 0
    if fits(columns, piece, rotation, column, y - 1):
        state[PHASE] = phase % ONE
        return False
    state[PHASE] = 0
    state[GROUNDED] += U(1)
    return state[GROUNDED] > state[LOCK_DELAY] or U(0) < state[LOCK_RESETS] <= state[RESETS]


@kernel
def act(state, key):
    """Press a key, then let time pass: (whether the key's mask was 1, whether the piece has to lock now)."""
    if key != HARD_DROP:
        changed = press(state, key)
        return changed, state[OVER] == 0 and tick(state)
    piece, (rotation, column, y) = queued(state, 0), place_of(state)
    low = fall(columns_in(state), piece, SHAPES[piece, rotation], column, y)
    if low < y:
        state[ROW], state[SPIN] = low, 0
        state[SCORE] += U(2 * (y - low))
    return True, True


@kernel
def step(state, key):
    """Play a key: (whether its mask was 1, whether the game is over, points, `Lock`).

    Once the game is over only STEPS changes.
    """
    state[STEPS] += U(1)
    locked = Lock(0, 0, 0, 0)
    if state[OVER]:
        return False, True, 0, locked
    before = np.int64(state[SCORE])
    changed, locks = act(state, key)
    if locks:
        locked = lock(state)
    return changed, state[OVER] > 0, np.int64(state[SCORE]) - before, locked


@kernel
def write_mask(state, over, mask):
    """Write 1 for each key that changes something into int8[keys], and for `WAIT`; all 1 once the game is `over`."""
    columns, piece, (rotation, column, y) = columns_in(state), queued(state, 0), place_of(state)
    for key in range(mask.size):
        changes = over or key in (WAIT, HARD_DROP)
        if key == HOLD_KEY:
            changes |= may_hold(state)
        elif not changes:
            changes = moved(columns, piece, rotation, column, y, key)[3] >= 0
        mask[key] = changes
