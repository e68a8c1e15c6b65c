"""Actions and placements: what an action number means, which actions are legal, where each comes to rest.

    drop     action = rotation · cols + column
    slide    action = slide · 4 · cols + rotation · cols + column      slide 0 none, 1 left, 2 right

`column` is the piece's leftmost column when it is dropped. A slide drops, moves one column if the cells there are free,
and falls to rest. An action that ends in the cells of a lower legal one is illegal.
"""

from __future__ import annotations

import numpy as np

from mergefall.kernels import kernel
from mergefall.tetris.field import fall, is_free, landing
from mergefall.tetris.pieces import WIDTHS

ROTATIONS = 4
SLIDES = 3  # of placements "slide"
STEPS = np.array([0, -1, 1], dtype=np.int64)  # columns that slide 0, 1, 2 moves by

# A placement in one integer: where it comes to rest, and the action that puts it there.
COLUMN_SHIFT, ROTATION_SHIFT, ACTION_SHIFT = 8, 16, 24


@kernel
def row_of(placement):
    """The row y in which the piece rests."""
    return placement & 255


@kernel
def column_of(placement):
    """The piece's leftmost column at rest."""
    return placement >> COLUMN_SHIFT & 255


@kernel
def rotation_of(placement):
    """The piece's rotation."""
    return placement >> ROTATION_SHIFT & 255


@kernel
def action_of(placement):
    """The action that leads there."""
    return placement >> ACTION_SHIFT


@kernel
def _slid(columns, piece, rotation, column, step):
    """The row in which a piece dropped at `column` rests after it moved one column by `step`.

    -1 if it cannot move, and if it would only come to rest where a drop in that column ends: so it does whenever it
    moves no lower than that.
    """
    y, end = landing(columns, piece, rotation, column), column + step
    if end < 0 or end + WIDTHS[piece, rotation] > columns.size or y >= landing(columns, piece, rotation, end):
        return -1
    return fall(columns, piece, rotation, end, y) if is_free(columns, piece, rotation, end, y) else -1


@kernel
def row_at_rest(columns, piece, slide, rotation, column):
    """The row in which a placement within the walls comes to rest, or -1 if it is illegal.

    Placements are the same cells if rotation, column and row agree, for distinct rotations differ in shape. So a slide
    can only repeat the drop in the column it ends in, or a slide into that column from the other side.
    """
    if slide == 0:
        return landing(columns, piece, rotation, column)
    step = 2 * slide - 3  # left, right
    y, beyond = _slid(columns, piece, rotation, column, step), column + 2
    if y >= 0 and slide == 2 and beyond + WIDTHS[piece, rotation] <= columns.size:
        if y == _slid(columns, piece, rotation, beyond, -step):
            return -1
    return y


@kernel
def packed(y, column, rotation, action):
    """A placement in one integer."""
    return y | column << COLUMN_SHIFT | rotation << ROTATION_SHIFT | action << ACTION_SHIFT


@kernel
def drop_of(columns, piece, action):
    """What `rest_of` returns where only drops are actions: no slides for Numba to compile."""
    rotation, column = action // columns.size, action % columns.size
    width = WIDTHS[piece, rotation]
    if width == 0 or column + width > columns.size:
        return -1
    return packed(landing(columns, piece, rotation, column), column, rotation, action)


@kernel
def rest_of(columns, piece, action, with_slides):
    """The placement that an action leads to, or -1 if it is illegal."""
    cols = columns.size
    slide, rotation, column = action // (ROTATIONS * cols), action // cols % ROTATIONS, action % cols
    width = WIDTHS[piece, rotation]
    if width == 0 or column + width > cols or (slide > 0 and not with_slides):
        return -1
    y = row_at_rest(columns, piece, slide, rotation, column)
    if y < 0:
        return -1
    return packed(y, column + STEPS[slide], rotation, action)


@kernel
def list_placements(columns, piece, with_slides, placements):
    """Write all legal placements of a piece into int64[4 · cols] (slides: [12 · cols]), in the order of actions.

    Returns their number. See `row_of`, `column_of`, `rotation_of`, `action_of`.
    """
    count = 0
    for action in range((SLIDES if with_slides else 1) * ROTATIONS * columns.size):
        placement = rest_of(columns, piece, action, with_slides)
        if placement >= 0:
            placements[count] = placement
            count += 1
    return count
