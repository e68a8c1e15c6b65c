"""The heuristics of Tetris as potentials of states: the board terms only."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mergefall.kernels import kernel, unowned
from mergefall.shaping import Shaping, squashed
from mergefall.tetris import game
from mergefall.tetris.heuristics import Heuristic, heuristic
from mergefall.typing import Kernel


@cache
def _kernel(of_board: Kernel) -> Kernel:
    @kernel
    def potentials(states, weights, offset, scale, bends, values):
        """Write Φ of states uint64[n, words] into values float64[n], 0 where the game is over."""
        states, weights, values = unowned((states, weights, values))
        for i in range(len(values)):
            state = states[i]
            values[i] = 0.0
            if not game.is_over(state):
                value = of_board(game.columns_in(state), game.size_of(state)[1], weights)
                values[i] = squashed(value, offset, scale, bends)

    return potentials


@dataclass(frozen=True)
class ShapingTetris(Shaping):
    """Shaping by the board terms of a heuristic."""

    @staticmethod
    def choose(spec: Any) -> Heuristic:
        return heuristic(spec)

    @staticmethod
    def of_empty(potential: Heuristic, board: NDArray[np.uint8]) -> float:
        return potential.board(board)

    def compiled(self) -> tuple[Any, tuple[Any, ...]]:
        potential: Any = self.potential
        return _kernel(potential.kernels().board), (potential.weight_vector(),)
