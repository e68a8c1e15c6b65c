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
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import torch
from mergefall.checks import in_place, integer, known
from mergefall.games import map_parts, take
from mergefall.typing import Options
from sb3_contrib import MaskablePPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import configure
from stable_baselines3.common.vec_env import VecEnv, VecNormalize

from mergefall_training.files import model_file
from mergefall_training.learn.devices import device_of, quicken
from mergefall_training.learn.models import load_model
from mergefall_training.learn.run import Config, Run
from mergefall_training.learn.sb3.dqn import AfterstatesDQN
from mergefall_training.learn.sb3.networks import network_of, parameters_of, policy_class, set_parameters
from mergefall_training.learn.sb3.vec_env import make_vec_env
from mergefall_training.learn.training import RATES, check_value, schedule, training_progress

CLASSES: dict[str, Any] = {"maskable-ppo": MaskablePPO, "dqn": AfterstatesDQN}
REWARDS = ("reward", "goal", "shaping")  # arguments of an environment that say what it pays
KNOWN = 1e6  # steps that another run's unit of rewards counts as
# Hyper-parameters beside the arguments of an algorithm's class, which has the others by default.
OURS = dict(policy=None, n_envs=1, normalize=False, mixed_precision=False, env_wrapper=None, warm_start=None)
NOT_TO_SET = (
    *("self", "env", "policy", "seed", "device", "verbose", "tensorboard_log", "_init_setup_model"),
    *("rollout_buffer_class", "rollout_buffer_kwargs", "replay_buffer_class", "replay_buffer_kwargs"),
    *("use_sde", "sde_sample_freq", "optimize_memory_usage"),  # for continuous actions, and not resumable
)
MEANINGS = {  # plainer than in SB3's docstrings
    "gae_lambda": "How far ahead an action is judged: 0 looks one step ahead and trusts the value network for the "
    "rest, 1 counts the rewards to the end of the rollout. Between them the weight of each further step falls by this "
    "factor (generalized advantage estimation, Schulman et al. 2016)"
}
COUNTERS = ("num_timesteps", "_n_updates", "_current_progress_remaining", "_n_calls", "exploration_rate")


def check(config: Config, device: str = "auto") -> None:
    """Raise ValueError for a configuration that cannot be trained on this device."""
    model = build(config, device)
    with made_of(config):
        model.predict(model.env.reset(), deterministic=True)
    begin(model, config)


def train(run: Run) -> None:
    """Train in a run folder to the end, from its last checkpoint if there is one."""
    model, checkpoint = build(run.config, run.device), run.load_checkpoint()
    if checkpoint is None:
        begin(model, run.config)
    else:
        with run.fitting():
            restore(model, checkpoint[1])
    model.set_logger(configure(str(run.folder / "tensorboard"), ["tensorboard"]))
    with training_progress(run) as show:
        keeper = _Keeper(run, show)
        if model.num_timesteps < run.config.timesteps:
            model.learn(run.config.timesteps - model.num_timesteps, keeper, reset_num_timesteps=checkpoint is None)
        if not run.points or run.points[-1].step < model.num_timesteps:
            keeper.keep(model)


# -- algorithm and environments ---------------------------------------------------------------------------------------


def build(config: Config, device: str = "auto") -> Any:
    """The model that `mergefall train` would train: sb3-contrib's MaskablePPO or SB3's DQN on the native batch.

    Train it with `model.learn(config.timesteps)`. `model.env` divides rewards (`VecNormalize`) if the configuration
    says so. `warm_start` is not loaded. Raises ValueError for bad hyper-parameters.

    >>> from mergefall_training.learn.presets import configure
    >>> model = build(configure("maskable-ppo", preset="2min"), "cpu")
    >>> type(model).__name__, type(model.policy).__name__, model.n_envs, model.gamma
    ('MaskablePPO', 'AfterstatesPolicy', 256, 0.99)
    """
    kind, given = CLASSES[config.algorithm], config.hyperparameters
    parameters = inspect.signature(kind).parameters.items()
    defaults = {name: one.default for name, one in parameters if name not in NOT_TO_SET} | OURS
    known(config.algorithm, given, sorted(defaults))
    for name, value in given.items():
        check_value(name, value, defaults[name])
    chosen: dict[str, Any] = {**defaults, **given}
    if config.algorithm == "maskable-ppo":
        size, batch = chosen["n_envs"] * chosen["n_steps"], chosen["batch_size"]
        if size % batch:
            raise ValueError(f"n_envs · n_steps is {size}; expected a multiple of batch_size, which is {batch}")
    elif (starts := chosen["learning_starts"]) >= config.timesteps:
        raise ValueError(
            f"learning_starts is {starts}, timesteps is {config.timesteps}: nothing would be learnt; expected fewer "
            "steps before learning than in all"
        )
    policy, kwargs = policy_class(config.algorithm, network_of(given), config.env_kwargs)
    arguments = {name: value for name, value in given.items() if name not in OURS} | {"policy_kwargs": kwargs}
    arguments |= {name: schedule(name, given[name]) for name in RATES if given.get(name) is not None}
    envs: VecEnv = make_vec_env(
        config.env_id,
        chosen["n_envs"],
        config.first_seed,
        config.env_kwargs,
        config.max_episode_steps,
        chosen["env_wrapper"],
    )
    if chosen["normalize"]:
        envs = VecNormalize(envs, norm_obs=False, gamma=chosen["gamma"])
    with made_of(config):
        model = kind(policy, envs, seed=config.first_seed, device=device_of(device), **arguments)
    quicken(model.policy, chosen["mixed_precision"])
    return model


def made_of(config: Config) -> AbstractContextManager[None]:
    """In this block, errors of PyTorch and Stable-Baselines3 become ValueErrors that name the hyper-parameters."""
    where = f"{config.algorithm} cannot be made of {config.hyperparameters}"
    return in_place(where, (AssertionError, AttributeError, LookupError, RuntimeError, TypeError))


def begin(model: Any, config: Config) -> None:
    """Load the parameters at `warm_start`, if it is given."""
    if config.hyperparameters.get("warm_start"):
        normalize = model.get_vec_normalize_env()
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
    theirs = {
        "env_id": model.spec["env_id"],
        "policy": about["policy"],
        "policy_kwargs": about.get("policy_kwargs") or {},
    }
    for name, ours in {"env_id": config.env_id, **network}.items():
        if theirs[name] != ours:
            raise ValueError(f"warm_start: {name} is {theirs[name]!r} in {path}, {ours!r} here")
    with in_place(f"warm_start: {path} does not fit the network of {config.algorithm}"):
        set_parameters(policy, arrays)
    return unit if fits and (head or model.spec["algorithm"] == config.algorithm) else None


# -- evaluations and checkpoints --------------------------------------------------------------------------------------


class _Keeper(BaseCallback):
    """Evaluates and writes checkpoints when they are due, between an update and the next rollout."""

    def __init__(self, run: Run, show: Callable[[int], None]) -> None:
        super().__init__()
        self.run, self.show = run, show

    def _on_rollout_start(self) -> None:
        if self.run.due(self.model.num_timesteps):
            self.keep(self.model)

    def _on_step(self) -> bool:
        self.show(self.model.num_timesteps)
        return True

    def keep(self, model: Any) -> None:
        """Evaluate, and write a checkpoint."""
        step, normalize = model.num_timesteps, model.get_vec_normalize_env()
        unit = 1.0 if normalize is None else np.sqrt(normalize.ret_rms.var + normalize.epsilon)
        network = network_of(self.run.config.hyperparameters)
        network |= {"gamma": float(model.gamma), "reward_unit": float(unit)}
        point = self.run.evaluate(step, parameters_of(model.policy), network, {})
        model.logger.record(f"eval/mean_{point.headline}", point.mean)
        model.logger.dump(step)
        self.run.save_checkpoint(step, state(model))
        self.show(step)


def state(model: Any) -> dict[str, Any]:
    """An algorithm's state: parameters, optimizer, counters, buffers, random generators, environments."""
    native, normalize = model.env.unwrapped, model.get_vec_normalize_env()
    parts: dict[str, Any] = {
        "policy": model.policy.state_dict(),
        "optimizer": model.policy.optimizer.state_dict(),
        "counters": {name: getattr(model, name) for name in COUNTERS if hasattr(model, name)},
        "last": [model._last_obs, model._last_original_obs, model._last_episode_starts],
        "games": native.envs.clone_state(),
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
        filled = buffer.buffer_size if buffer.full else buffer.pos
        arrays = {name: take(part, slice(filled)) for name, part in _arrays_of(buffer).items()}
        parts["replay"] = {"pos": buffer.pos, "full": buffer.full, "arrays": arrays}
    return parts


def restore(model: Any, parts: Options) -> None:
    """Restore what `state` returned, in an algorithm of the same configuration."""
    native, normalize = model.env.unwrapped, model.get_vec_normalize_env()
    native.envs.restore_state(parts["games"])
    native.returns[:], native.lengths[:] = parts["sums"]
    if normalize is not None:
        statistics = normalize.ret_rms
        normalize.returns, statistics.mean, statistics.var, statistics.count = parts["returns"]
    model.policy.load_state_dict(parts["policy"])
    model.policy.optimizer.load_state_dict(parts["optimizer"])
    for name, value in parts["counters"].items():
        setattr(model, name, value)
    model._last_obs, model._last_original_obs, model._last_episode_starts = parts["last"]
    if "replay" in parts:
        buffer, kept = model.replay_buffer, parts["replay"]
        buffer.pos, buffer.full = integer("pos", kept["pos"], 0, buffer.buffer_size - 1), bool(kept["full"])
        for name, part in _arrays_of(buffer).items():
            map_parts(lambda array, stored: np.copyto(array[: len(stored)], stored), part, kept["arrays"][name])
    generators = parts["random"]
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
