"""Weighted sums of named terms: what the heuristics of 2048 and the evaluations of Tetris have in common."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class WeightedSum:
    """Named terms and a weight for each; the fields of a subclass are the weights, the published ones by default."""

    kind: ClassVar[str]  # what error messages call it
    name: ClassVar[str]
    term_names: ClassVar[tuple[str, ...]]
    vectors: ClassVar[Mapping[str, Mapping[str, float]]] = {}  # weights that have a name

    def __post_init__(self) -> None:
        for term in self.term_names:
            check_weight(self.name, term, getattr(self, term))

    def weight_vector(self) -> NDArray[np.float64]:
        """The weights as the kernels take them, float64[k]; the first are those of the terms, in order."""
        return np.array([getattr(self, term) for term in self.term_names], dtype=np.float64)

    @cached_property
    def _weights(self) -> NDArray[np.float64]:
        return self.weight_vector()

    def to_json(self) -> dict[str, Any]:
        """It as JSON types, which `heuristic` or `evaluation` reads back.

        >>> from mergefall.game2048 import HEURISTICS
        >>> HEURISTICS["monotone-smooth"].to_json()
        {'name': 'monotone-smooth', 'monotonicity': 1.0, 'smoothness': 0.1, 'empty': 2.5, 'max': 1.0, 'corner': 1.5}
        """
        return {"name": self.name} | {field.name: getattr(self, field.name) for field in fields(self)}


def check_weight(owner: str, name: str, value: Any) -> None:
    """Raises ValueError for a weight that is not a finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not math.isfinite(value):
        raise ValueError(f"weight {name!r} of {owner} is {value!r}; expected a finite number")


def read_options(cls: Any, options: Mapping[str, Any]) -> Any:
    """An instance of a subclass from its options; raises ValueError for an unknown one.

    The option `weights` names one of the class's `vectors`; weights given besides replace those in it.
    """
    options = dict(options)
    if cls.vectors and "weights" in options:
        vector = options.pop("weights")
        if not isinstance(vector, str) or vector not in cls.vectors:
            raise ValueError(f"{cls.name} has no weights {vector!r}; there are {', '.join(cls.vectors)}")
        options = {**cls.vectors[vector], **options}
    known = [field.name for field in fields(cls)]
    if unknown := sorted(map(str, set(options) - set(known))):
        raise ValueError(f"{cls.name} has no weight {', '.join(map(repr, unknown))}; it has {', '.join(known)}")
    return cls(**options)


def from_spec(base: Any, known: Mapping[str, Any], spec: Any) -> Any:
    """One of `known`, subclasses of `base`, by its name, from a mapping of `name` and options, or as it is."""
    if isinstance(spec, base):
        return spec
    if not isinstance(spec, str | Mapping):
        raise ValueError(f"{base.kind} {spec!r}; expected a name or a mapping of its name and weights")
    options = {"name": spec} if isinstance(spec, str) else dict(spec)
    name = options.pop("name", None)
    if not isinstance(name, str) or name not in known:
        raise ValueError(f"no {base.kind} {name!r}; there are {', '.join(known)}")
    return read_options(type(known[name]), options)
