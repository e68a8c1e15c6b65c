"""`two-tetrad`: where the tetrad lies, holes and what covers them, the surface (the Cornell heuristic document).

As in `linear.py`, a placement changes only what its own columns and those beside them add. The one exception are the
spaces beside holes: they are followed along a row from the piece's columns outwards as far as the row is free.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mergefall.kernels import kernel
from mergefall.tetris.field import field_mask, height_of, holes_in
from mergefall.tetris.heuristics.base import Heuristic, Memo, lines_cleared
from mergefall.tetris.pieces import HEIGHTS, MASKS, OFFSETS, SIZES, WIDTHS
from mergefall.tetris.rules import MOST_COLS
from mergefall.weighted import Terms
from mergefall.words import popcount

U = np.uint64

# Mean height of a piece's cells above the row of its lowest one, by piece and rotation.
MIDDLES = OFFSETS / SIZES[:, None]

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
def last_terms(piece, rotation, column, y, rows):
    return rows - y, rows - y - HEIGHTS[piece, rotation] + 1, rows - y - MIDDLES[piece, rotation]


@kernel(forceinline=True)
def terms_of(packed, filled, area):
    holes, roughness = np.int64(packed & FIELD) - filled, np.int64(packed) >> np.int64(ROUGH)
    cover, spaces = np.int64(packed >> COVER & FIELD), np.int64(packed >> SPACES & FIELD)
    return area - holes, area - roughness, area - cover, spaces


# The memo of a board: the number of filled cells; the columns, and the spaces above them, with a wall on either side;
# and six words for each border between columns: three about the columns on its left, each followed by the same of those
# on its right. COUNTS are the counts as if the border were a wall, without the pair of columns across it; FULL the full
# rows; SEEN the rows in which only spaces lie between the border and a hole.
COUNTS, FULL, SEEN, BORDER = (U(i) for i in range(0, 8, 2))
FILLED = BORDER * U(MOST_COLS + 1)
WALLED = FILLED + U(2)  # the first column
FREE = WALLED + U(MOST_COLS + 2)  # the first column's spaces
RIGHTWARDS, LEFTWARDS = U(1), ~U(0)


@kernel
def spaces_along(seen, memo, at, step):
    """The number of spaces along the rows `seen`, from the spaces `memo[at]` on up to the first cell that is none."""
    count = 0
    seen &= memo[at]
    while seen:
        count += popcount(seen)
        at += step
        seen &= memo[at]
    return U(count) << SPACES


@kernel
def prepare(columns, rows, memo):
    wall, cols, end, filled = field_mask(rows), columns.size, U(columns.size), 0
    memo[WALLED - U(1)] = memo[WALLED + end] = wall
    memo[FREE - U(1)] = memo[FREE + end] = U(0)
    for i in range(end):
        memo[WALLED + i] = columns[i]
        memo[FREE + i] = ~field_mask(height_of(columns[i])) & wall
        filled += popcount(columns[i])
    memo[FILLED] = U(filled)
    for side in range(U(2)):
        packed, full, seen = U(0), wall, U(0)
        outwards = RIGHTWARDS if side else LEFTWARDS
        for k in range(end + U(1)):
            border = end - k if side else k
            at, i = BORDER * border + side, border - side  # `i`: the next column
            memo[at + COUNTS], memo[at + FULL], memo[at + SEEN] = packed, full, seen
            if k < end:
                column, spaces = memo[WALLED + i], memo[FREE + i]
                holes = holes_in(column)
                packed += of_column(column) + (U(popcount(spaces & seen)) << SPACES)
                packed += spaces_along(holes, memo, FREE + i + outwards, outwards)
                if k:
                    right = i + side  # the pair's right column
                    packed += of_pair(memo[WALLED + right - U(1)], memo[WALLED + right], np.int64(right), cols)
                full &= column
                seen = holes | (spaces & seen)


@kernel(forceinline=True)
def after(columns, memo, piece, rotation, column, y, rows, scratch):
    cols = columns.size
    width, first, wall = U(WIDTHS[piece, rotation]), U(column), field_mask(rows)
    left, right = BORDER * first, BORDER * (first + width) + U(1)
    packed = memo[left + COUNTS] + memo[right + COUNTS]
    full = memo[left + FULL] & memo[right + FULL]
    seen, before = memo[left + SEEN], memo[WALLED + first - U(1)]
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
    packed += spaces_along(seen, memo, FREE + first + width, RIGHTWARDS)
    seen = memo[right + SEEN]
    for k in range(width):
        new = scratch[width - U(1) - k]
        spaces = ~field_mask(height_of(new)) & wall
        packed += U(popcount(spaces & seen)) << SPACES
        seen = holes_in(new) | (spaces & seen)
    packed += spaces_along(seen, memo, FREE + first - U(1), LEFTWARDS)
    return full, terms_of(packed, np.int64(memo[FILLED]) + SIZES[piece], rows * cols)


@kernel
def board_terms(columns, rows, weights):
    # In one pass each way, because a search asks for it where a placement clears rows.
    wall, cols = field_mask(rows), columns.size
    packed, filled, seen = U(0), 0, U(0)
    for i in range(cols):
        column = columns[i]
        holes, spaces = holes_in(column), ~field_mask(height_of(column)) & wall
        packed += of_column(column) + (U(popcount(spaces & seen)) << SPACES)
        if i:
            packed += of_pair(columns[i - 1], column, i, cols)
        filled += popcount(column)
        seen = holes | (spaces & seen)
    seen = U(0)
    for k in range(cols):
        column = columns[cols - 1 - k]
        spaces = ~field_mask(height_of(column)) & wall
        packed += U(popcount(spaces & seen)) << SPACES
        seen = holes_in(column) | (spaces & seen)
    return terms_of(packed, filled, rows * cols)


@dataclass(frozen=True)
class TwoTetrad(Heuristic):
    """Weigh where the piece lies, holes with what lies above and beside them, and the surface.

    Terms; rows count from 1 at the top, A = rows · cols, h are heights, and a space is an empty cell that is no hole:

    - `f1`, `f2`, `f3`: the largest, smallest and mean row of the last placement's cells
    - `f4`: A − holes
    - `f5`: lines, of all placements
    - `f6`: A − roughness; for ten columns roughness = (h2−h1) + abs(h2−h3) + … + abs(h8−h9) + (h9−h10)
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

    name = "two-tetrad"
    term_names = ("f1", "f2", "f3", "f4", "f5", "f6", "f7", "f8")
    of_placement = Terms(("f5",), lines_cleared)
    of_last = Terms(("f1", "f2", "f3"), last_terms)
    of_board = Terms(("f4", "f6", "f7", "f8"), board_terms)
    memo = Memo(prepare, after)
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
