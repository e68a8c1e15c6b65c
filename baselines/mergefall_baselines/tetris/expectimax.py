"""The searches of Tetris, each with its contract."""

from __future__ import annotations

from typing import Any

from mergefall_baselines.tetris.searches import TetrisSearch

TUNED = {"name": "two-tetrad", "weights": "tuned"}


class TwoTetrad(TetrisSearch):
    """Two-tetrad: the best placement, the next piece being placed as well as it can be.

    Denotes the maximum, over the placements of the current and of the next piece, of the move terms of both, the terms
    of the last placement, and the board terms of the board after both. A fatal placement is worth −inf, and so is one
    after which the next piece cannot be placed; where all are, the first legal action is taken. Nothing is pruned.
    Known pieces are all it looks at: there is no chance node to cut off, and no piece to add to a leaf.

    Args:
        heuristic: a name or a mapping of a name and weights, see `mergefall.tetris.HEURISTICS`; the default
            has the weights that the document's own method finds, the heuristic by itself those of the document.
        depth: 1 the shallow search, of the current piece alone; 2 the deep one. Without a preview both are shallow.
        near_top: the shallow search while a column is higher than `near_top` rows below the ceiling, as the original
            did; None never.
        rewards: whether each line is worth 1 besides; None: no.
        order: of actions; ties go to the first. None: the lowest.
        threads: share the placements of the current piece; values and moves stay the same. Episodes played in the
            compiled loop take one thread.
        time_limit: seconds a decision; where they do not suffice for the deep search, the shallow one decides.
        rules: see `TetrisPlayer`. The document's search slides, `placements="slide"`; the environment decides.

    Source: the two-tetrad document (Cornell University, 1999).

    Example:
        >>> from mergefall_baselines import make
        >>> from mergefall.tetris import from_text
        >>> player = make("tetris/two-tetrad", heuristic="bcts")
        >>> board = from_text("...../...../...../##..#")
        >>> int(player.act({"board": board, "piece": 1, "next": [1]}))  # O
        2
    """

    only_known = True

    def __init__(
        self,
        heuristic: Any = TUNED,
        depth: int = 2,
        near_top: int | None = None,
        rewards: bool | None = None,
        order: Any = None,
        threads: int = 1,
        time_limit: float | None = None,
        **rules: Any,
    ) -> None:
        if isinstance(depth, int) and depth > 2:
            raise ValueError(f"depth={depth!r}; expected 1 (shallow) or 2 (deep)")
        super().__init__(
            heuristic,
            depth,
            table=False,
            rewards=rewards,
            order=order,
            near_top=near_top,
            time_limit=time_limit,
            threads=threads,
            **rules,
        )


class Expectimax(TetrisSearch):
    """Expectimax: the best placement when the pieces that are not known yet are averaged over.

    Denotes, to `depth` own moves, the maximum over placements while the piece is known (the current one and the
    previewed ones), then the mean over pieces of the maximum over placements. Move terms add up along the way; at the
    end stand the last placement's terms and the last board's. Fatal placements are worth −inf; ties go to the first in
    `order`; where no action is worth more than −inf, the first legal one is taken.

    Args:
        heuristic: a name or a mapping of a name and weights; None: leaves are worth 0 and lines count.
        depth: own moves, the current piece's included.
        distribution: of the unknown pieces: ``uniform``, ``bag`` (what is left of a bag, by the pieces seen) or
            ``counted`` (as frequent as they were seen in this game, unseen ones never); None follows the environment's
            randomizer.
        beam: look only into the `beam` placements of each node, the root included, that the heuristic values highest;
            others count as −inf. This changes moves, the more the smaller it is; None looks into all.
        cutoff: a node below this probability, of the pieces drawn on the way, is a leaf. It changes values a little.
        table: keep values of nodes met again. It changes no value: an entry is used only for the very same node.
        lost: the value of a node whose piece cannot be placed without ending the game. None is −inf: then any chance of
            such an end, however small, is as bad as a certain one, so that near the top all moves tie and the first
            legal one is taken. A finite value weighs chances; it should lie below what boards are worth.
        rewards: whether each line on the way is worth 1; None: only without a heuristic.
        order: of actions; ties go to the first. None: the lowest.
        threads: share the placements of the current piece; values and moves stay the same. Episodes played in the
            compiled loop take one thread.
        time_limit: seconds a decision: the search deepens move by move, up to `depth`, until they are up.
        leaf: ``"state"`` adds one piece to each leaf to which `depth` leads, the next known one or each that may come:
            the leaf is worth `lost` where that piece cannot be placed without ending the game, averaged over pieces.
        rules: see `TetrisPlayer`.

    Example:
        >>> from mergefall_baselines import make
        >>> from mergefall.tetris import from_text
        >>> player = make("tetris/expectimax", depth=2)
        >>> int(player.act({"board": from_text("..../..../..../#..#"), "piece": 1}))  # O
        1
    """

    remembers = True

    def __init__(
        self,
        heuristic: Any = "bcts",
        depth: int = 3,
        distribution: str | None = None,
        beam: int | None = None,
        cutoff: float | None = None,
        table: bool = True,
        lost: float | None = None,
        rewards: bool | None = None,
        order: Any = None,
        threads: int = 1,
        time_limit: float | None = None,
        leaf: str = "afterstate",
        **rules: Any,
    ) -> None:
        super().__init__(
            heuristic,
            depth,
            distribution,
            beam,
            cutoff,
            table,
            lost,
            rewards,
            order,
            time_limit=time_limit,
            threads=threads,
            leaf=leaf,
            **rules,
        )
