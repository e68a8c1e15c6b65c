"""What is seen of a training run while it goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from mergefall_training.console import console
from mergefall_training.learning.runs import Run


@contextmanager
def training_progress(run: Run) -> Iterator[Callable[[int], None]]:
    """A progress bar on stderr with the last and the best evaluation; it yields what takes the steps so far.

    On Ctrl-C the run's folder says how to go on.
    """
    columns = (TextColumn("{task.description}", markup=False), BarColumn(bar_width=20), MofNCompleteColumn())
    columns += (TextColumn("{task.fields[means]}"), TimeElapsedColumn(), TimeRemainingColumn())

    def means() -> str:
        found = [point.mean for point in run.points]
        return f"mean {found[-1]:,.0f}, best {max(found):,.0f}" if found else ""

    with Progress(*columns, console=console(stderr=True), disable=not run.progress) as bar:
        row = bar.add_task(f"{run.config.algorithm}: steps", total=run.config.timesteps, means=means())
        try:
            yield lambda step: bar.update(row, completed=step, means=means())
        except KeyboardInterrupt as interrupt:
            at = run.points[-1].step if run.points else 0
            interrupt.add_note(f"{run.folder} has a checkpoint at step {at}; the same command with --resume goes on")
            raise
