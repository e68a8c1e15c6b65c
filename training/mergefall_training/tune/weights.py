"""Tunes the weights of a player's heuristic by hill climbing (`climbing.py`) over games.

- A *trial* plays games with one set of weights, all trials the same ones, seeds from 500,000 on. Its value is the mean
  of a figure, by default the game's headline. A low cap makes good weights look alike, for its games count, too.
- What a search tries next depends only on its arguments and the trials so far; so a resumed one reads those on file.
- The best of many trials was also lucky. So the ends of the best climbs and the start each play `finals` fresh games,
  seeds from 750,000 on. The best mean there is the result.
"""

import json
import math
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
from mergefall import __version__
from mergefall.checks import choice, number
from mergefall.games import game_of
from mergefall.typing import Dict, FilePath, Options
from mergefall.weighted import weights_of, with_weights
from mergefall_baselines import Player, make
from mergefall_baselines.registry import player_of

from mergefall_training.files import LineFile, made
from mergefall_training.play.match import Match
from mergefall_training.play.records import code_of
from mergefall_training.play.workers import play_all, process_pool, task, workers_of
from mergefall_training.progress import progress_bar
from mergefall_training.tune.climbing import MOST_GAMES, Climb, Weights, ends

TRIAL_SEED, FINAL_SEED = 500_000, 750_000  # first seeds; MOST_GAMES seeds follow each
FINALISTS = 5  # ends of climbs that play the finals, beside the start


@dataclass(frozen=True)
class WeightTrial:
    """Games with `weights`, seeds `seed` … `seed + games − 1`: mean result, its standard error, and seconds taken."""

    weights: Weights
    seed: int
    games: int
    mean: float
    error: float
    seconds: float


@dataclass(frozen=True)
class Tuning:
    """The result of tuning: the best heuristic as JSON, all finalists (best first), and all trials."""

    heuristic: Any
    finalists: list[WeightTrial]
    trials: list[WeightTrial]


def tune(
    player: str,
    options: Options,
    match: Match,
    climb: Climb,
    *,
    by: str | None = None,
    only: Sequence[str] | None = None,
    workers: int = 1,
    out: FilePath | None = None,
    progress: bool = True,
) -> Tuning:
    """Tune the heuristic of the player `make(player, **options)`, or of its option `of`, from its own weights on.

    Args:
        match: where it plays.
        by: the figure whose mean is the value of a trial; default: the headline of the game.
        only: weights to change, in this order, by their paths as in `weights_of`; default: all.
        workers: number of processes.
        out: JSON-lines file to which each finished trial is appended. The same call on it resumes a stopped run, with
            the result of an unbroken one.

    Raises ValueError if the file holds another run, or one of an earlier version of the user's code.
    """
    climb.check()
    workers, game = workers_of(workers), game_of(match.env_id)
    figure: str = choice("by", by or game.headline, game.figures)
    of, begin = options.get("of"), make(player, **dict(options))
    inner = {"player": of} if isinstance(of, str) else dict(of or options)  # the options that hold the heuristic
    spec = _spec_of(player_of(inner) if of else begin, inner.get("heuristic"))
    every, job = weights_of(spec), task(begin, match)
    start = {choice("weight", name, every): every[name] for name in only or every}
    header = {
        "format": "mergefall tuning",
        "version": 1,
        "player": player,
        "options": {**options, "heuristic": spec},
        "weights": list(start),
        "by": figure,
        **match.said(),
        "settings": asdict(climb),
        "package": __version__,
        "code": code_of(player, {**options, "heuristic": spec}, match.env_kwargs),
    }
    known: dict[str, WeightTrial] = {}
    trials: list[WeightTrial] = []
    best: list[str] = []  # what is said of them

    def trial(weights: Weights, seed: int, games: int) -> WeightTrial:
        key = json.dumps([weights, seed, games])
        if key in known:
            return known[key]
        begun, results = perf_counter(), []
        changed = inner | {"heuristic": with_weights(spec, weights)}
        tuned = make(player, **({**options, "of": changed} if of else changed)).with_rules(match.env_kwargs)
        for episode in play_all(replace(job, player=tuned), range(seed, seed + games), 1, executor):
            results.append(getattr(episode, figure))
            show(len(trials), ", ".join([f"{len(results)} of {games} games", *best]))
        mean, error = float(np.mean(results)), round(float(np.std(results)) / math.sqrt(games), 1)
        known[key] = WeightTrial(weights, seed, games, mean, error, round(perf_counter() - begun, 3))
        if isinstance(file, LineFile):
            file.write(asdict(known[key]))
        return known[key]

    def value(weights: Weights) -> float:
        trials.append(trial(weights, TRIAL_SEED, climb.games))
        best[:] = [f"best {max(one.mean for one in trials):,.1f}"]
        show(len(trials), *best)
        return trials[-1].mean

    with (
        nullcontext() if out is None else LineFile(out, "trials", header, partial(_read_trial, known)) as file,
        process_pool(workers) if workers > 1 else nullcontext("processes") as executor,
        progress_bar(f"{player}: trials", climb.trials, enabled=progress) as show,
    ):
        finalists = [start, *(weights for weights in ends(value, start, climb)[:FINALISTS] if weights != start)]
        most = climb.finals or min(10 * climb.games, MOST_GAMES)
        finals = [trial(weights, FINAL_SEED, most) for weights in finalists]
    finals.sort(key=lambda final: -final.mean)
    return Tuning(with_weights(spec, finals[0].weights), finals, trials)


def _read_trial(known: dict[str, WeightTrial], record: Dict) -> None:
    """Add the trial on a line of a file to those that are known."""
    trial = made(WeightTrial, record)
    for name, weight in trial.weights.items():
        number(name, weight)
    known[json.dumps([trial.weights, trial.seed, trial.games])] = trial


def _spec_of(player: Player, value: Any) -> Any:
    """A player's heuristic as JSON, under the name that the user gave it."""
    held: Any = getattr(player, "heuristic", None)
    spec = json.loads(json.dumps(held.to_json())) if hasattr(held, "to_json") else held
    if not (isinstance(spec, dict) and weights_of(spec)):
        raise ValueError(f"the heuristic of {player.name} is {spec!r}, which has no weights; expected some to tune")
    name = value.get("name") if isinstance(value, Mapping) else value
    return spec | ({"name": name} if isinstance(name, str) else {})


def print_tuning(tuning: Tuning) -> None:
    """Print the finalists, and the best one's heuristic in JSON, as suites and the command line take it."""
    for trial in tuning.finalists:
        last = trial.seed + trial.games - 1
        start = " (the start)" if trial.weights == tuning.trials[0].weights else ""
        print(f"mean {trial.mean:,.1f} ± {trial.error:,.1f}, N={trial.games}, seeds {trial.seed}-{last}{start}")
    print(f"best after {len(tuning.trials)} trials:")
    print(json.dumps(tuning.heuristic))
