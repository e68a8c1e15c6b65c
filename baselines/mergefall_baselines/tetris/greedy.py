"""Players that look at the current piece alone: the placement of highest value by a heuristic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from mergefall.kernels import kernel
from mergefall.tetris.field import landing
from mergefall.tetris.heuristics import MEMO, Heuristic, priority
from mergefall.tetris.heuristics import heuristic as make_heuristic
from mergefall.tetris.pieces import WIDTHS
from mergefall.tetris.placements import (
    ROTATIONS,
    SLIDES,
    STEPS,
    action_of,
    column_of,
    packed,
    rotation_of,
    row_at_rest,
)
from mergefall.tetris.rules import Rules
from mergefall.typing import Kernel
from numpy.typing import NDArray

from mergefall_baselines.kernel_player import KernelPlayer
from mergefall_baselines.tetris.player import FORM, ranks_of


class GreedySettings(NamedTuple):
    """What the kernels of `greedy_kernels` take besides the board.

    Attributes:
        first: table row of piece id 0.
        rows: of the field.
        clear_first: whether the rules' overflow is ``clear_first``.
        weights: float64[k], the heuristic's.
        memo: uint64[MEMO], overwritten.
        scratch: uint64[cols], overwritten.
        ranks: int64[n_actions], the actions' ranks in ties.
    """

    first: int
    rows: int
    clear_first: bool
    weights: NDArray[np.float64]
    memo: NDArray[np.uint64]
    scratch: NDArray[np.uint64]
    ranks: NDArray[np.int64]


def greedy_settings(heuristic: Heuristic, rules: Rules, order: Sequence[int] | None = None) -> GreedySettings:
    """The settings for a heuristic and rules; `order` lists all actions, the preferred ones in ties first."""
    heuristic.check_size(rules.rows, rules.cols)
    memo, scratch = np.empty(MEMO, dtype=np.uint64), np.empty(rules.cols, dtype=np.uint64)
    clear_first, ranks = rules.overflow == "clear_first", ranks_of(order, rules.n_actions)
    weights = heuristic.weight_vector()
    return GreedySettings(rules.piece_set.first, rules.rows, clear_first, weights, memo, scratch, ranks)


def best_kernel(leaf: Kernel, slides: bool, ties: str, writes: bool) -> Kernel:
    """A kernel that finds the placement of highest value on a board.

    Args:
        leaf: a heuristic's kernel; its `prepare` must have filled `memo` for the board.
        slides: whether placements slide.
        ties: which of equal values wins: the ``lowest`` action; under ``order`` the one of lowest rank; under
            ``priority`` the one of highest Dellacherie priority.
        writes: whether it writes the value of each legal action into `values`.
    """

    @kernel(forceinline=True)  # a third faster
    def best(columns, piece, rows, clear_first, weights, memo, scratch, ranks, values):
        """(the placement, or the lowest action if all are fatal; its value); unused `ranks`, `values` may be empty."""
        cols, found, highest = columns.size, -1, -np.inf
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
                    if writes:
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
                    if better or found < 0:  # a test of its own: callers that want only `highest` lose it in compiling
                        found = packed(y, end, rotation, action)
        return found, highest

    return best


@cache
def greedy_kernels(cls: type[Heuristic], slides: bool, ties: str = "lowest") -> tuple[Kernel, Kernel]:
    """(choose, decide) for a heuristic class: the best placement of a piece, and of the first piece in a queue."""
    _, _, _, prepare, leaf = cls.kernels()
    best = best_kernel(leaf, slides, ties, True)

    @kernel(forceinline=True)
    def choose(columns, piece, values, settings):
        _, rows, clear_first, weights, memo, scratch, ranks = settings
        prepare(columns, rows, memo)
        return best(columns, piece, rows, clear_first, weights, memo, scratch, ranks, values)[0]

    @kernel(forceinline=True)
    def decide(columns, queue, memory, values, settings):
        for action in range(values.size):
            values[action] = -np.inf
        return choose(columns, settings.first + (np.int64(queue) & 15), values, settings)

    return choose, decide


class Greedy(KernelPlayer):
    """Greedy: the placement of the current piece with the highest value by a heuristic.

    A fatal placement is worth −inf. If all placements are fatal, the player takes the first legal one.

    Args:
        heuristic: a name, or a mapping of a name and weights; see `mergefall.tetris.HEURISTICS`. Default: ``bcts``.
        order: all actions, the preferred ones first; ties go to the first. Default: None, the lowest action first.
        rules: see `KernelPlayer`.

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

    def __init__(self, heuristic: Any = "bcts", order: Sequence[int] | None = None, **rules: Any) -> None:
        super().__init__(**rules)
        self.heuristic, self.order = make_heuristic(heuristic), order
        self.ties = "lowest" if order is None else "order"  # see `best_kernel`

    def _make_decider(self, way: Rules, exact: bool) -> tuple[Kernel, GreedySettings]:
        _, decide = greedy_kernels(type(self.heuristic), way.placements == "slide", self.ties)
        return decide, greedy_settings(self.heuristic, way, self.order)


def dellacherie(order: Sequence[int] | None = None, **rules: Any) -> Greedy:
    """Dellacherie's controller: greedy by the heuristic `dellacherie`; ties go to the highest priority.

    priority = 100·|column − spawn column| + (10 if left of it) − rotation

    So among equal placements the one farthest from the spawn column wins. A slide has the priority of a drop that ends
    in the same cells.

    Args:
        order: all actions, the preferred ones first; ties go to the first. Default: None, by priority.
        rules: see `KernelPlayer`.

    Source: C. Fahey's description of P. Dellacherie's player, as in C. Thiery & B. Scherrer, `mdptetris`.
    """
    player = Greedy("dellacherie", order, **rules)
    player.ties = "priority" if order is None else "order"
    return player


def preset(name: str, about: str) -> Callable[..., Greedy]:
    """The factory of greedy players with the heuristic `name`; its options are those of `dellacherie`."""

    def make_greedy(order: Sequence[int] | None = None, **rules: Any) -> Greedy:
        return Greedy(name, order, **rules)

    make_greedy.__doc__ = f"""{about}: greedy by the heuristic `{name}`.

    Args:
        order: all actions, the preferred ones first; ties go to the first. Default: None, the lowest action first.
        rules: see `KernelPlayer`.
    """
    return make_greedy
