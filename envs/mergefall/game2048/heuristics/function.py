"""Any function of a board as a heuristic of 2048."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mergefall.functions import BoardFunction, value_at
from mergefall.game2048.heuristics.base import Heuristic
from mergefall.kernels import kernel


@kernel
def terms_of_cells(cells, rows, cols, to_move, weights):
    return (value_at(weights[1:], cells, rows, cols),)


@dataclass(frozen=True)
class FunctionHeuristic(Heuristic):
    """The value that a function gives a board of ranks, int64[rows, cols]; `heuristic` makes one of a function.

    A search calls a Python function for every leaf, and a Numba function at compiled speed. The only term is `value`. A
    position without a legal move is worth −10⁹ to a search, and 0 if the search counts rewards: then the function is
    taken to predict the rest of the score.

    Example:
        >>> from mergefall.game2048 import heuristic
        >>> heuristic(lambda board: (board == 0).sum())([[1, 0], [0, 0]])
        3.0
    """

    name: ClassVar[str] = "function"  # of the class, whose kernels serve all functions; an instance has its own name
    term_names: ClassVar[tuple[str, ...]] = ("value",)
    dead: ClassVar[float] = -1e9
    dead_scored: ClassVar[float] = 0.0
    value: ClassVar[float] = 1.0
    terms_kernel = staticmethod(terms_of_cells)

    function: Callable[..., Any]
    label: str

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "name", self.label)

    def __reduce__(self) -> Any:
        return type(self), (self.function, self.label)

    @cached_property
    def _called(self) -> BoardFunction:
        return BoardFunction(self.function, self.label)

    @property
    def option_names(self) -> list[str]:
        """The names of the fields that options may set."""
        return []

    def weight_vector(self) -> NDArray[np.float64]:
        """The weight of the value, 1, and the function's address."""
        return np.append(1.0, self._called.weight)

    def check(self) -> None:
        """Raises what the function raised while compiled code called it."""
        self._called.check()
