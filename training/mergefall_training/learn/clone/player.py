"""Cloned policies as players; they are policies of MaskablePPO."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from mergefall_training.learn.agents import Agent
from mergefall_training.learn.sb3.player import PolicyAgent


def player(spec: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Agent:
    """A player from the policy of a model."""
    return PolicyAgent({**spec, "algorithm": "maskable-ppo"}, arrays)
