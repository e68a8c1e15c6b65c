"""Does one player beat another? Files of episodes compared on the seeds that they share."""

from __future__ import annotations

import os
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from mergefall_training.compare.comparison import cell, percent, short
from mergefall_training.play.evaluation import Evaluation, Versus
from mergefall_training.progress import console


def compare_files(paths: Sequence[str | os.PathLike[str]], screen: Console | None = None) -> list[Versus]:
    """Compare the players of files that `evaluate` wrote with that of the first file, and print it.

    The intervals hold together with 95 %: of k comparisons, each has a confidence of 1 − 0.05 / k (Bonferroni).

    Raises ValueError for fewer than two files, and for files of different environments or without a common seed.
    """
    if len(paths) < 2:
        raise ValueError(
            f"{len(paths)} file was named; expected two or more, the first of which all others are compared with"
        )
    first, *others = [Evaluation.read(path) for path in paths]
    confidence = 1 - 0.05 / len(others)
    found = [other.versus(first, confidence=confidence) for other in others]
    screen = screen or console()
    header = first.header
    screen.print(Text(f"{header.env_id} {header.env_kwargs}"), soft_wrap=True)
    screen.print(_table(first, others, found))
    note = (
        "Differences, ratios and the chance of more on a seed: to the first player, on the seeds of both; 95% intervals"
    )
    if len(others) > 1:
        note += f", each of {100 * confidence:.4g}%, so that all {len(others)} comparisons hold together (Bonferroni)"
    screen.print(f"[dim]{note}.[/dim]", highlight=False, soft_wrap=True)
    return found


def _table(first: Evaluation, others: list[Evaluation], found: list[Versus]) -> Table:
    """One line per player, each estimate above its interval."""
    view = Table(padding=(0, 1, 0, 0), box=None)
    view.add_column("player", overflow="fold", min_width=16)
    for name in ("N", f"mean {first.headline}", "seeds of both", "difference", "ratio", "chance of more"):
        view.add_column(name, justify="right", no_wrap=True)
    view.add_row(Text(first.header.title), str(len(first.episodes)), cell(first.mean(), short))
    for other, versus in zip(others, found, strict=True):
        estimates = [cell(other.mean(), short), str(versus.games), cell(versus.difference, short)]
        estimates += [cell(versus.ratio, short), cell(versus.higher, percent)]
        view.add_row(Text(other.header.title), str(len(other.episodes)), *estimates)
    return view
