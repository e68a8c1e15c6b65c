"""Sections: recorded games of one environment, each record verified, for reports."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Container, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mergefall_training.compare.comparison import read_results
from mergefall_training.compare.results import ContestResult, Row
from mergefall_training.compare.suite import Contest, Contestant
from mergefall_training.learn.run import Point, read_curve
from mergefall_training.play.evaluation import Evaluation
from mergefall_training.play.records import Header, same_player
from mergefall_training.play.verify import Verdict, verify
from mergefall_training.progress import printable

SEED_LABEL = re.compile(r"(.*), seed (\d+)")


@dataclass(frozen=True)
class Section:
    """One environment and the players that were recorded in it.

    - `result`: their figures, as a comparison has them.
    - `verdicts`: by label, what verification said of each record.
    - `problems`: what is missing or does not hold, a sentence each.
    """

    result: ContestResult
    verdicts: dict[str, list[Verdict]]
    problems: list[str]


def record_files(path: Path) -> Iterator[Path]:
    """The files of records in a folder, without those of training runs; a file itself.

    Raises ValueError if there is no such path.
    """
    if not path.exists():
        raise ValueError(f"there is no {path}; expected a folder of `mergefall compare` or a file of records")
    if path.is_file():
        yield path
        return
    for file in sorted(path.rglob("*.jsonl")):
        if "runs" not in file.relative_to(path).parts and file.name != "curve.jsonl":
            yield file


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Errors of the system and of nested data in this block, which reads a file, become ValueErrors that name it."""
    try:
        yield
    except RecursionError:
        raise ValueError(f"{path}: its lists are nested too deeply") from None
    except OSError as error:
        raise ValueError(f"{path}: {error}") from error


def suite_entry(folder: Path) -> dict[str, Any]:
    """What the results beside a contest's folder say about the contest; empty without such results.

    Raises ValueError for results that cannot be read.
    """
    path = folder.parent / "results.json"
    with readable(path):
        games = read_results(path).get("games", [])
    try:
        entry = next((game for game in games if game["name"] == folder.name), {"players": []})
        for player in entry["players"]:
            str(player["label"]), str(player["player"]), dict(player["options"])
    except (LookupError, TypeError, ValueError) as error:
        raise ValueError(f"{path} holds no results of a comparison: {error!r}") from error
    return entry


def label_of(header: Header, suite: dict[str, Any], file: Path) -> str:
    """The player's label in its suite; of a suite that has not ended, the name of its file; else player and options."""
    label = header.title
    if _run_of(file).is_dir():
        label = file.stem.replace("_seed_", ", seed ").replace("_", " ")
    for player in suite.get("players", ()):
        if same_player(player["player"], player["options"], header):
            label = str(player["label"])
    return printable(label)


@dataclass
class Found:
    """Record files of one environment, while they are collected.

    - `suite`: what their comparison says about the contest (`suite_entry`).
    - `files`: (label, file, its games).
    """

    name: str
    suite: dict[str, Any] = field(default_factory=dict)
    files: list[tuple[str, Path, Evaluation]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def section_of(found: Found, progress: bool) -> Section | None:
    """The figures of some files, each record verified; the player with the highest mean first.

    Records that do not hold are left out; None if none are left. What is wrong is added to the problems of `found`.
    """
    rows, verdicts, problems = [], {}, found.problems
    batched = {player["label"] for player in found.suite.get("players", ()) if player.get("batched")}
    for label, file, evaluation in found.files:
        label = free_label(label, file.name, verdicts)
        try:
            with readable(file):
                verdicts[label] = verify(file, progress)
        except ValueError as error:
            problems.append(f"{label}: {error}")
            continue
        kinds = Counter(verdict.problem for verdict in verdicts[label] if verdict.problem).most_common(3)
        if kinds:
            told = "; ".join(f"{problem} ({count} of {len(verdicts[label])})" for problem, count in kinds)
            problems.append(f"{label}: records that do not hold: {told}")
        wrong = {verdict.seed for verdict in verdicts[label] if verdict.problem}
        held = [one for one in evaluation.episodes if one.seed not in wrong]
        if not held:
            continue
        try:
            curve = _curve(file)
        except ValueError as error:
            curve = []
            problems.append(f"{label}: its learning curve is missing, because {error}")
        alike = SEED_LABEL.fullmatch(label)
        group, seed = (alike[1], int(alike[2])) if alike else (label, 0)
        row = replace(row_of(label, Evaluation(evaluation.header, held)), batched=label in batched)
        rows.append(replace(row, group=group, training_seed=seed, curve=curve) if curve else row)
    if not rows:
        return None
    return Section(result_of(found.name, rows, found.suite.get("baseline")), verdicts, problems)


def free_label(label: str, source: str, taken: Container[str]) -> str:
    """A label that is not taken: itself, or with its source, or with a number as well.

    >>> free_label("greedy", "a", ()), free_label("greedy", "a", {"greedy", "greedy (a)"})
    ('greedy', 'greedy (a, 2)')
    """
    names = itertools.chain([label, f"{label} ({source})"], (f"{label} ({source}, {k})" for k in itertools.count(2)))
    return next(name for name in names if name not in taken)


def row_of(label: str, evaluation: Evaluation) -> Row:
    """The line of a player whose games were recorded."""
    header = evaluation.header
    who = Contestant(header.player, header.options, label, len(evaluation.episodes))
    return Row(who, evaluation, evaluation.summary())


def result_of(name: str, rows: list[Row], baseline: str | None = None) -> ContestResult:
    """The result of a comparison of players whose games were recorded in one environment."""
    header = rows[0].evaluation.header
    contest = Contest(
        name=name,
        env=header.env_id,
        env_kwargs=header.env_kwargs,
        max_episode_steps=header.max_episode_steps,
        seed=min(row.summary.first_seed for row in rows),
        players=tuple(row.contestant for row in rows),
        baseline=baseline,
        adversary=header.adversary,
    )
    return ContestResult(contest, sorted(rows, key=lambda row: -row.summary.mean.value))


def _run_of(file: Path) -> Path:
    """Where the run folder of the agent is whose games a file holds; a series has one for all its rates."""
    folder = file.parent / "runs" / file.stem
    series = file.parent.with_name(file.parent.name.rpartition("-rate-")[0] or file.parent.name)
    return folder if folder.is_dir() else series / "runs" / file.stem


def _curve(file: Path) -> list[Point]:
    """The learning curve of the agent whose games a file holds; empty if its run folder is not there."""
    run = _run_of(file)
    return read_curve(run) if (run / "curve.jsonl").is_file() else []
