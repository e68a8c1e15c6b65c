"""Monte-Carlo tree search for 2048."""

import copy
from typing import Any, NamedTuple

import numpy as np
from mergefall.game2048.batch import payment
from mergefall.game2048.board import CELLS, board_in, cells_of, legal_mask, move_cells, put_tile
from mergefall.kernels import kernel
from mergefall.typing import Words

from mergefall_baselines.game2048.player import FORM, Boards, rules_for
from mergefall_baselines.mcts import Game, TreeSearch
from mergefall_baselines.tree import tree_kernels


class Settings(NamedTuple):
    """Settings of the kernels; a state is that of the game."""

    rewards: float  # 1 if the score of a move counts, else 0
    paid: int  # what it counts as, the index of a reward of the environment
    memory: Words  # of the leaf's player, which remembers nothing
    leaf: Any  # settings of the leaf's decision kernel, None without one


@kernel
def advance(state, action, bits, after, game):
    """Move and put the new tile; see `tree.tree_kernels`."""
    after[:] = state
    cells, rows, cols = board_in(after)
    gain = move_cells(cells, rows, cols, action)
    return put_tile(cells, bits), game.rewards * payment(gain, 0, 1, game.paid, False), False


@kernel
def choice_of(state, action, game):
    return action if legal_mask(*board_in(state)) >> action & 1 else -1


@kernel
def write_root(state, memory, root, game):
    root[:] = state


class Mcts(TreeSearch):
    """Monte-Carlo tree search with chance nodes; a heuristic, a network or any other player at the leaves.

    Every simulation adds a position to a tree of moves and new tiles, and values it. Each action has a mean:

    - before any visit, the value that the leaf's player gave the action when its position was added;
    - with every visit, the value of the position that was added below it, plus the score of the moves from the action
      on, if `rewards` counts them. The first value counts as one visit.

    A position's own value is that of its best action, or the leaf player's `board_values` where these are others. Then
    the player's `values` are taken for preferences of a policy, such as log-probabilities: they make priors only, and
    the first value of each action is that of its position.

    `values` returns the means of the root's actions, in units of the leaf's values, so a learner can take
    softmax(values / τ) as its target. The chosen action is the best of those with the most visits. An action with a
    higher mean and fewer visits is worth just less than it.

    At the root, sequential halving begins with the 16 actions of the highest scores, log prior + (50 + most visits) ·
    value_scale · value. Below it, an action scores value + 0.5 · prior · √(visits of its position) / (1 + visits).
    Values in scores are scaled by the lowest and the highest that the search has met, 0 and 1, rewards included. A
    position without a legal move is worth 0 if the search and the leaf player's own values count rewards; else lowest −
    (highest − lowest) of the values met.

    The same observation and options give the same values, alone or in a batch. A player that has a decision kernel and
    remembers nothing values leaves within the compiled search, and whole episodes are played in a compiled loop. Any
    other player gets the leaves of all games of a batch together (`batched`).

    Args:
        heuristic: values the leaves. A name, a mapping of a name and weights, a function of a board, or None: the score
            of the best move. Or ``{"player": …}``, a player's name, with its options beside it. Default: ``nneonneo``.
        simulations: int from 1 to 100,000, for each decision. Default: 100.
        temperature: float > 0, in units of the leaf's values: priors are softmax(values / temperature). With 1,
            log-probabilities are the policy itself. Default: a quarter of the range of the position's values.
        value_scale: float > 0, weight of values against priors in the root's scores (c_scale). Default: 1.
        rewards: True or False, whether the score of the moves counts; ``"log2"`` counts log2(1 + score). Default: False
            with a heuristic, True with another player, unless it has an option `rewards` of its own.
        rows, cols: int from 2 to 6, the board's size. Default: the observation's.

    Sources: see `mergefall_baselines.tree`.

    Example:
        >>> from mergefall_baselines import make
        >>> player = make("2048/mcts", heuristic={"player": "2048/ntuple"}, simulations=50)
        >>> board = [[11, 10, 3, 2], [5, 4, 2, 1], [2, 1, 1, 0], [1, 0, 0, 0]]
        >>> int(player.act(board))  # the merge, to the left
        3
    """

    form, counted = FORM, (True, False, "log2")

    def __init__(
        self,
        heuristic: Any = "nneonneo",
        simulations: int = 100,
        temperature: float | None = None,
        value_scale: float = 1.0,
        rewards: bool | str | None = None,
        **rules: Any,
    ) -> None:
        super().__init__(heuristic, simulations, temperature, value_scale, rewards, **rules)

    def _make_game(self, way: Boards) -> Game:
        rows, cols, rewards = way.rows, way.cols, self.rewards
        leaf: Any = self.leaf.with_rules({"rows": rows, "cols": cols})
        leaf = copy.copy(leaf) if self.compiled else leaf  # its scratch memory is this search's alone
        decide, own = leaf.decider(way, exact=True) if self.compiled else (None, None)
        return Game(
            kernels=tree_kernels(write_root, advance, choice_of, decide, CELLS),
            settings=Settings(
                float(bool(rewards)), rules_for(rewards, rows, cols).reward_index, np.zeros(1, np.uint64), own
            ),
            words=CELLS + (rows * cols + 7) // 8,
            n_actions=4,
            leaf=leaf,
            observations=lambda states: cells_of(states, rows, cols),
            write_root=lambda state, memory, root: np.copyto(root, state),
        )
