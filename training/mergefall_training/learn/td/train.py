"""Temporal-difference learning of Tetris on afterstates, TD(λ): linear controllers and tuple networks.

A placement's value is the number of pieces still to be placed, each counting γ times the one before. On 10 columns, 5
pieces of 4 cells complete 2 lines, so pieces measure the same as lines. But every piece pays, so a learner has
something to learn from before it clears its first line. It always places where the value is highest; the random pieces
make it explore enough. A run's steps are pieces.

Each thread plays its own game and learns from it after some pieces, last one first. The target of a placement is

    1 + γ · ((1 − λ) · [value of the next placement] + λ · [target of the next placement]),

or 0 if the game ends after it. All threads adjust the same weights, without locks. The step size is divided by the
number of weights in a value. With temporal coherence, a weight whose errors cancel out learns more slowly.

Example:
    mergefall train td --env mergefall/SZTetris-v0 --out runs/sz
    mergefall evaluate runs/sz --episodes 100

Sources: Bertsekas & Tsitsiklis, Neuro-dynamic programming (1996), for λ; Beal & Smith, Temporal coherence and
prediction decay in TD learning (1999); Jaśkowski et al. (2015; `mergefall_baselines.tetris.network`), for the networks.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from mergefall.checks import MOST_COUNTED, boolean, integer, known, number, typed, within
from mergefall.tetris import game
from mergefall.tetris.heuristics import MEMO
from mergefall.tetris.heuristics.linear import FEATURES
from mergefall.threads import cores, share
from mergefall.typing import Array, Options
from mergefall_baselines.tetris.network import BIAS, network_class
from mergefall_baselines.tetris.player import TetrisPlayer

from mergefall_training.learn.run import Config, Run
from mergefall_training.learn.td.kernels import GAMES, HELD, LINES, WORDS, Numbers, Path, Scratch, learning_kernel
from mergefall_training.learn.td.player import shape_of
from mergefall_training.learn.training import train_in_rounds

U, F = np.uint64, np.float32
ROUND = 20_000  # pieces of one thread before Python looks at the keyboard


@dataclass(frozen=True)
class Hyperparameters:
    """The hyper-parameters of a run."""

    blocks: str = "3x3"  # of the network, ROWSxCOLUMNS each, separated by spaces; empty: a linear controller
    features: tuple[str, ...] = ()  # of the network; any of `mergefall.tetris.heuristics.linear.FEATURES`
    learning_rate: float = 0.5  # α; each weight takes α / (weights in the value) of the error
    gamma: float = 0.99  # γ, the discount of each further piece
    td_lambda: float = 0.5  # λ; 0 learns from the next placement alone, 1 from all that follow
    coherence: bool = True  # temporal coherence
    n_steps: int = 256  # pieces after which a thread learns from them
    threads: int | None = None  # default: one per core; only runs on one thread can be repeated exactly

    def __post_init__(self) -> None:
        number("learning_rate", self.learning_rate, above=0)
        for name in ("gamma", "td_lambda"):
            number(name, getattr(self, name), 0, 1)
        boolean("coherence", self.coherence)
        integer("n_steps", self.n_steps, 1)
        if self.threads is not None:
            integer("threads", self.threads, 1)
        if not isinstance(self.features, list | tuple):
            raise ValueError(f"features is {self.features!r}; expected a list")
        object.__setattr__(self, "features", tuple(self.features))

    @classmethod
    def read(cls, given: Options) -> Hyperparameters:
        """The hyper-parameters of a run's configuration; raises ValueError for an unknown name."""
        known("td", given, [field.name for field in fields(cls)])
        return cls(**given)


class Learner:
    """A run's network and the games of its threads; one call of `learn` places some pieces in each."""

    def __init__(self, config: Config) -> None:
        self.config, self.step = config, 0
        self.hyperparameters = h = Hyperparameters.read(config.hyperparameters)
        kwargs = config.env_kwargs
        rules = TetrisPlayer.rules_of(config.env_id, kwargs)  # raises ValueError for another game
        if kwargs["reward"] != "lines" or kwargs["shaping"] is not None:
            raise ValueError(f"env_kwargs are {kwargs}; td takes no reward but lines, and no shaping")
        self.rules, self.shape = rules, shape_of(h.blocks, h.features, rules)
        self.weights = np.zeros(self.shape.size, dtype=F)
        self.coherence = np.zeros(2 * self.shape.size if h.coherence else 0, dtype=F)
        self._kernel = learning_kernel(network_class(self.shape), rules.placements == "slide")
        cap = U(config.max_episode_steps or 0)
        self._numbers = Numbers(h.learning_rate, h.gamma, h.td_lambda, rules.overflow == "clear_first", cap)
        self._interval = 0
        self._begin(h.threads or cores())

    def _begin(self, threads: int) -> None:
        """Begin the games of so many threads."""
        self.states = self.rules.new_states(threads)
        self.states[:, game.STREAM] = np.random.SeedSequence(self.config.first_seed).generate_state(threads, np.uint64)
        for state in self.states:
            game.start(state, U(0))
        self.workers = np.zeros((threads, WORDS), dtype=np.int64)
        self.paths = [self._new_path() for _ in range(threads)]
        self._scratch = [
            Scratch(np.zeros(MEMO, U), np.zeros(self.rules.cols, U), np.zeros(BIAS), np.empty(0), np.empty(0, np.int64))
            for _ in range(threads)
        ]

    def _new_path(self) -> Path:
        steps = self.hyperparameters.n_steps + 1
        places = np.zeros((steps, self.shape.lookups), np.uint32)
        return Path(places, np.zeros((steps, len(self.shape.features))), np.zeros(steps, np.int64))

    def learn(self) -> dict[str, float]:
        """Place some pieces on each thread and learn from them.

        Returns the number of ``games`` that ended since the last evaluation, and ``lines`` for each of them.
        """
        if self.step // self.config.interval != self._interval:
            self._interval = self.step // self.config.interval
            self.workers[:, (GAMES, LINES)] = 0
        left = min(self.config.timesteps - self.step, self.config.interval - self.step % self.config.interval)
        limit = min(ROUND, -(-left // len(self.states)))
        share(lambda k: self.play_on(k, limit), range(len(self.states)), len(self.states))
        self.step += limit * len(self.states)
        games = int(self.workers[:, GAMES].sum())
        return {"games": games, "lines": int(self.workers[:, LINES].sum()) / max(games, 1)}

    def play_on(self, k: int, limit: int) -> None:
        """Place `limit` pieces on thread `k` and learn from them."""
        game_of_thread = self.states[k], self.workers[k]
        memory = self.weights, self.coherence, self.paths[k], self._scratch[k]
        self._kernel(*game_of_thread, *memory, self._numbers, limit)

    def arrays(self) -> dict[str, Array]:
        """The weights that are not 0, and their places."""
        places = np.flatnonzero(self.weights).astype(np.uint32)
        return {"places": places, "weights": self.weights[places]}

    def network(self) -> dict[str, Any]:
        """The network without its weights."""
        return {"blocks": self.hyperparameters.blocks, "features": list(self.hyperparameters.features)}

    def state(self) -> dict[str, Any]:
        """Everything that the rest of the run depends on."""
        used = np.flatnonzero(self.coherence[1::2]) if self.coherence.size else np.flatnonzero(self.weights)
        state: dict[str, Any] = {"places": used, "weights": self.weights[used]}
        state["coherence"] = self.coherence.reshape(-1, 2)[used if self.coherence.size else slice(0)]
        paths = [
            [array[: worker[HELD]] for array in path] for path, worker in zip(self.paths, self.workers, strict=True)
        ]
        return state | {"states": self.states, "workers": self.workers, "paths": paths, "interval": self._interval}

    def restore(self, step: int, state: Options) -> None:
        """Go back to the `state` after `step` pieces; call it on a new learner.

        Raises ValueError if the state does not fit, as its numbers say where the kernels read and write.
        """
        if len(state["workers"]) != len(self.workers):
            if self.hyperparameters.threads is not None:
                found = f"{len(state['workers'])} threads; here are {len(self.workers)}"
                raise ValueError(f"the run was begun with {found}. Set threads, or begin another run")
            self._begin(len(state["workers"]))  # it was begun on a machine with so many cores
        workers = typed("workers", state["workers"], np.int64, len(self.workers), WORDS)
        within("workers", workers, 0, MOST_COUNTED)
        within("the workers' counts of placements", workers[:, HELD], 0, self.hyperparameters.n_steps)
        states = self.rules.restored(state["states"], self.states)
        if (over := self.rules.over(states)).any():
            raise ValueError(f"game {int(over.argmax())} is over; expected games that are not over")
        used = typed("places", state["places"], np.intp, None)
        within("places", used, 0, self.shape.size - 1)
        weights = typed("weights", state["weights"], F, len(used))
        coherence = typed("coherence", state["coherence"], F, len(used) if self.coherence.size else 0, 2)
        for path, kept, count in zip(self.paths, state["paths"], workers[:, HELD], strict=True):
            self._take_path(path, kept, int(count))
        self.step, self._interval = step, integer("interval", state["interval"], 0)
        self.states, self.workers = states, workers
        self.weights[used] = weights
        if self.coherence.size:
            self.coherence.reshape(-1, 2)[used] = coherence

    def _take_path(self, path: Path, kept: Any, count: int) -> None:
        """Take over a worker's `count` placements from a state; raises ValueError if they do not fit."""
        places, factors, counts = kept
        slots = [FEATURES.index(name) for name in self.shape.features]  # a placement's first places
        typed("a path's places", places, np.uint32, count, self.shape.lookups)
        within("a path's places", places, 0, self.shape.size - 1)
        if (places[:, : len(slots)] != slots).any():
            raise ValueError(f"a path's first places are {places[:, : len(slots)].tolist()}; expected {slots} in each")
        typed("a path's factors", factors, np.float64, count, len(slots))
        typed("a path's counts", counts, np.int64, count)
        within("a path's counts", counts, len(slots) + 1, self.shape.lookups)
        for array, first in zip(path, kept, strict=True):
            array[:count] = first


def check(config: Config, device: str = "auto") -> None:
    """Raise ValueError for a configuration that cannot be trained; `device` is ignored."""
    Learner(config)


def train(run: Run) -> None:
    """Train in a run folder to the end of the run, from its last checkpoint if there is one."""
    train_in_rounds(run, Learner(run.config))
