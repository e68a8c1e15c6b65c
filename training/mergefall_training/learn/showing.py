"""What is seen of a training run while it goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from mergefall_training.learn.run import Run
from mergefall_training.progress import progress_bar


@contextmanager
def training_progress(run: Run) -> Iterator[Callable[[int], None]]:
    """A progress bar on stderr with the last and the best evaluation; it yields what takes the steps so far.

    On Ctrl-C the run's folder says how to go on.
    """

    def note() -> str:
        means = [point.mean for point in run.points]
        return f"mean {means[-1]:,.0f}, best {max(means):,.0f}" if means else ""

    title, total = f"{run.config.algorithm}: steps", run.config.timesteps
    with progress_bar(title, total, note=note(), enabled=run.progress) as show:
        try:
            yield lambda step: show(step, note())
        except KeyboardInterrupt as interrupt:
            at = run.points[-1].step if run.points else 0
            interrupt.add_note(f"{run.folder} has a checkpoint at step {at}; the same command with --resume goes on")
            raise
