"""Temporal-difference learning of afterstate values by PyTorch, on the native batched environments.

The learner plays many games at once, always the action of the highest r + γV(s′), with s′ the afterstate. After some
steps of all games, the network learns from them in a few passes. The target of V(s′ₜ) is

    (1 − λ) · (rₜ₊₁ + γV(s′ₜ₊₁)) + λ · (rₜ₊₁ + γ · [target of V(s′ₜ₊₁)]),

- 0 if chance ends the game after s′ₜ, as a tile in 2048 does;
- V(s′ₜ) itself if a cap ends the game.

A fatal placement is worth 0; nothing is learnt from it, and it is chosen only if all are fatal. Chance makes the
learner explore enough. The targets of a rollout stay fixed while the network learns them, so there is no target network
and no replay buffer. The model may be a running mean of the networks (`average`), which plays no games.

Any player that needs the observation alone may be the `guide`: it plays first, and so hands over what it knows
(jump-start reinforcement learning: I. Uchendu et al., ICML 2023). A distilled policy, whose network is another one, is
taken over like that.

Example:
    mergefall train afterstate --env mergefall/Tetris-v0 --out runs/afterstate
    mergefall evaluate runs/afterstate --episodes 100

Source: M. Gallici et al., Simplifying Deep Temporal Difference Learning (2024), for the parallel form without replay.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from itertools import pairwise
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import torch
from mergefall.checks import integer, known, number
from mergefall.games import game_of
from mergefall.typing import Options
from mergefall_baselines.player import takes_masks
from mergefall_baselines.registry import player_of, without_memory
from numpy.typing import NDArray
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from mergefall_training.learn.afterstate.inputs import INPUTS, INPUTS_OF, best, rows_of
from mergefall_training.learn.devices import device_of
from mergefall_training.learn.run import Config, Run, read_checkpoint, read_config
from mergefall_training.learn.training import schedule, train_in_rounds
from mergefall_training.play.workers import task

F = np.float32


@dataclass(frozen=True)
class Hyperparameters:
    """The hyper-parameters of a run, by rl_zoo3's names where it has one."""

    n_envs: int = 256  # games played at once
    n_steps: int = 16  # of each game before the network learns
    n_epochs: int = 4  # passes over these steps
    batch_size: int = 1024  # afterstates of a gradient step
    learning_rate: float | str = "lin_0.001"  # of Adam; `lin_0.001` falls to 0
    gamma: float = 0.9  # γ; 0.9 looks about 10 pieces ahead
    td_lambda: float = 0.0  # λ; 0 looks one step ahead, 1 to the rollout's end
    reward_scale: float = 1.0  # factor of rewards, as the network sees them
    average: float = 0.0  # the model's running mean keeps this share of itself at each step; 0: the network itself
    policy_kwargs: Options = field(default_factory=lambda: {"net_arch": [64, 64]})  # units of each layer
    warm_start: str = ""  # a run folder; begin with the network and the optimizer of its last checkpoint
    guide: Any = None  # a player: its name, a run folder, or a mapping of name and options; it plays the first games
    guide_share: float = 0.2  # of the steps, those that the guide plays; the network learns what its play is worth

    def __post_init__(self) -> None:
        for name in ("n_envs", "n_steps", "n_epochs", "batch_size"):
            integer(name, getattr(self, name), 1)
        for name in ("gamma", "td_lambda", "average", "guide_share"):
            number(name, getattr(self, name), 0, 1)
        if self.average == 1:
            raise ValueError("average is 1; expected less, because the running mean would keep nothing of the network")
        number("reward_scale", self.reward_scale, above=0)
        units = self.policy_kwargs.get("net_arch") if isinstance(self.policy_kwargs, Mapping) else None
        if not isinstance(units, list) or set(self.policy_kwargs) != {"net_arch"}:
            raise ValueError(f"policy_kwargs is {self.policy_kwargs!r}; expected {{'net_arch': [units of each layer]}}")
        for count in units:
            integer("net_arch", count, 1)
        if not isinstance(self.warm_start, str):
            raise ValueError(f"warm_start is {self.warm_start!r}; expected a run folder")
        schedule("learning_rate", self.learning_rate)

    @classmethod
    def read(cls, given: Options) -> Hyperparameters:
        """The hyper-parameters of a run's configuration; raises ValueError for an unknown name."""
        known("afterstate", given, [field.name for field in fields(cls)])
        return cls(**given)


class Decisions(NamedTuple):
    """One decision in each of n games."""

    actions: NDArray[np.int64]  # [n]
    rewards: NDArray[np.float32]  # [n]
    values: NDArray[np.float32]  # [n], V of the afterstates, 0 if fatal
    over: NDArray[np.bool_]  # [n], whether the action is fatal
    inputs: NDArray[np.float32]  # [n, k], of the afterstates


def targets(
    rewards: NDArray[np.float32],
    values: NDArray[np.float32],
    over: NDArray[np.bool_],
    terminated: NDArray[np.bool_],
    truncated: NDArray[np.bool_],
    gamma: float,
    td_lambda: float,
) -> NDArray[np.float32]:
    """The targets of a rollout's afterstates, float32[steps, n].

    - `rewards`, `values`, `over` [steps + 1, n]: of `Decisions`, up to one decision beyond the rollout.
    - `terminated`, `truncated` [steps, n]: which steps ended an episode.

    The targets of fatal placements are meaningless.

    >>> rewards, values = np.array([[0], [1], [2]], F), np.array([[5], [6], [7]], F)
    >>> never = np.zeros((3, 1), bool)
    >>> targets(rewards, values, never, never[1:], never[1:], 0.5, td_lambda=1.0).ravel()
    array([3.75, 5.5 ], dtype=float32)
    """
    found = np.empty_like(values[:-1])
    following = values[-1]  # the target of the next afterstate
    for t in reversed(range(len(found))):
        ahead = np.where(over[t + 1], 0, td_lambda * following + (1 - td_lambda) * values[t + 1])
        going = np.where(truncated[t], values[t], rewards[t + 1] + gamma * ahead)
        found[t] = following = np.where(terminated[t], 0, going)
    return found


class Learner:
    """The games of a run, its network and optimizer; one call of `learn` is one rollout."""

    def __init__(self, config: Config, device: torch.device) -> None:
        self.hyperparameters = h = Hyperparameters.read(config.hyperparameters)
        if config.env_kwargs.get("goal") is not None or config.env_kwargs.get("shaping") is not None:
            raise ValueError(f"env_kwargs are {config.env_kwargs}; afterstate learning takes neither goal nor shaping")
        self.config, self.device, self.step = config, device, 0
        self.guide: Any = None
        if h.guide is not None:
            guide = without_memory(player_of(h.guide, "guide"), "guide")
            job = task(guide, config.env_id, config.env_kwargs, config.max_episode_steps)
            job.trajectory(0, 1)  # raises ValueError if it plays another game
            self.guide = job.player
        self.envs: Any = gym.make_vec(
            config.env_id,
            num_envs=h.n_envs,
            autoreset_mode="SameStep",
            max_episode_steps=config.max_episode_steps,
            **config.env_kwargs,
        )
        self.observations, _ = self.envs.reset(seed=config.first_seed)
        self.random = torch.Generator().manual_seed(config.first_seed)
        self.inputs = INPUTS_OF[game_of(config.env_id).name]
        sizes = [self.inputs.size(self.envs.rules), *h.policy_kwargs["net_arch"], 1]
        layers = [torch.nn.Linear(*size) for size in pairwise(sizes)]
        for layer in layers:
            for part in layer.parameters():  # as PyTorch does it, but from our own generator
                torch.nn.init.uniform_(part, -(layer.in_features**-0.5), layer.in_features**-0.5, self.random)
        self.layers = torch.nn.ModuleList(layers).to(device)
        self.averaged = AveragedModel(self.layers, multi_avg_fn=get_ema_multi_avg_fn(h.average))
        self.optimizer = torch.optim.Adam(self.layers.parameters())

    def warm_start(self) -> None:
        """Take over network and optimizer of the run `warm_start`, if any; raises ValueError if they do not fit."""
        if not (folder := self.hyperparameters.warm_start):
            return
        there = read_config(folder)
        theirs, ours = ([c.algorithm, c.env_id, c.env_kwargs] for c in (there, self.config))
        if there.algorithm == "afterstate":
            for found, h in ((theirs, Hyperparameters.read(there.hyperparameters)), (ours, self.hyperparameters)):
                found += [h.reward_scale, dict(h.policy_kwargs)]
        if theirs != ours:
            raise ValueError(f"warm_start: the run in {folder} is {theirs}; expected {ours}")
        _, state, _ = read_checkpoint(folder)
        self._take_over(state)

    def values(self, inputs: torch.Tensor) -> torch.Tensor:
        """V of afterstates, float32[m], from their inputs float32[m, k]; scaled by `reward_scale`."""
        *hidden, last = self.layers
        for layer in hidden:
            inputs = torch.relu(layer(inputs))
        return last(inputs)[:, 0]

    def decide(self) -> Decisions:
        """The action of the highest r + γV in each game, or the guide's."""
        h, table = self.hyperparameters, self.inputs.afterstates(self.observations, self.envs.rules)
        with torch.no_grad():
            values = self.values(torch.from_numpy(table.inputs).to(self.device)).cpu().numpy()
        rewards = F(h.reward_scale) * table.rewards
        if self.guide is not None and self.step < h.guide_share * self.config.timesteps:
            masks = {"action_masks": self.envs.action_masks()} if takes_masks(self.guide) else {}
            actions = self.guide.predict(self.observations, deterministic=True, **masks)[0]
            rows = rows_of(table, actions)
            if len(rows) != len(actions):
                legal = self.envs.action_masks()[np.arange(len(actions)), actions]
                raise ValueError(f"guide {h.guide!r} plays the illegal action {actions[~legal][0]}")
        else:
            rows = best(table, rewards + F(h.gamma) * values)
        over = table.over[rows]
        return Decisions(
            table.actions[rows], rewards[rows], np.where(over, F(0), values[rows]), over, table.inputs[rows]
        )

    def learn(self) -> dict[str, float]:
        """Play `n_steps` of each game and learn from them; returns figures to log."""
        h = self.hyperparameters
        taken, ends = [self.decide()], []
        for _ in range(h.n_steps):
            self.observations, _, *ended, _ = self.envs.step(taken[-1].actions)
            ends.append(ended)
            taken.append(self.decide())
        _, rewards, values, over, inputs = (np.stack(column) for column in zip(*taken, strict=True))
        terminated, truncated = (np.stack(column) for column in zip(*ends, strict=True))
        aims = targets(rewards, values, over, terminated, truncated, h.gamma, h.td_lambda)
        alive = ~over[:-1]
        loss = self._fit(inputs[:-1][alive], aims[alive])
        self.step += h.n_envs * h.n_steps
        return {"loss": loss, "value": float(values.mean())}

    def _fit(self, inputs: NDArray[np.float32], aims: NDArray[np.float32]) -> float:
        """Learn targets [m] of inputs [m, k] in `n_epochs` passes; returns the mean squared error of the last pass."""
        h, rate = self.hyperparameters, schedule("learning_rate", self.hyperparameters.learning_rate)
        left = 1 - self.step / self.config.timesteps
        for group in self.optimizer.param_groups:
            group["lr"] = rate(left) if callable(rate) else rate
        if not len(inputs):  # all placements ended their games
            return 0.0
        x, y = torch.from_numpy(inputs).to(self.device), torch.from_numpy(aims).to(self.device)
        total = 0.0
        for _ in range(h.n_epochs):
            total = 0.0
            for rows in torch.randperm(len(x), generator=self.random).to(self.device).split(h.batch_size):
                loss = torch.nn.functional.mse_loss(self.values(x[rows]), y[rows])
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                self.averaged.update_parameters(self.layers)
                total += loss.item() * len(rows)
        return total / len(x)

    def arrays(self) -> dict[str, NDArray[np.float32]]:
        """The network's arrays for `player`, in units of the environment's reward."""
        found = {}
        for name, part in self.averaged.module.state_dict().items():  # 0.weight, 0.bias, 1.weight …
            layer, _, kind = name.partition(".")
            found[kind + layer] = part.cpu().numpy().copy()
        for name in (f"weight{len(self.layers) - 1}", f"bias{len(self.layers) - 1}"):
            found[name] /= F(self.hyperparameters.reward_scale)
        return found

    def network(self) -> dict[str, Any]:
        """The rest of the network's description for `player`."""
        return {"gamma": self.hyperparameters.gamma, "inputs": INPUTS}

    def state(self) -> dict[str, Any]:
        """Everything that the rest of the run depends on: games, network, optimizer, random generator."""
        return {
            "games": self.envs.clone_state(),
            "layers": self.layers.state_dict(),
            "averaged": self.averaged.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "random": self.random.get_state(),
        }

    def restore(self, step: int, state: Options) -> None:
        """Go back to the `state` after `step` steps; raises ValueError if a game in it is over."""
        self.envs.restore_state(state["games"])
        self.step, self.observations = step, self.envs.observations()
        stuck = np.diff(self.inputs.afterstates(self.observations, self.envs.rules).begins) == 0
        if stuck.any():
            raise ValueError(f"game {int(stuck.argmax())} is over; expected games that are not over")
        self.random.set_state(state["random"])
        self._take_over(state)

    def _take_over(self, state: Options) -> None:
        """Take over the network and the optimizer of a state."""
        self.layers.load_state_dict(state["layers"])
        self.averaged.load_state_dict(state["averaged"])
        self.optimizer.load_state_dict(state["optimizer"])


def check(config: Config, device: str = "auto") -> None:
    """Raise ValueError for a configuration that cannot be trained."""
    Learner(config, device_of(device)).warm_start()


def train(run: Run) -> None:
    """Train in a run folder to the end of the run, from its last checkpoint if there is one."""
    learner = Learner(run.config, device_of(run.device))
    train_in_rounds(run, learner, learner.warm_start)
