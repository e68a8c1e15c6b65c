"""Evaluation: play many whole games in parallel, record each as it ends, and say what they show.

Episode k of an evaluation is the episode from ``reset(seed=seed + k)``, wherever and in whatever order it is played;
so any number of workers, and a run that was killed and resumed, give the same episodes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from mergefall import __version__
from mergefall.checks import integer
from mergefall.threads import cores
from mergefall_baselines import Player, make
from mergefall_baselines.player import Predictor
from numpy.typing import NDArray
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from mergefall_training.console import console
from mergefall_training.records import Episode, Game2048Episode, Header, RecordFile
from mergefall_training.statistics import (
    Interval,
    bootstrap,
    exponential_mean,
    exponential_ratio,
    interquartile_mean,
    ratio,
    wilson,
)
from mergefall_training.workers import Task, check_executor, play_all, task

SEEDS = 1_000_000  # Seeds from here on are kept for training: no agent shall be evaluated on what it was trained on.


@dataclass(frozen=True)
class Summary:
    """What the episodes show: their headline figure, which ``headline`` names, with 95 % intervals; a move's cost.

    ``capped`` counts the games that a cap ended, ``deaths`` the others. The intervals of ``mean``, ``median`` and
    ``iqm`` are bootstrapped; of Tetris with capped games the mean is `exponential_mean`, and there is no more to say.
    ``tiles`` maps each tile value from 8 up to the largest one seen to the share of games that reached it (2048 only),
    with Wilson's interval. Moves are pieces in Tetris.
    """

    headline: str
    episodes: int
    first_seed: int
    last_seed: int
    deaths: int
    capped: int
    mean: Interval
    median: Interval | None
    iqm: Interval | None
    tiles: dict[int, Interval]
    moves_per_game: float
    ms_per_move: float


@dataclass(frozen=True)
class Evaluation:
    """Finished episodes of one player in one environment, sorted by seed; ``header`` says who played what."""

    header: Header
    episodes: list[Episode]

    @property
    def kind(self) -> type[Episode]:
        """The type of the episodes, which knows what is particular to the game."""
        return type(self.episodes[0])

    @property
    def results(self) -> NDArray[np.int64]:
        """The headline figure of each game, int64[episodes]."""
        return np.array([episode.result for episode in self.episodes], dtype=np.int64)

    @property
    def deaths(self) -> int:
        """How many games ended by themselves."""
        return sum(episode.terminated for episode in self.episodes)

    @property
    def censored(self) -> bool:
        """Whether a cap hid how far games would have gone, but their mean can be told all the same."""
        return self.kind.memoryless and self.deaths < len(self.episodes)

    @property
    def scores(self) -> NDArray[np.int64]:
        """Final scores, int64[episodes]."""
        return np.array([episode.score for episode in self.episodes], dtype=np.int64)

    @property
    def max_tiles(self) -> NDArray[np.int64]:
        """Largest tile of each game, int64[episodes]; empty where the game has no tiles."""
        return np.array([e.max_tile for e in self.episodes if isinstance(e, Game2048Episode)], dtype=np.int64)

    def tile_rate(self, tile: int) -> Interval:
        """Share of games whose largest tile is at least ``tile``, with Wilson's 95 % interval."""
        return wilson(int((self.max_tiles >= tile).sum()), len(self.episodes))

    def mean(self) -> Interval:
        """The mean result with its 95 % interval: bootstrapped, or `exponential_mean` where games are censored."""
        if self.censored:
            return exponential_mean(int(self.results.sum()), self.deaths)
        return bootstrap(np.mean, self.results)

    def ratio(self, other: Evaluation) -> Interval:
        """The mean result over another player's, with the 95 % interval that fits both; results are not negative."""
        if self.censored or other.censored:
            return exponential_ratio(int(self.results.sum()), self.deaths, int(other.results.sum()), other.deaths)
        return ratio(self.results, other.results)

    def summary(self) -> Summary:
        """The figures that tables and plots print."""
        seconds, actions = sum(e.seconds for e in self.episodes), sum(e.length for e in self.episodes)
        largest = int(self.max_tiles.max(initial=0))
        return Summary(
            headline=self.kind.headline,
            episodes=len(self.episodes),
            first_seed=self.episodes[0].seed,
            last_seed=self.episodes[-1].seed,
            deaths=self.deaths,
            capped=len(self.episodes) - self.deaths,
            mean=self.mean(),
            median=None if self.censored else bootstrap(np.median, self.results),
            iqm=None if self.censored else bootstrap(interquartile_mean, self.results),
            tiles={2**rank: self.tile_rate(2**rank) for rank in range(3, largest.bit_length())},
            moves_per_game=sum(e.turns for e in self.episodes) / len(self.episodes),
            ms_per_move=1000 * seconds / actions,
        )


def evaluate(
    player: str | Predictor,
    env_id: str,
    episodes: int,
    seed: int = 0,
    env_kwargs: Mapping[str, Any] | None = None,
    workers: int | None = None,
    out: str | os.PathLike[str] | None = None,
    *,
    max_episode_steps: int | None = None,
    executor: str | ProcessPoolExecutor = "processes",
    progress: bool = True,
) -> Evaluation:
    """Play ``episodes`` games from seeds ``seed``, ``seed + 1``, … and return them sorted by seed.

    ``player`` is a registered name, a `Player`, or anything with Stable-Baselines3's ``predict``. ``max_episode_steps``
    caps games. ``workers`` processes play side by side (None: one per core; 1: this process); ``executor="ray"`` plays
    on a Ray cluster instead, whose size replaces ``workers``; a `process_pool` is shared between evaluations. The games
    of a network's policy (`Player.batched`) are played side by side in this process; how many there are may change the
    last digits of what the network computes, and so a move that is nearly a tie.

    ``out`` is a JSON-lines file to which each episode is appended as it ends. The same call on a file that holds some
    of the episodes plays the others; a file of another run, or one that a run is writing to, is a ValueError.

    >>> evaluate("2048/random", "mergefall/Game2048-v0", 3, workers=1, progress=False).episodes[2].seed
    2
    """
    from mergefall_training.learning.playing import play_together  # what it imports needs this module

    if isinstance(player, str):
        player = make(player)
    episodes = integer("episodes", episodes, 1, SEEDS)
    seed = integer("seed", seed, 0, SEEDS - episodes)
    workers = cores() if workers is None else integer("workers", workers, 1)
    check_executor(executor)
    job = task(player, env_id, env_kwargs, max_episode_steps)
    header = _header(player, job)
    wanted = range(seed, seed + episodes)
    with _recording(out, header) as records:
        done = {s: e for s, e in records.episodes.items() if s in wanted} if records else {}
        missing = [s for s in wanted if s not in done]
        together = executor != "ray" and isinstance(job.player, Player) and job.player.batched
        finished = play_together(job, missing) if together else play_all(job, missing, workers, executor)
        try:
            with closing(finished), _progress(header.title, done, episodes, progress) as show:
                for episode in finished:
                    if records:
                        records.append(episode)
                    done[episode.seed] = episode
                    show(episode)
        except KeyboardInterrupt as interrupt:
            if records:
                kept = sum(s in wanted for s in records.episodes)
                interrupt.add_note(f"{kept} of {episodes} episodes are in {out}; the same call plays the rest")
            raise
    return Evaluation(header, [done[s] for s in wanted])


def _header(player: Predictor, job: Task) -> Header:
    name = getattr(player, "name", Player.name)
    options = dict(getattr(player, "options", {}))
    return Header(name, options, job.env_id, job.env_kwargs, job.max_episode_steps, __version__)


def _recording(out: str | os.PathLike[str] | None, header: Header) -> AbstractContextManager[RecordFile | None]:
    if out is None:
        return nullcontext()
    if header.player == Player.name:
        # Two models of one class would pass for each other when a run resumes.
        raise ValueError(f"a file of episodes must say who played: set `player.name = ...` first, or leave out {out}")
    return RecordFile(out, header)


@contextmanager
def _progress(
    title: str, done: Mapping[int, Episode], total: int, enabled: bool
) -> Iterator[Callable[[Episode], None]]:
    """A progress bar on stderr with the mean result so far; it yields what takes each finished episode."""
    results, count = sum(episode.result for episode in done.values()), len(done)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(bar_width=20), MofNCompleteColumn())
    columns += (TextColumn("mean {task.fields[mean]}"), TimeElapsedColumn(), TimeRemainingColumn())

    def mean() -> str:
        return f"{results / count:,.0f}" if count else "-"

    with Progress(*columns, console=console(stderr=True), disable=not enabled) as bar:
        row = bar.add_task(title, total=total, completed=count, mean=mean())

        def show(episode: Episode) -> None:
            nonlocal results, count
            results, count = results + episode.result, count + 1
            bar.update(row, completed=count, mean=mean())

        yield show
