"""Model files: arrays with a description, as `mergefall_baselines.arrays` writes them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mergefall.checks import id_of_file
from mergefall_baselines.arrays import read_arrays, write_arrays
from numpy.typing import NDArray

FORMAT, VERSION = "mergefall model", 1


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
    """Read a model file; a ValueError if it is damaged, no model, or its environment's id names a module to import."""
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
    id_of_file(spec["env_id"])
