"""Learning the weights of a heuristic of Tetris from whole games: noisy cross-entropy and CMA-ES.

Both keep a distribution of weights. Each generation draws candidates from it; each candidate plays a few games by
`tetris/greedy`, or by a search; and the distribution moves to where the better ones lie. A game's length is mostly
luck, which makes its mean tremble: the model is a running mean of these means.

Only the direction of the weights matters to a greedy player, so candidates are scaled to length 1, and at first all
directions are as likely. All candidates of a generation play the same games, the next generation other ones: luck is
common to what is compared, and nothing is learnt by heart. A candidate is worth the number of pieces that it places:
that says the same as its lines, which are 2 for 5 pieces of 4 cells on 10 columns, but tells games without a line
apart, too. A run's steps are these pieces.

Sources: I. Szita & A. Lőrincz, Learning Tetris using the noisy cross-entropy method (2006), with noise that falls;
C. Thiery & B. Scherrer, Improvements on learning Tetris with cross entropy (2009), with constant noise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Protocol

import numpy as np
from mergefall.checks import integer, known
from mergefall.threads import cores, share
from mergefall_baselines.tetris.greedy import Greedy
from mergefall_baselines.tetris.search import MOST_MOVES
from numpy.typing import NDArray

from mergefall_training.learn import import_extra
from mergefall_training.learn.evolution.player import heuristic_of, names_of, playing, weighted
from mergefall_training.learn.rounds import train_in_rounds
from mergefall_training.learn.run import Config, Run
from mergefall_training.learn.schedule import schedule
from mergefall_training.play.evaluation import SEEDS

ONLY_CROSS_ENTROPY = ("elite", "noise")
FEWEST = 4  # candidates of which better and worse ones can be told


@dataclass(frozen=True)
class Hyperparameters:
    """What may be set."""

    heuristic: Any = "dt-10"  # whose weights: a name, a mapping of it and options, or a list of linear features
    depth: int = 1  # own moves that candidates look ahead: the first by `tetris/greedy`, more by `tetris/expectimax`
    population: int = 100  # candidates of a generation
    games: int = 4  # of each candidate
    elite: int = 10  # cross-entropy: the best candidates, to which the distribution is fitted
    noise: float | str = 0.1  # cross-entropy: standard deviation that is added after each fit; text falls to 0
    averaging: int = 10  # generations over which the model is averaged; 1 for the distribution's mean itself
    threads: int | None = None  # on which games are played, one per core unless told; it makes no other difference

    def __post_init__(self) -> None:
        heuristic_of(self.heuristic)
        integer("depth", self.depth, 1, MOST_MOVES)
        integer("population", self.population, FEWEST)
        integer("games", self.games, 1, SEEDS)
        integer("averaging", self.averaging, 1)
        integer("elite", self.elite, 1, self.population)
        schedule("noise", self.noise)
        if self.threads is not None:
            integer("threads", self.threads, 1)

    @classmethod
    def read(cls, algorithm: str, given: Mapping[str, Any]) -> Hyperparameters:
        """From a run's configuration; a ValueError for what the algorithm does not have."""
        left_out = () if algorithm == "cross-entropy" else ONLY_CROSS_ENTROPY
        known(algorithm, given, [field.name for field in fields(cls) if field.name not in left_out])
        others = {} if algorithm == "cross-entropy" else {"elite": 1}
        return cls(**others, **given)


class Strategy(Protocol):
    """A distribution of weights, and how it learns; what it draws follows from its seed and what it was told."""

    @property
    def mean(self) -> NDArray[np.float64]: ...

    def ask(self) -> NDArray[np.float64]: ...

    def tell(self, values: NDArray[np.float64], left: float) -> None: ...

    def state(self) -> dict[str, Any]: ...

    def restore(self, state: dict[str, Any]) -> None: ...


class CrossEntropy:
    """Directions from a Gaussian without covariances, fitted to the best ones, its variances kept up by noise.

    The mean is that of the best directions, the variances theirs plus the noise's.
    """

    def __init__(self, size: int, population: int, elite: int, noise: float | str, seed: int) -> None:
        self.mean, self.variance = np.zeros(size), np.ones(size)
        self._population, self._elite = population, elite
        self._noise: Any = schedule("noise", noise)
        self._seed, self._generation, self._asked = seed, 0, np.empty(0)

    def ask(self) -> NDArray[np.float64]:
        """The next generation's candidates, float64[population, size], of length 1."""
        random = np.random.default_rng([self._seed, self._generation])
        drawn = random.standard_normal((self._population, self.mean.size))
        self._asked = directions(self.mean + np.sqrt(self.variance) * drawn)
        return self._asked

    def tell(self, values: NDArray[np.float64], left: float) -> None:
        """What the candidates that were asked for are worth, float64[population], with `left` of training, 1 to 0."""
        best = self._asked[np.argsort(-values, kind="stable")[: self._elite]]
        noise: Any = self._noise(left) if callable(self._noise) else self._noise
        self.mean, self.variance = best.mean(axis=0), best.var(axis=0) + noise**2
        self._generation += 1

    def state(self) -> dict[str, Any]:
        """All that goes on."""
        return {"mean": self.mean, "variance": self.variance, "generation": self._generation}

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to what `state` returned."""
        self.mean, self.variance, self._generation = state["mean"], state["variance"], state["generation"]


def directions(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weights float64[..., size] scaled to length 1; 0 stays 0.

    >>> directions(np.array([[3.0, -4.0], [0.0, 0.0]]))
    array([[ 0.6, -0.8],
           [ 0. ,  0. ]])
    """
    length = np.linalg.norm(weights, axis=-1, keepdims=True)
    return weights / np.where(length > 0, length, 1)


class Learner:
    """A run's distribution of weights; `learn` is one generation."""

    def __init__(self, config: Config) -> None:
        self.hyperparameters = h = Hyperparameters.read(config.algorithm, config.hyperparameters)
        kwargs = config.env_kwargs
        Greedy.rules_of(config.env_id, kwargs)  # a ValueError for another game
        if kwargs["reward"] != "lines" or kwargs["shaping"] is not None:
            raise ValueError(f"env_kwargs are {kwargs}; {config.algorithm} takes no reward but lines, and no shaping")
        self.config, self.step, self.generation = config, 0, 0
        self.known = heuristic_of(h.heuristic)
        size = len(names_of(self.known))
        if config.algorithm == "cross-entropy":
            strategy: Any = CrossEntropy(size, h.population, h.elite, h.noise, config.first_seed)
        else:
            cma_es = import_extra("mergefall_training.learn.evolution.cma_es")
            strategy = cma_es.CmaEs(size, h.population, config.first_seed)
        self.strategy: Strategy = strategy
        self.model = np.zeros(size)  # all placements are worth the same at the start

    def learn(self) -> dict[str, float]:
        """Draw a generation, let it play and learn from it; returns figures to log."""
        candidates = directions(self.strategy.ask())
        pieces = self.play(candidates)
        self.step += int(pieces.sum())
        self.generation += 1
        values = pieces.mean(axis=1)
        self.strategy.tell(values, 1 - self.step / self.config.timesteps)
        change = directions(self.strategy.mean) - self.model
        self.model = self.model + change / min(self.generation, self.hyperparameters.averaging)
        spread = float(np.sqrt(candidates.var(axis=0).sum()))
        figures = {"pieces": float(values.mean()), "best_pieces": float(values.max()), "spread": spread}
        return figures | {"generation": self.generation}

    def play(self, candidates: NDArray[np.float64]) -> NDArray[np.int64]:
        """The pieces that each candidate places in each game of this generation, int64[population, games]."""
        h, config = self.hyperparameters, self.config
        pieces = np.zeros((len(candidates), h.games), dtype=np.int64)
        heuristics = [weighted(self.known, weights) for weights in candidates]
        stopped = False

        def work(which: tuple[int, ...]) -> None:
            nonlocal stopped
            if stopped:
                return
            try:
                i, k = which
                seed = config.first_seed + (self.generation * h.games + k) % SEEDS
                game = playing(heuristics[i], h.depth).play(
                    config.env_id, seed, config.env_kwargs, config.max_episode_steps
                )
                pieces[i, k] = len(game)
            except BaseException:
                stopped = True  # the others need not play on after a Ctrl-C
                raise

        share(work, np.ndindex(*pieces.shape), h.threads or cores())
        return pieces

    def arrays(self) -> dict[str, NDArray[np.float64]]:
        """The model, scaled to length 1."""
        return {"weights": directions(self.model)}

    def network(self) -> dict[str, Any]:
        """Whose weights `arrays` holds, as `evolving.player` takes it."""
        h = self.hyperparameters
        return {"heuristic": h.heuristic, "names": names_of(self.known), "depth": h.depth}

    def state(self) -> dict[str, Any]:
        """All that goes on."""
        return {"generation": self.generation, "model": self.model, "strategy": self.strategy.state()}

    def restore(self, step: int, state: Mapping[str, Any]) -> None:
        """Go back to what `state` returned after `step` pieces; this one must be new."""
        self.step, self.generation, self.model = step, state["generation"], state["model"]
        self.strategy.restore(state["strategy"])


def check(config: Config, device: str = "auto") -> None:
    """Raise ValueError for a configuration that cannot be trained; `device` is ignored."""
    Learner(config)


def train(run: Run) -> None:
    """Train in a run folder to its end; from its last checkpoint, if there is one."""
    train_in_rounds(run, Learner(run.config))
