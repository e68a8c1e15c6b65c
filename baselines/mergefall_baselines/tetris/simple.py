"""Players without a search tree: random placements, and random or greedy games played from each placement."""

from functools import cache
from typing import Any

import numpy as np
from mergefall.checks import integer
from mergefall.interrupt import stopped
from mergefall.kernels import kernel
from mergefall.tetris import game
from mergefall.tetris.field import copy, place
from mergefall.tetris.placements import action_of, at_rest, lister
from mergefall.tetris.rules import Rules
from mergefall.typing import Kernel
from mergefall.words import below, draw

from mergefall_baselines.kernel_player import KernelPlayer
from mergefall_baselines.tetris.player import FORM, IDS, STATE_FORM, bag_after, chances_of, drawn_by, piece_from


@kernel
def choose_any(state, memory, values, settings):
    """Choose any legal placement; each is worth 0."""
    reach, placements = settings
    values[:] = -np.inf
    count = game.list_legal(state, reach, placements)
    for placement in placements[:count]:
        values[action_of(placement)] = 0.0
    return placements[below(draw(memory), count)]


class Random(KernelPlayer):
    """Random: a legal placement, each with the same probability, fatal ones included.

    The random stream travels in `state`. ``start(seed)`` begins a stream other than the environment's of that seed.

    Args:
        rules: the environment's arguments `cols`, `rows`, `pieces`, `randomizer`, `preview`, `placements`, `hold`,
            `overflow`. Default: those of the environment, or what the observation shows.

    Example:
        >>> import numpy as np
        >>> from mergefall_baselines import make
        >>> player = make("tetris/random")
        >>> observation = {"board": np.zeros((20, 10), dtype=np.uint8), "piece": 1}
        >>> action, state = player.predict(observation, player.start(seed=0))
        >>> int(action) in range(9)
        True
    """

    form = STATE_FORM
    remembers = True

    def _make_decider(self, way: Rules, exact: bool) -> tuple[Kernel, Any]:
        return choose_any, (way.reach, np.empty(way.n_actions, np.int64))


@cache
def rollout_kernel(slides: bool, reachable: bool) -> Kernel:
    listed = lister(slides, reachable)

    @kernel
    def decide(state, memory, values, settings):
        games, (first, rows, clear_first, drawn, known, distribution), length, scratch = settings
        placements, options, board, weights = scratch
        columns, queue = game.columns_in(state), state[game.QUEUE]
        current = first + game.nibble(queue, 0)
        values[:] = -np.inf
        count = listed(columns, current, rows, placements)
        left = chances_of(memory, distribution, drawn, weights)
        chosen, highest = placements[0], -np.inf
        for candidate in placements[:count]:
            total = 0.0
            for _ in range(games):
                if stopped():
                    break
                piece, placement, bag, points = current, candidate, left, 0.0
                copy(columns, board)
                for placed in range(length):
                    rotation, column, y = at_rest(placement)
                    lines, _, over = place(board, piece, rotation, column, y, rows, clear_first)
                    if over or stopped():
                        break
                    points += 1.0 + lines  # for the piece placed alive, and for each line
                    if placed + 1 < known:
                        id = game.nibble(queue, placed + 1)
                    else:
                        id = piece_from(draw(memory), bag, weights)
                        bag = bag_after(id, bag, drawn)
                    piece = first + id
                    placement = options[below(draw(memory), listed(board, piece, rows, options))]
                total += points
            value = total / games
            values[action_of(candidate)] = value
            if value > highest:
                chosen, highest = candidate, value
        return chosen

    return decide


class Rollout(KernelPlayer):
    """Rollout: the placement with the best mean of games played from it.

    Each game begins with that placement and places `length` pieces at random: the known ones first, then drawn ones. It
    scores a point for each piece placed alive and for each line, so a fatal placement is worth 0.

    Args:
        games: int ≥ 1, for each placement. Default: 10.
        length: int ≥ 1, pieces of a game. Default: 20.
        rules: the environment's arguments `cols`, `rows`, `pieces`, `randomizer`, `preview`, `placements`, `hold`,
            `overflow`. Default: those of the environment, or what the observation shows.

    Example:
        >>> from mergefall_baselines import make
        >>> from mergefall.tetris import from_text
        >>> player = make("tetris/rollout", games=200, length=2)
        >>> int(player.act({"board": from_text("..../..../###./###."), "piece": 0}))  # I, upright in the gap
        7
    """

    form = FORM
    remembers = True
    rewards = None  # no search counts both pieces and lines

    def __init__(self, games: int = 10, length: int = 20, **rules: Any) -> None:
        super().__init__(**rules)
        self.games, self.length = integer("games", games, 1), integer("length", length, 1)

    def _make_decider(self, way: Rules, exact: bool) -> tuple[Kernel, Any]:
        drawn, distribution = drawn_by(None, way)
        rules = way.piece_set.first, way.rows, way.overflow == "clear_first", drawn, 1 + way.preview, distribution
        placements, options = np.empty((2, way.n_actions), dtype=np.int64)
        scratch = placements, options, np.empty(way.cols, dtype=np.uint64), np.empty(IDS)
        return rollout_kernel(way.slides, way.reachable), (self.games, rules, self.length, scratch)
