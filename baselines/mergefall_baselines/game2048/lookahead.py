"""Players over any other player, such as a trained network: expectimax over its values, and symmetric play."""

from typing import Any

import numpy as np
from mergefall.checks import integer
from mergefall.game2048.rules import images
from mergefall.typing import Array, Bytes, Floats, Ints, Observation

from mergefall_baselines.game2048.player import FORM, MARGIN, rules_for
from mergefall_baselines.kernel_player import KernelPlayer
from mergefall_baselines.mcts import counted_rewards, leaf_player, lost_of
from mergefall_baselines.player import Player, check_values
from mergefall_baselines.registry import without_memory

LOST = -1e9  # default value of a lost board where rewards do not count
CHUNK = 1 << 14  # boards that are expanded at once


def valued(player: Player, boards: Bytes) -> tuple[Floats, Floats]:
    """A player's (values of all moves float64[n, 4], values of the boards float64[n]), checked."""
    values, of_boards = player.search_values(boards)
    check_values(player.name, values)
    return values, values.max(axis=1) if of_boards is None else of_boards


class Lookahead(KernelPlayer):
    """Expectimax over another player's values, such as a trained network's.

    A move is worth its score + γ · the mean over all new tiles of the board after it, with the player's γ. A board is
    worth its best move; one at the end of the search is worth what the player says: its `board_values`, or its best
    action; one without a legal move 0 if the search and the player's own values count rewards, else what the player's
    heuristic says, or -10⁹.

    Boards of all games of a batch are valued together (`batched`). Players with a heuristic are faster under
    `2048/expectimax`, n-tuple networks with their own option `depth`.

    Args:
        of: the player, required: a name, a run folder, or a mapping of `player` and options.
        depth: int from 1 to 64, own moves. The player chooses the last one, so 1 is the player itself. Default: 2.
        rewards: True or False, whether the score of moves counts; ``"log2"`` counts log2(1 + score). Default: as in the
            player's own values.
        rows, cols: int from 2 to 6, the board's size. Default: the observation's.

    Example:
        >>> from mergefall_baselines import make
        >>> player = make("2048/lookahead", of="2048/optimal", depth=2)
        >>> board = [[1, 2, 0], [0, 0, 1]]
        >>> bool(np.allclose(player.values(board), make("2048/optimal").values(board)))  # Bellman's equation
        True
    """

    form = FORM
    batched = True
    compiled = False

    def __init__(
        self,
        of: Any,
        depth: int = 2,
        rewards: bool | str | None = None,
        **rules: Any,
    ) -> None:
        super().__init__(**rules)
        self.leaf, self.depth = leaf_player(of, FORM), integer("depth", depth, 1, MARGIN)
        self.rewards = counted_rewards(self.leaf, rewards, (True, False, "log2"))
        self.gamma, heuristic = self.leaf.gamma, self.leaf.heuristic
        self.lost = lost_of(self.leaf, self.rewards, LOST if heuristic is None else heuristic.dead)

    def _decide(self, rules: Any, states: Array, memory: Array, values: Array, exact: bool) -> Ints:
        values[:] = self._searched(rules.observations(states), self.depth)
        return values.argmax(axis=1)

    def _searched(self, boards: Bytes, depth: int) -> Floats:
        """Values float64[n, 4] of the moves on boards uint8[n, rows, cols], at `depth` own moves."""
        if depth == 1:
            return self.leaf.values(boards)
        if len(boards) > CHUNK:
            chunks = range(0, len(boards), CHUNK)
            return np.concatenate([self._searched(boards[begin : begin + CHUNK], depth) for begin in chunks])
        rules = rules_for(self.rewards, *boards.shape[1:])
        afterstates, gains, legal = rules.afterstates(rules.states(boards))
        board, action, row, col = np.nonzero((afterstates == 0) & legal[..., None, None])
        edges = np.repeat(4 * board + action, 2)  # of each new tile's board: the move that leads to it
        children, tiles = np.repeat(afterstates[board, action], 2, axis=0), np.arange(2 * board.size)
        children[tiles, np.repeat(row, 2), np.repeat(col, 2)] = 1 + tiles % 2
        alive = ~rules.observed(rules.states(children))[1]
        worth = np.full(tiles.size, self.lost)
        if alive.any():
            later = children[alive]
            worth[alive] = valued(self.leaf, later)[1] if depth == 2 else self._searched(later, depth - 1).max(axis=1)
        chances = np.array([0.9, 0.1])[tiles % 2] / (np.bincount(edges) / 2)[edges]
        means = np.bincount(edges, chances * worth, legal.size).reshape(legal.shape)
        return np.where(legal, gains * bool(self.rewards) + self.gamma * means, -np.inf)


class Symmetric(KernelPlayer):
    """Makes a player treat a board and its turned and mirrored images alike.

    It asks the player about the image that the player values most, and turns the moves back. If several images have
    that value, a move counts as on the image where it is worth most. For example, `tile-order` wants the large tiles in
    one corner; made symmetric, it accepts any corner. The networks of the presets see all images of a board as one, so
    they can learn from such a teacher only if it is symmetric.

    Args:
        of: the player, required: a name, a run folder, or a mapping of `player` and options. Its own `order` is
            ignored, and its time limit holds for each image.
        by: the player that chooses the image, by its value of the board. Default: `of` itself. A faster one, such as
            `2048/greedy` with the same heuristic, saves time: it values eight images, `of` then only one.
        rows, cols: int from 2 to 6, the board's size. Default: the observation's.

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

    def __init__(self, of: Any, by: Any = None, **rules: Any) -> None:
        super().__init__(**rules)
        self.player = without_memory(leaf_player(of, FORM, "of"), "of")
        self.by = self.player if by is None else without_memory(leaf_player(by, FORM, "by"), "by")
        self.batched = self.player.batched and self.by.batched
        self.rewards, self.gamma = self.player.rewards, self.player.gamma

    def _judge(self, boards: Bytes) -> tuple[Floats, Floats]:
        """(values of all moves float64[n, 4], values of the boards float64[n]) of boards uint8[n, rows, cols]."""
        found, actions = images(boards)
        n, k = found.shape[:2]
        values, worth = valued(self.by, found.reshape(n * k, *boards.shape[1:]))
        best = worth.reshape(n, k) == worth.reshape(n, k).max(axis=1, keepdims=True)
        values, worth = values[best.ravel()], worth[best.ravel()]
        if self.by is not self.player:
            values, worth = valued(self.player, found[best])
        board, image = np.nonzero(best)
        of_moves, of_boards = np.full((n, 4), -np.inf), np.full(n, -np.inf)
        np.maximum.at(of_moves, (board[:, None], actions[image]), values)
        np.maximum.at(of_boards, board, worth)
        return of_moves, of_boards

    def _decide(self, rules: Any, states: Array, memory: Array, values: Array, exact: bool) -> Ints:
        values[:] = self._judge(rules.observations(states))[0]
        return values.argmax(axis=1)

    def board_values(self, observation: Observation) -> Floats:
        """Value of a board for the player to move, 0-d float64 (batch: float64[n])."""
        boards, _, single = FORM.rules.read(observation)
        values = self._judge(boards)[1]
        return values[0] if single else values
