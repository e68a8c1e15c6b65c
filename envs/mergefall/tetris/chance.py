"""Chance in Tetris: the piece that is drawn after a placement."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mergefall.chance import HALF, Outcomes, bounds
from mergefall.tetris import game

if TYPE_CHECKING:
    from mergefall.tetris.rules import Rules


def outcomes(board: NDArray[np.uint8], state: NDArray[np.uint64], rules: Rules) -> Outcomes:
    """The possible observations after a placement: one for each piece that can be drawn.

    The drawn piece is the last one shown; the previewed pieces move up.

    - `board`: uint8[rows, cols], the board after the placement.
    - `state`: uint64[words], the state before it.
    """
    ids, weights = np.array(rules.piece_set.drawn), np.ones(len(rules.piece_set.drawn), np.int64)
    if rules.randomizer != "uniform" and (bag := int(state[game.BAG])):
        weights = bag >> ids & 1 if rules.randomizer == "bag7" else rules.multiset(state)[ids]
    ids, weights = ids[weights > 0], weights[weights > 0]
    count = len(ids)
    known = game.nibbles(state[game.QUEUE], 1 + rules.preview)[1:]
    queues = np.concatenate([np.tile(known, (count, 1)), ids[:, None]], axis=1)
    observations = {"board": np.repeat(board[None], count, axis=0), "piece": queues[:, 0]}
    if rules.preview:
        observations["next"] = queues[:, 1:]
    return Outcomes(observations, bounds(np.append(0, weights.cumsum())), np.tile([0, HALF], (count, 1)))
