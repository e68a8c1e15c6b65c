"""The Quintris player, and the bound that makes it fast."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from mergefall.checks import integer
from mergefall.kernels import kernel
from mergefall.tetris.field import height_of
from mergefall.tetris.heuristics import OpenEnclosed
from mergefall.typing import Kernel
from mergefall.words import popcount

from mergefall_baselines.tetris.search import MOST_MOVES, Expectimax

U = np.uint64
LARGEST_PIECE = 5  # cells
FULL_ROWS, OPEN = 0, 1  # weights of `open-enclosed`


@kernel
def completable(columns, rows, cells):
    """The most rows that `cells` more cells, dropped from above, can complete.

    A row with an enclosed blank cannot be completed; of the others those with the fewest blanks come first.
    """
    enclosed, used = U(0), U(0)
    p0, p1, p2, p3, p4 = U(0), U(0), U(0), U(0), U(0)  # bit r of p0 … p4: the number of blanks in row r, in binary
    for i in range(columns.size):
        carry = ~columns[i]
        used |= columns[i]
        enclosed |= carry & ((U(1) << U(height_of(columns[i]))) - U(1))
        p0, carry = p0 ^ carry, p0 & carry
        p1, carry = p1 ^ carry, p1 & carry
        p2, carry = p2 ^ carry, p2 & carry
        p3, carry = p3 ^ carry, p3 & carry
        p4 ^= carry
    candidates = ((U(1) << U(rows)) - U(1)) & ~enclosed
    if columns.size > cells:
        candidates &= used
    count = 0
    for blanks in range(1, min(cells, columns.size) + 1):
        d0, d1, d2, d3, d4 = blanks & 1, blanks >> 1 & 1, blanks >> 2 & 1, blanks >> 3 & 1, blanks >> 4
        alike = (p0 if d0 else ~p0) & (p1 if d1 else ~p1) & (p2 if d2 else ~p2) & (p3 if d3 else ~p3)
        alike &= p4 if d4 else ~p4
        found = min(popcount(alike & candidates), cells // blanks)
        count += found
        cells -= found * blanks
    return count


@cache
def bound_kernel() -> Kernel:
    """A kernel (columns, moves, rows, weights) -> float64, the `bound` of a `Shape` for `open-enclosed`.

    It bounds the value of the board after `moves` more placements, if nothing is cleared:

        value now + full_rows · (rows that can be completed) − open · (cells of the pieces)

    A piece dropped from above fills no enclosed blank and may enclose others, so each of its cells saves at most the
    cost of one open blank. This holds for weights that reward full rows, punish open blanks, and punish enclosed ones
    no less.
    """
    board = OpenEnclosed.kernels(clears=False).board

    @kernel
    def bound(columns, moves, rows, weights):
        cells = LARGEST_PIECE * moves
        lines = completable(columns, rows, cells)
        return board(columns, rows, weights) + weights[FULL_ROWS] * lines - weights[OPEN] * cells

    return bound


def quintris(
    depth: int = 2,
    heuristic: Any = "open-enclosed",
    distribution: str = "counted",
    beam: int | None = None,
    lost: float | None = None,
    time_limit: float | None = None,
    **rules: Any,
) -> Expectimax:
    """Expectimax of the Quintris document: pieces to come are as frequent as in this episode so far.

    The value of an action: max over placements while the next piece is known (the current and the previewed ones), then
    mean over pieces of max over placements. A leaf is worth `open-enclosed` of its board.

    - A piece's probability is its share of the pieces that came into view in this episode, the known ones included. A
      piece not seen yet has probability 0.
    - The search clears nothing: full rows stay on the board, and the full rows of the last board count.
    - Pieces drop straight down. If the environment allows slides, they are worth −inf.
    - A placement that rests above the field is worth −inf, and a node without any other counts `lost`.
    - Ties go to the lowest action. If all actions are worth −inf, the player takes the first legal one.

    The search skips placements that a bound proves useless. This changes neither the chosen action nor any of `values`.
    The bound needs weights that reward full rows, punish open blanks, and punish enclosed ones no less. With other
    weights, and with a `beam`, nothing is skipped.

    Args:
        depth: int from 0 to 15, levels below the current piece, as the document counts, so own moves − 1. Default: 2,
            the current piece, the next, and one unknown piece.
        heuristic: ``open-enclosed``, or a mapping of that name and weights.
        distribution: ``counted``, ``uniform`` or ``bag``, as in tetris/expectimax. Default: ``counted``.
        beam, lost, time_limit: as in tetris/expectimax.
        rules: see `KernelPlayer`. Default: the five-cell pieces from a hidden distribution.

    Source: the document "Formulation, Heuristic, Search" of an expectimax player (no author given), for a game of
    five-cell pieces on 15 columns and 25 rows.

    Example:
        >>> from mergefall_baselines import make
        >>> from mergefall.tetris import from_text
        >>> player = make("quintris/expectimax", depth=1)
        >>> board = from_text("....../....../....../....../....../#####.")
        >>> int(player.act({"board": board, "piece": 1, "queue": [0]}))  # I5 upright where a row lacks one cell
        11
    """
    moves = integer("depth", depth, 0, MOST_MOVES - 1) + 1
    player = Expectimax(heuristic, moves, distribution, beam, lost, time_limit, **rules)
    weights = player.heuristic
    if not isinstance(weights, OpenEnclosed):
        raise ValueError(f"heuristic={heuristic!r}; expected 'open-enclosed', or a mapping of that name and weights")
    player.clears, player.defaults = False, {"pieces": "five", "randomizer": "hidden"}
    if beam is None and weights.full_rows >= 0 >= weights.open >= weights.enclosed:
        player.bound = bound_kernel
    return player
