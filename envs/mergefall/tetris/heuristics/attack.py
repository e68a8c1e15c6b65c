"""`attack`: the stack, slots for T-spins and perfect clears, for players that send lines (`tetris/beam`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mergefall.kernels import kernel
from mergefall.tetris.field import copy, field_mask, height_of, holes_in, put
from mergefall.tetris.heuristics.base import Heuristic, Memo
from mergefall.tetris.pieces import HEIGHTS, SIZES, WIDTHS
from mergefall.tetris.rules import MOST_COLS
from mergefall.words import popcount, trailing_zeros

U = np.uint64
DEEPEST_COVER, DEEPEST_WELL, PERFECT_ROWS = 6, 4, 4

# Five counts packed into one word, so that they are added at once: bits 0-11 holes, 12-23 covered cells, 24-35 row
# transitions without those at the walls, 36-47 bumps, 48-63 steps.
FIELD = U(0xFFF)
COVERED, CHANGES, BUMPS, STEPS = U(12), U(24), U(36), U(48)

# The memo of a board: its filled cells; its height; the columns with the middle of a slot, as bits, and the rows of
# these. Then six words for each border between columns: three about the columns on its left, each followed by the same
# of those on its right. COUNTS are the packed counts, FULL the full rows, LOWS the two lowest heights.
COUNTS, FULL, LOWS, BORDER = range(0, 8, 2)
CELLS = BORDER * (MOST_COLS + 1)
HIGHEST, SLOTS, SLOT_ROWS = CELLS + 1, CELLS + 2, CELLS + 3


@kernel
def of_column(column):
    """The counts of one column."""
    gaps = holes_in(column)
    if gaps == 0:
        return U(0)
    return U(popcount(gaps)) | U(min(height_of(column) - height_of(gaps), DEEPEST_COVER)) << COVERED


@kernel
def of_pair(left, right):
    """The counts of two neighbouring columns."""
    step = U(abs(height_of(right) - height_of(left)))
    return U(popcount(left ^ right)) << CHANGES | step << BUMPS | step * step << STEPS


@kernel
def lower(lows, height):
    """The two lowest heights, in bits 0-7 and 8-15, with one more height."""
    if height < lows & U(255):
        return (lows & U(255)) << U(8) | height
    return lows & U(255) | min(height, lows >> U(8)) << U(8)


@kernel
def slot_at(columns, center):
    """The row of the middle of a T that points down into a slot, 0 if there is no slot around this column.

    The T's cells are free, both corners beside its stub are filled and one of those above; over the other one the sky
    is open.
    """
    left, column, right = columns[center - 1], columns[center], columns[center + 1]
    slots = ~(left | column | right | column << U(1)) & left << U(1) & right << U(1) & (left >> U(1) ^ right >> U(1))
    if slots == 0:
        return 0
    slots &= ~field_mask(max(height_of(column), min(height_of(left), height_of(right))))
    return trailing_zeros(slots) & 63


@kernel
def slot_lines(columns, center, y):
    """The lines that a T in a slot clears."""
    upright = U(3) << U(y - 1)
    full = upright
    for c in range(columns.size):
        own = upright if c == center else U(1) << U(y) if abs(c - center) == 1 else U(0)
        full &= columns[c] | own
    return popcount(full)


@kernel(forceinline=True)
def terms_of(columns, packed, highest, lows, cells, lines, rows):
    """The terms from what was counted."""
    # A perfect clear leaves no cell, so its rows hold all cells and a number of pieces of four cells each.
    cols, goal = columns.size, highest
    while goal <= PERFECT_ROWS and cols * goal - cells & 3:
        goal += 1
    perfect = goal <= PERFECT_ROWS
    return (
        highest,
        max(0, highest - rows // 2),
        np.int64(packed & FIELD),
        np.int64(packed >> COVERED & FIELD),
        np.int64(packed >> CHANGES & FIELD) + 2 * highest - popcount(columns[0]) - popcount(columns[cols - 1]),
        np.int64(packed >> BUMPS & FIELD),
        np.int64(packed >> STEPS),
        min(np.int64(lows >> U(8)) - np.int64(lows & U(255)), DEEPEST_WELL),
        np.int64(lines == 1),
        np.int64(lines == 2),
        np.int64(perfect),
        cols * goal - cells >> 2 if perfect else 0,
    )


@kernel
def board_terms(columns, rows, weights):
    packed, highest, lows, cells, lines = U(0), 0, U(0xFFFF), 0, 0
    for c in range(columns.size):
        height = height_of(columns[c])
        highest, lows = max(highest, height), lower(lows, U(height))
        packed += of_column(columns[c])
        cells += popcount(columns[c])
        if c:
            packed += of_pair(columns[c - 1], columns[c])
        if 0 < c < columns.size - 1:
            y = slot_at(columns, c)
            if y:
                lines = max(lines, slot_lines(columns, c, y))
    return terms_of(columns, packed, highest, lows, cells, lines, rows)


@kernel
def prepare(columns, rows, memo):
    cols, cells, highest = columns.size, 0, 0
    memo[SLOTS] = U(0)
    for c in range(cols):
        cells += popcount(columns[c])
        highest = max(highest, height_of(columns[c]))
        if 0 < c < cols - 1:
            y = slot_at(columns, c)
            memo[SLOT_ROWS + c] = U(y)
            memo[SLOTS] |= U(y > 0) << U(c)
    memo[CELLS], memo[HIGHEST] = U(cells), U(highest)
    for side in range(2):
        packed, full, lows = U(0), ~U(0), U(0xFFFF)
        for k in range(cols + 1):
            at = BORDER * (cols - k if side else k) + side
            memo[at + COUNTS], memo[at + FULL], memo[at + LOWS] = packed, full, lows
            if k < cols:
                here = cols - 1 - k if side else k
                packed += of_column(columns[here])
                full &= columns[here]
                lows = lower(lows, U(height_of(columns[here])))
                if k:
                    packed += of_pair(columns[here], columns[here + 1 if side else here - 1])


@kernel(forceinline=True)
def after(columns, memo, piece, rotation, column, y, rows, scratch):
    """See `Memo`; `scratch` receives the board."""
    copy(columns, scratch)
    put(scratch, piece, rotation, column, y)
    cols, end = columns.size, column + WIDTHS[piece, rotation]
    left, right = BORDER * column, BORDER * end + 1
    packed, full = memo[left + COUNTS] + memo[right + COUNTS], memo[left + FULL] & memo[right + FULL]
    lows = lower(lower(memo[left + LOWS], memo[right + LOWS] & U(255)), memo[right + LOWS] >> U(8))
    for c in range(column, end):
        packed += of_column(scratch[c])
        full &= scratch[c]
        lows = lower(lows, U(height_of(scratch[c])))
    for c in range(max(column, 1), min(end + 1, cols)):
        packed += of_pair(scratch[c - 1], scratch[c])
    lines, others = 0, memo[SLOTS]
    for c in range(max(column - 1, 1), min(end + 1, cols - 1)):
        others &= ~(U(1) << U(c))
        slot = slot_at(scratch, c)
        if slot:
            lines = max(lines, slot_lines(scratch, c, slot))
    while others:
        c = trailing_zeros(others)
        others &= others - U(1)
        lines = max(lines, slot_lines(scratch, c, memo[SLOT_ROWS + c]))
    highest = max(np.int64(memo[HIGHEST]), y + HEIGHTS[piece, rotation])
    cells = np.int64(memo[CELLS]) + SIZES[piece]
    return full, terms_of(scratch, packed, highest, lows, cells, lines, rows)


@dataclass(frozen=True)
class Attack(Heuristic):
    """The stack, slots for T-spins, perfect clears in reach, and what clears are worth: all that `tetris/beam` weighs.

    Terms of the board:

    - `height`: the rows up to the highest cell; `high`: how many of them lie in the field's upper half.
    - `holes`: empty cells below the top of their column.
    - `covered`: cells above the topmost hole of each column, up to 6 per column.
    - `transitions`: changes between filled and empty along the rows, up to the highest cell; the walls are filled.
    - `bumps`, `steps`: the sums of the height differences between neighbouring columns, and of their squares.
    - `well`: how far the lowest column lies below the second lowest, up to 4.
    - `slot_1`, `slot_2`: 1 if the best slot for a T, pointing down, below an overhang and open to the sky, clears one
      line, or two.
    - `perfect`: 1 if at most four rows can be cleared to an empty board by the number of cells; `near`: the pieces that
      this takes.

    Weights of placements and of pieces, which the research game does not have, and `tetris/beam` adds:

    - `attack`: a line sent; `lines`: a line cleared; `wasted`: a T that is no full T-spin of two lines or more.
    - `chained`: a back-to-back chain is on; `combo`: clears in a row.
    - `held_t`, `held_i`: a T or an I is held.

    The weights are by CMA-ES, for the attack of 50 placements from an empty board; `attack` and `high` stayed fixed.
    From weights set by hand: 3 generations of 12 candidates and 24 games (seeds from 1,000,000; 150 nodes, 4 draws of 2
    pieces, 30 nodes in a draw), then 17 of 10 candidates and 16 games (seeds from 2,000,000; 100 nodes, 25 in a draw).
    """

    name: ClassVar[str] = "attack"
    board_names: ClassVar[tuple[str, ...]] = (
        "height",
        "high",
        "holes",
        "covered",
        "transitions",
        "bumps",
        "steps",
        "well",
        "slot_1",
        "slot_2",
        "perfect",
        "near",
    )
    reward_names: ClassVar[tuple[str, ...]] = ("attack", "lines", "wasted", "chained", "combo", "held_t", "held_i")
    terms_kernel: ClassVar[Any] = board_terms
    memo: ClassVar[Memo] = Memo(prepare, after)

    height: float = -0.161
    high: float = -0.5
    holes: float = -0.893
    covered: float = -0.053
    transitions: float = -0.293
    bumps: float = -0.103
    steps: float = 0.011
    well: float = 0.124
    slot_1: float = 0.167
    slot_2: float = 2.156
    perfect: float = 0.368
    near: float = -0.006
    attack: float = 1.0
    lines: float = -0.493
    wasted: float = -0.053
    chained: float = 0.138
    combo: float = 0.114
    held_t: float = 0.24
    held_i: float = -0.056

    def weight_vector(self) -> NDArray[np.float64]:
        """The weights for the kernels: of the board's terms, then of `reward_names`."""
        return np.array([getattr(self, name) for name in self.board_names + self.reward_names], dtype=np.float64)
