"""The heuristics of 2048 as potentials of states."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mergefall.game2048 import board as core
from mergefall.game2048 import packed
from mergefall.game2048.heuristics import Heuristic, Nneonneo, heuristic
from mergefall.kernels import kernel, unowned
from mergefall.shaping import Shaping, squashed
from mergefall.typing import Kernel

U = np.uint64


@cache
def _kernel(cls: type[Heuristic]) -> Kernel:
    of_packed, of_cells = cls.packed_kernel, cls.value_kernel

    @kernel
    def potentials(states, tables, weights, offset, scale, bends, values):
        """Write Φ of states uint64[n, words] to values float64[n]; 4×4 boards with ranks below 15 are packed."""
        states, weights, values = unowned((states, weights, values))
        for i in range(U(len(values))):
            small, upper, lower = packed.packable(states, i)
            if small:
                board = packed.from_words(upper, lower)
                _, over, _ = packed.status(board, core.goal_of(states[i, core.SHAPE]))
                value = 0.0 if over else np.float64(of_packed(board, False, tables, weights))
            else:
                rows, cols, goal = core.shape_of(states[i])
                cells = core.flat_cells(states[i], rows, cols)
                _, over, _ = core.status(cells, rows, cols, goal)
                value = 0.0 if over else of_cells(cells, rows, cols, False, weights)
            values[i] = 0.0 if over else squashed(value, offset, scale, bends)

    return potentials


@dataclass(frozen=True)
class Shaping2048(Shaping):
    """Shaping by a heuristic of 2048. On 4×4 it is valued as in a search, so nneonneo in single precision."""

    @staticmethod
    def choose(spec: Any) -> Heuristic:
        options = {"name": spec} if isinstance(spec, str) else spec
        if isinstance(options, Mapping) and options.get("name") == Nneonneo.name:
            options = {"base": 0.0, **options}  # the same for all boards
        return heuristic(options)

    @staticmethod
    def of_empty(potential: Heuristic, board: NDArray[np.uint8]) -> float:
        terms = potential.terms(board)  # the sum, because tile-order's value is GAME_OVER
        return sum(getattr(potential, name) * term for name, term in terms.items())

    def compiled(self) -> tuple[Any, tuple[Any, ...]]:
        potential: Any = self.potential
        return _kernel(type(potential)), (potential.tables(), potential.weight_vector())
