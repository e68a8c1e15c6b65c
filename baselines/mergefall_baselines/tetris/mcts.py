"""Monte-Carlo tree search for Tetris."""

from __future__ import annotations

from dataclasses import asdict
from functools import cache
from typing import Any, NamedTuple, cast

import numpy as np
from mergefall.kernels import kernel
from mergefall.tetris import game as states
from mergefall.tetris.field import boards_of, copy, place
from mergefall.tetris.heuristics import Heuristic
from mergefall.tetris.placements import rest, rest_of
from mergefall.tetris.rules import Rules
from mergefall.typing import Floats, Kernel, Observation, Words

from mergefall_baselines.mcts import Game, TreeSearch
from mergefall_baselines.tetris.memory import (
    IDS,
    MEMORY,
    bag_after,
    chances_of,
    drawn_by,
    observe,
    piece_from,
)
from mergefall_baselines.tetris.player import FORM
from mergefall_baselines.tree import tree_kernels

U = np.uint64
# The words of a state: the ids of the known pieces, the current one lowest, and their number; the chances of the next
# piece as in `memory.py`, a bag and IDS probabilities; then the board's columns.
QUEUE, KNOWN, BAG, CHANCES, COLUMNS = 0, 1, 2, 3, 3 + IDS


class Settings(NamedTuple):
    """Settings of the kernels."""

    first: int  # table row of piece id 0
    rows: int
    slides: bool
    reach: int | None
    clear_first: bool
    drawn: int  # ids that the game draws, as bits
    known: int  # pieces of a root
    kept: int  # a placement that leaves fewer known pieces draws one
    distribution: int  # of the unknown pieces, an index into `DISTRIBUTIONS`
    rewards: float  # what a line counts, 1 or 0
    weights: Floats  # of the heuristic whose terms of a move count; empty without one
    memory: Words  # of the leaf's player, which remembers nothing
    asked: Words  # scratch: the state of a game that shows a leaf
    leaf: Any  # settings of the leaf's decision kernel, None without one


@kernel
def chances_in(state):
    """The probabilities of the next piece in a state, float64[IDS]."""
    return state[CHANCES:COLUMNS].view(np.float64)


@kernel
def write_root(columns, queue, memory, state, game):
    state[QUEUE], state[KNOWN] = queue, U(game.known)
    state[BAG] = U(chances_of(memory, game.distribution, game.drawn, chances_in(state)))
    copy(columns, state[COLUMNS:])


@kernel
def placement_of(state, action, game):
    """The placement that an action leads to, -1 if it is illegal."""
    return rest_of(state[COLUMNS:], game.first + (np.int64(state[QUEUE]) & 15), action, game.slides, game.reach)


@kernel
def is_legal(state, action, game):
    return placement_of(state, action, game) >= 0


@kernel
def exclude_fatal(states, values, game):
    """Set the values float64[n, A] of actions to -inf that are illegal or fatal in the states uint64[n, words]."""
    board = np.empty(states.shape[1] - COLUMNS, U)
    for i in range(len(states)):
        columns, piece = states[i, COLUMNS:], game.first + (np.int64(states[i, QUEUE]) & 15)
        for action in range(values.shape[1]):
            rotation, column, y = rest(columns, piece, action, game.slides, game.reach)
            fatal = True
            if y >= 0:
                copy(columns, board)
                _, _, fatal = place(board, piece, rotation, column, y, game.rows, game.clear_first)
            if fatal:
                values[i, action] = -np.inf


@cache
def search_kernels(decide: Any, move: Kernel | None) -> tuple[tuple[Kernel, Kernel, Kernel], Kernel]:
    """(kernels of the tree, decision kernel).

    - `decide`: the decision kernel at the leaves; None: they are valued from outside.
    - `move`: values the terms of a move by a heuristic; None: only lines count.
    """
    of_move, scored = cast(Kernel, move), move is not None

    @kernel
    def advance(state, action, bits, after, game):
        copy(state, after)
        columns, piece = after[COLUMNS:], game.first + (np.int64(state[QUEUE]) & 15)
        rotation, column, y = rest(columns, piece, action, game.slides, game.reach)
        lines, own, over = place(columns, piece, rotation, column, y, game.rows, game.clear_first)
        if over:
            return np.int64(0), 0.0, True
        reward = game.rewards * lines
        if scored:
            reward += of_move(piece, rotation, column, y, lines, own, game.rows, game.weights)
        queue, known, id = state[QUEUE] >> U(4), np.int64(state[KNOWN]) - 1, np.int64(0)
        if known < game.kept:
            bag = np.int64(state[BAG])
            id = piece_from(bits, bag, chances_in(after))
            after[BAG] = U(bag_after(id, bag, game.drawn))
            queue |= U(id) << U(4 * known)
            known += 1
        after[QUEUE], after[KNOWN] = queue, U(known)
        return id, reward, False

    @kernel
    def leaf(state, values, game):
        game.asked[states.QUEUE] = state[QUEUE]
        copy(state[COLUMNS:], states.columns_in(game.asked))
        decide(game.asked, game.memory, values, game.leaf)

    search, select, conclude = tree_kernels(advance, is_legal, leaf, 0)

    @kernel
    def decide_by_tree(state, memory, values, settings):
        tree, plan, own = settings
        write_root(states.columns_in(state), state[states.QUEUE], memory, tree.states[0], own)
        search(tree, plan, own)
        return placement_of(tree.states[0], conclude(tree, plan, own, values), own)

    return (search, select, conclude), decide_by_tree


class Mcts(TreeSearch):
    """Monte-Carlo tree search with chance nodes; a heuristic, a network or any other player at the leaves.

    The search and its values are those of `2048/mcts`. Chance draws the pieces. If the leaf's player looks at the
    current piece alone, as a heuristic does, a piece is drawn only when the known ones are used up. Otherwise every
    placement is followed by a draw, so that leaves see as many pieces as the root. Every placement on the way adds the
    heuristic's terms of the move, as in `tetris/expectimax`, and with `rewards` its lines.

    With hold, only a search whose leaves are valued compiled plays, such as by a heuristic.

    A fatal placement is never searched; its value is that of a lost position. If all placements are fatal, the player
    takes the first legal one.

    Args:
        heuristic: what values the leaves: a name, or a mapping of a name and weights; or ``{"player": …}``, a player's
            name, with its options beside it. Default: ``bcts``.
        simulations, temperature, value_scale: as for `2048/mcts`.
        rewards: whether each line on the way is worth 1. Default: False with a heuristic, True with another player,
            unless it has a heuristic or an option `rewards` of its own.
        rules: the environment's arguments `cols`, `rows`, `pieces`, `randomizer`, `preview`, `placements`, `hold`,
            `overflow`. Default: those of the environment, or what the observation shows.

    Sources: see `mergefall_baselines.tree`.

    Example:
        >>> from mergefall_baselines import make
        >>> from mergefall.tetris import from_text
        >>> player = make("tetris/mcts", simulations=60)
        >>> shown = {"board": from_text("..../..../..../###./###./###."), "piece": 0, "queue": [1]}
        >>> int(player.act(shown))  # I, upright in the gap
        7
    """

    form, counted = FORM, (True, False)

    def __init__(
        self,
        heuristic: Any = "bcts",
        simulations: int = 100,
        temperature: float | None = None,
        value_scale: float = 1.0,
        rewards: bool | None = None,
        **rules: Any,
    ) -> None:
        super().__init__(heuristic, simulations, temperature, value_scale, rewards, **rules)

    def _make_game(self, way: Rules) -> Game:
        leaf: Any = self.leaf.with_rules(asdict(way))
        decide, own = leaf.decider(way, exact=True) if self.compiled else (None, None)
        heuristic: Heuristic | None = self.heuristic
        known, (drawn, distribution) = 1 + way.preview, drawn_by(self.distribution, way)
        settings = Settings(
            first=way.piece_set.first,
            rows=way.rows,
            slides=way.slides,
            reach=way.reach,
            clear_first=way.overflow == "clear_first",
            drawn=drawn,
            known=known,
            kept=known if leaf.sees_next else 1,
            distribution=distribution,
            rewards=1.0 if self.rewards else 0.0,
            weights=heuristic.weight_vector() if heuristic else np.zeros(0),
            memory=np.zeros(MEMORY, U),
            asked=way.new_states(1)[0],
            leaf=own,
        )

        def observations(nodes: Words) -> Observation:
            places = np.arange(known, dtype=U)
            ids = (nodes[:, QUEUE, None] >> U(4) * places & U(15)).astype(np.int64)
            ids = np.where(places < nodes[:, KNOWN, None], ids, ids[:, :1])  # unknown ones, which the leaf ignores
            shown = {"board": boards_of(nodes[:, COLUMNS:], way.rows), "piece": ids[:, 0]}
            return shown | {"queue": ids[:, 1:]} if way.preview else shown

        def write(state: Words, memory: Words, root: Words) -> None:
            queue = state[states.QUEUE]
            observe(memory, queue, known, 0)
            write_root(states.columns_in.py_func(state), queue, memory, root, settings)

        kernels, decide_by_tree = search_kernels(decide, heuristic.kernels().move if heuristic else None)
        return Game(
            kernels=kernels,
            settings=settings,
            words=COLUMNS + way.cols,
            n_actions=way.n_actions,
            leaf=leaf,
            observations=observations,
            write_root=write,
            decide=decide_by_tree,
            exclude=lambda nodes, values: exclude_fatal(nodes, values, settings),
        )
