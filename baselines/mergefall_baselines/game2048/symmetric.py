"""Any player, made symmetric: it plays alike on all turned and mirrored images of a board."""

from __future__ import annotations

from typing import Any

import numpy as np
from mergefall.game2048.rules import images
from numpy.typing import NDArray

from mergefall_baselines.game2048.player import BatchPlayer2048
from mergefall_baselines.mcts import leaf_player, own_rewards
from mergefall_baselines.registry import player_of


class Symmetric(BatchPlayer2048):
    """A player on the image of the board that it values most, turned or mirrored; its moves are turned back.

    `tile-order` wants the large tiles in one corner. Made symmetric, it takes the corner where they are. A network that
    sees all images of a board as one, such as the presets', can learn from such a teacher only if it is symmetric.

    Args:
        player: a player's name, a run folder, or a mapping of `name` and options.
        by: the player whose value of an image, that of its best move, chooses. Default: `player` itself. A faster one,
            such as the same search to a lower depth, saves time: it values eight images, `player` then only one.
        rows, cols: the board's size. Default: the observation's.

    Example:
        >>> from mergefall_baselines import make
        >>> search = {"name": "2048/expectimax", "heuristic": "tile-order", "depth": 2}
        >>> board = np.array([[6, 5, 4, 3], [2, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]])
        >>> make("2048/symmetric", player=search).act(np.stack([board, board[:, ::-1]])).tolist()  # right, and left
        [1, 3]
        >>> make(**search).act(np.stack([board, board[:, ::-1]])).tolist()  # right, and down
        [1, 2]
    """

    def __init__(self, player: Any, by: Any = None, rows: int | None = None, cols: int | None = None) -> None:
        super().__init__(rows, cols)
        self.player = leaf_player({"player": player}, player_of, self.rules_type)
        self.by = None if by is None else leaf_player({"player": by}, player_of, self.rules_type)
        self.rewards, self.gamma = own_rewards(self.player), getattr(self.player, "gamma", 1.0)  # for searches over it

    def _values(self, boards: NDArray[np.uint8]) -> NDArray[np.float64]:
        found, actions = images(boards)
        n, k = found.shape[:2]
        values = (self.by or self.player).values(found.reshape(n * k, *boards.shape[1:])).reshape(n, k, 4)
        each, best = np.arange(n), values.max(axis=2).argmax(axis=1)
        chosen = values[each, best] if self.by is None else self.player.values(found[each, best])
        turned_back = np.empty_like(chosen)
        np.put_along_axis(turned_back, actions[best], chosen, axis=1)
        return turned_back
