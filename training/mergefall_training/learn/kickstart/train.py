"""Kickstarting: MaskablePPO with a second loss, the cross-entropy to a teacher, that fades (S. Schmitt et al. 2018).

- The loss is PPO's (J. Schulman et al. 2017, with masks and generalised advantage estimates) + `kickstart_coef` ·
  (1 − progress / `kickstart_share`) · cross-entropy(softmax(values / τ), policy).
- The teacher, any player with `values`, values all actions of the boards of each rollout. Its loss has a gradient from
  the first step on, when rewards say little; PPO's remains, so the agent can pass its teacher.
- It begins with a fresh network, or with one from `distill`: `warm_start: RUN`.
"""

from dataclasses import dataclass

import numpy as np
import torch
from mergefall.games import take

from mergefall_training.learn import student
from mergefall_training.learn.student import Student, StudentHyperparameters


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

    @property
    def taught(self) -> float:
        return min(self.kickstart_share, 1)


class Kickstarting(Student):
    """MaskablePPO whose loss has a further term, the cross-entropy to the teacher."""

    def train(self) -> None:
        h, end = self.h, self.h.kickstart_share * self._total_timesteps
        weight = h.kickstart_coef * (1 - self.before / end) if self.before < end else 0.0
        steps, boards, masks = self.rollout()
        aims = self.teachers.targets(boards, masks, self.before) if weight > 0 else np.zeros_like(masks)
        targets = torch.as_tensor(aims, device=self.device)
        for _ in range(self.n_epochs):
            for rows in torch.randperm(len(masks)).split(h.batch_size):
                log_probs, values = self.outputs(take(boards, rows.numpy()), masks[rows])
                ratio = (log_probs.gather(1, steps.actions[rows].long())[:, 0] - steps.old_log_prob[rows]).exp()
                advantages = steps.advantages[rows]
                advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
                clipped = ratio.clamp(1 - h.clip_range, 1 + h.clip_range)
                policy_loss = -torch.min(advantages * ratio, advantages * clipped).mean()
                value_loss = torch.nn.functional.mse_loss(values, steps.returns[rows])
                entropy = -(log_probs.exp() * log_probs).sum(dim=1).mean()
                teacher_loss = -(targets[rows] * log_probs).sum(dim=1).mean()
                self.descend(
                    policy_loss + h.vf_coef * value_loss - h.ent_coef * entropy + weight * teacher_loss,
                    policy_loss=policy_loss,
                    value_loss=value_loss,
                    entropy=entropy,
                    teacher_loss=teacher_loss,
                    clip_fraction=((ratio - 1).abs() > h.clip_range).float().mean(),
                )
        self.logger.record("train/kickstart_coef", weight)


class Learner(student.Learner):
    """Kickstarting as the learner of a run."""

    kind, settings = Kickstarting, Hyperparameters
