"""Does one player beat another? Files of episodes compared on the seeds that they share."""

from __future__ import annotations

import os
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from mergefall_training.compare.comparison import cell, percent, print_note, short
from mergefall_training.compare.results import setting
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
    screen.print(Text(setting(first)), soft_wrap=True)
    screen.print(_table(first, others, found))
    note = (
        "Difference: this player's mean minus the first one's; ratio: divided by it; chance: that this player has more "
        f"{first.headline} on a seed. On the seeds of both, below each its 95% interval"
    )
    if len(others) > 1:
        note += (
            f", widened to {100 * confidence:.4g}%, so that all {len(others)} comparisons hold together (Bonferroni)"
        )
    print_note(f"{note}.", screen)
    for other, versus in zip(others, found, strict=True):
        screen.print(Text(verdict(other.header.title, first.header.title, versus)), soft_wrap=True)
    return found


def verdict(player: str, first: str, versus: Versus) -> str:
    """Which of two players has the higher mean, in a sentence, if the interval says it."""
    gap, level = (versus.ratio, 1) if versus.difference is None else (versus.difference, 0)
    if gap.low > level:
        return f"{player} is better than {first}."
    if gap.high < level:
        return f"{player} is worse than {first}."
    return f"These games do not tell whether {player} is better than {first}."


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
