"""Temporal-difference learning of n-tuple networks for 2048: what is set, what is learnt, round by round.

A run's steps are moves, those of games from other starts included. Its threads share the weights without locks.

Source: Szubert & Jaśkowski (2014), afterstates; Beal & Smith (1999) and Jaśkowski (2018), temporal coherence and the
carousel; Guei, Chen & Wu (2021), optimistic start, and a fixed step size before temporal coherence; Sutton & Barto
(2018), "Reinforcement Learning", section 8.5, expected and sample backups.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from mergefall.checks import choice, integer, known, number, typed, within
from mergefall.game2048.packed import area, line_table
from mergefall.threads import cores, share
from mergefall_baselines.game2048.network import Network, touched_entries
from mergefall_baselines.game2048.tuples import network_shape
from mergefall_baselines.player import NotFiniteError
from numpy.typing import NDArray

from mergefall_training.learn.ntuple import kernels as words
from mergefall_training.learn.ntuple.kernels import PATH, POOL, TASK, WORDS, learning_kernel
from mergefall_training.learn.rounds import train_in_rounds
from mergefall_training.learn.run import Config, Run, read_checkpoint, read_config

BACKUPS = ("sample", "expected")
STARTS = ("new", "restart", "carousel")
U = np.uint64
MOST_COUNTED = 1 << 53  # of moves, games and their score: more than any run comes to
ROUND = 1_000_000  # moves of one thread between two looks at the keyboard, about a second


@dataclass(frozen=True)
class Hyperparameters:
    """What may be set.

    Where several threads learn, they adjust the same entries at once at the start of a run, when all boards are alike:
    steps of full size then overshoot, and with temporal coherence some runs never recover. Half of it is safe.
    """

    patterns: str = "012345 456789 012456 45689a"  # the network's (`network.Network`)
    stages: tuple[int, ...] = ()  # the network's, in tiles
    learning_rate: float = 0.1  # α: divided by the look-ups of a board
    td_lambda: float = 0.0  # 0 learns after each move; more, backwards over each finished game
    coherence: float = 0.0  # the share of the run, at its end, with temporal coherence: steps as errors agree
    coherence_rate: float = 0.5  # α there
    optimism: float = 0.0  # the value of every afterstate at first, so that all is tried
    exploration_rate: float = 0.0  # ε: the share of moves that are drawn from the legal ones; only with td_lambda 0
    backup: str = "sample"  # targets from the tile that came, or `expected`: the mean over all that may; td_lambda 0
    start: str = "new"  # games; `restart`: also in the middle of the last one; `carousel`: also where a tile was new
    carousel: tuple[int, ...] = ()  # these tiles
    warm_start: str = ""  # a run folder: begin with what its last checkpoint knows; this run may have further stages
    threads: int | None = None  # one per core unless told; only runs of one thread can be repeated exactly

    def __post_init__(self) -> None:
        if not isinstance(self.patterns, str):  # YAML takes 0123 for a number
            raise ValueError(f"patterns is {self.patterns!r}; expected text, such as '0123' in quotation marks")
        if not isinstance(self.warm_start, str):
            raise ValueError(f"warm_start is {self.warm_start!r}; expected a run folder")
        for name in ("stages", "carousel"):
            if not isinstance(getattr(self, name), list | tuple):
                raise ValueError(f"{name} is {getattr(self, name)!r}; expected a list of tiles")
            object.__setattr__(self, name, tuple(getattr(self, name)))
        network_shape("0", stages=self.stages)  # tiles that rise
        network_shape("0", stages=self.carousel)
        for name in ("learning_rate", "coherence_rate", "optimism"):
            number(name, getattr(self, name), 0)
        for name in ("td_lambda", "coherence", "exploration_rate"):
            number(name, getattr(self, name), 0, 1)
        choice("backup", self.backup, BACKUPS)
        if self.td_lambda and (self.exploration_rate or self.backup == "expected"):
            found = f"td_lambda {self.td_lambda} with exploration_rate {self.exploration_rate}, backup {self.backup!r}"
            raise ValueError(f"{found}; λ-returns are those of moves and tiles as they came, so expected td_lambda 0")
        choice("start", self.start, STARTS)
        if (self.start == "carousel") != bool(self.carousel):
            raise ValueError(f"start is {self.start!r} with the carousel's tiles {self.carousel}; they go together")
        if self.threads is not None:
            integer("threads", self.threads, 1)

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> Hyperparameters:
        """From a run's configuration; a ValueError for what is no hyper-parameter."""
        known("ntuple", given, [field.name for field in fields(cls)])
        return cls(**given)


class Learner:
    """A run's network, and how far it is; `learn` is a second of games or two.

    Example:
        >>> changed = {"patterns": "0123", "learning_rate": 0.5, "threads": 1}
        >>> learner = Learner(Config("ntuple", "mergefall/Game2048-v0", {"rows": 2, "cols": 2}, changed, 5000, 5000))
        >>> figures = learner.learn()
        >>> learner.step >= 5000, figures["games"] > 100
        (True, True)
    """

    def __init__(self, config: Config) -> None:
        self.config, self.step = config, 0
        self.hyperparameters = h = Hyperparameters.read(config.hyperparameters)
        kwargs = config.env_kwargs
        if not (config.env_id.endswith("Game2048-v0") and kwargs["goal"] is None and kwargs["reward"] == "score"):
            raise ValueError(f"{config.env_id} with {kwargs}; ntuple learns 2048 from its score, without a goal")
        if kwargs["shaping"] is not None or config.max_episode_steps is not None:
            found = f"shaping {kwargs['shaping']}, max_episode_steps {config.max_episode_steps}"
            raise ValueError(f"{found}; ntuple learns from whole games and takes neither")
        shape = network_shape(h.patterns, kwargs["rows"], kwargs["cols"], h.stages)
        self.model = Network(h.patterns, shape.rows, shape.cols, h.stages, h.optimism / shape.lookups)
        threads = h.threads or cores()
        self.workers = np.zeros((threads, WORDS), dtype=np.uint64)
        self.workers[:, words.STREAM] = np.random.SeedSequence(config.first_seed).generate_state(threads, np.uint64)
        self.pools = np.zeros((threads, len(h.carousel), 1 + POOL), dtype=np.uint64)
        self.coherence = np.zeros(0, dtype=np.float32)  # made when it is needed: twice as large as the weights
        self._kernel = learning_kernel(shape)
        self._scratch: list[NDArray[Any]] = []
        self._interval = 0

    def learn(self) -> dict[str, float]:
        """Play some games on each thread and learn from them; returns figures of those since the last evaluation.

        They are the number of new `games` and their mean `score`.
        """
        if self.step // self.config.interval != self._interval:
            self._interval = self.step // self.config.interval
            self.workers[:, words.GAMES :] = 0
        tasks, made = self._tasks(), self.workers[:, words.MOVES].copy()
        left = min(self.config.timesteps - self.step, self.config.interval - self.step % self.config.interval)
        limit = min(ROUND, -(-left // len(tasks)))

        def work(which: int) -> None:
            self._kernel(tasks, which, limit)

        share(work, range(len(tasks)), len(tasks))
        if (self.workers[:, words.MOVES] - made < limit).any():
            raise NotFiniteError("the network's entries are no longer finite; expected a smaller learning_rate")
        games, score, moves = (int(self.workers[:, word].sum()) for word in (words.GAMES, words.SCORE, words.MOVES))
        self.step += moves - int(made.sum())
        return {"games": games, "score": score / max(games, 1)}

    def _tasks(self) -> NDArray[np.void]:
        """What the workers' calls need in this round."""
        h, network = self.hyperparameters, self.model
        coherent = self.step >= (1 - h.coherence) * self.config.timesteps
        if coherent and not self.coherence.size:
            self.coherence = np.zeros(2 * network.weights.size, dtype=np.float32)
        tasks = np.zeros(len(self.workers), dtype=TASK)
        self._scratch = []

        def address(array: NDArray[Any]) -> int:
            self._scratch.append(array)
            return array.ctypes.data

        lookups = network.shape.lookups
        tasks["weights"], tasks["entries"] = address(network.weights), network.weights.size
        tasks["coherence"], tasks["coherent"] = address(self.coherence), coherent
        tasks["row_lines"] = address(line_table(network.shape.cols))
        tasks["column_lines"] = address(line_table(network.shape.rows))
        tasks["tiles"] = address(np.array(h.carousel, dtype=np.int64))
        tasks["tile_count"], tasks["start"] = len(h.carousel), STARTS.index(h.start)
        tasks["rate"] = (h.coherence_rate if coherent else h.learning_rate) / lookups
        tasks["trace"], tasks["exploration"] = h.td_lambda, h.exploration_rate
        tasks["expected"] = h.backup == "expected"
        for i, task in enumerate(tasks):
            task["worker"], task["pools"] = address(self.workers[i]), address(self.pools[i])
            task["places"] = address(np.zeros(5 * lookups, dtype=np.uint32))
            task["path"], task["gains"] = address(np.zeros(PATH, np.uint64)), address(np.zeros(PATH, np.float32))
        return tasks

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The network's entries (`Network.packed`)."""
        return self.model.packed()

    def network(self) -> dict[str, Any]:
        """What network it is."""
        return self.model.spec

    def state(self) -> dict[str, Any]:
        """All that goes on, without the entries that no game came to: most of a large network's."""
        touched = self.model.touched()
        if self.coherence.size:
            touched |= self.coherence[1::2] != 0
        state = {"touched": np.packbits(touched), "weights": self.model.weights[touched]}
        state["coherence"] = self.coherence.reshape(-1, 2)[touched if self.coherence.size else slice(0)]
        return state | {"workers": self.workers, "pools": self.pools, "interval": self._interval}

    def restore(self, step: int, state: Mapping[str, Any]) -> None:
        """Go back to what `state` returned after `step` moves; this one must be new."""
        if len(state["workers"]) != len(self.workers):
            found = f"{len(state['workers'])} threads; here are {len(self.workers)}"
            raise ValueError(f"the run was begun with {found}. Set threads, or begin another run")
        workers = typed("workers", state["workers"], np.uint64, *self.workers.shape)
        pools = typed("pools", state["pools"], np.uint64, *self.pools.shape)
        within("workers", workers[:, words.GAMES :], 0, MOST_COUNTED)
        within("the workers' turns", workers[:, words.TURN], 0, pools.shape[1])
        within("the pools' counts", pools[:, :, 0], 0, MOST_COUNTED)
        self._check_afterstates(workers[:, words.START], workers[:, words.START] != 0)
        self._check_afterstates(pools[:, :, 1:], np.arange(POOL) < pools[:, :, :1])
        self._know(state, self.model.weights.size)
        self.step, self._interval = step, integer("interval", state["interval"], 0)
        self.workers, self.pools = workers, pools

    def _check_afterstates(self, boards: NDArray[np.uint64], there: NDArray[np.bool_]) -> None:
        """A ValueError if games cannot go on from some of these boards: those that are `there`; the others are 0."""
        cells = area(self.model.shape.rows, self.model.shape.cols)  # the lowest bit of each
        tiles = (boards | boards >> U(1) | boards >> U(2) | boards >> U(3)) & cells
        wrong = (boards & ~(cells * U(15)) != 0) | (tiles == cells) | ((boards != 0) != there)
        if wrong.any():
            raise ValueError(f"a game starts from {int(boards[wrong][0]):#x}; expected a board with an empty cell")

    def warm_start(self) -> None:
        """If told so, begin with the weights and coherence of another run; a ValueError if they do not fit."""
        h = self.hyperparameters
        if not h.warm_start:
            return
        there = read_config(h.warm_start)
        if there.algorithm != "ntuple":
            raise ValueError(f"warm_start is {h.warm_start!r}, a run of {there.algorithm}; expected one of ntuple")
        theirs = Hyperparameters.read(there.hyperparameters)
        found = (theirs.patterns, theirs.optimism, there.env_kwargs, theirs.stages)
        expected = (h.patterns, h.optimism, self.config.env_kwargs, h.stages[: len(theirs.stages)])
        if found != expected:
            raise ValueError(f"{h.warm_start} has patterns, optimism, board and stages {found}; expected {expected}")
        _, state, _ = read_checkpoint(h.warm_start)
        self._know(state, self.model.shape.size * (1 + len(theirs.stages)))

    def _know(self, state: Mapping[str, Any], entries: int) -> None:
        """Take over the first `entries` weights and their coherence from a state."""
        touched = touched_entries(state["touched"], entries)
        count = int(np.count_nonzero(touched))
        self.model.weights[:entries][touched] = typed("weights", state["weights"], np.float32, count)
        if len(state["coherence"]):
            coherence = typed("coherence", state["coherence"], np.float32, count, 2)
            self.coherence = np.zeros(2 * self.model.weights.size, dtype=np.float32)
            self.coherence.reshape(-1, 2)[:entries][touched] = coherence


def check(config: Config, device: str = "auto") -> None:
    """Raise ValueError for a configuration that cannot be trained; `device` is ignored."""
    Learner(config).warm_start()


def train(run: Run) -> None:
    """Train in a run folder to its end; from its last checkpoint, if there is one."""
    learner = Learner(run.config)
    train_in_rounds(run, learner, learner.warm_start)
