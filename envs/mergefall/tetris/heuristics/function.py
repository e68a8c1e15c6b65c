"""Any function of a board as a heuristic of Tetris."""

from dataclasses import dataclass

import numpy as np

from mergefall.functions import OfFunction, value_at
from mergefall.kernels import kernel
from mergefall.tetris.field import write_board
from mergefall.tetris.heuristics.base import Heuristic, lines_cleared
from mergefall.weighted import Terms

ADDRESS = 2  # in the weights, behind those of the terms


@kernel
def board_terms(columns, rows, weights):
    cells = np.empty(rows * columns.size, np.uint8)
    write_board(columns, rows, cells)
    return (value_at(weights[ADDRESS:], cells, rows, columns.size),)


@dataclass(frozen=True)
class FunctionHeuristic(OfFunction, Heuristic):
    """The value that a function gives a board, int64[rows, cols] of 0 and 1; `heuristic` makes one of a function.

    A search calls a Python function for every leaf, and a Numba function at compiled speed. Terms:

    - `value`: what the function returns for the board after clearing
    - `lines`: the rows that the placement clears; its weight is the option `lines`, default: 0

    Example:
        >>> from mergefall.tetris import heuristic, place
        >>> low = heuristic(lambda board: -board.any(axis=1).sum())
        >>> low(place("..../..../..../##.#", "T", rotation=2, column=1))
        -1.0
        >>> low.to_json()
        {'name': 'mergefall.tetris.heuristics.function:<lambda>', 'lines': 0.0}
    """

    term_names = ("value", "lines")
    of_placement = Terms(("lines",), lines_cleared)
    of_board = Terms(("value",), board_terms)

    lines: float = 0.0
