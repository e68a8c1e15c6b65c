"""`View`: what `mergefall.wrappers` shows of a game's observations. Each game has a subclass, in its `views.py`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from mergefall.checks import choice


@dataclass(frozen=True)
class View:
    """A view "planes" or "flat": a call converts a batch of observations to float32[n, …]; `space` is of one game."""

    rules: Any
    kind: str

    def __post_init__(self) -> None:
        choice("kind", self.kind, ("planes", "flat"))

    def __call__(self, observations: Any) -> NDArray[np.float32]:
        raise NotImplementedError

    @property
    def space(self) -> gym.spaces.Box:
        return gym.spaces.Box(0, 1, self(self.rules.observations(self.rules.new_states(1)))[0].shape, np.float32)
