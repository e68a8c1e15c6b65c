"""The base of the heuristics of 2048: named terms of a board, a weight for each, and kernels that searches inline.

Every heuristic states its terms once, in a kernel over flat cells of any board size: the slow twin. Values, batches,
potentials, plots and tables come from there. The fast twin, for packed 4×4 boards, is tested to give the same value.
"""

from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mergefall.game2048 import board as core
from mergefall.game2048 import packed
from mergefall.game2048.rules import MAX_RANK, checked_ranks
from mergefall.kernels import kernel, unowned
from mergefall.typing import Array, Bools, Bytes, Dict, Floats, Kernel, Words
from mergefall.weighted import WeightedSum, dot, plain, write_terms

U = np.uint64
NO_TABLE = np.zeros(1)
NO_TABLE.flags.writeable = False


@lru_cache(maxsize=8)  # a tuning run tries many weights
def filled(fill: Kernel, settings: tuple[Any, ...], *kinds: tuple[int, type]) -> tuple[Array, ...]:
    """The tables that a kernel writes: each kind is a size and a dtype."""
    tables = tuple(np.empty(*kind) for kind in kinds)
    fill(*settings, *tables)
    for table in tables:
        table.flags.writeable = False
    return tables


class Kernels(NamedTuple):
    """The kernels that searches inline.

    Attributes:
        value: (cells, rows, cols, to_move, weights), the value of a board.
        packed: (board, to_move, tables, weights), the same for 4×4 boards.
        batch: (boards uint8[n, cells], rows, cols, to_move, weights, values, terms), writes float64[n], float64[n, k].
        pack: (cells, rows, cols) -> board in a word, where `packed` values all boards; else None.
    """

    value: Kernel
    packed: Kernel
    batch: Kernel
    pack: Any = None


@kernel
def weighted_sum(terms, cells, weights):
    """Σ weights[i] · terms[i]: the usual `combine_kernel`."""
    return dot(terms, weights, 0)


@dataclass(frozen=True)
class Heuristic(WeightedSum):
    """A weighted sum of named terms of a 2048 board. Subclasses define the terms; their fields are the weights.

    A subclass sets `name`, `dead` (the value that a search gives a position without a legal move) and

    - `of_board`: the terms, with a kernel (cells, rows, cols, to_move, weights) -> tuple. `cells` uint8[rows·cols] are
      flat ranks, and `weights` float64[k] those of the terms, in their order. `to_move` is True if the player moves
      next, and False for an afterstate.
    - `combine_kernel`, optional: (terms, cells, weights) -> value. Default: the weighted sum.
    - `packed_kernel`, optional: (board, to_move, tables, weights) -> value, a faster version of both for 4×4 boards.
      `board` uint64 holds four bits for each cell (`mergefall.game2048.packed`), and `tables` are the two arrays that
      the method `tables` returns. Default: unpacks the board.

    Values, batches, potentials and plots are made from these. The guide "Write a heuristic" has a subclass.

    Example:
        >>> from mergefall.game2048 import HEURISTICS
        >>> h = HEURISTICS["monotone-smooth"]
        >>> board = [[1, 2, 3, 4], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]
        >>> round(h(board), 3)
        9.612
        >>> h.terms(board)["smoothness"]
        -6.0
    """

    dead: ClassVar[float]  # the value a search gives a node without a legal move
    dead_scored: ClassVar[float]  # the same where a search counts rewards; default: `dead`
    by_lines = False  # the value is a sum over lines, of values in tables[0], and `dead` the least
    combine_kernel = weighted_sum
    packed_kernel: ClassVar[Any] = None

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        if "of_board" in cls.__dict__ and "packed_kernel" not in cls.__dict__:  # a base class's is of other terms
            cls.packed_kernel, cls.by_lines = None, False

    @classmethod
    def kernels(cls) -> Kernels:
        """The class's kernels; weights are arguments, so that all instances share them."""
        return _kernels(cls.of_board.named, cls.combine_kernel, cls.packed_kernel)

    def __call__(self, ranks: ArrayLike, to_move: bool = False) -> Any:
        """The value of one board (rows, cols) as a float, of a batch (n, rows, cols) as float64[n].

        - `ranks`: integers from 0 to 62, log2 of the tile, 0 for an empty cell; boards from 2×2 to 6×6.
        - `to_move`: True if the player moves next, False (default) for an afterstate.

        Raises ValueError for any other board.
        """
        return plain(self._terms(ranks, to_move)[0])

    def terms(self, ranks: ArrayLike, to_move: bool = False) -> Dict:
        """The terms by name, unweighted: a float each for one board, float64[n] each for a batch."""
        _, terms = self._terms(ranks, to_move)
        return dict(zip(self.term_names, map(plain, terms), strict=True))

    def tables(self) -> tuple[Array, ...]:
        """The two tables for `packed_kernel`, of types and sizes that no weight changes."""
        return NO_TABLE, NO_TABLE

    def value_states(self, states: Words, values: Floats, over: Bools) -> None:
        _of_states(self.kernels())(states, self.tables(), self._weights, values, over)

    def of_empty(self, board: Bytes) -> float:
        return sum(getattr(self, name) * term for name, term in self.terms(board).items())  # not tile-order's GAME_OVER

    def _terms(self, ranks: ArrayLike, to_move: bool) -> tuple[Floats, Floats]:
        """(the value of each board, the terms [terms, …]) of one board or a batch, checked."""
        *batch, rows, cols = (boards := self.sized("ranks", ranks)).shape
        cells = checked_ranks("ranks", boards, MAX_RANK).reshape(-1, rows * cols)
        values, terms = np.empty(len(cells)), np.empty((len(cells), len(self.term_names)))
        self.kernels().batch(cells, rows, cols, bool(to_move), self._weights, values, terms)
        self.check()
        return values.reshape(batch), terms.T.reshape(terms.shape[1], *batch)


@cache
def _kernels(terms_of: Kernel, combine: Kernel, of_packed: Kernel | None) -> Kernels:
    @kernel
    def value_of(cells, rows, cols, to_move, weights):
        return combine(terms_of(cells, rows, cols, to_move, weights), cells, weights)

    @kernel
    def values_of(cells, rows, cols, to_move, weights, values, written):
        for i in range(len(cells)):
            terms = terms_of(cells[i], rows, cols, to_move, weights)
            values[i] = combine(terms, cells[i], weights)
            write_terms(terms, written[i])

    @kernel
    def unpacking(board, to_move, tables, weights):
        cells = np.empty(16, np.uint8)
        packed.unpack(board, cells, 4, 4)
        return value_of(cells, 4, 4, to_move, weights)

    return Kernels(value_of, of_packed or unpacking, values_of)


@cache
def _of_states(kernels: Kernels) -> Kernel:
    of_cells, of_packed = kernels.value, kernels.packed

    @kernel
    def of_states(states, tables, weights, values, ends):
        """Write the values of states uint64[n, words], float64[n], and whether the game is over, bool[n].

        4×4 boards with ranks below 15 are packed and valued as in a search, so by nneonneo in single precision.
        """
        states, weights, values, ends = unowned((states, weights, values, ends))
        for i in range(U(len(values))):
            shape = states[i, core.SHAPE]
            goal, small = core.goal_of(shape), shape & packed.SHAPE_MASK == packed.SHAPE_4X4
            if small and packed.all_below_15(states[i, core.CELLS], states[i, core.CELLS + 1]):
                board = packed.squeeze(states[i, core.CELLS]) | packed.squeeze(states[i, core.CELLS + 1]) << U(32)
                _, over, _ = packed.status(board, goal)
                value = 0.0 if over else np.float64(of_packed(board, False, tables, weights))
            else:
                cells, rows, cols = core.board_in(states[i])
                _, over, _ = core.status(cells, rows, cols, goal)
                value = 0.0 if over else of_cells(cells, rows, cols, False, weights)
            values[i], ends[i] = value, over

    return of_states
