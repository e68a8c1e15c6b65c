"""2048 as an array that a network takes: what the wrappers of `mergefall.wrappers` show."""

from __future__ import annotations

from dataclasses import dataclass

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from mergefall.game2048.rules import Rules


@dataclass(frozen=True)
class View:
    """A view of observations: `space` of one game's, and a call that converts a batch.

    - `kind`: `planes` or `flat`.
    """

    rules: Rules
    kind: str

    def __call__(self, observations: NDArray[np.uint8]) -> NDArray[np.float32]:
        tiles = np.eye(self._ranks, dtype=np.float32)[observations]
        if self.kind == "flat":
            return tiles.reshape(len(tiles), -1)
        return np.ascontiguousarray(tiles.transpose(0, 3, 1, 2))

    @property
    def space(self) -> gym.spaces.Box:
        """The space of one game's view."""
        rows, cols = self.rules.rows, self.rules.cols
        shape = (rows * cols * self._ranks,) if self.kind == "flat" else (self._ranks, rows, cols)
        return gym.spaces.Box(0, 1, shape, np.float32)

    @property
    def _ranks(self) -> int:
        """The number of ranks that a cell can have, 0 (empty) included."""
        return int(self.rules.observation_space().high.flat[0]) + 1
