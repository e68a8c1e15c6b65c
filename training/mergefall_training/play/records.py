"""Records of finished episodes: a JSON-lines file that survives being killed.

The first line is a header with player and environment; each finished episode appends one line. A last line without
a newline was torn by a kill; a resumed run cuts it off. Any other damage is an error.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, ClassVar, Self, cast

from mergefall.checks import MOST_COUNTED, id_of_file
from mergefall.games import GAMES, Game
from mergefall.imports import check_no_import
from mergefall_baselines.player import title

from mergefall_training.files import append_line, check_there, differences, on_line, open_alone, read_lines
from mergefall_training.progress import printable

FORMAT = "mergefall episodes"
VERSION = 1


OTHER = Game(  # any other environment whose `info` has a score
    name="other",
    homes={},
    rules=(),
    shown=(),
    spaces=(),
    size=("rows", "cols"),
    figures=("score",),
    headline="score",
    turn="move",
    turns="length",
    memoryless=False,
    start=(),
)


@dataclass(frozen=True)
class Episode:
    """One finished episode.

    - `seed`: the episode is the one from ``reset(seed=seed)``.
    - `score`: final score, whatever the reward was.
    - `length`: number of actions, illegal ones included.
    - `terminated`: whether the game ended by itself; False where a cap ended it.
    - `seconds`: wall time.
    - `actions`, `rest`: its actions, as `actions.ActionLog` writes them. Records of earlier versions have none; `rest`
      is None where `actions` holds all.
    """

    game: ClassVar[Game] = OTHER

    seed: int
    score: int
    length: int
    terminated: bool
    seconds: float
    actions: str | None = field(default=None, kw_only=True)
    rest: str | None = field(default=None, kw_only=True)

    @property
    def result(self) -> int:
        """The headline figure of the game."""
        return getattr(self, self.game.headline)

    @property
    def turns(self) -> int:
        """The number of moves, or of pieces."""
        return getattr(self, self.game.turns)


@dataclass(frozen=True)
class Game2048Episode(Episode):
    """One finished game of 2048; `max_tile` is the value of the largest tile on the last board."""

    game: ClassVar[Game] = GAMES["2048"]

    max_tile: int


@dataclass(frozen=True)
class TetrisEpisode(Episode):
    """One finished game of Tetris: `lines` cleared and `pieces` placed."""

    game: ClassVar[Game] = GAMES["tetris"]

    lines: int
    pieces: int


TEXTS = ("actions", "rest")  # fields that records of earlier versions lack
_KINDS: tuple[type[Episode], ...] = (Game2048Episode, TetrisEpisode, Episode)


def episode_from(record: Mapping[str, object]) -> Episode:
    """The episode that a record describes; the record's fields tell which game it is.

    Raises ValueError for fields that no kind of episode has.

    >>> episode_from({"seed": 0, "score": 12, "length": 9, "terminated": True, "seconds": 0.1, "max_tile": 8}).max_tile
    8
    """
    given: dict[str, str] = dict.fromkeys(TEXTS, "str | None")
    for name, value in record.items():
        given[name] = given[name] if name in TEXTS and isinstance(value, str) else type(value).__name__
    for kind in _KINDS:
        if given == {field.name: field.type for field in fields(kind)}:
            _check_figures(record)
            return kind(**cast(Any, record))
    expected = "; or ".join(str({field.name: field.type for field in fields(kind)}) for kind in _KINDS)
    raise ValueError(f"no episode has the fields {given}; expected {expected}")


def _check_figures(record: Mapping[str, Any]) -> None:
    """Raises ValueError for a number that no game has."""
    for name, value in record.items():
        if isinstance(value, int | float) and not abs(value) <= MOST_COUNTED:
            raise ValueError(f"{name} is {value!r}; expected a number up to {MOST_COUNTED:,}")


@dataclass(frozen=True)
class Header:
    """Player, environment and version of a run; episodes belong to one run only if all of these are equal.

    - `adversary`: its `player` and `rate`, as in `evaluate`; None if chance draws alone.
    - `code`: digests of the user's own code and models, as `sources.code_of` returns them; empty if no file is written.
    """

    player: str
    options: dict[str, Any]
    env_id: str
    env_kwargs: dict[str, Any]
    max_episode_steps: int | None
    package: str
    adversary: dict[str, Any] | None = None
    code: dict[str, str] = field(default_factory=dict)

    def check_player(self) -> None:
        """Raises ValueError if to make the player would import a module, or write a file, that the file names."""
        _check_of_file("player", [self.player, self.options])

    @property
    def game_kwargs(self) -> dict[str, Any]:
        """The environment's arguments without those that leave the game as it is: shaping, and how it is shown."""
        return {name: value for name, value in self.env_kwargs.items() if name not in ("shaping", "render_mode")}

    @property
    def title(self) -> str:
        """The player and its options in one line, as the command line spells them."""
        return printable(title(self.player, self.options))

    def content(self) -> dict[str, Any]:
        """The fields by name, without `code` if no code of the user's played."""
        return {name: value for name, value in asdict(self).items() if name != "code" or value}

    def line(self) -> str:
        """The header as the first line of a file. Raises ValueError for options that are no JSON types."""
        content = {"format": FORMAT, "version": VERSION, **self.content()}
        if self.adversary is None:  # as in files that were written before there were adversaries
            del content["adversary"]
        try:
            return json.dumps(content, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise ValueError(f"options and kwargs must be of JSON types to be recorded, but {error}: {self}") from error


def read_header(path: str | os.PathLike[str]) -> tuple[Header, list[dict[str, Any]]]:
    """The header of a file and its records as they are written, one for each complete line from the second on.

    Raises ValueError if there is no such file, if it is damaged, or if its environment's id names a module to import.
    """
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"there is no file {path}; expected one written by `mergefall evaluate --out`")
    records, _ = read_lines(path, "episodes")
    if not records:
        raise ValueError(f"{path} is empty; expected a file written by `mergefall evaluate --out`")
    with on_line(path, 1):
        header = header_from(records[0])
        id_of_file(header.env_id)
        _check_of_file("env_kwargs", header.env_kwargs)
        _check_of_file("adversary", header.adversary)
    return header, records[1:]


def _check_of_file(what: str, value: Any) -> None:
    """Raises ValueError for a module to import, or a file to write (`path`), in nested data of a file."""
    check_no_import(what, value)
    for path in _paths_in(value):
        if not Path(path).exists():
            raise ValueError(f"{what} names the file {path!r} to write; a file may only name files that are there")


def _paths_in(value: Any) -> Iterator[str]:
    """All text under the key `path` in nested mappings and lists."""
    parts = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        if key == "path" and isinstance(part, str):
            yield part
        yield from _paths_in(part)


def read_records(path: str | os.PathLike[str]) -> tuple[Header, list[Episode]]:
    """The header and the episodes of a file, sorted by seed; a torn last line is left out. Raises as `read_header`.

    If the file and the run folder of its agent were moved or copied together, the header names the new place.
    """
    header, records = read_header(path)
    episodes = _episodes(Path(path), records)
    return replace(header, player=_found_again(header, Path(path))), [episodes[seed] for seed in sorted(episodes)]


def _found_again(header: Header, path: Path) -> str:
    """The place of an agent's run folder, if it has gone from the recorded one: that below a folder of the file."""
    there = Path(header.player)
    if "checksum" in header.options and not there.exists():
        for folder in list(path.parents)[:2]:  # `compare` writes `CONTEST/PLAYER.jsonl` and `CONTEST/runs/PLAYER`
            for parts in (there.parts[-2:], there.parts[-3:]):
                if (here := folder.joinpath(*parts)).exists():
                    return here.as_posix()
    return header.player


def same_player(player: str, options: Mapping[str, Any], header: Header) -> bool:
    """Whether a player is the one of a header. A trained agent is known by its checksum, wherever its folder is."""
    return dict(options) == header.options and (player == header.player or "checksum" in options)


def check_same_code(path: Path, found: Mapping[str, str], asked: Mapping[str, str]) -> None:
    """Raises ValueError if a user's own code or model is not the one whose results are at a path."""
    changed = [name for name in found.keys() | asked.keys() if found.get(name) != asked.get(name)]
    if changed:
        raise ValueError(
            f"{path} holds results of an earlier version of {' and '.join(sorted(changed))}. "
            "Delete it, or choose another name"
        )


class RecordFile:
    """A file of episodes that is open for appending; `episodes` maps seeds to the episodes it holds.

    The header of a file stays as it is, also where it names the former place of an agent's run folder.

    Raises ValueError for a file of another run (player, options, env, kwargs, cap, version, adversary), for one that an
    earlier version of the user's code played, for a damaged one, and for one that another run has open.
    """

    def __init__(self, path: str | os.PathLike[str], header: Header) -> None:
        self.path, self._header = Path(path), header
        line = header.line()
        with ExitStack() as until_read:
            self._file = until_read.enter_context(open_alone(self.path, "episodes"))
            records, whole = read_lines(self.path, "episodes", torn_header=line.encode())
            if records:
                with on_line(self.path, 1):
                    found = header_from(records[0])
                _check_same_run(self.path, found, line)
                self._header = found
            self.episodes = _episodes(self.path, records[1:])
            self._file.truncate(whole)
            if not records:
                self._write(line)
            until_read.pop_all()  # the file stays open

    def append(self, episode: Episode) -> None:
        """Write a finished episode to the file and flush it."""
        fields = asdict(episode)
        record = fields | {name: fields.pop(name) for name in TEXTS}  # last, because they are long
        record = {name: value for name, value in record.items() if value is not None}
        self._write(json.dumps(record | {"checksum": checksum(self._header, record)}))
        self.episodes[episode.seed] = episode

    def _write(self, line: str) -> None:
        append_line(self._file, self.path, line)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        with self._file:
            if kind is None:
                check_there(self._file, self.path)


def _episodes(path: Path, records: list[dict[str, Any]]) -> dict[int, Episode]:
    """The episodes of a file's records, by seed."""
    episodes: dict[int, Episode] = {}
    for number, record in enumerate(records, start=2):
        with on_line(path, number):
            record.pop("checksum", None)  # `verify` compares it
            episode = episode_from(record)
            if episode.seed in episodes:
                raise ValueError(f"seed {episode.seed} is there twice")
            episodes[episode.seed] = episode
    return episodes


def checksum(header: Header, record: Mapping[str, Any]) -> str:
    """The checksum of a record without its field `checksum`, in a file with this header: 16 hexadecimal digits."""
    content = json.dumps([header.content(), dict(record)], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:16]


def header_from(record: dict[str, Any]) -> Header:
    """The header in the first line of a file. Raises ValueError for anything else."""
    form, version = record.pop("format", None), record.pop("version", None)
    if form != FORMAT:
        raise ValueError(f"format is {form!r}; expected {FORMAT!r}")
    if version != VERSION:
        raise ValueError(f"format version is {version!r}; this release reads {VERSION}")
    expected = {field.name for field in fields(Header)}
    if record.keys() | {"adversary", "code"} != expected:
        raise ValueError(f"the header has the fields {sorted(record)}; expected {sorted(expected)}")
    options = record["options"]
    cap, against = record["max_episode_steps"], record.get("adversary")
    paired = isinstance(against, dict) and against.keys() == {"player", "rate"}
    for name, fits, expected in (
        ("player", isinstance(record["player"], str), "text"),
        ("options", isinstance(options, dict), "an object"),
        ("env_kwargs", isinstance(record["env_kwargs"], dict), "an object"),
        ("max_episode_steps", cap is None or (type(cap) is int and cap > 0), "a number of steps, or null"),
        ("package", isinstance(record["package"], str), "text"),
        ("adversary", against is None or paired, "an object with player and rate, or null"),
        ("code", isinstance(record.get("code", {}), dict), "an object"),
    ):
        if not fits:
            raise ValueError(f"{name} is {record[name]!r}; expected {expected}")
    if "max_episode_steps" in record["env_kwargs"]:
        raise ValueError("env_kwargs holds max_episode_steps; expected it beside them")
    if "evaluation" in options:  # what Tetris players called their heuristic before
        record["options"] = {{"evaluation": "heuristic"}.get(name, name): value for name, value in options.items()}
    return Header(**record)


def _check_same_run(path: Path, found: Header, line: str) -> None:
    # Compared as JSON reads it back, where a tuple has become a list.
    asked = header_from(json.loads(line))
    if same_player(asked.player, asked.options, found):
        asked = replace(asked, player=found.player)
    if found.code:  # files of earlier versions do not say
        check_same_code(path, found.code, asked.code)
    asked = replace(asked, code=found.code)
    if differing := differences(asdict(found), asdict(asked)):
        raise ValueError(f"{path} holds episodes of another run: {'; '.join(differing)}. Choose another file.")
