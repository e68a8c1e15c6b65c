"""The players of Monte-Carlo tree search, shared by both games: options, batches, and the statistics of the root.

`tree.py` has the search itself. A leaf is valued by a player: by the greedy player of a heuristic, or by any player
that values actions. The decision kernel of a compiled player is called from the kernel of the search. Any other player
gets the leaves of all games as one batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np
from mergefall.checks import choice, integer, number
from mergefall.typing import Observation, Options
from mergefall.weighted import WeightedSum
from numpy.typing import NDArray

from mergefall_baselines.kernel_player import KernelPlayer
from mergefall_baselines.player import NotFiniteError, Player, Trajectory, check_values, play_in_env
from mergefall_baselines.registry import player_of
from mergefall_baselines.tree import (
    EDGE,
    LEAST_PRIOR,
    TREE,
    VISIT_SCALE,
    GameKernels,
    Plan,
    Trees,
    halving,
    new_trees,
    tree_at,
    tree_kernels,
)

RANGE_SHARE = 0.25  # the default temperature, in units of the range of a position's values
ROOTS = ("gumbel", "puct")
PRIORS = ("values", "uniform")


class RootStatistics(NamedTuple):
    """What searches found at their roots, for n games with A actions.

    - `actions`: int64[n], the chosen actions.
    - `visits`: int64[n, A], simulations of each action.
    - `values`: float64[n, A], as `values` returns them.
    - `priors`: float64[n, A], probabilities before the search; 0 where illegal or fatal, or too small for a float.
    - `policy`: float64[n, A], probabilities after it: the target of expert iteration. With root "gumbel" it is
      softmax(log prior + (50 + most visits) · value_scale · value in units of the tree's range), without noise; with
      root "puct" the shares of the visits.
    - `value`: float64[n], the mean under `policy` of the actions' values, here without the cap of `values`: there none
      is above the chosen action's.

    Without a batch, the first axis is missing. For a lost position the first legal action, if any, is chosen, and the
    probabilities are 0.
    """

    actions: NDArray[np.int64]
    visits: NDArray[np.int64]
    values: NDArray[np.float64]
    priors: NDArray[np.float64]
    policy: NDArray[np.float64]
    value: NDArray[np.float64]


class _Roots(NamedTuple):
    """The roots of n finished searches."""

    actions: NDArray[np.int64]
    values: NDArray[np.float64]
    edges: NDArray[np.void]  # EDGE[n, A]
    trees: NDArray[np.void]  # TREE[n, 1]


def _means(edges: NDArray[np.void]) -> NDArray[np.float64]:
    """The mean value of each action, as `tree.edge_value`; -inf if it is not searched."""
    return (edges["first"] + edges["total"]) / (1 + edges["visits"])


class Game(NamedTuple):
    """A game under certain rules, as a search needs it."""

    kernels: GameKernels
    settings: Any  # of its kernels
    words: int  # of a state
    n_actions: int
    leaf: Player
    observations: Callable[[NDArray[np.uint64]], Observation]  # of states uint64[n, words]
    exclude: Callable[[NDArray[np.uint64], NDArray[np.float64]], None] | None = None
    """Sets the values float64[n, A] of actions to -inf that are fatal in the states; None: no action is."""


def leaf_player(spec: Any, of_heuristic: Callable[[Any], Player], rules_type: type, what: str = "player") -> Player:
    """The player that values leaves: that of `{"player": …}`, else the one that `of_heuristic` makes.

    `what` is what messages call it.

    Raises ValueError for a player that does not value actions, or whose game has other rules than `rules_type`.
    """
    if not isinstance(spec, Mapping) or set(spec) != {"player"}:
        return of_heuristic(spec)
    player = player_of(spec["player"])
    if type(player).values is Player.values:
        raise ValueError(f"{what} is {player.name!r}, which does not value actions; it only chooses one")
    if getattr(player, "rules_type", rules_type) is not rules_type:
        raise ValueError(f"{what} is {player.name!r}, which plays another game")
    return player


def own_rewards(leaf: Player) -> bool | str | None:
    """What the leaf player's own values count, as the option `rewards`; None if no search counts that."""
    return getattr(leaf, "rewards", getattr(leaf, "heuristic", None) is None)


def counted_rewards(leaf: Player, given: bool | str | None, known: Sequence[bool | str]) -> bool | str:
    """The option `rewards` of a search: as given, else as in the leaf player's own values.

    Raises ValueError for a value that is not among the `known`, and for none if a search cannot count what the leaf
    player's values do.
    """
    if not isinstance(given, bool | str | None) or given not in (None, *known):
        raise ValueError(f"rewards is {given!r}; expected {', '.join(map(repr, known))} or None")
    found = own_rewards(leaf) if given is None else given
    if found is None:
        raise ValueError(
            f"no search counts the rewards that the values of {leaf.name} stand for; give rewards, one of "
            f"{', '.join(map(repr, known))}"
        )
    return found


def is_compiled(player: Player) -> bool:
    """Whether a search's kernel can call the player's decision kernel."""
    if not isinstance(player, KernelPlayer) or not player.compiled:
        return False
    return not player.remembers and player.time_limit is None


class TreeSearch(KernelPlayer):
    """Monte-Carlo tree search; `game2048/mcts.py` and `tetris/mcts.py` describe the options and add the games."""

    counted: Sequence[bool | str] = (True, False)  # values of the option `rewards`

    def _set_options(
        self,
        leaf: Player,
        simulations: int,
        root: str,
        considered: int,
        exploration: float,
        prior: str,
        temperature: float | None,
        gumbel_scale: float,
        value_scale: float,
        leaves: int,
        lost: float | None,
        rewards: bool | str | None,
        gamma: float | None,
        seed: int,
    ) -> None:
        """Check the options and keep them."""
        self.leaf, self.compiled = leaf, is_compiled(leaf)
        unit = getattr(leaf, "heuristic", None)
        self.heuristic: Any = unit if isinstance(unit, WeightedSum) else None
        self.rewards = counted_rewards(leaf, rewards, self.counted)
        self.gamma = number("gamma", getattr(leaf, "gamma", 1.0) if gamma is None else gamma, 0, 1)
        predicted = self.rewards and own_rewards(leaf) is not False  # then the leaf's player predicts rewards to come
        self.leaves = integer("leaves", leaves, 1)
        simulations, considered = integer("simulations", simulations, 1), integer("considered", considered, 1)
        heat = -RANGE_SHARE if temperature is None else number("temperature", temperature, above=0)
        self.plan = Plan(
            simulations=simulations,
            gumbel=choice("root", root, ROOTS) == "gumbel",
            schedule=np.stack([halving(count, simulations) for count in range(considered + 1)]),
            gumbel_scale=number("gumbel_scale", gumbel_scale, 0),
            value_scale=number("value_scale", value_scale, above=0),
            exploration=number("exploration", exploration, above=0),
            temperature=heat if choice("prior", prior, PRIORS) == "values" else 0.0,
            lost=(0.0 if predicted else math.nan) if lost is None else number("lost", lost),
            gamma=self.gamma,
            seed=np.random.SeedSequence(integer("seed", seed, 0)).generate_state(1, np.uint64)[0],
        )

    @property
    def batched(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether the leaves of many games are valued together; a compiled search gains nothing by that."""
        return not self.compiled and not self.remembers

    # -- a game's part -------------------------------------------------------------------------------------------------

    def _make_game(self, rules: Any) -> Game:
        """The game under the rules of a position."""
        raise NotImplementedError

    def _rules_of_position(self, position: Any) -> Any:
        """What `_make_game` makes a position's game from."""
        raise NotImplementedError

    def _decide_compiled(self, position: Any, memory: NDArray[np.uint64], values: NDArray[np.float64]) -> int:
        """The action that the compiled search chooses in a position; fills `values` and updates `memory`."""
        raise NotImplementedError

    def _write_root(self, position: Any, memory: NDArray[np.uint64], state: NDArray[np.uint64]) -> None:
        """Write a position as the state of a root."""
        raise NotImplementedError

    # -- searches ------------------------------------------------------------------------------------------------------

    def statistics(self, observation: Observation, state: Any = None) -> RootStatistics:
        """Search, and return what was found at the root: for expert iteration, for one observation or a batch."""
        n_actions, positions, single = self._positions(observation)
        memory = self._memory(state, len(positions), None)
        with self._lock:
            roots = self._roots(n_actions, positions, memory)
        self._check_heuristic()
        self._check_values(roots.values, positions)
        policy = self._policy(roots)
        value = (policy * np.where(policy > 0, _means(roots.edges), 0.0)).sum(axis=1)
        visits, priors = roots.edges["visits"].astype(np.int64), roots.edges["prior"].copy()
        found = RootStatistics(roots.actions, visits, roots.values, priors, policy, value)
        return RootStatistics(*(part[0] for part in found)) if single else found

    def _policy(self, roots: _Roots) -> NDArray[np.float64]:
        """The improved policy of each root, see `RootStatistics`."""
        edges, visits = roots.edges, roots.edges["visits"]
        if not self.plan.gumbel:
            return visits / np.maximum(visits.sum(axis=1, keepdims=True), 1)
        searched = edges["first"] > -np.inf
        low, high = roots.trees["low"], roots.trees["high"]
        spread = np.where(high > low, high - low, np.inf)
        found = _means(edges)
        scores = np.where(searched, (np.where(searched, found, 0.0) - np.where(high > low, low, 0.0)) / spread, 0.0)
        weight = (VISIT_SCALE + visits.max(axis=1, keepdims=True)) * self.plan.value_scale
        logits = np.where(searched, np.log(np.maximum(edges["prior"], LEAST_PRIOR)) + weight * scores, -np.inf)
        best = logits.max(axis=1, keepdims=True)
        weights = np.exp(logits - np.where(np.isfinite(best), best, 0.0))
        return weights / np.maximum(weights.sum(axis=1, keepdims=True), 1e-300)

    def _decide_all(
        self, observation: Observation, state: Any, episode_start: Any, exact: bool
    ) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.uint64]]:
        n_actions, positions, single = self._positions(observation)
        memory = self._memory(state, len(positions), episode_start)
        with self._lock:
            actions, values, _, _ = self._roots(n_actions, positions, memory)
        self._check_heuristic()
        self._check_values(values, positions)
        return (actions[0].reshape(()), values[0], memory[0]) if single else (actions, values, memory)

    def _roots(self, n_actions: int, positions: Sequence[Any], memory: NDArray[np.uint64]) -> _Roots:
        """The roots of the searches from some positions; updates their memories."""
        count = len(positions)
        roots = _Roots(
            np.empty(count, np.int64),
            np.empty((count, n_actions)),
            np.empty((count, n_actions), EDGE),
            np.empty((count, 1), TREE),
        )
        groups: dict[Any, list[int]] = {}
        for i, position in enumerate(positions):
            groups.setdefault(self._rules_of_position(position), []).append(i)
        for rules, members in groups.items():
            grow = self._grow_compiled if self.compiled else self._grow_together
            grow(rules, members, positions, memory, roots)
        return roots

    def _grow_compiled(
        self, rules: Any, members: list[int], positions: Sequence[Any], memory: NDArray[np.uint64], roots: _Roots
    ) -> None:
        """Search the positions `members` one after the other; they share one tree's memory."""
        tree, _, _ = self.decider(rules, exact=True)[1]
        for i in members:
            roots.actions[i] = self._call(self._decide_compiled, positions[i], memory[i], roots.values[i])
            roots.edges[i], roots.trees[i] = tree.edges[0], tree.tree

    def _grow_together(
        self, rules: Any, members: list[int], positions: Sequence[Any], memory: NDArray[np.uint64], roots: _Roots
    ) -> None:
        """Search the positions `members` side by side: each evaluation values `leaves` leaves of every tree."""
        game, plan, count = self._game(rules), self.plan, len(members)
        kernels = tree_kernels(game.kernels)
        trees = new_trees(count, plan.simulations, game.n_actions, game.words)
        for t, i in enumerate(members):
            self._write_root(positions[i], memory[i], trees.states[t, 0])
        kernels.begin(trees, plan)
        self._value_leaves(game, trees, np.zeros((count, 1), np.int64))
        for first in range(0, plan.simulations, self.leaves):
            leaves = np.empty((count, min(self.leaves, plan.simulations - first)), np.int64)
            kernels.select(trees, first, leaves, plan, game.settings)
            self._value_leaves(game, trees, leaves)
        for t, i in enumerate(members):
            tree = tree_at.py_func(trees, t)
            roots.actions[i] = kernels.conclude(tree, plan, game.settings, roots.values[i])
            roots.edges[i], roots.trees[i] = tree.edges[0], tree.tree

    def _value_leaves(self, game: Game, trees: Trees, leaves: NDArray[np.int64]) -> None:
        """Value the leaves int64[T, n] of the trees by one call of the player, and back them up."""
        t, i = np.nonzero(leaves >= 0)
        fresh = trees.nodes["seen"][t, leaves[t, i]] == 0
        t, i = t[fresh], i[fresh]
        rows = np.full(leaves.shape, -1)
        rows[t, i] = np.arange(len(t))
        values, value = np.empty((len(t), game.n_actions)), np.full(len(t), np.nan)
        if len(t):
            states = trees.states[t, leaves[t, i]]
            values[:], of_boards = game.leaf.search_values(game.observations(states))
            check_values(game.leaf.name, values)
            if game.exclude is not None:
                game.exclude(states, values)
            if of_boards is not None:
                value[:] = of_boards
                lost = ~np.isfinite(value) & np.isfinite(values).any(axis=1)
                if lost.any():
                    raise NotFiniteError(f"{game.leaf.name} values a board at {value[lost][0]}; expected a number")
        tree_kernels(game.kernels).update(trees, leaves, rows, values, value, self.plan)

    def _game(self, rules: Any) -> Game:
        return self._once(("game", rules), lambda: self._make_game(rules))

    def _compiled_settings(self, rules: Any) -> tuple[Trees, Plan, Any]:
        """(tree, plan, settings of the game) for the compiled search."""

        def make_settings() -> tuple[Trees, Plan, Any]:
            game = self._game(rules)
            trees = new_trees(1, self.plan.simulations, game.n_actions, game.words)
            return tree_at.py_func(trees, 0), self.plan, game.settings

        return self._once(("tree", rules), make_settings)

    def play(
        self, env_id: str, seed: int, env_kwargs: Options | None = None, max_episode_steps: int | None = None
    ) -> Trajectory:
        """One whole episode from ``reset(seed=seed)``, in a compiled loop if the search is compiled."""
        if self.compiled:
            return super().play(env_id, seed, env_kwargs, max_episode_steps)
        rules = asdict(self.rules_of(env_id, env_kwargs))
        return play_in_env(self.with_rules(rules), env_id, seed, env_kwargs, max_episode_steps)
