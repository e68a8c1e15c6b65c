"""`monotone-smooth`: order towards a corner, similar neighbours, space (the Finnish minimax document)."""

from dataclasses import dataclass

import numpy as np

from mergefall.game2048.heuristics.base import Heuristic, filled
from mergefall.game2048.packed import U, entries, transpose
from mergefall.kernels import kernel
from mergefall.typing import Array
from mergefall.weighted import Terms, dot


@kernel
def line_terms(cells, start, stride, length):
    """(rises, falls, roughness) of one line of flat cells.

    Rises and falls are summed over neighbouring cells; empty cells have rank 0. Roughness is the sum of differences
    over pairs of tiles with only empty cells between them, each pair once.
    """
    rises, falls, roughness, last_tile = 0, 0, 0, 0
    for i in range(length):
        rank = np.int64(cells[start + i * stride])
        if i:
            step = rank - np.int64(cells[start + (i - 1) * stride])
            rises += max(step, 0)
            falls += max(-step, 0)
        if rank:
            if last_tile:
                roughness += abs(rank - last_tile)
            last_tile = rank
    return rises, falls, roughness


@kernel
def terms_of_cells(cells, rows, cols, to_move, weights):
    left, right, up, down, roughness, empty, top = 0, 0, 0, 0, 0, 0, 0
    for r in range(rows):
        rises, falls, rough = line_terms(cells, r * cols, 1, cols)
        left, right, roughness = left + rises, right + falls, roughness + rough
    for c in range(cols):
        rises, falls, rough = line_terms(cells, c, cols, rows)
        up, down, roughness = up + rises, down + falls, roughness + rough
    for i in range(rows * cols):
        empty += cells[i] == 0
        top = max(top, np.int64(cells[i]))
    last = rows * cols - 1
    cornered = cells[0] == top or cells[cols - 1] == top or cells[last + 1 - cols] == top or cells[last] == top
    return (
        np.float64(-min(left, right) - min(up, down)),
        np.float64(-2 * roughness),
        np.log(np.float64(max(empty, 1))),
        np.float64(top),
        np.float64(0 if cornered else -top),
    )


# The fast twin: one entry for each line of four. The fields can be added up over four lines, except the largest rank.
#
#   bits 0-6 rises, 7-13 falls, 14-21 roughness, 22-26 empty cells, 27-30 largest rank
FALLS, ROUGH, EMPTY, TOP = 7, 14, 22, 27


@kernel
def fill_tables(lines, logs):
    """Fill the entries of all lines of four, and the logarithms of 0 (as 0) to 16 empty cells."""
    cells = np.zeros(4, dtype=np.uint8)
    for line in range(1 << 16):
        empty, top = 0, 0
        for i in range(4):
            rank = line >> (4 * i) & 15
            cells[i] = rank
            empty += rank == 0
            top = max(top, rank)
        rises, falls, rough = line_terms(cells, 0, 1, 4)
        lines[line] = rises | falls << FALLS | rough << ROUGH | empty << EMPTY | top << TOP
    for empty in range(17):
        logs[empty] = np.log(np.float64(max(empty, 1)))


@kernel(forceinline=True)
def value_of_packed(board, to_move, tables, weights):
    lines, logs = tables
    e0, e1, e2, e3 = entries(lines, board)
    c0, c1, c2, c3 = entries(lines, transpose(board))
    rows, columns = np.int64(e0 + e1 + e2 + e3), np.int64(c0 + c1 + c2 + c3)
    top = np.int64(max(max(e0, e1), max(e2, e3)) >> TOP)
    monotonicity = min(rows & 127, rows >> FALLS & 127) + min(columns & 127, columns >> FALLS & 127)
    rough = (rows >> ROUGH & 255) + (columns >> ROUGH & 255)
    peak, nibble = U(top), U(15)
    cornered = board & nibble == peak or board >> U(12) & nibble == peak
    cornered |= board >> U(48) & nibble == peak or board >> U(60) == peak
    terms = (
        np.float64(-monotonicity),
        np.float64(-2 * rough),
        logs[rows >> EMPTY & 31],
        np.float64(top),
        np.float64(0 if cornered else -top),
    )
    return dot(terms, weights, 0)


@dataclass(frozen=True)
class MonotoneSmooth(Heuristic):
    """Reward order towards a corner, similar neighbours, space, and a largest tile that is in a corner.

    Terms, in ranks:

    - `monotonicity`: −(steps against the better of left and right) − (steps against the better of up and down).
    - `smoothness`: −(sum of the differences in rank from each tile to the nearest tile in each of the four directions).
    - `empty`: natural logarithm of the number of empty cells, 0 if there is none.
    - `max`: the largest rank.
    - `corner`: 0 if a largest tile is in a corner, else −(largest rank).

    `to_move` is ignored.

    Source: the implementation document of skeltal2/tira-harjoitustyo (Helsinki 2022) and its program's weights; it
    builds on ovolve's player of 2014. The corner test is the document's; the program's own is weaker.

    Example:
        >>> MonotoneSmooth().terms([[3, 2, 1], [2, 1, 0], [1, 0, 0]])["monotonicity"]
        0.0
    """

    name = "monotone-smooth"
    dead = -1e9
    of_board = Terms(("monotonicity", "smoothness", "empty", "max", "corner"), terms_of_cells)
    packed_kernel = value_of_packed

    monotonicity: float = 1.0
    smoothness: float = 0.1
    empty: float = 2.5
    max: float = 1.0
    corner: float = 1.5

    def tables(self) -> tuple[Array, ...]:
        return filled(fill_tables, (), (1 << 16, np.uint32), (17, np.float64))
