"""Files of arrays with a description: models, and what else learners keep. Nothing in them is ever executed.

Such a file is an ``.npz`` without pickles. Beside the arrays it holds one entry, ``description``: the bytes of a JSON
object with the format's name and version, whatever the writer has to say, and a checksum of all of that and the arrays.
What is damaged, or was written by others, is a ValueError before anything is made of it.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mergefall_training.records import write_whole

FORMAT, VERSION = "mergefall model", 1
_DESCRIPTION = "description"


@dataclass(frozen=True)
class Model:
    """A trained model: ``spec`` says what it is, in JSON types; ``arrays`` are its parameters.

    A spec has at least ``algorithm``, ``env_id``, ``env_kwargs`` (defaults filled in) and ``network``, which is the
    algorithm's own. ``checksum`` tells models apart.
    """

    spec: dict[str, Any]
    arrays: dict[str, NDArray[Any]]
    checksum: str


_SPEC = {"algorithm": str, "env_id": str, "env_kwargs": dict, "network": dict}


def save_model(path: str | os.PathLike[str], spec: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write a model file, whole or not at all."""
    _check_spec(spec)
    write_arrays(path, FORMAT, VERSION, spec, arrays)


def load_model(path: str | os.PathLike[str]) -> Model:
    """Read a model file; a ValueError if it is damaged or no model."""
    spec, arrays, checksum = read_arrays(path, FORMAT, VERSION)
    try:
        _check_spec(spec)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    return Model(spec, arrays, checksum)


def _check_spec(spec: Mapping[str, Any]) -> None:
    for name, kind in _SPEC.items():
        if not isinstance(spec.get(name), kind):
            raise ValueError(f"a model's {name} is {spec.get(name)!r}; expected {kind.__name__}")


def write_arrays(
    path: str | os.PathLike[str], form: str, version: int, spec: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> None:
    """Write arrays of numbers and a description of JSON types to a file of the format `form`."""
    description = {"format": form, "version": version, "spec": spec}
    for name, array in arrays.items():
        if name == _DESCRIPTION or array.dtype.kind not in "biuf":
            raise ValueError(f"array {name!r} is of {array.dtype}; expected numbers, and not the name {_DESCRIPTION!r}")
    description["checksum"] = _checksum(description, arrays)
    text = np.frombuffer(json.dumps(description).encode(), dtype=np.uint8)
    content = io.BytesIO()
    np.savez(content, allow_pickle=False, **{_DESCRIPTION: text}, **dict(arrays))  # pyright: ignore[reportArgumentType]
    write_whole(Path(path), content.getbuffer())


def read_arrays(
    path: str | os.PathLike[str], form: str, version: int
) -> tuple[dict[str, Any], dict[str, NDArray[Any]], str]:
    """(description, arrays, checksum) of a file that `write_arrays` wrote; anything else is a ValueError."""
    if not Path(path).is_file():
        raise ValueError(f"there is no file {path}; expected a {form}")
    try:
        arrays = _entries(path)
        description = json.loads(arrays.pop(_DESCRIPTION, np.empty(0, np.uint8)).tobytes())
    except (ValueError, EOFError, KeyError, OSError, NotImplementedError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"{path} is damaged or no {form}: {error}") from error
    if not isinstance(description, dict) or description.get("format") != form:
        raise ValueError(f"{path} is no {form}")
    if description.get("version") != version:
        raise ValueError(f"{path} has format version {description.get('version')!r}; this release reads {version}")
    checksum = description.pop("checksum", None)
    if checksum != _checksum(description, arrays) or not isinstance(description.get("spec"), dict):
        raise ValueError(f"{path} is damaged: its checksum does not fit its content")
    return description["spec"], arrays, checksum


def _entries(path: str | os.PathLike[str]) -> dict[str, NDArray[Any]]:
    if not zipfile.is_zipfile(path):
        raise ValueError("it is no .npz file")
    with np.load(path, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray) or array.dtype.kind not in "biuf":
            raise ValueError(f"the entry {name!r} is no array of numbers")
    return arrays


def _checksum(description: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> str:
    """SHA-256 of the description and of all arrays' names, types, shapes and bytes, in hexadecimal."""
    digest = hashlib.sha256(json.dumps(description, sort_keys=True).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(json.dumps([name, array.dtype.str, arrays[name].shape]).encode())
        digest.update(array.data.cast("B") if array.size else b"")
    return digest.hexdigest()
