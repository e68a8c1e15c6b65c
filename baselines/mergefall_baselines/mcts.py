"""Monte-Carlo tree search as a player of both games: options and batches.

`tree.py` has the search itself. A leaf is valued by a player: by the greedy player of a heuristic, or by any player
that values actions. The decision kernel of a compiled player is called from the kernel of the search. Any other player
gets the leaves of all games as one batch.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from mergefall.checks import integer, number
from mergefall.typing import Array, Floats, Ints, Kernel, Observation, Words
from mergefall.weighted import WeightedSum

from mergefall_baselines.kernel_player import Form, KernelPlayer
from mergefall_baselines.player import NotFiniteError, Player, check_values
from mergefall_baselines.registry import of_game
from mergefall_baselines.tree import CONSIDERED, Plan, Trees, halving, new_trees, tree_at, update

RANGE_SHARE = 0.25  # the default temperature, in units of the range of a position's values
MOST_SIMULATIONS = 100_000  # of reachable placements, they take 6 GB of memory


class Game(NamedTuple):
    """A game under certain rules, as a search needs it."""

    kernels: tuple[Kernel, Kernel, Kernel]  # (decide_by_tree, select, conclude), see `tree.tree_kernels`
    settings: Any  # of these
    words: int  # of a node's state
    n_actions: int
    leaf: Player  # which values leaves
    observations: Callable[[Words], Observation]  # of nodes' states uint64[n, words]
    # (State, memory, root). Writes the root that a search from a state of the environment begins with.
    write_root: Callable[[Words, Words, Words], None]
    # (States, values). Sets the values float64[n, A] of actions that are fatal to -inf.
    exclude: Callable[[Words, Floats], Any] = lambda states, values: None


def leaf_player(spec: Any, form: Form, what: str = "player") -> Player:
    """The player of a spec, for valuing leaves.

    Raises ValueError, which calls it `what`, for a player that does not value actions or plays another game.
    """
    player = of_game(spec, form.rules, what)
    if type(player).values is Player.values:
        raise ValueError(f"{what} is {player.name!r}, which does not value actions; it only chooses one")
    return player


def counted_rewards(leaf: Player, rewards: bool | str | None, choices: tuple[bool | str, ...]) -> bool | str:
    """The option `rewards` of a search; by default as in the leaf player's own values.

    Raises ValueError for a value that is not among the choices, and if a search cannot count what the leaf player's
    values do.
    """
    expected = ", ".join(map(repr, choices))
    if rewards is not None and (not isinstance(rewards, bool | str) or rewards not in choices):
        raise ValueError(f"rewards is {rewards!r}; expected {expected} or None")
    counted = leaf.rewards if rewards is None else rewards
    if counted is None:
        raise ValueError(
            f"no search counts the rewards that the values of {leaf.name} stand for; give rewards, one of {expected}"
        )
    return counted


def lost_of(leaf: Player, rewards: bool | str, otherwise: float) -> float:
    """The value of a lost position: 0 if the leaf's player predicts rewards."""
    return 0.0 if rewards and leaf.rewards is not False else otherwise


class TreeSearch(KernelPlayer):
    """Monte-Carlo tree search; `game2048/mcts.py` and `tetris/mcts.py` have its games, and describe the options."""

    counted: tuple[bool | str, ...]  # values of the option `rewards`
    _make_game: Any  # (one of `Form.ways`) -> the `Game` under these rules

    def __init__(
        self,
        heuristic: Any,
        simulations: int,
        temperature: float | None,
        value_scale: float,
        rewards: bool | str | None,
        **rules: Any,
    ) -> None:
        super().__init__(**rules)
        if not isinstance(heuristic, Mapping) or "player" not in heuristic:
            heuristic = {"player": f"{self.form.rules.name}/greedy", "heuristic": heuristic}
        self.leaf = leaf = leaf_player(heuristic, self.form)
        self.compiled = (
            isinstance(leaf, KernelPlayer)
            and leaf.form is self.form  # whose decision kernels this search can call
            and not isinstance(leaf, TreeSearch)  # which values fatal actions, too
            and (leaf.compiled and not leaf.remembers)
        )
        self.heuristic = leaf.heuristic if isinstance(leaf.heuristic, WeightedSum) else None
        self.rewards = counted_rewards(leaf, rewards, self.counted)
        self.gamma = leaf.gamma
        simulations = integer("simulations", simulations, 1, MOST_SIMULATIONS)
        self.plan = Plan(
            simulations=simulations,
            schedule=np.stack([halving(count, simulations) for count in range(CONSIDERED + 1)]),
            value_scale=number("value_scale", value_scale, above=0),
            temperature=-RANGE_SHARE if temperature is None else number("temperature", temperature, above=0),
            lost=lost_of(leaf, self.rewards, math.nan),
            gamma=self.gamma,
        )

    remembers = KernelPlayer.counts_pieces  # pyright: ignore[reportAssignmentType]

    @property
    def batched(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether the leaves of many games are valued together; a compiled search gains nothing by that."""
        return not self.compiled and not self.remembers

    def _game(self, way: Any) -> Game:
        return self._once(("game", way), lambda: self._make_game(way))

    def _make_decider(self, way: Any, exact: bool) -> tuple[Kernel, Any]:
        game = self._game(way)
        shape = self.plan.simulations, game.n_actions, game.words
        tree = self._once(("tree", shape), lambda: tree_at.py_func(new_trees(1, *shape), 0))
        return game.kernels[0], (tree, self.plan, game.settings)

    def _decide(self, rules: Any, states: Array, memory: Array, values: Array, exact: bool) -> Ints:
        """The actions of trees that Python grows side by side, one leaf of each at a time, if none are compiled."""
        if self.compiled:
            return super()._decide(rules, states, memory, values, exact)
        if getattr(rules, "hold", False):  # with which only a decision kernel decides; see `tetris/player.py`
            raise ValueError(f"hold is True; expected False for the trees of {self.name} that Python grows")
        game, count, plan = self._game(self.form.ways(rules)[0]), len(states), self.plan
        _, select, conclude = game.kernels
        trees = new_trees(count, plan.simulations, game.n_actions, game.words)
        for t in range(count):
            game.write_root(states[t], memory[t], trees.states[t, 0])
        leaves, actions = np.empty(count, np.int64), np.empty(count, np.int64)
        for simulation in range(-1, plan.simulations):
            select(trees, simulation, leaves, plan, game.settings)
            self._value_leaves(game, trees, leaves)
        for t in range(count):
            actions[t] = conclude(tree_at.py_func(trees, t), plan, game.settings, values[t])
        return actions

    def _value_leaves(self, game: Game, trees: Trees, leaves: Ints) -> None:
        """Value the leaves int64[T] of the trees by one call of the player, and back them up."""
        t = np.flatnonzero(leaves >= 0)
        t = t[trees.nodes["seen"][t, leaves[t]] == 0]
        values, value = trees.values, np.full(len(leaves), np.nan)
        if len(t):
            states = trees.states[t, leaves[t]]
            values[t], of_boards = game.leaf.search_values(game.observations(states))
            found = values[t]
            check_values(game.leaf.name, found)
            game.exclude(states, found)
            values[t] = found
            if of_boards is not None:
                value[t] = of_boards
                if (lost := of_boards[~np.isfinite(of_boards) & np.isfinite(found).any(axis=1)]).size:
                    raise NotFiniteError(f"{game.leaf.name} values a board at {lost[0]}; expected a number")
        update(trees, leaves, values, value, self.plan)
