"""CMA-ES, covariance matrix adaptation by the library `cma`, as a strategy of `train.py`.

A pickle of the library's state would tie a checkpoint to one release of it. But everything that it does follows from
the random numbers and the candidates' values. So a checkpoint keeps these values, and a restored strategy learns from
them again, which takes a millisecond for each generation.

Source: N. Hansen & A. Ostermeier, Completely derandomized self-adaptation in evolution strategies (2001); for Tetris
A. Boumaza, On the evolution of artificial Tetris players (2009).
"""

from __future__ import annotations

from typing import Any

import cma
import numpy as np
from numpy.typing import NDArray


class CmaEs:
    """A Gaussian that CMA-ES adapts; at first its mean is 0 and its standard deviation `spread`."""

    def __init__(self, size: int, population: int, seed: int, spread: float = 1.0) -> None:
        self._seed, self._told, self._asked = seed, [], []
        self._random = np.random.default_rng(seed)
        options = {"popsize": population, "randn": self._normal, "seed": np.nan, "verbose": -9}
        self._strategy: Any = cma.CMAEvolutionStrategy(np.zeros(size), spread, options)

    def _normal(self, *shape: int) -> NDArray[np.float64]:
        return self._random.standard_normal(shape)

    @property
    def mean(self) -> NDArray[np.float64]:
        return np.array(self._strategy.mean)

    def ask(self) -> NDArray[np.float64]:
        self._random = np.random.default_rng([self._seed, len(self._told)])
        self._asked = self._strategy.ask()
        return np.array(self._asked)

    def tell(self, values: NDArray[np.float64], left: float) -> None:
        """Learn from the candidates' values, float64[population]; `left` is ignored."""
        self._strategy.tell(self._asked, (-values).tolist())  # it minimizes
        self._told.append(values.tolist())

    def state(self) -> dict[str, Any]:
        return {"told": np.array(self._told)}

    def restore(self, state: dict[str, Any]) -> None:
        for values in state["told"]:
            self.ask()
            self.tell(values, 0.0)
