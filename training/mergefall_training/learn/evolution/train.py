"""Evolution strategies for Tetris: noisy cross-entropy and CMA-ES, for the weights of a heuristic.

CMA-ES also learns the last layer of a value network (`warm_start`): a run of `afterstate` learns to predict how games
go on, and evolution then changes the predictions until the network plays better.

Both keep a distribution of weights and move it towards the better candidates. In each generation:

1. Draw candidates from the distribution. Those of a heuristic are scaled to length 1, because only the direction of
   the weights matters to a greedy player; at first all directions are equally likely.
2. Each candidate plays a few games, by `tetris/greedy` or by a search. All candidates of a generation play the same
   seeds; every generation draws new ones.
3. A candidate's value is the number of pieces that it places. On 10 columns, 5 pieces of 4 cells complete 2 lines, so
   pieces measure the same as lines, but they also rank games without a line.
4. The strategy learns from the values.

A game's length is mostly luck, so the distribution's mean is noisy: the model is a running mean of these means. A run's
steps are pieces.

Example:
    mergefall train cross-entropy --env mergefall/Tetris-v0 --out runs/evolved
    mergefall evaluate runs/evolved --episodes 100
    mergefall train cma-es --env mergefall/SZTetris-v0 --preset network \\
        --set warm_start=runs/far

Sources: I. Szita & A. Lőrincz, Learning Tetris using the noisy cross-entropy method (2006), with noise that falls;
C. Thiery & B. Scherrer, Improvements on learning Tetris with cross entropy (2009), with constant noise. For CMA-ES see
`cma_es.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Protocol

import numpy as np
from mergefall.checks import integer, known, number
from mergefall.threads import cores, share
from mergefall.typing import Arrays, Options
from mergefall_baselines.tetris.greedy import Greedy
from mergefall_baselines.tetris.search import MOST_MOVES
from numpy.typing import NDArray

from mergefall_training.files import model_file
from mergefall_training.learn import import_extra
from mergefall_training.learn.evolution.parameters import HeuristicWeights, LastLayer, Parameters, directions
from mergefall_training.learn.evolution.player import heuristic_of
from mergefall_training.learn.models import load_model
from mergefall_training.learn.run import Config, Run
from mergefall_training.learn.training import schedule, train_in_rounds
from mergefall_training.play.evaluation import SEEDS

ONLY_CROSS_ENTROPY, ONLY_CMA_ES = ("elite", "noise"), ("warm_start", "spread")
FEWEST = 4  # candidates of a generation, so that there are better and worse ones


@dataclass(frozen=True)
class Hyperparameters:
    """The hyper-parameters of a run."""

    heuristic: Any = "dt-10"  # whose weights to learn: a name, a mapping of name and options, or a list of features
    depth: int = 1  # own moves that candidates look ahead: 1 is `tetris/greedy`, more `tetris/expectimax`
    population: int = 100  # candidates of a generation
    games: int = 4  # of each candidate
    elite: int = 10  # cross-entropy: the distribution is fitted to so many of the best candidates
    noise: float | str = 0.1  # cross-entropy: standard deviation added after each fit; `lin_0.1` falls to 0
    warm_start: str = ""  # CMA-ES: a run of `afterstate`; its last layer is learnt, in place of a heuristic's weights
    spread: float = 0.3  # CMA-ES: first standard deviation of the last layer's weights, in units of their own size
    averaging: int = 10  # generations of the model's running mean; 1: the distribution's mean itself
    threads: int | None = None  # that games are played on; default: one per core; changes no result

    def __post_init__(self) -> None:
        heuristic_of(self.heuristic)
        integer("depth", self.depth, 1, MOST_MOVES)
        integer("population", self.population, FEWEST)
        integer("games", self.games, 1, SEEDS)
        integer("averaging", self.averaging, 1)
        integer("elite", self.elite, 1, self.population)
        schedule("noise", self.noise)
        number("spread", self.spread, above=0)
        if not isinstance(self.warm_start, str):
            raise ValueError(f"warm_start is {self.warm_start!r}; expected a run folder")
        if self.warm_start and self.depth != 1:
            raise ValueError(f"depth is {self.depth}; a network plays without search, so expected none with warm_start")
        if self.threads is not None:
            integer("threads", self.threads, 1)

    @classmethod
    def read(cls, algorithm: str, given: Options) -> Hyperparameters:
        """The hyper-parameters of a run's configuration; raises ValueError for a name the algorithm does not have."""
        left_out = ONLY_CMA_ES if algorithm == "cross-entropy" else ONLY_CROSS_ENTROPY
        known(algorithm, given, [field.name for field in fields(cls) if field.name not in left_out])
        if "spread" in given and not given.get("warm_start"):
            raise ValueError(
                f"spread is {given['spread']!r}, which goes with warm_start; expected that too, or neither"
            )
        others = {} if algorithm == "cross-entropy" else {"elite": 1}
        return cls(**others, **given)


class Strategy(Protocol):
    """A distribution of weights that learns; its draws depend only on its seed and the candidates' values."""

    @property
    def mean(self) -> NDArray[np.float64]:
        """The mean of the distribution, float64[size]."""
        ...

    def ask(self) -> NDArray[np.float64]:
        """The next generation's candidates, float64[population, size]."""
        ...

    def tell(self, values: NDArray[np.float64], left: float) -> None:
        """Learn from the candidates' values, float64[population]; `left` is the rest of the training, from 1 to 0."""
        ...

    def state(self) -> dict[str, Any]:
        """Everything that further generations depend on."""
        ...

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a `state`; call it on a new strategy."""
        ...


class CrossEntropy:
    """Noisy cross-entropy: a Gaussian without covariances, fitted to the best candidates.

    Mean and variances are those of the best candidates; the noise's variance is added, so that the distribution does
    not collapse.
    """

    def __init__(self, size: int, population: int, elite: int, noise: float | str, seed: int) -> None:
        self.mean, self.variance = np.zeros(size), np.ones(size)
        self._population, self._elite = population, elite
        self._noise: Any = schedule("noise", noise)
        self._seed, self._generation, self._asked = seed, 0, np.empty(0)

    def ask(self) -> NDArray[np.float64]:
        random = np.random.default_rng([self._seed, self._generation])
        drawn = random.standard_normal((self._population, self.mean.size))
        self._asked = directions(self.mean + np.sqrt(self.variance) * drawn)
        return self._asked

    def tell(self, values: NDArray[np.float64], left: float) -> None:
        best = self._asked[np.argsort(-values, kind="stable")[: self._elite]]
        noise: Any = self._noise(left) if callable(self._noise) else self._noise
        self.mean, self.variance = best.mean(axis=0), best.var(axis=0) + noise**2
        self._generation += 1

    def state(self) -> dict[str, Any]:
        return {"mean": self.mean, "variance": self.variance, "generation": self._generation}

    def restore(self, state: dict[str, Any]) -> None:
        self.mean, self.variance, self._generation = state["mean"], state["variance"], state["generation"]


class Learner:
    """A run's distribution of weights; one call of `learn` is one generation.

    `base` is the model that a run with `warm_start` began with, as `state` keeps it; default: that of the folder.
    """

    def __init__(self, config: Config, base: Options | None = None) -> None:
        self.hyperparameters = h = Hyperparameters.read(config.algorithm, config.hyperparameters)
        kwargs = config.env_kwargs
        Greedy.rules_of(config.env_id, kwargs)  # raises ValueError for another game
        if kwargs["reward"] != "lines" or kwargs["shaping"] is not None:
            raise ValueError(f"env_kwargs are {kwargs}; {config.algorithm} takes no reward but lines, and no shaping")
        self.config, self.step, self.generation = config, 0, 0
        self.parameters: Parameters = HeuristicWeights(h.heuristic, h.depth)
        if h.warm_start:
            if base is None:
                model = load_model(model_file(h.warm_start, "last"))
                base = {"spec": model.spec, "arrays": model.arrays}
            self.parameters = LastLayer(base["spec"], base["arrays"], h.spread, config)
        size = self.parameters.size
        if config.algorithm == "cross-entropy":
            strategy: Any = CrossEntropy(size, h.population, h.elite, h.noise, config.first_seed)
        else:
            cma_es = import_extra("mergefall_training.learn.evolution.cma_es")
            strategy = cma_es.CmaEs(size, h.population, config.first_seed, self.parameters.spread)
        self.strategy: Strategy = strategy
        self.model = np.zeros(size)  # at first all placements are worth the same, or the network is the given one

    def learn(self) -> dict[str, float]:
        """Draw a generation, let it play and learn from it; returns figures to log."""
        candidates = self.parameters.scaled(self.strategy.ask())
        pieces = self.play(candidates)
        self.step += int(pieces.sum())
        self.generation += 1
        values = pieces.mean(axis=1)
        self.strategy.tell(values, 1 - self.step / self.config.timesteps)
        change = self.parameters.scaled(self.strategy.mean) - self.model
        self.model = self.model + change / min(self.generation, self.hyperparameters.averaging)
        spread = float(np.sqrt(candidates.var(axis=0).sum()))
        figures = {"pieces": float(values.mean()), "best_pieces": float(values.max()), "spread": spread}
        return figures | {"generation": self.generation}

    def play(self, candidates: NDArray[np.float64]) -> NDArray[np.int64]:
        """The number of pieces that each candidate places in each game, int64[population, games]."""
        h, config = self.hyperparameters, self.config
        pieces = np.zeros((len(candidates), h.games), dtype=np.int64)
        stopped = False

        def work(which: tuple[int, ...]) -> None:
            nonlocal stopped
            if stopped:
                return
            try:
                i, k = which
                seed = config.first_seed + (self.generation * h.games + k) % SEEDS
                player = self.parameters.player(candidates[i])  # one for each game: a player plays one at a time
                pieces[i, k] = len(player.play(config.env_id, seed, config.env_kwargs, config.max_episode_steps))
            except BaseException:
                stopped = True  # after Ctrl-C the other threads begin no further game
                raise

        share(work, np.ndindex(*pieces.shape), h.threads or cores())
        return pieces

    def arrays(self) -> Arrays:
        """The model's arrays."""
        return self.parameters.arrays(self.model)

    def network(self) -> dict[str, Any]:
        """What `player` needs besides the arrays."""
        return self.parameters.network()

    def state(self) -> dict[str, Any]:
        """Everything that the rest of the run depends on."""
        found = {"generation": self.generation, "model": self.model, "strategy": self.strategy.state()}
        return found | {"base": self.parameters.base()}

    def restore(self, step: int, state: Options) -> None:
        """Go back to the `state` after `step` pieces; call it on a new learner."""
        self.step, self.generation, self.model = step, state["generation"], state["model"]
        self.strategy.restore(state["strategy"])


def check(config: Config, device: str = "auto") -> None:
    """Raise ValueError for a configuration that cannot be trained; `device` is ignored."""
    Learner(config)


def train(run: Run) -> None:
    """Train in a run folder to the end of the run, from its last checkpoint if there is one."""
    checkpoint = run.load_checkpoint()
    if checkpoint is None:
        learner = Learner(run.config)
    else:
        with run.fitting():
            learner = Learner(run.config, checkpoint[1].get("base"))
    train_in_rounds(run, learner)
