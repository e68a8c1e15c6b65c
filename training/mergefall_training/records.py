"""Records of finished episodes: a JSON-lines file that survives being killed.

The first line says who played what; then one line per episode, appended when it ends. Lines end in a newline, so a
line without one was torn by a kill and is cut off when the run resumes. Any other damage is an error.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Self

from mergefall.checks import id_of_file

FORMAT = "mergefall episodes"
VERSION = 1


@dataclass(frozen=True)
class Episode:
    """One finished episode; ``seconds`` is its wall time, ``terminated`` is False where a cap ended it.

    What is particular to a game is said once, by its type. ``headline`` names the figure that a game is judged by;
    ``memoryless`` says that this figure grows until an accident ends the game, each move as likely as any other, so
    that its mean can be told from capped games too. ``turn`` is what a move is called, ``size`` the environment's
    arguments that size the board, in the order that the game's literature writes them.
    """

    headline: ClassVar[str] = "score"
    memoryless: ClassVar[bool] = False
    turn: ClassVar[str] = "move"
    size: ClassVar[tuple[str, ...]] = ("rows", "cols")

    seed: int
    score: int
    length: int
    terminated: bool
    seconds: float

    @property
    def result(self) -> int:
        """The headline figure."""
        return getattr(self, self.headline)

    @property
    def turns(self) -> int:
        """How many moves the game took."""
        return self.length


@dataclass(frozen=True)
class Game2048Episode(Episode):
    """One finished game of 2048; ``max_tile`` is the largest tile's value on the last board."""

    max_tile: int


@dataclass(frozen=True)
class TetrisEpisode(Episode):
    """One finished game of Tetris: ``lines`` cleared and ``pieces`` placed (``length`` counts illegal actions too)."""

    headline: ClassVar[str] = "lines"
    memoryless: ClassVar[bool] = True
    turn: ClassVar[str] = "piece"
    size: ClassVar[tuple[str, ...]] = ("cols", "rows")

    lines: int
    pieces: int

    @property
    def turns(self) -> int:
        return self.pieces


_KINDS: tuple[type[Episode], ...] = (Game2048Episode, TetrisEpisode, Episode)


def episode_from(record: Mapping[str, Any]) -> Episode:
    """The episode that a plain record describes; its fields tell the game.

    >>> episode_from({"seed": 0, "score": 12, "length": 9, "terminated": True, "seconds": 0.1, "max_tile": 8}).max_tile
    8
    """
    given = {name: type(value).__name__ for name, value in record.items()}
    for kind in _KINDS:
        if given == {field.name: field.type for field in fields(kind)}:
            return kind(**record)
    expected = "; or ".join(str({field.name: field.type for field in fields(kind)}) for kind in _KINDS)
    raise ValueError(f"no episode has the fields {given}; expected {expected}")


@dataclass(frozen=True)
class Header:
    """Who played what, and by which version: episodes are of one run only if all of this is equal."""

    player: str
    options: dict[str, Any]
    env_id: str
    env_kwargs: dict[str, Any]
    max_episode_steps: int | None
    package: str

    @property
    def title(self) -> str:
        """The player and its options in one line, as the command line spells them."""
        return " ".join([self.player, *(f"{name}={value}" for name, value in self.options.items())])

    def line(self) -> str:
        """The header as a file's first line; options that JSON cannot hold are a ValueError."""
        try:
            return json.dumps({"format": FORMAT, "version": VERSION, **asdict(self)}, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise ValueError(f"options and kwargs must be of JSON types to be recorded, but {error}: {self}") from error


def read_records(path: str | os.PathLike[str]) -> tuple[Header, list[Episode]]:
    """A file's header and its episodes, sorted by seed; a torn last line is left out, the file left as it is.

    Raises ValueError if there is no such file, if it is damaged, or if its environment's id names a module to import.
    """
    if not Path(path).is_file():
        raise ValueError(f"there is no file {path}; expected one written by `mergefall evaluate --out`")
    header, episodes, _ = _parse(Path(path))
    if header is None:
        raise ValueError(f"{path} is empty; expected a file written by `mergefall evaluate --out`")
    with on_line(Path(path), 1):
        id_of_file(header.env_id)
    return header, sorted(episodes.values(), key=lambda episode: episode.seed)


class RecordFile:
    """A file open for appending: ``episodes`` (by seed) are on it already, `append` adds one and flushes it.

    A file of another run (player, options, env, kwargs, cap, version), a damaged one, or one that a run has open is a
    ValueError.
    """

    def __init__(self, path: str | os.PathLike[str], header: Header) -> None:
        self.path = Path(path)
        line = header.line()
        with ExitStack() as until_read:
            self._file = until_read.enter_context(open_alone(self.path, "episodes"))
            found, self.episodes, whole = _parse(self.path, torn_header=line.encode())
            if found is not None:
                _check_same_run(self.path, found, line)
            self._file.truncate(whole)
            if found is None:
                self._write(line)
            until_read.pop_all()  # it stays open

    def append(self, episode: Episode) -> None:
        """Add a finished episode; it is on file when this returns."""
        self._write(json.dumps(asdict(episode)))
        self.episodes[episode.seed] = episode

    def _write(self, line: str) -> None:
        self._file.write(line.encode() + b"\n")
        self._file.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def open_alone(path: Path, what: str) -> BinaryIO:
    """A file of ``what`` open for appending, made if it is not there; a ValueError if a run has it open already."""
    if path.is_dir():
        raise ValueError(f"{path} is a folder; expected the name of a file for the {what}")
    path.parent.mkdir(parents=True, exist_ok=True)
    file = path.open("ab")
    try:
        _lock(file)
    except (BlockingIOError, PermissionError) as error:
        file.close()
        raise ValueError(f"another run is writing to {path}; wait for its end or choose another file") from error
    return file


def _lock(file: BinaryIO) -> None:
    """Lock a file until it is closed or the process ends; raises what the system does if another holds the lock."""
    if sys.platform == "win32":
        import msvcrt

        file.seek(2**31 - 2)  # a byte behind all content, for nobody can read what is locked
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def write_whole(path: Path, content: bytes | memoryview) -> None:
    """Write a file that is either the old one or the new one at every moment."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        temporary.write_bytes(content)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def read_lines(path: Path, what: str, torn_header: bytes = b"") -> tuple[list[dict[str, Any]], int]:
    """The objects on the whole lines of a JSON-lines file, and the length of these lines in bytes.

    A first line without its newline is only ours to cut off if it is the beginning of ``torn_header``.
    """
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole == 0 and not torn_header.startswith(content):
        raise ValueError(f"{path} is not a file of {what}: it begins with {content[:40]!r}")
    records = []
    for number, line in enumerate(content[:whole].split(b"\n")[:-1], start=1):
        with on_line(path, number):
            record = json.loads(line)
            if not isinstance(record, dict):
                raise ValueError(f"expected an object, found {record!r}")
        records.append(record)
    return records, whole


@contextmanager
def on_line(path: Path, number: int) -> Iterator[None]:
    """A ValueError that is raised in here says on which line of which file."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{path}, line {number}: {error}") from error


def _parse(path: Path, torn_header: bytes = b"") -> tuple[Header | None, dict[int, Episode], int]:
    """Header (None: no whole line yet), episodes by seed, and the length in bytes of the lines that are whole."""
    records, whole = read_lines(path, "episodes", torn_header)
    header: Header | None = None
    episodes: dict[int, Episode] = {}
    for number, record in enumerate(records, start=1):
        with on_line(path, number):
            if header is None:
                header = _header_from(record)
                continue
            episode = episode_from(record)
            if episode.seed in episodes:
                raise ValueError(f"seed {episode.seed} is on file twice")
            episodes[episode.seed] = episode
    return header, episodes, whole


def _header_from(record: dict[str, Any]) -> Header:
    form, version = record.pop("format", None), record.pop("version", None)
    if form != FORMAT:
        raise ValueError(f"format is {form!r}; expected {FORMAT!r}")
    if version != VERSION:
        raise ValueError(f"format version is {version!r}; this release reads {VERSION}")
    expected = {field.name for field in fields(Header)}
    if record.keys() != expected:
        raise ValueError(f"the header has the fields {sorted(record)}; expected {sorted(expected)}")
    return Header(**record)


def _check_same_run(path: Path, found: Header, line: str) -> None:
    # Compared as JSON reads it back, where a tuple has become a list.
    asked = _header_from(json.loads(line))
    if differing := differences(asdict(found), asdict(asked)):
        raise ValueError(f"{path} holds episodes of another run: {'; '.join(differing)}. Choose another file.")


def differences(found: Mapping[str, Any], asked: Mapping[str, Any], parent: str = "") -> list[str]:
    """What differs between the description on file and the one that is asked for, key by key; `parent` is a prefix.

    >>> differences({"seed": 0, "options": {"depth": 2}}, {"seed": 0, "options": {"depth": 3, "table": True}})
    ['options.depth is 2 there, 3 here', 'options.table is missing there, True here']
    """
    lines = []
    for key in {**found, **asked}:
        there, here = found.get(key), asked.get(key)
        if isinstance(there, Mapping) and isinstance(here, Mapping):
            lines += differences(there, here, f"{parent}{key}.")
        elif there != here or (key in found) != (key in asked):
            there, here = (repr(side[key]) if key in side else "missing" for side in (found, asked))
            lines.append(f"{parent}{key} is {there} there, {here} here")
    return lines
