"""Any function of a board as a heuristic of Tetris."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mergefall.functions import BoardFunction, value_at
from mergefall.kernels import kernel
from mergefall.tetris.field import write_board
from mergefall.tetris.heuristics.base import Heuristic

ADDRESS = 2  # in the weights, behind those of the terms


@kernel
def placement_terms(piece, rotation, column, y, lines, own, rows):
    return (lines,)


@kernel
def board_terms(columns, rows, weights):
    cells = np.empty(rows * columns.size, np.uint8)
    write_board(columns, rows, cells)
    return (value_at(weights[ADDRESS:], cells, rows, columns.size),)


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

    name: ClassVar[str] = "function"  # of the class; an instance has its own name
    term_names: ClassVar[tuple[str, ...]] = ("value", "lines")
    placement_names: ClassVar[tuple[str, ...]] = ("lines",)
    board_names: ClassVar[tuple[str, ...]] = ("value",)
    placement_kernel: ClassVar[Any] = placement_terms
    terms_kernel: ClassVar[Any] = board_terms
    value: ClassVar[float] = 1.0

    function: Callable[..., Any]
    label: str
    lines: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "name", self.label)

    def __reduce__(self) -> Any:
        return type(self), (self.function, self.label, self.lines)

    @cached_property
    def _called(self) -> BoardFunction:
        return BoardFunction(self.function, self.label)

    @property
    def option_names(self) -> list[str]:
        """The names of the fields that options may set."""
        return ["lines"]

    def weight_vector(self) -> NDArray[np.float64]:
        """The weights of the terms, then the function's address."""
        return np.append(super().weight_vector(), self._called.weight)

    def check(self) -> None:
        """Raises what the function raised while compiled code called it."""
        self._called.check()
