"""Policy distillation: MaskablePPO's network learns how a teacher values actions, on boards that it reaches itself.

- The student plays `n_envs` games by its most probable moves; a share `exploration_rate` of them is drawn from its
  policy (DAgger: S. Ross, G. Gordon & D. Bagnell, AISTATS 2011). So it learns what to do after its own mistakes.
- The teacher, any player with `values`, values all actions of each of these boards. A step is one such board.
- The loss is cross-entropy(softmax(values / τ), policy) + `vf_coef` · (V − return)². Soft targets say which other moves
  are nearly as good (policy distillation: A. Rusu et al., ICLR 2016).
- The last `buffer_size` labelled boards are kept, and learned from several times. A slow teacher labels on `workers`
  threads.

MaskablePPO can continue from the network: `warm_start: RUN`.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from mergefall.games import concatenate, take
from mergefall.typing import Options

from mergefall_training.learn.run import Config
from mergefall_training.learn.student import Student, StudentHyperparameters
from mergefall_training.learn.training import hyperparameters_of, module_of, set_learning_rate


@dataclass(frozen=True)
class Hyperparameters(StudentHyperparameters):
    """Hyper-parameters of distillation.

    - `exploration_rate`: Share of the moves that are drawn from the policy; the others are its most probable ones.
    - `buffer_size`: Labelled boards that are kept to learn from.
    - `gradient_steps`: Gradient steps after each `n_steps`.
    """

    exploration_rate: float = 0.02
    buffer_size: int = 65_536
    gradient_steps: int = 8


class Learner(Student):
    """The student and the last boards that its teachers labelled; one call of `learn` is one round."""

    h: Hyperparameters

    def __init__(self, config: Config, device: str) -> None:
        h = hyperparameters_of(Hyperparameters, config)
        super().__init__(config, h, device)
        self.exploration_rate = h.exploration_rate
        # Of each round: observations, legal actions, targets of the policy, returns.
        self.rounds: deque[tuple[Any, ...]] = deque(maxlen=-(-h.buffer_size // (h.n_envs * h.n_steps)))

    def learn(self) -> dict[str, float]:
        at = self.step
        played = self.play()
        labels = self.teachers.targets(played.observations, played.masks, at)
        self.rounds.append((played.observations, played.masks, labels, played.returns))
        boards, masks, targets, returns = (concatenate(column) for column in zip(*self.rounds, strict=True))
        set_learning_rate(self.policy.optimizer, self.h.learning_rate, self.config, self.step)
        self.policy.set_training_mode(True)
        totals = np.zeros(2)
        for _ in range(self.h.gradient_steps):
            rows = torch.randint(len(returns), (self.h.batch_size,), generator=self.random).numpy()
            log_probs, values = self.outputs(take(boards, rows), masks[rows])
            policy_loss = -(self.tensor(targets[rows]) * log_probs).sum(dim=1).mean()
            value_loss = torch.nn.functional.mse_loss(values, self.tensor(returns[rows]))
            self.descend(policy_loss + self.h.vf_coef * value_loss)
            totals += policy_loss.item(), value_loss.item()
        losses = dict(zip(("policy_loss", "value_loss"), (totals / self.h.gradient_steps).tolist(), strict=True))
        return losses | {"temperature": self.teachers.temperature}

    def state(self) -> dict[str, Any]:
        return super().state() | {"rounds": [list(one) for one in self.rounds]}

    def restore(self, step: int, state: Options) -> None:
        super().restore(step, state)
        self.rounds.extend(tuple(one) for one in state["rounds"])


check, train = module_of(Learner)
