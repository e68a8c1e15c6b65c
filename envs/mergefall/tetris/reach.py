"""Where a piece can come to rest by moves, turns with their kicks and soft drops: a search over all places at once.

The places of one rotation whose leftmost column is c are the bits of one word: bit y is the place with its lowest cell
in row y. So a move, a turn and a fall of all these places are a few operations on words. No clock runs, and above the
field all is free.
"""

import numpy as np

from mergefall.kernels import kernel
from mergefall.tetris.field import highest_in, is_free, landing
from mergefall.tetris.pieces import MASKS, WIDTHS
from mergefall.tetris.srs import MOVES, SHAPES, TESTS

U = np.uint64
ROTATIONS = 4
FREE, REACHED, TURNED, KICKED, RESTS, DONE = range(6)  # what the work of a search holds, uint64[6, 4, cols]


@kernel(inline="always")
def new_work(cols):
    """The memory of a search."""
    return np.empty((6, ROTATIONS, cols), U)


@kernel
def write_free(columns, piece, free):
    """Write where each shape of a piece fits into uint64[4, cols]; shapes that repeat another are left out."""
    cols = columns.size
    for shape in range(ROTATIONS):
        width = WIDTHS[piece, shape]
        for c in range(cols):
            free[shape, c] = U(0)
            if width and c + width <= cols:
                met = U(0)
                for i in range(width):
                    column, mask = columns[c + i], MASKS[piece, shape, i]
                    for row in range(4):
                        if mask >> U(row) & U(1):
                            met |= column >> U(row)
                free[shape, c] = ~met


@kernel(inline="always")
def fallen(places, free):
    """The places, and those below them as far as a piece falls freely, row by row."""
    for k in range(6):
        places |= places >> U(1 << k) & free
        free &= free >> U(1 << k)
    return places


@kernel(inline="always")
def shifted(places, rows):
    """Places moved up by so many rows, down if negative."""
    return places << U(rows) if rows >= 0 else places >> U(-rows)


@kernel
def seed(columns, piece, rows, work):
    """Begin where a piece appears: rotation 0 in the middle, its lowest cell in the first row above the field."""
    cols, height, spawn = columns.size, highest_in(columns), U(1) << U(rows)
    work[REACHED] = U(0)
    if height + 3 > rows:  # turns beside the spawn may meet cells
        work[REACHED, 0, (cols - WIDTHS[piece, 0]) // 2] = spawn
        return
    above = spawn - (U(1) << U(height))  # all is free from there up to the spawn, so all of it is reached
    for rotation in range(ROTATIONS):
        for c in range(cols - WIDTHS[piece, SHAPES[piece, rotation]] + 1):
            work[REACHED, rotation, c] = above


@kernel
def spread(piece, work):
    """Reach all that can be reached from the places in work[REACHED]; work[FREE] is filled.

    work[TURNED] receives the places that a turn leads to, work[KICKED] those by its fifth test.
    """
    cols, todo = work.shape[2], 15
    free, reached, turned, kicked, done = work[FREE], work[REACHED], work[TURNED], work[KICKED], work[DONE]
    turns = WIDTHS[piece, 1] > 0
    turned[:] = kicked[:] = done[:] = U(0)
    while todo:
        for rotation in range(ROTATIONS):
            if todo >> rotation & 1 == 0:
                continue
            todo &= ~(1 << rotation)
            shape = SHAPES[piece, rotation]
            last, again = cols - WIDTHS[piece, shape], True
            while again:
                again, near = False, U(0)
                for k in range(2 * last + 1):  # to the right and back
                    c = min(k, 2 * last - k)
                    before = reached[rotation, c]
                    near = fallen(before | near & free[shape, c], free[shape, c])
                    reached[rotation, c] = near
                    again |= near != before
            for c in range(last + 1 if turns else 0):
                new = reached[rotation, c] & ~done[rotation, c]
                done[rotation, c] |= new
                for turn in range(1, 4 if new else 1, 2):
                    after, left = (rotation + turn) & 3, new
                    room = cols - WIDTHS[piece, SHAPES[piece, after]]
                    for test in range(TESTS):
                        column, up = c + MOVES[piece, rotation, turn, test, 0], MOVES[piece, rotation, turn, test, 1]
                        if column < 0 or column > room:
                            continue
                        there = shifted(left, up) & free[SHAPES[piece, after], column]
                        left &= ~shifted(there, -up)
                        turned[after, column] |= there
                        if test == TESTS - 1:
                            kicked[after, column] |= there
                        if there & ~reached[after, column]:
                            reached[after, column] |= there
                            todo |= 1 << after
                        if left == 0:
                            break


@kernel
def search(columns, piece, rows, work):
    """Find where a piece of the seven can come to rest on a board; `work`: uint64[6, 4, cols], overwritten.

    work[RESTS, shape, column] has the bits of the rows. A shape that rotation 0 or 1 has stands there alone.
    """
    write_free(columns, piece, work[FREE])
    seed(columns, piece, rows, work)
    spread(piece, work)
    rests = work[RESTS]
    rests[:] = U(0)
    for rotation in range(ROTATIONS):
        shape = SHAPES[piece, rotation]
        for c in range(columns.size):
            rests[shape, c] |= work[REACHED, rotation, c] & ~(work[FREE, shape, c] << U(1))


@kernel
def is_reachable(columns, piece, rotation, column, y, rows):
    """Whether a piece can come to rest at a place: (its shape, its leftmost column, the row of its lowest cell)."""
    width = WIDTHS[piece, rotation]
    if width == 0 or column + width > columns.size or not is_free(columns, piece, rotation, column, y):
        return False
    if y > 0 and is_free(columns, piece, rotation, column, y - 1):
        return False
    if y == landing(columns, piece, rotation, column) and highest_in(columns) + 3 <= rows:  # as `seed` has it
        return True
    work = new_work(columns.size)
    search(columns, piece, rows, work)
    return work[RESTS, rotation, column] >> U(y) & U(1) == 1
