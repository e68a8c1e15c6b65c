"""MaskablePPO that asks a teacher about the boards of each rollout: the base of `distill` and `kickstart`."""

from dataclasses import dataclass
from typing import Any

import torch
from mergefall.games import map_parts
from mergefall.typing import Dict, Options

from mergefall_training.learn.run import Config
from mergefall_training.learn.sb3 import train as sb3
from mergefall_training.learn.sb3.train import NativeMaskablePPO
from mergefall_training.learn.teachers import Teachers
from mergefall_training.learn.training import hyperparameters_of


@dataclass(frozen=True)
class StudentHyperparameters:
    """Hyper-parameters that these learners share, with rl_zoo3's names where it has them.

    - `policy`: Name of the policy, as for MaskablePPO.
    - `policy_kwargs`: Arguments of the policy, as for MaskablePPO.
    - `warm_start`: Run folder or model file with the initial parameters; its network must be the same.
    - `teacher`: The player: its name, or a mapping of it and its options. In a list, each has an equal share of the
      steps.
    - `gap_share`: τ, the temperature of the teacher's targets, is this times the median difference between its best
      and its second-best value.
    - `workers`: Threads that the teacher labels on.
    - `n_envs`: Games that the student plays at once.
    - `restarts`: Share of the games lost that go on from an earlier state, as for MaskablePPO.
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
    restarts: float = 0.0
    n_steps: int = 4
    batch_size: int = 1024
    learning_rate: float | str = "lin_0.005"
    max_grad_norm: float = 1.0
    vf_coef: float = 0.5
    gamma: float = 0.99
    gae_lambda: float = 0.9
    mixed_precision: bool = True

    @property
    def taught(self) -> float:
        """The share of the run's steps in which teachers teach."""
        return 1.0


class Student(NativeMaskablePPO):
    """MaskablePPO for learners with a teacher, which override `train`.

    - `h`: hyper-parameters.
    - `teachers`: the teachers.
    """

    h: Any
    policy: Any
    teachers: Teachers

    @property
    def before(self) -> int:
        """The steps before the last rollout."""
        return self.num_timesteps - self.n_envs * self.n_steps

    def rollout(self) -> tuple[Any, Any, Any]:
        """The last rollout, to learn from it: (steps, observations, legal actions bool[m, actions]).

        Observations and legal actions are as players take them.
        """
        self.policy.set_training_mode(True)
        self._update_learning_rate(self.policy.optimizer)
        steps: Any = next(self.rollout_buffer.get())
        spaces: Any = getattr(self.observation_space, "spaces", self.observation_space)
        shaped = map_parts(lambda part, space: part.cpu().numpy().reshape(-1, *space.shape), steps.observations, spaces)
        return steps, shaped, steps.action_masks.cpu().numpy() > 0

    def outputs(self, observations: Any, masks: Any) -> tuple[torch.Tensor, torch.Tensor]:
        """(log-probabilities [n, actions], values [n]) of a batch as `observed` returns it."""
        log_probs, values = self.policy.log_probabilities(self.policy.obs_to_tensor(observations)[0], masks)
        return log_probs, values[:, 0]

    def descend(self, loss: torch.Tensor, **figures: torch.Tensor) -> None:
        """Take a gradient step, and log the means of figures."""
        for name, figure in figures.items():
            self.logger.record_mean(f"train/{name}", figure.item())
        self.policy.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.policy.parameters(), self.max_grad_norm)
        self.policy.optimizer.step()


class Learner(sb3.Learner):
    """A student, of the class `kind`, with its teachers; rewards are divided as `normalize` of MaskablePPO does it."""

    kind: Any
    settings: Any

    def __init__(self, config: Config, device: str = "auto") -> None:
        h = hyperparameters_of(self.settings, config)
        self.config, self.hyperparameters = config, vars(h)
        self.model = sb3.model_of(self.kind, sb3.OURS | vars(h) | {"normalize": True}, config, device)
        self.model.h = h
        self.model.teachers = Teachers(config, h.teacher, h.gap_share, h.workers, h.taught)

    def begin(self) -> None:
        super().begin()
        self.model.teachers.check(self.model.env.reset())
        self.model.env.seed(self.config.first_seed)

    def state(self) -> Dict:
        return super().state() | {"teachers": [self.model.teachers.gap, self.model.teachers.gap_of]}

    def restore(self, step: int, state: Options) -> None:
        super().restore(step, state)
        self.model.teachers.gap, self.model.teachers.gap_of = state["teachers"]
