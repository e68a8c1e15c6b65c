"""What `mergefall.wrappers` shows of 2048: one-hot ranks as planes or as one vector."""

from __future__ import annotations

import math
from dataclasses import dataclass

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from mergefall.checks import choice
from mergefall.game2048.rules import Rules


def one_hot(ranks: NDArray[np.uint8], highest: int) -> NDArray[np.float32]:
    """Ranks one-hot: float32[..., highest + 1]; a higher rank counts as the highest.

    >>> one_hot(np.array([0, 2, 9], np.uint8), 2)
    array([[1., 0., 0.],
           [0., 0., 1.],
           [0., 0., 1.]], dtype=float32)
    """
    return np.eye(highest + 1, dtype=np.float32)[np.minimum(ranks, highest)]


@dataclass(frozen=True)
class View2048:
    """A view of observations: `space` of one game's, and a call that converts a batch uint8[n, rows, cols].

    - `kind`: "planes" float32[rows·cols + 2, rows, cols], or "flat" float32[rows·cols · (rows·cols + 2)].
    """

    rules: Rules
    kind: str

    def __post_init__(self) -> None:
        choice("kind", self.kind, ("planes", "flat"))

    def __call__(self, observations: NDArray[np.uint8]) -> NDArray[np.float32]:
        cells = one_hot(observations, self.rules.max_rank)  # [n, rows, cols, ranks]
        if self.kind == "planes":
            return np.ascontiguousarray(np.moveaxis(cells, -1, 1))
        return cells.reshape(len(cells), math.prod(cells.shape[1:]))

    @property
    def space(self) -> gym.spaces.Box:
        """The space of one game's view."""
        rows, cols, ranks = self.rules.rows, self.rules.cols, self.rules.max_rank + 1
        shape = (ranks, rows, cols) if self.kind == "planes" else (rows * cols * ranks,)
        return gym.spaces.Box(0, 1, shape, np.float32)
