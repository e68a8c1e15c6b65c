"""Reads presets, which are good hyper-parameters to start from, and makes run configurations of them.

Each learner has a file `preset.yaml`, which maps algorithms to environment ids, and these to hyper-parameters with
rl_zoo3's names. Every preset also has `n_timesteps`, and may have `env_kwargs` and `max_episode_steps`. That is the
preset `small`, the usual one; the key `others` maps names to further presets, each as the differences from it.
"""

from pathlib import Path

import gymnasium as gym
import mergefall  # noqa: F401  (registers the environments)
from mergefall.checks import integer
from mergefall.games import game_of
from mergefall.typing import Dict, Options

from mergefall_training.files import read_yaml
from mergefall_training.learn import folder_of
from mergefall_training.learn.run import Config

EVALUATIONS = 10  # of a run, by default
SMALL = "small"
OF_OLD = {"2min": SMALL, "5min": SMALL, "20min": "medium", "2h": "large"}  # presets of version 0.1.0


def load_preset(algorithm: str, env_id: str, name: str = SMALL) -> Dict:
    """An algorithm's preset for an environment, or else for another environment of the same game but its size.

    Raises ValueError if there is no such preset.

    >>> load_preset("ntuple", "mergefall/Game2048-v0", "medium")["n_timesteps"]
    1200000000
    """
    presets, env_id = _presets(algorithm), env_id.rpartition(":")[2]
    game = gym.registry[env_id].entry_point if env_id in gym.registry else None
    alike = [other for other in presets if gym.registry[other].entry_point == game]
    if not alike:
        raise ValueError(f"{algorithm} has no preset for {env_id!r}; there are presets for {', '.join(presets)}")
    preset = presets.get(env_id, presets[alike[0]])
    named = {SMALL: {}, **preset.pop("others", {})}
    if name not in named:
        since = f", which is {OF_OLD[name]!r} now," if OF_OLD.get(name) in named else ""
        raise ValueError(f"{algorithm} has no preset {name!r}{since} for {env_id}; expected {' or '.join(named)}")
    chosen = preset | named[name]
    if env_id not in presets:
        sizes = game_of(env_id).size
        chosen["env_kwargs"] = {
            name: value for name, value in chosen.get("env_kwargs", {}).items() if name not in sizes
        }
    return chosen


def usual_env(algorithm: str) -> str:
    """The id of the environment that an algorithm learns in by default, that of its first preset."""
    return next(iter(_presets(algorithm)))


def presets_of(algorithm: str) -> list[tuple[str, str, Dict]]:
    """An algorithm's presets: (environment's id, name, settings), each `small` before its others."""
    rows = []
    for env_id, preset in _presets(algorithm).items():
        others = preset.pop("others", {})
        rows += [(env_id, name, settings) for name, settings in {SMALL: preset, **others}.items()]
    return rows


def _presets(algorithm: str) -> Dict:
    return read_yaml(Path(__file__).parent / folder_of(algorithm) / "preset.yaml")[algorithm]


def configure(
    algorithm: str,
    env_id: str = "mergefall/Game2048-v0",
    *,
    env_kwargs: Options | None = None,
    max_episode_steps: int | None = None,
    changed: Options | None = None,
    timesteps: int | None = None,
    interval: int | None = None,
    episodes: int = 30,
    seed: int = 0,
    preset: str = SMALL,
) -> Config:
    """A run's configuration: the preset, overridden by the arguments.

    Args:
        changed: hyper-parameters that differ from the preset's.
        interval: steps between evaluations; default: a tenth of `timesteps`.
        preset: its name.

    >>> config = configure("maskable-ppo", env_kwargs={"rows": 3}, changed={"gamma": 0.9}, timesteps=1000)
    >>> config.env_kwargs["rows"], config.hyperparameters["gamma"], config.interval
    (3, 0.9, 100)
    """
    hyperparameters = load_preset(algorithm, env_id, preset) | dict(changed or {})
    env_kwargs = {**hyperparameters.pop("env_kwargs", {}), **(env_kwargs or {})}
    preset_steps, preset_cap = hyperparameters.pop("n_timesteps"), hyperparameters.pop("max_episode_steps", None)
    steps = integer("timesteps", preset_steps if timesteps is None else timesteps, 1)
    interval = max(1, steps // EVALUATIONS) if interval is None else interval
    cap = preset_cap if max_episode_steps is None else max_episode_steps
    return Config(algorithm, env_id, env_kwargs, hyperparameters, steps, interval, episodes, seed, cap)
