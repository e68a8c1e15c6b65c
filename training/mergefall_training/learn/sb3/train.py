"""Trains MaskablePPO of sb3-contrib and DQN of Stable-Baselines3 on the native batched environments.

Hyper-parameters have rl_zoo3's names: the arguments of the algorithm's class, and

- `policy`, `n_envs`: name of the policy, number of environments.
- `normalize`: true divides rewards by the running standard deviation of the return. Observations are never normalised.
- `mixed_precision`: true computes large layers of `ranks-afterstates` in bfloat16 where that is fast.
- `env_wrapper`: wrappers of the training environments (`wrappers.wrapped`).
- `warm_start`: run folder or model file with the initial parameters; its network must be the same. Learners with a
  teacher make one for MaskablePPO.

Rates may be text: `lin_0.001` falls linearly to 0. In `policy_kwargs`, extractors and activations are named as in
`networks.py`. DQN has no masks, so an illegal action changes nothing and pays 0; the trained player always chooses a
legal action.
"""

from __future__ import annotations

import inspect
import random
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from mergefall.checks import boolean, integer, known
from mergefall.games import map_parts, take
from mergefall.typing import Options
from sb3_contrib import MaskablePPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import configure
from stable_baselines3.common.vec_env import VecEnv, VecNormalize

from mergefall_training.files import model_file
from mergefall_training.learn.devices import device_of, fuse, use_mixed_precision
from mergefall_training.learn.models import load_model
from mergefall_training.learn.run import Config, Run
from mergefall_training.learn.sb3.dqn import AfterstatesDQN
from mergefall_training.learn.sb3.networks import network_of, parameters_of, policy_class, set_parameters
from mergefall_training.learn.sb3.vec_env import make_vec_env
from mergefall_training.learn.training import RATES, check_value, schedule, training_progress

CLASSES: dict[str, Any] = {"maskable-ppo": MaskablePPO, "dqn": AfterstatesDQN}
REWARDS = ("reward", "goal", "shaping")  # arguments of an environment that say what it pays
KNOWN = 1e6  # steps that another run's unit of rewards counts as
OURS = ("policy", "n_envs", "normalize", "mixed_precision", "env_wrapper", "warm_start")
NOT_TO_SET = ("self", "env", "policy", "seed", "device", "verbose", "tensorboard_log", "_init_setup_model")
NOT_TO_SET += ("rollout_buffer_class", "rollout_buffer_kwargs", "replay_buffer_class", "replay_buffer_kwargs")
NOT_TO_SET += ("use_sde", "sde_sample_freq", "optimize_memory_usage")  # for continuous actions, and not resumable
MEANINGS = {  # plainer than in SB3's docstrings
    "gae_lambda": "How far ahead an action is judged: 0 looks one step ahead and trusts the value network for the "
    "rest, 1 counts the rewards to the end of the rollout. Between them the weight of each further step falls by this "
    "factor (generalized advantage estimation, Schulman et al. 2016)",
}
COUNTERS = (
    "num_timesteps",
    "_n_updates",
    "_episode_num",
    "_current_progress_remaining",
    "_n_calls",
    "exploration_rate",
)


def check(config: Config, device: str = "auto") -> None:
    """Raise ValueError for a configuration that cannot be trained on this device."""
    model, envs = build(config, device)
    with made_of(config):
        model.predict(envs.top.reset(), deterministic=True)
    begin(model, envs, config)


def train(run: Run) -> None:
    """Train in a run folder to the end, from its last checkpoint if there is one."""
    model, envs = build(run.config, run.device)
    checkpoint = run.load_checkpoint()
    if checkpoint is None:
        begin(model, envs, run.config)
    else:
        with run.fitting():
            envs.restore(checkpoint[1]["envs"])
            restore(model, checkpoint[1]["model"])
    model.set_logger(configure(str(run.folder / "tensorboard"), ["tensorboard"]))
    with training_progress(run) as show:
        keeper = _Keeper(run, envs, show)
        if model.num_timesteps < run.config.timesteps:
            left = run.config.timesteps - model.num_timesteps
            model.learn(left, keeper, reset_num_timesteps=checkpoint is None)
        if not run.points or run.points[-1].step < model.num_timesteps:
            keeper.keep(model)


# -- algorithm and environments ---------------------------------------------------------------------------------------


def build(config: Config, device: str) -> tuple[Any, Envs]:
    """(the algorithm, its fresh environments). Raises ValueError for bad hyper-parameters."""
    options = dict(config.hyperparameters)
    policy, n_envs, normalize = options.pop("policy", None), options.pop("n_envs", 1), options.pop("normalize", False)
    wrapper, start = options.pop("env_wrapper", None), options.pop("warm_start", None)
    check_value("warm_start", start, None)
    mixed = boolean("mixed_precision", options.pop("mixed_precision", False))
    _check(config, n_envs, normalize, options)
    arguments = options | {name: schedule(name, options[name]) for name in RATES if options.get(name) is not None}
    kind, kwargs = policy_class(config.algorithm, policy, arguments.pop("policy_kwargs", None), config.env_kwargs)
    torch_device = device_of(device)
    envs = Envs(config, n_envs, normalize, options.get("gamma", 0.99), wrapper)
    with made_of(config):
        model = CLASSES[config.algorithm](
            kind, envs.top, policy_kwargs=kwargs, seed=config.first_seed, device=torch_device, **arguments
        )
    if mixed:
        use_mixed_precision(model.policy)
    fuse(model.policy.optimizer)
    return model, envs


@contextmanager
def made_of(config: Config) -> Iterator[None]:
    """In this block, errors of PyTorch and Stable-Baselines3 become ValueErrors that name the hyper-parameters."""
    try:
        yield
    except (AssertionError, AttributeError, LookupError, RuntimeError, TypeError) as error:
        raise ValueError(f"{config.algorithm} cannot be made of {config.hyperparameters}: {error}") from error


def begin(model: Any, envs: Envs, config: Config) -> None:
    """Load the parameters at `warm_start`, if it is given."""
    if config.hyperparameters.get("warm_start"):
        normalize = envs.normalize
        unit = warm_start(model.policy, config, network_of(config.hyperparameters), normalize is not None)
        if normalize is not None and unit is not None:  # it takes many steps to find the unit of rewards
            statistics = normalize.ret_rms
            statistics.var, statistics.count = np.array(unit**2 - normalize.epsilon), KNOWN


def warm_start(policy: Any, config: Config, network: Options, normalizes: bool) -> float | None:
    """Load into a policy the parameters of the model at `warm_start`.

    `network` is the policy's description, as in model files. The value head of a policy begins anew if the model's says
    the values of other rewards, or if rewards are normalised here alone (`normalizes`).

    Returns the unit that the model's values are in, None if it says nothing here. Raises ValueError if the model's
    environment or network differs.
    """
    path = config.hyperparameters["warm_start"]
    model = load_model(model_file(path))
    arrays, about = dict(model.arrays), model.spec["network"]
    unit = float(about.get("reward_unit", 1.0))
    alike = all(model.spec["env_kwargs"].get(name) == config.env_kwargs.get(name) for name in REWARDS)
    fits = alike and about.get("rewards", True) is not None and (unit != 1.0 or not normalizes)
    head = {name: array for name, array in parameters_of(policy).items() if name.startswith("value_net.")}
    if not fits:
        arrays |= head
    elif not normalizes:
        arrays |= {name: (unit * arrays[name]).astype(np.float32) for name in head if name in arrays}
    theirs = {"env_id": model.spec["env_id"], **network_of(about)}
    for name, ours in {"env_id": config.env_id, **network}.items():
        if theirs[name] != ours:
            raise ValueError(f"warm_start: {name} is {theirs[name]!r} in {path}, {ours!r} here")
    try:
        set_parameters(policy, arrays)
    except ValueError as error:
        raise ValueError(f"warm_start: {path} does not fit the network of {config.algorithm}: {error}") from error
    return unit if fits and (head or model.spec["algorithm"] == config.algorithm) else None


def _check(config: Config, n_envs: Any, normalize: Any, given: Options) -> None:
    """Raise ValueError for hyper-parameters that the algorithm does not have or take."""
    parameters = inspect.signature(CLASSES[config.algorithm]).parameters
    names = set(parameters) - set(NOT_TO_SET)
    known(config.algorithm, given, sorted(names | set(OURS)))
    integer("n_envs", n_envs, 1)
    boolean("normalize", normalize)
    for name, value in given.items():
        check_value(name, value, parameters[name].default)
    if config.algorithm == "maskable-ppo":
        size, batch = n_envs * given.get("n_steps", 2048), given.get("batch_size", 64)
        if size % batch:
            raise ValueError(f"n_envs · n_steps is {size}; expected a multiple of batch_size, which is {batch}")
    elif (starts := given.get("learning_starts", parameters["learning_starts"].default)) >= config.timesteps:
        raise ValueError(
            f"learning_starts is {starts}, timesteps is {config.timesteps}: nothing would be learnt; expected fewer "
            "steps before learning than in all"
        )


class Envs:
    """The training environments of a run and their wrappers; the algorithm steps `top`."""

    def __init__(self, config: Config, n_envs: int, normalize: bool, gamma: float, wrapper: Any) -> None:
        self.native = make_vec_env(
            config.env_id, n_envs, config.first_seed, config.env_kwargs, config.max_episode_steps, wrapper
        )
        self.games: Any = self.native.envs
        self.normalize = VecNormalize(self.native, norm_obs=False, gamma=gamma) if normalize else None
        self.top: VecEnv = self.normalize or self.native

    def state(self) -> dict[str, Any]:
        """The state of the environments and their wrappers."""
        state = {"games": self.games.clone_state()}
        state |= {"episodes": [self.native.returns, self.native.lengths]}
        if self.normalize:
            statistics = self.normalize.ret_rms
            state["returns"] = [self.normalize.returns, statistics.mean, statistics.var, statistics.count]
        return state

    def restore(self, state: Options) -> None:
        """Restore what `state` returned."""
        self.games.restore_state(state["games"])
        self.native.returns[:], self.native.lengths[:] = state["episodes"][:2]
        if self.normalize:
            statistics = self.normalize.ret_rms
            self.normalize.returns, statistics.mean, statistics.var, statistics.count = state["returns"]


# -- evaluations and checkpoints --------------------------------------------------------------------------------------


class _Keeper(BaseCallback):
    """Evaluates and writes checkpoints when they are due, between an update and the next rollout."""

    def __init__(self, run: Run, envs: Envs, show: Callable[[int], None]) -> None:
        super().__init__()
        self.run, self.envs, self.show = run, envs, show

    def _on_rollout_start(self) -> None:
        if self.run.due(self.model.num_timesteps):
            self.keep(self.model)

    def _on_step(self) -> bool:
        self.show(self.model.num_timesteps)
        return True

    def keep(self, model: Any) -> None:
        """Evaluate, and write a checkpoint."""
        step, normalize = model.num_timesteps, self.envs.normalize
        unit = 1.0 if normalize is None else np.sqrt(normalize.ret_rms.var + normalize.epsilon)
        about = {"gamma": float(model.gamma), "reward_unit": float(unit)}
        network = network_of(self.run.config.hyperparameters) | about
        point = self.run.evaluate(step, parameters_of(model.policy), network)
        model.logger.record(f"eval/mean_{point.headline}", point.mean)
        model.logger.dump(step)
        self.run.save_checkpoint(step, {"model": state(model), "envs": self.envs.state()})
        self.show(step)


def state(model: Any) -> dict[str, Any]:
    """An algorithm's state without its environments: parameters, optimizer, counters, buffers, random generators."""
    parts: dict[str, Any] = {
        "policy": model.policy.state_dict(),
        "optimizer": model.policy.optimizer.state_dict(),
        "counters": {name: getattr(model, name) for name in COUNTERS if hasattr(model, name)},
        "last": [model._last_obs, model._last_original_obs, model._last_episode_starts],
        "episodes": list(model.ep_info_buffer or ()),
        "random": {
            "python": random.getstate(),
            "numpy": np.random.get_state(),  # noqa: NPY002 (Stable-Baselines3 draws from it)
            "torch": torch.get_rng_state(),
            "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
            "actions": model.action_space.np_random.bit_generator.state,
        },
    }
    buffer = getattr(model, "replay_buffer", None)
    if buffer is not None:
        filled = buffer.buffer_size if buffer.full else buffer.pos
        arrays = {name: take(part, slice(filled)) for name, part in _arrays_of(buffer).items()}
        parts["replay"] = {"pos": buffer.pos, "full": buffer.full, "arrays": arrays}
    return parts


def restore(model: Any, parts: Options) -> None:
    """Restore what `state` returned, in an algorithm of the same configuration."""
    model.policy.load_state_dict(parts["policy"])
    model.policy.optimizer.load_state_dict(parts["optimizer"])
    for name, value in parts["counters"].items():
        setattr(model, name, value)
    model._last_obs, model._last_original_obs, model._last_episode_starts = parts["last"]
    model.ep_info_buffer, model.ep_success_buffer = deque(parts["episodes"], model._stats_window_size), deque()
    if "replay" in parts:
        buffer, kept = model.replay_buffer, parts["replay"]
        buffer.pos, buffer.full = integer("pos", kept["pos"], 0, buffer.buffer_size - 1), bool(kept["full"])
        for name, part in _arrays_of(buffer).items():
            map_parts(lambda array, stored: np.copyto(array[: len(stored)], stored), part, kept["arrays"][name])
    generators = parts["random"]
    random.setstate(generators["python"])
    # NumPy does not check this index into its state, and would read beyond it.
    integer("the place in NumPy's random state", generators["numpy"][2], 0, 624)
    np.random.set_state(generators["numpy"])  # noqa: NPY002
    torch.set_rng_state(generators["torch"])
    if generators["cuda"] and torch.cuda.is_available():
        torch.cuda.set_rng_state_all(generators["cuda"])
    model.action_space.np_random.bit_generator.state = generators["actions"]


def _arrays_of(buffer: Any) -> dict[str, Any]:
    names = ("observations", "next_observations", "actions", "rewards", "dones", "timeouts")
    return {name: getattr(buffer, name) for name in names}
