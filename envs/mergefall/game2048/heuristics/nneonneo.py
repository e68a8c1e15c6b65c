"""`nneonneo`: the strongest classical evaluation of 2048, a sum over rows and columns."""

from dataclasses import dataclass

import numpy as np

from mergefall.game2048.heuristics.base import NO_TABLE, Heuristic, filled
from mergefall.game2048.packed import U, entries, transpose, unpack
from mergefall.kernels import kernel
from mergefall.typing import Array
from mergefall.weighted import Terms


@kernel
def line_terms(cells, start, stride, length, single):
    """(empty, merges, monotonicity, sum) of one line of flat cells.

    With `single` the sum is rounded to float32 after every cell, as in the original's table.
    """
    empty, merges, run, waiting = 0, 0, 1, 0
    falls, rises, total = 0.0, 0.0, 0.0
    for i in range(length):
        rank = cells[start + i * stride]
        total += rank**3.5
        if single:
            total = np.float64(np.float32(total))
        if rank == 0:
            empty += 1
        elif rank == waiting:
            merges += 2 if run == 1 else 1
            run += 1
        else:
            waiting, run = rank, 1
        if i:
            step = np.float64(cells[start + (i - 1) * stride]) ** 4 - np.float64(rank) ** 4
            if step > 0:
                falls += step
            else:
                rises -= step
    return empty, merges, min(falls, rises), total


@kernel
def terms_of_cells(cells, rows, cols, to_move, weights):
    """(base, empty, merges, monotonicity, sum), each added up over all rows and columns."""
    empty, merges, monotonicity, total = 0.0, 0.0, 0.0, 0.0
    for line in range(rows + cols):
        start, stride, length = (line * cols, 1, cols) if line < rows else (line - rows, cols, rows)
        e, m, mono, s = line_terms(cells, start, stride, length, False)
        empty += e
        merges += m
        monotonicity += mono
        total += s
    return np.float64(rows + cols), empty, merges, monotonicity, total


@kernel
def fill_table(base, of_empty, of_merges, of_monotonicity, of_sum, table):
    """Fill the values of all lines of four, float32[65536], rounded step by step as in the original's table."""
    cells = np.zeros(4, dtype=np.uint8)
    for line in range(1 << 16):
        unpack(U(line), cells, 1, 4)
        empty, merges, monotonicity, total = line_terms(cells, 0, 1, 4, True)
        value = np.float32(base)
        value += np.float32(of_empty) * np.float32(empty)
        value += np.float32(of_merges) * np.float32(merges)
        value += np.float32(of_monotonicity) * np.float32(monotonicity)
        value += np.float32(of_sum) * np.float32(total)
        table[line] = value


@kernel(forceinline=True)
def value_of_packed(board, to_move, tables, weights):
    """The value in single precision, equal to the original's bit for bit: rows and columns are summed separately."""
    r0, r1, r2, r3 = entries(tables[0], board)
    c0, c1, c2, c3 = entries(tables[0], transpose(board))
    return (r0 + r1 + r2 + r3) + (c0 + c1 + c2 + c3)


@dataclass(frozen=True)
class Nneonneo(Heuristic):
    """Score rows and columns for empty cells, merges and order, and punish many large ranks.

    Terms, each summed over all rows and columns:

    - `base`: 1 for each line, so 8 on 4×4.
    - `empty`: empty cells.
    - `merges`: a run of k ≥ 2 equal tiles, empty cells skipped, counts k.
    - `monotonicity`: the smaller of the sum of falls and the sum of rises of rank⁴ along the line; empty cells have
      rank 0.
    - `sum`: Σ rank^3.5.

    `to_move` is ignored.

    Source: Robert Xiao, github.com/nneonneo/2048-ai, `2048.cpp`, with its weights; the last two are negative here.

    Example:
        >>> Nneonneo()([[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1]])
        1608078.0
    """

    name = "nneonneo"
    dead = 0.0
    real = np.float32
    by_lines = True
    of_board = Terms(("base", "empty", "merges", "monotonicity", "sum"), terms_of_cells)
    packed_kernel = value_of_packed

    base: float = 200000.0
    empty: float = 270.0
    merges: float = 700.0
    monotonicity: float = -47.0
    sum: float = -11.0

    def tables(self) -> tuple[Array, ...]:
        weights = self.base, self.empty, self.merges, self.monotonicity, self.sum
        return *filled(fill_table, tuple(map(float, weights)), (1 << 16, np.float32)), NO_TABLE
