"""The tree searches of Tetris as players: `search_kernels.py` defines their values."""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from mergefall.checks import choice, integer, number
from mergefall.kernels import kernel
from mergefall.tetris.field import height_of
from mergefall.tetris.heuristics import MEMO, OpenEnclosed
from mergefall.tetris.heuristics import heuristic as make_heuristic
from mergefall.tetris.rules import Rules
from mergefall.typing import Kernel
from mergefall.words import popcount

from mergefall_baselines.kernel_player import KernelPlayer
from mergefall_baselines.tetris.player import DISTRIBUTIONS, FORM, IDS, drawn_by
from mergefall_baselines.tetris.search_kernels import search_kernel

U = np.uint64
MOST_MOVES = 16  # own moves that a search looks ahead at most
TUNED = {"name": "two-tetrad", "weights": "tuned"}
LARGEST_PIECE = 5  # cells
FULL_ROWS, OPEN = 0, 1  # weights of `open-enclosed`


class Expectimax(KernelPlayer):
    """Expectimax: the best placement, with unknown pieces averaged over.

    The value of an action, for a search of `depth` own moves: max over placements while the next piece is known (the
    current and the previewed ones), then mean over pieces of max over placements. Every placement on the way adds the
    heuristic's terms of the move. The last one adds its last terms and those of the board.

    A fatal placement is worth −inf. Ties go to the lowest action. If all actions are worth −inf, the player takes the
    first legal one.

    Args:
        heuristic: a name, or a mapping of a name and weights. Default: ``bcts``.
        depth: int from 1 to 16, own moves, the current piece's included. Default: 3.
        distribution: assumed for the unknown pieces. Default: None, that of the environment's randomizer.

            - ``uniform``: all pieces are equally likely.
            - ``bag``: the pieces left in a bag of seven, given the pieces seen, are equally likely.
            - ``counted``: each piece's frequency in this episode so far; a piece not seen yet has probability 0.
        beam: int ≥ 1. Each node before the last own move, the root included, searches only the `beam` placements with
            the highest values as leaves; the others count as −inf. This changes moves, the more the smaller the beam.
            Default: None, all.
        lost: finite float, the value of a node whose piece cannot be placed without ending the game; choose it below
            the values of boards. Default: None, −inf. Then a small chance of the end is as bad as a certain end, so
            near the top all actions may tie and the player takes the first legal one.
        rules: the environment's arguments `cols`, `rows`, `pieces`, `randomizer`, `preview`, `placements`, `hold`,
            `overflow`. Default: those of the environment, or what the observation shows.

    Example:
        >>> from mergefall_baselines import make
        >>> from mergefall.tetris import from_text
        >>> player = make("tetris/expectimax", depth=2)
        >>> int(player.act({"board": from_text("..../..../..../#..#"), "piece": 1}))  # O
        1
    """

    form = FORM
    rewards = False
    clears = True  # whether full rows are cleared within the search; without, pieces drop and none may rest too high
    only_known = False  # whether the search ends with the known pieces
    bound: Callable[[], Kernel] | None = None  # makes the bound of its kernel

    def __init__(
        self,
        heuristic: Any = "bcts",
        depth: int = 3,
        distribution: str | None = None,
        beam: int | None = None,
        lost: float | None = None,
        **rules: Any,
    ) -> None:
        super().__init__(**rules)
        self.heuristic = make_heuristic(heuristic)
        self.depth = integer("depth", depth, 1, MOST_MOVES)
        self.sees_next = self.depth > 1
        self.distribution = None if distribution is None else choice("distribution", distribution, DISTRIBUTIONS)
        self.beam = 0 if beam is None else integer("beam", beam, 1)
        self.lost = -math.inf if lost is None else number("lost", lost)

    @property
    def remembers(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether the chances of the unknown pieces depend on the pieces seen; in Quintris they always count."""
        return not self.only_known and (not self.clears or self.counts_pieces)

    def _make_decider(self, way: Rules, exact: bool) -> tuple[Kernel, Any]:
        if not self.clears:
            if way.reachable:
                raise ValueError(f"placements is 'reachable'; {self.name} drops and slides")
            way = replace(way, placements="drop", overflow="strict")
        bound = self.bound() if self.bound else None
        kernel = search_kernel(self.heuristic.recipe, way.slides, way.reachable, self.clears, bound)
        self.heuristic.check_size(way.rows, way.cols)
        known, cols, weights = 1 + way.preview, way.cols, self.heuristic.weight_vector()
        depth = min(self.depth, known) if self.only_known else self.depth
        drawn, distribution = drawn_by(self.distribution, way)
        levels = depth + 1
        context = self._context(
            depth=depth,  # own moves of the search
            cols=cols,
            rows=way.rows,
            first=way.piece_set.first,  # table row of piece id 0
            drawn=drawn,  # ids that the game draws, as bits
            known=known,  # pieces known at the root
            distribution=distribution,  # of the unknown pieces, an index into `DISTRIBUTIONS`
            listed=way.n_actions,  # placements of a piece, at most
            clear_first=way.overflow == "clear_first",
            weight_count=weights.size,
            beam=self.beam,  # placements that an inner node looks into, 0 for all
            lost=self.lost,  # value of a node whose piece cannot be placed
            weights=weights,  # the heuristic's
            columns=np.zeros((levels, cols), np.uint64),  # the boards
            memos=np.zeros((levels, MEMO), np.uint64),  # what the leaves on one board share
            placements=np.zeros((levels, way.n_actions), np.int64),
            keys=np.zeros((levels, way.n_actions)),  # by which placements are ordered
            scratch=np.zeros(cols, np.uint64),
            chances=np.zeros(IDS),  # see `player.py`
        )
        return kernel, (context, exact)


def two_tetrad(heuristic: Any = TUNED, depth: int = 2, **rules: Any) -> Expectimax:
    """Two-tetrad: the best placement of the current piece, if the next piece is then placed best.

    The value of an action is the maximum, over the placements of the next piece, of the heuristic's terms of both
    moves, its terms of the last placement, and its terms of the board after both. The search looks only at known
    pieces: it has no chance nodes, and it prunes nothing.

    A fatal placement is worth −inf, and so is one after which every placement of the next piece is fatal. Ties are
    those of `tetris/expectimax`.

    Args:
        heuristic: a name, or a mapping of a name and weights (see `mergefall.tetris.HEURISTICS`). Default:
            ``two-tetrad`` with weights tuned by the document's method, hill climbing.
        depth: int, own moves: 2 (deep) or 1 (shallow, the current piece alone). Default: 2. Without a preview both are
            shallow.
        rules: the environment's arguments `cols`, `rows`, `pieces`, `randomizer`, `preview`, `placements`, `hold`,
            `overflow`. Default: those of the environment, or what the observation shows. The document's search slides:
            ``placements="slide"``.

    Source: "The Evaluation Function", the document of a two-tetrad player (Cornell University, BOOM 1999).

    Example:
        >>> from mergefall_baselines import make
        >>> from mergefall.tetris import from_text
        >>> player = make("tetris/two-tetrad", heuristic="bcts")
        >>> board = from_text("...../...../...../##..#")
        >>> int(player.act({"board": board, "piece": 1, "queue": [1]}))  # O
        2
    """
    player = Expectimax(heuristic, integer("depth", depth, 1, 2), **rules)
    player.only_known = True
    return player


# -- Quintris, and the bound that makes it fast ------------------------------------------------------------------------


@cache
def bound_kernel() -> Kernel:
    """A kernel (columns, moves, rows, weights) -> float64, the `bound` of a search by `open-enclosed`.

    It bounds the value of the board after `moves` more placements, if nothing is cleared:

        value now + full_rows · (rows that can be completed) − open · (cells of the pieces)

    A piece dropped from above fills no enclosed blank and may enclose others, so each of its cells saves at most the
    cost of one open blank. This holds for weights that reward full rows, punish open blanks, and punish enclosed ones
    no less.
    """
    board = OpenEnclosed.kernels(clears=False).board

    @kernel
    def bound(columns, moves, rows, weights):
        # The most rows that the pieces' cells, dropped from above, can complete: a row with an enclosed blank cannot be
        # completed; of the others those with the fewest blanks come first.
        enclosed, used, left = U(0), U(0), LARGEST_PIECE * moves
        p0, p1, p2, p3, p4 = U(0), U(0), U(0), U(0), U(0)  # bit r of p0 … p4: the blanks in row r, in binary
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
        if columns.size > left:
            candidates &= used
        worth = board(columns, rows, weights) - weights[OPEN] * left
        lines = 0
        for blanks in range(1, min(left, columns.size) + 1):
            d0, d1, d2, d3, d4 = blanks & 1, blanks >> 1 & 1, blanks >> 2 & 1, blanks >> 3 & 1, blanks >> 4
            alike = (p0 if d0 else ~p0) & (p1 if d1 else ~p1) & (p2 if d2 else ~p2) & (p3 if d3 else ~p3)
            alike &= p4 if d4 else ~p4
            found = min(popcount(alike & candidates), left // blanks)
            lines += found
            left -= found * blanks
        return worth + weights[FULL_ROWS] * lines

    return bound


def quintris(
    depth: int = 2,
    heuristic: Any = "open-enclosed",
    distribution: str = "counted",
    beam: int | None = None,
    lost: float | None = None,
    **rules: Any,
) -> Expectimax:
    """Expectimax of the Quintris document: pieces to come are as frequent as in this episode so far.

    The search is that of `tetris/expectimax`, and a leaf is worth `open-enclosed` of its board. But

    - A piece's probability is its share of the pieces that came into view in this episode, the known ones included. A
      piece not seen yet has probability 0.
    - The search clears nothing: full rows stay on the board, and the full rows of the last board count.
    - Pieces drop straight down. If the environment allows slides, they are worth −inf.
    - A placement that rests above the field is worth −inf, and a node without any other counts `lost`.

    The search skips placements that a bound proves useless. This changes neither the chosen action nor any of `values`.
    The bound needs weights that reward full rows, punish open blanks, and punish enclosed ones no less. With other
    weights, and with a `beam`, nothing is skipped.

    Args:
        depth: int from 0 to 15, levels below the current piece, as the document counts, so own moves − 1. Default: 2,
            the current piece, the next, and one unknown piece.
        heuristic: ``open-enclosed``, or a mapping of that name and weights.
        distribution: ``counted``, ``uniform`` or ``bag``, as in tetris/expectimax. Default: ``counted``.
        beam, lost: as in tetris/expectimax.
        rules: the environment's arguments `cols`, `rows`, `pieces`, `randomizer`, `preview`, `placements`, `hold`,
            `overflow`. Default: the five-cell pieces from a hidden distribution, else as for `tetris/expectimax`.

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
    moves = 1 + integer("depth", depth, 0, MOST_MOVES - 1)
    player = Expectimax(heuristic, moves, distribution, beam, lost, **rules)
    weights = player.heuristic
    if not isinstance(weights, OpenEnclosed):
        raise ValueError(f"heuristic={heuristic!r}; expected 'open-enclosed', or a mapping of that name and weights")
    player.clears, player.defaults = False, {"pieces": "five", "randomizer": "hidden"}
    if beam is None and weights.full_rows >= 0 >= weights.open >= weights.enclosed:
        player.bound = bound_kernel
    return player
