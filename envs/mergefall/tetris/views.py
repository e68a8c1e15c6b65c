"""What `mergefall.wrappers` shows of Tetris: board and pieces as planes or as one vector."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from mergefall.checks import choice
from mergefall.tetris.rules import Rules


def one_hot(observations: dict[str, Any], n: int) -> NDArray[np.float32]:
    """The current piece and the queue, one-hot: float32[batch, n · (1 + preview)].

    >>> one_hot({"piece": np.array([2]), "queue": np.array([[0]])}, 3)
    array([[0., 0., 1., 1., 0., 0.]], dtype=float32)
    """
    pieces = np.asarray(observations["piece"])[:, None]
    if "queue" in observations:
        pieces = np.concatenate([pieces, observations["queue"]], axis=1)
    return np.eye(n, dtype=np.float32)[pieces].reshape(len(pieces), n * pieces.shape[1])


@dataclass(frozen=True)
class ViewTetris:
    """A view of observations: `space` of one game's, and a call that converts a batch.

    - `kind`, with n piece ids: "planes" float32[1 + n · (1 + preview), rows, cols], or "flat"
      float32[rows · cols + n · (1 + preview)].
    """

    rules: Rules
    kind: str

    def __post_init__(self) -> None:
        choice("kind", self.kind, ("planes", "flat"))

    def __call__(self, observations: dict[str, Any]) -> NDArray[np.float32]:
        board, pieces = observations["board"], one_hot(observations, self.rules.n_pieces)
        if self.kind == "planes":
            constant = np.broadcast_to(pieces[:, :, None, None], (*pieces.shape, *board.shape[1:]))
            return np.concatenate([board[:, None].astype(np.float32), constant], axis=1)
        return np.concatenate([board.reshape(len(board), self.rules.rows * self.rules.cols), pieces], axis=1)

    @property
    def space(self) -> gym.spaces.Box:
        """The space of one game's view."""
        rows, cols, pieces = self.rules.rows, self.rules.cols, self.rules.n_pieces * (1 + self.rules.preview)
        shape = (1 + pieces, rows, cols) if self.kind == "planes" else (rows * cols + pieces,)
        return gym.spaces.Box(0, 1, shape, np.float32)
