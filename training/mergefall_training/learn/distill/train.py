"""Policy distillation: MaskablePPO's network learns how a teacher values actions, on boards that it reaches itself.

- The student plays `n_envs` games and draws each action from its own policy (DAgger: S. Ross, G. Gordon & D. Bagnell,
  AISTATS 2011). So it learns what to do after its own mistakes.
- The teacher, any player with `values`, values all actions of each of these boards. A step is one such board.
- The loss is cross-entropy(softmax(values / τ), policy) + `vf_coef` · (V − target)². Soft targets say which other moves
  are nearly as good (policy distillation: A. Rusu et al., ICLR 2016).
- The value head learns the student's discounted returns (λ-returns) or the teacher's value of the best action.
- The last `buffer_size` labelled boards are kept, and learned from several times. A slow teacher labels in `workers`
  processes.

MaskablePPO can continue from the network: `warm_start: RUN`.

    >>> import tempfile
    >>> from mergefall_training.learn.presets import configure
    >>> from mergefall_training.learn.run import open_run
    >>> changed = {"teacher": "2048/greedy", "n_envs": 8, "n_steps": 4, "batch_size": 32}
    >>> config = configure("distill", changed=changed, timesteps=64, interval=64, episodes=2)
    >>> with open_run(tempfile.mkdtemp(), config, progress=False) as run:
    ...     train(run)
    >>> [point.step for point in run.points]
    [0, 64]
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
import torch
from mergefall.checks import choice, integer, known, number
from mergefall.games import concatenate, take
from mergefall.typing import Array, Observation, Options
from numpy.typing import NDArray

from mergefall_training.learn.clone.train import make_policy
from mergefall_training.learn.distill.teachers import Teachers, gaps, soft_targets, values_of
from mergefall_training.learn.run import Config, Run
from mergefall_training.learn.sb3.networks import parameters_of
from mergefall_training.learn.sb3.train import Envs
from mergefall_training.learn.training import device_of, has_fast_bfloat16, schedule, train_in_rounds

F = np.float32
ILLEGAL = -1e8  # the logit of an illegal action
GAP_MEMORY = 0.99  # share of its old value that the running median gap keeps at each round


@dataclass(frozen=True)
class Hyperparameters:
    """Hyper-parameters of distillation, with rl_zoo3's names where it has them."""

    teacher: Any = None
    """The player: its name, or a mapping of `name` and options. In a list, each has an equal share of the steps."""
    policy: str = "MlpPolicy"
    """Name of the policy, as for MaskablePPO."""
    policy_kwargs: Options | None = None
    """Arguments of the policy, as for MaskablePPO."""
    temperature: float | None = None
    """τ, in units of the teacher's values; default: `gap_share` of the median gap between its best two."""
    gap_share: float = 0.3
    """τ in units of the median gap between the teacher's two best values."""
    exploration_rate: float = 0.02
    """Share of the moves that are drawn from the policy; the others are its most probable ones."""
    n_envs: int = 512
    """Games that the student plays at once."""
    n_steps: int = 4
    """Steps of each game before the network learns."""
    buffer_size: int = 65_536
    """Labelled boards that are kept to learn from."""
    gradient_steps: int = 8
    """Gradient steps after each `n_steps`."""
    batch_size: int = 1024
    """Boards per gradient step."""
    learning_rate: float | str = "lin_0.005"
    """Learning rate of Adam; text such as `lin_0.005` falls linearly to 0."""
    max_grad_norm: float = 1.0
    """Largest norm of a gradient."""
    value_target: str = "returns"
    """What the value head learns: `returns` of the student, or `teacher`: the teacher's value of its best action."""
    vf_coef: float = 0.5
    """Weight of the value loss."""
    gamma: float = 0.99
    """Discount of returns; use that of the training to follow."""
    gae_lambda: float = 0.9
    """λ of returns: 0 looks one step ahead, 1 to the end of the `n_steps`."""
    normalize: bool = True
    """Whether values are in units of the running standard deviation of the return, as `normalize` of MaskablePPO."""
    workers: int = 1
    """Processes that the teacher labels in; 1: this one."""

    def __post_init__(self) -> None:
        for name in ("n_envs", "n_steps", "buffer_size", "gradient_steps", "batch_size", "workers"):
            integer(name, getattr(self, name), 1)
        for name in ("gamma", "gae_lambda", "exploration_rate"):
            number(name, getattr(self, name), 0, 1)
        for name in ("gap_share", "max_grad_norm"):
            number(name, getattr(self, name), above=0)
        number("vf_coef", self.vf_coef, 0)
        if self.temperature is not None:
            number("temperature", self.temperature, above=0)
        choice("value_target", self.value_target, ("returns", "teacher"))
        if not isinstance(self.normalize, bool):
            raise ValueError(f"normalize is {self.normalize!r}; expected true or false")
        schedule("learning_rate", self.learning_rate)

    @classmethod
    def read(cls, given: Options) -> Hyperparameters:
        """The hyper-parameters of a run's configuration; raises ValueError for an unknown name."""
        known("distill", given, [field.name for field in fields(cls)])
        return cls(**given)


class Round(NamedTuple):
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


def lambda_returns(
    rewards: NDArray[np.float32],
    values: NDArray[np.float32],
    terminated: NDArray[np.bool_],
    truncated: NDArray[np.bool_],
    gamma: float,
    gae_lambda: float,
) -> NDArray[np.float32]:
    """The λ-returns of the first `steps` states, float32[steps, n].

    - `rewards`, `terminated`, `truncated` [steps, n]: of each step.
    - `values` [steps + 1, n]: V of the states; that of a state before a truncation stands for what would have followed.

    >>> rewards, never = np.ones((2, 1), F), np.zeros((2, 1), bool)
    >>> lambda_returns(rewards, np.array([[0], [0], [4]], F), never, never, 0.5, 1.0).ravel()
    array([2.5, 3. ], dtype=float32)
    """
    found = np.empty_like(rewards)
    following = values[-1]  # the return of the next state
    for t in reversed(range(len(rewards))):
        ahead = gae_lambda * following + (1 - gae_lambda) * values[t + 1]
        found[t] = following = np.where(truncated[t], values[t], rewards[t] + gamma * np.where(terminated[t], 0, ahead))
    return found


class Learner:
    """The student, its games and the labelled boards; one call of `learn` is one round."""

    def __init__(self, config: Config, device: str) -> None:
        self.config, self.step = config, 0
        self.h = h = Hyperparameters.read(config.hyperparameters)
        self.device = device_of(device)
        self.policy: Any = make_policy(config, h.policy, h.policy_kwargs, device)  # also seeds PyTorch's generator
        if hasattr(self.policy.features_extractor, "mixed_precision"):
            self.policy.features_extractor.mixed_precision = has_fast_bfloat16(self.device)
        self.envs = Envs(config, h.n_envs, True, h.gamma, None)
        self.random = torch.Generator().manual_seed(config.first_seed)
        self.rounds: deque[Round] = deque(maxlen=-(-h.buffer_size // (h.n_envs * h.n_steps)))
        self.teachers = Teachers(config, h.teacher, h.workers)
        self.gap, self.gap_of = 0.0, -1  # the running median gap, and of which teacher
        self.value_scale = [0.0, 1.0]  # mean and standard deviation of the teacher's values
        self.observations = self.envs.top.reset()
        self.masks = self.envs.games.action_masks()

    def outputs(self, observations: Any, masks: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """(logits, values) of a batch."""
        latent_pi, latent_vf = self.policy.mlp_extractor(self.policy.extract_features(observations))
        logits = self.policy.action_net(latent_pi).masked_fill(~masks, ILLEGAL)
        return logits, self.policy.value_net(latent_vf)[:, 0]

    def tensors(self, observations: Observation, masks: NDArray[np.bool_]) -> tuple[Any, torch.Tensor]:
        """Observations and masks on the device."""
        return self.policy.obs_to_tensor(observations)[0], torch.as_tensor(masks, device=self.device)

    def learn(self) -> dict[str, float]:
        """Play `n_steps` of each game, have the boards labelled, and learn; returns figures to log."""
        self.rounds.append(self._played())
        self.step += self.h.n_envs * self.h.n_steps
        return self._fit()

    def _played(self) -> Round:
        h, seen, masks, values, played = self.h, [], [], [], []
        self.policy.set_training_mode(False)
        for _ in range(h.n_steps + 1):
            with torch.no_grad():
                logits, worth = self.outputs(*self.tensors(self.observations, self.masks))
            values.append(worth.cpu().numpy())
            if len(played) == h.n_steps:
                break
            noise = torch.empty(logits.shape).exponential_(generator=self.random)
            noise[torch.rand(len(noise), generator=self.random) >= h.exploration_rate] = 1.0
            actions = (logits.softmax(dim=1).cpu() / noise).argmax(dim=1).numpy()
            seen.append(self.observations)
            masks.append(self.masks)
            self.observations, rewards, ended, infos = self.envs.top.step(actions)
            truncated = np.array([info.get("TimeLimit.truncated", False) for info in infos])
            played.append((rewards, ended & ~truncated, truncated))
            self.masks = self.envs.games.action_masks()
        rewards, terminated, truncated = (np.stack(column) for column in zip(*played, strict=True))
        labels = self.teachers.values(concatenate(seen), h.n_envs * h.n_steps, self.step)
        legal = np.concatenate(masks)
        if h.value_target == "teacher":
            aims = self._teacher_values(labels)
        else:
            aims = lambda_returns(rewards, np.stack(values), terminated, truncated, h.gamma, h.gae_lambda).ravel()
        return Round(concatenate(seen), legal, soft_targets(labels, legal, self._temperature(labels)), aims)

    def _temperature(self, labels: NDArray[np.float64]) -> float:
        """τ: given, or from a running mean of the medians of the teacher's gaps."""
        if self.h.temperature is not None:
            return self.h.temperature
        found, teacher = gaps(labels), self.teachers.number_at(self.step)
        if found.size:
            kept = GAP_MEMORY if teacher == self.gap_of and self.gap else 0.0
            self.gap, self.gap_of = kept * self.gap + (1 - kept) * float(np.median(found)), teacher
        return max(self.h.gap_share * self.gap, 1e-9)

    def _teacher_values(self, labels: NDArray[np.float64]) -> NDArray[np.float32]:
        """The value of the teacher's best action, in units of the first round's standard deviation."""
        best = labels.max(axis=1)
        alive = np.isfinite(best)
        if not self.rounds:
            self.value_scale = [float(best[alive].mean()), float(best[alive].std()) or 1.0]
        mean, deviation = self.value_scale
        lowest = best[alive].min(initial=mean)
        return ((np.where(alive, best, lowest) - mean) / deviation).astype(F)

    def _fit(self) -> dict[str, float]:
        h, rate = self.h, schedule("learning_rate", self.h.learning_rate)
        for group in self.policy.optimizer.param_groups:
            group["lr"] = rate(1 - self.step / self.config.timesteps) if callable(rate) else rate
        known = Round(*(concatenate(column) for column in zip(*self.rounds, strict=True)))
        self.policy.set_training_mode(True)
        totals = np.zeros(2)
        for _ in range(h.gradient_steps):
            rows = torch.randint(len(known.values), (h.batch_size,), generator=self.random).numpy()
            logits, worth = self.outputs(*self.tensors(take(known.observations, rows), known.masks[rows]))
            targets = torch.as_tensor(known.targets[rows], device=self.device)
            aims = torch.as_tensor(known.values[rows], device=self.device)
            policy_loss = -(targets * logits.log_softmax(dim=1)).sum(dim=1).mean()
            value_loss = torch.nn.functional.mse_loss(worth, aims)
            self.policy.optimizer.zero_grad()
            (policy_loss + h.vf_coef * value_loss).backward()
            torch.nn.utils.clip_grad_norm_(self.policy.parameters(), h.max_grad_norm)
            self.policy.optimizer.step()
            totals += policy_loss.item(), value_loss.item()
        policy_loss, value_loss = totals / h.gradient_steps
        return {
            "policy_loss": policy_loss,
            "value_loss": value_loss,
            "temperature": h.temperature or self.gap * h.gap_share,
        }

    def arrays(self) -> dict[str, Array]:
        """The policy's parameters; without `normalize`, the value head in units of the reward."""
        found = parameters_of(self.policy)
        if self.h.value_target == "teacher" or not self.h.normalize:
            shift, factor = self.value_scale
            if self.h.value_target == "returns":
                assert self.envs.normalize is not None
                shift, factor = 0.0, float(np.sqrt(self.envs.normalize.ret_rms.var + self.envs.normalize.epsilon))
            found["value_net.weight"] = (found["value_net.weight"] * factor).astype(F)
            found["value_net.bias"] = (found["value_net.bias"] * factor + shift).astype(F)
        return found

    def network(self) -> dict[str, Any]:
        """The rest of the network's description for `player`."""
        return {"policy": self.h.policy, "policy_kwargs": dict(self.h.policy_kwargs or {})}

    def state(self) -> dict[str, Any]:
        """Everything that the rest of the run depends on."""
        return {
            "policy": self.policy.state_dict(),
            "optimizer": self.policy.optimizer.state_dict(),
            "envs": self.envs.state(),
            "observations": self.observations,
            "random": self.random.get_state(),
            "rounds": [list(one) for one in self.rounds],
            "scales": [self.gap, self.gap_of, *self.value_scale],
        }

    def restore(self, step: int, state: Options) -> None:
        """Go back to the `state` after `step` steps."""
        self.step = step
        self.policy.load_state_dict(state["policy"])
        self.policy.optimizer.load_state_dict(state["optimizer"])
        self.envs.restore(state["envs"])
        self.observations, self.masks = state["observations"], self.envs.games.action_masks()
        self.random.set_state(state["random"])
        self.rounds.extend(Round(*one) for one in state["rounds"])
        self.gap, self.gap_of, *self.value_scale = state["scales"]


def check(config: Config, device: str = "auto") -> None:
    """Raise ValueError for a configuration that cannot be trained on this device; the teacher values one board."""
    learner = Learner(config, device)
    learner.outputs(*learner.tensors(learner.observations, learner.masks))
    for job in learner.teachers.jobs:
        job.trajectory(config.first_seed, 1)  # raises if the teacher does not play this game
        values_of(job.player, take(learner.observations, slice(1)))


def train(run: Run) -> None:
    """Train in a run folder to the end, from its last checkpoint if there is one."""
    learner = Learner(run.config, run.device)
    with learner.teachers:
        train_in_rounds(run, learner)
