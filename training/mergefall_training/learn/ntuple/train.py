"""Temporal-difference learning of n-tuple networks for 2048, on threads.

The network learns the value V of afterstates: the score still to come. After each move, V of the last afterstate s
moves towards the score and value of the best move that follows,

    V(s) ← V(s) + α · (r + V(s′) − V(s)).

A run's steps are moves. All threads adjust the same weights, without locks.

Example::

    mergefall train ntuple --out runs/ntuple
    mergefall evaluate runs/ntuple --episodes 100

Sources: Szubert & Jaśkowski (2014), afterstates; Beal & Smith (1999) and Jaśkowski (2018), temporal coherence; Guei,
Chen & Wu (2021), optimistic start, and a fixed step size before temporal coherence.
"""

import math
from dataclasses import dataclass

import numpy as np
from mergefall.checks import integer, number, typed
from mergefall.game2048.packed import line_table
from mergefall.games import game_of
from mergefall.threads import cores, share
from mergefall.typing import Array, Dict, Options, Words
from mergefall_baselines.game2048.network import TupleNetwork, touched_entries
from mergefall_baselines.game2048.tuples import network_shape
from mergefall_baselines.player import NotFiniteError

from mergefall_training.learn import training
from mergefall_training.learn.ntuple.kernels import GAMES, MOVES, SCORE, STREAM, Arrays, learning_kernel
from mergefall_training.learn.run import Config
from mergefall_training.learn.training import hyperparameters_of

ROUND = 1_000_000  # moves of one thread, about a second, before Python looks at the keyboard


@dataclass(frozen=True)
class Hyperparameters:
    """The hyper-parameters of a run.

    At the start of a run, when all boards are alike, several threads adjust the same entries at once. Steps of full
    size then overshoot, and some runs with temporal coherence never recover. Half the step size is safe.

    - `patterns`: the network's cells, see `mergefall_baselines.game2048.tuples`.
    - `learning_rate`: α; each entry takes α / look-ups of the error.
    - `coherence`: last part of the run that learns with temporal coherence, from 0 to 1.
    - `coherence_rate`: α with temporal coherence.
    - `optimism`: initial value of every afterstate; a high one makes the learner try everything.
    - `warm_start`: a run folder; begin with the weights and coherence of its last checkpoint.
    - `threads`: default: one per core; only runs on one thread can be repeated exactly.
    """

    patterns: str = "012345 456789 012456 45689a"
    learning_rate: float = 0.1
    coherence: float = 0.0
    coherence_rate: float = 0.5
    optimism: float = 0.0
    warm_start: str = ""
    threads: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.patterns, str):  # YAML reads 0123 as a number
            raise ValueError(f"patterns is {self.patterns!r}; expected text, such as '0123' in quotation marks")
        number("learning_rate", self.learning_rate, 0)


class Learner(training.Learner):
    """A run's network and workers; one call of `learn` takes a second or two."""

    alike = "patterns", "optimism"

    def __init__(self, config: Config, device: str = "auto") -> None:
        self.config, self.step = config, 0
        self.hyperparameters = h = hyperparameters_of(Hyperparameters, config)
        kwargs, name = config.env_kwargs, game_of(config.env_id).name
        if name != "2048" or kwargs["goal"] is not None or kwargs["reward"] != "score" or kwargs["shaping"] is not None:
            raise ValueError(f"{config.env_id}, {kwargs}; ntuple learns 2048 from its score, without goal or shaping")
        if config.max_episode_steps is not None:
            raise ValueError(f"max_episode_steps is {config.max_episode_steps}; ntuple learns from whole games")
        shape = network_shape(h.patterns, kwargs["rows"], kwargs["cols"])
        self.model = TupleNetwork(h.patterns, shape.rows, shape.cols, h.optimism / shape.lookups)
        self.workers = np.zeros((h.threads or cores(), 4), dtype=np.uint64)
        streams = np.random.SeedSequence(config.first_seed).generate_state(len(self.workers), np.uint64)
        self.workers[:, STREAM] = streams
        # Zeros take no memory until they are written.
        self.coherence = np.zeros((self.model.weights.size, 2), dtype=np.float32)
        self._interval = 0

    def learn(self) -> dict[str, float]:
        """Play some games on each thread and learn from them.

        Returns the number of ``games`` since the last evaluation, and their mean ``score``.
        """
        h, config, network, shape = self.hyperparameters, self.config, self.model, self.model.shape
        if self.step // config.interval != self._interval:
            self._interval = self.step // config.interval
            self.workers[:, [GAMES, SCORE, MOVES]] = 0
        coherent_from = math.ceil((1 - h.coherence) * config.timesteps)
        made, coherent = self.workers[:, MOVES].copy(), self.step >= coherent_from
        ends = config.timesteps, config.interval * (self._interval + 1), coherent_from
        left = min(end for end in ends if end > self.step) - self.step
        limit = min(ROUND, -(-left // len(self.workers)))
        rate = np.float32((h.coherence_rate if coherent else h.learning_rate) / shape.lookups)
        tables, play_on = (line_table(shape.cols), line_table(shape.rows)), learning_kernel(shape)

        def work(worker: Words) -> None:
            places = np.zeros(5 * shape.lookups, dtype=np.uint32)
            arrays = Arrays(network.weights, self.coherence.reshape(-1), *tables, places)
            play_on(worker, arrays, rate, coherent, limit)

        share(work, self.workers, len(self.workers))
        if (self.workers[:, MOVES] - made < limit).any():
            raise NotFiniteError("the network's entries are no longer finite; expected a smaller learning_rate")
        games, score, moves = (int(self.workers[:, word].sum()) for word in (GAMES, SCORE, MOVES))
        self.step += moves - int(made.sum())
        return {"games": games, "score": score / max(games, 1)}

    def arrays(self) -> dict[str, Array]:
        return self.model.packed()

    def network(self) -> Dict:
        return self.model.spec

    def state(self) -> Dict:
        erred = self.coherence[:, 1] != 0
        touched = self.model.touched() | erred
        return {
            "touched": np.packbits(touched),
            "weights": self.model.weights[touched],
            "coherence": self.coherence[touched & erred.any()],
            "workers": self.workers,
            "interval": self._interval,
        }

    def restore(self, step: int, state: Options) -> None:
        """Go back to the `state` after `step` moves; call it on a new learner.

        Raises ValueError if the state does not fit, as its numbers say where the kernels read and write.
        """
        begun, asked = len(state["workers"]), self.hyperparameters.threads
        if asked not in (begun, None):  # without it, the run goes on as on the machine that it was begun on
            raise ValueError(
                f"the run was begun with {begun} threads; here are {asked}. Set threads, or begin another run"
            )
        self.workers = typed("workers", state["workers"], np.uint64, begun, 4)
        self.step, self._interval = step, integer("interval", state["interval"], 0)
        self.take_over(state)

    def take_over(self, state: Options) -> None:
        """Take over the weights and coherence of a state."""
        touched = touched_entries(state["touched"], self.model.weights.size)
        count = int(np.count_nonzero(touched))
        self.model.weights[touched] = typed("weights", state["weights"], np.float32, count)
        if len(state["coherence"]):
            self.coherence[touched] = typed("coherence", state["coherence"], np.float32, count, 2)
