"""A report: recorded games as one HTML page with tables, plots and replays, which opens from a file."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mergefall.checks import integer
from mergefall.games import game_of

from mergefall_training.compare.document import write_page
from mergefall_training.compare.sections import (
    Found,
    Section,
    label_of,
    readable,
    record_files,
    section_of,
    suite_entry,
)
from mergefall_training.play.evaluation import Evaluation


def report(
    paths: Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    *,
    replays: int = 2,
    values: int = 400,
    progress: bool = True,
) -> list[Section]:
    """Write a page about recorded games.

    Args:
        paths: folders that `compare` wrote into, and files that `evaluate` wrote.
        out: the page to write.
        replays: games of each player that can be watched: those of the first seeds that all players share. The best and
            the worst game of each player follow.
        values: positions of such a game at which the page shows what the player thinks of each action: the first and
            the last ones, half each.
        progress: whether to show progress bars.

    Every record is verified. Files that cannot be read, records that do not hold and players that cannot be made are
    named in the page, and the rest counts. Raises ValueError if no path holds a game, or for a negative number.
    """
    replays, values = integer("replays", replays, 0), integer("values", values, 0)
    found = _collected([Path(os.path.abspath(path)) for path in paths])
    if not paths:
        raise ValueError("there is nothing to report on; expected files or folders of recorded games")
    if not found:
        raise ValueError(f"{', '.join(map(str, paths))}: there is no recorded game in it")
    sections, wrong = [], list[str]()
    for one in found:
        section = section_of(one, progress)
        if section is None:
            wrong += one.problems
        else:
            sections.append(section)
    if not sections:
        raise ValueError("; ".join(wrong))
    sections[0].problems.extend(wrong)
    title = " · ".join(dict.fromkeys(section.result.name for section in sections))
    write_page(Path(out), title, sections, replays=replays, values=values, progress=progress)
    return sections


def _collected(paths: Sequence[Path]) -> list[Found]:
    """The record files in some paths, by folder and environment."""
    found: dict[str, Found] = {}
    suites: dict[Path, dict[str, Any]] = {}
    for path in paths:
        for file in record_files(path):
            folder = file.parent
            aside = found.setdefault(json.dumps([str(folder)]), Found(folder.name))  # what cannot be read
            if folder not in suites:
                try:
                    suites[folder] = suite_entry(folder)
                except ValueError as error:
                    suites[folder] = {}
                    aside.problems.append(str(error))
            suite = suites[folder]
            try:
                with readable(file):
                    evaluation = Evaluation.read(file)
                    game_of(evaluation.header.env_id)
                    label = label_of(evaluation.header, suite, file)
                    header = evaluation.header
                    key = [str(folder), header.env_id, header.env_kwargs, header.max_episode_steps, header.adversary]
                    name = json.dumps(key)
            except ValueError as error:
                aside.problems.append(str(error))
                continue
            entry = found.setdefault(name, Found(folder.name or "games", suite))
            entry.files.append((label, file, evaluation))
    whole = [entry for entry in found.values() if entry.files]
    for entry in found.values():
        if entry.problems and not entry.files:  # told of beside the others of the folder, if there are any
            beside = [other for other in whole if other.name == entry.name] or whole
            if not beside:
                raise ValueError("; ".join(entry.problems))
            beside[0].problems.extend(entry.problems)
    return whole
