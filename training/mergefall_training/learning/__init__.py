"""Training: learners, what they leave behind, and trained agents as players.

A learner is a module with three functions: ``check(config, device)`` raises ValueError for a configuration
(`runs.Config`) that it cannot train, ``train(run)`` trains in a run folder (`runs.Run`), ``player(spec, arrays)`` makes
a `Player` of what `Run.evaluate` was given; where the player has options, it takes them as well. `ALGORITHMS` says
which module has which algorithm. To train needs the extra ``train``; the rest of this package does not.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from gymnasium.error import DependencyNotInstalled
from mergefall.checks import choice

ALGORITHMS = {
    "ppo": "sb3",
    "dqn": "sb3",
    "maskable-ppo": "sb3",
    "qr-dqn": "sb3",
    "clone": "cloning",
    "afterstate": "afterstate",
    "ntuple": "ntuple",
    "td": "tetris_network",
    "cross-entropy": "evolving",
    "cma-es": "evolving",
}
_EXTRA = ("torch", "stable_baselines3", "sb3_contrib", "tensorboard", "minari", "optuna", "cma")


def learner(algorithm: str) -> Any:
    """The module that has an algorithm; a ValueError if none has, DependencyNotInstalled if it needs the extra."""
    return import_learning(ALGORITHMS[choice("algorithm", algorithm, sorted(ALGORITHMS))])


def import_learning(module: str) -> Any:
    """A module of this package that needs the extra ``train``; where that is missing, the error says how to get it."""
    try:
        return import_module(f"{__name__}.{module}")
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in _EXTRA:
            raise
        raise DependencyNotInstalled(f'{missing} is missing; pip install "mergefall[train]" brings it') from error
