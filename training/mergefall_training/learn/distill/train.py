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

from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from mergefall.games import concatenate, take
from mergefall.typing import Dict, Options

from mergefall_training.learn import student
from mergefall_training.learn.run import Config
from mergefall_training.learn.student import Student, StudentHyperparameters


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


class Distillation(Student):
    """MaskablePPO with another loss, on the boards of the last `rounds`: their masks, targets, and returns."""

    rounds: deque[Any]

    def train(self) -> None:
        steps, boards, masks = self.rollout()
        targets = self.teachers.targets(boards, masks, self.before)
        self.rounds.append([boards, masks, targets, steps.returns.cpu().numpy()])
        boards, masks, targets, returns = (concatenate(column) for column in zip(*self.rounds, strict=True))
        for _ in range(self.h.gradient_steps):
            rows = np.random.randint(len(returns), size=self.batch_size)  # noqa: NPY002
            log_probs, values = self.outputs(take(boards, rows), masks[rows])
            aims, of_boards = (torch.as_tensor(part[rows], device=self.device) for part in (targets, returns))
            policy_loss = -(aims * log_probs).sum(dim=1).mean()
            value_loss = torch.nn.functional.mse_loss(values, of_boards)
            loss = policy_loss + self.vf_coef * value_loss
            self.descend(loss, policy_loss=policy_loss, value_loss=value_loss)
        self.logger.record("train/temperature", self.teachers.temperature)


class Learner(student.Learner):
    """Distillation as the learner of a run."""

    kind, settings = Distillation, Hyperparameters

    def __init__(self, config: Config, device: str = "auto") -> None:
        super().__init__(config, device)
        h = self.model.h
        self.model.policy.exploration_rate = h.exploration_rate
        self.model.rounds = deque(maxlen=-(-h.buffer_size // (h.n_envs * h.n_steps)))

    def state(self) -> Dict:
        return super().state() | {"rounds": list(self.model.rounds)}

    def restore(self, step: int, state: Options) -> None:
        super().restore(step, state)
        self.model.rounds.extend(state["rounds"])
