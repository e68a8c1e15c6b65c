"""A leaderboard: verified records of many entries as one HTML page, with a table for each game and rule set.

An entry is a folder with files of records and `entry.yaml`, which has the command that played them and the versions of
the packages. `enter` makes one from recorded games; `board` makes the page from a folder of entries.

A record proves a game: its seed and its actions lead to its score by the rules. It does not prove how the actions were
found, nor how long that took. So that nobody can choose seeds, only games of the seeds 0, 1, 2, … without a gap count.
"""

from __future__ import annotations

import html
import json
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from mergefall.games import Game, game_of

from mergefall_training.compare.document import command, write_page
from mergefall_training.compare.results import Row
from mergefall_training.compare.sections import (
    Section,
    free_label,
    label_of,
    record_files,
    result_of,
    row_of,
    suite_entry,
)
from mergefall_training.learn.run import versions
from mergefall_training.play.actions import RECORDED
from mergefall_training.play.evaluation import Evaluation
from mergefall_training.play.records import Episode, Header, read_header
from mergefall_training.play.verify import Verdict, verify
from mergefall_training.play.workers import environment
from mergefall_training.progress import progress_bar

ABOUT = "entry.yaml"


@dataclass(frozen=True)
class Entry:
    """What `entry.yaml` says about a folder of records.

    - `command`: what plays the games again.
    - `versions`: of Python and of packages, by name.
    - `by`: who made the entry; `link`: where more is said, an address that begins with `https://`.
    - `labels`: names of the players, by file; default: player and options.
    """

    command: str
    versions: dict[str, str]
    by: str = ""
    link: str = ""
    labels: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("command", "by", "link"):
            if not isinstance(getattr(self, name), str):
                raise ValueError(f"{name} is {getattr(self, name)!r}; expected text")
        if not self.command.strip():
            raise ValueError("command is empty; expected the command that played the games")
        for name in ("versions", "labels"):
            table = getattr(self, name)
            if not isinstance(table, dict) or not all(isinstance(part, str) for pair in table.items() for part in pair):
                raise ValueError(f"{name} is {table!r}; expected names with a text each")
        if self.link and not re.match(r"https?://", self.link):
            raise ValueError(f"link is {self.link!r}; expected an address that begins with https://")

    @classmethod
    def read(cls, folder: Path) -> Entry:
        """The entry in a folder. Raises ValueError if its file is missing or makes no sense."""
        path = folder / ABOUT
        if not path.is_file():
            raise ValueError(f"{folder} has no {ABOUT}; `mergefall board FOLDER --enter RUN` writes one")
        try:
            found = yaml.safe_load(path.read_text(encoding="utf-8"))
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            raise ValueError(f"{path}: it is no YAML: {' '.join(str(error).split())}") from error
        names = [one.name for one in fields(cls)]
        if not isinstance(found, dict) or not {"command", "versions"} <= found.keys() <= set(names):
            raise ValueError(f"{path} holds {found!r}; expected {', '.join(names)}, of which the first two are needed")
        try:
            return cls(**found)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error


def enter(
    paths: Sequence[str | os.PathLike[str]],
    board: str | os.PathLike[str],
    name: str,
    *,
    command: str,
    by: str = "",
    link: str = "",
) -> Path:
    """Copy recorded games into a leaderboard's folder as an entry; returns the entry's folder.

    Args:
        paths: folders that `compare` wrote into, and files that `evaluate` wrote.
        board: the leaderboard's folder.
        name: of the entry, and of its folder.
        command, by, link: as in `Entry`.

    Raises ValueError if there is such an entry already, if no path holds a game, and if a record does not hold.
    """
    if not re.fullmatch(r"[\w][\w.-]*", name):
        raise ValueError(f"the entry's name is {name!r}; expected letters, digits, and - _ . between them")
    folder = Path(board, name)
    if folder.exists():
        raise ValueError(f"there is an entry {folder} already; choose another name")
    found: dict[str, Path] = {}
    for path in map(Path, paths):
        for file in record_files(path):
            place = file.relative_to(path if path.is_dir() else path.parent).as_posix()
            if place in found:
                raise ValueError(f"{found[place]} and {file} would both be {place} in the entry; enter them apart")
            found[place] = file
    if not found:
        raise ValueError(f"{', '.join(map(str, paths))}: there is no recorded game in it")
    labels = {}
    for place, file in found.items():
        wrong = [verdict for verdict in verify(file, progress=False) if verdict.problem]
        if wrong:
            raise ValueError(f"{file}, line {wrong[0].line}, does not hold: {wrong[0].problem}")
        labels[place] = label_of(read_header(file)[0], suite_entry(file.parent), file)
    entry = Entry(command, versions(), by, link, labels)
    temporary = folder.with_name(f".{name}.part")
    shutil.rmtree(temporary, ignore_errors=True)  # of a call that was killed
    try:
        for place, file in found.items():
            (temporary / place).parent.mkdir(parents=True, exist_ok=True)
            content = file.read_bytes()
            (temporary / place).write_bytes(content[: content.rfind(b"\n") + 1])  # a torn last line is no record
        about = yaml.safe_dump(asdict(entry), sort_keys=False, allow_unicode=True)
        (temporary / ABOUT).write_text(about, encoding="utf-8")
        temporary.rename(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return folder


def board(
    folder: str | os.PathLike[str], out: str | os.PathLike[str] | None = None, *, progress: bool = True
) -> list[Section]:
    """Write the page of a leaderboard's folder; returns its tables, one for each game and rule set.

    Args:
        folder: holds a folder for each entry.
        out: the page to write; default: `index.html` in the folder.
        progress: whether to show progress bars.

    Records that do not hold are left out. These, entries that cannot be read, games against an adversary and games
    behind a gap in the seeds are named in the page. Raises ValueError if no record is left.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise ValueError(f"there is no folder {folder}; expected one that holds a folder for each entry")
    tables: dict[str, _Table] = {}
    problems: list[str] = []
    entries = 0
    for place in sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith(".")):
        try:
            entry = Entry.read(place)
        except ValueError as error:
            problems.append(str(error))
            continue
        entries += 1
        files = list(record_files(place))
        with progress_bar(f"{place.name}: verifying", len(files), enabled=progress) as show:
            for done, file in enumerate(files, start=1):
                try:
                    _add(tables, place, entry, file)
                except ValueError as error:
                    problems.append(str(error))
                show(done, file.stem)
    problems += [f"{table.name}: {one}" for table in tables.values() if not table.rows for one in table.problems]
    played = sorted((table for table in tables.values() if table.rows), key=lambda table: -len(table.rows))
    sections = [table.section() for table in played]
    if not sections:
        raise ValueError(f"{folder} has no record that counts{''.join(f'; {problem}' for problem in problems)}")
    about = f"<p>{entries} {'entry' if entries == 1 else 'entries'}. {html.escape(RULES)}</p>"
    if problems:
        about += "<ul class='problems'>" + "".join(f"<li>{html.escape(problem)}</li>" for problem in problems) + "</ul>"
    out = folder / "index.html" if out is None else Path(out)
    write_page(out, "mergefall leaderboard", sections, about=about, replays=1, values=0, progress=progress)
    return sections


RULES = (
    "Only games of the seeds 0, 1, 2, … without a gap count, and only if their actions lead to their score by the"
    " rules. A record proves a game; how its actions were found, and in what time, is what the entry says."
)


@dataclass
class _Table:
    """The players of one rule set, while they are collected; the fields are those of `Section`."""

    name: str
    rows: list[Row] = field(default_factory=list)
    verdicts: dict[str, list[Verdict]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    sources: dict[str, dict[str, str]] = field(default_factory=dict)

    def section(self) -> Section:
        """The finished table."""
        return Section(result_of(self.name, self.rows, bounds=True), self.verdicts, self.problems, self.sources)


def _add(tables: dict[str, _Table], place: Path, entry: Entry, file: Path) -> None:
    """Add the player of a file to the table of its rules. Raises ValueError if the file cannot be read."""
    played = Evaluation.read(file)
    header = played.header
    game = game_of(header.env_id)
    rules = game.rules_of(header.env_kwargs)
    if missing := [name for name in game.size if not isinstance(rules.get(name), int)]:
        raise ValueError(f"{file}: env_kwargs have no {' and no '.join(missing)}")
    table = tables.setdefault(json.dumps([game.name, rules]), _Table(_name_of(game, rules)))
    title = entry.labels.get(file.relative_to(place).as_posix(), header.title)
    label = free_label(title, place.name, table.verdicts)
    if header.adversary is not None:
        table.problems.append(f"{label}: games against an adversary do not count")
        return
    verdicts = verify(file, progress=False)
    held = {verdict.seed for verdict in verdicts if not verdict.problem}
    if wrong := [verdict for verdict in verdicts if verdict.problem]:
        reason = f"line {wrong[0].line}: {wrong[0].problem}"
        table.problems.append(f"{label}: {len(wrong)} of {len(verdicts)} records do not hold, the first in {reason}")
    proven = {verdict.seed: verdict.proven for verdict in verdicts if verdict.proven}
    known = [proven.get(episode.seed, episode) for episode in played.episodes if episode.seed in held]
    episodes = list(_without_gap(known))
    if behind := len(held) - len(episodes):
        table.problems.append(f"{label}: {behind} games lie behind a gap in the seeds, the first at {len(episodes)}")
    if not episodes:
        return
    if proven:
        table.problems.append(f"{label}: {len(proven)} games count up to action {RECORDED:,}, where their records end")
    if rules.get("goal") is not None:
        rules["reward"] = "goal"  # then players are compared by the share of games that they won
    shown = Evaluation(replace(header, env_id=game.env_ids[0], env_kwargs=rules), episodes)
    if (cut := len(episodes) - shown.deaths) and not game.memoryless:
        table.problems.append(f"{label}: a cap ended {cut} games, so its mean is a lower bound")
    table.verdicts[label] = verdicts
    table.rows.append(row_of(label, shown))
    table.sources[label] = _source(place.name, entry, header, episodes)


def _name_of(game: Game, rules: dict[str, Any]) -> str:
    """The name of a rule set: the game, its size, and the rules that are not the default ones.

    >>> _name_of(game_of("mergefall/Tetris-v0"), {"cols": 10, "rows": 20, "preview": 0, "pieces": "tetromino"})
    'Tetris 10×20, preview 0'
    """
    default = _default_rules(game.env_ids[0])
    others = [
        f"{name} {value}"
        for name, value in rules.items()
        if name not in game.size and value not in (None, getattr(default, name, None))
    ]
    return ", ".join([f"{game.name.capitalize()} {'×'.join(str(rules[name]) for name in game.size)}", *others])


@cache
def _default_rules(env_id: str) -> Any:
    env: Any = environment(env_id, {})
    env.close()
    return env.unwrapped.rules


def _without_gap(episodes: list[Episode]) -> Iterator[Episode]:
    """The episodes of the seeds 0, 1, 2, … up to the first that is missing; they are sorted by seed."""
    for expected, episode in enumerate(episodes):
        if episode.seed != expected:
            return
        yield episode


def _source(name: str, entry: Entry, header: Header, episodes: list[Episode]) -> dict[str, str]:
    """What an entry says about a player, for the page."""
    cap = header.max_episode_steps
    found = {"entry": name, "by": entry.by, "link": entry.link, "entry's command": entry.command}
    found["command"] = command(Evaluation(header, episodes))
    found["cap"] = "" if cap is None else f"{cap:,}"
    found["versions"] = ", ".join(f"{package} {number}" for package, number in entry.versions.items())
    return {key: value for key, value in found.items() if value}
