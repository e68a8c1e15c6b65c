"""Any player, made symmetric: it plays alike on a board and on its turned and mirrored images."""

from __future__ import annotations

from typing import Any

import numpy as np
from mergefall.game2048.rules import images
from mergefall.typing import Array, Observation
from numpy.typing import NDArray

from mergefall_baselines.game2048.player import FORM, boards_of
from mergefall_baselines.kernel_player import KernelPlayer, best_of
from mergefall_baselines.mcts import leaf_player
from mergefall_baselines.player import Player, check_values
from mergefall_baselines.registry import without_memory


class Symmetric(KernelPlayer):
    """Makes a player treat a board and its turned and mirrored images alike.

    It asks the player about the image that the player values most, and turns the moves back; of moves on equally
    valued images, the better counts. `tile-order` wants the large tiles in one corner: made symmetric, it takes the
    corner where they are. A network that sees all images of a board as one, such as the presets', can learn from such a
    teacher only then.

    Args:
        of: the player: a name, a run folder, or a mapping of `player` and options. Its own `order` does not count, and
            a time limit is one for each image.
        by: the player that chooses the image, by its value of the board. Default: `of` itself. A faster one, such as
            `2048/greedy` with the same heuristic, saves time: it values eight images, `of` then only one.
        rows, cols: the board's size. Default: the observation's.

    Raises ValueError for a player that does not value actions, that remembers, or that plays another game.

    Example:
        >>> from mergefall_baselines import make
        >>> from mergefall_baselines.registry import player_of
        >>> search = {"player": "2048/expectimax", "heuristic": "tile-order", "depth": 2}
        >>> board = np.array([[6, 5, 4, 3], [2, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]])
        >>> make("2048/symmetric", of=search).act(np.stack([board, board[:, ::-1]])).tolist()  # right, and left
        [1, 3]
        >>> player_of(search).act(np.stack([board, board[:, ::-1]])).tolist()  # right, and down
        [1, 2]
    """

    form = FORM
    compiled = False

    def __init__(self, of: Any, by: Any = None, rows: int | None = None, cols: int | None = None) -> None:
        super().__init__(rows=rows, cols=cols)
        self.player = self._valuing("of", of)
        self.by = self.player if by is None else self._valuing("by", by)
        self.batched = self.player.batched and self.by.batched
        self.rewards, self.gamma = self.player.rewards, self.player.gamma

    def _valuing(self, what: str, spec: Any) -> Player:
        return without_memory(leaf_player(spec, FORM, what), what)

    def _judge(self, boards: NDArray[np.uint8]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(values of all moves float64[n, 4], values of the boards float64[n]) of boards uint8[n, rows, cols]."""
        found, actions = images(boards)
        n, k = found.shape[:2]
        values, worth = _judged(self.by, found.reshape(n * k, *boards.shape[1:]))
        best = worth.reshape(n, k) == worth.reshape(n, k).max(axis=1, keepdims=True)
        values, worth = values[best.ravel()], worth[best.ravel()]
        if self.by is not self.player:
            values, worth = _judged(self.player, found[best])
        board, image = np.nonzero(best)
        of_moves, of_boards = np.full((n, 4), -np.inf), np.full(n, -np.inf)
        np.maximum.at(of_moves, (board[:, None], actions[image]), values)
        np.maximum.at(of_boards, board, worth)
        return of_moves, of_boards

    def _decide(self, rules: Any, states: Array, memory: Array, values: Array, exact: bool) -> NDArray[np.int64]:
        values[:] = self._judge(boards_of(rules, states))[0]
        return best_of(values)

    def board_values(self, observation: Observation) -> NDArray[np.float64]:
        """Value of a board for the player to move, 0-d float64 (batch: float64[n])."""
        ranks, _, _ = FORM.read(self.name, observation)
        return self._judge(ranks.astype(np.uint8).reshape(-1, *ranks.shape[-2:]))[1].reshape(ranks.shape[:-2])


def _judged(player: Player, boards: NDArray[np.uint8]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A player's (values of all moves float64[n, 4], values of the boards float64[n]), checked."""
    values, of_boards = player.search_values(boards)
    check_values(player.name, values)
    return values, values.max(axis=1) if of_boards is None else of_boards
