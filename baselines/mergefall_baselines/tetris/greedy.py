"""The one-piece controllers: the placement of highest value, by any heuristic."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from mergefall.kernels import kernel
from mergefall.tetris.field import landing
from mergefall.tetris.heuristics import MEMO, Heuristic, priority
from mergefall.tetris.heuristics import heuristic as make_heuristic
from mergefall.tetris.pieces import WIDTHS
from mergefall.tetris.placements import ROTATIONS, STEPS, action_of, column_of, packed, rotation_of, row_at_rest
from mergefall.tetris.rules import Rules

from mergefall_baselines.tetris.player import TetrisPlayer, ranks_of

U = np.uint64


def best_kernel(leaf: Any, slides: bool, ties: str, told: bool, name: str) -> Any:
    """The placement of highest value by a `leaf` of a heuristic's, on a board that `memo` is prepared for.

    Args:
        slides: whether placements slide.
        ties: what tells equal values apart: ``lowest`` action; ``order``, the first by `ranks`; or ``priority``, the
            highest of Dellacherie's.
        told: whether it writes what each legal action is worth into `values`.
        name: of `leaf`, for the kernel's variant.
    """

    @kernel(variant=f"{name}-{slides}-{ties}-{told}", forceinline=True)  # a third faster
    def best(columns, piece, rows, clear_first, weights, memo, scratch, ranks, values):
        """(the placement, the lowest action if none lives; its value); `ranks` and `values` may be empty if unused."""
        cols, found, highest = columns.size, -1, -np.inf
        for slide in range(3 if slides else 1):
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
                    if told:
                        values[action] = value
                    better = value > highest
                    if ties != "lowest":
                        if value == highest and found >= 0 and value > -np.inf:
                            if ties == "order":
                                better = ranks[action] < ranks[action_of(found)]
                            else:
                                rival = priority(piece, rotation_of(found), column_of(found), cols)
                                better = priority(piece, rotation, end, cols) > rival
                    if better:
                        highest = value
                    if better or found < 0:  # apart, so that nothing is found where only `highest` is asked for
                        found = packed(y, end, rotation, action)
        return found, highest

    return best


@cache
def greedy_kernels(cls: type[Heuristic], slides: bool, ties: str = "lowest") -> tuple[Any, Any]:
    """(choose, decide) for a heuristic class: the best placement of a piece, and of a queue's first."""
    _, _, _, prepare, leaf = cls.kernels()
    best, name = best_kernel(leaf, slides, ties, True, cls.name), f"{cls.name}-{slides}-{ties}"

    @kernel(variant=name, forceinline=True)
    def choose(columns, piece, values, settings):
        rows, clear_first, weights, memo, scratch, ranks = settings
        prepare(columns, rows, weights, memo)
        return best(columns, piece, rows, clear_first, weights, memo, scratch, ranks, values)[0]

    @kernel(variant=name, forceinline=True)
    def decide(columns, queue, memory, values, settings):
        first, search = settings
        for action in range(values.size):
            values[action] = -np.inf
        return choose(columns, first + (np.int64(queue) & 15), values, search)

    return choose, decide


def search_settings(heuristic: Heuristic, rules: Rules, order: Any = None) -> tuple[Any, ...]:
    """What `choose` takes: rules, weights, scratch memory, and the places of the actions in the order of ties."""
    memo, scratch = np.empty(MEMO, dtype=np.uint64), np.empty(rules.cols, dtype=np.uint64)
    clear_first, ranks = rules.overflow == "clear_first", ranks_of(order, rules.n_actions)
    return rules.rows, clear_first, heuristic.weight_vector(), memo, scratch, ranks


class Greedy(TetrisPlayer):
    """Greedy: the placement of highest value by a heuristic, the current piece alone being looked at.

    A fatal placement is worth −inf. Ties go to the first in `order`; where all placements are fatal, the first legal
    one is taken.

    Options: heuristic (a name or a mapping of a name and weights, see `mergefall.tetris.HEURISTICS`), order (of
    actions, for ties; None: the lowest first), and the rules (see `TetrisPlayer`).

    Example:
        >>> from mergefall_baselines import make
        >>> from mergefall.tetris import from_text
        >>> player = make("tetris/greedy", heuristic="bcts")
        >>> int(player.act({"board": from_text("..../..../..../##.#"), "piece": 2}))  # T, stub down
        9
    """

    ties = "lowest"  # without an order; see `best_kernel`

    def __init__(self, heuristic: Any = "bcts", order: Any = None, **rules: Any) -> None:
        super().__init__(**rules)
        self.heuristic, self.order = make_heuristic(heuristic), order

    def _make_decider(self, rules: Rules, exact: bool) -> tuple[Any, Any]:
        ties = self.ties if self.order is None else "order"
        _, decide = greedy_kernels(type(self.heuristic), rules.placements == "slide", ties)
        return decide, (rules.piece_set.first, search_settings(self.heuristic, rules, self.order))


class Dellacherie(Greedy):
    """Dellacherie's controller: greedy by `dellacherie`, ties to the placement of highest priority.

    The priority is 100·|column − spawn column|, 10 more to the left of it, less the rotation: among equals the farthest
    from where the piece appears. (A slide and a drop have the priority of where they end.) Options: order (of actions,
    for ties, in place of the priority), and the rules.

    Source: C. Fahey's description of P. Dellacherie's player, as in C. Thiery & B. Scherrer, `mdptetris`.
    """

    ties = "priority"

    def __init__(self, order: Any = None, **rules: Any) -> None:
        super().__init__("dellacherie", order, **rules)


def preset(name: str, about: str) -> type[Greedy]:
    """The class of greedy players with one heuristic."""

    class Preset(Greedy):
        def __init__(self, order: Any = None, **rules: Any) -> None:
            super().__init__(name, order, **rules)

    Preset.__doc__ = f"{about}: greedy by the heuristic `{name}`. Options: order (of actions, for ties), the rules."
    return Preset
