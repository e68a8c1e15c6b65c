"""The console and the progress bar: output for people during long work."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from time import monotonic
from typing import Any
from unicodedata import category

from rich.console import Console, ConsoleOptions
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.segment import Segment

WIDTH = 140
EVERY = 30  # seconds between lines of progress where there is no terminal


def printable(text: str) -> str:
    """Text without control characters, which a terminal would obey, and lone surrogates: each becomes U+FFFD.

    Names from files go through this before they are printed. A line break and a tab stay.

    >>> printable("2048/\\x1b[2Jgreedy")
    '2048/\ufffd[2Jgreedy'
    """
    return "".join("\ufffd" if category(letter) in ("Cc", "Cs") and letter not in "\n\t" else letter for letter in text)


class _Screen(Console):
    """A console that prints printable text alone."""

    def render(self, renderable: Any, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """The segments of what is printed; those that move the cursor are Rich's own."""
        for part in super().render(renderable, options):
            yield part if part.control else Segment(printable(part.text), part.style)


def console(stderr: bool = False) -> Console:
    """The console on standard output or error; `WIDTH` columns wide for a file or a pipe."""
    made = partial(_Screen, stderr=stderr, markup=False, emoji=False, highlight=False)
    terminal = made()
    return terminal if terminal.is_terminal else made(width=WIDTH)


@contextmanager
def progress_bar(
    title: str, total: int | None, *, note: str = "", enabled: bool = True
) -> Iterator[Callable[[int, str], None]]:
    """A progress bar on standard error; without a terminal a line at the start, every `EVERY` seconds, and at the end.

    Yields ``show(completed, note)``: how much of `total` is done, and a text beside the bar, such as the mean so far. A
    total of None is not known. A notebook shows it if ipywidgets is installed.
    """
    screen = console(stderr=True)
    if screen.is_terminal or (screen.is_jupyter and find_spec("ipywidgets") is not None):  # else rich would warn
        with Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TextColumn("{task.fields[note]}", markup=False),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=screen,
            disable=not enabled,
        ) as bar:
            row = bar.add_task(title, total=total, note=note)
            yield lambda completed, note: bar.update(row, completed=completed, note=note)
        return
    begun, last, completed = monotonic(), -math.inf, 0

    def show(done: int, text: str) -> None:
        nonlocal completed, note, last
        completed, note = done, text
        if enabled and not screen.is_jupyter and monotonic() - last >= EVERY:
            last = monotonic()
            share = f"{completed:,}" if total is None else f"{completed:,} of {total:,}"
            line = ", ".join(filter(None, (f"{title}: {share}", note, f"{last - begun:.0f} s")))
            screen.print(line, soft_wrap=True)

    show(0, note)
    yield show
    last = -math.inf
    show(completed, note)
