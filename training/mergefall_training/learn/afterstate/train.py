"""Temporal-difference learning of afterstate values in Tetris by PyTorch, on the native batched environments.

The learner plays many games at once, always the action of the highest r + γV(s′), with s′ the afterstate. After some
steps of all games, the network learns from them in a few passes. The target of V(s′ₜ) is

    (1 − λ) · (rₜ₊₁ + γV(s′ₜ₊₁)) + λ · (rₜ₊₁ + γ · [target of V(s′ₜ₊₁)]),

or V(s′ₜ) itself if a cap ends the game. A fatal placement is worth 0; nothing is learnt from it, and it is chosen only
if all are fatal. The random pieces make the learner explore enough. The targets of a rollout stay fixed while the
network learns them, so there is no target network and no replay buffer. The model may be a running mean of the networks
(`average`), which plays no games.

Example::

    mergefall train afterstate --env mergefall/Tetris-v0 --out runs/afterstate
    mergefall evaluate runs/afterstate --episodes 100

Source: M. Gallici et al., Simplifying Deep Temporal Difference Learning (2024), for the parallel form without replay.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from mergefall.checks import integer
from mergefall.games import game_of
from mergefall.typing import Array, Dict, Options
from mergefall_baselines.player import NotFiniteError
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from mergefall_training.learn import training
from mergefall_training.learn.afterstate.inputs import INPUTS, best, tetris_afterstates, tetris_inputs
from mergefall_training.learn.devices import device_of
from mergefall_training.learn.run import Config
from mergefall_training.learn.training import hyperparameters_of, schedule

F = np.float32


@dataclass(frozen=True)
class Hyperparameters:
    """The hyper-parameters of a run, by rl_zoo3's names where it has one.

    - `n_envs`: games played at once.
    - `restarts`: share of the games lost that go on from an earlier state (`mergefall.vector.GameVectorEnv`).
    - `n_steps`: of each game before the network learns.
    - `n_epochs`: passes over these steps.
    - `batch_size`: afterstates of a gradient step.
    - `learning_rate`: of Adam; `lin_0.001` falls to 0.
    - `gamma`: γ; 0.9 looks about 10 pieces ahead.
    - `td_lambda`: λ; 0 looks one step ahead, 1 to the rollout's end.
    - `average`: the model's running mean keeps this share of itself at each step; 0: the network itself.
    - `policy_kwargs`: units of each layer.
    - `warm_start`: a run folder; begin with the network and the optimizer of its last checkpoint.
    """

    n_envs: int = 256
    restarts: float = 0.0
    n_steps: int = 16
    n_epochs: int = 4
    batch_size: int = 1024
    learning_rate: float | str = "lin_0.001"
    gamma: float = 0.9
    td_lambda: float = 0.0
    average: float = 0.0
    policy_kwargs: Options = field(default_factory=lambda: {"net_arch": [64, 64]})
    warm_start: str = ""

    def __post_init__(self) -> None:
        units = self.policy_kwargs.get("net_arch") if isinstance(self.policy_kwargs, Mapping) else None
        if not isinstance(units, list) or set(self.policy_kwargs) != {"net_arch"}:
            raise ValueError(f"policy_kwargs is {self.policy_kwargs!r}; expected {{'net_arch': [units of each layer]}}")
        for count in units:
            integer("net_arch", count, 1)


class Learner(training.Learner):
    """The games of a run, its network and optimizer; one call of `learn` is one rollout."""

    alike = ("policy_kwargs",)

    def __init__(self, config: Config, device: str) -> None:
        self.hyperparameters = h = hyperparameters_of(Hyperparameters, config)
        kwargs = config.env_kwargs
        if game_of(config.env_id).name != "tetris" or kwargs["shaping"] is not None:
            raise ValueError(f"{config.env_id} with {kwargs}; afterstate learns Tetris, without shaping")
        self.config, self.device, self.step = config, device_of(device), 0
        self.envs: Any = gym.make_vec(
            config.env_id,
            h.n_envs,
            autoreset_mode="SameStep",
            restarts=h.restarts,
            max_episode_steps=config.max_episode_steps,
            **kwargs,
        )
        self.observations, _ = self.envs.reset(seed=config.first_seed)
        self.random = torch.Generator().manual_seed(config.first_seed)
        layers = [
            torch.nn.Linear(*size)
            for size in pairwise([tetris_inputs(self.envs.rules.cols), *h.policy_kwargs["net_arch"], 1])
        ]
        for layer in layers:
            for part in layer.parameters():  # as PyTorch does it, but from our own generator
                torch.nn.init.uniform_(part, -(layer.in_features**-0.5), layer.in_features**-0.5, self.random)
        self.layers = torch.nn.ModuleList(layers).to(self.device)
        self.averaged = AveragedModel(self.layers, multi_avg_fn=get_ema_multi_avg_fn(h.average))
        self.optimizer = torch.optim.Adam(self.layers.parameters())

    def values(self, inputs: torch.Tensor) -> torch.Tensor:
        """V of afterstates, float32[m], from their inputs float32[m, k]."""
        *hidden, last = self.layers
        for layer in hidden:
            inputs = torch.relu(layer(inputs))
        return last(inputs)[:, 0]

    def decide(self) -> tuple[Array, ...]:
        """The action of the highest r + γV in each of n games.

        Returns actions int64[n]; rewards float32[n]; V of the afterstates float32[n], 0 if fatal; whether the action is
        fatal, bool[n]; and the inputs of the afterstates, float32[n, k].
        """
        table = tetris_afterstates(self.observations, self.envs.rules)
        with torch.no_grad():
            values = self.values(torch.from_numpy(table.inputs).to(self.device)).cpu().numpy()
        if not np.isfinite(values).all():
            raise NotFiniteError("the network's values are no longer finite; expected a smaller learning_rate")
        rows = best(table, table.rewards + F(self.hyperparameters.gamma) * values)
        over = table.over[rows]
        return table.actions[rows], table.rewards[rows], np.where(over, F(0), values[rows]), over, table.inputs[rows]

    def learn(self) -> dict[str, float]:
        h = self.hyperparameters
        taken, capped = [self.decide()], []
        for _ in range(h.n_steps):
            self.observations, _, terminated, truncated, _ = self.envs.step(taken[-1][0])
            capped.append(truncated & ~terminated)
            taken.append(self.decide())
        _, rewards, values, over, inputs = (np.stack(column) for column in zip(*taken, strict=True))
        aims, later = np.empty_like(values[:-1]), values[-1]
        for t in reversed(range(h.n_steps)):
            ahead = np.where(over[t + 1], 0, h.td_lambda * later + (1 - h.td_lambda) * values[t + 1])
            aims[t] = later = np.where(capped[t], values[t], rewards[t + 1] + h.gamma * ahead)
        alive = ~over[:-1]
        loss = self._fit(inputs[:-1][alive], aims[alive])
        self.step += h.n_envs * h.n_steps
        return {"loss": loss, "value": float(values.mean())}

    def _fit(self, inputs: Array, aims: Array) -> float:
        """Learn targets [m] of inputs [m, k] in `n_epochs` passes; returns the mean squared error of the last pass."""
        h = self.hyperparameters
        for group in self.optimizer.param_groups:
            group["lr"] = schedule("learning_rate", h.learning_rate)(1 - self.step / self.config.timesteps)
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

    def arrays(self) -> dict[str, Array]:
        parts = self.averaged.module.state_dict().items()  # 0.weight, 0.bias, 1.weight …
        return {"".join(reversed(name.split("."))): part.cpu().numpy().copy() for name, part in parts}

    def network(self) -> Dict:
        return {"gamma": self.hyperparameters.gamma, "inputs": INPUTS}

    def state(self) -> Dict:
        return {
            "games": self.envs.clone_state(),
            "past": list(self.envs.unwrapped.past),
            "layers": self.layers.state_dict(),
            "averaged": self.averaged.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "random": self.random.get_state(),
        }

    def restore(self, step: int, state: Options) -> None:
        self.envs.restore_state(state["games"], state.get("past"))  # version 0.1.0 kept none
        self.step, self.observations = step, self.envs.observations()
        self.random.set_state(state["random"])
        self.take_over(state)

    def take_over(self, state: Options) -> None:
        """Take over the network and the optimizer of a state."""
        self.layers.load_state_dict(state["layers"])
        self.averaged.load_state_dict(state["averaged"])
        self.optimizer.load_state_dict(state["optimizer"])
