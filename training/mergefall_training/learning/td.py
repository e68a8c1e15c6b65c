"""Temporal-difference learning of n-tuple networks for 2048: runs, their folders, and what they print.

    config.json      the settings
    curve.jsonl      a header, then one line for each block of games: mean score, tiles, moves, seconds
    checkpoint.npz   all that the run needs to go on from here: exactly, if it has one thread
    network.npz      the finished network (`2048/ntuple`)

Source: Szubert & Jaśkowski (2014), afterstates; Beal & Smith (1999) and Jaśkowski (2018), temporal coherence and the
carousel; Guei, Chen & Wu (2021), optimistic start, and a fixed step size before temporal coherence.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from time import perf_counter
from typing import Any, BinaryIO

import numpy as np
from mergefall.checks import choice, integer, number
from mergefall.game2048.packed import line_table
from mergefall.threads import share
from mergefall_baselines.arrays import read_arrays, write_arrays
from mergefall_baselines.game2048.network import Network
from mergefall_baselines.game2048.tuples import network_shape
from numpy.typing import NDArray
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from mergefall_training.console import console
from mergefall_training.evaluation import SEEDS
from mergefall_training.learning import td_kernels as words
from mergefall_training.learning.td_kernels import PATH, POOL, TASK, TILES, WORDS, learning_kernel
from mergefall_training.records import open_alone, read_lines, write_whole

VERSION = 1
CONFIG, CURVE, CHECKPOINT = "mergefall TD settings", "mergefall TD curve", "mergefall TD checkpoint"
STARTS = ("new", "restart", "carousel")
AT_ONCE = 2_000_000  # moves between two looks at the keyboard, a second or two


@dataclass(frozen=True)
class TDSettings:
    """What is learnt, and how: a run under other settings is another run, but `games` and `threads` may change.

    Args:
        patterns, rows, cols, stages: the network's (`network.Network`).
        games: how many; those from other starts than two random tiles come on top.
        alpha: step size, divided by the look-ups of a board.
        trace: λ. 0 learns after each move; more, backwards over each finished game.
        coherence: the share of the games, at the end, in which each entry's step size is scaled by how much its errors
            agree (temporal coherence); 1 for all.
        coherence_alpha: the step size there.
        optimism: the value of every afterstate at first (divided by the look-ups), so that all is tried.
        start: ``new`` games; ``restart`` also in the middle of the game before, until games are short; ``carousel`` in
            turns also where one of the tiles `carousel` was new.
        threads: they share the weights without locks; runs of several are not repeated exactly.
        block: games between two lines of the curve.
        seed: of the random streams, which are others than those of evaluations.
    """

    patterns: str = "012345 456789 012456 45689a"
    rows: int = 4
    cols: int = 4
    stages: tuple[int, ...] = ()
    games: int = 100_000
    alpha: float = 0.1
    trace: float = 0.0
    coherence: float = 0.0
    coherence_alpha: float = 1.0
    optimism: float = 0.0
    start: str = "new"
    carousel: tuple[int, ...] = ()
    threads: int = 1
    block: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "stages", tuple(self.stages))
        object.__setattr__(self, "carousel", tuple(self.carousel))
        network_shape(self.patterns, self.rows, self.cols, self.stages)
        for name in ("games", "block", "threads"):
            integer(name, getattr(self, name), 1)
        integer("seed", self.seed, 0)
        for name in ("alpha", "coherence_alpha", "optimism"):
            number(name, getattr(self, name), 0)
        for name in ("trace", "coherence"):
            number(name, getattr(self, name), 0, 1)
        choice("start", self.start, STARTS)
        if (self.start == "carousel") != bool(self.carousel):
            raise ValueError(f"start is {self.start!r} with the carousel's tiles {self.carousel}; they go together")
        network_shape("0", stages=self.carousel)  # rising tiles, too

    def coherent(self, game: int) -> bool:
        """Whether a game is learnt from with temporal coherence."""
        return game >= self.games - round(self.coherence * self.games)


@dataclass(frozen=True)
class Block:
    """One line of a curve: the `games` up to number `game` had the `mean` score; `tiles` counts them by largest tile.

    `moves` are those of all games, those from other starts too; `seconds` is the block's own time.
    """

    game: int
    games: int
    mean: float
    moves: int
    seconds: float
    tiles: dict[str, int]


class Learner:
    """The state of a run in memory: a network, what learns it, and how far it is.

    Example:
        >>> learner = Learner(TDSettings("0123", rows=2, cols=2, games=500, block=500, alpha=0.5))
        >>> block = learner.play_block()
        >>> block.games, learner.done
        (500, True)
    """

    def __init__(self, settings: TDSettings) -> None:
        self.settings, self.game, self.seconds = settings, 0, 0.0
        shape = network_shape(settings.patterns, settings.rows, settings.cols, settings.stages)
        first = settings.optimism / shape.lookups
        self.network = Network(settings.patterns, settings.rows, settings.cols, settings.stages, first)
        self.workers = np.zeros((settings.threads, WORDS), dtype=np.uint64)
        self.pools = np.zeros((settings.threads, len(settings.carousel), 1 + POOL), dtype=np.uint64)
        seeds = np.random.SeedSequence([SEEDS, settings.seed]).generate_state(settings.threads, np.uint64)
        self.workers[:, words.STREAM] = seeds
        self.coherence = np.zeros(0, dtype=np.float32)  # made when it is needed: twice as large as the weights
        self._kernel = learning_kernel(shape)
        self._scratch: list[NDArray[Any]] = []

    @property
    def done(self) -> bool:
        """Whether all games are played."""
        return self.game >= self.settings.games

    def play_block(self) -> Block:
        """Play and learn one block of games, or the rest of one that was interrupted.

        Whatever exception comes out of here (KeyboardInterrupt), the state is one to go on from.
        """
        begun = perf_counter()
        if not self._within_block:
            self._begin_block()
        tasks = self._tasks()
        left = list(range(len(self.workers)))
        try:
            while left:
                ended: list[int] = []

                def work(which: int, ended: list[int] = ended) -> None:
                    if self._kernel(tasks, which, AT_ONCE):
                        ended.append(which)

                share(work, left, len(left))
                left = [which for which in left if which not in ended]
        finally:
            self.seconds += perf_counter() - begun
        return self._end_block()

    @property
    def _within_block(self) -> bool:
        return bool(self.workers[:, [words.LEFT, words.START, words.GAMES]].any())

    def _begin_block(self) -> None:
        count = min(self.settings.block, self.settings.games - self.game)
        each, more = divmod(count, len(self.workers))
        self.workers[:, words.LEFT] = each
        self.workers[:more, words.LEFT] += np.uint64(1)
        self.seconds = 0.0

    def _end_block(self) -> Block:
        games, score, moves = (int(self.workers[:, word].sum()) for word in (words.GAMES, words.SCORE, words.MOVES))
        counts = self.workers[:, TILES:].sum(axis=0)
        tiles = {str(1 << rank): int(count) for rank, count in enumerate(counts) if count}
        self.workers[:, words.GAMES :] = 0
        self.game += games
        return Block(self.game, games, score / games, moves, round(self.seconds, 3), tiles)

    def _tasks(self) -> NDArray[np.void]:
        """What the workers' calls need in this block."""
        settings, network = self.settings, self.network
        coherent = settings.coherent(self.game)
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
        tasks["row_lines"] = address(line_table(settings.cols))
        tasks["column_lines"] = address(line_table(settings.rows))
        tasks["tiles"] = address(np.array(settings.carousel, dtype=np.int64))
        tasks["tile_count"], tasks["start"] = len(settings.carousel), STARTS.index(settings.start)
        tasks["rate"] = (settings.coherence_alpha if coherent else settings.alpha) / lookups
        tasks["trace"] = settings.trace
        for i, task in enumerate(tasks):
            task["worker"], task["pools"] = address(self.workers[i]), address(self.pools[i])
            task["places"] = address(np.zeros(5 * lookups, dtype=np.uint32))
            task["path"], task["gains"] = address(np.zeros(PATH, np.uint64)), address(np.zeros(PATH, np.float32))
        return tasks

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a checkpoint, whole or not at all."""
        spec = {"settings": asdict(self.settings), "game": self.game, "seconds": self.seconds}
        arrays = {"weights": self.network.weights, "coherence": self.coherence}
        write_arrays(path, CHECKPOINT, VERSION, spec, arrays | {"workers": self.workers, "pools": self.pools})

    @classmethod
    def load(cls, path: str | os.PathLike[str], settings: TDSettings) -> Learner:
        """A learner as it was when the checkpoint was written; a ValueError for another run's, or a damaged one."""
        spec, arrays, _ = read_arrays(path, CHECKPOINT, VERSION)
        check_same_run(path, settings_from(spec["settings"]), settings)
        learner = cls(settings)
        learner.game, learner.seconds = spec["game"], spec["seconds"]
        learner.network.weights, learner.coherence = arrays["weights"], arrays["coherence"]
        if len(arrays["workers"]) == settings.threads:
            learner.workers, learner.pools = arrays["workers"], arrays["pools"]
        elif arrays["workers"][:, words.GAMES :].any():
            raise ValueError(f"{path} was written within a block; go on with its {len(arrays['workers'])} threads")
        return learner


def settings_from(record: Any) -> TDSettings:
    """Settings from JSON; a ValueError for anything else."""
    if not isinstance(record, dict) or record.keys() != {field.name for field in fields(TDSettings)}:
        raise ValueError(f"found {record!r}; expected TD settings")
    return TDSettings(**record)


def check_same_run(path: str | os.PathLike[str], found: TDSettings, asked: TDSettings) -> None:
    """Raises ValueError if settings differ in more than the number of games and threads."""
    there, here = asdict(found), asdict(asked)
    differences = [
        f"{name} is {there[name]!r} there, {here[name]!r} here"
        for name in there
        if name not in ("games", "threads") and there[name] != here[name]
    ]
    if differences:
        raise ValueError(f"{path} belongs to another run: {'; '.join(differences)}. Choose another folder.")


def train_td(
    settings: TDSettings,
    folder: str | os.PathLike[str],
    *,
    resume: bool = False,
    save_every: float = 600.0,
    progress: bool = True,
) -> Network:
    """Learn a network in a folder; `resume` goes on where a run was interrupted, or finished with fewer games.

    Checkpoints are written every `save_every` seconds, at the end and on an interrupt (Ctrl-C). A ValueError if the
    folder holds another run, or a run that is not to be resumed.
    """
    folder = Path(folder)
    config, checkpoint = folder / "config.json", folder / "checkpoint.npz"
    if config.exists() and not resume:
        raise ValueError(f"{folder} holds a training run; resume it or choose another folder")
    with open_alone(folder / "curve.jsonl", "blocks") as curve:
        if config.exists():
            check_same_run(folder, read_settings(folder), settings)
        about = {"format": CONFIG, "version": VERSION, "settings": asdict(settings)}
        write_whole(config, json.dumps(about, indent=2).encode())
        learner = Learner.load(checkpoint, settings) if checkpoint.exists() else Learner(settings)
        _cut_curve(folder, curve, learner.game)
        saved = perf_counter()
        with _progress(settings, learner.game, progress) as show:
            try:
                while not learner.done:
                    block = learner.play_block()
                    curve.write(json.dumps(asdict(block)).encode() + b"\n")
                    curve.flush()
                    show(block)
                    if perf_counter() - saved >= save_every:
                        learner.save(checkpoint)
                        saved = perf_counter()
            finally:
                learner.save(checkpoint)
        last = read_curve(folder)[-1]
        learner.network.record = {"settings": asdict(settings), "last": asdict(last)}
        learner.network.save(folder / "network.npz")
    return learner.network


def read_settings(folder: str | os.PathLike[str]) -> TDSettings:
    """The settings of the run in a folder; a ValueError if there is none."""
    path = Path(folder) / "config.json"
    if not path.is_file():
        raise ValueError(f"{folder} holds no training run: there is no {path}")
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(record, dict) or (record.get("format"), record.get("version")) != (CONFIG, VERSION):
            raise ValueError(f"expected {CONFIG} of version {VERSION}")
        return settings_from(record.get("settings"))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def read_curve(folder: str | os.PathLike[str]) -> list[Block]:
    """The blocks of the run in a folder, in order."""
    records, _ = read_lines(Path(folder) / "curve.jsonl", "blocks")
    if not records or (records[0].get("format"), records[0].get("version")) != (CURVE, VERSION):
        raise ValueError(f"{folder} holds no {CURVE} of version {VERSION}")
    return [Block(**record) for record in records[1:]]


def _cut_curve(folder: Path, curve: BinaryIO, game: int) -> None:
    """Leave the header and the blocks up to `game`; what comes after the checkpoint is played again."""
    header = json.dumps({"format": CURVE, "version": VERSION}).encode()
    if not (folder / "curve.jsonl").read_bytes().startswith(header + b"\n"):
        read_lines(folder / "curve.jsonl", "blocks", torn_header=header)
        curve.truncate(0)
        curve.write(header + b"\n")
        curve.flush()
        return
    blocks = read_curve(folder)
    kept = [json.dumps(asdict(block)).encode() for block in blocks if block.game <= game]
    curve.truncate(sum(len(line) + 1 for line in [header, *kept]))


@contextmanager
def _progress(settings: TDSettings, game: int, enabled: bool) -> Iterator[Callable[[Block], None]]:
    """A bar on stderr with the last block's mean score and speed; it yields what takes each block."""
    columns = (TextColumn("{task.description}"), BarColumn(bar_width=20), MofNCompleteColumn())
    columns += (TextColumn("{task.fields[mean]}"), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console(stderr=True), disable=not enabled) as bar:
        row = bar.add_task("games", total=settings.games, completed=game, mean="")

        def show(block: Block) -> None:
            speed = block.moves / max(block.seconds, 1e-3)
            bar.update(row, completed=block.game, mean=f"mean {block.mean:,.0f}, {speed:,.0f} moves/s")

        yield show
