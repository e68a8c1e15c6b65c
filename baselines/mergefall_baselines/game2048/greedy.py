"""The player that looks one own move ahead."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from mergefall.kernels import kernel
from mergefall.typing import Kernel

from mergefall_baselines.game2048.engines import after_of, engine, read, score_of
from mergefall_baselines.game2048.expectimax import Expectimax
from mergefall_baselines.game2048.player import Boards, pick
from mergefall_baselines.game2048.search import SearchShape


@cache
def greedy_kernel(shape: SearchShape) -> Kernel:
    """The decision kernel of a search of one own move, which compiles in about half the time of that of any depth."""
    boards = engine(shape.kind, shape.heuristic, shape.scored)
    from_cells, moves, evaluate = boards.from_cells, boards.moves, boards.evaluate
    scored, real = shape.scored, shape.real

    @kernel(variant=boards.name)
    def decide(cells, memory, values, settings):
        ctx, blank, order = settings
        board = from_cells(blank, cells, read(ctx).cols)
        found = moves(board, ctx)
        for action in range(4):
            after, value = after_of(found, action), -np.inf
            if after != board:
                value = np.float64(real(evaluate(after, False, ctx)))
                value = value + score_of(found, action) if scored else value
            values[action] = value
        return pick(values, order)

    return decide


class Greedy(Expectimax):
    """Greedy: the move with the highest score, or with a heuristic the one that leaves the best afterstate.

    Options: heuristic (see `2048/expectimax`), order (of ties), rows, cols.

    Example:
        >>> from mergefall_baselines import make
        >>> int(make("2048/greedy").act([[1, 1], [0, 2]]))
        1
    """

    def __init__(
        self,
        heuristic: Any = None,
        order: Sequence[int] | None = None,
        rows: int | None = None,
        cols: int | None = None,
    ) -> None:
        super().__init__(heuristic, depth=1, order=order, rows=rows, cols=cols, table=False)

    def _make_decider(self, rules: Boards, exact: bool) -> tuple[Kernel, Any]:
        return greedy_kernel(self._shape(rules)), self._settings(rules)
