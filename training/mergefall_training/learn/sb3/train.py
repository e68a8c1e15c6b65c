"""Trains MaskablePPO of sb3-contrib and DQN of Stable-Baselines3 on the native batched environments.

Hyper-parameters have rl_zoo3's names: the arguments of the algorithm's class, and

- `policy`, `n_envs`: name of the policy, number of environments.
- `restarts`: share of the games lost that go on from an earlier state (`mergefall.vector.GameVectorEnv`).
- `normalize`: true divides rewards by the running standard deviation of the return. Observations are never normalised.
- `mixed_precision`: true computes large layers of `ranks-afterstates` in bfloat16 where that is fast.
- `env_wrapper`: wrappers of the training environments (`wrappers.wrapped`).
- `warm_start`: run folder or model file with the initial parameters; its network must be the same. Learners with a
  teacher make one for MaskablePPO.

Rates may be text: `lin_0.001` falls linearly to 0. In `policy_kwargs`, extractors are named as in
`networks.py`. DQN has no masks, so an illegal action changes nothing and pays 0; the trained player always chooses a
legal action.
"""

import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from mergefall.checks import in_place, integer
from mergefall.games import map_parts, take
from mergefall.typing import Arrays, Dict, Options
from sb3_contrib import MaskablePPO
from stable_baselines3 import DQN
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import configure
from stable_baselines3.common.vec_env import VecEnv, VecNormalize

from mergefall_training.files import differences, model_file
from mergefall_training.learn import training
from mergefall_training.learn.devices import device_of, quicken
from mergefall_training.learn.models import load_model
from mergefall_training.learn.run import Config
from mergefall_training.learn.sb3.dqn import AfterstatesDQN
from mergefall_training.learn.sb3.networks import network_of, parameters_of, policy_class, set_parameters
from mergefall_training.learn.sb3.vec_env import make_vec_env
from mergefall_training.learn.training import RATES, check_values, schedule


class NativeMaskablePPO(MaskablePPO):
    """MaskablePPO that reads the infos of games that end alone: only they have figures, and to make all takes long."""

    def _update_info_buffer(self, infos: Any, dones: Any) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        over = np.flatnonzero(dones)
        super()._update_info_buffer([infos[i] for i in over], np.ones(len(over)))


CLASSES: Dict = {"maskable-ppo": NativeMaskablePPO, "dqn": AfterstatesDQN}
REWARDS = ("reward", "goal", "shaping")  # arguments of an environment that say what it pays
KNOWN = 1e6  # steps that another run's unit of rewards counts as
# Hyper-parameters beside the arguments of an algorithm's class, which has the others by default.
OURS = dict(
    policy=None, n_envs=1, restarts=0.0, normalize=False, mixed_precision=False, env_wrapper=None, warm_start=None
)
NOT_TO_SET = (
    *("self", "env", "policy", "seed", "device", "verbose", "tensorboard_log", "_init_setup_model"),
    *("rollout_buffer_class", "rollout_buffer_kwargs", "replay_buffer_class", "replay_buffer_kwargs"),
    *("use_sde", "sde_sample_freq", "optimize_memory_usage"),  # for continuous actions, and not resumable
)
COUNTERS = ("num_timesteps", "_n_updates", "_current_progress_remaining", "_n_calls", "exploration_rate")


class Learner(training.Learner):
    """An algorithm of Stable-Baselines3 on the native batch; hyper-parameters are `OURS` and its class's arguments."""

    model: Any

    def __init__(self, config: Config, device: str = "auto") -> None:
        self.config, self.hyperparameters = config, config.hyperparameters
        self.model = build(config, device)

    @property
    def step(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.model.num_timesteps

    def begin(self) -> None:
        if self.hyperparameters.get("warm_start"):
            self._warm_start()
        with made_of(self.config):
            self.model.predict(self.model.env.reset(), deterministic=True)
        self.model.env.seed(self.config.first_seed)

    def _warm_start(self) -> None:
        """Load the parameters of the model at `warm_start`; raises ValueError if its environment or network differs.

        The value head begins anew if the model's says the values of other rewards, or if either divides rewards alone.
        """
        path, normalize = self.hyperparameters["warm_start"], self.model.get_vec_normalize_env()
        model = load_model(model_file(path))
        about = model.spec["network"]
        theirs = {name: about.get(name) or {} for name in ("policy", "policy_kwargs")}
        ours = {"env_id": self.config.env_id, **network_of(self.hyperparameters)}
        if differing := differences({"env_id": model.spec["env_id"], **theirs}, ours):
            raise ValueError(f"warm_start: {path} is another model: {'; '.join(differing)}")
        unit = about.get("reward_unit", 1.0)
        alike = all(model.spec["env_kwargs"].get(name) == self.config.env_kwargs.get(name) for name in REWARDS)
        fits = alike and about.get("rewards", True) is not None and (unit == 1.0) == (normalize is None)
        head = {name: array for name, array in self.arrays().items() if name.startswith("value_net.")}
        with in_place(f"warm_start: {path} does not fit the network of {self.config.algorithm}"):
            set_parameters(self.model.policy, model.arrays if fits else model.arrays | head)
        if normalize is not None and fits and (head or model.spec["algorithm"] == self.config.algorithm):
            statistics = normalize.ret_rms  # it takes many steps to find the unit of rewards
            statistics.var, statistics.count = np.array(unit**2 - normalize.epsilon), KNOWN

    def train(self, goes_on: Callable[[Options], bool], logs: Path) -> None:
        model = self.model
        model.set_logger(configure(str(logs), ["tensorboard"]))
        left = self.config.timesteps - model.num_timesteps
        model.learn(left, _Between(goes_on), reset_num_timesteps=model._last_obs is None)
        goes_on({})

    def arrays(self) -> Arrays:
        return parameters_of(self.model.policy)

    def network(self) -> Dict:
        normalize = self.model.get_vec_normalize_env()
        unit = 1.0 if normalize is None else np.sqrt(normalize.ret_rms.var + normalize.epsilon)
        network = network_of(self.hyperparameters) | {"q_values": isinstance(self.model, DQN)}
        return network | {"gamma": float(self.model.gamma), "reward_unit": float(unit)}

    def state(self) -> Dict:
        model = self.model
        native, normalize = model.env.unwrapped, model.get_vec_normalize_env()
        parts: Dict = {
            "policy": model.policy.state_dict(),
            "optimizer": model.policy.optimizer.state_dict(),
            "counters": {name: getattr(model, name) for name in COUNTERS if hasattr(model, name)},
            "last": [model._last_obs, model._last_original_obs, model._last_episode_starts],
            "games": native.envs.clone_state(),
            "past": list(native.envs.unwrapped.past),
            "sums": [native.returns, native.lengths],
            "random": {
                "numpy": np.random.get_state(),  # noqa: NPY002 (Stable-Baselines3 draws from it)
                "torch": torch.get_rng_state(),
                "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
                "actions": model.action_space.np_random.bit_generator.state,
            },
        }
        if normalize is not None:
            statistics = normalize.ret_rms
            parts["returns"] = [normalize.returns, statistics.mean, statistics.var, statistics.count]
        buffer = getattr(model, "replay_buffer", None)
        if buffer is not None:
            arrays = {name: take(part, slice(buffer.size())) for name, part in _arrays_of(buffer).items()}
            parts["replay"] = {"pos": buffer.pos, "full": buffer.full, "arrays": arrays}
        return parts

    def restore(self, step: int, state: Options) -> None:
        model = self.model
        native, normalize = model.env.unwrapped, model.get_vec_normalize_env()
        native.envs.restore_state(state["games"], state["past"])
        native.returns[:], native.lengths[:] = state["sums"]
        if normalize is not None:
            statistics = normalize.ret_rms
            normalize.returns, statistics.mean, statistics.var, statistics.count = state["returns"]
        model.policy.load_state_dict(state["policy"])
        model.policy.optimizer.load_state_dict(state["optimizer"])
        for name, value in state["counters"].items():
            setattr(model, name, value)
        model._last_obs, model._last_original_obs, model._last_episode_starts = state["last"]
        if "replay" in state:
            buffer, kept = model.replay_buffer, state["replay"]
            buffer.pos, buffer.full = integer("pos", kept["pos"], 0, buffer.buffer_size - 1), bool(kept["full"])
            for name, part in _arrays_of(buffer).items():
                map_parts(lambda array, stored: np.copyto(array[: len(stored)], stored), part, kept["arrays"][name])
        generators = state["random"]
        # NumPy does not check this index into its state, and would read beyond it.
        integer("the place in NumPy's random state", generators["numpy"][2], 0, 624)
        np.random.set_state(generators["numpy"])  # noqa: NPY002
        torch.set_rng_state(generators["torch"])
        if generators["cuda"] and torch.cuda.is_available():
            torch.cuda.set_rng_state_all(generators["cuda"])
        model.action_space.np_random.bit_generator.state = generators["actions"]


class _Between(BaseCallback):
    """Calls a function between an update and the next rollout."""

    def __init__(self, goes_on: Callable[[Options], bool]) -> None:
        super().__init__()
        self.goes_on = goes_on

    def _on_rollout_start(self) -> None:
        self.goes_on({})

    def _on_step(self) -> bool:
        return True


# -- algorithm and environments ---------------------------------------------------------------------------------------


def build(config: Config, device: str = "auto") -> Any:
    """The model that `mergefall train` would train: sb3-contrib's MaskablePPO or SB3's DQN on the native batch.

    Train it with `model.learn(config.timesteps)`. `model.env` divides rewards (`VecNormalize`) if the configuration
    says so. `warm_start` is not loaded. Raises ValueError for bad hyper-parameters.

    >>> from mergefall_training.learn.presets import configure
    >>> model = build(configure("maskable-ppo"), "cpu")
    >>> type(model).__name__, type(model.policy).__name__, model.n_envs, model.gamma
    ('NativeMaskablePPO', 'AfterstatesPolicy', 512, 0.999)
    """
    kind = CLASSES[config.algorithm]
    defaults = dict(sorted((arguments_of(kind) | OURS).items()))
    check_values(config, defaults)
    chosen: Dict = {**defaults, **config.hyperparameters}
    if (starts := chosen.get("learning_starts", 0)) >= config.timesteps:
        raise ValueError(
            f"learning_starts is {starts}, timesteps is {config.timesteps}: nothing would be learnt; expected fewer "
            "steps before learning than in all"
        )
    return model_of(kind, chosen, config, device)


def arguments_of(kind: Any) -> Dict:
    """The arguments of an algorithm's class that may be set, with their defaults."""
    found = inspect.signature(kind).parameters.items()
    return {name: one.default for name, one in found if name not in NOT_TO_SET}


def model_of(kind: Any, chosen: Options, config: Config, device: str) -> Any:
    """A model of the class `kind` with the hyper-parameters `chosen`, which include `OURS`."""
    size, batch = chosen["n_envs"] * chosen["n_steps"], chosen["batch_size"]
    if "n_epochs" in chosen and (batch < 2 or size % batch):
        raise ValueError(f"batch_size is {batch}; expected a divisor of n_envs · n_steps, {size}, above 1")
    family = "dqn" if issubclass(kind, DQN) else "maskable-ppo"
    policy, kwargs = policy_class(family, network_of(chosen), config.env_kwargs)
    envs: VecEnv = make_vec_env(
        config.env_id,
        chosen["n_envs"],
        config.first_seed,
        config.env_kwargs,
        config.max_episode_steps,
        chosen["env_wrapper"],
        restarts=chosen["restarts"],
    )
    if chosen["normalize"]:
        envs = VecNormalize(envs, norm_obs=False, gamma=chosen["gamma"])
    arguments: Dict = {name: chosen[name] for name in arguments_of(kind) if name in chosen} | {"policy_kwargs": kwargs}
    arguments |= {name: schedule(name, arguments[name]) for name in RATES if arguments.get(name) is not None}
    with made_of(config):
        model = kind(policy, envs, seed=config.first_seed, device=device_of(device), **arguments)
    quicken(model.policy, chosen["mixed_precision"])
    return model


def made_of(config: Config) -> AbstractContextManager[None]:
    """In this block, errors of PyTorch and Stable-Baselines3 become ValueErrors that name the hyper-parameters."""
    where = f"{config.algorithm} cannot be made of {config.hyperparameters}"
    return in_place(where, (AssertionError, AttributeError, LookupError, RuntimeError, TypeError))


def _arrays_of(buffer: Any) -> Dict:
    names = ("observations", "next_observations", "actions", "rewards", "dones", "timeouts")
    return {name: getattr(buffer, name) for name in names}
