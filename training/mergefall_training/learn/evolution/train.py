"""CMA-ES for Tetris: evolves the weights of a heuristic, or the last layer of a value network.

A run of `afterstate` (`warm_start`) learns to predict how games go on; evolution then changes the predictions of its
last layer until the network plays better.

CMA-ES, covariance matrix adaptation by the library `cma`, keeps a Gaussian over weights and moves it towards the better
candidates. In each generation:

1. Draw candidates. Those of a heuristic are scaled to length 1, because only the direction of the weights matters to a
   greedy player; at first all directions are equally likely.
2. Each candidate plays a few games, by `tetris/greedy` or by a search. All candidates of a generation play the same
   seeds; every generation draws new ones.
3. A candidate's value is the number of pieces that it places. On 10 columns, 5 pieces of 4 cells complete 2 lines, so
   pieces measure the same as lines, but they also rank games without a line.
4. The Gaussian learns from the values.

A game's length is mostly luck, so the Gaussian's mean is noisy: the model is a running mean of these means. A run's
steps are pieces; the last generation is played to its end, so a run may take more steps than its `timesteps`.

Example::

    mergefall train cma-es --env mergefall/Tetris-v0 --out runs/evolved
    mergefall evaluate runs/evolved --episodes 100
    mergefall train cma-es --env mergefall/SZTetris-v0 --preset network \\
        --set warm_start=runs/far

Source: N. Hansen & A. Ostermeier, Completely derandomized self-adaptation in evolution strategies (2001); for Tetris
A. Boumaza, On the evolution of artificial Tetris players (2009).
"""

from dataclasses import dataclass
from typing import Any

import cma
import numpy as np
from mergefall.checks import integer
from mergefall.games import rules_in
from mergefall.tetris.heuristics import heuristic
from mergefall.tetris.rules import Rules
from mergefall.threads import cores, share
from mergefall.typing import Arrays, Dict, Floats, Ints, Options
from mergefall_baselines.tetris.search import MOST_MOVES

from mergefall_training.files import model_file
from mergefall_training.learn import training
from mergefall_training.learn.evolution.player import names_of, player
from mergefall_training.learn.models import load_model
from mergefall_training.learn.run import Config
from mergefall_training.learn.training import hyperparameters_of
from mergefall_training.play.evaluation import SEEDS

FEWEST = 4  # candidates of a generation, so that there are better and worse ones


@dataclass(frozen=True)
class Hyperparameters:
    """The hyper-parameters of a run.

    - `heuristic`: whose weights to learn: a name, or a mapping of name and options.
    - `depth`: own moves that candidates look ahead: 1 is `tetris/greedy`, more `tetris/expectimax`.
    - `population`: candidates of a generation.
    - `games`: of each candidate.
    - `warm_start`: a run of `afterstate`; its last layer is learnt, in place of a heuristic's weights.
    - `spread`: first standard deviation of the last layer's weights, in units of their own size.
    - `averaging`: generations of the model's running mean; 1: the Gaussian's mean itself.
    - `threads`: that games are played on; default: one per core; changes no result.
    """

    heuristic: Any = "dt-10"
    depth: int = 1
    population: int = 100
    games: int = 4
    warm_start: str = ""
    spread: float = 0.3
    averaging: int = 10
    threads: int | None = None

    def __post_init__(self) -> None:
        heuristic(self.heuristic)
        integer("depth", self.depth, 1, MOST_MOVES)
        integer("population", self.population, FEWEST)
        if self.warm_start and self.depth != 1:
            raise ValueError(f"depth is {self.depth}; a network plays without search, so expected none with warm_start")


class Learner(training.Learner):
    """A run's Gaussian over weights, at first with mean 0; one call of `learn` is one generation.

    Candidates are vectors float64[size]: the weights of a heuristic, or how much the weights of a network's last layer
    differ from those of `base`, in units of their root mean square.

    - `base`: the model that a run with `warm_start` began with; the folder's may have changed since.
    - `model`: the candidate that the model is made of.
    """

    def __init__(self, config: Config, device: str = "auto") -> None:
        self.hyperparameters = h = hyperparameters_of(Hyperparameters, config)
        kwargs = config.env_kwargs
        rules_in(config.env_id, kwargs, Rules)  # raises ValueError for another game
        if kwargs["reward"] != "lines" or kwargs["shaping"] is not None:
            raise ValueError(f"env_kwargs are {kwargs}; {config.algorithm} takes no reward but lines, and no shaping")
        if "spread" in config.hyperparameters and not h.warm_start:
            raise ValueError(f"spread is {h.spread}, which goes with warm_start; expected that too, or neither")
        self.config, self.step, self.base = config, 0, None

    def begin(self) -> None:
        if self.hyperparameters.warm_start:
            model = load_model(model_file(self.hyperparameters.warm_start, "last"))
            self.base = {"spec": model.spec, "arrays": dict(model.arrays)}
        self._set_up()

    def _set_up(self) -> None:
        """Make the Gaussian for candidates that differ from `base`; raises ValueError if the run cannot evolve it."""
        h, config = self.hyperparameters, self.config
        if self.base is None:
            names, spread = names_of(heuristic(h.heuristic)), 1.0
            self._network: Dict = {"heuristic": h.heuristic, "names": names, "depth": h.depth}
            self._arrays: Dict = {"weights": np.zeros(len(names))}
            self._evolved = "weights"
        else:
            spec, self._arrays, spread = self.base["spec"], self.base["arrays"], h.spread
            theirs, ours = (
                {"env_id": env_id} | {name: kwargs.get(name) for name in ("cols", "reward")}
                for env_id, kwargs in ((spec["env_id"], spec["env_kwargs"]), (config.env_id, config.env_kwargs))
            )
            if "inputs" not in spec["network"] or len(self._arrays) < 4 or theirs != ours:
                raise ValueError(
                    f"warm_start: the run is one of {spec['algorithm']}, {theirs}; expected one of afterstate with a "
                    f"hidden layer, {ours}"
                )
            self._network = spec["network"]
            self._evolved = f"weight{len(self._arrays) // 2 - 1}"
        self.values: list[list[float]] = []  # of the candidates of each generation so far
        # At first all placements are worth the same, or the network is the given one.
        self.model = np.zeros(self._arrays[self._evolved].size)
        options: Dict = {"popsize": h.population, "seed": np.nan, "verbose": -9}
        options["randn"] = lambda *shape: self._random.standard_normal(shape)
        self.gaussian: Any = cma.CMAEvolutionStrategy(self.model, spread, options)

    def _scaled(self, vectors: Floats) -> Floats:
        """Candidates from vectors float64[..., size]: the weights of a heuristic have length 1; 0 stays 0."""
        length = np.linalg.norm(vectors, axis=-1, keepdims=True)
        return vectors / np.where(length > 0, length, 1) if self.base is None else vectors

    def arrays_of(self, candidate: Floats) -> Arrays:
        """The arrays of a candidate's model."""
        start = self._arrays[self._evolved]
        size = np.sqrt(np.mean(start**2)) or 1.0  # weights of a heuristic start at 0
        after = start + size * candidate.reshape(start.shape)
        return {**self._arrays, self._evolved: after.astype(start.dtype)}

    def draw(self) -> list[Floats]:
        """The next generation's candidates, before they are scaled."""
        self._random = np.random.default_rng([self.config.first_seed, len(self.values)])
        return self.gaussian.ask()

    def take(self, drawn: list[Floats], values: list[float]) -> None:
        """Learn from the candidates' values."""
        self.gaussian.tell(drawn, [-value for value in values])  # it minimizes
        self.values.append(values)

    def learn(self) -> dict[str, float]:
        drawn = self.draw()
        candidates = self._scaled(np.array(drawn))
        pieces = self.play(candidates)
        self.step += int(pieces.sum())
        values = pieces.mean(axis=1)
        self.take(drawn, values.tolist())
        generation = len(self.values)
        change = self._scaled(np.array(self.gaussian.mean)) - self.model
        self.model = self.model + change / min(generation, self.hyperparameters.averaging)
        return {
            "pieces": float(values.mean()),
            "best_pieces": float(values.max()),
            "spread": float(np.sqrt(candidates.var(axis=0).sum())),
            "generation": generation,
        }

    def play(self, candidates: Floats) -> Ints:
        """The number of pieces that each candidate places in each game, int64[population, games]."""
        h, config = self.hyperparameters, self.config
        spec = {"env_id": config.env_id, "env_kwargs": config.env_kwargs, "network": self.network()}
        pieces = np.zeros((len(candidates), h.games), dtype=np.int64)

        def work(which: tuple[int, ...]) -> None:
            i, k = which
            seed = config.first_seed + (len(self.values) * h.games + k) % SEEDS
            one = player(spec, self.arrays_of(candidates[i]))  # for each game: a player plays one at a time
            pieces[i, k] = len(one.play(config.env_id, seed, config.env_kwargs, config.max_episode_steps))

        share(work, np.ndindex(*pieces.shape), h.threads or cores())
        return pieces

    def arrays(self) -> Arrays:
        return self.arrays_of(self._scaled(self.model))

    def network(self) -> Dict:
        return self._network

    def state(self) -> Dict:
        # All that the library does follows from the random numbers and these values; its pickle is that of one release.
        return {"model": self.model, "values": np.array(self.values), "base": self.base}

    def restore(self, step: int, state: Options) -> None:
        self.base = state["base"]
        self._set_up()
        self.step, self.model = step, state["model"]
        for values in state["values"].tolist():
            self.take(self.draw(), values)
