"""The student of `distill`, `kickstart` and `expert-iteration`: MaskablePPO's network, its games and its teachers.

Each of these learners plays some steps of `n_envs` games with the network (`Student.play`), finds what the network is
to learn on the boards that it saw, and takes gradient steps.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from mergefall.checks import boolean, integer, known, number
from mergefall.games import batch_of_one, concatenate, take
from mergefall.typing import Array, Observation, Options
from numpy.typing import NDArray

from mergefall_training.learn.clone.train import make_policy
from mergefall_training.learn.devices import device_of, use_mixed_precision
from mergefall_training.learn.run import Config
from mergefall_training.learn.sb3.networks import EachAction, RanksAfterstates, parameters_of
from mergefall_training.learn.sb3.train import Envs, network_of, warm_start
from mergefall_training.learn.training import schedule

F = np.float32


class Rollout(NamedTuple):
    """Some steps of n games that are played side by side; m = steps · n, the boards of the first step first.

    - `observations`: a batch of m.
    - `masks`: bool[m, actions], legal actions.
    - `actions`: int64[m].
    - `log_probs`: float32[m, actions], of the policy that played, or of a better one that a search found.
    - `values`: float32[m], of the boards; the network's, or the search's.
    - `returns`: float32[m], λ-returns.
    """

    observations: Observation
    masks: NDArray[np.bool_]
    actions: NDArray[np.int64]
    log_probs: NDArray[np.float32]
    values: NDArray[np.float32]
    returns: NDArray[np.float32]


class Choices(NamedTuple):
    """The next moves of n games; `log_probs` float32[n, actions] and `values` float32[n] are as in `Rollout`."""

    actions: NDArray[np.int64]
    log_probs: NDArray[np.float32]
    values: NDArray[np.float32]


def lambda_returns(
    rewards: NDArray[np.float32],
    values: NDArray[np.float32],
    following: NDArray[np.float32],
    done: NDArray[np.bool_],
    gamma: float,
    gae_lambda: float,
) -> NDArray[np.float32]:
    """The λ-returns of all states, float32[steps, n]; minus `values`, they are generalised advantage estimates.

    - `rewards`, `done` [steps, n]: of each step; `done` is whether it ended a game.
    - `values` [steps, n]: V of the state before each step.
    - `following` [steps, n]: V of the state that each step leads to; 0 if it terminated the game.

    >>> ones, never = np.ones((2, 1), F), np.zeros((2, 1), bool)
    >>> lambda_returns(ones, 0 * ones, np.array([[0], [4]], F), never, 0.5, 1.0).ravel()
    array([2.5, 3. ], dtype=float32)
    """
    found, advantage = np.empty_like(rewards), np.zeros_like(rewards[0])
    for t in reversed(range(len(rewards))):
        advantage = rewards[t] + gamma * following[t] - values[t] + gamma * gae_lambda * ~done[t] * advantage
        found[t] = values[t] + advantage
    return found


@dataclass(frozen=True)
class StudentHyperparameters:
    """Hyper-parameters that these learners share, with rl_zoo3's names where it has them."""

    policy: str = "MlpPolicy"
    """Name of the policy, as for MaskablePPO."""
    policy_kwargs: Options | None = None
    """Arguments of the policy, as for MaskablePPO."""
    warm_start: str | None = None
    """Run folder or model file with the initial parameters; its network must be the same."""
    n_envs: int = 512
    """Games that the student plays at once."""
    n_steps: int = 4
    """Steps of each game before the network learns."""
    batch_size: int = 1024
    """Boards per gradient step."""
    learning_rate: float | str = "lin_0.005"
    """Learning rate of Adam; text such as `lin_0.005` falls linearly to 0."""
    max_grad_norm: float = 1.0
    """Largest norm of a gradient."""
    vf_coef: float = 0.5
    """Weight of the value loss."""
    gamma: float = 0.99
    """Discount of returns."""
    gae_lambda: float = 0.9
    """λ of returns: 0 looks one step ahead, 1 to the end of the `n_steps`."""
    normalize: bool = True
    """Whether values are in units of the running standard deviation of the return, as `normalize` of MaskablePPO."""
    mixed_precision: bool = True
    """Whether large layers of `ranks-afterstates` are computed in bfloat16 where that is fast."""

    def __post_init__(self) -> None:
        for name in ("n_envs", "n_steps", "batch_size"):
            integer(name, getattr(self, name), 1)
        for name in ("gamma", "gae_lambda"):
            number(name, getattr(self, name), 0, 1)
        number("max_grad_norm", self.max_grad_norm, above=0)
        number("vf_coef", self.vf_coef, 0)
        boolean("normalize", self.normalize)
        boolean("mixed_precision", self.mixed_precision)
        schedule("learning_rate", self.learning_rate)
        if not isinstance(self.warm_start, str | None):
            raise ValueError(f"warm_start is {self.warm_start!r}; expected a path")

    @classmethod
    def of(cls, config: Config) -> Self:
        """The hyper-parameters of a run; raises ValueError for an unknown name."""
        known(config.algorithm, config.hyperparameters, [field.name for field in fields(cls)])
        return cls(**config.hyperparameters)


class Student:
    """MaskablePPO's network and the games that it plays; a learner of `training.train_in_rounds` but for `learn`.

    - `exploration_rate`: share of the moves that are drawn from the policy; the others are its most probable ones.
    """

    exploration_rate = 1.0

    def __init__(self, config: Config, h: StudentHyperparameters, device: str) -> None:
        self.config, self.h, self.step = config, h, 0
        self.device = device_of(device)
        self.policy: Any = make_policy(config, h.policy, h.policy_kwargs, device)  # also seeds PyTorch's generator
        if h.mixed_precision:
            use_mixed_precision(self.policy)
        self.envs = Envs(config, h.n_envs, True, h.gamma, None)
        self.random = torch.Generator().manual_seed(config.first_seed)
        self.observations = self.envs.top.reset()
        self.masks = self.envs.games.action_masks()

    def begin(self) -> None:
        """Load the parameters at `warm_start`, if it is given."""
        if self.h.warm_start is not None:
            warm_start(self.policy, self.config, self._layers(), self.envs)

    @property
    def symmetric(self) -> bool:
        """Whether the policy sees a board and its images as one, by the same layers for each canonical afterstate."""
        of_canonical = isinstance(self.policy.features_extractor, RanksAfterstates)
        return of_canonical and isinstance(self.policy.action_net, EachAction)

    # -- playing ------------------------------------------------------------------------------------------------------

    def outputs(self, observations: Observation, masks: NDArray[np.bool_] | None) -> tuple[torch.Tensor, torch.Tensor]:
        """(log-probabilities [n, actions], values [n]) of a batch; values need no masks."""
        found, values = self.policy.log_probabilities(self.policy.obs_to_tensor(observations)[0], masks)
        return found, values[:, 0]

    def choose(self) -> Choices:
        """The next moves of all games."""
        with torch.no_grad():
            log_probs, values = (part.cpu() for part in self.outputs(self.observations, self.masks))
        noise = torch.empty(log_probs.shape).exponential_(generator=self.random)
        noise[torch.rand(len(noise), generator=self.random) >= self.exploration_rate] = 1.0
        return Choices((log_probs.exp() / noise).argmax(dim=1).numpy(), log_probs.numpy(), values.numpy())

    def play(self) -> Rollout:
        """Play `n_steps` of each game."""
        h = self.h
        boards: list[Observation] = []
        columns: list[tuple[Array, ...]] = []
        self.policy.set_training_mode(False)
        for _ in range(h.n_steps):
            chosen = self.choose()
            boards.append(self.observations)
            columns.append((self.masks, *chosen, *self._step(chosen.actions)))
        self.step += h.n_envs * h.n_steps
        masks, actions, log_probs, values, rewards, done, final_values = (
            np.stack(column) for column in zip(*columns, strict=True)
        )
        with torch.no_grad():
            last = self.outputs(self.observations, self.masks)[1].cpu().numpy()
        following = np.where(done, final_values, np.concatenate([values[1:], last[None]]))
        returns = lambda_returns(rewards, values, following, done, h.gamma, h.gae_lambda)
        columns_of_games: Any = masks, actions, log_probs, values, returns
        return Rollout(concatenate(boards), *(np.concatenate(column) for column in columns_of_games))

    def _step(self, actions: NDArray[np.int64]) -> tuple[Array, Array, Array]:
        """Take a step in all games: (rewards, done, values of the last states of games that a cap ended, else 0)."""
        self.observations, rewards, done, infos = self.envs.top.step(actions)
        self.masks = self.envs.games.action_masks()
        final_values = np.zeros(len(done), F)
        capped = [i for i in np.flatnonzero(done) if infos[i]["TimeLimit.truncated"]]
        if capped:
            last = [batch_of_one(infos[i]["terminal_observation"]) for i in capped]
            with torch.no_grad():
                final_values[capped] = self.outputs(concatenate(last), None)[1].cpu().numpy()
        return rewards.astype(F), done, final_values

    # -- learning -----------------------------------------------------------------------------------------------------

    def set_learning_rate(self) -> None:
        """Set the learning rate of this step."""
        rate = schedule("learning_rate", self.h.learning_rate)
        for group in self.policy.optimizer.param_groups:
            group["lr"] = rate(1 - self.step / self.config.timesteps) if callable(rate) else rate

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
        """What the network's values are multiplied by to be in units of the reward: the deviation of the return."""
        statistics = self.envs.normalize
        assert statistics is not None
        return float(np.sqrt(statistics.ret_rms.var + statistics.epsilon))

    def value_unit(self) -> tuple[float, float]:
        """(shift, factor): shift + factor · V is in the unit that players show."""
        return 0.0, 1.0 if self.h.normalize else self.reward_unit

    def arrays(self) -> dict[str, Array]:
        """The policy's parameters."""
        found, (shift, factor) = parameters_of(self.policy), self.value_unit()
        found["value_net.weight"] = (found["value_net.weight"] * factor).astype(F)
        found["value_net.bias"] = (found["value_net.bias"] * factor + shift).astype(F)
        return found

    def network(self) -> dict[str, Any]:
        """The rest of the network's description for `player`."""
        unit = self.reward_unit if self.h.normalize else 1.0
        return {**self._layers(), "gamma": self.h.gamma, "reward_unit": unit}

    def _layers(self) -> dict[str, Any]:
        return network_of({"policy": self.h.policy, "policy_kwargs": self.h.policy_kwargs})

    def state(self) -> dict[str, Any]:
        """Everything that the rest of the run depends on."""
        return {
            "policy": self.policy.state_dict(),
            "optimizer": self.policy.optimizer.state_dict(),
            "envs": self.envs.state(),
            "observations": self.observations,
            "random": self.random.get_state(),
        }

    def restore(self, step: int, state: Options) -> None:
        """Go back to the `state` after `step` steps."""
        self.step = step
        self.policy.load_state_dict(state["policy"])
        self.policy.optimizer.load_state_dict(state["optimizer"])
        self.envs.restore(state["envs"])
        self.observations, self.masks = state["observations"], self.envs.games.action_masks()
        self.random.set_state(state["random"])


# -- learning from labelled boards ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BufferHyperparameters(StudentHyperparameters):
    """Hyper-parameters of learners that keep labelled boards."""

    buffer_size: int = 65_536
    """Labelled boards that are kept to learn from."""
    gradient_steps: int = 8
    """Gradient steps after each `n_steps`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        integer("buffer_size", self.buffer_size, 1)
        integer("gradient_steps", self.gradient_steps, 1)


class Labelled(NamedTuple):
    """Labelled boards.

    - `observations`: a batch of n.
    - `masks`: bool[n, actions], legal actions.
    - `targets`: float32[n, actions], what the policy learns.
    - `values`: float32[n], what the value head learns.
    """

    observations: Observation
    masks: NDArray[np.bool_]
    targets: NDArray[np.float32]
    values: NDArray[np.float32]


class BufferStudent(Student):
    """A student that learns from the last `buffer_size` labelled boards, from each of them several times."""

    def __init__(self, config: Config, h: BufferHyperparameters, device: str) -> None:
        super().__init__(config, h, device)
        self.gradient_steps = h.gradient_steps
        self.rounds: deque[Labelled] = deque(maxlen=-(-h.buffer_size // (h.n_envs * h.n_steps)))

    def fit(self, labelled: Labelled) -> dict[str, float]:
        """Keep some more boards and take `gradient_steps`; returns figures to log.

        The loss is the cross-entropy of the policy to its targets + `vf_coef` · (V − value)².
        """
        self.rounds.append(labelled)
        known = Labelled(*(concatenate(column) for column in zip(*self.rounds, strict=True)))
        self.set_learning_rate()
        self.policy.set_training_mode(True)
        totals = np.zeros(2)
        for _ in range(self.gradient_steps):
            rows = torch.randint(len(known.values), (self.h.batch_size,), generator=self.random).numpy()
            log_probs, values = self.outputs(take(known.observations, rows), known.masks[rows])
            policy_loss = -(self.tensor(known.targets[rows]) * log_probs).sum(dim=1).mean()
            value_loss = torch.nn.functional.mse_loss(values, self.tensor(self.value_aims(known.values[rows])))
            self.descend(policy_loss + self.h.vf_coef * value_loss)
            totals += policy_loss.item(), value_loss.item()
        return dict(zip(("policy_loss", "value_loss"), (totals / self.gradient_steps).tolist(), strict=True))

    def value_aims(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """What the value head is to say where a board's value is this: the same, unless a learner changes units."""
        return values

    def state(self) -> dict[str, Any]:
        """Everything that the rest of the run depends on."""
        return super().state() | {"rounds": [list(one) for one in self.rounds]}

    def restore(self, step: int, state: Options) -> None:
        """Go back to the `state` after `step` steps."""
        super().restore(step, state)
        self.rounds.extend(Labelled(*one) for one in state["rounds"])
