"""Cloned policies as players; they are policies of MaskablePPO."""

from __future__ import annotations

from mergefall.typing import Arrays, Options

from mergefall_training.learn.agents import Agent
from mergefall_training.learn.sb3.player import PolicyAgent


def player(spec: Options, arrays: Arrays, device: str = "cpu") -> Agent:
    """A player from the policy of a model; `device` is where PyTorch computes it."""
    return PolicyAgent({**spec, "algorithm": "maskable-ppo"}, arrays, device)
