"""Tuning the weights of a player's heuristic by hill climbing (`climbing.py`) over the games that it plays.

A *trial* plays games with one set of weights; its value is their mean score (in Tetris: lines). The mean, not the
mean of logarithms: it is what evaluations report, a game may well end at 0, and a player's scores spread no less in
logarithms. A cap bounds long games of Tetris, and the mean is that of games cut short: a low one makes good weights
look alike.

All trials play the same games, seeds from 500 000 on, so that luck is common to what is compared. The best of many
trials was also the luckiest: the ends of the best climbs, and the start, then play ``finals`` games each, seeds from
750 000 on, and the best mean there is the result. Evaluations count their seeds from 0 and share none of these.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np
from mergefall import __version__
from mergefall.checks import integer
from mergefall.weighted import weights_of, with_weights
from mergefall_baselines import Player, make

from mergefall_training.play.workers import play_all, process_pool, task
from mergefall_training.tune.climbing import Settings, Weights, ends
from mergefall_training.tune.trials import TrialFile, trial_progress

FORMAT, VERSION = "mergefall tuning", 1
TRIAL_SEED, FINAL_SEED = 500_000, 750_000  # each followed by MOST_GAMES seeds
FINALISTS = 5  # ends of climbs that play the finals, beside the start


@dataclass(frozen=True)
class Trial:
    """Games ``seed`` to ``seed + games − 1`` with ``weights``: mean result, its standard error, and seconds taken."""

    weights: Weights
    seed: int
    games: int
    mean: float
    error: float
    seconds: float

    def __post_init__(self) -> None:
        weights = self.weights.values() if isinstance(self.weights, dict) else [None]
        numbers = [*weights, self.seed, self.games, self.mean, self.error, self.seconds]
        if not all(isinstance(number, int | float) for number in numbers):
            raise ValueError(f"expected numbers in a trial; found {self}")


@dataclass(frozen=True)
class Tuning:
    """What was found: the best finalist, its heuristic as JSON, all finalists (best first) and all trials."""

    heuristic: Any
    best: Trial
    finalists: list[Trial]
    trials: list[Trial]


def tune(
    player: str,
    options: Mapping[str, Any],
    env_id: str,
    settings: Settings | None = None,
    *,
    option: str = "heuristic",
    only: Sequence[str] | None = None,
    env_kwargs: Mapping[str, Any] | None = None,
    max_episode_steps: int | None = None,
    workers: int = 1,
    out: str | os.PathLike[str] | None = None,
    progress: bool = True,
) -> Tuning:
    """Tune the heuristic of the player ``make(player, **options)``, which it takes as ``option``; see the module.

    ``only`` names the weights to change, in this order (all unless told), by their paths as in `weights_of`. ``out``
    is a JSON-lines file to which each trial is appended as it ends; the same call on it goes on where a run was
    stopped, and ends with the same result as an unbroken one. A file of another run is a ValueError.
    """
    settings = settings or Settings()
    settings.check()
    workers = integer("workers", workers, 1)
    begin = make(player, **dict(options))
    spec = _spec_of(begin, option)
    start = _chosen(weights_of(spec), only)
    job = task(begin, env_id, env_kwargs, max_episode_steps)
    game = {"env_id": job.env_id, "env_kwargs": job.env_kwargs, "max_episode_steps": job.max_episode_steps}
    header = {"format": FORMAT, "version": VERSION, "player": player, "options": {**options, option: spec}}
    header |= {"option": option, "weights": list(start), **game, "settings": asdict(settings), "package": __version__}

    def play(weights: Weights, seed: int, games: int) -> Trial:
        begun = perf_counter()
        changed = make(player, **{**options, option: with_weights(spec, weights)}).with_rules(job.env_kwargs)
        seeds = range(seed, seed + games)
        results = [episode.result for episode in play_all(replace(job, player=changed), seeds, 1, executor)]
        error = float(np.std(results)) / math.sqrt(games)
        return Trial(weights, seed, games, float(np.mean(results)), round(error, 1), round(perf_counter() - begun, 3))

    most = (1 + settings.restarts) * (1 + 2 * len(start) * settings.passes)
    total = min(most, settings.trials or most)
    with (
        TrialFile(out, header, Trial) as record,
        process_pool(workers) if workers > 1 else nullcontext("processes") as executor,
        trial_progress(f"{player}: trials, at most", total, progress) as show,
    ):

        def value(weights: Weights) -> float:
            trial = record.next(play, weights=weights, seed=TRIAL_SEED, games=settings.games)
            show(trial.mean)
            return trial.mean

        finalists = [start, *(weights for weights in ends(value, start, settings)[:FINALISTS] if weights != start)]
        finals = [record.next(play, weights=weights, seed=FINAL_SEED, games=settings.finals) for weights in finalists]
    finals.sort(key=lambda trial: -trial.mean)
    return Tuning(with_weights(spec, finals[0].weights), finals[0], finals, record.passed[: -len(finals)])


def _spec_of(player: Player, option: str) -> Any:
    """The heuristic that a player holds, as JSON."""
    held: Any = getattr(player, option, None)
    if not hasattr(held, "to_json"):
        raise ValueError(f"{player.name} has no weights in its option {option!r}; it holds {held!r}")
    return json.loads(json.dumps(held.to_json()))


def _chosen(weights: Weights, only: Sequence[str] | None) -> Weights:
    """The weights to change, in the order asked for."""
    for name in only or ():
        if name not in weights:
            raise ValueError(f"there is no weight {name!r}; there are {', '.join(weights)}")
    return {name: weights[name] for name in only or weights}


def print_tuning(tuning: Tuning) -> None:
    """Print the finalists, and the best one's heuristic as a suite or the command line takes it."""
    for trial in tuning.finalists:
        last = trial.seed + trial.games - 1
        start = " (the start)" if trial.weights == tuning.trials[0].weights else ""
        print(f"mean {trial.mean:,.0f} ± {trial.error:,.0f}, N={trial.games}, seeds {trial.seed}-{last}{start}")
    print(f"best after {len(tuning.trials)} trials:")
    print(json.dumps(tuning.heuristic))
