"""Monte-Carlo tree search for Tetris."""

from dataclasses import asdict
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from mergefall.kernels import kernel
from mergefall.tetris import game as states
from mergefall.tetris.field import copy, place
from mergefall.tetris.heuristics import Heuristic
from mergefall.tetris.placements import at_rest, rest_of
from mergefall.tetris.rules import Rules
from mergefall.typing import Floats, Kernel, Words

from mergefall_baselines.mcts import Game, TreeSearch
from mergefall_baselines.tetris.player import FORM, IDS, MEMORY, bag_after, chances_of, drawn_by, observe, piece_from
from mergefall_baselines.tree import tree_kernels

U = np.uint64
# A node's state is one of the game. Words of play by keys hold the root's queue, how many pieces are known, and the
# chances of the next piece as in `player.py`: a bag and IDS probabilities. Then come the board's columns.
ROOT, KNOWN, BAG, CHANCES = range(states.COLUMNS - IDS - 3, states.COLUMNS - IDS + 1)


class Settings(NamedTuple):
    """Settings of the kernels."""

    reach: int | None
    drawn: int  # ids that the game draws, as bits
    known: int  # pieces of a root
    kept: int  # a placement that leaves fewer known pieces draws one
    distribution: int  # of the unknown pieces, an index into `DISTRIBUTIONS`
    rewards: float  # what a line counts, 1 or 0
    weights: Floats  # of the heuristic whose terms of a move count; empty without one
    memory: Words  # of the leaf's player, which remembers nothing
    leaf: Any  # settings of the leaf's decision kernel, None without one


@kernel
def chances_in(state):
    """The probabilities of the next piece in a state, float64[IDS]."""
    return state[CHANCES : states.COLUMNS].view(np.float64)


@kernel
def no_move(*arguments):
    return 0.0


@kernel
def write_root(state, memory, root, game):
    copy(state, root)
    root[ROOT], root[KNOWN] = state[states.QUEUE], U(game.known)
    root[BAG] = U(chances_of(memory, game.distribution, game.drawn, chances_in(root)))


@kernel
def placement_of(state, action, game):
    """The placement that an action leads to, -1 if it is illegal."""
    piece, slides = states.table_row(state, states.queued(state, 0)), states.settings_of(state)[3]
    return rest_of(states.columns_in(state), piece, action, slides, game.reach)


@kernel
def placed(state, placement, board):
    """Play a placement on a copy of the state's board: the table row of the piece, and what `place` returns."""
    (rotation, column, y), piece = at_rest(placement), states.table_row(state, states.queued(state, 0))
    copy(states.columns_in(state), board)
    return piece, place(board, piece, rotation, column, y, states.size_of(state)[1], states.settings_of(state)[4])


@kernel
def exclude_fatal(nodes, values, game):
    """Set the values float64[n, A] of actions to -inf that are illegal or fatal in the states uint64[n, words]."""
    board = np.empty(nodes.shape[1] - states.COLUMNS, U)
    for i in range(len(nodes)):
        for action in range(values.shape[1]):
            placement = placement_of(nodes[i], action, game)
            if placement < 0 or placed(nodes[i], placement, board)[1][2]:
                values[i, action] = -np.inf


@cache
def search_kernels(decide: Any, of_move: Kernel) -> tuple[Kernel, Kernel, Kernel]:
    """The kernels of the tree.

    - `decide`: the decision kernel at the leaves; None: they are valued from outside.
    - `of_move`: values the terms of a move by a heuristic.
    """

    @kernel
    def advance(state, action, bits, after, game):
        copy(state, after)
        placement = placement_of(state, action, game)
        piece, (lines, own, over) = placed(state, placement, states.columns_in(after))
        if over:
            return np.int64(0), 0.0, True
        rotation, column, y = at_rest(placement)
        reward = game.rewards * lines
        reward += of_move(piece, rotation, column, y, lines, own, states.size_of(state)[1], game.weights)
        queue, known, id = state[states.QUEUE], np.int64(state[KNOWN]) - 1, np.int64(0)
        queue = queue >> U(4) | (queue & U(15)) << U(4 * game.known - 4)  # any piece in the place of an unknown one
        if known < game.kept:
            bag = np.int64(state[BAG])
            id = piece_from(bits, bag, chances_in(after))
            after[BAG] = U(bag_after(id, bag, game.drawn))
            queue = queue & ~(U(15) << U(4 * known)) | U(id) << U(4 * known)
            known += 1
        after[states.QUEUE], after[KNOWN] = queue, U(known)
        return id, reward, False

    return tree_kernels(write_root, advance, placement_of, decide, ROOT)


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
            reach=way.reach,
            drawn=drawn,
            known=known,
            kept=known if leaf.sees_next else 1,
            distribution=distribution,
            rewards=1.0 if self.rewards else 0.0,
            weights=heuristic.weight_vector() if heuristic else np.zeros(0),
            memory=np.zeros(MEMORY, U),
            leaf=own,
        )

        def write(state: Words, memory: Words, root: Words) -> None:
            observe(memory, state[states.QUEUE], known, 0)
            write_root(state, memory, root, settings)

        return Game(
            kernels=search_kernels(decide, heuristic.kernels().move if heuristic else no_move),
            settings=settings,
            words=states.COLUMNS + way.cols,
            n_actions=way.n_actions,
            leaf=leaf,
            observations=way.observations,
            write_root=write,
            exclude=lambda nodes, values: exclude_fatal(nodes, values, settings),
        )
