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
from mergefall.kernels import kernel

U = np.uint64


@kernel
def line_sum(board, values):
    """Sum of the values of the four rows of a packed board."""
    return (
        values[board & LINE] + values[board >> U(16) & LINE] + values[board >> U(32) & LINE] + values[board >> U(48)]
    )


@kernel
def _slid_columns(board, lines, back):
    """The board with all rows slid one way, transposed."""
    result = U(0)
    for r in range(4):
        entry = lines[board >> U(16 * r) & LINE]
        result |= spread(entry >> U(16 * back) & LINE) << U(4 * r)
    return result


@kernel
def best_slides(board, lines, values, transposed, best, lowest):
    """For each empty cell and tile, the best leaf among the two moves along the rows.

    Writes ``best[2 * cell + rank - 1]``, row-major; `transposed` says that `board` is, and that `best` holds the other
    two moves already. `lowest` is the value of an illegal move.
    """
    columns_back0 = _slid_columns(board, lines, 0)
    columns_back1 = _slid_columns(board, lines, 1)
    e0 = lines[board & LINE]
    e1 = lines[board >> U(16) & LINE]
    e2 = lines[board >> U(32) & LINE]
    e3 = lines[board >> U(48)]
    entries = (e0, e1, e2, e3)
    zero = values[0] - values[0]
    first = (values[e0 & LINE], values[e1 & LINE], values[e2 & LINE], values[e3 & LINE])
    last = (
        values[e0 >> U(16) & LINE],
        values[e1 >> U(16) & LINE],
        values[e2 >> U(16) & LINE],
        values[e3 >> U(16) & LINE],
    )
    for r in range(4):
        row = board >> U(16 * r) & LINE
        others = U(0)
        for i in range(4):
            if i != r:
                others |= entries[i]
        # before + new, then the rows after it in order, 0 where there is none
        before0 = before1 = zero
        for i in range(r):
            before0 += first[i]
            before1 += last[i]
        a0, b0, c0 = zero, zero, zero
        a1, b1, c1 = zero, zero, zero
        if r == 0:
            a0, b0, c0 = first[1], first[2], first[3]
            a1, b1, c1 = last[1], last[2], last[3]
        elif r == 1:
            a0, b0 = first[2], first[3]
            a1, b1 = last[2], last[3]
        elif r == 2:
            a0, a1 = first[3], last[3]
        old0 = columns_back0 ^ (spread(entries[r] & LINE) << U(4 * r))
        old1 = columns_back1 ^ (spread(entries[r] >> U(16) & LINE) << U(4 * r))
        for c in range(4):
            if row >> U(4 * c) & U(15) != U(0):
                continue
            index = 2 * (4 * c + r) if transposed else 2 * (4 * r + c)
            for rank in range(1, 3):
                entry = lines[row | U(rank) << U(4 * c)]
                value = lowest
                if (entry | others) >> U(62) & U(1):
                    slid = entry & LINE
                    rows_sum = ((before0 + values[slid]) + a0) + b0 + c0
                    value = max(value, rows_sum + line_sum(old0 | spread(slid) << U(4 * r), values))
                if (entry | others) >> U(63):
                    slid = entry >> U(16) & LINE
                    rows_sum = ((before1 + values[slid]) + a1) + b1 + c1
                    value = max(value, rows_sum + line_sum(old1 | spread(slid) << U(4 * r), values))
                if transposed:
                    value = max(value, best[index + rank - 1])
                best[index + rank - 1] = value


@kernel
def best_leaves(board, row_lines, values, best, lowest):
    """Value of the player's best move for each empty cell and tile of a 4×4 afterstate, into ``best[32]``."""
    best_slides(board, row_lines, values, False, best, lowest)
    best_slides(transpose(board), row_lines, values, True, best, lowest)
