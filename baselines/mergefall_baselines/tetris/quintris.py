"""The Quintris player of the expectimax document, and the bound that makes it fast."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from mergefall.checks import integer
from mergefall.kernels import kernel
from mergefall.tetris.field import height_of
from mergefall.tetris.heuristics import OpenEnclosed
from mergefall.tetris.rules import Rules
from mergefall.words import popcount

from mergefall_baselines.tetris.search import MOST_MOVES
from mergefall_baselines.tetris.searches import TetrisSearch

U = np.uint64
LARGEST_PIECE = 5  # cells
FULL_ROWS, OPEN = 0, 1  # weights of `open-enclosed`


@kernel
def completable(columns, rows, cells):
    """How many rows at most `cells` more cells, dropped from above, can complete: those that enclose no blank."""
    enclosed, used = U(0), U(0)
    p0, p1, p2, p3, p4 = U(0), U(0), U(0), U(0), U(0)  # the number of blanks of each row, a binary digit in each word
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
def bound_kernel() -> Any:
    """What no board after `moves` more placements exceeds in `open-enclosed`, nothing being cleared.

    A piece dropped from above fills no enclosed blank and may enclose others; so each of its cells saves the cost of an
    open blank at most, and only rows that enclose no blank can still be completed. (True of weights that reward rows
    and punish blanks, enclosed ones more.)
    """
    board = OpenEnclosed.kernels(clears=False).board

    @kernel
    def bound(columns, moves, rows, weights):
        cells = LARGEST_PIECE * moves
        lines = completable(columns, rows, cells)
        return board(columns, rows, weights) + weights[FULL_ROWS] * lines - weights[OPEN] * cells

    return bound


class Quintris(TetrisSearch):
    """Expectimax of the Quintris document: best placement, pieces to come as frequent as seen in this game.

    Denotes the maximum over placements of the known pieces (the current one and the previewed ones), then, for levels
    where the piece is not known, the mean of the maximum over placements of each piece, weighted by how often it came
    into view in this game, the pieces known now included; pieces never seen count nothing. Leaves are worth
    `open-enclosed` of the last board. Nothing is cleared within the search: full rows stay, and are counted there.
    Pieces drop straight down, whatever else the environment allows: slides are worth −inf. A placement that rests
    above the field is worth −inf, and so is a node that has no other, whatever its probability. Ties go to the first in
    `order`; where no action is worth more than −inf, the first legal one is taken. (The document's search ends with its
    own moves and counts no lines on the way, hence no `leaf` and no `rewards`.)

    What a bound proves useless is left out; it changes neither the chosen action nor, in `values`, any value. The bound
    holds where the weights reward full rows and punish open blanks, enclosed ones no less; with others, and with a
    `beam`, the search does without.

    Args:
        depth: levels below the current piece, so own moves − 1: 2 is the current piece, the next, and one beyond.
        heuristic: ``open-enclosed``, or a mapping of that name and weights.
        distribution: ``counted``, as said; ``uniform`` or ``bag`` as in tetris/expectimax.
        beam, cutoff, order, threads, time_limit: as in tetris/expectimax.
        table: keep values of nodes met again; it changes no value.
        lost: the value of a node whose piece cannot be placed, None for −inf, as in tetris/expectimax.
        rules: see `TetrisPlayer`; the game is Quintris (five-cell pieces) unless the environment says otherwise.

    Source: the expectimax document, of a game of five-cell pieces on 15×25.

    Example:
        >>> from mergefall_baselines import make
        >>> from mergefall.tetris import from_text
        >>> player = make("quintris/expectimax", depth=1)
        >>> board = from_text("....../....../....../....../....../#####.")
        >>> int(player.act({"board": board, "piece": 1, "next": [0]}))  # I5 upright where a row lacks one cell
        11
    """

    remembers = True
    clears = False
    defaults = {"pieces": "five", "randomizer": "hidden"}  # noqa: RUF012

    def __init__(
        self,
        depth: int = 2,
        heuristic: Any = "open-enclosed",
        distribution: str = "counted",
        beam: int | None = None,
        cutoff: float | None = None,
        table: bool = True,
        lost: float | None = None,
        order: Any = None,
        threads: int = 1,
        time_limit: float | None = None,
        **rules: Any,
    ) -> None:
        moves = integer("depth", depth, 0, MOST_MOVES - 1) + 1
        super().__init__(
            heuristic,
            moves,
            distribution,
            beam,
            cutoff,
            table,
            lost,
            order=order,
            time_limit=time_limit,
            threads=threads,
            **rules,
        )
        weights = self.heuristic
        if not isinstance(weights, OpenEnclosed):
            raise ValueError(f"heuristic={heuristic!r}; expected 'open-enclosed', with other weights perhaps")
        if beam is None and weights.full_rows >= 0 >= weights.open >= weights.enclosed:
            self.bound = bound_kernel()

    def _make_decider(self, rules: Rules, exact: bool) -> tuple[Any, Any]:
        return super()._make_decider(replace(rules, placements="drop", overflow="strict"), exact)
