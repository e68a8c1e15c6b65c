"""Model files, and the conversion of a learner's state to JSON and arrays for checkpoint files."""

import math
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

    def flat(tree: Any) -> Any:
        match tree:
            case None | bool() | int() | str():
                return tree
            case float():  # NumPy's float64 is one, but json would not write it; JSON lacks infinity and NaN
                return float(tree) if math.isfinite(tree) else {"$float": str(float(tree))}
            case Mapping():
                if all(isinstance(key, str) and not key.startswith("$") for key in tree):
                    return {key: flat(value) for key, value in tree.items()}
                return {"$items": [flat([*pair]) for pair in tree.items()]}
            case tuple():
                return {"$tuple": flat([*tree])}
            case list():
                return [flat(value) for value in tree]
        kind, name = "$array", str(len(arrays))
        if hasattr(tree, "detach"):  # a tensor; PyTorch may be missing
            kind, tree = "$tensor", tree.detach().cpu().numpy()
        if not isinstance(tree, np.ndarray | np.generic):
            raise TypeError(f"{tree!r} cannot be kept; expected numbers, text, lists, dictionaries, arrays or tensors")
        arrays[name] = np.asarray(tree)
        return {kind: name}

    return flat(tree), arrays


def unflatten(flat: Any, arrays: Arrays) -> Any:
    """The data that `flatten` was given; tensors are on the CPU."""

    def whole(flat: Any) -> Any:
        match flat:
            case list():
                return [whole(value) for value in flat]
            case {"$items": pairs}:
                return dict(whole(pairs))
            case {"$tuple": values}:
                return tuple(whole(values))
            case {"$float": text}:
                return float(text)
            case {"$array": name}:
                return arrays[name]
            case {"$tensor": name}:
                import torch

                return torch.from_numpy(arrays[name])
            case dict():
                return {key: whole(value) for key, value in flat.items()}
        return flat

    return whole(flat)
