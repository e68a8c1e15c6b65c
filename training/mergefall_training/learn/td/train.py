"""Temporal-difference learning of Tetris on afterstates: linear controllers and tuple networks, TD(λ).

What is learnt is how many pieces will still be placed, each counting γ times the one before: that says the same as
lines, which are 2 for 5 pieces of 4 cells on 10 columns, but is paid for each piece, so that there is something to
learn from before the first line is cleared. Every placement is the one of highest value; what chance does to the games
is exploration enough. A run's steps are pieces.

Each thread plays a game of its own and learns from it after some pieces, last one first: the value of a placement tends
to

    1 + γ · ((1 − λ) · [value of the next] + λ · [what that one tends to]),

and where the next one ends the game, to 0. The threads share the weights without locks. The step is divided by the
number of weights that a value is made of. With temporal coherence a weight whose errors cancel out learns slower.

Sources: Bertsekas & Tsitsiklis, Neuro-dynamic programming (1996), for λ; Beal & Smith, Temporal coherence and
prediction decay in TD learning (1999); Jaśkowski et al. (2015; `mergefall_baselines.tetris.network`), for the networks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from typing import Any

import numpy as np
from mergefall.checks import integer, known, number, typed, within
from mergefall.kernels import kernel, unowned
from mergefall.tetris import batch, game
from mergefall.tetris.field import place
from mergefall.tetris.heuristics import MEMO
from mergefall.tetris.heuristics.linear import FEATURES
from mergefall.tetris.placements import column_of, rotation_of, row_of
from mergefall.threads import cores, share
from mergefall_baselines.tetris.greedy import best_kernel
from mergefall_baselines.tetris.network import BIAS, locating_kernel, network_class
from mergefall_baselines.tetris.player import TetrisPlayer
from numpy.typing import NDArray

from mergefall_training.learn.rounds import train_in_rounds
from mergefall_training.learn.run import Config, Run
from mergefall_training.learn.td.player import shape_of

U, F = np.uint64, np.float32
ROUND = 20_000  # pieces of one thread between two looks at the keyboard
GAMES, LINES, COUNT, WORDS = range(4)  # what a worker's games came to, and how many placements it has in its hands
# What the features are multiplied by for learning, by their size in play, so that none drowns the others.
SCALES = np.array([0.1, 0.5, 1, 0.03, 0.05, 0.1, 0.1, 0.05, 0.2, 0.3])


@dataclass(frozen=True)
class Hyperparameters:
    """What may be set."""

    blocks: str = "3x3"  # of the network, ROWSxCOLUMNS each; empty for a linear controller
    features: tuple[str, ...] = ()  # of the network: some of `linear.FEATURES`
    learning_rate: float = 0.5  # α
    gamma: float = 0.99
    td_lambda: float = 0.5
    coherence: bool = True  # temporal coherence
    n_steps: int = 256  # pieces after which a thread learns from them
    threads: int | None = None  # one per core unless told; only runs of one thread can be repeated exactly

    def __post_init__(self) -> None:
        number("learning_rate", self.learning_rate, above=0)
        for name in ("gamma", "td_lambda"):
            number(name, getattr(self, name), 0, 1)
        if not isinstance(self.coherence, bool):
            raise ValueError(f"coherence is {self.coherence!r}; expected true or false")
        integer("n_steps", self.n_steps, 1)
        if self.threads is not None:
            integer("threads", self.threads, 1)
        if not isinstance(self.features, list | tuple):
            raise ValueError(f"features is {self.features!r}; expected a list")
        object.__setattr__(self, "features", tuple(self.features))

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> Hyperparameters:
        """From a run's configuration; a ValueError for what there is not."""
        known("td", given, [field.name for field in fields(cls)])
        return cls(**given)


@cache
def learning_kernel(cls: Any, slides: bool) -> Any:
    """The kernel that plays and learns, for networks of one class."""
    _, _, _, prepare, leaf = cls.kernels()
    best, locate = best_kernel(leaf, slides, "lowest", False, cls.name), locating_kernel(cls.shape)
    features, name = len(cls.shape.features), f"{cls.name}-{slides}"

    @kernel(variant=name)
    def factor(factors, k):
        return factors[k] if k < features else 1.0

    @kernel(variant=name)
    def value_of(weights, places, factors, count):
        value = 0.0
        for k in range(count):
            value += np.float64(weights[places[k]]) * factor(factors, k)
        return value

    @kernel(variant=name)
    def learn(weights, coherence, places, factors, count, error, rate):
        """Move the value of a placement by a part of its error; returns what it is then."""
        for k in range(count):
            at, change = U(places[k]), error
            if k < features:
                change *= factors[k] * SCALES[at] ** 2
            step = rate / count
            if coherence.size:
                net, size = np.float64(coherence[U(2) * at]), np.float64(coherence[U(2) * at + U(1)])
                coherence[U(2) * at], coherence[U(2) * at + U(1)] = F(net + change), F(size + abs(change))
                if size > 0:
                    step *= abs(net) / size
            weights[at] = F(np.float64(weights[at]) + step * change)
        return value_of(weights, places, factors, count)

    @kernel(variant=name)
    def learn_backwards(weights, coherence, path, count, over, rate, gamma, trace):
        """Learn from the placements in `path`, last one first; of a game that goes on all but the last."""
        places, factors, counts = path
        target, last = 0.0, count - 1
        if not over:
            target = value_of(weights, places[last], factors[last], counts[last])
            last -= 1
        value, paid = target, 0.0 if over else 1.0
        for t in range(last, -1, -1):
            target = paid + gamma * (trace * target + (1 - trace) * value)
            now = value_of(weights, places[t], factors[t], counts[t])
            value, paid = learn(weights, coherence, places[t], factors[t], counts[t], target - now, rate), 1.0

    @kernel(variant=name)
    def play_on(state, worker, weights, coherence, path, scratch, numbers, limit):
        """Place `limit` pieces, learning from them."""
        state, weights, coherence, path = unowned((state, weights, coherence, path))
        worker, scratch = unowned(worker), unowned(scratch)
        places, factors, counts = path
        memo, copy, found, empty, ranks = scratch
        rate, gamma, trace, clear_first, cap = numbers
        columns, (_, rows) = game.columns_in(state), game.size_of(state)
        for _ in range(limit):
            piece = game.table_row(state, game.queued(state, 0))
            prepare(columns, rows, weights, memo)
            placement, worth = best(columns, piece, rows, clear_first, weights, memo, copy, ranks, empty)
            over = worth == -np.inf
            if not over:
                y, rotation, column, k = row_of(placement), rotation_of(placement), column_of(placement), worker[COUNT]
                lines, own, _ = place(columns, piece, rotation, column, y, rows, clear_first)
                counts[k] = locate(columns, piece, rotation, column, y, lines, own, places[k], found)
                for i in range(features):
                    factors[k, i] = found[places[k, i]]
                worker[COUNT] += 1
                worker[LINES] += lines
                state[game.PIECES] += U(1)
                game.advance(state)
            capped = state[game.PIECES] == cap
            if over or capped or worker[COUNT] == len(counts):
                count = worker[COUNT]
                if count:
                    learn_backwards(weights, coherence, path, count, over, rate, gamma, trace)
                worker[COUNT] = 0
                if over or capped:
                    worker[GAMES] += 1
                    game.start(state, U(0))
                else:
                    counts[0], worker[COUNT] = counts[count - 1], 1
                    for i in range(counts[0]):
                        places[0, i] = places[count - 1, i]
                    for i in range(features):
                        factors[0, i] = factors[count - 1, i]

    return play_on


class Learner:
    """A run's network and the games its threads play; `learn` is some pieces of each."""

    def __init__(self, config: Config) -> None:
        self.config, self.step = config, 0
        self.hyperparameters = h = Hyperparameters.read(config.hyperparameters)
        kwargs = config.env_kwargs
        rules = TetrisPlayer.rules_of(config.env_id, kwargs)  # a ValueError for another game
        if kwargs["reward"] != "lines" or kwargs["shaping"] is not None:
            raise ValueError(f"env_kwargs are {kwargs}; td takes no reward but lines, and no shaping")
        self.rules, self.shape = rules, shape_of(h.blocks, h.features, rules)
        threads = h.threads or cores()
        self.weights = np.zeros(self.shape.size, dtype=F)
        self.coherence = np.zeros(2 * self.shape.size if h.coherence else 0, dtype=F)
        self.states = rules.new_states(threads)
        self.states[:, game.STREAM] = np.random.SeedSequence(config.first_seed).generate_state(threads, np.uint64)
        for state in self.states:
            game.start(state, U(0))
        self.workers = np.zeros((threads, WORDS), dtype=np.int64)
        steps = h.n_steps + 1
        self.paths = [
            (
                np.zeros((steps, self.shape.lookups), np.uint32),
                np.zeros((steps, len(h.features))),
                np.zeros(steps, np.int64),
            )
            for _ in range(threads)
        ]
        self._kernel = learning_kernel(network_class(self.shape), rules.placements == "slide")
        cap = U(config.max_episode_steps or 0)  # no game has 0 pieces when it is asked
        self._numbers = h.learning_rate, h.gamma, h.td_lambda, rules.overflow == "clear_first", cap
        self._scratch = [
            (np.zeros(MEMO, U), np.zeros(rules.cols, U), np.zeros(BIAS), np.empty(0), np.empty(0, np.int64))
            for _ in range(threads)
        ]
        self._interval = 0

    def learn(self) -> dict[str, float]:
        """Place some pieces on each thread and learn from them; returns figures since the last evaluation."""
        if self.step // self.config.interval != self._interval:
            self._interval = self.step // self.config.interval
            self.workers[:, (GAMES, LINES)] = 0
        left = min(self.config.timesteps - self.step, self.config.interval - self.step % self.config.interval)
        limit = min(ROUND, -(-left // len(self.states)))

        def work(k: int) -> None:
            self._kernel(
                self.states[k],
                self.workers[k],
                self.weights,
                self.coherence,
                self.paths[k],
                self._scratch[k],
                self._numbers,
                limit,
            )

        share(work, range(len(self.states)), len(self.states))
        self.step += limit * len(self.states)
        games = int(self.workers[:, GAMES].sum())
        return {"games": games, "lines": int(self.workers[:, LINES].sum()) / max(games, 1)}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The weights that are not 0, and where they are."""
        places = np.flatnonzero(self.weights).astype(np.uint32)
        return {"places": places, "weights": self.weights[places]}

    def network(self) -> dict[str, Any]:
        """What network it is."""
        return {"blocks": self.hyperparameters.blocks, "features": list(self.hyperparameters.features)}

    def state(self) -> dict[str, Any]:
        """All that goes on."""
        used = np.flatnonzero(self.coherence[1::2]) if self.coherence.size else np.flatnonzero(self.weights)
        state: dict[str, Any] = {"places": used, "weights": self.weights[used]}
        state["coherence"] = self.coherence.reshape(-1, 2)[used if self.coherence.size else slice(0)]
        paths = [
            [array[: worker[COUNT]] for array in path] for path, worker in zip(self.paths, self.workers, strict=True)
        ]
        return state | {"states": self.states, "workers": self.workers, "paths": paths, "interval": self._interval}

    def restore(self, step: int, state: Mapping[str, Any]) -> None:
        """Go back to what `state` returned after `step` pieces; this one must be new."""
        if len(state["workers"]) != len(self.workers):
            found = f"{len(state['workers'])} threads; here are {len(self.workers)}"
            raise ValueError(f"the run was begun with {found}. Set threads, or begin another run")
        workers = typed("workers", state["workers"], np.int64, len(self.workers), WORDS)
        within("workers", workers, 0, int(game.MOST_COUNTED))
        within("the workers' counts of placements", workers[:, COUNT], 0, self.hyperparameters.n_steps)
        states = self.rules.restored(state["states"], self.states)
        if (over := batch.over(states, self.rules)).any():
            raise ValueError(f"game {int(over.argmax())} is over; expected games that go on")
        used = typed("places", state["places"], np.intp, None)
        within("places", used, 0, self.shape.size - 1)
        weights = typed("weights", state["weights"], F, len(used))
        coherence = typed("coherence", state["coherence"], F, len(used) if self.coherence.size else 0, 2)
        for path, kept, count in zip(self.paths, state["paths"], workers[:, COUNT], strict=True):
            self._take_path(path, kept, int(count))
        self.step, self._interval = step, integer("interval", state["interval"], 0)
        self.states, self.workers = states, workers
        self.weights[used] = weights
        if self.coherence.size:
            self.coherence.reshape(-1, 2)[used] = coherence

    def _take_path(self, path: Any, kept: Any, count: int) -> None:
        """Take over the placements that a worker has in its hands; a ValueError if they are no such."""
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
    """Train in a run folder to its end; from its last checkpoint, if there is one."""
    train_in_rounds(run, Learner(run.config))
