"""`two-tetrad`: where the tetrad lies, holes and what covers them, the surface (the Cornell heuristic document).

As in `linear.py`, a placement changes only what its own columns and those beside them add. The one exception are the
spaces beside holes: they are followed along a row from the piece's columns outwards as far as the row is free.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mergefall.kernels import kernel
from mergefall.tetris.field import field_mask, height_of, holes_in
from mergefall.tetris.heuristics.base import Heuristic, Memo
from mergefall.tetris.pieces import HEIGHTS, MASKS, NAMES, SIZES, WIDTHS, rotations
from mergefall.tetris.rules import MOST_COLS
from mergefall.words import popcount

U = np.uint64

# Mean height of a piece's cells above the row of its lowest one, by piece and rotation.
MIDDLES = np.zeros(HEIGHTS.shape)
for _piece, _name in enumerate(NAMES):
    for _rotation, _cells in enumerate(rotations(_name)):
        MIDDLES[_piece, _rotation] = HEIGHTS[_piece, _rotation] - 1 - np.mean([row for row, _ in _cells])

# Four counts packed into one word, so that they are added at once: bits 0-15 heights, 16-31 cover (`of_column`), 32-47
# spaces beside holes, 48-63 roughness, which may be negative.
FIELD = U(0xFFFF)
COVER, SPACES, ROUGH = U(16), U(32), U(48)


@kernel
def of_column(column):
    """The counts of one column: height, and cover, the rows from its lowest space down to its topmost hole."""
    height, holes = height_of(column), holes_in(column)
    cover = height - height_of(holes) + 1 if holes else 0
    return U(height) | U(cover) << COVER


@kernel
def of_pair(left, right, index, cols):
    """The roughness between two neighbouring columns, the right one being column `index`; signed at the walls."""
    step = height_of(right) - height_of(left)
    if index == 1:
        return U(step) << ROUGH
    if index == cols - 1:
        return U(-step) << ROUGH
    return U(abs(step)) << ROUGH


@kernel
def placement_terms(piece, rotation, column, y, lines, own, rows):
    return (lines,)


@kernel
def last_terms(piece, rotation, column, y, rows):
    return rows - y, rows - y - HEIGHTS[piece, rotation] + 1, rows - y - MIDDLES[piece, rotation]


@kernel(forceinline=True)
def terms_of(packed, filled, area):
    holes, roughness = np.int64(packed & FIELD) - filled, np.int64(packed) >> np.int64(ROUGH)
    cover, spaces = np.int64(packed >> COVER & FIELD), np.int64(packed >> SPACES & FIELD)
    return area - holes, area - roughness, area - cover, spaces


@kernel(forceinline=True)
def board_terms(columns, rows, weights):
    wall, cols = field_mask(rows), columns.size
    packed, filled, seen = U(0), 0, U(0)
    for i in range(cols):
        column = columns[i]
        packed += of_column(column)
        if i:
            packed += of_pair(columns[i - 1], column, i, cols)
        filled += popcount(column)
        holes, spaces = holes_in(column), ~field_mask(height_of(column)) & wall
        packed += U(popcount(spaces & seen)) << SPACES  # seen: rows in which only spaces lie between here and a hole
        seen = holes | (spaces & seen)
    seen = U(0)
    for k in range(cols):
        column = columns[cols - 1 - k]
        spaces = ~field_mask(height_of(column)) & wall
        packed += U(popcount(spaces & seen)) << SPACES
        seen = holes_in(column) | (spaces & seen)
    return terms_of(packed, filled, rows * cols)


# The memo of a board: the number of filled cells; the columns, and the spaces above them, with a wall on either side;
# and six words for each border between columns, about the columns on its left and on its right:
#
#   LEFT, RIGHT              the counts as if the border were a wall, without the pair of columns across it
#   FULL_LEFT, FULL_RIGHT    rows that are full there
#   SEEN_LEFT, SEEN_RIGHT    rows in which only spaces lie between the border and a hole
LEFT, RIGHT, FULL_LEFT, FULL_RIGHT, SEEN_LEFT, SEEN_RIGHT = (U(i) for i in range(6))
BORDER = U(6)
FILLED = BORDER * U(MOST_COLS + 1)
WALLED = FILLED + U(2)  # the first column
FREE = WALLED + U(MOST_COLS + 2)  # the first column's spaces


@kernel
def seen_leftwards(seen, memo, border):
    """The number of spaces along the rows `seen` from a border to the left, up to the first cell that is no space."""
    count, at = 0, FREE + border - U(1)
    seen &= memo[at]
    while seen:
        count += popcount(seen)
        at -= U(1)
        seen &= memo[at]
    return U(count) << SPACES


@kernel
def seen_rightwards(seen, memo, border):
    """Like `seen_leftwards`, to the right."""
    count, at = 0, FREE + border
    seen &= memo[at]
    while seen:
        count += popcount(seen)
        at += U(1)
        seen &= memo[at]
    return U(count) << SPACES


@kernel
def prepare(columns, rows, memo):
    wall, cols = field_mask(rows), columns.size
    end = U(cols)
    memo[WALLED - U(1)] = memo[WALLED + end] = wall
    memo[FREE - U(1)] = memo[FREE + end] = U(0)
    filled = 0
    for i in range(end):
        memo[WALLED + i] = columns[i]
        memo[FREE + i] = ~field_mask(height_of(columns[i])) & wall
        filled += popcount(columns[i])
    memo[FILLED] = U(filled)
    packed, full, seen = U(0), wall, U(0)
    for i in range(end + U(1)):
        at = BORDER * i
        memo[at + LEFT], memo[at + FULL_LEFT], memo[at + SEEN_LEFT] = packed, full, seen
        if i < end:
            column, holes, spaces = memo[WALLED + i], holes_in(memo[WALLED + i]), memo[FREE + i]
            packed += of_column(column) + (U(popcount(spaces & seen)) << SPACES) + seen_leftwards(holes, memo, i)
            if i:
                packed += of_pair(memo[WALLED + i - U(1)], column, np.int64(i), cols)
            full &= column
            seen = holes | (spaces & seen)
    packed, full, seen = U(0), wall, U(0)
    for k in range(end + U(1)):
        i = end - k
        at = BORDER * i
        memo[at + RIGHT], memo[at + FULL_RIGHT], memo[at + SEEN_RIGHT] = packed, full, seen
        if i:
            column, holes = memo[WALLED + i - U(1)], holes_in(memo[WALLED + i - U(1)])
            spaces = memo[FREE + i - U(1)]
            packed += of_column(column) + (U(popcount(spaces & seen)) << SPACES) + seen_rightwards(holes, memo, i)
            if i < end:
                packed += of_pair(column, memo[WALLED + i], np.int64(i), cols)
            full &= column
            seen = holes | (spaces & seen)


@kernel(forceinline=True)
def after(columns, memo, piece, rotation, column, y, rows, scratch):
    cols = columns.size
    width, first, wall = U(WIDTHS[piece, rotation]), U(column), field_mask(rows)
    left, right = BORDER * first, BORDER * (first + width)
    packed = memo[left + LEFT] + memo[right + RIGHT]
    full = memo[left + FULL_LEFT] & memo[right + FULL_RIGHT]
    seen, before = memo[left + SEEN_LEFT], memo[WALLED + first - U(1)]
    for i in range(width):
        new = memo[WALLED + first + i] | MASKS[piece, rotation, i] << U(y)
        scratch[i] = new
        full &= new
        packed += of_column(new)
        if first + i > 0:
            packed += of_pair(before, new, column + np.int64(i), cols)
        spaces = ~field_mask(height_of(new)) & wall
        packed += U(popcount(spaces & seen)) << SPACES
        seen = holes_in(new) | (spaces & seen)
        before = new
    if first + width < U(cols):
        packed += of_pair(before, memo[WALLED + first + width], column + np.int64(width), cols)
    packed += seen_rightwards(seen, memo, first + width)
    seen = memo[right + SEEN_RIGHT]
    for k in range(width):
        new = scratch[width - U(1) - k]
        spaces = ~field_mask(height_of(new)) & wall
        packed += U(popcount(spaces & seen)) << SPACES
        seen = holes_in(new) | (spaces & seen)
    packed += seen_leftwards(seen, memo, first)
    return full, terms_of(packed, np.int64(memo[FILLED]) + SIZES[piece], rows * cols)


@dataclass(frozen=True)
class TwoTetrad(Heuristic):
    """Weigh where the piece lies, holes with what lies above and beside them, and the surface.

    Terms; rows count from 1 at the top, A = rows · cols, h are heights, and a space is an empty cell that is no hole:

    - `f1`, `f2`, `f3`: the largest, smallest and mean row of the last placement's cells
    - `f4`: A − holes
    - `f5`: lines, of all placements
    - `f6`: A − roughness; for ten columns roughness = (h2−h1) + |h2−h3| + … + |h8−h9| + (h9−h10)
    - `f7`: A − Σ over columns with a hole of (row of the topmost hole − row of the lowest space)
    - `f8`: Σ over holes of the consecutive spaces on their left and right

    f4, f6, f7 and f8 are of the board after clearing. The document counts heights from the top, which contradicts its
    aims: f6 would punish stacks at the walls, and f7 would reward cover. Here heights count upwards.

    Weights by name (`weights=`): "start", the document's hand-made ones; "first-run", the default, after its first
    tuning run; "tuned". The document's final weights are lost. "tuned" was found by its method from the same start:
    random-restart hill climbing with the shallow search, slides included, on 10×10 (`mergefall tune`; the command and
    its record are with the suite `tetris`).

    Source: the heuristic-function document of Cornell's BOOM 1999 two-tetrad player.

    Example:
        >>> from mergefall.tetris import place
        >>> TwoTetrad().terms(place("..../..../..../##.#", "T", rotation=2, column=1))
        {'f1': 4.0, 'f2': 3.0, 'f3': 3.25, 'f4': 16.0, 'f5': 1.0, 'f6': 15.0, 'f7': 16.0, 'f8': 0.0}
    """

    name: ClassVar[str] = "two-tetrad"
    term_names: ClassVar[tuple[str, ...]] = ("f1", "f2", "f3", "f4", "f5", "f6", "f7", "f8")
    placement_names: ClassVar[tuple[str, ...]] = ("f5",)
    last_names: ClassVar[tuple[str, ...]] = ("f1", "f2", "f3")
    board_names: ClassVar[tuple[str, ...]] = ("f4", "f6", "f7", "f8")
    placement_kernel: ClassVar[Any] = placement_terms
    last_kernel: ClassVar[Any] = last_terms
    terms_kernel: ClassVar[Any] = board_terms
    memo: ClassVar[Memo] = Memo(prepare, after)
    vectors: ClassVar[Mapping[str, Mapping[str, float]]] = {
        "start": dict(zip(term_names, (10, 10, 10, 300, 500, 10, 50, 10), strict=True)),
        "first-run": dict(zip(term_names, (40, 20, 10, 300, 490, 70, 50, 20), strict=True)),
        "tuned": dict(
            zip(term_names, (48.746, 22.6885, 22.5545, 301.884, 89.7822, 42.0039, 18.3569, 2.75875), strict=True)
        ),
    }

    f1: float = 40.0
    f2: float = 20.0
    f3: float = 10.0
    f4: float = 300.0
    f5: float = 490.0
    f6: float = 70.0
    f7: float = 50.0
    f8: float = 20.0
