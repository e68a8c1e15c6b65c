"""What a search needs to know of a board, for each way of holding one; searches are written once over these.

An engine is a set of kernels: ``from_cells(cells, ctx) -> board``, ``moves(board, ctx) -> (four afterstates, four scores)``,
``is_empty(board, r, c)``, ``with_tile(board, r, c, rank)``, ``key(board)`` for tables and, made for a heuristic,
``evaluate(board, to_move, ctx)``. An afterstate equal to its board means that the action is illegal.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from mergefall.game2048 import packed, wide
from mergefall.kernels import kernel
from numpy.typing import NDArray

U = np.uint64


class Context(NamedTuple):
    """What all nodes of a search share; plain arrays and numbers, handed from node to node."""

    blank: Any  # an empty board of the engine
    rows: int
    cols: int
    row_lines: NDArray[np.uint64]  # line tables of the packed engine
    column_lines: NDArray[np.uint64]
    tables: Any  # the heuristic's own
    weights: NDArray[np.float64]
    cells: NDArray[np.uint8]  # scratch, rows·cols
    leaves: NDArray[Any]  # scratch, 32 values
    entries: NDArray[Any]  # transposition table, see `table.py`
    stop: NDArray[np.int64]  # [1] set from outside: give up
    order: NDArray[np.int64]  # in which moves are searched; with a table that forgets depths it matters
    cutoff: float  # chance nodes below this cumulative probability are leaves
    rewards: float  # 1 if the score of the moves counts, else 0
    state_leaves: bool  # leaves have one more tile


@kernel
def packed_from_cells(cells, ctx):
    return packed.pack(cells, ctx.rows, ctx.cols)


@kernel
def packed_moves(board, ctx):
    up, right, down, left, along, across = packed.moves(board, ctx.row_lines, ctx.column_lines)
    return (up, right, down, left), (along, across, along, across)


@kernel
def packed_is_empty(board, r, c):
    return board >> U(16 * r + 4 * c) & U(15) == U(0)


@kernel
def packed_with_tile(board, r, c, rank):
    return board | U(rank) << U(16 * r + 4 * c)


@kernel
def packed_key(board):
    return board


@kernel
def wide_from_cells(cells, ctx):
    return wide.widen(ctx.blank, cells, ctx.cols)


@kernel
def wide_moves(board, ctx):
    up, along = wide.moved(board, ctx.cells, ctx.cols, 0)
    right, across = wide.moved(board, ctx.cells, ctx.cols, 1)
    down, _ = wide.moved(board, ctx.cells, ctx.cols, 2)
    left, _ = wide.moved(board, ctx.cells, ctx.cols, 3)
    return (up, right, down, left), (along, across, along, across)


@kernel
def wide_is_empty(board, r, c):
    return board[r] >> U(8 * c) & U(255) == U(0)


@kernel
def wide_with_tile(board, r, c, rank):
    return wide.tuple_setitem(board, r, board[r] | U(rank) << U(8 * c))


@kernel
def wide_key(board):
    return U(0)  # wide boards are searched without a table


class Engine(NamedTuple):
    """The kernels a search is built from. `name` tells apart what is compiled from them."""

    name: str
    from_cells: Any
    moves: Any
    is_empty: Any
    with_tile: Any
    key: Any
    evaluate: Any


def engine(kind: str, heuristic: Any) -> Engine:
    """The kernels for boards held as `kind`, valued by `heuristic` (None: every leaf is worth 0).

    ``packed``: 4×4 in a word, the heuristic's own fast kernel. ``small``: smaller boards in a word. ``wide``: any.
    """
    name = f"{kind}-{heuristic.name if heuristic else 'none'}"
    evaluate = _evaluator(kind, heuristic, name)
    if kind == "wide":
        return Engine(name, wide_from_cells, wide_moves, wide_is_empty, wide_with_tile, wide_key, evaluate)
    return Engine(name, packed_from_cells, packed_moves, packed_is_empty, packed_with_tile, packed_key, evaluate)


def _evaluator(kind: str, heuristic: Any, name: str) -> Any:
    if heuristic is None:

        @kernel(variant=name)
        def nothing(board, to_move, ctx):
            return 0.0

        return nothing

    packed_kernel, cells_kernel = heuristic.packed_kernel, heuristic.cells_kernel
    if kind == "packed":

        @kernel(variant=name)
        def of_packed(board, to_move, ctx):
            return packed_kernel(board, to_move, ctx.tables, ctx.weights)

        return of_packed
    if kind == "small":

        @kernel(variant=name)
        def of_small(board, to_move, ctx):
            packed.unpack(board, ctx.cells, ctx.rows, ctx.cols)
            return cells_kernel(ctx.cells, ctx.rows, ctx.cols, to_move, ctx.weights)

        return of_small

    @kernel(variant=name)
    def of_wide(board, to_move, ctx):
        wide.unwiden(board, ctx.cells, ctx.cols)
        return cells_kernel(ctx.cells, ctx.rows, ctx.cols, to_move, ctx.weights)

    return of_wide
