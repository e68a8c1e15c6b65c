"""Chance in Tetris: the piece that is drawn after a placement."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mergefall.chance import HALF, Outcomes, bounds


def outcomes(
    board: NDArray[np.uint8], known: NDArray[np.int64], ids: NDArray[np.int64], weights: NDArray[np.int64]
) -> Outcomes:
    """The possible observations after a placement: one for each piece that can be drawn.

    - `board`: uint8[rows, cols], the board after the placement.
    - `known`: int64[preview], the pieces that were previewed before it; they move up, and the drawn piece is the last.
    - `ids`, `weights`: int64[n], the pieces of the game and their odds; a weight of 0 excludes a piece.
    """
    ids, weights = ids[weights > 0], weights[weights > 0]
    count = len(ids)
    queues = np.concatenate([np.tile(known, (count, 1)), ids[:, None]], axis=1)
    observations = {"board": np.repeat(board[None], count, axis=0), "piece": queues[:, 0]}
    if len(known):
        observations["queue"] = queues[:, 1:]
    return Outcomes(observations, bounds(np.append(0, weights.cumsum())), np.tile([0, HALF], (count, 1)))
