"""Files that survive a kill: JSON lines, appended under a lock, and files written whole or not at all.

All JSON and YAML of files is read here, and names nothing to import or run (`mergefall.imports.inert`); JSON is written
here. Also where a run folder has its models, which records and runs name.
"""

import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from types import UnionType
from typing import Any, BinaryIO, Self, TypeVar, get_args, get_origin, get_type_hints

from mergefall.checks import choice, in_place, known
from mergefall.imports import inert
from mergefall.interrupt import deadline
from mergefall.typing import Dict, FilePath, Options
from mergefall_baselines.arrays import whole_file

from mergefall_training.yaml_numbers import load_yaml

T = TypeVar("T")


def open_alone(path: Path, what: str) -> BinaryIO:
    """Open a file of `what` for appending, make it if needed, and lock it until it is closed: one run at a time."""
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} is no regular file; expected the name of a file for the {what}")
    path.parent.mkdir(parents=True, exist_ok=True)
    file = path.open("a+b")
    try:
        if sys.platform == "win32":
            import msvcrt

            file.seek(2**31 - 2)  # a byte behind all content, because locked bytes cannot be read
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError) as error:
        file.close()
        raise ValueError(f"another run is writing to {path}; wait for its end or choose another file") from error
    return file


class LineFile:
    """A JSON-lines file that is open for appending: a header, then records. A torn last line is cut off.

    Args:
        path, what: the file, and what it holds, for messages.
        header: the first line of a new file.
        read: called with the object on each other line; raises ValueError for a wrong one.
        but: fields of records of which nothing is made, as for `mergefall.imports.inert`.

    Raises ValueError for a file of another run (`check`), for what `read` refuses, for a header of other types than
    JSON's, for damage, and if another run has the file open.
    """

    def __init__(
        self,
        path: FilePath,
        what: str,
        header: Options,
        read: Callable[[Dict], object],
        but: Sequence[str] = (),
    ) -> None:
        self.path, self.what = Path(path), what
        try:
            line = json.dumps(header, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise ValueError(f"a file of {what} needs JSON types, but {error}: {header}") from error
        with ExitStack() as until_read:
            self._file = until_read.enter_context(open_alone(self.path, what))
            lines, whole = read_lines(self.path, what, line.encode(), [*header, *but])
            self.header, *records = lines or [json.loads(line)]
            with in_place(f"{self.path}, line 1"):
                self.check(self.header, json.loads(line))
            in_places(f"{self.path}, line", read, records, 2)
            self._file.truncate(whole)
            if not lines:
                self.write(header)
            until_read.pop_all()  # the file stays open

    def check(self, there: Options, here: Options) -> None:
        """Raises ValueError if the file's header is not the expected one."""
        if differing := differences(there, here):
            raise ValueError(f"the file holds {self.what} of another run: {'; '.join(differing)}. Choose another file.")

    def write(self, record: Options) -> None:
        """Append a line and flush it.

        Raises ValueError if somebody has removed or replaced the file. Its content is then written anew: to the path,
        or beside another file that has taken the path.
        """
        self._file.write(json_text(record).encode() + b"\n")
        self._file.flush()
        taken = self.path.exists()
        if taken and os.path.samestat(self.path.stat(), os.fstat(self._file.fileno())):
            return
        kept = self.path.with_name(f"{self.path.stem}.kept{self.path.suffix}") if taken else self.path
        self._file.seek(0)
        write_whole(kept, self._file.read())
        raise ValueError(f"{self.path} was removed or replaced while it was written to; its content is in {kept}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def check_folder(path: Path) -> None:
    """Make the folder of a file; raises OSError if no file can be written into it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        TemporaryFile(dir=path.parent).close()
    except OSError as error:
        raise type(error)(error.errno, error.strerror, str(path)) from None  # not the temporary name


def write_whole(path: Path, content: bytes | memoryview) -> None:
    """Write a file so that at every moment it is either the old one or the new one."""
    with whole_file(path) as temporary:
        temporary.write_bytes(content)


def json_text(content: Any, **layout: Any) -> str:
    """Nested data as JSON; infinity and NaN, which JSON lacks, become null. `layout`: arguments of `json.dumps`."""
    return json.dumps(_finite(content), allow_nan=False, **layout)


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _finite(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def read_json(path: Path, typed: Any = (), but: Sequence[str] = ()) -> Any:
    """The data of a JSON file that names nothing to import or run (`mergefall.imports.inert`). Raises ValueError."""
    try:
        return inert(json.loads(path.read_text(encoding="utf-8")), typed, but)
    except RecursionError:
        raise ValueError("its lists are nested too deeply") from None


def read_yaml(path: Path) -> Any:
    """The data of a YAML file that names nothing to import or run (`mergefall.imports.inert`). Raises ValueError."""
    return inert(load_yaml(path.read_text(encoding="utf-8")))


def read_lines(path: Path, what: str, torn_header: bytes = b"", but: Sequence[str] = ()) -> tuple[list[Dict], int]:
    """The objects on the complete lines of a JSON-lines file, and the length of these lines in bytes.

    Raises ValueError for damage, and for what names anything to import or run (`mergefall.imports.inert`, with `but`).
    An incomplete first line is no damage if it is the beginning of `torn_header`.
    """
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    if content[:1] not in (b"{", b"") or (whole == 0 and not torn_header.startswith(content)):
        raise ValueError(f"{path} is not a file of {what}: it begins with {content[:40]!r}")
    records = []
    for number, line in enumerate(content[:whole].split(b"\n")[:-1], start=1):
        with in_place(f"{path}, line {number}"):
            try:
                record = json.loads(line)
            except RecursionError:
                raise ValueError("its lists are nested too deeply") from None
            if not isinstance(record, dict):
                raise ValueError(f"expected an object, found {record!r}")
            records.append(inert(record, but=but))
    return records, whole


@contextmanager
def within(seconds: float, what: str) -> Iterator[None]:
    """Raises ValueError if a search that a file asks for takes longer."""
    try:
        with deadline(seconds):
            yield
    except TimeoutError:
        raise ValueError(f"{what} takes more than {seconds:,.0f} s") from None


def in_places(what: str, read: Callable[[Any], T], entries: Iterable[Any], first: int = 1) -> list[T]:
    """What `read` returns for each entry; a ValueError gets `what` and the entry's number in front (`in_place`)."""
    found = []
    for number, entry in enumerate(entries, first):
        with in_place(f"{what} {number}"):
            found.append(read(entry))
    return found


def differences(found: Options, asked: Options, parent: str = "") -> list[str]:
    """The differences between the description in a file and the expected one, key by key; `parent` is a prefix.

    >>> differences({"seed": 0, "options": {"depth": 2}}, {"seed": 0, "options": {"depth": 3, "table": True}})
    ['options.depth is 2 there, 3 here', 'options.table is missing there, True here']
    """
    lines = []
    for key in {**found, **asked}:
        there, here = found.get(key, ...), asked.get(key, ...)
        if isinstance(there, Mapping) and isinstance(here, Mapping):
            lines += differences(there, here, f"{parent}{key}.")
        elif there != here:
            there, here = ("missing" if one is ... else repr(one) for one in (there, here))
            lines.append(f"{parent}{key} is {there} there, {here} here")
    return lines


def model_file(path: FilePath, model: str = "best") -> Path:
    """The model file at a path: the path itself, or the `best` or `last` model of a run folder."""
    path = Path(path)
    choice("model", model, ("best", "last"))
    if not path.is_dir():
        return path
    file = path / ("best.npz" if model == "best" else "model.npz")
    if not file.is_file():
        raise ValueError(f"{path} holds no trained agent: there is no {file}")
    return file


def made(kind: type[T], content: Any) -> T:
    """An instance of a dataclass from a mapping. Raises ValueError for an unknown, a missing or a mistyped field."""
    types = get_type_hints(kind)
    if not isinstance(content, Mapping):
        raise ValueError(f"it is {content!r}; expected a mapping with {', '.join(types)}")
    known("it", content, types)
    for name, value in content.items():
        hint = types[name]
        kinds = [get_origin(one) or one for one in (get_args(hint) if isinstance(hint, UnionType) else [hint])]
        fits = isinstance(value, tuple(kinds)) or (isinstance(value, int) and float in kinds)
        if not fits or (isinstance(value, bool) and bool not in kinds):
            raise ValueError(f"{name} is {value!r}; expected {kinds[0].__name__}")
    try:
        return kind(**content)
    except TypeError as error:
        raise ValueError(f"{error}; it has {', '.join(types)}") from error
