"""Expert iteration: the agent's own network searches, and learns from what the search finds.

- The agent plays `n_envs` games by Monte-Carlo tree search (`2048/mcts`, `tetris/mcts`) with its network at the leaves:
  the policy gives priors, the value head values. Gumbel noise at the root explores.
- The policy learns the improved policy of the search, and the value head λ-returns over the values of the search
  (T. Anthony, Z. Tian & D. Barber 2017; D. Silver et al. 2018; I. Danihelka et al. 2022).
- Values are noisy, and the search scales them to the range of its tree, so they weigh little (`value_scale`). Many
  small searches teach more than few large ones.
- It needs no teacher.

    >>> import tempfile
    >>> from mergefall_training.learn.presets import configure
    >>> from mergefall_training.learn.run import open_run
    >>> changed = {"simulations": 4, "n_envs": 8, "n_steps": 4, "batch_size": 16}
    >>> config = configure("expert-iteration", changed=changed, timesteps=64, interval=64, episodes=2)
    >>> with open_run(tempfile.mkdtemp(), config, progress=False) as run:
    ...     train(run)
    >>> [point.step for point in run.points]
    [0, 64]
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from mergefall.checks import integer, number
from mergefall.games import GAMES, game_of
from mergefall.typing import Observation
from mergefall_baselines.game2048.mcts import Mcts as Mcts2048
from mergefall_baselines.tetris.mcts import Mcts as MctsTetris
from numpy.typing import NDArray

from mergefall_training.learn.agents import COUNTED, Agent, counted
from mergefall_training.learn.run import Config, Run
from mergefall_training.learn.student import BufferHyperparameters, BufferStudent, Choices, Labelled
from mergefall_training.learn.training import train_in_rounds

# By `Game.name`. They search from single observations, so they cannot count the pieces that came before.
SEARCHES: dict[str, Any] = {"2048": Mcts2048, "tetris": partial(MctsTetris, distribution="uniform")}
assert SEARCHES.keys() == {game.name for game in GAMES.values()}


@dataclass(frozen=True)
class Hyperparameters(BufferHyperparameters):
    """Hyper-parameters of expert iteration."""

    n_envs: int = 256
    batch_size: int = 512
    learning_rate: float | str = "lin_0.004"
    # Small, because the targets of an older network are worse.
    buffer_size: int = 4096
    gradient_steps: int = 4
    simulations: int = 4
    """Simulations of the search for each move."""
    considered: int = 8
    """Actions that the search considers at its root."""
    gumbel_scale: float = 1.0
    """Scale of the noise at the root; 0 always plays the best move."""
    value_scale: float = 0.01
    """Weight of values against the policy in the search (c_scale)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        integer("simulations", self.simulations, 1)
        integer("considered", self.considered, 1)
        number("gumbel_scale", self.gumbel_scale, 0)
        number("value_scale", self.value_scale, above=0)


class Network(Agent):
    """The student's network as a player whose values are in units of the reward."""

    def __init__(self, student: BufferStudent) -> None:
        config = student.config
        super().__init__({"env_id": config.env_id, "env_kwargs": config.env_kwargs})
        self._student = student

    def search_values(self, observation: Observation) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(log-probabilities, values of boards) of a batch."""
        legal = self._student.envs.games.rules.action_masks(observation)
        with torch.no_grad():
            log_probs, values = self._student.outputs(observation, legal)
        preferences = np.where(legal, log_probs.cpu().numpy(), -np.inf)
        return preferences, values.cpu().numpy().astype(np.float64) * self._student.reward_unit


class Learner(BufferStudent):
    """The network, its search and what it found; one call of `learn` is one round."""

    h: Hyperparameters

    def __init__(self, config: Config, device: str) -> None:
        h = Hyperparameters.of(config)
        super().__init__(config, h, device)
        game, rewards = game_of(config.env_id), counted(config.env_id, config.env_kwargs)
        if rewards is None:
            about = {name: config.env_kwargs.get(name) for name in ("reward", "goal", "shaping")}
            known = " or ".join(COUNTED[game.name])
            raise ValueError(f"no search counts the rewards of {about}; expected {known}, unshaped and without a goal")
        self.search = SEARCHES[game.name](
            {"player": Network(self)},
            simulations=h.simulations,
            considered=h.considered,
            temperature=1.0,
            gumbel_scale=h.gumbel_scale,
            value_scale=h.value_scale,
            rewards=rewards,
            gamma=h.gamma,
            seed=config.seed,
        ).with_rules(asdict(self.envs.games.rules))

    def choose(self) -> Choices:
        """The moves that the search chooses, its improved policy, and its values; each time with fresh noise."""
        seed = torch.randint(1 << 62, (), generator=self.random).item()
        self.search.plan = self.search.plan._replace(seed=np.uint64(seed))
        found = self.search.statistics(self.observations)
        log_probs = np.log(np.maximum(found.policy, np.finfo(np.float32).tiny)).astype(np.float32)
        return Choices(found.actions, log_probs, (found.value / self.reward_unit).astype(np.float32))

    def learn(self) -> dict[str, float]:
        """Play `n_steps` of each game by search, and learn from what it found; returns figures to log."""
        played = self.play()
        return self.fit(Labelled(played.observations, played.masks, np.exp(played.log_probs), played.returns))


def check(config: Config, device: str = "auto") -> None:
    """Raise ValueError for a configuration that cannot be trained on this device; searches for one move."""
    learner = Learner(config, device)
    learner.begin()
    learner.choose()


def train(run: Run) -> None:
    """Train in a run folder to the end, from its last checkpoint if there is one."""
    learner = Learner(run.config, run.device)
    train_in_rounds(run, learner, learner.begin)
