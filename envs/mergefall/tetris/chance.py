"""What chance may do in Tetris: the piece that is drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mergefall.chance import HALF, Outcomes, bounds
from mergefall.tetris import game

if TYPE_CHECKING:
    from mergefall.tetris.rules import Rules


def outcomes(board: NDArray[np.uint8], state: NDArray[np.uint64], rules: Rules) -> Outcomes:
    """What may come after a move of Tetris that leaves ``board``, from the state before it: each piece it can draw.

    Those that are previewed already come first; the drawn one is the last that is shown.
    """
    ids, weights = np.array(rules.piece_set.drawn), np.ones(len(rules.piece_set.drawn), np.int64)
    if rules.randomizer != "uniform" and (bag := int(state[game.BAG])):
        weights = bag >> ids & 1 if rules.randomizer == "bag7" else bag >> 4 * ids & 15
    ids, weights = ids[weights > 0], weights[weights > 0]
    count = len(ids)
    known = np.array([int(state[game.QUEUE]) >> 4 * i & 15 for i in range(1, 1 + rules.preview)], np.int64)
    queues = np.concatenate([np.tile(known, (count, 1)), ids[:, None]], axis=1)
    observations = {"board": np.repeat(board[None], count, axis=0), "piece": queues[:, 0]}
    if rules.preview:
        observations["next"] = queues[:, 1:]
    return Outcomes(observations, bounds(np.append(0, weights.cumsum())), np.tile([0, HALF], (count, 1)))
