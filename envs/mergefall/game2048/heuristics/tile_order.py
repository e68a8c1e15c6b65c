"""`tile-order`: average tile, space, merges, and tiles ordered as a snake from a corner (the evaluation document)."""

from dataclasses import dataclass

import numpy as np

from mergefall.checks import boolean
from mergefall.game2048.board import UP, legal_mask, slide
from mergefall.game2048.heuristics.base import Heuristic, filled
from mergefall.game2048.packed import (
    BYTES,
    LINE,
    NIBBLE_PER_BYTE,
    TOP_BIT_PER_BYTE,
    U,
    entries,
    mirror,
    rows_of,
    transpose,
)
from mergefall.kernels import kernel
from mergefall.typing import Array, Floats
from mergefall.weighted import Terms, check_weight, dot

GAME_OVER = -9_999_999_999.0

STRICT, DISTINCT, CORNER = 4, 5, 6  # indices in the weight vector, after the four weights

# The weights of the cells, by the number of good rows; all share the bottom row.
IN_CORNER = 30000.0
BOTTOM = [IN_CORNER, 7000, 4000, 1000]
MATRICES = np.array(
    [
        [[10, 7, 4, 1], [100, 70, 40, 10], [1000, 700, 400, 100], BOTTOM],
        [[1, 4, 7, 10], [10, 40, 70, 100], [100, 400, 700, 1000], BOTTOM],
        [[10, 7, 4, 1], [100, 70, 40, 10], [100, 400, 700, 1000], BOTTOM],
        [[1, 4, 7, 10], [100, 70, 40, 10], [100, 400, 700, 1000], BOTTOM],
    ],
    dtype=np.float64,
)


@kernel
def tile(rank):
    """The value of a tile as a float, so that no sum overflows; 0 for an empty cell."""
    return np.float64(np.int64(1) << np.int64(rank)) if rank else 0.0


@kernel
def pairs(cells, start, stride):
    """Σ 2·value over pairs of equal neighbours in a line of four; from the start on, each cell counts once."""
    value, i = 0.0, 0
    while i < 3:
        rank = cells[start + i * stride]
        if rank and rank == cells[start + (i + 1) * stride]:
            value += 2 * tile(rank)
            i += 1
        i += 1
    return value


@kernel
def largest_left(cells, taken):
    """The index of a largest cell among those whose bit is not in `taken`."""
    best = -1
    for i in range(16):
        if not taken >> i & 1 and (best < 0 or cells[i] > cells[best]):
            best = i
    return best


@kernel
def good_rows(cells, strict, distinct):
    """The number of consecutive good rows from the bottom, 0 to 3.

    The rows are read as a snake, the bottom one left to right. Each cell must be the largest tile not yet taken. Unless
    `strict`, the fourth cell of a row may be the second largest; the tile passed over is then due next. With
    `distinct`, a row with two equal neighbours is bad.
    """
    taken = 0
    for good in range(3):
        r = 3 - good
        for k in range(4):
            rank = cells[4 * r + (k if r % 2 else 3 - k)]
            last = cells[4 * r + (k - 1 if r % 2 else 4 - k)] if k else 0
            due = largest_left(cells, taken)
            if rank != cells[due] and k == 3 and not strict:
                due = largest_left(cells, taken | 1 << due)
            if rank == 0 or rank != cells[due] or (distinct and rank == last):
                return good
            taken |= 1 << due
    return 3


@kernel
def terms_of_cells(cells, rows, cols, to_move, weights):
    total, empty, merges, order = 0.0, 0, 0.0, 0.0
    matrix = MATRICES[good_rows(cells, weights[STRICT] != 0, weights[DISTINCT] != 0)]
    for i in range(16):
        total += tile(cells[i])
        empty += cells[i] == 0
        order += tile(cells[i]) * matrix[i // 4, i % 4]
    order += tile(cells[12]) * (weights[CORNER] - IN_CORNER)
    for i in range(4):
        merges += pairs(cells, 4 * i, 1) + pairs(cells, i, 4)
    if to_move and legal_mask(cells, 4, 4) & ~(1 << UP) == 0:
        order = GAME_OVER
    average = np.floor(total / (16 - empty)) if empty < 16 else 0.0
    return average, np.float64(empty), merges, order


@kernel
def combine(terms, cells, weights):
    return dot(terms, weights, 0) if legal_mask(cells, 4, 4) else GAME_OVER


# The fast twin: two entries for each line of four, `counts` and `orders`. Fields can be added up over four lines.
#
#   counts  bits 0-19 merges, 20-24 empty cells, 25-27 lines that can move back, 28-30 lines that can move on, 31 falls
#   orders  bits 0-31 Σ tile·(10 7 4 1), 32-63 Σ tile
#
# Every row of every matrix is (10 7 4 1) or its mirror image times a power of ten, except for the larger corner.
EMPTY, BACK, ON, FALLS = 20, 25, 28, 31
MOVES = 63 << BACK
CAN_MOVE_ON = 7 << ON
CORNER_OF_ROW = 10000  # what 1000·(10 7 4 1) gives the corner


@kernel
def fill_tables(distinct, counts, orders):
    """Fill both tables for all lines of four; with `distinct` a falling line has no equal neighbours."""
    cells, slid = np.zeros(4, dtype=np.uint8), np.zeros(4, dtype=np.uint8)
    for line in range(1 << 16):
        empty, total, order, falls = 0, 0.0, 0.0, True
        for i in range(4):
            rank = line >> (4 * i) & 15
            cells[i] = rank
            empty += rank == 0
            total += tile(rank)
            order += tile(rank) * MATRICES[0, 0, i]
            falls &= rank > 0 and (i == 0 or rank + distinct <= cells[i - 1])
        slid[:] = cells
        back = slide(slid, 0, 1, 4) >= 0
        slid[:] = cells
        on = slide(slid, 3, -1, 4) >= 0
        counts[line] = np.int64(pairs(cells, 0, 1)) | empty << EMPTY | back << BACK | on << ON | falls << FALLS
        orders[line] = np.int64(order) | np.int64(total) << 32


@kernel(forceinline=True)
def larger(board, rank):
    """A bit for each cell above a rank."""
    lift = (U(127) - rank) * BYTES
    even, odd = (board & NIBBLE_PER_BYTE) + lift, (board >> U(4) & NIBBLE_PER_BYTE) + lift
    return (even & TOP_BIT_PER_BYTE) | (odd & TOP_BIT_PER_BYTE) >> U(1)


@kernel(forceinline=True)
def good_end(above, third, fourth, strict):
    """Whether a falling row that ends in `third`, `fourth` is good: no tile of the rows `above` is due before it.

    Unless `strict`, one tile may be due before the fourth cell, but not before the third.
    """
    passed_over = larger(above, fourth)
    if passed_over == U(0):
        return True
    return not strict and passed_over & (passed_over - U(1)) == U(0) and larger(above, third) == U(0)


@kernel(forceinline=True)
def good_rows_of_packed(board, mirrored, counts, strict):
    """The number of consecutive good rows from the bottom, 0 to 3; a good row falls along the snake."""
    nibble = U(15)
    if not counts[board >> U(48)] >> FALLS:
        return 0
    if not good_end(board & U(0xFFFFFFFFFFFF), board >> U(56) & nibble, board >> U(60), strict):
        return 0
    if not counts[mirrored >> U(32) & LINE] >> FALLS:
        return 1
    if not good_end(board & U(0xFFFFFFFF), board >> U(36) & nibble, board >> U(32) & nibble, strict):
        return 1
    if not counts[board >> U(16) & LINE] >> FALLS:
        return 2
    return 3 if good_end(board & LINE, board >> U(24) & nibble, board >> U(28) & nibble, strict) else 2


@kernel(forceinline=True)
def value_of_packed(board, to_move, tables, weights):
    counts, orders = tables
    mirrored = mirror(board)
    r0, r1, r2, r3 = rows_of(board)
    a0, a1, a2, a3 = entries(counts, board)
    b0, b1, b2, b3 = entries(counts, transpose(board))
    across, along = np.int64(a0 + a1 + a2 + a3), np.int64(b0 + b1 + b2 + b3)
    if (across | along) & MOVES == 0:
        return GAME_OVER
    good = good_rows_of_packed(board, mirrored, counts, weights[STRICT] != 0)
    if good >= 1:
        r2 = mirrored >> U(32) & LINE
    if good == 1:
        r1 = mirrored >> U(16) & LINE
    if good == 1 or good == 3:
        r0 = mirrored & LINE
    o0, o1, o2, o3 = orders[r0], orders[r1], orders[r2], orders[r3]
    low = 0xFFFFFFFF
    corner = np.int64(1) << np.int64(r3 & U(15)) if r3 & U(15) else np.int64(0)
    order = np.float64((o0 & low) + 10 * (o1 & low) + 100 * (o2 & low) + 1000 * (o3 & low))
    order += (weights[CORNER] - CORNER_OF_ROW) * np.float64(corner)
    if to_move and across & MOVES == 0 and along & CAN_MOVE_ON == 0:
        order = GAME_OVER
    empty = across >> EMPTY & 31
    total = (o0 >> 32) + (o1 >> 32) + (o2 >> 32) + (o3 >> 32)
    merges = (across & 0xFFFFF) + (along & 0xFFFFF)
    average = np.floor(np.float64(total) / np.float64(16 - empty))
    return dot((average, empty, merges, order), weights, 0)


@dataclass(frozen=True)
class TileOrder(Heuristic):
    """Weigh the average tile, empty cells, possible merges, and the order of tiles along a snake from the lower left.

    Defined on 4×4 boards only. Terms, in tile values:

    - `average`: of the tiles, rounded down.
    - `empty`: empty cells.
    - `merges`: 2·value of each pair of equal neighbours; a cell counts once in its row and once in its column.
    - `order`: Σ tile · matrix. The number of good rows from the bottom chooses the matrix. It is GAME_OVER =
      −9,999,999,999 if the player is to move (`to_move`) and can only move up.

    If no move is left, the whole value is GAME_OVER. Options:

    - `strict`: bool, whether all four cells of a good row must be in order. Default: False, the fourth may be the
      second largest tile left.
    - `distinct`: bool, whether a row with two equal neighbours is not good. Default: False.
    - `corner`: float, the matrices' weight of the corner. Default: 30000, the document's.

    The document's program played its published games with `corner=40000` and `distinct=True`.

    Source: the evaluation document of hlongng2002241/2048 (Hanoi 2021) and its program's matrices.

    Example:
        >>> TileOrder().terms([[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [3, 2, 2, 0]])
        {'average': 5.0, 'empty': 13.0, 'merges': 8.0, 'order': 284000.0}
    """

    name = "tile-order"
    dead = GAME_OVER
    of_board = Terms(("average", "empty", "merges", "order"), terms_of_cells)
    combine_kernel = combine
    packed_kernel = value_of_packed

    average: float = 1.0
    empty: float = 30.0
    merges: float = 40.0
    order: float = 2.0
    strict: bool = False
    distinct: bool = False
    corner: float = IN_CORNER

    def __post_init__(self) -> None:
        super().__post_init__()
        check_weight(self.name, "corner", self.corner)
        boolean("strict of tile-order", self.strict)
        boolean("distinct of tile-order", self.distinct)

    def weight_vector(self) -> Floats:
        """The four weights, then `strict` and `distinct` as 0 or 1, then `corner`: float64[7]."""
        return np.append(super().weight_vector(), [self.strict, self.distinct, self.corner])

    def tables(self) -> tuple[Array, ...]:
        return filled(fill_tables, (self.distinct,), (1 << 16, np.uint32), (1 << 16, np.int64))

    def check_size(self, rows: int, cols: int) -> None:
        if (rows, cols) != (4, 4):
            raise ValueError(f"board of {rows}×{cols}; tile-order is defined on 4×4 only")
