"""Cloned policies as players: those of MaskablePPO."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from mergefall_training.learn.agents import Agent
from mergefall_training.learn.sb3.player import PolicyAgent


def player(spec: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Agent:
    """The policy of a model as a player."""
    return PolicyAgent({**spec, "algorithm": "maskable-ppo"}, arrays)
