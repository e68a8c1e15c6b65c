"""Nested plain data with arrays and tensors in it, as JSON and a dictionary of arrays; and back, exactly.

What a learner must keep to go on is such a tree: state dicts of PyTorch, random generators' states, buffers, counters.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


def flatten(tree: Any) -> tuple[Any, dict[str, NDArray[Any]]]:
    """(JSON types, arrays by name) of None, numbers, text, lists, tuples, dictionaries, NumPy arrays and tensors.

    >>> flatten({"step": 3, "moments": [np.zeros(2)], 0: None})
    ({'$items': [['step', 3], ['moments', [{'$array': '0'}]], [0, None]]}, {'0': array([0., 0.])})
    """
    arrays: dict[str, NDArray[Any]] = {}
    return _flat(tree, arrays), arrays


def _flat(tree: Any, arrays: dict[str, NDArray[Any]]) -> Any:
    if tree is None or isinstance(tree, bool | int | str):
        return tree
    if isinstance(tree, float):
        return float(tree)  # of NumPy's floats too, which are floats but no JSON
    if isinstance(tree, Mapping):
        if all(isinstance(key, str) and not key.startswith("$") for key in tree):
            return {key: _flat(value, arrays) for key, value in tree.items()}
        return {"$items": [[_flat(key, arrays), _flat(value, arrays)] for key, value in tree.items()]}
    if isinstance(tree, tuple):
        return {"$tuple": [_flat(value, arrays) for value in tree]}
    if isinstance(tree, list):
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


def unflatten(flat: Any, arrays: Mapping[str, NDArray[Any]]) -> Any:
    """The tree that `flatten` was given; tensors are on the CPU.

    >>> unflatten(*flatten({0: (1, "a"), 1: [2.5]}))
    {0: (1, 'a'), 1: [2.5]}
    """
    if isinstance(flat, list):
        return [unflatten(value, arrays) for value in flat]
    if not isinstance(flat, dict):
        return flat
    match flat:
        case {"$items": pairs}:
            return {unflatten(key, arrays): unflatten(value, arrays) for key, value in pairs}
        case {"$tuple": values}:
            return tuple(unflatten(value, arrays) for value in values)
        case {"$array": name}:
            return arrays[name]
        case {"$tensor": name}:
            import torch

            return torch.from_numpy(arrays[name])
    return {key: unflatten(value, arrays) for key, value in flat.items()}
