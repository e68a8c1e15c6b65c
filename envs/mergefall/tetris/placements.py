"""Actions and placements: the meaning of an action number, which actions are legal, where each comes to rest.

    drop         action = rotation · cols + column
    slide        action = slide · 4 · cols + rotation · cols + column      slide 0 none, 1 left, 2 right
    reachable    action = (rotation · cols + column) · (rows + 4) + y      at rest, y the row of the lowest cell

`column` is the piece's leftmost column, of a drop and a slide when it is dropped. A slide drops the piece, moves it one
column if the cells there are free, and lets it fall to rest. An action that ends in the cells of a lower legal action
is illegal. A reachable placement is one that `reach.search` finds. With hold there are twice as many actions; the
second half is not known here (`game.py`).

Kernels take `slides`, whether placements slide, and `reach`: the rows of the field if placements are the reachable
ones, else None, for which kernels are compiled without the search.
"""

from functools import cache

import numpy as np

from mergefall.kernels import kernel
from mergefall.tetris.field import fall, is_free, landing
from mergefall.tetris.pieces import WIDTHS
from mergefall.tetris.reach import RESTS, ROTATIONS, is_reachable, new_work, search
from mergefall.typing import Kernel

U = np.uint64
ABOVE = 4  # rows above the field that an action of a reachable placement can name
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
def rest(columns, piece, action, slides, reach):
    """(rotation, column, y) at rest, where an action leads; y is -1 if the action is illegal."""
    cols = columns.size
    if reach is not None:
        drop, y = action // (reach + ABOVE), action % (reach + ABOVE)
        rotation, column = drop // cols, drop % cols
        return rotation, column, y if is_reachable(columns, piece, rotation, column, y, reach) else -1
    turn, column = action // cols, action % cols
    slide, rotation = turn // ROTATIONS, turn % ROTATIONS
    width = WIDTHS[piece, rotation]
    if width == 0 or column + width > cols or (slide > 0 and not slides):
        return rotation, column, -1
    if slide == 0:  # without another call
        return rotation, column, landing(columns, piece, rotation, column)
    return rotation, column + STEPS[slide], row_at_rest(columns, piece, slide, rotation, column)


@kernel
def rest_of(columns, piece, action, slides, reach):
    """`rest` in one integer, -1 if the action is illegal."""
    rotation, column, y = rest(columns, piece, action, slides, reach)
    return packed(y, column, rotation, action) if y >= 0 else -1


@kernel
def list_reachable(columns, piece, rows, placements):
    """`list_placements` of all reachable placements."""
    cols, count = columns.size, 0
    work = new_work(cols)
    search(columns, piece, rows, work)
    for rotation in range(ROTATIONS):
        for column in range(cols):
            rests, y = work[RESTS, rotation, column], 0
            while rests:
                if rests & U(1):
                    action = (rotation * cols + column) * (rows + ABOVE) + y
                    placements[count] = packed(y, column, rotation, action)
                    count += 1
                rests >>= U(1)
                y += 1
    return count


@kernel
def list_placements(columns, piece, slides, reach, placements):
    """Write all legal placements of a piece in the order of actions; returns their number.

    - `columns`: uint64[cols], the board.
    - `placements`: int64[n], to write into, with room for all actions.
    """
    if reach is not None:
        return list_reachable(columns, piece, reach, placements)
    count = 0
    for action in range((SLIDES if slides else 1) * ROTATIONS * columns.size):
        placement = rest_of(columns, piece, action, slides, reach)
        if placement >= 0:
            placements[count] = placement
            count += 1
    return count


@cache
def lister(slides: bool, reachable: bool) -> Kernel:
    """A kernel (columns, piece, rows, placements) that does what `list_placements` does by fixed rules."""
    if reachable:
        return list_reachable

    @kernel
    def listed(columns, piece, rows, placements):
        return list_placements(columns, piece, slides, None, placements)

    return listed
