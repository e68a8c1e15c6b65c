"""Policy distillation: MaskablePPO's network learns how a teacher values actions, on boards that it reaches itself.

- The student plays `n_envs` games by its most probable moves; a share `exploration_rate` of them is drawn from its
  policy (DAgger: S. Ross, G. Gordon & D. Bagnell, AISTATS 2011). So it learns what to do after its own mistakes.
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

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from mergefall.checks import choice, number
from mergefall.typing import Options
from numpy.typing import NDArray

from mergefall_training.learn.run import Config, Run
from mergefall_training.learn.student import BufferHyperparameters, BufferStudent, Labelled
from mergefall_training.learn.teachers import TaughtHyperparameters, Teachers
from mergefall_training.learn.training import train_in_rounds

SCALE_MEMORY = 0.99  # share of their old values that the scales of the teacher's values keep at each round


@dataclass(frozen=True)
class Hyperparameters(TaughtHyperparameters, BufferHyperparameters):
    """Hyper-parameters of distillation."""

    exploration_rate: float = 0.02
    """Share of the moves that are drawn from the policy; the others are its most probable ones."""
    value_target: str = "returns"
    """What the value head learns: `returns` of the student, or `teacher`: the teacher's value of its best action."""

    def __post_init__(self) -> None:
        super().__post_init__()
        number("exploration_rate", self.exploration_rate, 0, 1)
        choice("value_target", self.value_target, ("returns", "teacher"))


class Learner(BufferStudent):
    """The student and its teachers; one call of `learn` is one round."""

    h: Hyperparameters

    def __init__(self, config: Config, device: str) -> None:
        h = Hyperparameters.of(config)
        super().__init__(config, h, device)
        self.exploration_rate = h.exploration_rate
        self.teachers = Teachers(config, h)
        self.value_scale = [0.0, 1.0]  # mean and standard deviation of the teacher's values

    def learn(self) -> dict[str, float]:
        """Play `n_steps` of each game, have the boards labelled, and learn; returns figures to log."""
        at = self.step
        played = self.play()
        targets, values = self.teachers.targets(played.observations, played.masks, at)
        aims = played.returns if self.h.value_target == "returns" else self._teacher_values(values, at)
        figures = self.fit(Labelled(played.observations, played.masks, targets, aims))
        return figures | {"temperature": self.teachers.temperature}

    def _teacher_values(self, values: NDArray[np.float64], at: int) -> NDArray[np.float32]:
        """The value of the best action, as the teacher of the step `at` says it.

        The value head learns it in units of its running mean and deviation, which start anew with each teacher. As
        these move, the head is rescaled, so that what it says of a board stays the same (Pop-Art: H. van Hasselt et
        al. 2016). What the teacher before said is forgotten: its values have another unit.
        """
        best = values.max(axis=1)
        alive = np.isfinite(best)
        if alive.any():
            before, number_at = self.value_scale, self.teachers.number_at
            known = self.rounds and number_at(at) == number_at(at - self.h.n_envs * self.h.n_steps)
            kept = SCALE_MEMORY if known else 0.0
            here = float(best[alive].mean()), float(best[alive].std()) or 1.0
            mean, deviation = (kept * old + (1 - kept) * new for old, new in zip(before, here, strict=True))
            if not known:
                self.rounds.clear()
            else:
                head = self.policy.value_net
                with torch.no_grad():
                    head.weight.mul_(before[1] / deviation)
                    head.bias.mul_(before[1]).add_(before[0] - mean).div_(deviation)
            self.value_scale = [mean, deviation]
        return np.where(alive, best, best[alive].min(initial=self.value_scale[0])).astype(np.float32)

    def value_aims(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """What the value head is to say where a board's value is this."""
        if self.h.value_target == "returns":
            return values
        mean, deviation = self.value_scale
        return (values - np.float32(mean)) / np.float32(deviation)

    def value_unit(self) -> tuple[float, float]:
        """(shift, factor): shift + factor · V is in the unit that players show."""
        return super().value_unit() if self.h.value_target == "returns" else (self.value_scale[0], self.value_scale[1])

    def network(self) -> dict[str, Any]:
        """The rest of the network's description for `player`; values of a teacher are no returns."""
        if self.h.value_target == "returns":
            return super().network()
        return self._layers() | {"rewards": None}

    def state(self) -> dict[str, Any]:
        """Everything that the rest of the run depends on."""
        return super().state() | {"teachers": self.teachers.state(), "value_scale": self.value_scale}

    def restore(self, step: int, state: Options) -> None:
        """Go back to the `state` after `step` steps."""
        super().restore(step, state)
        self.teachers.restore(state["teachers"])
        self.value_scale = state["value_scale"]


def check(config: Config, device: str = "auto") -> None:
    """Raise ValueError for a configuration that cannot be trained on this device; the teacher values one board."""
    learner = Learner(config, device)
    learner.teachers.check(learner)


def train(run: Run) -> None:
    """Train in a run folder to the end, from its last checkpoint if there is one."""
    learner = Learner(run.config, run.device)
    with learner.teachers:
        train_in_rounds(run, learner, learner.begin)
