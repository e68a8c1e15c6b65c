"""Behaviour cloning: a policy learns a player's moves from its games, into the very network that MaskablePPO trains.

The games are played for it (`teacher`, `games`), or come from a dataset (`dataset`): a slow teacher's are better
recorded once by `mergefall demonstrate`, which plays on all cores. Some of them are held out, to say how many of the
teacher's moves the policy would play in games that it has not seen: ``matched`` in the curve's figures. Its value
network learns the discounted returns of the teacher's games, so that MaskablePPO can go on from both:
``warm_start: RUN``.

A step is one move learnt from; `timesteps` of them are as many passes over the games as that takes. Which moves come
when follows from the seed alone.

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

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from mergefall.checks import choice, integer, known
from mergefall_baselines import make
from numpy.typing import NDArray

from mergefall_training.learn.clone.demonstrations import recorded
from mergefall_training.learn.device import device_of
from mergefall_training.learn.run import Config, Run
from mergefall_training.learn.sb3.networks import parameters_of, policies_of
from mergefall_training.learn.sb3.player import CLASSES, policy_kwargs
from mergefall_training.learn.sb3.train import made_of
from mergefall_training.learn.schedule import schedule
from mergefall_training.learn.showing import training_progress
from mergefall_training.play.replay import Replay, replays
from mergefall_training.play.workers import Task, task

RULES = ("rows", "cols", "goal", "pieces", "randomizer", "preview", "placements", "overflow")


@dataclass(frozen=True)
class Settings:
    """What `Config.hyperparameters` hold, by rl_zoo3's names where it has them."""

    policy: str = "MlpPolicy"
    """As MaskablePPO's."""
    policy_kwargs: Mapping[str, Any] | None = None
    """As MaskablePPO's."""
    learning_rate: float | str = 1e-3
    """Adam's; text such as ``lin_0.001`` for one that falls to 0."""
    batch_size: int = 1024
    """Moves learnt from at once."""
    vf_coef: float = 0.5
    """The weight of the value network's loss."""
    gamma: float = 0.99
    """The discount of returns: that of the training to follow."""
    normalize: bool = False
    """Whether values are of returns divided by their standard deviation: ``normalize`` of the training to follow."""
    teacher: Mapping[str, Any] | str | None = None
    """The player: a name, or a mapping with a name and options."""
    games: int = 100
    """How many games it plays."""
    dataset: str | None = None
    """In place of a teacher, the name of a dataset, all of whose games are learnt from."""
    holdout: float = 0.1
    """The share of the games that is held out."""

    def __post_init__(self) -> None:
        if (self.teacher is None) == (self.dataset is None):
            raise ValueError(f"teacher={self.teacher!r}, dataset={self.dataset!r}; expected one of them")
        name = self.teacher.get("name") if isinstance(self.teacher, Mapping) else self.teacher or ""
        if not isinstance(name, str):
            raise ValueError(f"teacher is {self.teacher!r}; expected a player's name, or a mapping of name and options")
        if not isinstance(self.dataset, str | None):
            raise ValueError(f"dataset is {self.dataset!r}; expected a dataset's name")
        integer("games", self.games, 2)
        integer("batch_size", self.batch_size, 1)
        for name, low, high in (("vf_coef", 0, float("inf")), ("gamma", 0, 1), ("holdout", 0, 1)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
                raise ValueError(f"{name} is {value!r}; expected a number from {low} to {high}")
        if not isinstance(self.normalize, bool):
            raise ValueError(f"normalize is {self.normalize!r}; expected true or false")


@dataclass(frozen=True)
class Moves:
    """Moves to learn from: what was seen (a batch of n), what was legal, bool[n, actions], played, and came of it.

    ``returns`` float32[n] are discounted returns, less their mean, in standard deviations: units in which the losses of
    policy and values are of one order, whatever the rewards.
    """

    observations: Any
    masks: NDArray[np.bool_]
    actions: NDArray[np.int64]
    returns: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.actions)

    def rows(self, which: Any) -> Moves:
        """Some of them."""
        return Moves(_rows(self.observations, which), self.masks[which], self.actions[which], self.returns[which])


def check(config: Config, device: str = "auto") -> None:
    """Raise ValueError for a configuration that cannot be trained; the games are not played."""
    settings = settings_of(config)
    make_policy(config, settings, device)
    _games(config, settings)
    if settings.teacher is not None:
        _teacher(config, settings).trajectory(config.first_seed, 1)  # plays the game at all


def train(run: Run) -> None:
    """Clone in a run folder to the end of its steps; from its last checkpoint, if there is one."""
    settings = settings_of(run.config)
    policy, step = make_policy(run.config, settings, run.device), 0
    learnt, held_out, scale = moves_of(run.config, settings, run.progress)
    checkpoint = run.load_checkpoint()
    if checkpoint is not None:
        step = checkpoint[0]
        with run.fitting():
            policy.load_state_dict(checkpoint[1]["policy"])
            policy.optimizer.load_state_dict(checkpoint[1]["optimizer"])
    rate = schedule("learning_rate", settings.learning_rate)
    network = {"policy": settings.policy, "policy_kwargs": dict(settings.policy_kwargs or {})}

    def keep() -> None:
        run.evaluate(step, model_of(policy, scale), network, {"matched": matched(policy, held_out)})
        run.save_checkpoint(step, {"policy": policy.state_dict(), "optimizer": policy.optimizer.state_dict()})

    with training_progress(run) as show:
        for batch in batches(len(learnt), settings.batch_size, run.config.first_seed, step, run.config.timesteps):
            if run.due(step):
                keep()
            remaining = 1 - step / run.config.timesteps
            policy.optimizer.param_groups[0]["lr"] = rate(remaining) if callable(rate) else rate
            learn(policy, learnt.rows(batch), settings.vf_coef)
            step += len(batch)
            show(step)
        if not run.points or run.points[-1].step < step:
            keep()


def settings_of(config: Config) -> Settings:
    """The hyper-parameters of a run; those that cloning does not have are a ValueError."""
    known("clone", config.hyperparameters, sorted(Settings.__dataclass_fields__))
    settings = Settings(**config.hyperparameters)
    schedule("learning_rate", settings.learning_rate)
    return settings


def make_policy(config: Config, settings: Settings, device: str) -> Any:
    """The policy as MaskablePPO would begin with it."""
    torch_device = device_of(device)
    torch.manual_seed(config.first_seed)
    env = gym.make(config.env_id, **config.env_kwargs)
    policies = policies_of(CLASSES["maskable-ppo"])
    kind = policies[choice("policy", settings.policy, policies)]
    kwargs = policy_kwargs(settings.policy_kwargs or {}, config.env_kwargs)
    with made_of(config):
        policy = kind(env.observation_space, env.action_space, lambda _: 0.0, **kwargs)
    env.close()
    return policy.to(torch_device)


def moves_of(config: Config, settings: Settings, progress: bool = False) -> tuple[Moves, Moves, tuple[float, float]]:
    """(moves to learn from, moves held out, scale) of the teacher's games, at least one game each.

    The scale (factor, shift) makes what the value network is to say of what it learns: `Moves.returns`.
    """
    played = list(_games(config, settings, progress))
    aside = _held_out(settings.holdout, len(played))
    returns = [discounted(game.rewards, settings.gamma) for game in played]
    mean, deviation = float(np.concatenate(returns).mean()), float(np.concatenate(returns).std()) or 1.0
    units = [((one - mean) / deviation).astype(np.float32) for one in returns]
    scale = (1.0, mean / deviation) if settings.normalize else (deviation, mean)
    return _joined(played[aside:], units[aside:]), _joined(played[:aside], units[:aside]), scale


def _games(config: Config, settings: Settings, progress: bool = False) -> Iterator[Replay]:
    """The games to learn from, each played or read when it is asked for; what does not fit is a ValueError at once."""
    if settings.dataset is not None:
        count, found = _dataset_games(config, settings.dataset, settings.vf_coef)
    else:
        count, found = settings.games, _teacher_games(config, settings, progress)
    _held_out(settings.holdout, count)
    return found


def _held_out(holdout: float, count: int) -> int:
    """How many of so many games are held out; a ValueError if none are left."""
    aside = max(1, round(holdout * count))
    if aside >= count:
        raise ValueError(f"holdout is {holdout} of {count} games; expected some to learn from")
    return aside


def _teacher_games(config: Config, settings: Settings, progress: bool) -> Iterator[Replay]:
    job = _teacher(config, settings)
    seeds = range(config.first_seed, config.first_seed + settings.games)
    return replays(job, seeds, 1, f"games of {getattr(job.player, 'name', 'the teacher')}", progress)


def _teacher(config: Config, settings: Settings) -> Task:
    teacher = {"name": settings.teacher} if isinstance(settings.teacher, str) else dict(settings.teacher or {})
    return task(make(**teacher), config.env_id, config.env_kwargs, config.max_episode_steps)


def _dataset_games(config: Config, dataset: str, vf_coef: float) -> tuple[int, Iterator[Replay]]:
    about, found = recorded(dataset)
    theirs = {"env_id": about["env_id"], **{name: about["env_kwargs"].get(name) for name in RULES}}
    ours = {"env_id": config.env_id, **{name: config.env_kwargs.get(name) for name in RULES}}
    for name in theirs:
        if theirs[name] != ours[name]:
            raise ValueError(f"{name} is {theirs[name]!r} in {dataset}; expected {ours[name]!r}")
    reward = about["env_kwargs"].get("reward")
    if vf_coef and reward != config.env_kwargs.get("reward"):
        raise ValueError(f"reward is {reward!r} in {dataset}; expected the run's, or vf_coef=0")
    return len(range(about["seeds"][0], about["seeds"][1] + 1)), found


def _joined(played: list[Replay], returns: list[NDArray[np.float32]]) -> Moves:
    first = played[0].observations
    if isinstance(first, dict):
        seen: Any = {name: np.concatenate([game.observations[name][:-1] for game in played]) for name in first}
    else:
        seen = np.concatenate([game.observations[:-1] for game in played])
    masks = np.concatenate([game.masks[:-1] for game in played]) == 1
    return Moves(seen, masks, np.concatenate([game.actions for game in played]), np.concatenate(returns))


def discounted(rewards: NDArray[np.float64], gamma: float) -> NDArray[np.float64]:
    """The return from each time on.

    >>> discounted(np.array([1.0, 0.0, 4.0]), 0.5)
    array([2., 2., 4.])
    """
    returns, later = np.empty(len(rewards)), 0.0
    for i in range(len(rewards) - 1, -1, -1):
        later = rewards[i] + gamma * later
        returns[i] = later
    return returns


def batches(count: int, size: int, seed: int, step: int, end: int) -> Iterator[NDArray[np.int64]]:
    """Indices below `count` from `step` on to `end`, `size` at once: pass after pass, each in an order of its own.

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
    """One step of gradient descent; returns the loss: cross-entropy, and the squared error of returns."""
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


def model_of(policy: Any, scale: tuple[float, float]) -> dict[str, NDArray[Any]]:
    """The policy's parameters, its values being scaled."""
    arrays = parameters_of(policy)
    factor, shift = scale
    scaled = {"weight": arrays["value_net.weight"] * factor, "bias": arrays["value_net.bias"] * factor + shift}
    return arrays | {f"value_net.{name}": array.astype(np.float32) for name, array in scaled.items()}


def matched(policy: Any, moves: Moves, size: int = 4096) -> float:
    """The share of moves that are the policy's likeliest legal ones."""
    policy.set_training_mode(False)
    hits = 0
    for first in range(0, len(moves), size):
        part = moves.rows(slice(first, first + size))
        observations, _ = policy.obs_to_tensor(part.observations)
        with torch.no_grad():
            logits = policy.get_distribution(observations, action_masks=part.masks).distribution.logits
        hits += int((logits.argmax(dim=1).cpu().numpy() == part.actions).sum())
    return hits / len(moves)


def _rows(observations: Any, which: Any) -> Any:
    if isinstance(observations, dict):
        return {name: part[which] for name, part in observations.items()}
    return observations[which]
