"""Learners: algorithms that train agents, and trained agents as players.

Each learner is a folder with three files:

- `train.py`: `Learner(config, device)`, a `training.Learner`, raises ValueError if it cannot train a `run.Config`.
- `player.py`: `player(spec, arrays, **options)` makes a `Player` of a trained model. `PLAYERS` says whose.
- `preset.yaml`: hyper-parameters of its algorithms.

`ALGORITHMS` maps each algorithm to its learner's folder. Training needs the extra `train`.
"""

from collections.abc import Callable
from types import ModuleType
from typing import Any

from mergefall.checks import choice
from mergefall.imports import import_extra

ALGORITHMS = {
    "maskable-ppo": "sb3",
    "dqn": "sb3",
    "distill": "distill",
    "kickstart": "kickstart",
    "afterstate": "afterstate",
    "ntuple": "ntuple",
    "cma-es": "evolution",
}
# Where the players of models are; 0.1.0 trained cross-entropy.
PLAYERS = ALGORITHMS | {"distill": "sb3", "kickstart": "sb3", "cross-entropy": "evolution"}


def folder_of(algorithm: str) -> str:
    """The folder of an algorithm's learner. Raises ValueError if there is no such algorithm."""
    return ALGORITHMS[choice("algorithm", algorithm, sorted(ALGORITHMS))]


def trainer(algorithm: str) -> ModuleType:
    """An algorithm's module `train`. Raises DependencyNotInstalled if the extra `train` is missing."""
    return import_extra(f"{__name__}.{folder_of(algorithm)}.train")


def player_maker(algorithm: str) -> Callable[..., Any]:
    """An algorithm's function `player`. Raises DependencyNotInstalled if a package that it needs is missing."""
    folder = PLAYERS[choice("algorithm", algorithm, sorted(PLAYERS))]
    return import_extra(f"{__name__}.{folder}.player").player
