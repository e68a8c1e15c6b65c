"""Records of finished episodes: a JSON-lines file that survives being killed.

The first line is a header with player and environment; each finished episode appends one line. A last line without
a newline was torn by a kill; a resumed run cuts it off. Any other damage is an error.
"""

import base64
import hashlib
import inspect
import json
import sys
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
from mergefall.checks import MOST_COUNTED, in_place
from mergefall.games import games
from mergefall.imports import imported, inert, is_import, name_of, strings_in
from mergefall.library import origin
from mergefall.typing import Array, Dict, FilePath, Options
from mergefall_baselines.player import title
from mergefall_baselines.registry import added

from mergefall_training.files import LineFile, in_places, made, model_file, read_lines
from mergefall_training.play.match import Match
from mergefall_training.progress import printable

FORMAT = "mergefall episodes"
VERSION = 1
RECORDED = 1 << 16  # a record holds at most so many actions
NOT_OF_USERS = {*sys.stdlib_module_names, "mergefall", "mergefall_baselines", "mergefall_training"}


@dataclass(frozen=True)
class Episode:
    """One finished episode.

    - `seed`: the episode is the one from ``reset(seed=seed)``.
    - `score`: final score, whatever the reward was.
    - `length`: number of actions, illegal ones included.
    - `terminated`: whether the game ended by itself; False where a cap ended it.
    - `seconds`: wall time; of matches that are played side by side, that of the player's own decisions.
    - `actions`: its actions as text (`text_of`): all of them, or the first `RECORDED`.
    """

    game: ClassVar[Any]  # its class `Rules`

    seed: int
    score: int
    length: int
    terminated: bool
    seconds: float
    actions: str = field(default="", kw_only=True)

    @property
    def result(self) -> int:
        """The headline figure of the game."""
        return getattr(self, self.game.headline)


@dataclass(frozen=True)
class Game2048Episode(Episode):
    """One finished game of 2048; `max_tile` is the value of the largest tile on the last board."""

    game = games()["2048"]

    max_tile: int


@dataclass(frozen=True)
class TetrisEpisode(Episode):
    """One finished game of Tetris: `lines` cleared and `pieces` placed."""

    game = games()["tetris"]

    lines: int
    pieces: int


@dataclass(frozen=True)
class KeysEpisode(TetrisEpisode):
    """One finished game of Tetris by keys; `attack`: rows of garbage that its clears would have sent."""

    game = games()["keys"]

    attack: int


@dataclass(frozen=True)
class VersusEpisode(KeysEpisode):
    """One finished match; `won`: 1, 0 for a draw or a match that a cap ended, -1 for a match lost."""

    game = games()["versus"]

    won: int


_KINDS: tuple[type[Episode], ...] = (Game2048Episode, TetrisEpisode, KeysEpisode, VersusEpisode)


def episode_from(record: Mapping[str, object]) -> Episode:
    """The episode that a record describes; the record's fields tell which game it is.

    Raises ValueError for fields that no kind of episode has, and for a number that no game has.

    >>> figures = {"seed": 0, "score": 12, "length": 9, "terminated": True, "seconds": 0.1, "max_tile": 8}
    >>> episode_from(figures | {"actions": "eJwDAAAAAAE="}).max_tile
    8
    """
    types = {name: type(value).__name__ for name, value in record.items()}
    kinds = {kind: {field.name: cast(type, field.type).__name__ for field in fields(kind)} for kind in _KINDS}
    kind = next((kind for kind, expected in kinds.items() if types == expected), None)
    if kind is None:
        raise ValueError(f"no episode has the fields {types}; expected {'; or '.join(map(str, kinds.values()))}")
    for name, value in record.items():
        if isinstance(value, int | float) and not abs(value) <= MOST_COUNTED:
            raise ValueError(f"{name} is {value!r}; expected a number up to {MOST_COUNTED:,}")
    return kind(**cast(Any, record))


@dataclass(frozen=True, kw_only=True)
class Header(Match):
    """A match, who plays it and with which version; episodes belong to one run only if all of these are equal.

    - `code`: digests of the user's own code and models (`code_of`); empty if no file is written.
    """

    player: str
    options: Dict
    package: str
    code: dict[str, str] = field(default_factory=dict)

    def check_player(self) -> None:
        """Raises ValueError if to make the player would import or run what a file names."""
        inert({"player": self.player, "options": self.options})

    @property
    def title(self) -> str:
        """The player and its options in one line, as the command line spells them."""
        return printable(title(self.player, self.options))

    def content(self) -> Dict:
        """The fields by name, but for what version 0.1.0 had not: a cap in pieces and code, where there is none."""
        return {name: value for name, value in asdict(self).items() if name not in ("code", "max_pieces") or value}

    def first_line(self) -> Dict:
        """The header as the first line of a file."""
        who = {"format": FORMAT, "version": VERSION, "player": self.player, "options": self.options}
        return who | {name: value for name, value in self.content().items() if name != "adversary" or value is not None}


def header_from(record: Options) -> Header:
    """The header in the first line of a file. Raises ValueError for anything else."""
    content = dict(record)
    kind = content.pop("format", None), content.pop("version", None)
    if kind != (FORMAT, VERSION):
        raise ValueError(f"format and version are {kind}; expected {(FORMAT, VERSION)}")
    return made(Header, content)


def checksum(header: Header, record: Options) -> str:
    """The checksum of a record without its field `checksum`, in a file with this header: 16 hexadecimal digits."""
    return hashlib.sha256(json.dumps([header.content(), dict(record)], sort_keys=True).encode()).hexdigest()[:16]


def played(seed: int, actions: Array, length: int, terminated: Any, seconds: float, figures: Options) -> Episode:
    """The episode of a game that was played: its actions, or the first `RECORDED` of them, and its figures."""
    record = {"seed": seed, "length": length, "terminated": bool(terminated), "seconds": seconds}
    return episode_from(record | {name: int(figures[name]) for name in figures} | {"actions": text_of(actions)})


def text_of(actions: Array) -> str:
    """The first `RECORDED` of a game's actions as text: one byte each, or two if one is above 255; by zlib, as base64.

    >>> actions_of(text_of(np.array([3, 1, 3], np.uint8)), 3)
    array([3, 1, 3], dtype=uint16)
    """
    first = actions[:RECORDED]
    content = first.astype("<u1" if first.max(initial=0) < 256 else "<u2").tobytes()
    return base64.b64encode(zlib.compress(content, 9)).decode()


def actions_of(text: Any, length: int) -> Array:
    """The actions in a record of a game with `length` actions: uint16, at most `RECORDED`. Raises ValueError."""
    count = min(length, RECORDED)
    with in_place("the actions cannot be read", (ValueError, TypeError, zlib.error)):
        packed = zlib.decompressobj()
        content = packed.decompress(base64.b64decode(text, validate=True), 2 * count + 1)
    if not packed.eof or packed.unused_data or len(content) not in (count, 2 * count):
        raise ValueError(f"the actions are {len(content)} bytes; expected one or two for each of {count}")
    return np.frombuffer(content, "<u1" if len(content) == count else "<u2").astype(np.uint16)


# -- reading ----------------------------------------------------------------------------------------------------------


def read_header(path: FilePath) -> tuple[Header, list[Dict]]:
    """The header of a file and its records as they are written, one for each complete line from the second on.

    Raises ValueError if there is no such file, if it is damaged, or if it names anything to import or run
    (`mergefall.imports.inert`), but for the player, of which nothing is made before `Header.check_player`.
    """
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"there is no file {path}; expected one written by `mergefall evaluate --out`")
    records, _ = read_lines(path, "episodes", but=["player", "options"])
    with in_place(f"{path}, line 1"):
        return header_from(records[0] if records else {}), records[1:]


def read_records(path: FilePath) -> tuple[Header, list[Episode]]:
    """The header and the episodes of a file, sorted by seed; a torn last line is left out. Raises as `read_header`.

    If the file and the run folder of its agent were moved or copied together, the header names the new place.
    """
    header, records = read_header(path)
    episodes: dict[int, Episode] = {}
    in_places(f"{path}, line", partial(add_episode, episodes), records, 2)
    return replace(header, player=place_of(header, Path(path))), [episodes[seed] for seed in sorted(episodes)]


def place_of(header: Header, path: Path) -> str:
    """The place of an agent's run folder, if it has gone from the recorded one: that below a folder of the file."""
    there = Path(header.player)
    if "checksum" not in header.options or there.exists():
        return header.player
    # `compare` writes `CONTEST/PLAYER.jsonl` and `CONTEST/runs/PLAYER`.
    places = (folder.joinpath(*there.parts[-n:]) for folder in list(path.parents)[:2] for n in (2, 3))
    return next((place.as_posix() for place in places if place.exists()), header.player)


def add_episode(episodes: dict[int, Episode], record: Options) -> Episode:
    """The episode of a file's record, which is added to `episodes` by its seed.

    Raises ValueError if the record is none, and if its seed is there already.
    """
    # `verify` compares the checksum; `rest` is a digest of actions past `RECORDED`, of version 0.1.0.
    episode = episode_from({name: value for name, value in record.items() if name not in ("checksum", "rest")})
    if episode.seed in episodes:
        raise ValueError(f"seed {episode.seed} is there twice")
    episodes[episode.seed] = episode
    return episode


# -- writing ----------------------------------------------------------------------------------------------------------


class RecordFile(LineFile):
    """A file of episodes that is open for appending; `episodes` maps seeds to the episodes it holds.

    The header of a file stays as it is, also where it names the former place of an agent's run folder.

    Raises ValueError as `LineFile`, and for a file of another run: another header, or other code of the user's.
    """

    def __init__(self, path: FilePath, header: Header) -> None:
        self.episodes: dict[int, Episode] = {}
        super().__init__(path, "episodes", header.first_line(), partial(add_episode, self.episodes))

    def append(self, episode: Episode) -> None:
        """Write a finished episode to the file and flush it."""
        record = asdict(episode)
        record["actions"] = record.pop("actions")  # last, because they are long
        self.write(record | {"checksum": checksum(header_from(self.header), record)})
        self.episodes[episode.seed] = episode

    def check(self, there: Options, here: Options) -> None:
        header, ours = header_from(there), header_from(here)
        if same_player(ours.player, ours.options, header):
            ours = replace(ours, player=header.player)
        super().check(asdict(header), asdict(ours))


def same_player(player: str, options: Options, header: Header) -> bool:
    """Whether a player is the one of a header. A trained agent is known by its checksum, wherever its folder is."""
    return dict(options) == header.options and (player == header.player or "checksum" in options)


# -- the user's code --------------------------------------------------------------------------------------------------


def code_of(*described: Any) -> dict[str, str]:
    """Digests of the user's own code by `module:name`, and of models by the text that names them.

    Of code in a module the digest is of the module's file, of code in a notebook or script that of the function or
    class. Installed packages have versions instead, and are left out.

    `described`: players, functions, and nested data that names players, heuristics and models.

    >>> code_of("2048/greedy", {"heuristic": "nneonneo"})
    {}
    """
    things: list[Any] = [one for one in described if not isinstance(one, str | Mapping | None)]
    things, texts = [one if hasattr(one, "__qualname__") else type(one) for one in things], set(strings_in(described))
    contents: dict[str, bytes] = {}
    for text in texts:
        with suppress(ValueError, OSError):  # most texts name neither a module nor a file
            if is_import(text):
                things.append(imported(text))
            files = {model_file(text, model) for model in ("best", "last")}
            contents[text] = b"".join(file.read_bytes() for file in sorted(files) if file.suffix and file.is_file())
    things += added(texts).values()
    for game in games().values():
        things += [origin(heuristic) for name, heuristic in game.library().added().items() if name in texts]
    contents |= {name_of(thing): _source_of(thing) for thing in things}
    return {name: hashlib.sha256(content).hexdigest()[:16] for name, content in contents.items() if content}


def _source_of(thing: Any) -> bytes:
    """The source of the user's own module that a class or function is in; empty for installed code."""
    module = sys.modules.get(getattr(thing, "__module__", ""))
    file = Path(getattr(module, "__file__", None) or "")
    if module is None or module.__name__ == "__main__":
        with suppress(OSError, TypeError):  # typed into Python's own shell
            return inspect.getsource(getattr(thing, "py_func", thing)).encode()
    package = str(getattr(thing, "__module__", "")).partition(".")[0]
    theirs = package in NOT_OF_USERS or {"site-packages", "dist-packages"} & set(file.parts)
    return file.read_bytes() if file.suffix == ".py" and file.is_file() and not theirs else b""
