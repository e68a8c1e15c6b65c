"""Weighted sums of ten features of a placement, from which the controllers of the literature come (`controllers.py`).

Everything here counts bits of columns, one word each (`field.py`); walls are columns full to the field's top. A count
is the sum of what each column, each pair of neighbours and each column between its neighbours adds, so what one
placement changes is found in the columns of the piece and beside it; the rest is prepared once for a board. The slow
twin is `reference.py`.

Sources: C. Fahey, Tetris (2003), for P. Dellacherie's controller; C. Thiery & B. Scherrer, Building controllers for
Tetris (2009), for the definitions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, make_dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np

from mergefall.kernels import kernel
from mergefall.tetris.field import field_mask, height_of, holes_in
from mergefall.tetris.heuristics.base import Heuristic, Kernels, plain_leaf
from mergefall.tetris.pieces import HEIGHTS, MASKS, SIZES, WIDTHS
from mergefall.tetris.rules import MOST_COLS
from mergefall.words import popcount, trailing_zeros

U = np.uint64

FEATURES = (
    "landing_height",
    "eroded_cells",
    "lines",
    "row_transitions",
    "column_transitions",
    "holes",
    "hole_depth",
    "wells",
    "rows_with_holes",
    "diversity",
)
LANDING, ERODED, LINES, ROW, COLUMN, HOLES, DEPTH, WELLS, ROWS, DIVERSITY = range(10)

# Five counts in one word that can be added up: bits 0-11 row transitions, 12-23 column transitions, 24-35 heights,
# 36-47 cells that stand on the floor without a gap, 48-63 wells; 16 columns of 40 rows stay below 2¹² and 2¹⁶. With the
# number of filled cells they give the others: holes are what heights have more than filled cells; and the filled cells
# directly above a hole are all but those that stand on the floor, for each run of them but that one is above a hole.
FIELD = U(0xFFF)
CHANGES, HEIGHTS_AT, STANDING, WELLS_AT = U(12), U(24), U(36), U(48)


@kernel
def of_column(column):
    """What a column counts by itself: changes from a cell to the one above, floor filled, above the field empty."""
    changes = U(popcount(column ^ (column << U(1) | U(1)))) << CHANGES
    return changes | U(height_of(column)) << HEIGHTS_AT | U(trailing_zeros(~column)) << STANDING


@kernel
def of_pair(left, right):
    """Row transitions between two neighbouring columns."""
    return U(popcount(left ^ right))


@kernel
def of_wells(wells, empty):
    """Cumulative wells: each of the cells `wells` counts the run of `empty` cells from itself downwards."""
    second = wells >> U(1) & empty
    count = popcount(wells) + popcount(second)  # the usual case, without a branch
    wells = second >> U(1) & empty
    while wells:
        count += popcount(wells)
        wells = wells >> U(1) & empty
    return U(count) << WELLS_AT


@kernel
def of_step(left, right):
    """The height difference from one column to the next as one bit, 0 to 4 for −2 to 2; nothing for a larger one."""
    step = height_of(right) - height_of(left) + 2
    return U(1) << U(step) if 0 <= step <= 4 else U(0)


@kernel
def counts(columns, rows):
    """(the five counts, filled cells, rows with holes and steps as bits) of a board, empty above the field."""
    wall, cols = field_mask(rows), columns.size
    packed, filled, holes, steps, before = U(0), 0, U(0), U(0), wall
    for i in range(cols):
        column = columns[i]
        after = columns[i + 1] if i + 1 < cols else wall
        packed += of_column(column) + of_pair(before, column) + of_wells(before & after & ~column, ~column)
        filled += popcount(column)
        holes |= holes_in(column)
        if i:
            steps |= of_step(before, column)
        before = column
    return packed + of_pair(before, wall), filled, holes, steps


# What `prepare` remembers of a board: the columns with two walls on either side; the number of filled cells; and eight
# words for each border between columns, from the left wall to the right, of what lies on its left and on its right.
#
#   LEFT, RIGHT              the five counts, of pairs without the one across the border
#   FULL_LEFT, FULL_RIGHT    rows full there,  HOLES_LEFT, HOLES_RIGHT  with holes,  STEPS_LEFT, STEPS_RIGHT  steps
LEFT, RIGHT, FULL_LEFT, FULL_RIGHT, HOLES_LEFT, HOLES_RIGHT, STEPS_LEFT, STEPS_RIGHT = (U(i) for i in range(8))
BORDER = U(8)
FILLED = BORDER * U(MOST_COLS + 1)
WALLED = FILLED + U(3)  # the first column


@cache
def _kernels(cls: type[Linear], clears: bool) -> Kernels:
    has = tuple(name in cls.term_names for name in FEATURES)
    (
        has_landing,
        has_eroded,
        has_lines,
        has_row,
        has_column,
        has_holes,
        has_depth,
        has_wells,
        has_rows,
        has_diversity,
    ) = has
    variant = f"{cls.name}-{clears}"

    @kernel(variant=variant)
    def move(piece, rotation, column, y, lines, own, rows, weights):
        value = 0.0
        if has_landing:
            value += weights[LANDING] * (y + 0.5 * (HEIGHTS[piece, rotation] - 1))
        if has_eroded:
            value += weights[ERODED] * np.float64(lines * own)
        if has_lines:
            value += weights[LINES] * np.float64(lines)
        return value

    @kernel(variant=variant)
    def last(piece, rotation, column, y, rows, weights):
        return 0.0

    @kernel(variant=variant)
    def weighted(packed, filled, holes, steps, weights):
        value = 0.0
        if has_row:
            value += weights[ROW] * np.float64(np.int64(packed & FIELD))
        if has_column:
            value += weights[COLUMN] * np.float64(np.int64(packed >> CHANGES & FIELD))
        if has_holes:
            value += weights[HOLES] * np.float64(np.int64(packed >> HEIGHTS_AT & FIELD) - filled)
        if has_depth:
            value += weights[DEPTH] * np.float64(filled - np.int64(packed >> STANDING & FIELD))
        if has_wells:
            value += weights[WELLS] * np.float64(np.int64(packed >> WELLS_AT))
        if has_rows:
            value += weights[ROWS] * np.float64(popcount(holes))
        if has_diversity:
            value += weights[DIVERSITY] * np.float64(popcount(steps))
        return value

    @kernel(variant=variant)
    def board(columns, rows, weights):
        packed, filled, holes, steps = counts(columns, rows)
        return weighted(packed, filled, holes, steps, weights)

    @kernel(variant=variant)
    def prepare(columns, rows, weights, memo):
        wall, cols = field_mask(rows), U(columns.size)
        memo[WALLED - U(2)] = memo[WALLED - U(1)] = memo[WALLED + cols] = memo[WALLED + cols + U(1)] = wall
        filled = 0
        for i in range(cols):
            memo[WALLED + i] = columns[i]
            filled += popcount(columns[i])
        memo[FILLED] = U(filled)
        packed, full, holes, steps = U(0), wall, U(0), U(0)
        for i in range(cols + U(1)):
            at, before, column = BORDER * i, memo[WALLED + i - U(1)], memo[WALLED + i]
            memo[at + LEFT], memo[at + FULL_LEFT] = packed, full
            memo[at + HOLES_LEFT], memo[at + STEPS_LEFT] = holes, steps
            packed += of_pair(before, column)
            memo[at + RIGHT] = packed
            if i < cols:
                wells = before & memo[WALLED + i + U(1)] & ~column
                packed += of_column(column) + of_wells(wells, ~column)
                full &= column
                holes |= holes_in(column)
                if has_diversity and i > 0:
                    steps |= of_step(before, column)
        full, holes, steps = wall, U(0), U(0)
        for k in range(cols + U(1)):
            i = cols - k
            at, column = BORDER * i, memo[WALLED + i - U(1)]
            memo[at + FULL_RIGHT], memo[at + HOLES_RIGHT], memo[at + STEPS_RIGHT] = full, holes, steps
            memo[at + RIGHT] = packed - memo[at + RIGHT]
            full &= column
            holes |= holes_in(column)
            if has_diversity and 0 < i < cols:
                steps |= of_step(column, memo[WALLED + i])

    plain = plain_leaf(cls, clears, move, last, board)

    @kernel(variant=variant, forceinline=True)
    def leaf(columns, memo, piece, rotation, column, y, rows, clear_first, weights, scratch):
        shape, turn = U(piece), U(rotation)
        width, at = U(WIDTHS[shape, turn]), WALLED + U(column)
        left, right = BORDER * U(column), BORDER * (U(column) + width)
        packed = memo[left + LEFT] + memo[right + RIGHT]
        full = memo[left + FULL_LEFT] & memo[right + FULL_RIGHT]
        holes = memo[left + HOLES_LEFT] | memo[right + HOLES_RIGHT]
        steps = memo[left + STEPS_LEFT] | memo[right + STEPS_RIGHT]
        before = memo[at - U(1)]
        cells = MASKS[shape, turn, U(0)] << U(y)
        beside = cells & memo[at - U(2)] & ~before  # the wells that the piece makes of cells on its left
        packed += of_wells(beside, ~before)
        new = memo[at] | cells
        for i in range(width):
            after = memo[at + i + U(1)]
            if i + U(1) < width:
                cells = MASKS[shape, turn, i + U(1)] << U(y)
                after |= cells
            packed += of_pair(before, new) + of_wells(before & after & ~new, ~new) + of_column(new)
            full &= new
            if has_rows:
                holes |= holes_in(new)
            if has_diversity and (i > 0 or column > 0):
                steps |= of_step(before, new)
            before, new = new, after
        packed += of_pair(before, new)
        beside = cells & memo[at + width + U(1)] & ~new
        packed += of_wells(beside, ~new)
        if has_diversity and column + WIDTHS[shape, turn] < columns.size:
            steps |= of_step(before, new)
        if (clears and full != 0) or y + HEIGHTS[shape, turn] > rows:
            return plain(columns, memo, piece, rotation, column, y, rows, clear_first, weights, scratch)
        value = weighted(packed, np.int64(memo[FILLED]) + SIZES[shape], holes, steps, weights)
        return move(piece, rotation, column, y, 0, 0, rows, weights) + value

    return Kernels(move, last, board, prepare, leaf)


@kernel
def terms_of_move(piece, rotation, column, y, lines, own, rows, weights, terms):
    terms[LANDING] = y + 0.5 * (HEIGHTS[piece, rotation] - 1)
    terms[ERODED] = lines * own
    terms[LINES] = lines


@kernel
def terms_of_board(columns, rows, weights, terms):
    packed, filled, holes, steps = counts(columns, rows)
    terms[ROW] = np.int64(packed & FIELD)
    terms[COLUMN] = np.int64(packed >> CHANGES & FIELD)
    terms[HOLES] = np.int64(packed >> HEIGHTS_AT & FIELD) - filled
    terms[DEPTH] = filled - np.int64(packed >> STANDING & FIELD)
    terms[WELLS] = np.int64(packed >> WELLS_AT)
    terms[ROWS] = popcount(holes)
    terms[DIVERSITY] = popcount(steps)


@dataclass(frozen=True)
class Linear(Heuristic):
    """A weighted sum of some of ten features of a placement.

    Of the placement: `landing_height` (rows beneath its lowest cell plus half its height less one), `eroded_cells`
    (lines times the piece's own cells in them), `lines`. Of the board after clearing: `row_transitions` (filled to
    empty and back along rows, walls filled, so 2 for an empty row), `column_transitions` (floor filled, above the
    field empty), `holes` (empty cells with a filled one above in their column), `hole_depth` (filled cells directly
    above a hole), `wells` (an empty cell whose left and right neighbours are filled counts the empty run from itself
    downwards), `rows_with_holes`, `diversity` (how many of −2 to 2 occur among the height differences of neighbours).
    """

    slots: ClassVar[tuple[str, ...]] = FEATURES
    board_slots: ClassVar[tuple[str, ...]] = FEATURES[ROW:]

    @classmethod
    def kernels(cls, clears: bool = True) -> Kernels:
        return _kernels(cls, clears)

    @classmethod
    def term_kernels(cls) -> tuple[Any, Any]:
        return terms_of_move, terms_of_board


def linear(features: Iterable[str]) -> type[Linear]:
    """The class of weighted sums of some features, whose weights are 0 by default; a ValueError for what is none.

    >>> linear(["lines", "holes"])(holes=-1).to_json()
    {'name': 'linear-25', 'lines': 0.0, 'holes': -1}
    """
    asked = list(features)
    if not asked or len(set(map(str, asked))) < len(asked) or not set(map(str, asked)) <= set(FEATURES):
        raise ValueError(f"features are {asked!r}; expected some of {', '.join(FEATURES)}, each once")
    return _linear(tuple(name for name in FEATURES if name in asked))


@cache
def _linear(features: tuple[str, ...]) -> type[Linear]:
    name = "linear-" + "".join(str(FEATURES.index(feature)) for feature in features)  # kernels are told apart by it
    fields = [(feature, float, field(default=0.0)) for feature in features]
    namespace = {"name": name, "term_names": features, "__module__": __name__}
    return make_dataclass("Features", fields, bases=(Linear,), namespace=namespace, frozen=True)
