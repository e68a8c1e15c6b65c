"""Temporal-difference learning of n-tuple networks for 2048, on threads.

The network learns the value V of afterstates: the score still to come. After each move, V of the last afterstate s
moves towards the score and value of the best move that follows,

    V(s) ← V(s) + α · (r + V(s′) − V(s)),

or, with `td_lambda` above 0, towards the λ-return at the end of each game. A run's steps are moves, those of restarted
games included. All threads adjust the same weights, without locks.

Example:
    mergefall train ntuple --preset 2min --out runs/ntuple
    mergefall evaluate runs/ntuple --episodes 100

Sources: Szubert & Jaśkowski (2014), afterstates; Beal & Smith (1999) and Jaśkowski (2018), temporal coherence; Guei,
Chen & Wu (2021), optimistic start, and a fixed step size before temporal coherence; Matsuzaki (2017), restarts; Sutton
& Barto (2018), "Reinforcement Learning", section 8.5, expected and sample backups.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from mergefall.checks import MOST_COUNTED, choice, integer, known, number, typed, within
from mergefall.game2048.packed import area, line_table
from mergefall.games import game_of
from mergefall.threads import cores, share
from mergefall.typing import Array, Options
from mergefall_baselines.game2048.network import TupleNetwork, touched_entries
from mergefall_baselines.game2048.tuples import network_shape
from mergefall_baselines.player import NotFiniteError
from numpy.typing import NDArray

from mergefall_training.learn.ntuple.kernels import PATH, TASK, WORKER, learning_kernel
from mergefall_training.learn.run import Config, Run, read_checkpoint, read_config
from mergefall_training.learn.training import train_in_rounds

BACKUPS = ("sample", "expected")
STARTS = ("new", "restart")
TOTALS = ("games", "score", "moves")  # of a worker, since the last evaluation
U = np.uint64
ROUND = 1_000_000  # moves of one thread, about a second, before Python looks at the keyboard


@dataclass(frozen=True)
class Hyperparameters:
    """The hyper-parameters of a run.

    At the start of a run, when all boards are alike, several threads adjust the same entries at once. Steps of full
    size then overshoot, and some runs with temporal coherence never recover. Half the step size is safe.
    """

    patterns: str = "012345 456789 012456 45689a"  # the network's cells, see `mergefall_baselines.game2048.tuples`
    learning_rate: float = 0.1  # α; each entry takes α / look-ups of the error
    td_lambda: float = 0.0  # λ; 0 learns after each move, more learns backwards over each finished game
    coherence: float = 0.0  # last part of the run that learns with temporal coherence, from 0 to 1
    coherence_rate: float = 0.5  # α with temporal coherence
    optimism: float = 0.0  # initial value of every afterstate; a high one makes the learner try everything
    exploration_rate: float = 0.0  # ε, the probability of a random move; needs td_lambda 0
    backup: str = "sample"  # targets: of the tile that came, or `expected`: mean over all tiles; needs td_lambda 0
    start: str = "new"  # games start anew, or with `restart` also in the middle of the last game
    warm_start: str = ""  # a run folder; begin with the weights and coherence of its last checkpoint
    threads: int | None = None  # default: one per core; only runs on one thread can be repeated exactly

    def __post_init__(self) -> None:
        if not isinstance(self.patterns, str):  # YAML reads 0123 as a number
            raise ValueError(f"patterns is {self.patterns!r}; expected text, such as '0123' in quotation marks")
        if not isinstance(self.warm_start, str):
            raise ValueError(f"warm_start is {self.warm_start!r}; expected a run folder")
        for name in ("learning_rate", "coherence_rate", "optimism"):
            number(name, getattr(self, name), 0)
        for name in ("td_lambda", "coherence", "exploration_rate"):
            number(name, getattr(self, name), 0, 1)
        choice("backup", self.backup, BACKUPS)
        if self.td_lambda and (self.exploration_rate or self.backup == "expected"):
            found = f"td_lambda {self.td_lambda} with exploration_rate {self.exploration_rate}, backup {self.backup!r}"
            raise ValueError(f"{found}; λ-returns need the best moves and the tiles that came, so expected td_lambda 0")
        choice("start", self.start, STARTS)
        if self.threads is not None:
            integer("threads", self.threads, 1)

    @classmethod
    def read(cls, given: Options) -> Hyperparameters:
        """The hyper-parameters of a run's configuration; raises ValueError for an unknown name."""
        known("ntuple", given, [field.name for field in fields(cls)])
        return cls(**given)


class Learner:
    """A run's network and workers; one call of `learn` takes a second or two.

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
        _check_game(config)
        shape = network_shape(h.patterns, config.env_kwargs["rows"], config.env_kwargs["cols"])
        self.model = TupleNetwork(h.patterns, shape.rows, shape.cols, h.optimism / shape.lookups)
        self._begin(h.threads or cores())
        self.coherence = np.zeros(0, dtype=np.float32)  # as large as two networks, so made when it is needed
        self._kernel = learning_kernel(shape)
        self._held: list[Array] = []  # arrays that the tasks know by address
        self._interval = 0

    def _begin(self, threads: int) -> None:
        """Begin the games of so many threads."""
        self.workers = np.zeros(threads, dtype=WORKER)
        self.workers["stream"] = np.random.SeedSequence(self.config.first_seed).generate_state(threads, np.uint64)

    def learn(self) -> dict[str, float]:
        """Play some games on each thread and learn from them.

        Returns the number of new ``games`` since the last evaluation, and their mean ``score``.
        """
        if self.step // self.config.interval != self._interval:
            self._interval = self.step // self.config.interval
            for name in TOTALS:
                self.workers[name] = 0
        tasks, made = self._tasks(), self.workers["moves"].copy()
        left = min(self.config.timesteps - self.step, self.config.interval - self.step % self.config.interval)
        if self.step < self._coherent_from:
            left = min(left, self._coherent_from - self.step)
        limit = min(ROUND, -(-left // len(tasks)))

        def work(which: int) -> None:
            self._kernel(tasks, which, limit)

        share(work, range(len(tasks)), len(tasks))
        if (self.workers["moves"] - made < limit).any():
            raise NotFiniteError("the network's entries are no longer finite; expected a smaller learning_rate")
        games, score, moves = (int(self.workers[name].sum()) for name in TOTALS)
        self.step += moves - int(made.sum())
        return {"games": games, "score": score / max(games, 1)}

    @property
    def _coherent_from(self) -> int:
        """The step from which on temporal coherence sets the steps."""
        return math.ceil((1 - self.hyperparameters.coherence) * self.config.timesteps)

    def _tasks(self) -> NDArray[np.void]:
        """The arguments of the workers' calls in this round: a `TASK` for each."""
        h, network = self.hyperparameters, self.model
        coherent = self.step >= self._coherent_from
        if coherent and not self.coherence.size:
            self.coherence = np.zeros(2 * network.weights.size, dtype=np.float32)
        tasks, lookups = np.zeros(len(self.workers), dtype=TASK), network.shape.lookups
        self._held = []
        tasks["weights"], tasks["entries"] = self._address(network.weights), network.weights.size
        tasks["coherence"], tasks["coherent"] = self._address(self.coherence), coherent
        tasks["row_lines"] = self._address(line_table(network.shape.cols))
        tasks["column_lines"] = self._address(line_table(network.shape.rows))
        tasks["rate"] = (h.coherence_rate if coherent else h.learning_rate) / lookups
        tasks["trace"], tasks["exploration"] = h.td_lambda, h.exploration_rate
        tasks["expected"], tasks["restarts"] = h.backup == "expected", h.start == "restart"
        for i, task in enumerate(tasks):
            task["worker"] = self._address(self.workers[i : i + 1])
            task["places"] = self._address(np.zeros(5 * lookups, dtype=np.uint32))
            task["path"] = self._address(np.zeros(PATH, np.uint64))
            task["gains"] = self._address(np.zeros(PATH, np.float32))
        return tasks

    def _address(self, array: Array) -> int:
        """The address of an array, which the learner keeps alive until the next round."""
        self._held.append(array)
        return array.ctypes.data

    def arrays(self) -> dict[str, Array]:
        """The network's entries, as `TupleNetwork.packed` returns them."""
        return self.model.packed()

    def network(self) -> dict[str, Any]:
        """The network without its entries."""
        return self.model.spec

    def state(self) -> dict[str, Any]:
        """Everything that the rest of the run depends on; of the entries, those that a game has reached."""
        touched = self.model.touched()
        if self.coherence.size:
            touched |= self.coherence[1::2] != 0
        state = {"touched": np.packbits(touched), "weights": self.model.weights[touched]}
        state["coherence"] = self.coherence.reshape(-1, 2)[touched if self.coherence.size else slice(0)]
        words = self.workers.view(np.uint64).reshape(len(self.workers), -1)
        return state | {"workers": words, "interval": self._interval}

    def restore(self, step: int, state: Options) -> None:
        """Go back to the `state` after `step` moves; call it on a new learner.

        Raises ValueError if the state does not fit, as its numbers say where the kernels read and write.
        """
        if len(state["workers"]) != len(self.workers):
            if self.hyperparameters.threads is not None:
                found = f"{len(state['workers'])} threads; here are {len(self.workers)}"
                raise ValueError(f"the run was begun with {found}. Set threads, or begin another run")
            self._begin(len(state["workers"]))  # it was begun on a machine with so many cores
        words = typed("workers", state["workers"], np.uint64, len(self.workers), WORKER.itemsize // 8)
        workers = np.ascontiguousarray(words).view(WORKER).reshape(-1)
        for name in TOTALS:
            within(f"the workers' {name}", workers[name], 0, MOST_COUNTED)
        self._check_starts(workers["start"])
        self._take_over(state)
        self.step, self._interval = step, integer("interval", state["interval"], 0)
        self.workers = workers

    def _check_starts(self, boards: NDArray[np.uint64]) -> None:
        """Raise ValueError unless each packed board is an afterstate with an empty cell, or 0."""
        cells = area(self.model.shape.rows, self.model.shape.cols)  # the lowest bit of each
        tiles = (boards | boards >> U(1) | boards >> U(2) | boards >> U(3)) & cells
        wrong = (boards & ~(cells * U(15)) != 0) | (tiles == cells)
        if wrong.any():
            raise ValueError(f"a game starts from {int(boards[wrong][0]):#x}; expected a board with an empty cell")

    def warm_start(self) -> None:
        """Take over the weights and coherence of the run `warm_start`, if any; raises ValueError if they do not fit."""
        h = self.hyperparameters
        if not h.warm_start:
            return
        there = read_config(h.warm_start)
        if there.algorithm != "ntuple":
            raise ValueError(f"warm_start is {h.warm_start!r}, a run of {there.algorithm}; expected one of ntuple")
        theirs = Hyperparameters.read(there.hyperparameters)
        found = (theirs.patterns, theirs.optimism, there.env_kwargs)
        expected = (h.patterns, h.optimism, self.config.env_kwargs)
        if found != expected:
            raise ValueError(f"{h.warm_start} has patterns, optimism and board {found}; expected {expected}")
        _, state, _ = read_checkpoint(h.warm_start)
        self._take_over(state)

    def _take_over(self, state: Options) -> None:
        """Take over the weights and coherence of a state."""
        touched = touched_entries(state["touched"], self.model.weights.size)
        count = int(np.count_nonzero(touched))
        self.model.weights[touched] = typed("weights", state["weights"], np.float32, count)
        if len(state["coherence"]):
            coherence = typed("coherence", state["coherence"], np.float32, count, 2)
            self.coherence = np.zeros(2 * self.model.weights.size, dtype=np.float32)
            self.coherence.reshape(-1, 2)[touched] = coherence


def _check_game(config: Config) -> None:
    """Raise ValueError for an environment that ntuple cannot learn."""
    kwargs = config.env_kwargs
    if game_of(config.env_id).name != "2048" or kwargs["goal"] is not None or kwargs["reward"] != "score":
        raise ValueError(f"{config.env_id} with {kwargs}; ntuple learns 2048 from its score, without a goal")
    if kwargs["shaping"] is not None or config.max_episode_steps is not None:
        found = f"shaping {kwargs['shaping']}, max_episode_steps {config.max_episode_steps}"
        raise ValueError(f"{found}; ntuple learns from whole games and takes neither")


def check(config: Config, device: str = "auto") -> None:
    """Raise ValueError for a configuration that cannot be trained; `device` is ignored."""
    Learner(config).warm_start()


def train(run: Run) -> None:
    """Train in a run folder to the end of the run, from its last checkpoint if there is one."""
    learner = Learner(run.config)
    train_in_rounds(run, learner, learner.warm_start)
