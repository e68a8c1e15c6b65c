"""The base of the heuristics of 2048: named terms of a board, a weight for each, and kernels that searches inline.

Every heuristic states its terms once, in a kernel over flat cells of any board size: the slow twin. Values, batches and
tables come from there. The fast twin, for packed 4×4 boards, is tested to give the same value.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mergefall import checks
from mergefall.game2048.packed import unpack
from mergefall.game2048.rules import LARGEST, MAX_RANK, SMALLEST
from mergefall.kernels import kernel
from mergefall.typing import Kernel
from mergefall.weighted import WeightedSum

NO_TABLES = np.zeros(1)
NO_TABLES.flags.writeable = False


@dataclass(frozen=True)
class Heuristic(WeightedSum):
    """A weighted sum of named terms of a 2048 board. Subclasses define the terms; their fields are the weights.

    Example:
        >>> from mergefall.game2048 import HEURISTICS
        >>> h = HEURISTICS["monotone-smooth"]
        >>> board = [[1, 2, 3, 4], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]
        >>> round(h(board), 3)
        9.612
        >>> h.terms(board)["smoothness"]
        -6.0
    """

    # What searches need. Kernels are wrapped in `staticmethod`, because a Numba dispatcher would bind as a method.
    # `cells_kernel` is enough: a class without a `packed_kernel` gets one that unpacks the board.
    kind: ClassVar[str] = "heuristic"
    dead: ClassVar[float]  # the value a search gives a node without a legal move
    dead_scored: ClassVar[float]  # the same where a search counts rewards; default: `dead`
    floored: ClassVar[bool] = False  # expectimax values no node at which the player moves below `dead`
    line_additive: ClassVar[bool] = False  # `tables` is one array of line values, whose sum is the value
    terms_kernel: ClassVar[Any]  # (cells uint8[rows·cols], rows, cols, to_move, weights) -> tuple of float64
    cells_kernel: ClassVar[Any]  # (cells, rows, cols, to_move, weights float64[:]) -> float64
    packed_kernel: ClassVar[Any]  # (board uint64, to_move, tables, weights) -> float, 4×4 boards

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        cells_kernel = cls.__dict__.get("cells_kernel")
        if cells_kernel is not None and "packed_kernel" not in cls.__dict__:
            if not isinstance(cells_kernel, staticmethod):
                raise ValueError(f"cells_kernel of {cls.__name__} is {cells_kernel!r}; expected staticmethod(kernel)")
            cls.packed_kernel = staticmethod(_unpacking(cells_kernel.__func__, cls.name))
            cls.tables, cls.line_additive = Heuristic.tables, False

    def __call__(self, ranks: ArrayLike, to_move: bool = False) -> Any:
        """The value of one board (rows, cols) as a float, of a batch (n, rows, cols) as float64[n].

        - `ranks`: integers from 0 to 62, log2 of the tile, 0 for an empty cell; boards from 2×2 to 6×6.
        - `to_move`: True if the player moves next, False (default) for an afterstate.

        Raises ValueError for any other board.
        """
        cells, rows, cols, single = self._boards(ranks)
        values = np.empty(len(cells))
        _batch_kernels(type(self))[0](cells, rows, cols, bool(to_move), self._weights, values)
        self.check()
        return float(values[0]) if single else values

    def terms(self, ranks: ArrayLike, to_move: bool = False) -> dict[str, Any]:
        """The terms by name, unweighted: a float each for one board, float64[n] each for a batch.

        Raises ValueError, too, if the class has no `terms_kernel`.
        """
        if not hasattr(self, "terms_kernel"):
            raise ValueError(f"{self.name} has no terms_kernel, which its terms and their plots need")
        cells, rows, cols, single = self._boards(ranks)
        parts = np.empty((len(self.term_names), len(cells)))
        _batch_kernels(type(self))[1](cells, rows, cols, bool(to_move), self._weights, parts)
        self.check()
        return {name: float(part[0]) if single else part for name, part in zip(self.term_names, parts, strict=True)}

    def tables(self) -> Any:
        """The tables for `packed_kernel`, an array or a tuple of arrays; built on first use, then shared."""
        return NO_TABLES

    def check_size(self, rows: int, cols: int) -> None:
        """Raises ValueError for a board size that the heuristic is not defined on."""
        if not (SMALLEST <= rows <= LARGEST and SMALLEST <= cols <= LARGEST):
            raise ValueError(f"board of {rows}×{cols}; expected 2×2 to 6×6")

    def _boards(self, ranks: ArrayLike) -> tuple[NDArray[np.uint8], int, int, bool]:
        """(cells uint8[n, rows·cols], rows, cols, whether one board was given), checked."""
        boards = checks.array("ranks", ranks, "(rows, cols) or (n, rows, cols)")
        if boards.ndim not in (2, 3):
            raise ValueError(f"ranks of shape {boards.shape}; expected (rows, cols) or (n, rows, cols)")
        rows, cols = boards.shape[-2:]
        self.check_size(rows, cols)
        if boards.dtype.kind not in "iu":
            raise ValueError(f"ranks of type {boards.dtype}; expected integers (log2 of the tiles, 0 for empty)")
        lowest = 0 if boards.dtype.kind == "u" else boards.min(initial=0)  # `min` takes 2 µs
        if lowest < 0 or boards.max(initial=0) > MAX_RANK:
            raise ValueError(f"ranks from {boards.min()} to {boards.max()}; expected 0 to {MAX_RANK}")
        single = boards.ndim == 2
        count = 1 if single else len(boards)
        return np.ascontiguousarray(boards, dtype=np.uint8).reshape(count, rows * cols), rows, cols, single


@kernel
def dot(terms, weights, first):
    """Σ weights[first + i] · terms[i], added up in this order."""
    value = 0.0
    for i in range(len(terms)):
        value += weights[first + i] * terms[i]
    return value


def _unpacking(cells_kernel: Kernel, name: str) -> Kernel:
    """A `packed_kernel` from a `cells_kernel`."""

    @kernel(variant=name)
    def of_packed(board, to_move, tables, weights):
        cells = np.empty(16, np.uint8)
        unpack(board, cells, 4, 4)
        return cells_kernel(cells, 4, 4, to_move, weights)

    return of_packed


@cache
def _batch_kernels(cls: type[Heuristic]) -> tuple[Kernel, Kernel]:
    """The kernels that compute the values, and the terms, of many boards."""
    value_of, terms_of = cls.cells_kernel, cast(Any, getattr(cls, "terms_kernel", None))

    @kernel(variant=cls.name)
    def batch_values(cells, rows, cols, to_move, weights, values):
        for i in range(len(cells)):
            values[i] = value_of(cells[i], rows, cols, to_move, weights)

    @kernel(variant=cls.name)
    def batch_terms(cells, rows, cols, to_move, weights, parts):
        for i in range(len(cells)):
            terms = terms_of(cells[i], rows, cols, to_move, weights)
            for k in range(len(terms)):
                parts[k, i] = terms[k]

    return batch_values, batch_terms
