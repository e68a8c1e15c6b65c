"""Files of arrays with a description: networks, models, checkpoints. Nothing in them is ever imported or executed.

Such a file is an ``.npz`` without pickles. Beside the arrays it holds one entry, ``description``: the bytes of a JSON
object with the format's name and version, the writer's `spec`, and a checksum of these and the arrays. Reading raises
ValueError for a damaged or foreign file. NaN and infinity are neither written nor read.
"""

import hashlib
import json
import os
import threading
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from mergefall.checks import in_place
from mergefall.imports import inert
from mergefall.typing import Array, Arrays, Dict, FilePath, Options

from mergefall_baselines.player import NotFiniteError

_DESCRIPTION = "description"
_UNREADABLE = ValueError, EOFError, KeyError, OSError, NotImplementedError, zipfile.BadZipFile, zlib.error


def write_arrays(
    path: FilePath, form: str, version: int, spec: Options, arrays: Arrays, compressed: bool = False
) -> str:
    """Write arrays of numbers and a `spec` of JSON types to a file of the format `form`; returns the checksum.

    At every moment the file is either the old one or the complete new one.

    Raises ValueError for an array that holds no numbers, NotFiniteError for NaN or infinity.
    """
    path = Path(path)
    description = {"format": form, "version": version, "spec": spec}
    for name, array in arrays.items():
        if name == _DESCRIPTION or array.dtype.kind not in "biuf":
            raise ValueError(f"array {name!r} is of {array.dtype}; expected numbers, and not the name {_DESCRIPTION!r}")
    check_finite(path, arrays)
    description["checksum"] = checksum = _checksum(description, arrays)
    text = np.frombuffer(json.dumps(description, allow_nan=False).encode(), dtype=np.uint8)
    save: Any = np.savez_compressed if compressed else np.savez
    with whole_file(path) as temporary, temporary.open("wb") as file:  # arrays are too large for a copy in memory
        save(file, **{_DESCRIPTION: text}, **dict(arrays))
    return checksum


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yields a path to write to. That file then takes the place of `path`, which is never there in part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.part")
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def read_arrays(
    path: FilePath, form: str, version: int, typed: Any = (), but: Sequence[str] = ()
) -> tuple[Dict, dict[str, Array], str]:
    """(spec, arrays, checksum) of a file that `write_arrays` wrote.

    Raises ValueError for any other file, and for one that names anything to import or run (`mergefall.imports.inert`).
    """
    if not Path(path).is_file():
        raise ValueError(f"there is no file {path}; expected a {form}")
    with in_place(f"{path} is damaged or no {form}", _UNREADABLE):
        if not zipfile.is_zipfile(path):
            raise ValueError("it is no .npz file")
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as entries:  # by name, it leaks damaged files
            arrays = {name: entries[name] for name in entries.files}
        for name, array in arrays.items():
            if not isinstance(array, np.ndarray) or array.dtype.kind not in "biuf":
                raise ValueError(f"the entry {name!r} is no array of numbers")
        description = json.loads(arrays.pop(_DESCRIPTION, np.empty(0, np.uint8)).tobytes())
    if not isinstance(description, dict) or description.get("format") != form:
        raise ValueError(f"{path} is no {form}")
    if description.get("version") != version:
        raise ValueError(f"{path} has format version {description.get('version')!r}; this release reads {version}")
    checksum = description.pop("checksum", None)
    if checksum != _checksum(description, arrays) or not isinstance(description.get("spec"), dict):
        raise ValueError(f"{path} is damaged: its checksum does not fit its content")
    check_finite(path, arrays)
    with in_place(str(path)):
        return inert(description["spec"], typed, but), arrays, checksum


def check_finite(path: FilePath, arrays: Arrays) -> None:
    """Raises NotFiniteError if one of a file's arrays holds NaN or infinity."""
    for name, array in arrays.items():
        if array.dtype.kind == "f" and array.size:
            for extreme in (array.min(), array.max()):  # a NaN makes both NaN; no second array in memory
                if not np.isfinite(extreme):
                    raise NotFiniteError(f"{path}: the array {name!r} holds {extreme}; expected finite numbers")


def _checksum(description: Options, arrays: Arrays) -> str:
    """SHA-256 of the description and of all arrays' names, types, shapes and bytes, in hexadecimal."""
    digest = hashlib.sha256(json.dumps(description, sort_keys=True).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(json.dumps([name, array.dtype.str, arrays[name].shape]).encode())
        digest.update(array.data.cast("B") if array.size else b"")
    return digest.hexdigest()
