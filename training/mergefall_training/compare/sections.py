"""Sections of a report: the games of one environment. Records are verified; of a run the last evaluation is played."""

import itertools
import json
import re
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from gymnasium.error import DependencyNotInstalled
from mergefall.checks import in_place
from mergefall.games import game_of
from mergefall.typing import Dict
from mergefall_baselines import make

from mergefall_training.compare.comparison import read_results
from mergefall_training.compare.league import LeagueResult
from mergefall_training.compare.results import ContestResult, Row
from mergefall_training.learn.run import EVALUATION_SEED, Config, Point, read_config, read_curve
from mergefall_training.play.evaluation import Evaluation, evaluate
from mergefall_training.play.records import Header, place_of, same_player
from mergefall_training.play.verify import Verdict, verify_file
from mergefall_training.progress import printable

SEED_LABEL = re.compile(r"(.*), seed (\d+)")


@dataclass
class Section:
    """One environment and the players whose games are shown.

    - `verdicts`: by label, what verification said of each record; games played for the report have none.
    - `matches`: of a league, as `LeagueResult` has them.
    - `configs`: by label, the configuration of a run.
    - `problems`: what is missing or does not hold, a sentence each.
    """

    name: str
    baseline: str | None
    rows: list[Row] = field(default_factory=list)
    verdicts: dict[str, list[Verdict]] = field(default_factory=dict)
    configs: dict[str, Config] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    matches: dict[tuple[str, str], Evaluation] = field(default_factory=dict)

    @cached_property
    def result(self) -> ContestResult:
        """The figures of the players, as a comparison has them; of the finished section."""
        players = {player for player, _ in self.matches}
        if len(players) > 1:
            return LeagueResult.of(self.name, self.matches, self.baseline if self.baseline in players else None)
        return ContestResult(self.name, self.rows, self.baseline)


def sections_of(paths: Sequence[Path], progress: bool) -> list[Section]:
    """The games in some paths: by environment, and by the folder below a path, as `compare` has one for each contest.

    Raises ValueError if there is no such path, or no game that can be shown.
    """
    collected = _Collected(progress)
    for path in paths:
        if not path.exists():
            raise ValueError(
                f"there is no {path}; expected a folder of `mergefall compare`, a run, or a file of records"
            )
        for config in (path / "config.json", *sorted(path.glob("*/config.json"))):
            if config.is_file():
                with collected.problem_of(config.parent):
                    collected.add_run(config.parent)
        for file in [path] if path.is_file() else sorted(path.rglob("*.jsonl")):
            contest = file.parent.relative_to(path if path.is_dir() else file.parent)
            if "runs" not in contest.parts and (file == path or file.name != "curve.jsonl"):
                with collected.problem_of(file):
                    collected.add_file(file, contest)
    sections = [section for section in collected.sections.values() if section.rows]
    problems = [*collected.problems, *(p for s in collected.sections.values() if not s.rows for p in s.problems)]
    if not sections:
        raise ValueError("; ".join(problems) or f"{', '.join(map(str, paths))}: there is no recorded game in it")
    sections[0].problems += problems
    return sections


class _Collected:
    """Sections while they are collected; `problems` belong to none of them."""

    def __init__(self, progress: bool) -> None:
        self.sections: dict[tuple[str, str], Section] = {}
        self.problems: list[str] = []
        self._progress = progress

    @contextmanager
    def problem_of(self, path: Path) -> Iterator[None]:
        """What goes wrong with a path in this block is a problem, and the report goes on."""
        try:
            yield
        except (OSError, ValueError, RecursionError, DependencyNotInstalled) as error:
            problem = str(error) if str(path) in str(error) else f"{path}: {error}"
            self.problems += [problem] * (problem not in self.problems)

    def add_run(self, folder: Path) -> None:
        """Add a training run: its curve, its configuration, and the games of its last evaluation."""
        config, curve = read_config(folder), read_curve(folder)
        player = make(str(folder), model="last")
        evaluation = evaluate(
            player, config.match, config.episodes, EVALUATION_SEED, workers=1, progress=self._progress
        )
        section = self._section("", ".", evaluation.header)
        label = _free_label(printable(folder.name), folder.parent.name, [row.label for row in section.rows])
        section.rows.append(Row(label, evaluation, player.batched, label, config.seed, curve))
        section.configs[label] = config

    def add_file(self, file: Path, contest: Path) -> None:
        """Add a file of records; those that do not hold are left out and named."""
        suite: Dict = {"players": []}
        with self.problem_of(file.parent.with_name("results.json")):
            suite = _suite_entry(file.parent)
        # A series has one run folder for all its rates.
        of_contest = file.parent.with_name(file.parent.name.rpartition("-rate-")[0] or file.parent.name)
        run = of_contest / "runs" / file.stem
        header, verdicts = verify_file(file, self._progress)
        header = replace(header, player=place_of(header, file))
        entry, kwargs = _entry_of(header, suite), dict(header.env_kwargs)
        # Of a suite that has not ended, the name of an agent's file.
        unnamed = file.stem.replace("_seed_", ", seed ").replace("_", " ") if run.is_dir() else header.title
        label = printable(entry.get("label", unnamed))
        opponent = kwargs.pop("opponent", None) if "matches" in suite else None  # of a league
        name = file.parent.name if suite["players"] or contest.parts else ""
        section = self._section(name, contest.as_posix(), replace(header, env_kwargs=kwargs), suite)
        if opponent is None:
            label = _free_label(label, file.name, section.verdicts)
        section.verdicts.setdefault(label, []).extend(verdicts)
        if kinds := Counter(verdict.problem for verdict in verdicts if verdict.problem).most_common(3):
            reasons = "; ".join(f"{problem} ({count} of {len(verdicts)})" for problem, count in kinds)
            section.problems.append(f"{label}: records that do not hold: {reasons}")
        held = [verdict.episode for verdict in verdicts if verdict.episode and not verdict.problem]
        if not held:
            return
        curve: list[Point] = []
        if run.is_dir():
            with self.problem_of(run):
                curve = read_curve(run)
        alike = SEED_LABEL.fullmatch(label)
        group, seed = ("", 0) if not curve else (alike[1], int(alike[2])) if alike else (label, 0)
        evaluation = Evaluation(header, sorted(held, key=lambda episode: episode.seed))
        if opponent is not None:
            other = dict(opponent)
            other = replace(header, player=other.pop("player"), options=other)
            section.matches[label, printable(_entry_of(other, suite).get("label", other.title))] = evaluation
        section.rows.append(Row(label, evaluation, bool(entry.get("batched")), group, seed, curve))

    def _section(self, name: str, contest: str, header: Header, suite: Mapping[str, Any] = {}) -> Section:
        """The section of a header, which bears the contest's name, else that of the environment."""
        key = contest, json.dumps(header.said())
        size = (str(header.env_kwargs[part]) for part in game_of(header.env_id).size if part in header.env_kwargs)
        name = name or f"{header.env_id.rpartition('/')[2]} {'×'.join(size)}".strip()
        return self.sections.setdefault(key, Section(name, suite.get("anchor") or suite.get("baseline")))


def _suite_entry(folder: Path) -> Dict:
    """What the results beside a contest's folder say about it; no players without such results."""
    path = folder.with_name("results.json")
    games = read_results(path).get("games", [])
    with in_place(f"{path} holds no results of a comparison", (LookupError, TypeError, ValueError)):
        entry = next((game for game in games if game["name"] == folder.name), {"players": []})
        told = ((one, str(one["label"]), str(one["player"]), dict(one["options"])) for one in entry["players"])
        players = [one | {"label": label, "player": name, "options": options} for one, label, name, options in told]
        return entry | {"players": players}


def _entry_of(header: Header, suite: Dict) -> Dict:
    """What a suite's results say about a player; nothing without such results."""
    return next((one for one in suite["players"] if same_player(one["player"], one["options"], header)), {})


def _free_label(label: str, source: str, taken: Container[str]) -> str:
    """A label that is not taken: itself, or with its source, or with a number as well."""
    names = itertools.chain([label, f"{label} ({source})"], (f"{label} ({source}, {k})" for k in itertools.count(2)))
    return next(name for name in names if name not in taken)
