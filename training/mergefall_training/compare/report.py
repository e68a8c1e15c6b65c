"""A report: games and training runs as one HTML page with tables, plots and replays, which opens from a file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from mergefall.checks import integer

from mergefall_training.compare.document import write_page
from mergefall_training.compare.sections import Section, sections_of


def report(
    paths: Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    *,
    replays: int = 2,
    values: int = 400,
    progress: bool = True,
) -> list[Section]:
    """Write a page about games and runs. Players of the same environment share a table, the best first.

    Args:
        paths: folders that `compare` wrote into, files that `evaluate` wrote, run folders, and folders of runs. Of a
            run the page shows the curve, the configuration and its last evaluation, whose games are played again.
        out: the page to write.
        replays: games of each player that can be watched: those of the first seeds that all players share. The best and
            the worst game of each player follow.
        values: positions of such a game at which the page shows what the player thinks of each action: the first and
            the last ones, half each.
        progress: whether to show progress bars.

    Every record is verified. What cannot be read, records that do not hold and players that cannot be made are named in
    the page, and the rest counts. Raises ValueError if no path holds a game, or for a negative number.
    """
    replays, values = integer("replays", replays, 0), integer("values", values, 0)
    if not paths:
        raise ValueError("there is nothing to report on; expected files or folders of recorded games, or runs")
    sections = sections_of([Path(os.path.abspath(path)) for path in paths], progress)
    write_page(Path(out), sections, replays=replays, values=values, progress=progress)
    return sections
