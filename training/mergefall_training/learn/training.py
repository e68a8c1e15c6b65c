"""Parts that learners share: training in rounds, logs, the progress bar, learning-rate schedules."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from mergefall.typing import Arrays, Options

from mergefall_training.learn.run import Run
from mergefall_training.play.statistics import plain
from mergefall_training.progress import progress_bar


class Learner(Protocol):
    """What `train_in_rounds` trains.

    - `step`: steps done so far.
    - `learn()`: does one round, and returns figures to log.
    - `arrays()`, `network()`: the model, as `Run.evaluate` takes it.
    - `state()`, `restore(step, state)`: everything that resuming needs.
    """

    step: int

    def learn(self) -> dict[str, float]: ...

    def arrays(self) -> Arrays: ...

    def network(self) -> dict[str, Any]: ...

    def state(self) -> dict[str, Any]: ...

    def restore(self, step: int, state: Options) -> None: ...


def train_in_rounds(run: Run, learner: Learner, begin: Callable[[], None] = lambda: None) -> None:
    """Train in a run folder to the end, with evaluations and checkpoints in between.

    Continues from the last checkpoint. Without one, calls `begin` first.
    """
    checkpoint = run.load_checkpoint()
    if checkpoint is None:
        begin()
    else:
        with run.fitting():
            learner.restore(*checkpoint)
    figures: dict[str, float] = {}
    with training_progress(run) as show, tensorboard(run.folder / "tensorboard") as log:
        while True:
            done = learner.step >= run.config.timesteps
            if run.due(learner.step) or (done and run.points[-1].step < learner.step):
                point = run.evaluate(learner.step, learner.arrays(), learner.network(), figures)
                run.save_checkpoint(learner.step, learner.state())
                log(learner.step, figures | {f"eval/mean_{point.headline}": point.mean})
            show(learner.step)
            if done:
                return
            figures = {f"train/{name}": value for name, value in learner.learn().items()}


@contextmanager
def tensorboard(folder: Path) -> Iterator[Callable[[int, Mapping[str, float]], None]]:
    """Logs for TensorBoard in a folder; yields a function that takes the steps so far and figures by name.

    Without the package `tensorboard`, nothing is logged, which a note on stderr says.
    """
    try:
        from tensorboard.summary import Writer
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "tensorboard":
            raise
        print(f"mergefall: {folder} gets no logs, because tensorboard is not installed", file=sys.stderr, flush=True)
        yield lambda step, figures: None
        return
    writer = Writer(str(folder))

    def log(step: int, figures: Mapping[str, float]) -> None:
        for name, value in figures.items():
            writer.add_scalar(name, value, step)

    try:
        yield log
    finally:
        writer.close()


@contextmanager
def training_progress(run: Run) -> Iterator[Callable[[int], None]]:
    """A progress bar on stderr with the last and the best evaluation; yields a function that takes the steps so far.

    On Ctrl-C, a note says how to resume.
    """

    def note() -> str:
        means = [point.mean for point in run.points]
        return f"mean {plain(means[-1])}, best {plain(max(means))}" if means else ""

    title, total = f"{run.config.algorithm}: steps", run.config.timesteps
    with progress_bar(title, total, note=note(), enabled=run.progress) as show:
        try:
            yield lambda step: show(step, note())
        except KeyboardInterrupt as interrupt:
            at = run.points[-1].step if run.points else 0
            interrupt.add_note(f"{run.folder} has a checkpoint at step {at}; add --resume to the command to continue")
            raise


def schedule(name: str, value: Any) -> Any:
    """A learning rate from a hyper-parameter: a number, or a function for text such as `lin_0.5`.

    The function takes the remaining share of training, from 1 to 0, and falls linearly to 0, as SB3's schedules do.
    Raises ValueError, with the hyper-parameter's `name`, for anything else.

    >>> schedule("learning_rate", "lin_0.5")(0.5), schedule("learning_rate", 0.5)
    (0.25, 0.5)
    """
    text = isinstance(value, str)
    try:
        number = float(value.removeprefix("lin_")) if text and value.startswith("lin_") else value
    except ValueError:
        number = None
    if not isinstance(number, int | float) or isinstance(number, bool) or not 0 <= number < math.inf:
        raise ValueError(f"{name} is {value!r}; expected a number, or text such as 'lin_0.001'")
    if not text:
        return number
    return lambda remaining: number * max(remaining, 0.0)  # the last rollout may end beyond the last step
