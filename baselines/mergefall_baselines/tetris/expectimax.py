"""Expectimax for Tetris: the best placement, with unknown pieces averaged over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mergefall_baselines.tetris.player import counts_pieces
from mergefall_baselines.tetris.search import TetrisSearch


class Expectimax(TetrisSearch):
    """Expectimax: the best placement, with unknown pieces averaged over.

    The value of an action, for a search of `depth` own moves: max over placements while the next piece is known (the
    current and the previewed ones), then mean over pieces of max over placements. Every placement on the way adds the
    heuristic's terms of the move. The last one adds its last terms and those of the board.

    A fatal placement is worth −inf. Ties go to the first action in `order`. If all actions are worth −inf, the player
    takes the first legal one.

    Args:
        heuristic: a name, a mapping of a name and weights, or None: leaves are worth 0 and lines count. Default:
            ``bcts``.
        depth: int from 1 to 16, own moves, the current piece's included. Default: 3.
        distribution: assumed for the unknown pieces. Default: None, that of the environment's randomizer.

            - ``uniform``: all pieces are equally likely.
            - ``bag``: the pieces left in a bag of seven, given the pieces seen, are equally likely.
            - ``counted``: each piece's frequency in this episode so far; a piece not seen yet has probability 0.
        beam: int ≥ 1. Each node before the last own move, the root included, searches only the `beam` placements with
            the highest values as leaves; the others count as −inf. This changes moves, the more the smaller the beam.
            Default: None, all.
        cutoff: float from 0 up to 1. A node whose pieces have a lower probability, multiplied along the way, is a leaf.
            This changes values a little. Default: None, 0.
        table: bool, keep the values of nodes that repeat. This changes no value: the table keeps a node's board, bag,
            own moves left and, with a cut-off, probability. Default: True.
        lost: finite float, the value of a node whose piece cannot be placed without ending the game; choose it below
            the values of boards. Default: None, −inf. Then a small chance of the end is as bad as a certain end, so
            near the top all actions may tie and the player takes the first legal one.
        order: all actions, the preferred ones first; ties go to the first. Default: None, the lowest action first.
        time_limit: seconds for one decision. The search deepens own move by own move, up to `depth`, and returns the
            last search that finished. Default: None, no limit.
        leaf: ``afterstate``, or ``state``: one more piece follows the last own move, the next known one or each that
            may come. The leaf counts `lost` for the share of pieces that cannot be placed. Default: ``afterstate``.
        rules: see `KernelPlayer`.

    Example:
        >>> from mergefall_baselines import make
        >>> from mergefall.tetris import from_text
        >>> player = make("tetris/expectimax", depth=2)
        >>> int(player.act({"board": from_text("..../..../..../#..#"), "piece": 1}))  # O
        1
    """

    @property
    def remembers(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether the chances of the unknown pieces depend on the pieces seen."""
        return counts_pieces(self, self.distribution)

    def __init__(
        self,
        heuristic: Any = "bcts",
        depth: int = 3,
        distribution: str | None = None,
        beam: int | None = None,
        cutoff: float | None = None,
        table: bool = True,
        lost: float | None = None,
        order: Sequence[int] | None = None,
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
            order,
            time_limit=time_limit,
            leaf=leaf,
            **rules,
        )
