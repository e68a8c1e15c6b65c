"""The student of `distill` and `kickstart`: MaskablePPO's network, its games and its teachers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from mergefall.games import batch_of_one, concatenate
from mergefall.typing import Array, Observation, Options
from numpy.typing import NDArray
from stable_baselines3.common.running_mean_std import RunningMeanStd

from mergefall_training.learn.devices import device_of, quicken
from mergefall_training.learn.run import Config
from mergefall_training.learn.sb3.networks import network_of, parameters_of, policy_class
from mergefall_training.learn.sb3.train import KNOWN, made_of, warm_start
from mergefall_training.learn.teachers import Teachers
from mergefall_training.learn.training import Learner, games_of

F = np.float32
EPSILON, MOST_PAID = 1e-8, 10.0  # as in Stable-Baselines3's VecNormalize


class Rollout(NamedTuple):
    """Some steps of n games that are played side by side; m = steps · n, the boards of the first step first.

    - `observations`: a batch of m.
    - `masks`: bool[m, actions], legal actions.
    - `actions`: int64[m].
    - `log_probs`: float32[m, actions], of the policy that played.
    - `values`: float32[m], the network's, of the boards.
    - `returns`: float32[m], λ-returns.
    """

    observations: Observation
    masks: NDArray[np.bool_]
    actions: NDArray[np.int64]
    log_probs: NDArray[np.float32]
    values: NDArray[np.float32]
    returns: NDArray[np.float32]


def lambda_returns(
    rewards: NDArray[np.float32],
    values: NDArray[np.float32],
    following: NDArray[np.float32],
    done: NDArray[np.bool_],
    gamma: float,
    gae_lambda: float,
) -> NDArray[np.float32]:
    """λ-returns float32[steps, n], R(t) = r(t) + γ · ((1 − λ) · following(t) + λ · R(t + 1)).

    The sum ends, as with λ = 0, where a game ends and after the last step.

    - `rewards`, `values` [steps, n]: of each step, and V of the state before it.
    - `following` [steps, n]: V of the state that each step leads to; 0 if it terminated the game.
    - `done` [steps, n]: whether a step ended a game, by a cap too.
    """
    returns, advantage = np.empty_like(rewards), np.zeros_like(rewards[0])
    for t in reversed(range(len(rewards))):
        advantage = rewards[t] + gamma * following[t] - values[t] + gamma * gae_lambda * ~done[t] * advantage
        returns[t] = values[t] + advantage
    return returns


@dataclass(frozen=True)
class StudentHyperparameters:
    """Hyper-parameters that these learners share, with rl_zoo3's names where it has them.

    - `policy`: Name of the policy, as for MaskablePPO.
    - `policy_kwargs`: Arguments of the policy, as for MaskablePPO.
    - `warm_start`: Run folder or model file with the initial parameters; its network must be the same.
    - `teacher`: The player: its name, or a mapping of it and its options. In a list, each has an equal share of the
      steps.
    - `gap_share`: τ, the temperature of the teacher's targets, in units of the median gap between its two best values.
    - `workers`: Threads that the teacher labels on.
    - `n_envs`: Games that the student plays at once.
    - `n_steps`: Steps of each game before the network learns.
    - `batch_size`: Boards per gradient step.
    - `learning_rate`: Learning rate of Adam; text such as `lin_0.005` falls linearly to 0.
    - `max_grad_norm`: Largest norm of a gradient.
    - `vf_coef`: Weight of the value loss.
    - `gamma`: Discount of returns.
    - `gae_lambda`: λ of returns: 0 looks one step ahead, 1 to the end of the `n_steps`.
    - `mixed_precision`: Whether large layers of `ranks-afterstates` are computed in bfloat16 where that is fast.
    """

    policy: str = "MlpPolicy"
    policy_kwargs: Options | None = None
    warm_start: str | None = None
    teacher: Any = None
    gap_share: float = 0.3
    workers: int = 1
    n_envs: int = 512
    n_steps: int = 4
    batch_size: int = 1024
    learning_rate: float | str = "lin_0.005"
    max_grad_norm: float = 1.0
    vf_coef: float = 0.5
    gamma: float = 0.99
    gae_lambda: float = 0.9
    mixed_precision: bool = True


class Student(Learner):
    """MaskablePPO's network, the games that it plays and its teachers.

    Its values are in units of the running standard deviation of the return (`returns`), as `normalize` of MaskablePPO.

    - `exploration_rate`: share of the moves that are drawn from the policy; the others are its most probable ones.
    - `taught`: share of the run's steps in which the teachers teach.
    """

    exploration_rate = 1.0

    def __init__(self, config: Config, h: StudentHyperparameters, device: str, taught: float = 1.0) -> None:
        self.config, self.h, self.step = config, h, 0
        self.device = device_of(device)
        torch.manual_seed(config.first_seed)
        self.games = games_of(config, h.n_envs)
        spaces = self.games.single_observation_space, self.games.single_action_space
        kind, kwargs = policy_class("maskable-ppo", network_of(vars(h)), config.env_kwargs)
        with made_of(config):
            self.policy: Any = kind(*spaces, lambda _: 0.0, **kwargs)
        self.policy.to(self.device)
        quicken(self.policy, h.mixed_precision)
        self.teachers = Teachers(config, h.teacher, h.gap_share, h.workers, taught)
        self.random = torch.Generator().manual_seed(config.first_seed)
        self.deviations, self.returns = RunningMeanStd(shape=()), np.zeros(h.n_envs)
        self.observations, _ = self.games.reset(seed=config.first_seed)
        self.masks = self.games.action_masks()

    def check(self) -> None:
        self.begin()
        self.outputs(self.observations, self.masks)
        self.teachers.check(self.observations)

    def begin(self) -> None:
        if self.h.warm_start is not None:
            unit = warm_start(self.policy, self.config, network_of(vars(self.h)), normalizes=True)
            if unit is not None:
                self.deviations.var, self.deviations.count = np.array(unit**2 - EPSILON), KNOWN

    # -- playing ------------------------------------------------------------------------------------------------------

    def outputs(self, observations: Observation, masks: NDArray[np.bool_] | None) -> tuple[torch.Tensor, torch.Tensor]:
        """(log-probabilities [n, actions], values [n]) of a batch; values need no masks."""
        log_probs, values = self.policy.log_probabilities(self.policy.obs_to_tensor(observations)[0], masks)
        return log_probs, values[:, 0]

    def play(self) -> Rollout:
        """Play `n_steps` of each game."""
        h = self.h
        boards: list[Observation] = []
        columns: list[tuple[Array, ...]] = []
        self.policy.set_training_mode(False)
        for _ in range(h.n_steps):
            with torch.no_grad():
                log_probs, values = (part.cpu() for part in self.outputs(self.observations, self.masks))
            noise = torch.empty(log_probs.shape).exponential_(generator=self.random)
            noise[torch.rand(len(noise), generator=self.random) >= self.exploration_rate] = 1.0
            actions = (log_probs.exp() / noise).argmax(dim=1).numpy()
            boards.append(self.observations)
            before = self.masks, actions, log_probs.numpy(), values.numpy()
            self.observations, rewards, terminated, truncated, infos = self.games.step(actions)
            self.masks, done = self.games.action_masks(), terminated | truncated
            final_values = np.zeros(len(done), F)  # of the last states of games that a cap ended, else 0
            capped = np.flatnonzero(truncated & ~terminated)
            if capped.size:
                finals = concatenate([batch_of_one(infos["final_obs"][i]) for i in capped])
                with torch.no_grad():
                    final_values[capped] = self.outputs(finals, None)[1].cpu().numpy()
            rewards = rewards.astype(F)
            self.returns = self.returns * h.gamma + rewards
            self.deviations.update(self.returns)
            self.returns[done] = 0
            paid = np.clip(rewards / np.float64(self.reward_unit), -MOST_PAID, MOST_PAID).astype(F)
            columns.append((*before, paid, done, final_values))
        self.step += h.n_envs * h.n_steps
        masks, actions, log_probs, values, rewards, done, final_values = (
            np.stack(column) for column in zip(*columns, strict=True)
        )
        with torch.no_grad():
            last = self.outputs(self.observations, self.masks)[1].cpu().numpy()
        following = np.where(done, final_values, np.concatenate([values[1:], last[None]]))
        returns = lambda_returns(rewards, values, following, done, h.gamma, h.gae_lambda)
        games: Any = masks, actions, log_probs, values, returns
        return Rollout(concatenate(boards), *(np.concatenate(column) for column in games))

    # -- learning -----------------------------------------------------------------------------------------------------

    def descend(self, loss: torch.Tensor) -> None:
        """Take a gradient step."""
        self.policy.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.policy.parameters(), self.h.max_grad_norm)
        self.policy.optimizer.step()

    def tensor(self, array: Array) -> torch.Tensor:
        """An array on the device."""
        return torch.as_tensor(array, device=self.device)

    # -- the run ------------------------------------------------------------------------------------------------------

    @property
    def reward_unit(self) -> float:
        """The unit of the network's values: the deviation of the return."""
        return float(np.sqrt(self.deviations.var + EPSILON))

    def arrays(self) -> dict[str, Array]:
        return parameters_of(self.policy)

    def network(self) -> dict[str, Any]:
        return {**network_of(vars(self.h)), "gamma": self.h.gamma, "reward_unit": self.reward_unit}

    def state(self) -> dict[str, Any]:
        return {
            "policy": self.policy.state_dict(),
            "optimizer": self.policy.optimizer.state_dict(),
            "games": self.games.clone_state(),
            "observations": self.observations,
            "random": self.random.get_state(),
            "returns": [self.returns, self.deviations.mean, self.deviations.var, self.deviations.count],
            "teachers": [self.teachers.gap, self.teachers.gap_of],
        }

    def restore(self, step: int, state: Options) -> None:
        self.step = step
        self.policy.load_state_dict(state["policy"])
        self.policy.optimizer.load_state_dict(state["optimizer"])
        self.games.restore_state(state["games"])
        self.observations, self.masks = state["observations"], self.games.action_masks()
        self.random.set_state(state["random"])
        self.returns, self.deviations.mean, self.deviations.var, self.deviations.count = state["returns"]
        self.teachers.gap, self.teachers.gap_of = state["teachers"]
