"""The two-tetrad player: the best placement of the current piece, if the next one is placed best."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mergefall_baselines.tetris.search import TetrisSearch

TUNED = {"name": "two-tetrad", "weights": "tuned"}


class TwoTetrad(TetrisSearch):
    """Two-tetrad: the best placement of the current piece, if the next piece is then placed best.

    The value of an action is the maximum, over the placements of the next piece, of the heuristic's terms of both
    moves, its terms of the last placement, and its terms of the board after both. The search looks only at known
    pieces: it has no chance nodes, and it prunes nothing.

    A fatal placement is worth −inf, and so is one after which every placement of the next piece is fatal. If all
    actions are worth −inf, the player takes the first legal one.

    Args:
        heuristic: a name, a mapping of a name and weights (see `mergefall.tetris.HEURISTICS`), or None: only lines
            count. Default: ``two-tetrad`` with weights tuned by the document's method, hill climbing.
        depth: int, own moves: 2 (deep) or 1 (shallow, the current piece alone). Default: 2. Without a preview both are
            shallow.
        near_top: int ≥ 0, rows. While a column is higher than `near_top` rows below the ceiling, the search is
            shallow, as the document's program was. Default: None, never.
        order: all actions, the preferred ones first; ties go to the first. Default: None, the lowest action first.
        time_limit: seconds for one decision. If the deep search does not finish, the shallow one decides. Default:
            None, no limit.
        rules: see `KernelPlayer`. The document's search slides: ``placements="slide"``.

    Source: "The Evaluation Function", the document of a two-tetrad player (Cornell University, BOOM 1999).

    Example:
        >>> from mergefall_baselines import make
        >>> from mergefall.tetris import from_text
        >>> player = make("tetris/two-tetrad", heuristic="bcts")
        >>> board = from_text("...../...../...../##..#")
        >>> int(player.act({"board": board, "piece": 1, "queue": [1]}))  # O
        2
    """

    only_known = True

    def __init__(
        self,
        heuristic: Any = TUNED,
        depth: int = 2,
        near_top: int | None = None,
        order: Sequence[int] | None = None,
        time_limit: float | None = None,
        **rules: Any,
    ) -> None:
        if isinstance(depth, int) and depth > 2:
            raise ValueError(f"depth={depth!r}; expected 1 (shallow) or 2 (deep)")
        super().__init__(
            heuristic,
            depth,
            table=False,
            order=order,
            near_top=near_top,
            time_limit=time_limit,
            **rules,
        )
