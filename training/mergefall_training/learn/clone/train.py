"""Behaviour cloning: trains MaskablePPO's network to play the moves of a teacher.

- Data: games that the `teacher` plays for it (`games` of them), or a `dataset`. Record the games of a slow teacher once
  with `mergefall demonstrate`, which uses all cores.
- Illegal actions of the teacher are left out.
- Some games are held out. `matched`, in the curve's figures, is the share of their moves that the policy would play.
- The value network learns the discounted returns of the teacher's games. So MaskablePPO can continue from policy and
  values: `warm_start: RUN`. A game that a cap ended counts as over, so the returns of its last moves are too low.
- A step is one move learned from; `timesteps` of them make as many passes over the games as needed. The seed alone
  determines the order of the moves.

    >>> import tempfile
    >>> from mergefall_training.learn.presets import configure
    >>> from mergefall_training.learn.run import open_run
    >>> changed = {"teacher": "2048/greedy", "games": 4}
    >>> config = configure("clone", changed=changed, timesteps=500, interval=500, episodes=2)
    >>> with open_run(tempfile.mkdtemp(), config, progress=False) as run:
    ...     train(run)
    >>> bool(0 < run.points[-1].figures["matched"] < 1)
    True
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import gymnasium as gym
import numpy as np
import torch
from mergefall.checks import boolean, choice, integer, known
from mergefall.games import concatenate, game_of, take
from mergefall.typing import Array, Observation, Options
from mergefall_baselines.registry import player_of
from numpy.typing import NDArray

from mergefall_training.learn.clone.demonstrations import recorded
from mergefall_training.learn.devices import device_of, fuse
from mergefall_training.learn.run import Config, Run
from mergefall_training.learn.sb3.networks import parameters_of, policies_of
from mergefall_training.learn.sb3.player import CLASSES, policy_kwargs
from mergefall_training.learn.sb3.train import made_of
from mergefall_training.learn.training import schedule, training_progress
from mergefall_training.play.replay import Replay, replays
from mergefall_training.play.workers import Task, task


@dataclass(frozen=True)
class Hyperparameters:
    """Hyper-parameters of cloning, with rl_zoo3's names where it has them."""

    policy: str = "MlpPolicy"
    """Name of the policy, as for MaskablePPO."""
    policy_kwargs: Options | None = None
    """Arguments of the policy, as for MaskablePPO."""
    learning_rate: float | str = 1e-3
    """Learning rate of Adam; text such as `lin_0.001` falls linearly to 0."""
    batch_size: int = 1024
    """Moves per gradient step."""
    vf_coef: float = 0.5
    """Weight of the value loss."""
    gamma: float = 0.99
    """Discount of returns; use that of the training to follow."""
    normalize: bool = False
    """Whether returns are divided by their standard deviation; use `normalize` of the training to follow."""
    teacher: Options | str | None = None
    """The player: its name, or a mapping with `name` and options."""
    games: int = 100
    """Number of games that the teacher plays."""
    dataset: str | None = None
    """Name of a dataset to learn from, all games of it, in place of a teacher."""
    holdout: float = 0.1
    """Share of the games that is held out."""

    def __post_init__(self) -> None:
        if (self.teacher is None) == (self.dataset is None):
            raise ValueError(f"teacher={self.teacher!r}, dataset={self.dataset!r}; expected one of them")
        if not isinstance(self.dataset, str | None):
            raise ValueError(f"dataset is {self.dataset!r}; expected a dataset's name")
        integer("games", self.games, 2)
        integer("batch_size", self.batch_size, 1)
        for name, low, high in (("vf_coef", 0, float("inf")), ("gamma", 0, 1), ("holdout", 0, 1)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
                raise ValueError(f"{name} is {value!r}; expected a number from {low} to {high}")
        boolean("normalize", self.normalize)
        schedule("learning_rate", self.learning_rate)

    @classmethod
    def read(cls, given: Options) -> Hyperparameters:
        """The hyper-parameters of a run's configuration. Raises ValueError for unknown or bad ones."""
        known("clone", given, sorted(cls.__dataclass_fields__))
        return cls(**given)


@dataclass(frozen=True)
class Moves:
    """Moves to learn from.

    - `observations`: a batch of n.
    - `masks`: bool[n, actions], legal actions.
    - `actions`: int64[n], the teacher's.
    - `returns`: float32[n], discounted returns minus their mean, divided by their standard deviation. With this unit,
      the losses of policy and values are of the same order for all rewards.
    """

    observations: Observation
    masks: NDArray[np.bool_]
    actions: NDArray[np.int64]
    returns: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.actions)

    def take(self, index: slice | NDArray[np.int64]) -> Moves:
        """Some of the moves."""
        return Moves(take(self.observations, index), self.masks[index], self.actions[index], self.returns[index])


def check(config: Config, device: str = "auto") -> None:
    """Raise ValueError for a configuration that cannot be trained on this device; plays at most one move."""
    h = Hyperparameters.read(config.hyperparameters)
    make_policy(config, h.policy, h.policy_kwargs, device)
    _games(config, h)
    if h.teacher is not None:
        _teacher(config, h).trajectory(config.first_seed, 1)  # raises if the teacher does not play this game


def train(run: Run) -> None:
    """Train in a run folder to the end, from its last checkpoint if there is one."""
    h = Hyperparameters.read(run.config.hyperparameters)
    policy, step = make_policy(run.config, h.policy, h.policy_kwargs, run.device), 0
    learned, held_out, scale, unit = moves_of(run.config, h, run.progress)
    games = crc32(learned.actions.tobytes())
    checkpoint = run.load_checkpoint()
    if checkpoint is not None:
        step = checkpoint[0]
        with run.fitting():
            policy.load_state_dict(checkpoint[1]["policy"])
            policy.optimizer.load_state_dict(checkpoint[1]["optimizer"])
            if checkpoint[1].get("games", games) != games:  # checkpoints of earlier versions do not say
                source = "the teacher plays" if h.dataset is None else f"{h.dataset!r} has"
                raise ValueError(f"{source} other games than when the run began; begin it anew in another folder")
    rate = schedule("learning_rate", h.learning_rate)
    about = {"gamma": h.gamma, "reward_unit": unit}
    network = {"policy": h.policy, "policy_kwargs": dict(h.policy_kwargs or {})} | about

    def keep() -> None:
        run.evaluate(step, model_of(policy, scale), network, {"matched": matched(policy, held_out)})
        learner = {"policy": policy.state_dict(), "optimizer": policy.optimizer.state_dict()}
        run.save_checkpoint(step, learner | {"games": games})

    with training_progress(run) as show:
        for batch in batches(len(learned), h.batch_size, run.config.first_seed, step, run.config.timesteps):
            if run.due(step):
                keep()
            remaining = 1 - step / run.config.timesteps
            policy.optimizer.param_groups[0]["lr"] = rate(remaining) if callable(rate) else rate
            learn(policy, learned.take(batch), h.vf_coef)
            step += len(batch)
            show(step)
        if not run.points or run.points[-1].step < step:
            keep()


def make_policy(config: Config, policy: str, kwargs: Options | None, device: str) -> Any:
    """MaskablePPO's initial policy, from its name and arguments; seeds PyTorch's generator."""
    torch_device = device_of(device)
    torch.manual_seed(config.first_seed)
    env = gym.make(config.env_id, **config.env_kwargs)
    policies = policies_of(CLASSES["maskable-ppo"])
    kind, arguments = policies[choice("policy", policy, policies)], policy_kwargs(kwargs or {}, config.env_kwargs)
    with made_of(config):
        made = kind(env.observation_space, env.action_space, lambda _: 0.0, **arguments)
    env.close()
    made.to(torch_device)
    fuse(made.optimizer)
    return made


def moves_of(
    config: Config, h: Hyperparameters, progress: bool = False
) -> tuple[Moves, Moves, tuple[float, float], float]:
    """(moves to learn from, moves held out, (factor, shift), unit) from the teacher's games, at least one game each.

    The value of a state is factor · x + shift in units of `unit`, where x is the output of a network that learned
    `Moves.returns`.
    """
    played = list(_games(config, h, progress))
    aside = _held_out(h.holdout, len(played))
    returns = [discounted(game.rewards, h.gamma) for game in played]
    mean, deviation = float(np.concatenate(returns).mean()), float(np.concatenate(returns).std()) or 1.0
    units = [((one - mean) / deviation).astype(np.float32) for one in returns]
    unit = deviation if h.normalize else 1.0
    scale = deviation / unit, mean / unit
    return _joined(played[aside:], units[aside:]), _joined(played[:aside], units[:aside]), scale, unit


def _games(config: Config, h: Hyperparameters, progress: bool = False) -> Iterator[Replay]:
    """The games to learn from, each played or read on demand. Raises ValueError at once if they do not fit the run."""
    if h.dataset is not None:
        count, found = _dataset_games(config, h.dataset, h.vf_coef)
    else:
        count, found = h.games, _teacher_games(config, h, progress)
    _held_out(h.holdout, count)
    return found


def _held_out(holdout: float, count: int) -> int:
    """The number of games held out of `count`. Raises ValueError if none are left."""
    aside = max(1, round(holdout * count))
    if aside >= count:
        raise ValueError(f"holdout is {holdout} of {count} games; expected some to learn from")
    return aside


def _teacher_games(config: Config, h: Hyperparameters, progress: bool) -> Iterator[Replay]:
    job = _teacher(config, h)
    seeds = range(config.first_seed, config.first_seed + h.games)
    return replays(job, seeds, 1, f"games of {getattr(job.player, 'name', 'the teacher')}", progress)


def _teacher(config: Config, h: Hyperparameters) -> Task:
    return task(player_of(h.teacher, "teacher"), config.env_id, config.env_kwargs, config.max_episode_steps)


def _dataset_games(config: Config, dataset: str, vf_coef: float) -> tuple[int, Iterator[Replay]]:
    about, found = recorded(dataset)
    rules = game_of(config.env_id).rules
    theirs = {"env_id": about["env_id"], **{name: about["env_kwargs"].get(name) for name in rules}}
    ours = {"env_id": config.env_id, **{name: config.env_kwargs.get(name) for name in rules}}
    for name in theirs:
        if theirs[name] != ours[name]:
            raise ValueError(f"{name} is {theirs[name]!r} in {dataset}; expected {ours[name]!r}")
    for name in ("reward", "shaping"):
        recorded_as = about["env_kwargs"].get(name)
        if vf_coef and recorded_as != config.env_kwargs.get(name):
            raise ValueError(f"{name} is {recorded_as!r} in {dataset}; expected the run's, or vf_coef=0")
    return len(range(about["seeds"][0], about["seeds"][1] + 1)), found


def _joined(played: list[Replay], returns: list[NDArray[np.float32]]) -> Moves:
    """The legal moves of games: to an illegal one the policy gives no chance, so it cannot be learned."""
    # Observations and masks include those after the last move.
    observations = concatenate([take(game.observations, slice(-1)) for game in played])
    masks = np.concatenate([game.masks[:-1] for game in played]) == 1
    actions = np.concatenate([game.actions for game in played])
    legal = np.flatnonzero(masks[np.arange(len(actions)), actions])
    if not len(legal):
        raise ValueError(
            f"the teacher chose {len(actions)} illegal actions and no legal one; expected some to learn from"
        )
    return Moves(observations, masks, actions, np.concatenate(returns)).take(legal)


def discounted(rewards: NDArray[np.float64], gamma: float) -> NDArray[np.float64]:
    """The discounted return from each step on.

    >>> discounted(np.array([1.0, 0.0, 4.0]), 0.5)
    array([2., 2., 4.])
    """
    returns, later = np.empty(len(rewards)), 0.0
    for i in range(len(rewards) - 1, -1, -1):
        later = rewards[i] + gamma * later
        returns[i] = later
    return returns


def batches(count: int, size: int, seed: int, step: int, end: int) -> Iterator[NDArray[np.int64]]:
    """Batches of `size` indices below `count`, for the steps from `step` to `end`; each pass has its own random order.

    >>> [len(batch) for batch in batches(3, 2, seed=0, step=4, end=8)]  # the rest of the second pass, then the third
    [2, 2]
    """
    while step < end:
        turn, place = divmod(step, count)
        order = np.random.default_rng([seed, turn]).permutation(count)
        while place < count and step < end:
            batch = order[place : place + min(size, end - step)]
            yield batch
            place, step = place + len(batch), step + len(batch)


def learn(policy: Any, moves: Moves, vf_coef: float) -> float:
    """Take a gradient step. Returns the loss: cross-entropy + `vf_coef` · mean squared error of the returns."""
    policy.set_training_mode(True)
    observations, _ = policy.obs_to_tensor(moves.observations)
    actions = torch.as_tensor(moves.actions, device=policy.device)
    values, log_chances, _ = policy.evaluate_actions(observations, actions, action_masks=moves.masks)
    loss = -log_chances.mean()
    if vf_coef:
        returns = torch.as_tensor(moves.returns, device=policy.device)
        loss = loss + vf_coef * torch.nn.functional.mse_loss(values.flatten(), returns)
    policy.optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(policy.parameters(), 0.5)
    policy.optimizer.step()
    return float(loss.detach())


def model_of(policy: Any, scale: tuple[float, float]) -> dict[str, Array]:
    """The policy's parameters, with the value network scaled by (factor, shift)."""
    arrays = parameters_of(policy)
    factor, shift = scale
    scaled = {"weight": arrays["value_net.weight"] * factor, "bias": arrays["value_net.bias"] * factor + shift}
    return arrays | {f"value_net.{name}": array.astype(np.float32) for name, array in scaled.items()}


def matched(policy: Any, moves: Moves, size: int = 4096) -> float:
    """The share of moves that equal the policy's most probable legal ones; evaluates `size` moves at a time."""
    policy.set_training_mode(False)
    hits = 0
    for first in range(0, len(moves), size):
        part = moves.take(slice(first, first + size))
        observations, _ = policy.obs_to_tensor(part.observations)
        with torch.no_grad():
            logits = policy.get_distribution(observations, action_masks=part.masks).distribution.logits
        hits += int((logits.argmax(dim=1).cpu().numpy() == part.actions).sum())
    return hits / len(moves)
