"""Players that look at the current piece alone: the placement of highest value by a heuristic."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from mergefall.kernels import kernel, unowned
from mergefall.tetris.field import landing
from mergefall.tetris.game import columns_in, queued
from mergefall.tetris.heuristics import MEMO, priority
from mergefall.tetris.heuristics import heuristic as make_heuristic
from mergefall.tetris.heuristics.base import Recipe, kernels_of
from mergefall.tetris.pieces import WIDTHS
from mergefall.tetris.placements import (
    ABOVE,
    ROTATIONS,
    SLIDES,
    STEPS,
    action_of,
    at_rest,
    list_reachable,
    packed,
    row_at_rest,
)
from mergefall.tetris.rules import Rules
from mergefall.typing import Kernel

from mergefall_baselines.kernel_player import KernelPlayer
from mergefall_baselines.tetris.player import FORM


def best_kernel(leaf: Kernel, slides: bool, reachable: bool, by_priority: bool = False) -> Kernel:
    """A kernel that finds the placement of highest value on a board, for which `prepare` must have filled `memo`.

    Ties go to the lowest action, or with `by_priority` to the highest Dellacherie priority. It writes the value of each
    legal action into `values`, unless that is empty.
    """

    @kernel(forceinline=True)
    def is_better(value, highest, chosen, piece, rotation, column, cols):
        if by_priority and value == highest and chosen >= 0 and value > -np.inf:
            turn, at, _ = at_rest(chosen)
            return priority(piece, rotation, column, cols) > priority(piece, turn, at, cols)
        return value > highest

    @kernel(forceinline=True)
    def best_reachable(columns, piece, rows, clear_first, weights, memo, scratch, values):
        cols, chosen, highest = columns.size, -1, -np.inf
        placements = np.empty(ROTATIONS * cols * (rows + ABOVE), np.int64)
        for placement in placements[: list_reachable(columns, piece, rows, placements)]:
            rotation, column, y = at_rest(placement)
            value = leaf(columns, memo, piece, rotation, column, y, rows, clear_first, weights, scratch)
            if values.size:
                values[action_of(placement)] = value
            if is_better(value, highest, chosen, piece, rotation, column, cols):
                chosen, highest = placement, value
            elif chosen < 0:
                chosen = placement
        return chosen, highest

    @kernel(forceinline=True)  # a third faster
    def best(columns, piece, rows, clear_first, weights, memo, scratch, values):
        """(the placement, or the lowest action if all are fatal; its value)."""
        cols, chosen, highest = columns.size, -1, -np.inf
        for slide in range(SLIDES if slides else 1):
            for rotation in range(ROTATIONS):
                width = WIDTHS[piece, rotation]
                for column in range(cols - width + 1 if width else 0):
                    if slides:
                        y, end = row_at_rest(columns, piece, slide, rotation, column), column + STEPS[slide]
                        if y < 0:
                            continue
                    else:
                        y, end = landing(columns, piece, rotation, column), column
                    value = leaf(columns, memo, piece, rotation, end, y, rows, clear_first, weights, scratch)
                    action = (slide * ROTATIONS + rotation) * cols + column
                    if values.size:
                        values[action] = value
                    better = is_better(value, highest, chosen, piece, rotation, end, cols)
                    if better:
                        highest = value
                    if better or chosen < 0:  # a test of its own: callers that want only `highest` need none of it
                        chosen = packed(y, end, rotation, action)
        return chosen, highest

    return best_reachable if reachable else best


@cache
def greedy_kernel(recipe: Recipe, slides: bool, reachable: bool, by_priority: bool) -> Kernel:
    """The decision kernel of a heuristic's `recipe`."""
    _, _, prepare, leaf, *_ = kernels_of(recipe, True)
    best = best_kernel(leaf, slides, reachable, by_priority)

    @kernel(forceinline=True)
    def decide(state, memory, values, settings):
        state, values, (first, rows, clear_first, weights, memo, scratch) = unowned((state, values, settings))
        values[:] = -np.inf
        columns = columns_in(state)
        prepare(columns, rows, memo)
        return best(columns, first + queued(state, 0), rows, clear_first, weights, memo, scratch, values)[0]

    return decide


class Greedy(KernelPlayer):
    """Greedy: the placement of the current piece with the highest value by a heuristic.

    A fatal placement is worth −inf. Ties go to the lowest action. If all placements are fatal, the player takes the
    first legal one.

    Args:
        heuristic: a name, or a mapping of a name and weights; see `mergefall.tetris.HEURISTICS`. Default: ``bcts``.
        rules: the environment's arguments `cols`, `rows`, `pieces`, `randomizer`, `preview`, `placements`, `hold`,
            `overflow`. Default: those of the environment, or what the observation shows.

    Example:
        >>> from mergefall_baselines import make
        >>> from mergefall.tetris import from_text
        >>> player = make("tetris/greedy", heuristic="bcts")
        >>> int(player.act({"board": from_text("..../..../..../##.#"), "piece": 2}))  # T, stub down
        9
    """

    form = FORM
    rewards = False
    sees_next = False
    by_priority = False  # whether ties go to the highest Dellacherie priority

    def __init__(self, heuristic: Any = "bcts", **rules: Any) -> None:
        super().__init__(**rules)
        self.heuristic = make_heuristic(heuristic)

    def _make_decider(self, way: Rules, exact: bool) -> tuple[Kernel, tuple[Any, ...]]:
        self.heuristic.check_size(way.rows, way.cols)
        memo, scratch = np.empty(MEMO, dtype=np.uint64), np.empty(way.cols, dtype=np.uint64)
        weights, clear_first = self.heuristic.weight_vector(), way.overflow == "clear_first"
        settings = way.piece_set.first, way.rows, clear_first, weights, memo, scratch
        return greedy_kernel(self.heuristic.recipe, way.slides, way.reachable, self.by_priority), settings


def dellacherie(**rules: Any) -> Greedy:
    """Dellacherie's controller: greedy by the heuristic `dellacherie`; ties go to the highest priority.

    The priority is 100 · (distance from the spawn column) + (10 if left of it) − rotation. So among equal placements
    the one farthest from the spawn column wins. A slide has the priority of a drop that ends in the same cells.

    Args:
        rules: the environment's arguments `cols`, `rows`, `pieces`, `randomizer`, `preview`, `placements`, `hold`,
            `overflow`. Default: those of the environment, or what the observation shows.

    Source: C. Fahey's description of P. Dellacherie's player, as in C. Thiery & B. Scherrer, `mdptetris`.
    """
    player = Greedy("dellacherie", **rules)
    player.by_priority = True
    return player


def preset(name: str, about: str) -> Callable[..., Greedy]:
    """The factory of greedy players with the heuristic `name`."""

    def make_greedy(**rules: Any) -> Greedy:
        return Greedy(name, **rules)

    make_greedy.__doc__ = f"""{about}: greedy by the heuristic `{name}`.

    Args:
        rules: the environment's arguments `cols`, `rows`, `pieces`, `randomizer`, `preview`, `placements`, `hold`,
            `overflow`. Default: those of the environment, or what the observation shows.
    """
    return make_greedy
