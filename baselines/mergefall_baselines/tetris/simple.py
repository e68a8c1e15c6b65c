"""Players that search no tree: random placements, and games played on from each."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from mergefall.checks import integer
from mergefall.kernels import kernel
from mergefall.tetris.field import place
from mergefall.tetris.heuristics import heuristic as make_heuristic
from mergefall.tetris.placements import action_of, column_of, list_placements, rotation_of, row_of
from mergefall.tetris.rules import Rules
from mergefall.words import below, next_bits

from mergefall_baselines.tetris.greedy import greedy_kernels, search_settings
from mergefall_baselines.tetris.memory import (
    DISTRIBUTIONS,
    IDS,
    OF_RANDOMIZER,
    STREAM,
    bag_after,
    chances_of,
    distribution_option,
    draw_from,
)
from mergefall_baselines.tetris.player import TetrisPlayer

U = np.uint64


@kernel
def any_of(placements, count, memory):
    """One of the first `count` placements, drawn with the player's random stream."""
    memory[STREAM], bits = next_bits(memory[STREAM])
    return placements[below(bits, count)]


@kernel
def choose_any(columns, queue, memory, values, settings):
    """Every legal placement is worth 0, and any is chosen."""
    first, slides, placements = settings
    for action in range(values.size):
        values[action] = -np.inf
    count = list_placements(columns, first + (np.int64(queue) & 15), slides, placements)
    for i in range(count):
        values[action_of(placements[i])] = 0.0
    return any_of(placements, count, memory)


class Random(TetrisPlayer):
    """Random: every legal placement is as likely, fatal ones included.

    Its random stream travels in `state`; `start(seed)` begins one, apart from the environment's of the same seed.
    Options: the rules (see `TetrisPlayer`).

    Example:
        >>> import numpy as np
        >>> from mergefall_baselines import make
        >>> player = make("tetris/random")
        >>> observation = {"board": np.zeros((20, 10), dtype=np.uint8), "piece": 1}
        >>> action, state = player.predict(observation, player.start(seed=0))
        >>> int(action) in range(9)
        True
    """

    remembers = True

    def _make_decider(self, rules: Rules, exact: bool) -> tuple[Any, Any]:
        slides = rules.placements == "slide"
        return choose_any, (rules.piece_set.first, slides, np.empty(rules.n_actions, dtype=np.int64))


@cache
def rollout_kernel(cls: Any, slides: bool) -> Any:
    """``decide`` by games played on, greedily by a heuristic class or at random (None)."""
    best = greedy_kernels(cls, slides)[0] if cls else None

    @kernel(variant=f"{cls.name if cls else 'random'}-{slides}")
    def value_by_games(columns, queue, memory, values, settings):
        """Each legal placement is worth the mean of `games` games that begin with it."""
        (first, drawn, known, distribution, games, length), search, scratch = settings
        rows, clear_first = search[:2]
        placements, options, board, weights, ignored = scratch
        for action in range(values.size):
            values[action] = -np.inf
        piece = first + (np.int64(queue) & 15)
        count = list_placements(columns, piece, slides, placements)
        start = chances_of(memory, distribution, drawn, weights)
        chosen = placements[0]
        highest = -np.inf
        for i in range(count):
            total = 0.0
            for _ in range(games):
                for c in range(board.size):
                    board[c] = columns[c]
                bag, piece, placement = start, first + (np.int64(queue) & 15), placements[i]
                for placed in range(length):
                    lines, _, over = place(
                        board,
                        piece,
                        rotation_of(placement),
                        column_of(placement),
                        row_of(placement),
                        rows,
                        clear_first,
                    )
                    if over:
                        break
                    total += 1.0 + lines
                    if placed + 1 < known:
                        id = np.int64(queue >> U(4 * (placed + 1))) & 15
                    else:
                        id = draw_from(memory, bag, weights)
                        bag = bag_after(id, bag, drawn)
                    piece = first + id
                    if best is None:
                        placement = any_of(options, list_placements(board, piece, slides, options), memory)
                    else:
                        placement = best(board, piece, ignored, search)
            value = total / games
            values[action_of(placements[i])] = value
            if value > highest:
                highest = value
                chosen = placements[i]
        return chosen

    return value_by_games


class Rollout(TetrisPlayer):
    """Rollout: the placement after which games played on go best, in the mean over `games` for each.

    A game is played on for `length` pieces, that placement included: the known pieces first, then pieces drawn. It
    is worth a point for each piece it places alive and for each line; so a placement that is fatal is worth 0.

    Options:
        games: for each placement.
        length: of a game, in pieces.
        heuristic: games are played greedily by it; None: at random.
        distribution: of the pieces drawn: ``uniform``, ``bag`` (what is left of a bag) or ``counted`` (as frequent as
            seen in this game); None follows the environment's randomizer.
        rules: see `TetrisPlayer`.

    Example:
        >>> from mergefall_baselines import make
        >>> from mergefall.tetris import from_text
        >>> player = make("tetris/rollout", games=5, length=4, heuristic="bcts")
        >>> int(player.act({"board": from_text("..../..../###./###."), "piece": 0}))  # I, upright in the gap
        7
    """

    remembers = True

    def __init__(
        self,
        games: int = 10,
        length: int = 20,
        heuristic: Any = None,
        distribution: str | None = None,
        **rules: Any,
    ) -> None:
        super().__init__(**rules)
        self.games, self.length = integer("games", games, 1), integer("length", length, 1)
        self.heuristic = None if heuristic is None else make_heuristic(heuristic)
        self.distribution = distribution_option(distribution)

    def _make_decider(self, rules: Rules, exact: bool) -> tuple[Any, Any]:
        cls = type(self.heuristic) if self.heuristic else None
        clear_first = rules.overflow == "clear_first"
        search = search_settings(self.heuristic, rules) if self.heuristic else (rules.rows, clear_first)
        pieces = rules.piece_set
        drawn = sum(1 << id for id in pieces.drawn)
        distribution = DISTRIBUTIONS.index(self.distribution or OF_RANDOMIZER[rules.randomizer])
        numbers = pieces.first, drawn, 1 + rules.preview, distribution, self.games, self.length
        placements, options = (np.empty(rules.n_actions, dtype=np.int64) for _ in range(2))
        scratch = placements, options, np.empty(rules.cols, dtype=np.uint64), np.empty(IDS), np.empty(rules.n_actions)
        return rollout_kernel(cls, rules.placements == "slide"), (numbers, search, scratch)
