"""Kickstarting: MaskablePPO with a second loss, the cross-entropy to a teacher, that fades (S. Schmitt et al. 2018).

- The loss is PPO's (J. Schulman et al. 2017, with masks and generalised advantage estimates) + `kickstart_coef` ·
  (1 − progress / `kickstart_share`) · cross-entropy(softmax(values / τ), policy).
- The teacher, any player with `values`, values all actions of the boards of each rollout. Its loss has a gradient from
  the first step on, when rewards say little; PPO's remains, so the agent can pass its teacher.
- It begins with a fresh network, or with one from `distill`: `warm_start: RUN`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from mergefall.checks import integer
from mergefall.games import take
from numpy.typing import NDArray

from mergefall_training.learn.run import Config
from mergefall_training.learn.student import Rollout, Student, StudentHyperparameters
from mergefall_training.learn.training import hyperparameters_of, module_of, set_learning_rate


@dataclass(frozen=True)
class Hyperparameters(StudentHyperparameters):
    """Hyper-parameters of kickstarting.

    - `n_epochs`: Passes over the boards of a rollout.
    - `clip_range`: Clipping of PPO's probability ratio.
    - `ent_coef`: Weight of the policy's entropy.
    - `kickstart_coef`: Weight of the cross-entropy to the teacher at the start.
    - `kickstart_share`: Share of the steps after which that weight is 0; it falls linearly. Above 1, the run ends
      before it is 0.
    """

    n_envs: int = 256
    n_steps: int = 8
    batch_size: int = 256
    learning_rate: float | str = "lin_0.002"
    vf_coef: float = 2.0
    n_epochs: int = 2
    clip_range: float = 0.2
    ent_coef: float = 0.0
    kickstart_coef: float = 1.0
    kickstart_share: float = 0.5

    def __post_init__(self) -> None:
        integer("batch_size", self.batch_size, 2)  # advantages are divided by their deviation in the batch
        if self.n_envs * self.n_steps % self.batch_size:
            size = self.n_envs * self.n_steps
            raise ValueError(f"n_envs · n_steps is {size}; expected a multiple of batch_size, {self.batch_size}")


class Learner(Student):
    """The student and its teachers; one call of `learn` is one rollout."""

    h: Hyperparameters

    def __init__(self, config: Config, device: str) -> None:
        h = hyperparameters_of(Hyperparameters, config)
        super().__init__(config, h, device, taught=min(h.kickstart_share, 1))

    def learn(self) -> dict[str, float]:
        at, end = self.step, self.h.kickstart_share * self.config.timesteps
        weight = self.h.kickstart_coef * (1 - at / end) if at < end else 0.0
        played, targets = self.play(), None
        if weight > 0:
            targets = self.teachers.targets(played.observations, played.masks, at)
        set_learning_rate(self.policy.optimizer, self.h.learning_rate, self.config, self.step)
        self.policy.set_training_mode(True)
        figures: list[NDArray[np.float64]] = []
        for _ in range(self.h.n_epochs):
            for rows in torch.randperm(len(played.values), generator=self.random).split(self.h.batch_size):
                figures.append(self._fit(played, targets, weight, rows.numpy()))
        names = ("policy_loss", "value_loss", "entropy", "clip_fraction", "teacher_loss")
        return dict(zip(names, np.mean(figures, axis=0).tolist(), strict=True)) | {"kickstart_coef": weight}

    def _fit(
        self, played: Rollout, targets: NDArray[np.float32] | None, weight: float, rows: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Take a gradient step on some boards of a rollout."""
        h = self.h
        log_probs, values = self.outputs(take(played.observations, rows), played.masks[rows])
        actions = self.tensor(played.actions[rows])[:, None]
        ratio = (log_probs - self.tensor(played.log_probs[rows])).gather(1, actions)[:, 0].exp()
        advantages = self.tensor(played.returns[rows] - played.values[rows])
        advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
        clipped = ratio.clamp(1 - h.clip_range, 1 + h.clip_range)
        policy_loss = -torch.min(advantages * ratio, advantages * clipped).mean()
        value_loss = torch.nn.functional.mse_loss(values, self.tensor(played.returns[rows]))
        entropy = -(log_probs.exp() * log_probs).sum(dim=1).mean()
        loss = policy_loss + h.vf_coef * value_loss - h.ent_coef * entropy
        teacher_loss = torch.zeros(())
        if targets is not None:
            teacher_loss = -(self.tensor(targets[rows]) * log_probs).sum(dim=1).mean()
            loss = loss + weight * teacher_loss
        self.descend(loss)
        clip_fraction = ((ratio - 1).abs() > h.clip_range).float().mean()
        return np.array([figure.item() for figure in (policy_loss, value_loss, entropy, clip_fraction, teacher_loss)])


check, train = module_of(Learner)
