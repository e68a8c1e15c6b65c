"""Covariance matrix adaptation of the library `cma` as a strategy of `evolution.py`.

What its state is made of is the library's own affair, and a pickle of it would tie a checkpoint to one release. But
all it does follows from the random numbers and the values it is told, so these values are what is kept, and a strategy
that goes on is told them again: a millisecond for each generation.

Source: N. Hansen & A. Ostermeier, Completely derandomized self-adaptation in evolution strategies (2001); for Tetris
A. Boumaza, On the evolution of artificial Tetris players (2009).
"""

from __future__ import annotations

from typing import Any

import cma
import numpy as np
from numpy.typing import NDArray


class CmaEs:
    """Directions from a Gaussian that CMA-ES adapts; at first all directions are as likely."""

    def __init__(self, size: int, population: int, seed: int) -> None:
        self._seed, self._told, self._asked = seed, [], []
        self._random = np.random.default_rng(seed)
        options = {"popsize": population, "randn": self._normal, "seed": np.nan, "verbose": -9}
        # Lengths mean nothing, so neither does the deviation at first.
        self._strategy: Any = cma.CMAEvolutionStrategy(np.zeros(size), 1.0, options)

    def _normal(self, *shape: int) -> NDArray[np.float64]:
        return self._random.standard_normal(shape)

    @property
    def mean(self) -> NDArray[np.float64]:
        """The middle of the distribution, float64[size]."""
        return np.array(self._strategy.mean)

    def ask(self) -> NDArray[np.float64]:
        """The next generation's candidates, float64[population, size], of any length."""
        self._random = np.random.default_rng([self._seed, len(self._told)])
        self._asked = self._strategy.ask()
        return np.array(self._asked)

    def tell(self, values: NDArray[np.float64], left: float) -> None:
        """What the candidates that were asked for are worth, float64[population]; `left` of training makes no odds."""
        self._strategy.tell(self._asked, (-values).tolist())  # it minimizes
        self._told.append(values.tolist())

    def state(self) -> dict[str, Any]:
        """All that goes on."""
        return {"told": np.array(self._told)}

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to what `state` returned; this one must be new."""
        for values in state["told"]:
            self.ask()
            self.tell(values, 0.0)
