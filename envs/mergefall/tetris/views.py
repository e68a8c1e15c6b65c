"""What `mergefall.wrappers` shows of Tetris: board and pieces as planes or as one vector."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mergefall.views import View


def one_hot(observations: dict[str, Any], n: int) -> NDArray[np.float32]:
    """The current piece and the queue, one-hot: float32[batch, n · (1 + preview)].

    >>> one_hot({"piece": np.array([2]), "queue": np.array([[0]])}, 3)
    array([[0., 0., 1., 1., 0., 0.]], dtype=float32)
    """
    pieces = np.asarray(observations["piece"])[:, None]
    if "queue" in observations:
        pieces = np.concatenate([pieces, observations["queue"]], axis=1)
    return np.eye(n, dtype=np.float32)[pieces].reshape(len(pieces), n * pieces.shape[1])


class ViewTetris(View):
    """With n piece ids: planes [1 + n · (1 + preview), rows, cols], or flat [rows · cols + n · (1 + preview)]."""

    def __call__(self, observations: dict[str, Any]) -> NDArray[np.float32]:
        board, pieces = observations["board"], one_hot(observations, self.rules.n_pieces)
        if self.kind == "planes":
            constant = np.broadcast_to(pieces[:, :, None, None], (*pieces.shape, *board.shape[1:]))
            return np.concatenate([board[:, None].astype(np.float32), constant], axis=1)
        return np.concatenate([board.reshape(len(board), self.rules.rows * self.rules.cols), pieces], axis=1)
