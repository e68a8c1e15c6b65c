"""Searches for better hyper-parameters than a preset's, with suggestions by Optuna (`suggest.py`).

- A *trial* trains with one choice of hyper-parameters. Its value is the mean result of the last models of its runs,
  one run per training seed. Trial 0 is the preset.
- All trials use the same training seeds and play the same games, seeds from 500,000 on. Neither the evaluations that
  pick a run's best model nor those of finished agents use these games.
- The best of many trials was also lucky. So the best few and the preset are trained again from fresh seeds and play
  fresh games, from 750,000 on. The best mean there is the result.
- With few `timesteps`, the search finds what learns fast, which need not be best for many.

The folder of a search holds `trials.jsonl`, and a run folder `trial-007/seed-0` for each trial and training seed. Each
suggestion depends only on the trials before it and on the search's seed, so a stopped search, even in the middle of a
run, resumes to the same result.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import yaml
from mergefall import __version__
from mergefall.checks import choice, integer
from mergefall.typing import Options
from mergefall_baselines.player import NotFiniteError

from mergefall_training.learn import ALGORITHMS, trainer
from mergefall_training.learn.agents import player_at
from mergefall_training.learn.presets import configure
from mergefall_training.learn.run import EVALUATION_SEED, MOST_SEED, Config, open_run
from mergefall_training.play.evaluation import evaluate
from mergefall_training.play.sources import code_of
from mergefall_training.play.statistics import mean_of_runs
from mergefall_training.tune.suggest import Choice, Range, Space, corners, space_of, spec_of, suggest
from mergefall_training.tune.trials import TrialFile, trial_progress
from mergefall_training.tune.weights import FINAL_SEED, TRIAL_SEED

FORMAT, VERSION = "mergefall search", 1
POINTS, GAMES = 5, 10  # evaluations during a run, and games of each; they only draw the learning curve


@dataclass(frozen=True)
class Budget:
    """How much to train and to play."""

    trials: int = 30
    """Most trials; fewer if nothing new is left to try."""
    seeds: int = 1
    """Training seeds of a trial."""
    episodes: int = 100
    """Games that each trained agent plays."""
    finalists: int = 3
    """Trials that are trained again, beside the preset."""
    finals: int = 3
    """Fresh training seeds of each finalist."""
    seed: int = 0
    """Seed of the suggestions, and the first training seed."""

    def __post_init__(self) -> None:
        for name, low in {"trials": 2, "seeds": 1, "finalists": 1, "finals": 2}.items():
            integer(name, getattr(self, name), low)
        integer("episodes", self.episodes, 1, (EVALUATION_SEED - FINAL_SEED) // max(self.seeds, self.finals))
        integer("seed", self.seed, 0, MOST_SEED - self.seeds - self.finals)

    @property
    def all_trials(self) -> int:
        """The most trials that are trained, finals included."""
        return self.trials + self.finalists + 1


@dataclass(frozen=True)
class HyperparameterTrial:
    """The outcome of training with `hyperparameters`.

    - `number`: of the trial; a finalist keeps its trial's.
    - `seeds`, `means`: training seeds, and the mean result of each run's last model. A run that broke off because its
      weights became infinite or NaN has mean 0.
    - `first_game`, `games`: the first run's model plays `games` games from seed `first_game` on; the next run's model
      plays the games after these.
    - `seconds`: time taken by all runs.
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
            raise ValueError(f"means are {self.means!r}, seconds is {self.seconds!r}; expected numbers")
        if not isinstance(self.seeds, list) or len(means) != len(self.seeds):
            raise ValueError(f"means are {means}, seeds are {self.seeds!r}; expected a mean for each seed")

    @property
    def value(self) -> float:
        """The mean over its runs."""
        return float(np.mean(self.means))


@dataclass(frozen=True)
class Search:
    """The result of a search: the best hyper-parameters, all finalists (best first), and all trials."""

    hyperparameters: dict[str, Any]
    finalists: list[HyperparameterTrial]
    trials: list[HyperparameterTrial]


def search(
    algorithm: str,
    env_id: str = "mergefall/Game2048-v0",
    budget: Budget | None = None,
    *,
    out: str | os.PathLike[str],
    timesteps: int | None = None,
    space: Options | None = None,
    changed: Options | None = None,
    env_kwargs: Options | None = None,
    max_episode_steps: int | None = None,
    device: str = "auto",
    progress: bool = True,
) -> Search:
    """Search for better hyper-parameters than the preset of an algorithm for an environment.

    Args:
        out: the search's folder. The same call on it resumes a stopped search, with the result of an unbroken one.
        timesteps: of each run; default: the preset's.
        space: JSON as `space_of` takes it; overrides the algorithm's ranges in `spaces.yaml`.
        changed: hyper-parameters to hold fixed.

    Raises ValueError if the folder holds another search or one of an earlier version of the user's code, or if the
    algorithm refuses a corner of the space.
    """
    budget, changed = budget or Budget(), dict(changed or {})
    spec = spec_of(choice("algorithm", algorithm, sorted(ALGORITHMS)), changed, space or {})
    dimensions, folder = space_of(spec), Path(out)

    def config(hyperparameters: Options, seed: int = 0) -> Config:
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

    def run_trial(
        number: int, hyperparameters: dict[str, Any], seeds: list[int], first_game: int, games: int
    ) -> HyperparameterTrial:
        means, seconds = [], 0.0
        for k, seed in enumerate(seeds):
            played = range(first_game + k * games, first_game + (k + 1) * games)
            run = folder / f"trial-{number:03}" / f"seed-{seed}"
            mean, taken = _train_and_play(run, config(hyperparameters, seed), played, device)
            means.append(mean)
            seconds += taken
        return HyperparameterTrial(number, hyperparameters, seeds, first_game, games, means, round(seconds, 3))

    start = config({})
    _check_space(config, dimensions, device)
    header = {"format": FORMAT, "version": VERSION, **asdict(start), "space": spec, "settings": asdict(budget)}
    header |= {"package": __version__, "optuna": optuna.__version__}
    with (
        TrialFile(folder / "trials.jsonl", header, HyperparameterTrial, code_of(asdict(start), spec)) as record,
        trial_progress(f"{algorithm}: trials and finals, at most", budget.all_trials, progress) as show,
    ):

        def next_trial(number: int, hyperparameters: dict[str, Any], seeds: range, game: int) -> HyperparameterTrial:
            asked = {"number": number, "hyperparameters": hyperparameters, "seeds": list(seeds)}
            trial = record.next(run_trial, **asked, first_game=game, games=budget.episodes)
            show(trial.value)
            return trial

        trials: list[HyperparameterTrial] = []
        fresh = budget.seed + budget.seeds
        trying = {name: start.hyperparameters[name] for name in dimensions if name in start.hyperparameters}
        while trying is not None and len(trials) < budget.trials:
            trials.append(next_trial(len(trials), trying, range(budget.seed, fresh), TRIAL_SEED))
            trying = suggest(dimensions, trials, budget.seed)
        best = sorted(trials[1:], key=lambda trial: -trial.value)[: budget.finalists]
        seeds = range(fresh, fresh + budget.finals)
        finals = [next_trial(trial.number, trial.hyperparameters, seeds, FINAL_SEED) for trial in (trials[0], *best)]
    finals.sort(key=lambda trial: -trial.value)
    return Search(changed | finals[0].hyperparameters, finals, trials)


def _train_and_play(folder: Path, config: Config, games: range, device: str) -> tuple[float, float]:
    """Train in a run folder to the end; returns (mean result of the last model in these games, seconds taken)."""
    try:
        with open_run(folder, config, resume="auto", device=device, progress=False) as run:
            try:
                trainer(config.algorithm).train(run)
            except NotFiniteError:
                return 0.0, run.seconds  # learning too fast is a result as well
            found = evaluate(
                player_at(str(folder), "last"),
                config.env_id,
                len(games),
                games.start,
                config.unshaped,
                workers=1,
                max_episode_steps=config.max_episode_steps,
                progress=False,
            )
            return float(found.results.mean()), run.seconds
    except KeyboardInterrupt as interrupt:
        interrupt.__notes__ = []  # they explain how to resume the run, but the user resumes the search
        raise


def _check_space(config: Callable[[Options], Config], space: Space, device: str) -> None:
    """Raises ValueError if the algorithm refuses the preset or a corner of the space."""
    for corner in ({}, *corners(space)):
        asked = config(corner)
        for name in corner:
            if name not in asked.hyperparameters:
                raise ValueError(f"{name} is no hyper-parameter; it cannot be searched")
        trainer(asked.algorithm).check(asked, device)
    _check_batches(config({}), space)


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


def print_search(found: Search) -> None:
    """Print the finalists, and the best one's hyper-parameters as a preset and as command-line options."""
    for trial in found.finalists:
        mean, name = mean_of_runs(trial.means), f"trial {trial.number}" if trial.number else "the preset"
        figure = f"mean {mean.value:,.1f} [{mean.low:,.1f}, {mean.high:,.1f}]"
        last = trial.first_game + len(trial.seeds) * trial.games - 1
        runs = f"{len(trial.seeds)} runs, training seeds {trial.seeds[0]}-{trial.seeds[-1]}"
        print(f"{figure}, {runs}, N={trial.games} each, seeds {trial.first_game}-{last}: {name}")
    print(
        f"best after {len(found.trials)} trials (its mean is a little high: it is the best of {len(found.finalists)}):"
    )
    print(yaml.safe_dump(found.hyperparameters, sort_keys=False), end="")
    print(" ".join(f"--set {name}={_quoted(value)}" for name, value in found.hyperparameters.items()))


def _quoted(value: Any) -> str:
    """A value in YAML, quoted for a shell."""
    return shlex.quote(value if isinstance(value, str) else json.dumps(value))
