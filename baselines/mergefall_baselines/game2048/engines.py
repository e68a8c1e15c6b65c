"""The kernels that a search needs of a board, for each way of holding boards; searches are written once over these.

An `Engine` holds, for boards that may be words or tuples of words:

- ``from_cells(blank, cells, cols) -> board``;
- ``key(board) -> uint64`` for tables;
- ``moves(board, ctx) -> (up, down, left, right, score of a vertical, of a horizontal move)``, the afterstates; one that
  equals the board means that the action is illegal;
- ``open_cells(board, ctx) -> uint64``, a bit for each empty cell, lowest first in row-major order;
- ``with_tile(board, bit, rank) -> board``;
- ``evaluate(board, to_move, ctx) -> value`` by the heuristic.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from mergefall.game2048 import packed
from mergefall.game2048.heuristics.base import NO_TABLES, Heuristic
from mergefall.kernels import borrow, kernel
from mergefall.typing import Array, Kernel
from mergefall.words import trailing_zeros

from mergefall_baselines.game2048 import wide

U = np.uint64
LINES = 1 << 16

# The context of a search, shared by all nodes: numbers, and addresses of arrays that the player keeps alive. Nodes pass
# on the address of one such record, `ctx`.
CONTEXT = np.dtype(
    [
        ("rows", np.int64),
        ("cols", np.int64),
        ("area", np.uint64),  # one bit for each cell of a packed board
        ("row_lines", np.uint64),  # line tables of the packed engine, uint64[65536]
        ("column_lines", np.uint64),
        ("table0", np.uint64),  # the heuristic's own
        ("table1", np.uint64),
        ("weights", np.uint64),  # float64[weight_count]
        ("weight_count", np.int64),
        ("cells", np.uint64),  # scratch, uint8[rows·cols]
        ("slid_lines", np.uint64),  # for `leaves.py`
        ("sums", np.uint64),  # scratch of `leaves.py`
        ("entries", np.uint64),  # transposition table, see `mergefall_baselines.table`
        ("entry_count", np.int64),
        ("stop", np.int64),  # set from outside: return at once
        ("depth", np.int64),  # own moves, or one of `search.DEPTH_RULES`
        ("own_table", np.int64),  # whether each root move has the table to itself
        ("cutoff", np.float64),  # chance nodes below this cumulative probability are leaves
        ("state_leaves", np.int64),  # whether a leaf has one more tile than the last afterstate
    ]
)


@kernel
def read(ctx):
    """The context at an address."""
    return borrow(ctx, CONTEXT, 1)[0]


@kernel
def after_of(found, action):
    """The afterstate of an action among those that ``moves`` found."""
    up, down, left, right, _, _ = found
    return up if action == 0 else right if action == 1 else down if action == 2 else left


@kernel
def score_of(found, action):
    """The score of an action among those that ``moves`` found."""
    _, _, _, _, along, across = found
    return across if action & 1 else along


@kernel
def can_move(board, found):
    """Whether one of the afterstates that ``moves`` found for a board differs from it."""
    up, down, left, right, _, _ = found
    return up != board or down != board or left != board or right != board


@kernel
def packed_from_cells(blank, cells, cols):
    return packed.pack(cells, cells.size // cols, cols)


@kernel
def packed_key(board):
    return board


@kernel
def packed_moves(board, ctx):
    c = read(ctx)
    up, right, down, left, along, across = packed.moves(
        board, borrow(c.row_lines, np.uint64, LINES), borrow(c.column_lines, np.uint64, LINES)
    )
    return up, down, left, right, along, across


@kernel
def packed_open_cells(board, ctx):
    return packed.empties(board) & read(ctx).area


@kernel
def packed_with_tile(board, bit, rank):
    return board | bit << U(rank - 1)  # ranks 1 and 2


@kernel
def cells_of(ctx):
    """The scratch cells."""
    c = read(ctx)
    return borrow(c.cells, np.uint8, c.rows * c.cols)


@kernel
def wide_from_cells(blank, cells, cols):
    return wide.widen(blank, cells, cols)


@kernel
def wide_key(board):
    return U(0)  # wide boards are searched without a table


@kernel
def wide_moves(board, ctx):
    cells, cols = cells_of(ctx), read(ctx).cols
    up, along = wide.moved(board, cells, cols, 0)
    right, across = wide.moved(board, cells, cols, 1)
    down, _ = wide.moved(board, cells, cols, 2)
    left, _ = wide.moved(board, cells, cols, 3)
    return up, down, left, right, along, across


@kernel
def wide_open_cells(board, ctx):
    bits = U(0)
    for r in range(len(board)):
        for c in range(read(ctx).cols):
            if board[r] >> U(8 * c) & U(255) == U(0):
                bits |= U(1) << U(8 * r + c)
    return bits


@kernel
def wide_with_tile(board, bit, rank):
    place = np.int64(trailing_zeros(bit))
    return wide.tuple_setitem(board, place >> 3, board[place >> 3] | U(rank) << U(8 * (place & 7)))


class Engine(NamedTuple):
    """The kernels that a search is built from; see above."""

    name: str  # the variant of the kernels that are compiled from these
    from_cells: Kernel
    key: Kernel
    moves: Kernel
    open_cells: Kernel
    with_tile: Kernel
    evaluate: Kernel


def engine(kind: str, heuristic: Any, scored: bool) -> Engine:
    """The kernels for a kind of `Boards`, valued by a heuristic class (None: every leaf is worth 0).

    "packed" uses the heuristic's own fast kernel. `scored` is whether the search counts the score of the moves.
    """
    name = f"{kind}-{heuristic.name if heuristic else 'none'}{'-scored' if scored else ''}"
    evaluate = _evaluator(kind, heuristic, name)
    if kind == "wide":
        shared = wide_from_cells, wide_key, wide_moves, wide_open_cells, wide_with_tile
    else:
        from_cells = getattr(heuristic, "from_cells", packed_from_cells)  # a network may replace tiles
        shared = from_cells, packed_key, packed_moves, packed_open_cells, packed_with_tile
    return Engine(name, *shared, evaluate)


def _evaluator(kind: str, heuristic: Any, name: str) -> Kernel:
    if heuristic is None:

        @kernel(variant=name)
        def nothing(board, to_move, ctx):
            return 0.0

        return nothing

    packed_kernel, cells_kernel = heuristic.packed_kernel, heuristic.cells_kernel
    if kind == "packed":
        borrow_tables = _table_borrower(heuristic, name)

        @kernel(variant=name)
        def of_packed(board, to_move, ctx):
            c = read(ctx)
            weights = borrow(c.weights, np.float64, c.weight_count)
            return packed_kernel(board, to_move, borrow_tables(c.table0, c.table1), weights)

        return of_packed
    if kind == "small":

        @kernel(variant=name)
        def of_small(board, to_move, ctx):
            c, cells = read(ctx), cells_of(ctx)
            packed.unpack(board, cells, c.rows, c.cols)
            return cells_kernel(cells, c.rows, c.cols, to_move, borrow(c.weights, np.float64, c.weight_count))

        return of_small

    @kernel(variant=name)
    def of_wide(board, to_move, ctx):
        c, cells = read(ctx), cells_of(ctx)
        wide.unwiden(board, cells, c.cols)
        return cells_kernel(cells, c.rows, c.cols, to_move, borrow(c.weights, np.float64, c.weight_count))

    return of_wide


def tables_of(heuristic: Any) -> tuple[Array, ...]:
    """A heuristic's one or two tables as a tuple."""
    tables = heuristic.tables()
    return tables if isinstance(tables, tuple) else (tables,)


def _table_borrower(heuristic: Any, name: str) -> Kernel:
    """A kernel that makes the tables of a heuristic's packed kernel from their addresses."""
    plain = heuristic.tables is Heuristic.tables
    shared = NO_TABLES if plain else heuristic().tables()  # types and sizes are the same whatever the weights
    if not isinstance(shared, tuple):
        dtype, count = shared.dtype.type, shared.size

        @kernel(variant=name)
        def borrow_one(address, _):
            return borrow(address, dtype, count)

        return borrow_one
    (dtype0, count0), (dtype1, count1) = ((table.dtype.type, table.size) for table in shared)

    @kernel(variant=name)
    def borrow_two(address0, address1):
        return borrow(address0, dtype0, count0), borrow(address1, dtype1, count1)

    return borrow_two
