"""What `mergefall.wrappers` shows of 2048: one-hot ranks as planes or as one vector."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from mergefall.views import View


def one_hot(ranks: NDArray[np.uint8], highest: int) -> NDArray[np.float32]:
    """Ranks one-hot: float32[..., highest + 1]; a higher rank counts as the highest.

    >>> one_hot(np.array([0, 2, 9], np.uint8), 2)
    array([[1., 0., 0.],
           [0., 0., 1.],
           [0., 0., 1.]], dtype=float32)
    """
    return np.eye(highest + 1, dtype=np.float32)[np.minimum(ranks, highest)]


class View2048(View):
    """Of boards uint8[n, rows, cols]: planes [rows·cols + 2, rows, cols], or flat [rows·cols · (rows·cols + 2)]."""

    def __call__(self, observations: NDArray[np.uint8]) -> NDArray[np.float32]:
        cells = one_hot(observations, self.rules.max_rank)  # [n, rows, cols, ranks]
        if self.kind == "planes":
            return np.ascontiguousarray(np.moveaxis(cells, -1, 1))
        return cells.reshape(len(cells), math.prod(cells.shape[1:]))
