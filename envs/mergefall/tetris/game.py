"""A game of placement Tetris as a few words: pieces drawn, placements played, lines counted.

A game's state is one row of unsigned 64-bit words, so that a copy of it is the whole game, random stream included:

    STREAM    the random stream
    LINES     lines, SCORE the score (`LINE_SCORES`) and PIECES the pieces placed so far
    ILLEGAL   illegal actions in a row, STEPS actions this episode
    RULES     cols | rows << 8 | piece set << 16 | randomizer << 20 | preview << 24 | slides << 28 | clear first << 29
    BAG       of "bag7" the ids left, as bits; of "hidden" the multiplicities, 4 bits each, the game's secret
    QUEUE     the current piece's id in the lowest 4 bits, then those of the previewed ones
    COLUMNS…  the board, a word for each column (`field.py`)

Nothing derived (heights, legality) is kept.
"""

from __future__ import annotations

import numpy as np

from mergefall.kernels import kernel, unowned
from mergefall.tetris.field import full_rows, is_above, place
from mergefall.tetris.pieces import PIECE_SETS
from mergefall.tetris.placements import column_of, rotation_of, row_of
from mergefall.words import below, next_bits, popcount

U = np.uint64
STREAM, LINES, SCORE, PIECES, ILLEGAL, STEPS, RULES, BAG, QUEUE, COLUMNS = range(10)
RANDOMIZERS = ("uniform", "bag7", "hidden")
UNIFORM, BAG7, HIDDEN = range(3)
SETS = tuple(PIECE_SETS)  # the order of the tables below
MOST_PREVIEW = 8
MOST_COPIES = 10  # of a piece in a hidden multiset
MOST_COUNTED = U(1 << 53)  # of lines, score, pieces, actions: more than any game comes to

# What a clear of 0 to 5 lines scores: Nintendo's Tetris (NES, 1989) at level 0. Five lines, which only the five-cell
# pieces can clear, are four and one.
LINE_SCORES = np.array([0, 40, 100, 300, 1200, 1240], dtype=np.int64)

FIRST = np.array([PIECE_SETS[name].first for name in SETS], dtype=np.int64)  # table row of id 0, see pieces.py
DRAWN = np.array([sum(1 << id for id in PIECE_SETS[name].drawn) for name in SETS], dtype=np.int64)  # ids as bits
COUNTS = np.array([len(PIECE_SETS[name].drawn) for name in SETS], dtype=np.int64)
STORAGE = np.array([PIECE_SETS[name].storage for name in SETS], dtype=np.int64)  # rows above the field
IDS = np.array([(PIECE_SETS[name].drawn * 7)[:7] for name in SETS], dtype=np.int64)  # the first COUNTS are the ids

# What `take` returns in one integer: whether the action was legal, whether the game is over, and the lines.
LEGAL_BIT, OVER_BIT, LINES_SHIFT = 0, 1, 8


def rules_word(
    cols: int, rows: int, pieces: str, randomizer: str, preview: int, slides: bool, clear_first: bool
) -> int:
    """The word RULES."""
    word = cols | rows << 8 | SETS.index(pieces) << 16 | RANDOMIZERS.index(randomizer) << 20 | preview << 24
    return word | slides << 28 | clear_first << 29


def rules_text(word: int) -> str:
    """What a word RULES says, for messages.

    >>> rules_text(rules_word(10, 20, "sz", "uniform", 1, False, True))
    '10×20, pieces sz, uniform, preview 1, drop, clear_first'
    """
    pieces, randomizer = word >> 16 & 15, word >> 20 & 15
    names = (
        SETS[pieces] if pieces < len(SETS) else pieces,
        RANDOMIZERS[randomizer] if randomizer < len(RANDOMIZERS) else randomizer,
    )
    kind, rule = "slide" if word >> 28 & 1 else "drop", "clear_first" if word >> 29 & 1 else "strict"
    return f"{word & 255}×{word >> 8 & 255}, pieces {names[0]}, {names[1]}, preview {word >> 24 & 15}, {kind}, {rule}"


@kernel
def size_of(state):
    """(cols, rows) of the field."""
    rules = np.int64(state[RULES])
    return rules & 255, rules >> 8 & 255


@kernel
def preview_of(state):
    """How many pieces after the current one are shown."""
    return np.int64(state[RULES]) >> 24 & 15


@kernel
def has_slides(state):
    """Whether placements may slide."""
    return np.int64(state[RULES]) >> 28 & 1 == 1


@kernel
def clears_first(state):
    """Whether full rows are cleared before it is asked if the game is over."""
    return np.int64(state[RULES]) >> 29 & 1 == 1


@kernel
def piece_set(state):
    """The row of the state's piece set in `FIRST` and `DRAWN`."""
    return np.int64(state[RULES]) >> 16 & 15


@kernel
def queued(state, index):
    """The id of the piece that is due after `index` others; 0 is the current one."""
    return np.int64(state[QUEUE] >> U(4 * index)) & 15


@kernel
def table_row(state, piece):
    """The row of a piece id in the tables of `pieces.py`."""
    return FIRST[piece_set(state)] + piece


@kernel
def columns_in(state):
    """The state's columns, a view uint64[cols]."""
    return state[COLUMNS:]


@kernel
def draw(state):
    """64 random bits; moves the state's stream on."""
    state[STREAM], bits = next_bits(state[STREAM])
    return bits


@kernel
def nth_bit(bits, n):
    """The position of the n-th set bit, the lowest being the 0th."""
    position = 0
    while True:
        if bits >> position & 1:
            if n == 0:
                return position
            n -= 1
        position += 1


@kernel
def draw_piece(state):
    """Draw a piece id. Every randomizer takes one draw a piece."""
    drawn = DRAWN[piece_set(state)]
    randomizer = np.int64(state[RULES]) >> 20 & 15
    bits = draw(state)
    if randomizer == HIDDEN:
        total = 0
        for piece in range(7):
            total += np.int64(state[BAG] >> U(4 * piece)) & 15
        left, piece = below(bits, total), 0
        while left >= np.int64(state[BAG] >> U(4 * piece)) & 15:
            left -= np.int64(state[BAG] >> U(4 * piece)) & 15
            piece += 1
        return piece
    if randomizer == BAG7:
        bag = np.int64(state[BAG])
        bag = bag if bag else drawn
        piece = nth_bit(bag, below(bits, popcount(U(bag))))
        state[BAG] = U(bag & ~(1 << piece))
        return piece
    pieces = piece_set(state)
    return IDS[pieces, below(bits, COUNTS[pieces])]


@kernel
def draw_multiset(state):
    """Draw the hidden multiplicities, 0 to 10 for each piece, anew if all are 0."""
    drawn = DRAWN[piece_set(state)]
    counts = U(0)
    while counts == 0:
        for piece in range(7):
            if drawn >> piece & 1:
                counts |= U(below(draw(state), MOST_COPIES + 1)) << U(4 * piece)
    state[BAG] = counts


@kernel
def deal(state, piece):
    """Make a given piece the next one dealt: a bag that holds it loses it, as if it had been drawn."""
    if np.int64(state[RULES]) >> 20 & 15 == BAG7:
        bag = state[BAG] if state[BAG] else U(DRAWN[piece_set(state)])
        state[BAG] = bag & ~(U(1) << U(piece))
    return piece


@kernel
def start(state, given=0):
    """Begin a game on an empty board: the multiset if there is one, then the piece and the previewed ones.

    `given` has 4 bits for each of these, like QUEUE: the id that is given plus one, or 0 for one that is drawn.
    """
    for word in (LINES, SCORE, PIECES, ILLEGAL, STEPS, BAG, QUEUE):
        state[word] = U(0)
    for i in range(COLUMNS, state.size):
        state[i] = U(0)
    if np.int64(state[RULES]) >> 20 & 15 == HIDDEN:
        draw_multiset(state)
    for i in range(1 + preview_of(state)):
        asked = np.int64(given) >> 4 * i & 15
        piece = deal(state, asked - 1) if asked else draw_piece(state)
        state[QUEUE] |= U(piece) << U(4 * i)


@kernel
def start_from(state, given):
    """Begin a game from `given` uint64[1 + cols]: the pieces as `start` takes them, and the board's columns."""
    start(state, given[0])
    for i in range(1, given.size):
        state[COLUMNS + i - 1] = given[i]


@kernel
def begin(state, pool):
    """Begin a game from a start drawn from `pool` uint64[n, 1 + cols], if it holds any, else an ordinary one."""
    if len(pool):
        start_from(state, pool[below(draw(state), len(pool))])
    else:
        start(state, U(0))  # of the type of those in a pool, for which it is compiled anyway


@kernel
def advance(state):
    """Take the current piece from the queue and draw one at its end."""
    queue = state[QUEUE] >> U(4)
    state[QUEUE] = queue | U(draw_piece(state)) << U(4 * preview_of(state))


@kernel
def play(state, placement):
    """Play a legal placement and draw the next piece: (lines, whether the game is over).

    The queue moves on after a fatal placement too, so that what is observed last has pieces like any other.
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
def is_over(state):
    """Whether the game is over: only then does a cell lie above the field."""
    _, rows = size_of(state)
    return is_above(columns_in(state), rows)


@kernel
def wrong_word(state, rules):
    """The first word of a state that no game by `rules` (the word RULES) can hold; -1 if there is none.

    The number of words stands for the board as a whole: rows that are full although the game goes on. Every word that
    an index or the end of a loop depends on is looked at.
    """
    if state[RULES] != U(rules):
        return RULES
    for word in (LINES, SCORE, PIECES, ILLEGAL, STEPS):
        if state[word] > MOST_COUNTED:
            return word
    if state[LINES] > U(LINE_SCORES.size - 1) * state[PIECES]:
        return LINES
    if not U(40) * state[LINES] <= state[SCORE] <= U(300) * state[LINES]:  # see LINE_SCORES
        return SCORE
    if state[ILLEGAL] > state[STEPS]:
        return ILLEGAL
    drawn, randomizer, bag = DRAWN[piece_set(state)], np.int64(rules) >> 20 & 15, state[BAG]
    if randomizer == HIDDEN:
        for piece in range(7):
            most = MOST_COPIES if drawn >> piece & 1 else 0
            if np.int64(bag >> U(4 * piece)) & 15 > most:
                return BAG
        if bag == 0 or bag >> U(28):
            return BAG
    elif bag & ~U(drawn if randomizer == BAG7 else 0):
        return BAG
    for i in range(1 + preview_of(state)):
        if not drawn >> queued(state, i) & 1:
            return QUEUE
    if state[QUEUE] >> U(4 * (1 + preview_of(state))):
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
    """Count a step, and play a placement, or nothing for -1; returns the packed integer described above.

    What is illegal, as anything is in a game that is over, changes only the counts of steps and of illegal actions in a
    row.
    """
    state[STEPS] += U(1)
    over = is_over(state)
    if over or placement < 0:
        state[ILLEGAL] += U(1)
        return over << OVER_BIT
    state[ILLEGAL] = U(0)
    lines, over = play(state, placement)
    return 1 << LEGAL_BIT | over << OVER_BIT | lines << LINES_SHIFT
