"""Training: learners, what they leave behind, and trained agents as players.

A learner is a folder with three files. `train.py` has ``check(config, device)``, which raises ValueError for a
configuration (`run.Config`) that it cannot train, and ``train(run)``, which trains in a run folder (`run.Run`);
`player.py` has ``player(spec, arrays, **options)``, which makes a `Player` of a trained model; `preset.yaml` holds its
hyper-parameters. `ALGORITHMS` says which folder has which algorithm. Training needs the extra ``train``.
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
    "clone": "clone",
    "afterstate": "afterstate",
    "ntuple": "ntuple",
    "td": "td",
    "cross-entropy": "evolution",
    "cma-es": "evolution",
}
_EXTRA = ("torch", "stable_baselines3", "sb3_contrib", "tensorboard", "minari", "optuna", "cma")


def folder_of(algorithm: str) -> str:
    """The learner's folder that has an algorithm; raises ValueError if there is no such algorithm."""
    return ALGORITHMS[choice("algorithm", algorithm, sorted(ALGORITHMS))]


def trainer(algorithm: str) -> Any:
    """The module `train` of an algorithm; raises DependencyNotInstalled without the extra ``train``."""
    return import_extra(f"{__name__}.{folder_of(algorithm)}.train")


def player_maker(algorithm: str) -> Any:
    """The function `player` of an algorithm; raises DependencyNotInstalled without the packages that it needs."""
    return import_extra(f"{__name__}.{folder_of(algorithm)}.player").player


def import_extra(module: str) -> Any:
    """A module that needs the extra ``train``; raises DependencyNotInstalled, with the remedy, without it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in _EXTRA:
            raise
        raise DependencyNotInstalled(f'{missing} is missing; pip install "mergefall[train]" brings it') from error
