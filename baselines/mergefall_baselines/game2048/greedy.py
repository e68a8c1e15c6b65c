"""The player that looks one own move ahead."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mergefall_baselines.game2048.expectimax import Expectimax


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
