"""Any function of a board as a heuristic of 2048."""

from dataclasses import dataclass

from mergefall.functions import OfFunction, value_at
from mergefall.game2048.heuristics.base import Heuristic
from mergefall.kernels import kernel
from mergefall.weighted import Terms


@kernel
def terms_of_cells(cells, rows, cols, to_move, weights):
    return (value_at(weights[1:], cells, rows, cols),)


@dataclass(frozen=True)
class FunctionHeuristic(OfFunction, Heuristic):
    """The value that a function gives a board of ranks, int64[rows, cols]; `heuristic` makes one of a function.

    A search calls a Python function for every leaf, and a Numba function at compiled speed. The only term is `value`. A
    position without a legal move is worth −10⁹ to a search, and 0 if the search counts rewards: then the function is
    taken to predict the rest of the score.

    Example:
        >>> from mergefall.game2048 import heuristic
        >>> heuristic(lambda board: (board == 0).sum())([[1, 0], [0, 0]])
        3.0
    """

    dead = -1e9
    dead_scored = 0.0
    of_board = Terms(("value",), terms_of_cells)
