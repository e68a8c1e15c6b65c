"""One game of placement Tetris as a row of words: pieces are drawn, placements played, lines counted.

A state is uint64[36 + cols]. A copy of it is the whole game, random stream included; nothing derived is kept.

    STREAM    the random stream
    LINES     rows cleared so far
    SCORE     their score (`LINE_SCORES`)
    PIECES    pieces placed so far
    ILLEGAL   illegal actions in a row
    STEPS     actions in this episode
    RULES     the rules (`PieceRules._rules_word`)
    BAG       for "bag7" the ids left in the bag, as bits; for "hidden" the copies of each piece, 4 bits per id
    QUEUE     the ids of the current piece and of the previewed ones, 4 bits each, the current piece lowest
    HOLD      the id of the held piece plus one, 0 for none
    BY_KEYS … OPPONENTS_KEY    for play by keys: `keys/rules.py` says what they hold; 0 in play by placements
    COLUMNS…  the board, a word for each column (`field.py`)
"""

from collections.abc import Sequence

import numpy as np

from mergefall.kernels import kernel
from mergefall.tetris.field import highest_in, place
from mergefall.tetris.pieces import PIECE_SETS
from mergefall.tetris.placements import ABOVE, ACTION_SHIFT, BYTE, ROTATIONS, SLIDES, list_placements, rest
from mergefall.typing import Ints, Words
from mergefall.words import below, draw, nth_bit, popcount

U = np.uint64
STREAM, LINES, SCORE, PIECES, ILLEGAL, STEPS, RULES, BAG, QUEUE, HOLD = range(10)
BY_KEYS, GRAVITY, LOCK_DELAY, LOCK_RESETS, LEVELS, RATE, HOLES, MOVING = range(10, 18)
ROTATION, COLUMN, ROW, HELD, SPIN, PHASE, GROUNDED, RESETS, LOWEST = range(18, 27)
COMBO, BACK_TO_BACK, PENDING, ATTACK, OVER, HOLE, OWED, HOLE_STREAM, OPPONENTS_KEY = range(27, 36)
COLUMNS = 36

# The fields of the word RULES by their lowest bits: sizes have 8 bits, the other numbers 4, and the last are flags.
COLS_SHIFT, ROWS_SHIFT, SET_SHIFT, RANDOMIZER_SHIFT, PREVIEW_SHIFT = 0, 8, 16, 20, 24
SLIDES_BIT, CLEAR_FIRST_BIT, REACHABLE_BIT, HOLD_BIT = 28, 29, 30, 31
NIBBLE, NIBBLE_BITS = 15, 4

RANDOMIZERS = ("uniform", "bag7", "hidden")
_, BAG7, HIDDEN = range(3)
MOST_PREVIEW = 8
MOST_COPIES = 10  # of a piece in a hidden multiset
GIVEN_HOLD = 15  # the group of four bits in a start that is the held piece

# The score of clearing 0 to 5 lines: Nintendo's Tetris (NES, 1989) at level 0. Five lines, which only the five-cell
# pieces can clear, score as four and one.
LINE_SCORES = np.array([0, 40, 100, 300, 1200, 1240], dtype=np.int64)

SETS = tuple(PIECE_SETS)  # the order of the tables below
FIRST = np.array([PIECE_SETS[name].first for name in SETS], dtype=np.int64)  # table row of id 0, see pieces.py
DRAWN = np.array([sum(1 << id for id in PIECE_SETS[name].drawn) for name in SETS], dtype=np.int64)  # ids as bits
NAMED = np.array([len(PIECE_SETS[name].names) for name in SETS], dtype=np.int64)
COUNTS = np.array([len(PIECE_SETS[name].drawn) for name in SETS], dtype=np.int64)
KINDS = int(NAMED.max())  # ids of a set, at most; a word has room for 15
IDS = np.array([(PIECE_SETS[name].drawn * KINDS)[:KINDS] for name in SETS])  # the first COUNTS are the ids


def nibbles(words: Words | np.uint64, count: int) -> Ints:
    """The lowest `count` groups of four bits of words [...], such as the ids in QUEUE: int64[..., count].

    >>> nibbles(np.uint64(0x321), 2)
    array([1, 2])
    """
    groups = np.asarray(words)[..., None] >> U(NIBBLE_BITS) * np.arange(count, dtype=U) & U(NIBBLE)
    return groups.astype(np.int64)


def word_of(nibbles: Sequence[int]) -> int:
    """The word with these groups of four bits, the first one lowest: the inverse of `nibbles`."""
    return sum(nibble << NIBBLE_BITS * i for i, nibble in enumerate(nibbles))


@kernel(inline="always")
def size_of(state):
    """(cols, rows) of the field."""
    rules = np.int64(state[RULES])
    return rules >> COLS_SHIFT & BYTE, rules >> ROWS_SHIFT & BYTE


@kernel(inline="always")
def settings_of(state):
    """(row of the piece set in `FIRST` and the other tables, randomizer, preview, slides, clear_first).

    The last two are flags: whether actions may slide, and whether full rows are cleared before the game may end.
    """
    rules = np.int64(state[RULES])
    pieces, randomizer, preview = (
        rules >> SET_SHIFT & NIBBLE,
        rules >> RANDOMIZER_SHIFT & NIBBLE,
        rules >> PREVIEW_SHIFT,
    )
    return pieces, randomizer, preview & NIBBLE, rules >> SLIDES_BIT & 1 == 1, rules >> CLEAR_FIRST_BIT & 1 == 1


@kernel(inline="always")
def choices_of(state):
    """How many pieces an action may place: 2 with hold, else 1."""
    return 1 + (np.int64(state[RULES]) >> HOLD_BIT & 1)


@kernel(inline="always")
def actions_of(state):
    """The number of actions that place the current piece; with hold as many more place the other one."""
    (cols, rows), reachable = size_of(state), np.int64(state[RULES]) >> REACHABLE_BIT & 1 == 1
    return (rows + ABOVE if reachable else SLIDES if settings_of(state)[3] else 1) * ROTATIONS * cols


@kernel(inline="always")
def nibble(word, index):
    """The group of four bits number `index` of a word, 0 the lowest."""
    return np.int64(word >> U(NIBBLE_BITS * index)) & NIBBLE


@kernel(inline="always")
def queued(state, index):
    """The id of the piece that comes after `index` others; 0 is the current one."""
    return nibble(state[QUEUE], index)


@kernel(inline="always")
def table_row(state, piece):
    """The row of a piece id in the tables of `pieces.py`."""
    return FIRST[settings_of(state)[0]] + piece


@kernel(inline="always")
def placed_by(state, held):
    """The id of the piece that is placed: the current one, or with `held` the held one, else the first of the queue."""
    if held == 0:
        return queued(state, 0)
    return np.int64(state[HOLD]) - 1 if state[HOLD] else queued(state, 1)


@kernel(inline="always")
def columns_in(state):
    return state[COLUMNS:]


@kernel
def is_over(state):
    """Whether a game by placements is over: only then does a cell lie above the field."""
    _, rows = size_of(state)
    return highest_in(columns_in(state)) > rows


@kernel
def piece_by(state, bits):
    """The piece id that random bits draw, for every randomizer 64 a piece; only their upper half counts."""
    pieces, randomizer, _, _, _ = settings_of(state)
    bag = state[BAG]
    if randomizer == HIDDEN:
        total = 0
        for piece in range(KINDS):
            total += nibble(bag, piece)
        left, piece = below(bits, total), 0
        while left >= nibble(bag, piece):
            left -= nibble(bag, piece)
            piece += 1
        return piece
    if randomizer == BAG7:
        rest = np.int64(bag) if bag else DRAWN[pieces]
        piece = nth_bit(rest, below(bits, popcount(U(rest))))
        state[BAG] = U(rest & ~(1 << piece))
        return piece
    return IDS[pieces, below(bits, COUNTS[pieces])]


@kernel
def choose(state, starts, drawn):
    """One of the rows `starts` [n, …], as [1, …]: a random one if `drawn`, else the first; none of none."""
    row = below(draw(state), len(starts)) if drawn and len(starts) else 0
    return starts[row : row + 1]


@kernel
def begin(state, starts, drawn):
    """Begin a game from one of the rows `starts` uint64[n, 1 + cols]; `drawn`: see `choose`.

    A row has four bits for each piece of the queue: its id plus one, or 0 to draw it; and four for the held piece, 0
    for none. A given piece leaves the bag as if it had been drawn. Then come the board's columns. Without rows all is
    drawn, and the board is empty: first the hidden multiset if there is one, again if it is empty, then the queue.
    """
    chosen = choose(state, starts, drawn)
    given = chosen[0, 0] if len(chosen) else U(0)
    pieces, randomizer, preview, _, _ = settings_of(state)
    for word in (LINES, SCORE, PIECES, ILLEGAL, STEPS, BAG, QUEUE, HOLD):
        state[word] = U(0)
    for i in range(COLUMNS, state.size):
        state[i] = chosen[0, 1 + i - COLUMNS] if len(chosen) else U(0)
    while randomizer == HIDDEN and state[BAG] == 0:
        for piece in range(KINDS):
            if DRAWN[pieces] >> piece & 1:
                state[BAG] |= U(below(draw(state), MOST_COPIES + 1)) << U(NIBBLE_BITS * piece)
    state[HOLD] = U(nibble(given, GIVEN_HOLD))
    if state[HOLD] and randomizer == BAG7:
        state[BAG] = U(DRAWN[pieces]) & ~(U(1) << state[HOLD] - U(1))
    for i in range(1 + preview):
        piece = nibble(given, i) - 1
        if piece < 0:
            piece = piece_by(state, draw(state))
        elif randomizer == BAG7:
            rest = state[BAG] if state[BAG] else U(DRAWN[pieces])
            state[BAG] = rest & ~(U(1) << U(piece))
        state[QUEUE] |= U(piece) << U(NIBBLE_BITS * i)


@kernel(inline="always")
def advance(state, bits):
    """Let the first piece leave the queue, and draw one to its end."""
    state[QUEUE] >>= U(NIBBLE_BITS)
    state[QUEUE] |= U(piece_by(state, bits)) << U(NIBBLE_BITS * settings_of(state)[2])


@kernel
def exchange(state, bits):
    """Put the current piece into the hold and the other one in its place; returns the bits for the next draw."""
    current, before = queued(state, 0), state[HOLD]
    state[HOLD] = U(current + 1)
    if before:
        state[QUEUE] += before - U(1) - U(current)
        return bits
    advance(state, bits)
    return bits << U(32)  # two pieces are drawn, by the two halves of the bits


@kernel
def play(state, rotation, column, y, bits):
    """Play a legal placement; random bits draw the next piece: (lines, whether the game is over).

    The queue also moves on after a fatal placement, so that the last observation shows pieces like any other.
    """
    (_, rows), piece = size_of(state), table_row(state, queued(state, 0))
    lines, _, over = place(columns_in(state), piece, rotation, column, y, rows, settings_of(state)[4])
    state[PIECES] += U(1)
    state[LINES] += U(lines)
    state[SCORE] += U(LINE_SCORES[min(lines, LINE_SCORES.size - 1)])  # a caller's board may have more full rows
    advance(state, bits)
    return lines, over


@kernel
def step(state, action, reach):
    """Play an action: (whether it was legal, whether the game is over, lines).

    `reach`: see `placements.py`.
    An illegal action, as every action is once the game is over, changes only ILLEGAL and STEPS.
    """
    state[STEPS] += U(1)
    if is_over(state):
        state[ILLEGAL] += U(1)
        return False, True, 0
    held = action >= actions_of(state)
    placed, piece = action - held * actions_of(state), table_row(state, placed_by(state, held))
    rotation, column, y = rest(columns_in(state), piece, placed, settings_of(state)[3], reach)
    if y < 0:
        state[ILLEGAL] += U(1)
        return False, False, 0
    state[ILLEGAL] = U(0)
    bits = draw(state)
    if held:
        bits = exchange(state, bits)
    lines, over = play(state, rotation, column, y, bits)
    return True, over, lines


@kernel
def list_legal(state, reach, placements):
    """Write the placements of all legal actions in their order; returns their number, 0 once the game is over."""
    if is_over(state):
        return 0
    slides, end = settings_of(state)[3], 0
    for held in range(choices_of(state)):
        first, piece = end, table_row(state, placed_by(state, held))
        end += list_placements(columns_in(state), piece, slides, reach, placements[first:])
        for i in range(first, end):
            placements[i] += held * actions_of(state) << ACTION_SHIFT
    return end
