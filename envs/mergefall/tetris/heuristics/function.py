"""Any function of a board as a heuristic of Tetris."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mergefall.functions import BoardFunction, value_at
from mergefall.kernels import kernel
from mergefall.tetris.field import write_board
from mergefall.tetris.heuristics.base import Heuristic, Kernels, plain_leaf
from mergefall.typing import Kernel

ADDRESS, LINES = range(2)  # in the weights
VALUE = 0  # among the terms, as LINES


@kernel
def move(piece, rotation, column, y, lines, own, rows, weights):
    return weights[LINES] * lines


@kernel
def last(piece, rotation, column, y, rows, weights):
    return 0.0


@kernel
def board(columns, rows, weights):
    cells = np.empty(rows * columns.size, np.uint8)
    write_board(columns, rows, cells)
    return value_at(weights, cells, rows, columns.size)


@kernel
def prepare(columns, rows, weights, memo):
    pass


@kernel
def terms_of_move(piece, rotation, column, y, lines, own, rows, weights, terms):
    terms[LINES] = lines


@kernel
def terms_of_board(columns, rows, weights, terms):
    terms[VALUE] = board(columns, rows, weights)


@cache
def _kernels(clears: bool) -> Kernels:
    return Kernels(move, last, board, prepare, plain_leaf(FunctionHeuristic, clears, move, last, board))


@dataclass(frozen=True)
class FunctionHeuristic(Heuristic):
    """The value that a function gives a board, int64[rows, cols] of 0 and 1; `heuristic` makes one of a function.

    A search calls a Python function for every leaf, and a Numba function at compiled speed. Terms:

    - `value`: what the function returns for the board after clearing
    - `lines`: the rows that the placement clears; its weight is the option `lines`, default: 0

    Example:
        >>> from mergefall.tetris import heuristic, place
        >>> low = heuristic(lambda board: -board.any(axis=1).sum())
        >>> low(place("..../..../..../##.#", "T", rotation=2, column=1))
        -1.0
        >>> low.to_json()
        {'name': 'mergefall.tetris.heuristics.function:<lambda>', 'lines': 0.0}
    """

    name: ClassVar[str] = "function"  # of the class, whose kernels serve all functions; an instance has its own name
    term_names: ClassVar[tuple[str, ...]] = ("value", "lines")
    slots: ClassVar[tuple[str, ...]] = term_names
    board_slots: ClassVar[tuple[str, ...]] = ("value",)
    value: ClassVar[float] = 1.0

    function: Callable[..., Any]
    label: str
    lines: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "name", self.label)

    def __reduce__(self) -> Any:
        return type(self), (self.function, self.label, self.lines)

    @classmethod
    def kernels(cls, clears: bool = True) -> Kernels:
        return _kernels(clears)

    @classmethod
    def term_kernels(cls) -> tuple[Kernel, Kernel]:
        return terms_of_move, terms_of_board

    @cached_property
    def _called(self) -> BoardFunction:
        return BoardFunction(self.function, self.label)

    @property
    def option_names(self) -> list[str]:
        """The names of the fields that options may set."""
        return ["lines"]

    def weight_vector(self) -> NDArray[np.float64]:
        """The function's address, and the weight of a line."""
        return np.append(self._called.weight, self.lines)

    def check(self) -> None:
        """Raises what the function raised while compiled code called it."""
        self._called.check()
