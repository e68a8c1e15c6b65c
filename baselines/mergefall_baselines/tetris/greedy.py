"""The one-piece controllers: the placement of highest value, by any evaluation."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from mergefall.kernels import kernel
from mergefall.tetris.evaluations import MEMO, Evaluation, priority
from mergefall.tetris.evaluations import evaluation as make_evaluation
from mergefall.tetris.field import landing
from mergefall.tetris.pieces import WIDTHS
from mergefall.tetris.placements import ROTATIONS, STEPS, column_of, packed, rotation_of, row_at_rest
from mergefall.tetris.settings import Settings

from mergefall_baselines.tetris.base import TetrisPlayer

U = np.uint64


@cache
def greedy_kernels(cls: type[Evaluation], slides: bool, ties: bool = False) -> tuple[Any, Any]:
    """(best, decide) for an evaluation class; with `ties` equal values are told apart by Dellacherie's priority."""
    _, _, _, prepare, leaf = cls.kernels()
    name = f"{cls.name}-{slides}-{ties}"

    @kernel(variant=name, forceinline=True)  # a third faster
    def best(columns, piece, values, settings):
        """The placement of highest value, the lowest action if none lives; `values` are those of all legal actions."""
        rows, clear_first, weights, memo, scratch = settings
        prepare(columns, rows, weights, memo)
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
                    values[action] = value
                    better = value > highest
                    if ties:
                        if value == highest and found >= 0 and value > -np.inf:
                            rival = priority(piece, rotation_of(found), column_of(found), cols)
                            better = priority(piece, rotation, end, cols) > rival
                    if better or found < 0:
                        highest = value
                        found = packed(y, end, rotation, action)
        return found

    @kernel(variant=name, forceinline=True)
    def decide(columns, queue, memory, values, settings):
        first, search = settings
        for action in range(values.size):
            values[action] = -np.inf
        return best(columns, first + (np.int64(queue) & 15), values, search)

    return best, decide


def search_settings(evaluation: Evaluation, rules: Settings) -> tuple[Any, ...]:
    """What `best` takes: rules, weights, and scratch memory."""
    memo, scratch = np.empty(MEMO, dtype=np.uint64), np.empty(rules.cols, dtype=np.uint64)
    return rules.rows, rules.overflow == "clear_first", evaluation.weight_vector(), memo, scratch


class Greedy(TetrisPlayer):
    """Greedy: the placement of highest value by an evaluation, the current piece alone being looked at.

    A fatal placement is worth −inf. Ties go to the lowest action; where all placements are fatal, the first legal one.

    Options: evaluation (a name or a mapping of a name and weights, see `mergefall.tetris.EVALUATIONS`), and the rules
    (see `TetrisPlayer`).

    Example:
        >>> from mergefall_baselines import make
        >>> from mergefall.tetris import from_text
        >>> player = make("tetris/greedy", evaluation="bcts")
        >>> int(player.act({"board": from_text("..../..../..../##.#"), "piece": 2}))  # T, stub down
        9
    """

    ties = False

    def __init__(self, evaluation: Any = "bcts", **rules: Any) -> None:
        super().__init__(**rules)
        self.evaluation = make_evaluation(evaluation)

    def _make_decider(self, rules: Settings, exact: bool) -> tuple[Any, Any]:
        _, decide = greedy_kernels(type(self.evaluation), rules.placements == "slide", self.ties)
        return decide, (rules.piece_set.first, search_settings(self.evaluation, rules))


class Dellacherie(Greedy):
    """Dellacherie's controller: greedy by `dellacherie`, ties to the placement of highest priority.

    The priority is 100·|column − spawn column|, 10 more to the left of it, less the rotation: among equals the farthest
    from where the piece appears. (A slide and a drop have the priority of where they end.) Options: the rules.

    Source: C. Fahey's description of P. Dellacherie's player, as in C. Thiery & B. Scherrer, `mdptetris`.
    """

    ties = True

    def __init__(self, **rules: Any) -> None:
        super().__init__("dellacherie", **rules)


def preset(name: str, about: str) -> type[Greedy]:
    """The class of greedy players with one evaluation."""

    class Preset(Greedy):
        def __init__(self, **rules: Any) -> None:
            super().__init__(name, **rules)

    Preset.__doc__ = f"{about}: greedy by the evaluation `{name}`. Options: the rules."
    return Preset
