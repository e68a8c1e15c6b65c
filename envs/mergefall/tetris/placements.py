"""Actions and placements: the meaning of an action number, which actions are legal, where each comes to rest.

    drop     action = rotation · cols + column
    slide    action = slide · 4 · cols + rotation · cols + column      slide 0 none, 1 left, 2 right

`column` is the piece's leftmost column when it is dropped. A slide drops the piece, moves it one column if the cells
there are free, and lets it fall to rest. An action that ends in the cells of a lower legal action is illegal.
"""

from __future__ import annotations

import numpy as np

from mergefall.kernels import kernel
from mergefall.tetris.field import fall, is_free, landing
from mergefall.tetris.pieces import WIDTHS

ROTATIONS = 4
SLIDES = 3  # of placements "slide"
STEPS = np.array([0, -1, 1], dtype=np.int64)  # columns that slide 0, 1, 2 moves by

# A placement in one integer: row, column and rotation at rest, 8 bits each, then the action that leads there.
ROW_SHIFT, COLUMN_SHIFT, ROTATION_SHIFT, ACTION_SHIFT = 0, 8, 16, 24
BYTE = 255


@kernel
def at_rest(placement):
    """(rotation, the piece's leftmost column, the row of its lowest cell) at rest."""
    return placement >> ROTATION_SHIFT & BYTE, placement >> COLUMN_SHIFT & BYTE, placement >> ROW_SHIFT & BYTE


@kernel
def action_of(placement):
    """The action that leads there."""
    return placement >> ACTION_SHIFT


@kernel
def _slid(columns, piece, rotation, column, step):
    """The row in which a piece dropped at `column` rests after it moved one column by `step`.

    -1 if it cannot move, or if it would rest where a drop in that column ends. It would whenever the drop at `column`
    ends no lower than the drop in the next column.
    """
    y, end = landing(columns, piece, rotation, column), column + step
    if end < 0 or end + WIDTHS[piece, rotation] > columns.size or y >= landing(columns, piece, rotation, end):
        return -1
    return fall(columns, piece, rotation, end, y) if is_free(columns, piece, rotation, end, y) else -1


@kernel
def row_at_rest(columns, piece, slide, rotation, column):
    """The row in which a placement within the walls comes to rest, or -1 if it is illegal.

    Distinct rotations differ in shape, so two placements fill the same cells only if rotation, column and row agree. A
    slide can thus only repeat the drop in the column it ends in, or the slide into that column from the other side.
    """
    if slide == 0:
        return landing(columns, piece, rotation, column)
    step = STEPS[slide]
    y, beyond = _slid(columns, piece, rotation, column, step), column + 2
    if y >= 0 and slide == 2 and beyond + WIDTHS[piece, rotation] <= columns.size:
        if y == _slid(columns, piece, rotation, beyond, -step):
            return -1
    return y


@kernel
def packed(y, column, rotation, action):
    return y << ROW_SHIFT | column << COLUMN_SHIFT | rotation << ROTATION_SHIFT | action << ACTION_SHIFT


@kernel
def rest(columns, piece, action, slides):
    """(rotation, column, y) at rest, where an action leads; y is -1 if the action is illegal."""
    cols = columns.size
    turn, column = action // cols, action % cols
    slide, rotation = turn // ROTATIONS, turn % ROTATIONS
    width = WIDTHS[piece, rotation]
    if width == 0 or column + width > cols or (slide > 0 and not slides):
        return rotation, column, -1
    if slide == 0:  # without another call
        return rotation, column, landing(columns, piece, rotation, column)
    return rotation, column + STEPS[slide], row_at_rest(columns, piece, slide, rotation, column)


@kernel
def rest_of(columns, piece, action, slides):
    """`rest` in one integer, -1 if the action is illegal."""
    rotation, column, y = rest(columns, piece, action, slides)
    return packed(y, column, rotation, action) if y >= 0 else -1


@kernel
def list_placements(columns, piece, with_slides, placements):
    """Write all legal placements of a piece in the order of actions; returns their number.

    - `columns`: uint64[cols], the board.
    - `placements`: int64[4 · cols], with slides int64[12 · cols], to write into.
    """
    count = 0
    for action in range((SLIDES if with_slides else 1) * ROTATIONS * columns.size):
        placement = rest_of(columns, piece, action, with_slides)
        if placement >= 0:
            placements[count] = placement
            count += 1
    return count
