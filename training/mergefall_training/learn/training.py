"""Parts that learners share: hyper-parameters, training in rounds, logs, learning-rate schedules."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import gymnasium as gym
from mergefall.checks import boolean, integer, known, number
from mergefall.typing import Arrays, Dict, Options

from mergefall_training.files import differences
from mergefall_training.learn.run import Config, Run, read_checkpoint, read_config
from mergefall_training.play.statistics import short
from mergefall_training.progress import progress_bar

H = TypeVar("H")
L = TypeVar("L", bound="Learner")


# Ranges of hyper-parameters by their names, rl_zoo3's where it has one. Other integers are at least 1, other numbers 0.
SHARES = (
    *("gamma", "gae_lambda", "td_lambda", "tau", "average", "coherence", "exploration_rate"),
    *("exploration_fraction", "exploration_initial_eps", "exploration_final_eps"),
)
POSITIVE = ("max_grad_norm", "target_kl", "gap_share", "spread")
RATES = ("learning_rate", "clip_range", "clip_range_vf")  # may fall, as `lin_0.1` says
BY_NAME: dict[str, Callable[[str, Any], object]] = {
    **dict.fromkeys(SHARES, partial(number, least=0, most=1)),
    **dict.fromkeys(POSITIVE, partial(number, above=0)),
    **dict.fromkeys(RATES, lambda name, value: schedule(name, value)),
    "threads": partial(integer, low=1),
    "learning_starts": partial(integer, low=0),
    "warm_start": lambda name, value: run_or_model(name, value),
}
BY_TYPE = {bool: boolean, int: partial(integer, low=1), float: partial(number, least=0)}  # of defaults


def hyperparameters_of(kind: type[H], config: Config) -> H:
    """A run's hyper-parameters as the dataclass `kind`; raises ValueError for unknown names and values out of range."""
    defaults = {field.name: field.default for field in fields(kind)}  # pyright: ignore[reportArgumentType]
    known(config.algorithm, config.hyperparameters, defaults)
    for name, value in config.hyperparameters.items():
        check_value(name, value, defaults[name])
    return kind(**config.hyperparameters)


def check_value(name: str, value: Any, default: Any) -> None:
    """Raise ValueError for a hyper-parameter out of the range that its name and its default's type stand for."""
    check = BY_NAME.get(name, BY_TYPE.get(type(default)))
    if check and not (value is None and default is None):
        check(name, value)


def run_or_model(name: str, value: Any) -> None:
    """Raise ValueError for a value that cannot be a path."""
    if not isinstance(value, str):
        raise ValueError(f"{name} is {value!r}; expected a run folder or a model file")


def state_to_begin_with(kind: type, config: Config, alike: Sequence[str]) -> Dict:
    """The state in the last checkpoint of the run folder `warm_start`.

    Raises ValueError if that run has another algorithm or environment, or if the hyper-parameters `alike` differ.
    """
    folder, alike_ones = config.hyperparameters["warm_start"], []
    for of in (read_config(folder), config):
        own = hyperparameters_of(kind, of) if of.algorithm == config.algorithm else None
        same = {name: getattr(own, name) for name in alike if own is not None}
        alike_ones.append({"algorithm": of.algorithm, "env_id": of.env_id, "env_kwargs": of.env_kwargs, **same})
    if differing := differences(*alike_ones):
        raise ValueError(f"warm_start: the run in {folder} is another one: {'; '.join(differing)}")
    return read_checkpoint(folder)[1]


class Learner:
    """A learner of a run, made of its configuration and a device; `step` counts the steps so far."""

    config: Config
    step: int

    def begin(self) -> None:
        """Take over what a new run begins with, such as a warm start. Raises ValueError if the run cannot begin."""

    def arrays(self) -> Arrays:
        """The model's arrays, as `Run.evaluate` takes them."""
        raise NotImplementedError

    def network(self) -> Dict:
        """The rest of the model, JSON types, for the algorithm's `player`."""
        raise NotImplementedError

    def state(self) -> Dict:
        """Everything that the rest of the run depends on."""
        raise NotImplementedError

    def restore(self, step: int, state: Options) -> None:
        """Go back to the `state` after `step` steps."""
        raise NotImplementedError


@contextmanager
def session(run: Run, kind: Callable[[Config, str], L]) -> Iterator[tuple[L, Callable[[Mapping[str, float]], bool]]]:
    """Train in a run folder, from its last checkpoint if there is one.

    Yields the learner, and a function to call between rounds with figures to log. It evaluates and writes a checkpoint
    when these are due, and returns whether steps are left.
    """
    learner, run.learner, checkpoint = run.learner, None, run.load_checkpoint()
    if learner is None:
        learner = kind(run.config, run.device)
        if checkpoint is None:
            learner.begin()
    if checkpoint is not None:
        with run.fitting():
            learner.restore(*checkpoint)
    with training_progress(run) as show, tensorboard(run.folder / "tensorboard") as log:

        def goes_on(figures: Mapping[str, float]) -> bool:
            left, figures = learner.step < run.config.timesteps, {f"train/{name}": figures[name] for name in figures}
            if run.due(learner.step) or (not left and run.points[-1].step < learner.step):
                point = run.evaluate(learner.step, learner.arrays(), learner.network(), figures)
                run.save_checkpoint(learner.step, learner.state())
                log(learner.step, figures | {f"eval/mean_{point.headline}": point.mean})
            show(learner.step)
            return left

        yield learner, goes_on


@contextmanager
def tensorboard(folder: Path) -> Iterator[Callable[[int, Mapping[str, float]], object]]:
    """Logs for TensorBoard in a folder; yields a function that takes the steps so far and figures by name.

    Without the package `tensorboard`, nothing is logged, which a note on stderr says.
    """
    try:
        from tensorboard.summary import Writer
    except ModuleNotFoundError:
        print(f"mergefall: {folder} gets no logs, because tensorboard is not installed", file=sys.stderr, flush=True)
        yield lambda step, figures: None
        return
    with closing(Writer(str(folder))) as writer:
        yield lambda step, figures: [writer.add_scalar(name, value, step) for name, value in figures.items()]


@contextmanager
def training_progress(run: Run) -> Iterator[Callable[[int], None]]:
    """A progress bar on stderr with the last and the best evaluation; yields a function that takes the steps so far.

    On Ctrl-C, a note says how to resume.
    """

    def note() -> str:
        means = [point.mean for point in run.points]
        return f"mean {short(means[-1])}, best {short(max(means))}" if means else ""

    title, total = f"{run.config.algorithm}: steps", run.config.timesteps
    with progress_bar(title, total, note=note(), enabled=run.progress) as show:
        try:
            yield lambda step: show(step, note())
        except KeyboardInterrupt as interrupt:
            at = run.points[-1].step if run.points else 0
            interrupt.add_note(f"{run.folder} has a checkpoint at step {at}; add --resume to the command to continue")
            raise


def games_of(config: Config, count: int) -> Any:
    """A batch of a run's environments, each of which begins a new game in the step that ends one."""
    options = {"max_episode_steps": config.max_episode_steps, **config.env_kwargs}
    return gym.make_vec(config.env_id, count, autoreset_mode="SameStep", **options)


def set_learning_rate(optimizer: Any, rate: float | str, config: Config, step: int) -> None:
    """Set a step's learning rate from the hyper-parameter `rate`."""
    for group in optimizer.param_groups:
        group["lr"] = schedule("learning_rate", rate)(1 - step / config.timesteps)


def schedule(name: str, value: Any) -> Callable[[float], float]:
    """A rate from a hyper-parameter, a number or text such as `lin_0.5`, as a function of the rest of the training.

    The rest falls from 1 to 0. A number stays as it is; `lin_0.5` falls linearly to 0, as SB3's schedules do. Raises
    ValueError, with the hyper-parameter's `name`, for anything else.

    >>> schedule("learning_rate", "lin_0.5")(0.5), schedule("learning_rate", 0.5)(0.25)
    (0.25, 0.5)
    """
    falls = isinstance(value, str) and value.startswith("lin_")
    try:
        number: Any = float(value.removeprefix("lin_")) if falls else value
    except ValueError:
        number = None
    if not isinstance(number, int | float) or isinstance(number, bool) or not 0 <= number < math.inf:
        raise ValueError(f"{name} is {value!r}; expected a number, or text such as 'lin_0.001'")
    # The last rollout may end beyond the last step.
    return lambda rest: number * max(rest, 0.0) if falls else number
