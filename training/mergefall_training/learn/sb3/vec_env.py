"""`NativeVecEnv`: a native batched environment as Stable-Baselines3's `VecEnv`, with one call per step of the batch."""

from collections.abc import Sequence
from time import perf_counter
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode
from mergefall.typing import Array, Bools, Info, Options
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import VecEnv

from mergefall_training.wrappers import wrapped


class Infos(Sequence[Info]):
    """The infos of a step: a dictionary for each game, made when it is read: all of them take ten times as long."""

    def __init__(self, infos: Options, ended: dict[int, Info], n: int) -> None:
        self._columns = {name: column for name, column in infos.items() if name[0] != "_" and "final" not in name}
        self._made, self._n = ended, n

    def __len__(self) -> int:
        return self._n

    def __getitem__(self, index: Any) -> Any:
        which = range(self._n)[index]
        if isinstance(which, range):
            return [self[i] for i in which]
        if which not in self._made:
            self._made[which] = {"TimeLimit.truncated": False} | {n: one[which] for n, one in self._columns.items()}
        return self._made[which]


class NativeVecEnv(VecEnv):
    """Stable-Baselines3's interface to a Gymnasium `VectorEnv` with autoreset in the same step.

    - It returns the same as `DummyVecEnv` of single environments in a `Monitor`: the last info of an episode has its
      return and length as `episode`, which algorithms log.
    - `env_method` and `get_attr` call the batch. Arrays are returned as they are, one row per game, so masks for
      MaskablePPO are one array.

    Raises ValueError for another autoreset mode.
    """

    def __init__(self, envs: gym.vector.VectorEnv[Any, Any, Any]) -> None:
        mode = envs.metadata.get("autoreset_mode")
        if mode is not AutoresetMode.SAME_STEP:
            raise ValueError(f"autoreset_mode is {mode}; expected gym.make_vec(…, autoreset_mode='SameStep')")
        self.envs = envs
        self.returns, self.lengths = np.zeros(envs.num_envs, np.float32), np.zeros(envs.num_envs, np.int64)
        self._begun = perf_counter()
        super().__init__(envs.num_envs, envs.single_observation_space, envs.single_action_space)

    def reset(self) -> Any:
        options = self._options[0]
        if any(one != options for one in self._options):
            raise ValueError(f"options differ between environments: {self._options}; expected the same for all")
        observations, _ = self.envs.reset(seed=self._seeds, options=options)  # pyright: ignore[reportArgumentType]
        self._reset_seeds()
        self._reset_options()
        self.returns[:], self.lengths[:] = 0, 0
        return observations

    def step_async(self, actions: Array) -> None:
        self._actions = actions

    def step_wait(self) -> tuple[Any, Array, Bools, Any]:
        observations, rewards, terminated, truncated, infos = self.envs.step(self._actions)
        dones, paid = terminated | truncated, rewards.astype(np.float32)
        self.returns += paid
        self.lengths += 1
        last: dict[int, Info] = {}
        ended = np.flatnonzero(dones)
        for i in ended.tolist():
            seconds = round(perf_counter() - self._begun, 6)
            last[i] = {name: column[i] for name, column in infos["final_info"].items() if name[0] != "_"} | {
                "terminal_observation": infos["final_obs"][i],
                "TimeLimit.truncated": bool(truncated[i] and not terminated[i]),
                "episode": {"r": float(self.returns[i]), "l": int(self.lengths[i]), "t": seconds},
            }
        self.returns[ended], self.lengths[ended] = 0, 0
        return observations, paid, dones, Infos(infos, last, self.num_envs)

    def close(self) -> None:
        self.envs.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        return [getattr(self.envs, attr_name)] * len(list(self._get_indices(indices)))

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        self._only_all(attr_name, indices)
        setattr(self.envs, attr_name, value)

    def env_method(self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any) -> Any:
        returned = getattr(self.envs, method_name)(*method_args, **method_kwargs)
        if isinstance(returned, np.ndarray):
            return returned if indices is None else returned[list(self._get_indices(indices))]
        self._only_all(method_name, indices)
        return [returned] * self.num_envs

    def _only_all(self, name: str, indices: Any) -> None:
        if indices is not None:
            raise ValueError(f"indices={indices!r} with {name}, which concerns the whole batch; expected None")

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        return [wrapper_class is Monitor] * len(list(self._get_indices(indices)))

    def get_images(self) -> Sequence[Any]:
        return self.envs.render() or [None] * self.num_envs


def make_vec_env(
    env_id: str,
    n_envs: int = 1,
    seed: int | None = None,
    env_kwargs: Options | None = None,
    max_episode_steps: int | None = None,
    env_wrapper: Any = None,
    **kwargs: Any,
) -> NativeVecEnv:
    """Like Stable-Baselines3's `make_vec_env`, but natively batched.

    `env_wrapper` lists wrappers, as `wrappers.wrapped` takes them; other arguments are those of `gym.make_vec`.

    >>> envs = make_vec_env("mergefall/Game2048-v0", n_envs=3, seed=0)
    >>> envs.reset().shape, envs.env_method("action_masks").shape
    ((3, 4, 4), (3, 4))
    """
    kwargs |= {"max_episode_steps": max_episode_steps, **(env_kwargs or {})}
    native = gym.make_vec(env_id, n_envs, autoreset_mode=AutoresetMode.SAME_STEP, **kwargs)
    envs = NativeVecEnv(wrapped(native, env_wrapper))
    if seed is not None:
        envs.seed(seed)
    return envs
