"""The last chance node of a packed expectimax, all its leaves at once.

Most of a search is its last level: for each empty cell and each of two tiles, the best of four moves, each valued as
an afterstate. Where a heuristic is a sum over the four rows and the four columns (``lines[row]`` from one table), a new
tile changes one row of the board, so

- the rows of the moved board are those moved before, but for one;
- its columns follow from those moved before by exchanging one cell in each.

So each leaf costs one line of sliding and five look-ups instead of eight and eight. Sums run in the order of the plain
evaluation, ((row 0 + row 1) + row 2) + row 3, so that single precision gives the same bits.
"""

from __future__ import annotations

import numpy as np
from mergefall.game2048.packed import LINE, spread, transpose
from mergefall.kernels import borrow, kernel

U = np.uint64
LINES = 1 << 16
REAL = np.float32


@kernel
def line_sum(board, values):
    """Sum of the values of the four rows of a packed board."""
    return values[board & LINE] + values[board >> U(16) & LINE] + values[board >> U(32) & LINE] + values[board >> U(48)]


@kernel
def columns_of(r0, r1, r2, r3):
    """The transposed board of four lines."""
    return spread(r0) | spread(r1) << U(4) | spread(r2) << U(8) | spread(r3) << U(12)


@kernel
def leaves_of_row(r, row, other_entries, back, on, lines_at, values_at, best_at, first, step, lowest):
    """The leaves for the empty cells of row `r`: the better of sliding all rows back and on, if above what `best` has.

    `back` and `on` describe the other rows slid either way: value of the rows before `r`, values of up to three rows
    after it, and the transposed board without row `r`. Cell c's leaf for a tile of rank k is ``best[first + c * step +
    k - 1]``.
    """
    lines, values, best = borrow(lines_at, np.uint64, LINES), borrow(values_at, REAL, LINES), borrow(best_at, REAL, 32)
    back_before, back1, back2, back3, back_columns = back
    on_before, on1, on2, on3, on_columns = on
    for rank in range(1, 3):
        run = False
        back_value = on_value = lowest
        for c in range(4):
            if row >> U(4 * c) & U(15) != U(0):
                run = False
                continue
            entry = lines[row | U(rank) << U(4 * c)]
            if not run:  # wherever in a run of empty cells the tile stands, the row slides to the same
                run = True
                slid = entry & LINE
                along = ((back_before + values[slid]) + back1) + back2 + back3
                back_value = along + line_sum(back_columns | spread(slid) << U(4 * r), values)
                slid = entry >> U(16) & LINE
                along = ((on_before + values[slid]) + on1) + on2 + on3
                on_value = along + line_sum(on_columns | spread(slid) << U(4 * r), values)
            moving = entry | other_entries
            index = first + c * step + rank - 1
            value = best[index]
            if moving >> U(62) & U(1):
                value = max(value, back_value)
            if moving >> U(63):
                value = max(value, on_value)
            best[index] = value


@kernel
def best_slides(board, lines_at, values_at, best_at, row_step, cell_step, lowest):
    """Raise ``best`` by the leaves of the two moves along the rows, for each empty cell and tile."""
    lines, values = borrow(lines_at, np.uint64, LINES), borrow(values_at, REAL, LINES)
    w0, w1, w2, w3 = board & LINE, board >> U(16) & LINE, board >> U(32) & LINE, board >> U(48)
    e0, e1, e2, e3 = lines[w0], lines[w1], lines[w2], lines[w3]
    b0, b1, b2, b3 = e0 & LINE, e1 & LINE, e2 & LINE, e3 & LINE
    o0, o1, o2, o3 = e0 >> U(16) & LINE, e1 >> U(16) & LINE, e2 >> U(16) & LINE, e3 >> U(16) & LINE
    back_columns, on_columns = columns_of(b0, b1, b2, b3), columns_of(o0, o1, o2, o3)
    vb0, vb1, vb2, vb3 = values[b0], values[b1], values[b2], values[b3]
    vo0, vo1, vo2, vo3 = values[o0], values[o1], values[o2], values[o3]
    zero = vb0 - vb0
    column = U(0x000F000F000F000F)
    back = (zero, vb1, vb2, vb3, back_columns & ~column)
    on = (zero, vo1, vo2, vo3, on_columns & ~column)
    leaves_of_row(0, w0, e1 | e2 | e3, back, on, lines_at, values_at, best_at, 0, cell_step, lowest)
    back = (vb0, vb2, vb3, zero, back_columns & ~(column << U(4)))
    on = (vo0, vo2, vo3, zero, on_columns & ~(column << U(4)))
    leaves_of_row(1, w1, e0 | e2 | e3, back, on, lines_at, values_at, best_at, row_step, cell_step, lowest)
    back = (vb0 + vb1, vb3, zero, zero, back_columns & ~(column << U(8)))
    on = (vo0 + vo1, vo3, zero, zero, on_columns & ~(column << U(8)))
    leaves_of_row(2, w2, e0 | e1 | e3, back, on, lines_at, values_at, best_at, 2 * row_step, cell_step, lowest)
    back = (vb0 + vb1 + vb2, zero, zero, zero, back_columns & ~(column << U(12)))
    on = (vo0 + vo1 + vo2, zero, zero, zero, on_columns & ~(column << U(12)))
    leaves_of_row(3, w3, e0 | e1 | e2, back, on, lines_at, values_at, best_at, 3 * row_step, cell_step, lowest)


@kernel
def best_leaves(board, lines_at, values_at, best_at, lowest):
    """Value of the player's best move for each empty cell and tile of a 4×4 afterstate, or `lowest`.

    Takes the addresses of the line table uint64[65536], of the line values float32[65536] and of the result
    ``best[2 * cell + rank - 1]``, float32[32], cells row-major.
    """
    best = borrow(best_at, REAL, 32)
    best[:] = lowest
    best_slides(board, lines_at, values_at, best_at, 8, 2, lowest)
    best_slides(transpose(board), lines_at, values_at, best_at, 2, 8, lowest)
