"""What `mergefall.wrappers` shows of Tetris: board and pieces as planes, as one vector, or by a heuristic's terms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from mergefall.checks import choice
from mergefall.tetris.heuristics import Heuristic
from mergefall.tetris.heuristics import heuristic as make_heuristic
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

    - `kind`, with n piece ids: "planes" float32[1 + n · (1 + preview), rows, cols]; "flat"
      float32[rows · cols + n · (1 + preview)]; or "features" float32[k + n · (1 + preview)], where k board terms of
      `heuristic` stand in place of the board.
    """

    rules: Rules
    kind: str
    heuristic: Heuristic | None

    @classmethod
    def read(cls, rules: Rules, kind: str, heuristic: Any = None) -> Self:
        """The view that a wrapper's arguments describe; raises ValueError for bad ones."""
        choice("kind", kind, ("planes", "flat", "features"))
        return cls(rules, kind, make_heuristic(heuristic) if kind == "features" else None)

    def __call__(self, observations: dict[str, Any]) -> NDArray[np.float32]:
        board, pieces = observations["board"], one_hot(observations, self.rules.n_pieces)
        if self.kind == "planes":
            constant = np.broadcast_to(pieces[:, :, None, None], (*pieces.shape, *board.shape[1:]))
            return np.concatenate([board[:, None].astype(np.float32), constant], axis=1)
        if self.heuristic is None:
            return np.concatenate([board.reshape(len(board), self.rules.rows * self.rules.cols), pieces], axis=1)
        terms = np.stack(list(self.heuristic.board_terms(board).values()), axis=1, dtype=np.float32)
        return np.concatenate([terms, pieces], axis=1)

    @property
    def space(self) -> gym.spaces.Box:
        """The space of one game's view."""
        rows, cols, pieces = self.rules.rows, self.rules.cols, self.rules.n_pieces * (1 + self.rules.preview)
        if self.kind == "planes":
            return gym.spaces.Box(0, 1, (1 + pieces, rows, cols), np.float32)
        if self.heuristic is None:
            return gym.spaces.Box(0, 1, (rows * cols + pieces,), np.float32)
        terms = len(self.heuristic.board_terms(np.zeros((rows, cols), np.uint8)))
        bounded = type(self.heuristic).__module__.startswith("mergefall.") and not hasattr(self.heuristic, "function")
        most = cols * rows * (rows + 1) if bounded else np.inf  # beyond any sum over cells of depths or heights
        low, high = [-most] * terms + [0] * pieces, [most] * terms + [1] * pieces
        return gym.spaces.Box(np.array(low, np.float32), np.array(high, np.float32), dtype=np.float32)
