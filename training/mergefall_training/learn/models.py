"""Model files, and the conversion of a learner's state to JSON and arrays for checkpoint files."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from mergefall.typing import Array, Arrays, Dict, FilePath, Options
from mergefall_baselines.arrays import read_arrays, write_arrays

FORMAT, VERSION = "mergefall model", 1


@dataclass(frozen=True)
class Model:
    """A trained model.

    - `spec`: description in JSON types: at least `algorithm`, `env_id`, `env_kwargs` (with defaults), and `network`,
      which only the algorithm interprets. In a model that was read, `shaped` is true if it learned shaped rewards.
    - `arrays`: parameters.
    - `checksum`: of spec and arrays.
    """

    spec: Dict
    arrays: dict[str, Array]
    checksum: str


_SPEC = {"algorithm": str, "env_id": str, "env_kwargs": dict, "network": dict}


def save_model(path: FilePath, spec: Options, arrays: Arrays) -> None:
    """Write a model file, whole or not at all."""
    write_arrays(path, FORMAT, VERSION, spec, arrays)


def load_model(path: FilePath, typed: Any = ()) -> Model:
    """Read a model file.

    Raises ValueError if the file is damaged or no model, or if it names anything to import or run that `typed`, nested
    data of the user's, does not name (`mergefall.imports.inert`); shaping is left out, because no player needs it.
    """
    spec, arrays, checksum = read_arrays(path, FORMAT, VERSION, typed, ["env_kwargs.shaping"])
    for name, kind in _SPEC.items():
        if not isinstance(spec.get(name), kind):
            raise ValueError(f"{path}: a model's {name} is {spec.get(name)!r}; expected {kind.__name__}")
    if spec["env_kwargs"].get("shaping") is not None:
        spec["env_kwargs"]["shaping"], spec["shaped"] = None, True
    return Model(spec, arrays, checksum)


# -- state of a learner -----------------------------------------------------------------------------------------------


def flatten(tree: Any) -> tuple[Any, dict[str, Array]]:
    """Split nested data into (JSON types, arrays by name); `unflatten` restores it exactly.

    The data may hold None, numbers, text, lists, tuples, dictionaries, NumPy arrays and PyTorch tensors: for example
    state dicts, buffers, counters, and the states of random generators. Raises TypeError for anything else.

    >>> flatten({"step": 3, "moments": [np.zeros(2)], 0: None})
    ({'$items': [['step', 3], ['moments', [{'$array': '0'}]], [0, None]]}, {'0': array([0., 0.])})
    """
    arrays: dict[str, Array] = {}
    return _flat(tree, arrays), arrays


def _flat(tree: Any, arrays: dict[str, Array]) -> Any:
    match tree:
        case None | bool() | int() | str():
            return tree
        case float():  # NumPy's float64 is one, but json would not write it; JSON lacks infinity and NaN
            return float(tree) if math.isfinite(tree) else {"$float": str(float(tree))}
        case Mapping():
            if all(isinstance(key, str) and not key.startswith("$") for key in tree):
                return {key: _flat(value, arrays) for key, value in tree.items()}
            return {"$items": [[_flat(key, arrays), _flat(value, arrays)] for key, value in tree.items()]}
        case tuple():
            return {"$tuple": [_flat(value, arrays) for value in tree]}
        case list():
            return [_flat(value, arrays) for value in tree]
    name = str(len(arrays))
    if isinstance(tree, np.ndarray | np.generic):
        arrays[name] = np.asarray(tree)
        return {"$array": name}
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(tree, torch.Tensor):
        arrays[name] = tree.detach().cpu().numpy()
        return {"$tensor": name}
    raise TypeError(f"{tree!r} cannot be kept; expected numbers, text, lists, dictionaries, arrays or tensors")


def unflatten(flat: Any, arrays: Arrays) -> Any:
    """The data that `flatten` was given; tensors are on the CPU."""
    if isinstance(flat, list):
        return [unflatten(value, arrays) for value in flat]
    if not isinstance(flat, dict):
        return flat
    match flat:
        case {"$items": pairs}:
            return {unflatten(key, arrays): unflatten(value, arrays) for key, value in pairs}
        case {"$tuple": values}:
            return tuple(unflatten(value, arrays) for value in values)
        case {"$float": text}:
            return float(text)
        case {"$array": name}:
            return arrays[name]
        case {"$tensor": name}:
            import torch

            return torch.from_numpy(arrays[name])
    return {key: unflatten(value, arrays) for key, value in flat.items()}
