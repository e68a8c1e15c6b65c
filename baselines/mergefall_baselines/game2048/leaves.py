"""The last chance node of a packed expectimax, with all its leaves.

Most of a search is its last level: for each empty cell and each of two tiles, the best of four moves, each valued as
an afterstate. If the heuristic is a sum over the four rows and the four columns (``values[line]`` from one table), a
new tile changes one row of the board, so

- all rows of the moved board but one are known;
- its columns follow from the known ones by replacing one cell in each.

So a leaf costs five look-ups: how its row slides and the value of that, and the values of its four columns. Sums run in
the order of the plain evaluation, ((row 0 + row 1) + row 2) + row 3, so that single precision gives the same bits.
There are hardly any branches, because no processor could predict them.
"""

from functools import lru_cache
from typing import Any

import numpy as np
from mergefall.game2048.packed import LINE, empties, line_table, spread, transpose
from mergefall.kernels import borrow, kernel
from mergefall.typing import Array
from mergefall.words import trailing_zeros

U = np.uint64
LINES = 1 << 16
REAL = np.float32
ZERO, TWO, FOUR = REAL(0.0), REAL(0.9), REAL(0.1)
COLUMN = U(0x000F000F000F000F)
BACK, ON = U(1), U(2)  # bits: whether a line changes as it slides towards its first cell, its last
SUMS = 64  # size of the scratch: `PER_DIRECTION` for each of four directions
PER_DIRECTION = U(16)

# A line slid towards its first cell (`back`) and its last (`on`), each laid out as a column, and their values.
SLID = np.dtype(
    [("back", np.uint64), ("on", np.uint64), ("back_value", REAL), ("on_value", REAL), ("changes", np.uint64)]
)


@lru_cache(maxsize=8)
def slid_lines(heuristic: Any) -> Array:
    """Each line of four slid both ways, and its value then: SLID[65536], for a heuristic that is a sum over lines."""
    lines, values = line_table(4), heuristic.tables()[0]
    back, on = lines & LINE, lines >> U(16) & LINE
    table = np.empty(LINES, dtype=SLID)
    table["back"], table["on"] = spread(back), spread(on)
    table["back_value"], table["on_value"] = values[back], values[on]
    table["changes"] = lines >> U(62)
    table.flags.writeable = False
    return table


@kernel
def line_sum(board, values):
    """Sum of the values of the four rows of a packed board."""
    return values[board & LINE] + values[board >> U(16) & LINE] + values[board >> U(32) & LINE] + values[board >> U(48)]


@kernel
def keep_sums(sums, i, v0, v1, v2, v3):
    """Prepare the sum of four values with value r replaced by x: sums[i+r] + x + sums[i+4+r] + …."""
    sums[i], sums[i + U(1)], sums[i + U(2)], sums[i + U(3)] = ZERO, v0, v0 + v1, v0 + v1 + v2
    sums[i + U(4)], sums[i + U(5)], sums[i + U(6)] = v1, v2, v3  # three zeros follow


@kernel
def slide_all(board, slid, sums, first):
    """Slide all rows both ways: (the two boards, transposed; two bits for each row, `BACK` and `ON`).

    Writes the values of the rows to ``sums[first:]``, as `keep_sums` does, for each way.
    """
    e0, e1, e2, e3 = slid[board & LINE], slid[board >> U(16) & LINE], slid[board >> U(32) & LINE], slid[board >> U(48)]
    keep_sums(sums, first, e0.back_value, e1.back_value, e2.back_value, e3.back_value)
    keep_sums(sums, first + PER_DIRECTION, e0.on_value, e1.on_value, e2.on_value, e3.on_value)
    back = e0.back | e1.back << U(4) | e2.back << U(8) | e3.back << U(12)
    on = e0.on | e1.on << U(4) | e2.on << U(8) | e3.on << U(12)
    return back, on, e0.changes | e1.changes << U(2) | e2.changes << U(4) | e3.changes << U(6)


@kernel
def others(all_rows, r):
    """The result of `slide_all` without row `r`; the bits of the other rows are joined."""
    back, on, changes = all_rows
    row = ~(COLUMN << (r << U(2)))
    changes &= ~(U(3) << (r << U(1)))
    changes |= changes >> U(4)
    return back & row, on & row, changes | changes >> U(2)


@kernel
def better_slide(line, r, rest, slid, values, sums, first, lowest):
    """The better of sliding back and on with row `r` replaced by `line`, or `lowest`; `rest` is from `others`."""
    back, on, changes = rest
    e = slid[line]
    i = first + r
    rows = sums[i] + e.back_value + sums[i + U(4)] + sums[i + U(5)] + sums[i + U(6)]
    back_value = rows + line_sum(back | e.back << (r << U(2)), values)
    i += PER_DIRECTION
    rows = sums[i] + e.on_value + sums[i + U(4)] + sums[i + U(5)] + sums[i + U(6)]
    on_value = rows + line_sum(on | e.on << (r << U(2)), values)
    changes |= e.changes
    return max(max(lowest, back_value if changes & BACK else lowest), on_value if changes & ON else lowest)


@kernel
def mean_of_best(board, slid_at, values_at, sums_at, lowest, dead):
    """The value of the best move after each new tile, averaged, for a 4×4 afterstate.

    A tile after which no move is worth more than `lowest` counts `dead`. `slid_at`, `values_at` and `sums_at` are the
    addresses of `slid_lines`, of the line values float32[65536] and of the scratch float32[SUMS].
    """
    slid, values = borrow(slid_at, SLID, LINES), borrow(values_at, REAL, LINES)
    sums = borrow(sums_at, REAL, SUMS)
    turned = transpose(board)
    rows, columns = slide_all(board, slid, sums, U(0)), slide_all(turned, slid, sums, U(2) * PER_DIRECTION)
    cells = empties(board)
    total, empty = ZERO, 0
    while cells:
        place = U(trailing_zeros(cells))
        r, c = place >> U(4), place >> U(2) & U(3)
        row, column = board >> (r << U(4)) & LINE, turned >> (c << U(4)) & LINE
        other_rows, other_columns = others(rows, r), others(columns, c)
        for rank in range(1, 3):
            line = row | U(rank) << (c << U(2))
            best = better_slide(line, r, other_rows, slid, values, sums, U(0), lowest)
            line = column | U(rank) << (r << U(2))
            best = max(best, better_slide(line, c, other_columns, slid, values, sums, U(2) * PER_DIRECTION, lowest))
            total += (best if best != lowest else dead) * (TWO if rank == 1 else FOUR)
        cells &= cells - U(1)
        empty += 1
    return total / REAL(empty)
