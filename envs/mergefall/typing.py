"""Names for types that many files share. `Any` stands behind those that a type checker cannot know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from numpy.typing import NDArray

Kernel: TypeAlias = Any  # a function that `mergefall.kernels.kernel` compiles
Observation: TypeAlias = Any  # an array (2048) or a dict of arrays (Tetris), single or batched
Info: TypeAlias = dict[str, Any]
Options: TypeAlias = Mapping[str, Any]  # named values: arguments, rules, hyperparameters
Array: TypeAlias = NDArray[Any]
Arrays: TypeAlias = Mapping[str, NDArray[Any]]
Environment: TypeAlias = Any  # a `gymnasium.Env` or a `gymnasium.vector.VectorEnv`
