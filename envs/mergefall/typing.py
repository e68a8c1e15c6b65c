"""Names for types that many files share. `Any` stands behind those that a type checker cannot know."""

from collections.abc import Mapping
from os import PathLike
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Kernel: TypeAlias = Any  # a function that `mergefall.kernels.kernel` compiles
Observation: TypeAlias = Any  # an array (2048) or a dict of arrays (Tetris), single or batched
Dict: TypeAlias = dict[str, Any]
Info: TypeAlias = Dict
FilePath: TypeAlias = str | PathLike[str]
Options: TypeAlias = Mapping[str, Any]  # named values: arguments, rules, hyperparameters
Array: TypeAlias = NDArray[Any]
Bools: TypeAlias = NDArray[np.bool_]
Bytes: TypeAlias = NDArray[np.uint8]
Ints: TypeAlias = NDArray[np.int64]
Words: TypeAlias = NDArray[np.uint64]
Floats: TypeAlias = NDArray[np.float64]
Arrays: TypeAlias = Mapping[str, Array]
Environment: TypeAlias = Any  # a `gymnasium.Env` or a `gymnasium.vector.VectorEnv`
