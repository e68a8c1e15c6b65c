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
from mergefall.tetris.field import columns_of
from mergefall.tetris.heuristics import Heuristic, heuristic
from mergefall.tetris.rules import Rules
from mergefall.typing import Kernel


@cache
def _kernel(cls: type[Heuristic]) -> Kernel:
    of_board = cls.kernels().board

    @kernel(variant=cls.name)
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
    def choose(spec: Any, rows: int, cols: int) -> Heuristic:
        potential = heuristic(spec)
        potential.check_size(rows, cols)
        return potential

    @staticmethod
    def of_empty(potential: Heuristic, rows: int, cols: int) -> float:
        return potential.board(np.zeros((rows, cols), np.uint8))

    @staticmethod
    def state_of(board: NDArray[np.uint8]) -> NDArray[np.uint64]:
        rows, cols = board.shape
        states = Rules(cols, rows).new_states(1)
        states[:, game.COLUMNS :] = columns_of(board)
        return states

    def compiled(self) -> tuple[Any, tuple[Any, ...]]:
        potential: Any = self.potential
        return _kernel(type(potential)), (potential.weight_vector(),)
