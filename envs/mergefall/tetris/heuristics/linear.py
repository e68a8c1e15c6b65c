"""Weighted sums of ten features of a placement: the controllers of the literature (`controllers.py`) use some of them.

All counts are counts of bits in columns (`field.py`); walls are columns that are full up to the field's top. The slow
twin is `reference.py`.

Sources: C. Fahey, Tetris (2003), for P. Dellacherie's controller; C. Thiery & B. Scherrer, Building controllers for
Tetris (2009), for the definitions.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, make_dataclass
from functools import cache
from inspect import get_annotations
from typing import Any

import numpy as np

from mergefall.kernels import kernel
from mergefall.tetris.field import field_mask, height_of, holes_in
from mergefall.tetris.heuristics.base import Heuristic, Memo
from mergefall.tetris.pieces import HEIGHTS, MASKS, SIZES, WIDTHS
from mergefall.tetris.rules import MOST_COLS
from mergefall.typing import Kernel
from mergefall.weighted import Terms
from mergefall.words import popcount, trailing_zeros

U = np.uint64
OF_PLACEMENT = ("landing_height", "eroded_cells", "lines")
OF_BOARD = ("row_transitions", "column_transitions", "holes", "hole_depth", "wells", "rows_with_holes", "diversity")
FEATURES = OF_PLACEMENT + OF_BOARD

# Five counts packed into one word, so that they are added at once: bits 0-11 row transitions, 12-23 column transitions,
# 24-35 heights, 36-47 cells that stand on the floor without a gap, 48-63 wells. No sum overflows: 16 columns of 40 rows
# stay below 2¹² and 2¹⁶. Two more counts follow from them and the number of filled cells: holes = heights − filled; and
# hole depth = filled − standing, because every run of filled cells stands on the floor or directly above a hole.
FIELD = U(0xFFF)
CHANGES, HEIGHTS_AT, STANDING, WELLS_AT = U(12), U(24), U(36), U(48)


@kernel
def placement_terms(piece, rotation, column, y, lines, own, rows):
    return y + 0.5 * (HEIGHTS[piece, rotation] - 1), lines * own, lines


@kernel
def of_column(column):
    """The counts of one column: column transitions (floor filled, above the field empty), height, standing cells."""
    changes = U(popcount(column ^ (column << U(1) | U(1)))) << CHANGES
    return changes | U(height_of(column)) << HEIGHTS_AT | U(trailing_zeros(~column)) << STANDING


@kernel
def of_wells(wells, empty):
    """Cumulative wells: each cell in `wells` counts the run of `empty` cells from itself downwards."""
    second = wells >> U(1) & empty
    count = popcount(wells) + popcount(second)  # the usual case, without a branch
    wells = second >> U(1) & empty
    while wells:
        count += popcount(wells)
        wells = wells >> U(1) & empty
    return U(count) << WELLS_AT


@kernel
def of_step(left, right):
    """The height difference from one column to the next as a bit, 0 to 4 for −2 to 2; 0 for a larger difference."""
    step = height_of(right) - height_of(left) + 2
    return U(1) << U(step) if 0 <= step <= 4 else U(0)


# The memo of a board: its columns with two walls on either side, and the counts of each; their filled cells; and
# eight words for each border between columns, from the left wall to the right: four about the columns on its left, each
# followed by the same of those on its right. COUNTS are the five counts, without the pair of columns across the border;
# FULL the full rows; HOLES the rows with holes; STEPS the steps between columns.
COUNTS, FULL, HOLES, STEPS, BORDER = (U(i) for i in range(0, 10, 2))
FILLED = BORDER * U(MOST_COLS + 1)
WALLED = FILLED + U(3)  # the first column
OWN = U(MOST_COLS + 2)  # from a column to its own counts


@cache
def _terms(with_steps: bool) -> Kernel:
    """The kernel that makes terms of what was counted; diversity only where a heuristic wants it."""

    @kernel(forceinline=True)
    def terms_of(packed, filled, holes, steps):
        terms = (
            np.int64(packed & FIELD),
            np.int64(packed >> CHANGES & FIELD),
            np.int64(packed >> HEIGHTS_AT & FIELD) - filled,
            filled - np.int64(packed >> STANDING & FIELD),
            np.int64(packed >> WELLS_AT),
            popcount(holes),
        )
        return (*terms, popcount(steps)) if with_steps else terms

    return terms_of


@cache
def _kernels(with_steps: bool) -> tuple[Kernel, Memo]:
    """The kernel of the board's terms, and the memo."""
    terms_of = _terms(with_steps)

    @kernel
    def prepare(columns, rows, memo):
        wall, cols, filled = field_mask(rows), U(columns.size), 0
        memo[WALLED - U(2)] = memo[WALLED - U(1)] = memo[WALLED + cols] = memo[WALLED + cols + U(1)] = wall
        for i in range(cols):
            memo[WALLED + i] = columns[i]
            filled += popcount(columns[i])
        memo[FILLED] = U(filled)
        for i in range(WALLED, WALLED + cols):
            column = memo[i]
            memo[i + OWN] = of_column(column) + of_wells(memo[i - U(1)] & memo[i + U(1)] & ~column, ~column)
        for side in range(U(2)):
            packed, full, holes, steps = U(0), wall, U(0), U(0)
            for k in range(cols + U(1)):
                border = cols - k if side else k
                at, here = BORDER * border + side, WALLED + border - side  # `here`: the next column
                memo[at + COUNTS], memo[at + FULL], memo[at + HOLES], memo[at + STEPS] = packed, full, holes, steps
                if k < cols:
                    before, column, after = memo[here - U(1)], memo[here], memo[here + U(1)]
                    packed += memo[here + OWN] + U(popcount((after if side else before) ^ column))
                    full &= column
                    holes |= holes_in(column)
                    if with_steps and k > 0:
                        steps |= of_step(column, after) if side else of_step(before, column)

    @kernel(forceinline=True)
    def after(columns, memo, piece, rotation, column, y, rows, scratch):
        first, width = U(column), U(WIDTHS[piece, rotation])
        at, left, right = WALLED + first, BORDER * first, BORDER * (first + width) + U(1)
        packed = memo[left + COUNTS] + memo[right + COUNTS]
        full = memo[left + FULL] & memo[right + FULL]
        holes = memo[left + HOLES] | memo[right + HOLES]
        steps = memo[left + STEPS] | memo[right + STEPS]
        before = memo[at - U(1)]
        cells = MASKS[piece, rotation, U(0)] << U(y)
        beside = cells & memo[at - U(2)] & ~before  # the piece makes these cells on its left wells
        packed += of_wells(beside, ~before)
        new = memo[at] | cells
        for i in range(width):
            following = memo[at + i + U(1)]
            if i + U(1) < width:
                cells = MASKS[piece, rotation, i + U(1)] << U(y)
                following |= cells
            packed += U(popcount(before ^ new)) + of_wells(before & following & ~new, ~new) + of_column(new)
            full &= new
            holes |= holes_in(new)
            if with_steps and (i > 0 or column > 0):
                steps |= of_step(before, new)
            before, new = new, following
        packed += U(popcount(before ^ new))
        beside = cells & memo[at + width + U(1)] & ~new
        packed += of_wells(beside, ~new)
        if with_steps and column + WIDTHS[piece, rotation] < columns.size:
            steps |= of_step(before, new)
        return full, terms_of(packed, np.int64(memo[FILLED]) + SIZES[piece], holes, steps)

    @kernel
    def board_terms(columns, rows, weights):
        # In one pass, because a search asks for it where a placement clears rows.
        wall, cols = field_mask(rows), columns.size
        packed, filled, holes, steps, before = U(0), 0, U(0), U(0), wall
        for i in range(cols):
            column, after = columns[i], columns[i + 1] if i + 1 < cols else wall
            packed += U(popcount(before ^ column)) + of_column(column) + of_wells(before & after & ~column, ~column)
            filled += popcount(column)
            holes |= holes_in(column)
            if with_steps and i:
                steps |= of_step(before, column)
            before = column
        return terms_of(packed + U(popcount(before ^ wall)), filled, holes, steps)

    return board_terms, Memo(prepare, after)


@dataclass(frozen=True)
class Linear(Heuristic):
    """A weighted sum of some of ten features; a subclass's fields are the features it counts and their weights.

    Inherited fields count, too.

    Features of the placement:

    - `landing_height`: rows beneath its lowest cell + (its height − 1) / 2
    - `eroded_cells`: lines · the piece's own cells in them
    - `lines`: rows cleared

    Features of the board after clearing:

    - `row_transitions`: changes between filled and empty along rows; walls are filled, so an empty row has 2
    - `column_transitions`: the same along columns; the floor is filled, above the field is empty
    - `holes`: empty cells with a filled cell above in their column
    - `hole_depth`: filled cells directly above a hole, summed over holes
    - `wells`: each empty cell between two filled neighbours counts the empty cells from itself downwards
    - `rows_with_holes`: rows with a hole
    - `diversity`: how many of the values −2 to 2 occur among the height differences of neighbouring columns
    """

    of_placement = Terms(OF_PLACEMENT, placement_terms)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """The features that a subclass has weights for are its terms, in the order of its fields."""
        fields = (name for base in reversed(cls.__mro__) for name in get_annotations(base))
        cls.term_names = tuple(dict.fromkeys(name for name in fields if name in FEATURES))
        wanted = OF_BOARD[-1] in cls.term_names
        board_terms, cls.memo = _kernels(wanted)
        cls.of_board = Terms(OF_BOARD if wanted else OF_BOARD[:-1], board_terms)
        super().__init_subclass__(**kwargs)


def linear(features: Iterable[str]) -> type[Linear]:
    """A class of weighted sums of these features, all weights 0 by default.

    Raises ValueError for an unknown or repeated feature, or none.

    >>> linear(["lines", "holes"])(holes=-1).to_json()
    {'name': 'linear-25', 'lines': 0.0, 'holes': -1}
    """
    names = list(features)
    if not names or len(set(map(str, names))) < len(names) or not set(map(str, names)) <= set(FEATURES):
        raise ValueError(f"features are {names!r}; expected some of {', '.join(FEATURES)}, each once")
    return _linear(tuple(name for name in FEATURES if name in names))


@cache
def _linear(features: tuple[str, ...]) -> type[Linear]:
    name = "linear-" + "".join(str(FEATURES.index(feature)) for feature in features)
    fields = [(feature, float, field(default=0.0)) for feature in features]
    namespace = {"name": name, "__module__": __name__, "__reduce__": _reduced}
    return make_dataclass("Features", fields, bases=(Linear,), namespace=namespace, frozen=True)


def _reduced(self: Linear) -> Any:
    return _of_features, (asdict(self),)


def _of_features(weights: dict[str, float]) -> Linear:
    return _linear(tuple(weights))(**weights)
