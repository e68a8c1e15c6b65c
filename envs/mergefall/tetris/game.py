"""One game of placement Tetris as a row of words: pieces are drawn, placements played, lines counted.

A state is uint64[9 + cols]. A copy of it is the whole game, random stream included; nothing derived is kept.

    STREAM    the random stream
    LINES     rows cleared so far
    SCORE     their score (`LINE_SCORES`)
    PIECES    pieces placed so far
    ILLEGAL   illegal actions in a row
    STEPS     actions in this episode
    RULES     the rules (`rules_word`)
    BAG       for "bag7" the ids left in the bag, as bits; for "hidden" the copies of each piece, 4 bits per id
    QUEUE     the ids of the current piece and of the previewed ones, 4 bits each, the current piece lowest
    COLUMNS…  the board, a word for each column (`field.py`)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mergefall.checks import MOST_COUNTED
from mergefall.kernels import kernel, unowned
from mergefall.tetris.field import full_rows, is_above, place
from mergefall.tetris.pieces import PIECE_SETS
from mergefall.tetris.placements import BYTE, column_of, rotation_of, row_of
from mergefall.words import below, next_bits, popcount

U = np.uint64
STREAM, LINES, SCORE, PIECES, ILLEGAL, STEPS, RULES, BAG, QUEUE, COLUMNS = range(10)

# The fields of the word RULES by their lowest bits: sizes have 8 bits, the other numbers 4, and the last two are flags.
COLS_SHIFT, ROWS_SHIFT, SET_SHIFT, RANDOMIZER_SHIFT, PREVIEW_SHIFT = 0, 8, 16, 20, 24
SLIDES_BIT, CLEAR_FIRST_BIT = 28, 29
NIBBLE, NIBBLE_BITS = 15, 4

# The result of a step (`take`) in one integer: whether the action was legal, whether the game is over, the lines.
LEGAL_BIT, OVER_BIT, LINES_SHIFT = 0, 1, 8

RANDOMIZERS = ("uniform", "bag7", "hidden")
UNIFORM, BAG7, HIDDEN = range(3)
MOST_PREVIEW = 8
MOST_COPIES = 10  # of a piece in a hidden multiset
MOST = U(MOST_COUNTED)  # lines, score, pieces or actions

# The score of clearing 0 to 5 lines: Nintendo's Tetris (NES, 1989) at level 0. Five lines, which only the five-cell
# pieces can clear, score as four and one.
LINE_SCORES = np.array([0, 40, 100, 300, 1200, 1240], dtype=np.int64)

SETS = tuple(PIECE_SETS)  # the order of the tables below
FIRST = np.array([PIECE_SETS[name].first for name in SETS], dtype=np.int64)  # table row of id 0, see pieces.py
DRAWN = np.array([sum(1 << id for id in PIECE_SETS[name].drawn) for name in SETS], dtype=np.int64)  # ids as bits
COUNTS = np.array([len(PIECE_SETS[name].drawn) for name in SETS], dtype=np.int64)
STORAGE = np.array([PIECE_SETS[name].storage for name in SETS], dtype=np.int64)  # rows above the field
IDS = np.array([(PIECE_SETS[name].drawn * 7)[:7] for name in SETS], dtype=np.int64)  # the first COUNTS are the ids


def rules_word(
    cols: int, rows: int, pieces: str, randomizer: str, preview: int, slides: bool, clear_first: bool
) -> int:
    """The word RULES of a game."""
    return (
        cols << COLS_SHIFT
        | rows << ROWS_SHIFT
        | SETS.index(pieces) << SET_SHIFT
        | RANDOMIZERS.index(randomizer) << RANDOMIZER_SHIFT
        | preview << PREVIEW_SHIFT
        | slides << SLIDES_BIT
        | clear_first << CLEAR_FIRST_BIT
    )


def rules_text(word: int) -> str:
    """The rules in a word RULES as text for messages.

    >>> rules_text(rules_word(10, 20, "sz", "uniform", 1, False, True))
    '10×20, pieces sz, uniform, preview 1, drop, clear_first'
    """
    pieces, randomizer = word >> SET_SHIFT & NIBBLE, word >> RANDOMIZER_SHIFT & NIBBLE
    parts = (
        f"{word >> COLS_SHIFT & BYTE}×{word >> ROWS_SHIFT & BYTE}",
        f"pieces {SETS[pieces] if pieces < len(SETS) else pieces}",
        f"{RANDOMIZERS[randomizer] if randomizer < len(RANDOMIZERS) else randomizer}",
        f"preview {word >> PREVIEW_SHIFT & NIBBLE}",
        "slide" if word >> SLIDES_BIT & 1 else "drop",
        "clear_first" if word >> CLEAR_FIRST_BIT & 1 else "strict",
    )
    return ", ".join(parts)


def nibbles(word: int, count: int) -> NDArray[np.int64]:
    """The lowest `count` groups of four bits of a word, such as the ids in QUEUE, int64[count].

    >>> nibbles(0x321, 2)
    array([1, 2])
    """
    return int(word) >> NIBBLE_BITS * np.arange(count) & NIBBLE


def word_of(nibbles: Sequence[int]) -> int:
    """The word with these groups of four bits, the first one lowest: the inverse of `nibbles`."""
    return sum(nibble << NIBBLE_BITS * i for i, nibble in enumerate(nibbles))


@kernel(inline="always")
def size_of(state):
    """(cols, rows) of the field."""
    rules = np.int64(state[RULES])
    return rules >> COLS_SHIFT & BYTE, rules >> ROWS_SHIFT & BYTE


@kernel(inline="always")
def piece_set(state):
    """The row of the state's piece set in `FIRST`, `DRAWN`, `COUNTS` and `IDS`."""
    return np.int64(state[RULES]) >> SET_SHIFT & NIBBLE


@kernel(inline="always")
def randomizer_of(state):
    """The state's randomizer: UNIFORM, BAG7 or HIDDEN."""
    return np.int64(state[RULES]) >> RANDOMIZER_SHIFT & NIBBLE


@kernel(inline="always")
def preview_of(state):
    """The number of previewed pieces."""
    return np.int64(state[RULES]) >> PREVIEW_SHIFT & NIBBLE


@kernel(inline="always")
def has_slides(state):
    """Whether actions may slide."""
    return np.int64(state[RULES]) >> SLIDES_BIT & 1 == 1


@kernel(inline="always")
def clears_first(state):
    """Whether full rows are cleared before the game may end (overflow "clear_first")."""
    return np.int64(state[RULES]) >> CLEAR_FIRST_BIT & 1 == 1


@kernel(inline="always")
def nibble(word, index):
    """The group of four bits number `index` of a word, 0 the lowest."""
    return np.int64(word >> U(NIBBLE_BITS * index)) & NIBBLE


@kernel(inline="always")
def queued(state, index):
    """The id of the piece that comes after `index` others; 0 is the current one."""
    return nibble(state[QUEUE], index)


@kernel(inline="always")
def copies_of(state, piece):
    """The copies of a piece id in a hidden multiset."""
    return nibble(state[BAG], piece)


@kernel(inline="always")
def table_row(state, piece):
    """The row of a piece id in the tables of `pieces.py`."""
    return FIRST[piece_set(state)] + piece


@kernel(inline="always")
def columns_in(state):
    """The state's columns, a view uint64[cols]."""
    return state[COLUMNS:]


@kernel
def is_over(state):
    """Whether the game is over: only then does a cell lie above the field."""
    _, rows = size_of(state)
    return is_above(columns_in(state), rows)


@kernel
def draw(state):
    """Draw 64 random bits from the state's stream."""
    state[STREAM], bits = next_bits(state[STREAM])
    return bits


@kernel
def nth_bit(bits, n):
    """The position of the n-th set bit, counted from 0 at the lowest."""
    position = 0
    while True:
        if bits >> position & 1:
            if n == 0:
                return position
            n -= 1
        position += 1


@kernel
def draw_piece(state):
    """Draw a piece id. Every randomizer takes one random number per piece."""
    pieces, randomizer = piece_set(state), randomizer_of(state)
    bits = draw(state)
    if randomizer == HIDDEN:
        total = 0
        for piece in range(7):
            total += copies_of(state, piece)
        left, piece = below(bits, total), 0
        while left >= copies_of(state, piece):
            left -= copies_of(state, piece)
            piece += 1
        return piece
    if randomizer == BAG7:
        bag = np.int64(state[BAG])
        bag = bag if bag else DRAWN[pieces]
        piece = nth_bit(bag, below(bits, popcount(U(bag))))
        state[BAG] = U(bag & ~(1 << piece))
        return piece
    return IDS[pieces, below(bits, COUNTS[pieces])]


@kernel
def draw_multiset(state):
    """Draw the hidden copies, 0 to 10 of each piece, again if all are 0."""
    drawn = DRAWN[piece_set(state)]
    counts = U(0)
    while counts == 0:
        for piece in range(7):
            if drawn >> piece & 1:
                counts |= U(below(draw(state), MOST_COPIES + 1)) << U(NIBBLE_BITS * piece)
    state[BAG] = counts


@kernel
def deal(state, piece):
    """Return a given piece, and take it out of the bag if the bag holds it, as if it had been drawn."""
    if randomizer_of(state) == BAG7:
        bag = state[BAG] if state[BAG] else U(DRAWN[piece_set(state)])
        state[BAG] = bag & ~(U(1) << U(piece))
    return piece


@kernel
def start(state, given=0):
    """Begin a game on an empty board; draws the hidden multiset if there is one, then the pieces of the queue.

    `given` has four bits for each piece of the queue: its id plus one, or 0 to draw it.
    """
    for word in (LINES, SCORE, PIECES, ILLEGAL, STEPS, BAG, QUEUE):
        state[word] = U(0)
    for i in range(COLUMNS, state.size):
        state[i] = U(0)
    if randomizer_of(state) == HIDDEN:
        draw_multiset(state)
    for i in range(1 + preview_of(state)):
        asked = nibble(U(given), i)
        piece = deal(state, asked - 1) if asked else draw_piece(state)
        state[QUEUE] |= U(piece) << U(NIBBLE_BITS * i)


@kernel
def start_from(state, given):
    """Begin a game from `given` uint64[1 + cols]: the pieces as `start` takes them, then the board's columns."""
    start(state, given[0])
    for i in range(1, given.size):
        state[COLUMNS + i - 1] = given[i]


@kernel
def begin(state, pool):
    """Begin a game from a start drawn from `pool` uint64[n, 1 + cols]; an ordinary one if the pool is empty."""
    if len(pool):
        start_from(state, pool[below(draw(state), len(pool))])
    else:
        start(state, U(0))  # uint64 like the starts in a pool, so that `start` is compiled for one type


@kernel
def advance(state):
    """Move the queue on: drop the current piece and draw one at the end."""
    queue = state[QUEUE] >> U(NIBBLE_BITS)
    state[QUEUE] = queue | U(draw_piece(state)) << U(NIBBLE_BITS * preview_of(state))


@kernel
def play(state, placement):
    """Play a legal placement and draw the next piece: (lines, whether the game is over).

    The queue also moves on after a fatal placement, so that the last observation shows pieces like any other.
    """
    _, rows = size_of(state)
    piece = table_row(state, queued(state, 0))
    lines, _, over = place(
        columns_in(state),
        piece,
        rotation_of(placement),
        column_of(placement),
        row_of(placement),
        rows,
        clears_first(state),
    )
    state[PIECES] += U(1)
    state[LINES] += U(lines)
    state[SCORE] += U(LINE_SCORES[lines])
    advance(state)
    return lines, over


@kernel
def wrong_word(state, rules):
    """The first word of a state that no game by `rules` (the word RULES) can hold; -1 if there is none.

    The number of words stands for full rows in a game that is not over. Every word that serves as an index or ends a
    loop is checked.
    """
    if state[RULES] != U(rules):
        return RULES
    for word in (LINES, SCORE, PIECES, ILLEGAL, STEPS):
        if state[word] > MOST:
            return word
    if state[LINES] > U(LINE_SCORES.size - 1) * state[PIECES]:
        return LINES
    if not U(40) * state[LINES] <= state[SCORE] <= U(300) * state[LINES]:  # see LINE_SCORES
        return SCORE
    if state[ILLEGAL] > state[STEPS]:
        return ILLEGAL
    drawn, randomizer, bag = DRAWN[piece_set(state)], randomizer_of(state), state[BAG]
    if randomizer == HIDDEN:
        for piece in range(7):
            most = MOST_COPIES if drawn >> piece & 1 else 0
            if copies_of(state, piece) > most:
                return BAG
        if bag == 0 or bag >> U(7 * NIBBLE_BITS):
            return BAG
    elif bag & ~U(drawn if randomizer == BAG7 else 0):
        return BAG
    for i in range(1 + preview_of(state)):
        if not drawn >> queued(state, i) & 1:
            return QUEUE
    if state[QUEUE] >> U(NIBBLE_BITS * (1 + preview_of(state))):
        return QUEUE
    columns, (_, rows) = columns_in(state), size_of(state)
    for c in range(columns.size):
        if columns[c] >> U(rows + STORAGE[piece_set(state)]):
            return COLUMNS + c
    return state.size if full_rows(columns) and not is_above(columns, rows) else -1


@kernel
def first_wrong(states, rules):
    """(game, word) of the first `wrong_word` in states uint64[n, words]; (-1, -1) if there is none."""
    states = unowned(states)
    for i in range(len(states)):
        word = wrong_word(states[i], rules)
        if word >= 0:
            return i, word
    return -1, -1


@kernel
def take(state, placement):
    """Step a game: play a placement, or nothing for -1. Returns the result with the bits LEGAL_BIT and so on.

    An illegal action, as every action is once the game is over, changes only ILLEGAL and STEPS.
    """
    state[STEPS] += U(1)
    over = is_over(state)
    if over or placement < 0:
        state[ILLEGAL] += U(1)
        return over << OVER_BIT
    state[ILLEGAL] = U(0)
    lines, over = play(state, placement)
    return 1 << LEGAL_BIT | over << OVER_BIT | lines << LINES_SHIFT


@kernel(inline="always")
def is_legal(result):
    """Whether the action of a step was legal."""
    return result >> LEGAL_BIT & 1 == 1


@kernel(inline="always")
def ends(result):
    """Whether the game is over after a step."""
    return result >> OVER_BIT & 1 == 1


@kernel(inline="always")
def lines_of(result):
    """The lines that a step cleared."""
    return result >> LINES_SHIFT
