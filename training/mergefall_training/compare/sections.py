"""Sections: recorded games of one environment, each record verified, for reports and leaderboards."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mergefall_training.compare.comparison import FORMAT
from mergefall_training.compare.results import ContestResult, Row
from mergefall_training.compare.suite import Contest, Contestant
from mergefall_training.learn.run import Point, read_curve
from mergefall_training.play.evaluation import Evaluation
from mergefall_training.play.records import Header, same_player
from mergefall_training.play.verify import Verdict, verify

SEED_LABEL = re.compile(r"(.*), seed (\d+)")


@dataclass(frozen=True)
class Section:
    """One environment and the players that were recorded in it.

    - `result`: their figures, as a comparison has them.
    - `verdicts`: by label, what verification said of each record.
    - `problems`: what is missing or does not hold, a sentence each.
    - `sources`: by label, what is known of the player besides its records, as names and texts.
    """

    result: ContestResult
    verdicts: dict[str, list[Verdict]]
    problems: list[str]
    sources: dict[str, dict[str, str]] = field(default_factory=dict)


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


def suite_entry(folder: Path) -> dict[str, Any]:
    """What the results beside a contest's folder say about the contest; empty without such results."""
    results = folder.parent / "results.json"
    if not results.is_file():
        return {}
    found = json.loads(results.read_text())
    if not isinstance(found, dict) or found.get("format") != FORMAT:  # of another program
        return {}
    return next((game for game in found["games"] if game["name"] == folder.name), {})


def label_of(header: Header, suite: dict[str, Any], file: Path) -> str:
    """The player's label in its suite; of a suite that has not ended, the name of its file; else player and options."""
    for player in suite.get("players", ()):
        if same_player(player["player"], player["options"], header):
            return str(player["label"])
    if (file.parent / "runs" / file.stem).is_dir():
        return file.stem.replace("_seed_", ", seed ").replace("_", " ")
    return header.title


@dataclass
class Found:
    """Record files of one environment, while they are collected; `files`: (label, file, its games)."""

    name: str
    baseline: str | None = None
    files: list[tuple[str, Path, Evaluation]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def section_of(found: Found, progress: bool) -> Section:
    """The figures of some files, each record verified; the player with the highest mean first."""
    rows, verdicts, problems = [], {}, list(found.problems)
    for label, file, evaluation in found.files:
        label = f"{label} ({file.name})" if label in verdicts else label
        verdicts[label] = verify(file, progress)
        kinds = Counter(verdict.problem for verdict in verdicts[label] if verdict.problem).most_common(3)
        if kinds:
            told = "; ".join(f"{problem} ({count} of {len(verdicts[label])})" for problem, count in kinds)
            problems.append(f"{label}: records that do not hold: {told}")
        alike = SEED_LABEL.fullmatch(label)
        curve = _curve(file) if alike else []
        group, seed = (alike[1], int(alike[2])) if alike and curve else ("", 0)
        rows.append(replace(row_of(label, evaluation), group=group, training_seed=seed, curve=curve))
    return Section(result_of(found.name, rows, found.baseline), verdicts, problems)


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


def _curve(file: Path) -> list[Point]:
    """The learning curve of the agent whose games a file holds; empty if its run folder is not there."""
    run = file.parent / "runs" / file.stem
    return read_curve(run) if (run / "curve.jsonl").is_file() else []
