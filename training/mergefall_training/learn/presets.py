"""Reads presets, which are good hyper-parameters to start from, and makes run configurations of them.

Each learner has a file `preset.yaml`, which maps algorithms to environment ids, and these to hyper-parameters with
rl_zoo3's names. Every preset also has `n_timesteps`, and may have `env_kwargs` and `max_episode_steps`. The key
`others` maps names to further presets, each as the differences from the usual one. A preset that is named by a time
takes about as long, or less, on two quiet cores that multiply in bfloat16 (AMX or AVX-512 BF16). Other cores take two
to three times as long in 2048: `distill --preset 2min` 4 min 45 s (training seed 0).
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


def load_preset(algorithm: str, env_id: str, name: str | None = None) -> Dict:
    """An algorithm's preset for an environment, or else for another environment of the same game but its size.

    `name` is one of the preset's `others`; default: the usual preset. Raises ValueError if there is no such preset.

    >>> load_preset("ntuple", "mergefall/Game2048-v0", "2min")["n_timesteps"]
    120000000
    """
    presets, env_id = _presets(algorithm), env_id.rpartition(":")[2]
    game = gym.registry[env_id].entry_point if env_id in gym.registry else None
    alike = [other for other in presets if gym.registry[other].entry_point == game]
    if not alike:
        raise ValueError(f"{algorithm} has no preset for {env_id!r}; there are presets for {', '.join(presets)}")
    preset = presets.get(env_id, presets[alike[0]])
    others = preset.pop("others", {})
    if name is not None and name not in others:
        raise ValueError(
            f"{algorithm} has no preset {name!r} for {env_id}; expected none, or one of: {', '.join(others) or 'none'}"
        )
    chosen = preset | others.get(name, {})
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
    """An algorithm's presets: (environment's id, name, settings); the usual one has the name ""."""
    rows = []
    for env_id, preset in _presets(algorithm).items():
        others = preset.pop("others", {})
        rows += [(env_id, name, settings) for name, settings in {"": preset, **others}.items()]
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
    preset: str | None = None,
) -> Config:
    """A run's configuration: the preset, overridden by the arguments.

    Args:
        changed: hyper-parameters that differ from the preset's.
        interval: steps between evaluations; default: a tenth of `timesteps`.
        preset: name of one of the preset's `others`; default: the usual preset.

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
