"""The chance of 2048: the new tile."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mergefall.chance import HALF, Outcomes, bounds
from mergefall.game2048.board import FOUR_IN_2_32


def outcomes(ranks: NDArray[np.uint8]) -> Outcomes:
    """All new tiles that an afterstate uint8[rows, cols] can get: in each empty cell a 2, then a 4."""
    cells = np.flatnonzero(ranks.ravel() == 0)
    boards = np.repeat(ranks.reshape(1, -1), 2 * cells.size, axis=0)
    boards[np.arange(2 * cells.size), np.repeat(cells, 2)] = np.tile([1, 2], cells.size)
    upper = np.repeat(bounds(np.arange(cells.size + 1)), 2, axis=0)
    four = int(FOUR_IN_2_32)
    return Outcomes(boards.reshape(-1, *ranks.shape), upper, np.tile([[four, HALF], [0, four]], (cells.size, 1)))
