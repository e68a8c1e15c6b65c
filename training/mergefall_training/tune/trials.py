"""The file in which a search records its trials, so that a stopped search can resume, and its progress bar.

A search is deterministic: what it tries next depends only on its arguments and the trials so far. A resumed search
therefore asks for the same trials again. It reads those already on file, and continues with the first missing one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, BinaryIO, Generic, Self, TypeVar

from mergefall.typing import Options

from mergefall_training.files import append_line, check_there, differences, on_line, open_alone, read_lines
from mergefall_training.play.records import check_same_code
from mergefall_training.progress import progress_bar

T = TypeVar("T")  # a trial: a dataclass of JSON types


class TrialFile(Generic[T]):
    """The trials of a search, in order: reads those on file, and appends new ones.

    - `path`: the file; None: trials are not recorded.
    - `header`: the search's arguments, in JSON types.
    - `kind`: the dataclass of a trial; it raises ValueError for bad fields.
    - `code`: digests of the user's own code and models, as `sources.code_of` returns them.

    Raises ValueError if the file is damaged, or has another header, or if code or models have changed since.
    """

    def __init__(
        self, path: str | os.PathLike[str] | None, header: Options, kind: type[T], code: Mapping[str, str]
    ) -> None:
        self.passed: list[T] = []
        self._known: list[T] = []
        self._kind: Any = kind
        self._path = Path(path) if path is not None else None
        self._file: BinaryIO | None = None
        if self._path is None:
            return
        try:
            line = json.dumps({**header, "code": dict(code)} if code else dict(header), allow_nan=False)
        except (TypeError, ValueError) as error:
            raise ValueError(f"the search's arguments are {header}; expected JSON types ({error})") from error
        with ExitStack() as until_read:
            self._file = until_read.enter_context(open_alone(self._path, "trials"))
            lines, whole = read_lines(self._path, "trials", line.encode())
            for number, record in enumerate(lines, start=1):
                with on_line(self._path, number):
                    if number == 1:
                        _check_header(record, json.loads(line))
                        if code_there := record.get("code"):
                            check_same_code(self._path, code_there, code)
                    else:
                        self._known.append(self._trial_from(record))
            self._file.truncate(whole)
            if not lines:
                self._append(line)
            until_read.pop_all()  # it stays open

    def next(self, make: Callable[..., T], **asked: Any) -> T:
        """The next trial: read from the file, where its fields must equal `asked`, or else `make(**asked)`."""
        number = len(self.passed)
        if number < len(self._known):
            trial = self._known[number]
            found = {name: getattr(trial, name) for name in asked}
            if found != asked:
                raise ValueError(f"{self._path}, line {number + 2}: the file has {found}; expected {asked}")
        else:
            trial = make(**asked)
            if self._path:
                self._append(json.dumps(asdict(trial)))  # pyright: ignore[reportArgumentType]
        self.passed.append(trial)
        return trial

    def _trial_from(self, record: Options) -> T:
        expected = {field.name for field in fields(self._kind)}
        if record.keys() != expected:
            raise ValueError(f"a trial has the fields {sorted(expected)}; found {record}")
        return self._kind(**record)

    def _append(self, line: str) -> None:
        assert self._file is not None
        assert self._path is not None
        append_line(self._file, self._path, line)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if self._file and self._path:
            with self._file:
                if error is None:
                    check_there(self._file, self._path)
        if isinstance(error, KeyboardInterrupt) and self._path:
            error.add_note(f"{len(self.passed)} trials are in {self._path}; the same call resumes")


def _check_header(found: Options, asked: Options) -> None:
    for name in ("format", "version"):
        if found.get(name) != asked[name]:
            raise ValueError(f"{name} is {found.get(name)!r}; expected {asked[name]!r}")
    found, asked = ({**header, "code": None} for header in (found, asked))  # `check_same_code` compares it
    if differing := differences(found, asked):
        raise ValueError(f"the file holds another run: {'; '.join(differing)}. Choose another file.")


@contextmanager
def trial_progress(title: str, total: int, enabled: bool) -> Iterator[Callable[[float], None]]:
    """A progress bar with the best value so far; yields a function that takes each trial's value."""
    values: list[float] = []
    with progress_bar(title, total, enabled=enabled) as show:

        def take(value: float) -> None:
            values.append(value)
            show(len(values), f"best {max(values):,.0f}")

        yield take
