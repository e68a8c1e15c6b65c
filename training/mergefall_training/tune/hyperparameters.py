"""Searching for better hyper-parameters than a preset's, by Optuna's tree-structured Parzen estimator.

A *trial* trains with one choice of hyper-parameters; its value is the mean result of the last model, over training
seeds. Trial 0 is the preset. All trials have the same training seeds and play the same games, seeds from 500 000 on:
neither those that pick a run's best model nor those that agents are evaluated on. The best of many trials was also the
luckiest, so the best few and the preset are then trained from fresh seeds, play fresh games, from 750 000 on, and the
best mean there is the result. What learns fast wins: the best for few `timesteps` need not be the best for many.

A search has a folder: ``trials.jsonl``, and a training run in ``trial-007/seed-0`` for each trial and training seed.
What a trial tries follows from the trials before it and the search's seed, and a run that was stopped ends as an
unbroken one; so does a search, in the middle of whatever run it was stopped in.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import yaml
from mergefall import __version__
from mergefall.checks import choice, integer, number
from mergefall_baselines.player import NotFiniteError

from mergefall_training.learn import ALGORITHMS, trainer
from mergefall_training.learn.agents import agent
from mergefall_training.learn.presets import configure
from mergefall_training.learn.run import EVALUATION_SEED, MOST_SEED, Config, open_run
from mergefall_training.play.evaluation import evaluate
from mergefall_training.play.statistics import mean_of_runs
from mergefall_training.tune.trials import TrialFile, trial_progress
from mergefall_training.tune.weights import FINAL_SEED, TRIAL_SEED
from mergefall_training.yaml_numbers import load_yaml

FORMAT, VERSION = "mergefall search", 1
POINTS, GAMES = 5, 10  # evaluations of a run, and their games: for the curve alone
ATTEMPTS = 100  # to suggest what was not tried yet


@dataclass(frozen=True)
class Settings:
    """How much to train and to play."""

    trials: int = 30
    """The most trials; there are fewer if nothing new is left to try."""
    seeds: int = 1
    """Training seeds of a trial."""
    episodes: int = 100
    """Games that each trained agent plays."""
    finalists: int = 3
    """Trials that are trained again, beside the preset."""
    finals: int = 3
    """Fresh training seeds of each finalist."""
    seed: int = 0
    """Where suggestions come from; the first training seed too."""

    def __post_init__(self) -> None:
        for name, low in {"trials": 2, "seeds": 1, "finalists": 1, "finals": 2}.items():
            integer(name, getattr(self, name), low)
        integer("episodes", self.episodes, 1, (EVALUATION_SEED - FINAL_SEED) // max(self.seeds, self.finals))
        integer("seed", self.seed, 0, MOST_SEED - self.seeds - self.finals)


@dataclass(frozen=True)
class Trial:
    """What training with ``hyperparameters`` came to: the ``means`` are those of the runs from the training ``seeds``.

    Each run's last model played ``games`` games, the first run's from seed ``first_game`` on, the next one's after
    these; a run that broke off, its network's weights beyond all numbers, has 0. ``number`` is the trial's; a finalist
    keeps it.
    """

    number: int
    hyperparameters: dict[str, Any]
    seeds: list[int]
    first_game: int
    games: int
    means: list[float]
    seconds: float

    def __post_init__(self) -> None:
        means = self.means if isinstance(self.means, list) else [None]
        if not all(isinstance(figure, int | float) for figure in (*means, self.seconds)):
            raise ValueError(f"expected numbers as means and seconds; found {self.means!r} and {self.seconds!r}")
        if not isinstance(self.seeds, list) or len(means) != len(self.seeds):
            raise ValueError(f"expected a mean for each seed; found the means {means} and the seeds {self.seeds!r}")

    @property
    def value(self) -> float:
        """The mean of its runs."""
        return float(np.mean(self.means))


@dataclass(frozen=True)
class Search:
    """What was found: the best hyper-parameters, all finalists (best first) and all trials."""

    hyperparameters: dict[str, Any]
    finalists: list[Trial]
    trials: list[Trial]


# -- the space --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Range:
    """Numbers from ``low`` to ``high``, integers if both ends are; written with a ``prefix`` they are text.

    >>> Range(1e-4, 1e-2, log=True, prefix="lin_").value(0.00123456)
    'lin_0.001235'
    """

    low: float
    high: float
    log: bool = False
    prefix: str = ""

    def __post_init__(self) -> None:
        number("low", self.low)
        number("high", self.high)
        if not self.low < self.high:
            raise ValueError(f"low is {self.low}, high is {self.high}; expected more than low")
        if not isinstance(self.log, bool) or not isinstance(self.prefix, str):
            raise ValueError(f"log is {self.log!r}, prefix is {self.prefix!r}; expected true or false, and text")
        if self.log and not self.low > 0:
            raise ValueError(f"low is {self.low}; expected more than 0 for a logarithm")

    @property
    def distribution(self) -> optuna.distributions.BaseDistribution:
        """Where Optuna's points lie: they are the numbers."""
        if isinstance(self.low, int) and isinstance(self.high, int):
            return optuna.distributions.IntDistribution(self.low, self.high, log=self.log)
        return optuna.distributions.FloatDistribution(self.low, self.high, log=self.log)

    @property
    def ends(self) -> Sequence[Any]:
        """The values at the ends."""
        return self.value(self.low), self.value(self.high)

    def value(self, point: float) -> Any:
        """The value at a point, to four digits."""
        if not isinstance(point, int):
            point = min(max(float(f"{point:.4g}"), self.low), self.high)
        return f"{self.prefix}{point}" if self.prefix else point

    def point(self, value: Any) -> Any:
        """The point of a value, None if it lies outside."""
        if self.prefix:
            text = isinstance(value, str) and value.startswith(self.prefix)
            value = load_yaml(value.removeprefix(self.prefix)) if text else None
        inside = isinstance(value, int | float) and not isinstance(value, bool) and self.low <= value <= self.high
        whole = isinstance(self.low, int) and isinstance(self.high, int)
        return value if inside and (isinstance(value, int) or not whole) else None


@dataclass(frozen=True)
class Choice:
    """One of some values, which have no order; Optuna's points are their places."""

    ends: Sequence[Any]

    def __post_init__(self) -> None:
        if not self.ends:
            raise ValueError("there are no choices; expected at least one")

    @property
    def distribution(self) -> optuna.distributions.BaseDistribution:
        return optuna.distributions.CategoricalDistribution(range(len(self.ends)))

    def value(self, point: int) -> Any:
        return self.ends[point]

    def point(self, value: Any) -> Any:
        return self.ends.index(value) if value in self.ends else None


Space = Mapping[str, Range | Choice]


def space_of(spec: Mapping[str, Any]) -> Space:
    """A space from JSON: for each name a list of choices, or a mapping with the fields of `Range`.

    >>> space_of({"n_epochs": {"low": 1, "high": 8}, "gamma": [0.9, 0.99]})
    {'n_epochs': Range(low=1, high=8, log=False, prefix=''), 'gamma': Choice(ends=[0.9, 0.99])}
    """
    space: dict[str, Range | Choice] = {}
    known = {field.name for field in fields(Range)}
    for name, given in spec.items():
        try:
            if isinstance(given, list):
                space[name] = Choice(given)
            elif isinstance(given, dict) and {"low", "high"} <= given.keys() <= known:
                space[name] = Range(**given)
            else:
                raise ValueError("expected a list, or low and high and perhaps log and prefix")
        except ValueError as error:
            raise ValueError(f"the space of {name} is {given!r}: {error}") from error
    return space


def _spec(algorithm: str, changed: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The usual space but for what is given; what is set is held."""
    for name in given:
        if name in changed:
            raise ValueError(f"{name} is set to {changed[name]!r} and to be searched in {given[name]!r}; expected one")
    usual = load_yaml(Path(__file__).with_name("spaces.yaml").read_text(encoding="utf-8"))[algorithm]
    spec = {name: range_ for name, range_ in usual.items() if name not in changed} | dict(given)
    if not spec:
        raise ValueError(f"{', '.join(usual)} are all set; expected something to search")
    return json.loads(json.dumps(spec))


# -- what is tried ----------------------------------------------------------------------------------------------------


def suggest(space: Space, trials: Sequence[Trial], seed: int) -> dict[str, Any] | None:
    """What to try after these trials, a function of them and the seed; None if nothing new was found."""
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)  # it tells of every study
    try:
        study = optuna.create_study(direction="maximize")
    finally:
        optuna.logging.set_verbosity(verbosity)
    distributions = {name: dimension.distribution for name, dimension in space.items()}
    for trial in trials:
        # The preset may lack a name, or have a value outside.
        points = {name: space[name].point(value) for name, value in trial.hyperparameters.items()}
        points = {name: point for name, point in points.items() if point is not None}
        within = {name: distributions[name] for name in points}
        study.add_trial(optuna.trial.create_trial(params=points, distributions=within, value=trial.value))
    tried = [trial.hyperparameters for trial in trials]
    for attempt in range(ATTEMPTS):
        own = np.random.SeedSequence([seed, len(trials), attempt]).generate_state(1)[0]
        study.sampler = optuna.samplers.TPESampler(seed=int(own))
        points = study.ask(distributions).params
        suggested = {name: dimension.value(points[name]) for name, dimension in space.items()}
        if suggested not in tried:
            return suggested
    return None


def search(
    algorithm: str,
    env_id: str = "mergefall/Game2048-v0",
    settings: Settings | None = None,
    *,
    out: str | os.PathLike[str],
    timesteps: int | None = None,
    space: Mapping[str, Any] | None = None,
    changed: Mapping[str, Any] | None = None,
    env_kwargs: Mapping[str, Any] | None = None,
    max_episode_steps: int | None = None,
    device: str = "auto",
    progress: bool = True,
) -> Search:
    """Search for better hyper-parameters than the preset of an algorithm for an environment; see the module.

    ``space`` is JSON as `space_of` takes it, beside the algorithm's usual one (``spaces.yaml``); ``changed``
    hyper-parameters are held. The same call on the folder ``out`` goes on where a search was stopped, and ends with
    the same result as an unbroken one. A folder of another search is a ValueError.
    """
    settings, changed = settings or Settings(), dict(changed or {})
    spec = _spec(choice("algorithm", algorithm, sorted(ALGORITHMS)), changed, space or {})
    dimensions, folder = space_of(spec), Path(out)

    def config(hyperparameters: Mapping[str, Any], seed: int = 0) -> Config:
        found = configure(
            algorithm,
            env_id,
            env_kwargs=env_kwargs,
            max_episode_steps=max_episode_steps,
            changed=changed | dict(hyperparameters),
            timesteps=timesteps,
            episodes=GAMES,
            seed=seed,
        )
        return replace(found, interval=max(1, found.timesteps // POINTS))

    start = config({})
    for corner in ({}, *_corners(dimensions)):
        asked = config(corner)
        for name in corner:
            if name not in asked.hyperparameters:
                raise ValueError(f"{name} is no hyper-parameter; it cannot be searched")
        trainer(algorithm).check(asked, device)
    _check_batches(start, dimensions)

    def make(number: int, hyperparameters: dict[str, Any], seeds: list[int], first_game: int, games: int) -> Trial:
        means, seconds = [], 0.0
        for k, seed in enumerate(seeds):
            played = range(first_game + k * games, first_game + (k + 1) * games)
            run = folder / f"trial-{number:03}" / f"seed-{seed}"
            mean, taken = _train(run, config(hyperparameters, seed), played, device)
            means.append(mean)
            seconds += taken
        return Trial(number, hyperparameters, seeds, first_game, games, means, round(seconds, 3))

    header = {"format": FORMAT, "version": VERSION, **asdict(start), "space": spec, "settings": asdict(settings)}
    header |= {"package": __version__, "optuna": optuna.__version__}
    first, fresh = settings.seed, settings.seed + settings.seeds
    total = settings.trials + settings.finalists + 1
    with (
        TrialFile(folder / "trials.jsonl", header, Trial) as record,
        trial_progress(f"{algorithm}: trials and finals, at most", total, progress) as show,
    ):

        def next_trial(number: int, hyperparameters: dict[str, Any], seeds: range, first_game: int) -> Trial:
            asked = {"number": number, "hyperparameters": hyperparameters, "seeds": list(seeds)}
            trial = record.next(make, **asked, first_game=first_game, games=settings.episodes)
            show(trial.value)
            return trial

        trials: list[Trial] = []
        trying = {name: start.hyperparameters[name] for name in dimensions if name in start.hyperparameters}
        while trying is not None and len(trials) < settings.trials:
            trials.append(next_trial(len(trials), trying, range(first, fresh), TRIAL_SEED))
            trying = suggest(dimensions, trials, settings.seed)
        best = sorted(trials[1:], key=lambda trial: -trial.value)[: settings.finalists]
        seeds = range(fresh, fresh + settings.finals)
        finals = [next_trial(trial.number, trial.hyperparameters, seeds, FINAL_SEED) for trial in (trials[0], *best)]
    finals.sort(key=lambda trial: -trial.value)
    return Search(changed | finals[0].hyperparameters, finals, trials)


def _train(folder: Path, config: Config, games: range, device: str) -> tuple[float, float]:
    """(the mean result of the last model in these games, seconds taken) of a run, which is trained to its end."""
    try:
        with open_run(folder, config, resume="auto", device=device, progress=False) as run:
            try:
                trainer(config.algorithm).train(run)
            except ValueError as error:
                # Weights that are NaN, or what PyTorch says of such chances. Learning too fast is a result as well.
                if not isinstance(error, NotFiniteError) and "but found invalid values" not in str(error):
                    raise
                return 0.0, run.seconds
            unshaped = {name: None if name == "shaping" else value for name, value in config.env_kwargs.items()}
            found = evaluate(
                agent(str(folder), "last"),
                config.env_id,
                len(games),
                games.start,
                unshaped,
                workers=1,
                max_episode_steps=config.max_episode_steps,
                progress=False,
            )
            return float(found.results.mean()), run.seconds
    except KeyboardInterrupt as interrupt:
        interrupt.__notes__ = []  # on how to go on with the run; it is the search that goes on
        raise


# -- what makes no sense ----------------------------------------------------------------------------------------------


def _corners(space: Space) -> Iterator[dict[str, Any]]:
    """Some of what may be tried, with all ends and choices among it."""
    for k in range(max(len(dimension.ends) for dimension in space.values())):
        yield {name: dimension.ends[k % len(dimension.ends)] for name, dimension in space.items()}


def _check_batches(start: Config, space: Space) -> None:
    """Raises ValueError if PPO's rollouts are no whole number of batches somewhere in the space."""
    if start.algorithm not in ("ppo", "maskable-ppo"):
        return

    def values(name: str, default: int) -> Sequence[Any]:
        dimension = space.get(name, Choice([start.hyperparameters.get(name, default)]))
        return range(int(dimension.low), int(dimension.high) + 1) if isinstance(dimension, Range) else dimension.ends

    for n_envs, n_steps, batch in product(values("n_envs", 1), values("n_steps", 2048), values("batch_size", 64)):
        if n_envs * n_steps % batch:
            found = f"n_envs={n_envs}, n_steps={n_steps}, batch_size={batch}"
            raise ValueError(f"the space has {found}; expected n_envs · n_steps to be a multiple of batch_size")


# -- what is printed --------------------------------------------------------------------------------------------------


def print_search(found: Search) -> None:
    """Print the finalists, and the best one's hyper-parameters as a preset and the command line take them."""
    for trial in found.finalists:
        mean, name = mean_of_runs(trial.means), f"trial {trial.number}" if trial.number else "the preset"
        figure = f"mean {mean.value:,.1f} [{mean.low:,.1f}, {mean.high:,.1f}]"
        last = trial.first_game + len(trial.seeds) * trial.games - 1
        runs = f"{len(trial.seeds)} runs, training seeds {trial.seeds[0]}-{trial.seeds[-1]}"
        print(f"{figure}, {runs}, N={trial.games} each, seeds {trial.first_game}-{last}: {name}")
    print(f"best after {len(found.trials)} trials:")
    print(yaml.safe_dump(found.hyperparameters, sort_keys=False), end="")
    print(" ".join(f"--set {name}={_text(value)}" for name, value in found.hyperparameters.items()))


def _text(value: Any) -> str:
    """A value as a shell and YAML read it."""
    return shlex.quote(value if isinstance(value, str) else json.dumps(value))
