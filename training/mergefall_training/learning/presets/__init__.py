"""Presets: hyper-parameters worth starting from, in YAML by rl_zoo3's names, a file for each algorithm.

A file maps environment ids to hyper-parameters. Beside the algorithm's own there are `n_timesteps`, `env_kwargs`, and
`max_episode_steps`, which all algorithms have.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gymnasium as gym
import mergefall  # noqa: F401  (registers the environments)
from mergefall.checks import choice, integer

from mergefall_training.learning import ALGORITHMS
from mergefall_training.learning.runs import Config
from mergefall_training.yaml_numbers import load_yaml

FOLDER = Path(__file__).parent
EVALUATIONS = 20  # of a run, unless told


def load_preset(algorithm: str, env_id: str) -> dict[str, Any]:
    """The preset of an algorithm for an environment, or for another one of the same game.

    >>> load_preset("maskable-ppo", "mergefall/Game2048-v0")["env_kwargs"]
    {'reward': 'log2'}
    """
    path = FOLDER / f"{choice('algorithm', algorithm, sorted(ALGORITHMS))}.yaml"
    presets = load_yaml(path.read_text(encoding="utf-8"))
    for known in presets:
        if known == env_id:
            return dict(presets[known])
    for known in presets:
        if env_id in gym.registry and gym.registry[known].entry_point == gym.registry[env_id].entry_point:
            return dict(presets[known])
    raise ValueError(f"{algorithm} has no preset for {env_id!r}; there are presets for {', '.join(presets)}")


def configure(
    algorithm: str,
    env_id: str = "mergefall/Game2048-v0",
    *,
    env_kwargs: Mapping[str, Any] | None = None,
    max_episode_steps: int | None = None,
    changed: Mapping[str, Any] | None = None,
    timesteps: int | None = None,
    interval: int | None = None,
    episodes: int = 30,
    seed: int = 0,
) -> Config:
    """A run's configuration: the preset, but for what is told; `changed` are hyper-parameters by their names.

    >>> config = configure("maskable-ppo", env_kwargs={"rows": 3}, changed={"gamma": 0.9}, timesteps=1000)
    >>> config.env_kwargs["rows"], config.hyperparameters["gamma"], config.interval
    (3, 0.9, 50)
    """
    preset = load_preset(algorithm, env_id) | dict(changed or {})
    env_kwargs = {**preset.pop("env_kwargs", {}), **(env_kwargs or {})}
    preset_steps, preset_cap = preset.pop("n_timesteps"), preset.pop("max_episode_steps", None)
    steps = integer("timesteps", preset_steps if timesteps is None else timesteps, 1)
    cap = preset_cap if max_episode_steps is None else max_episode_steps
    interval = max(1, steps // EVALUATIONS) if interval is None else interval
    return Config(algorithm, env_id, env_kwargs, preset, steps, interval, episodes, seed, cap)
