"""The one-piece controllers of the literature: some features of `linear.py` with the published weights."""

from dataclasses import dataclass

from mergefall.kernels import kernel
from mergefall.tetris.heuristics.linear import Linear
from mergefall.tetris.pieces import WIDTHS


@kernel
def priority(piece, rotation, column, cols):
    """Dellacherie's tie-break, an integer; the higher one is played.

    It is ``100 * abs(column - spawn) + 10 * (column < spawn) - rotation`` with ``spawn = (cols - width) // 2``, where
    width is that of the turned piece: far from the spawn column first, then on its left, then with fewer quarter turns.
    """
    spawn = (cols - WIDTHS[piece, rotation]) // 2
    return 100 * abs(column - spawn) + (10 if column < spawn else 0) - rotation


@dataclass(frozen=True)
class Dellacherie(Linear):
    """Pierre Dellacherie's one-piece controller: six features of `Linear`, with weights set by hand.

    The player `tetris/dellacherie` breaks ties by `priority`.

    Source: C. Fahey, Tetris (2003).
    """

    name = "dellacherie"

    landing_height: float = -1.0
    eroded_cells: float = 1.0
    row_transitions: float = -1.0
    column_transitions: float = -1.0
    holes: float = -4.0
    wells: float = -1.0


@dataclass(frozen=True)
class Bcts(Linear):
    """Building Controllers for Tetris: Dellacherie's features and two more, with weights from noisy cross-entropy.

    Source: C. Thiery & B. Scherrer (2009).
    """

    name = "bcts"

    landing_height: float = -12.629
    eroded_cells: float = 6.601974
    row_transitions: float = -9.215815
    column_transitions: float = -19.77356
    holes: float = -13.08335
    wells: float = -10.48747
    hole_depth: float = -1.611863
    rows_with_holes: float = -24.04087


@dataclass(frozen=True)
class Dt10(Linear):
    """The controller that classification-based modified policy iteration found on 10×10.

    The positive weight of `holes` is as published.

    Source: V. Gabillon, M. Ghavamzadeh & B. Scherrer, Approximate dynamic programming finally performs well in the game
    of Tetris (2013).
    """

    name = "dt-10"

    landing_height: float = -2.18
    eroded_cells: float = 2.42
    row_transitions: float = -2.17
    column_transitions: float = -3.31
    holes: float = 0.95
    wells: float = -2.22
    hole_depth: float = -0.81
    rows_with_holes: float = -9.65
    diversity: float = 1.27


@dataclass(frozen=True)
class Dt20(Linear):
    """The controller that classification-based modified policy iteration found on 10×20.

    The positive weight of `holes` is as published. Source: see `Dt10`.
    """

    name = "dt-20"

    landing_height: float = -2.68
    eroded_cells: float = 1.38
    row_transitions: float = -2.41
    column_transitions: float = -6.32
    holes: float = 2.03
    wells: float = -2.71
    hole_depth: float = -0.43
    rows_with_holes: float = -9.48
    diversity: float = 0.89


@dataclass(frozen=True)
class ElTetris(Linear):
    """Dellacherie's features with lines in place of eroded cells, weights by particle swarm optimization.

    Source: I. El-Ashi, El-Tetris (2011).
    """

    name = "el-tetris"

    landing_height: float = -4.500158825082766
    lines: float = 3.4181268101392694
    row_transitions: float = -3.2178882868487753
    column_transitions: float = -9.348695305445199
    holes: float = -7.899265427351652
    wells: float = -3.3855972247263626
