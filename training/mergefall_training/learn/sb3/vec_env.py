"""The native batched environments as Stable-Baselines3's `VecEnv`: a step is one call, however many games it steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv

from mergefall_training.wrappers.wrapping import wrapped


class NativeVecEnv(VecEnv):
    """A batched environment of Gymnasium, resetting in the same step, behind Stable-Baselines3's interface.

    It returns what `DummyVecEnv` of single environments returns, but for infos: only those of games that have just
    ended hold anything, which is ``terminal_observation``, ``TimeLimit.truncated``, and the figures of the game.
    `env_method` and `get_attr` ask the batch, and return its arrays as they are, a row for each game; so masks for
    MaskablePPO are one array.
    """

    def __init__(self, envs: gym.vector.VectorEnv[Any, Any, Any]) -> None:
        mode = envs.metadata.get("autoreset_mode")
        if mode is not AutoresetMode.SAME_STEP:
            raise ValueError(f"autoreset_mode is {mode}; expected {AutoresetMode.SAME_STEP}")
        self.envs = envs
        super().__init__(envs.num_envs, envs.single_observation_space, envs.single_action_space)

    def reset(self) -> Any:
        options = self._options[0]
        if any(one != options for one in self._options):
            raise ValueError(f"options differ between environments: {self._options}; expected the same for all")
        observations, _ = self.envs.reset(seed=self._seeds, options=options)  # pyright: ignore[reportArgumentType]
        self._reset_seeds()
        self._reset_options()
        return observations

    def step_async(self, actions: NDArray[Any]) -> None:
        self._actions = actions

    def step_wait(self) -> tuple[Any, NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]]:
        observations, rewards, terminated, truncated, infos = self.envs.step(self._actions)
        dones = terminated | truncated
        told: list[dict[str, Any]] = [{}] * self.num_envs  # one for all that go on: wrappers write where games end
        ended = np.flatnonzero(dones)
        if ended.size:
            columns = {"terminal_observation": infos["final_obs"], "TimeLimit.truncated": truncated & ~terminated}
            columns |= {name: column for name, column in infos["final_info"].items() if name[0] != "_"}
            rows = [_rows(column[ended]) for column in columns.values()]
            for i, row in zip(ended, zip(*rows, strict=True), strict=True):
                told[i] = dict(zip(columns, row, strict=True))
        return observations, rewards.astype(np.float32), dones, told

    def close(self) -> None:
        self.envs.close()

    def has_attr(self, attr_name: str) -> bool:
        return hasattr(self.envs, attr_name)

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        return [getattr(self.envs, attr_name)] * len(list(self._get_indices(indices)))

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        self._only_all(attr_name, indices)
        setattr(self.envs, attr_name, value)

    def env_method(self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any) -> Any:
        found = getattr(self.envs, method_name)(*method_args, **method_kwargs)
        if isinstance(found, np.ndarray):
            return found if indices is None else found[list(self._get_indices(indices))]
        self._only_all(method_name, indices)
        return [found] * self.num_envs

    def _only_all(self, name: str, indices: Any) -> None:
        if indices is not None:
            raise ValueError(f"{name} is of the batch, but indices={indices!r}; expected None")

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        return [False] * len(list(self._get_indices(indices)))

    def get_images(self) -> Sequence[Any]:
        return self.envs.render() or [None] * self.num_envs


def make_vec_env(
    env_id: str,
    n_envs: int = 1,
    seed: int | None = None,
    env_kwargs: Mapping[str, Any] | None = None,
    max_episode_steps: int | None = None,
    env_wrapper: Any = None,
) -> NativeVecEnv:
    """Environments as Stable-Baselines3's function of this name makes them, natively batched; `VecMonitor` is extra.

    They are in the wrappers that `env_wrapper` names (`env_wrappers.wrapped`).

    >>> envs = make_vec_env("mergefall/Game2048-v0", n_envs=3, seed=0)
    >>> envs.reset().shape, envs.env_method("action_masks").shape
    ((3, 4, 4), (3, 4))
    """
    kwargs = {"max_episode_steps": max_episode_steps, **(env_kwargs or {})}
    native = gym.make_vec(env_id, n_envs, autoreset_mode=AutoresetMode.SAME_STEP, **kwargs)
    envs = NativeVecEnv(wrapped(native, env_wrapper))
    if seed is not None:
        envs.seed(seed)
    return envs


def _rows(column: NDArray[Any]) -> Sequence[Any]:
    """A column's entries: Python's own numbers, or arrays."""
    return column.tolist() if column.ndim == 1 else list(column)
