"""The rules of 2048 as functions of one board: checked, without side effects, for boards from 2×2 to 6×6.

A board is an integer array or nested lists of ranks (log2 of the tile, 0 for empty), or its text form.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mergefall.game2048 import board as core
from mergefall.game2048 import reference
from mergefall.game2048.settings import action_index, board_array


def move(ranks: Any, action: int) -> tuple[NDArray[np.uint8], int, bool]:
    """Slide a board: (ranks uint8[rows, cols] before the new tile, score of the merges, whether it was legal).

    An illegal action returns the board as it was and 0. A ValueError names a bad board or action.

    >>> move([[1, 1], [0, 2]], 3)
    (array([[2, 0],
           [2, 0]], dtype=uint8), 4, True)
    """
    board = board_array(ranks)
    score = core.move_cells(board.reshape(-1), *board.shape, action_index(action))
    return board, max(score, 0), score >= 0


def legal_actions(ranks: Any) -> NDArray[np.bool_]:
    """Which of the four actions change the board, bool[4]; none of them when the game is over.

    >>> legal_actions("2 4/4 .").tolist()
    [False, True, True, False]
    """
    board = board_array(ranks)
    mask = core.legal_mask(board.reshape(-1), *board.shape)
    return (mask >> np.arange(4) & 1).astype(np.bool_)


def spawn(ranks: Any, rng: np.random.Generator) -> NDArray[np.uint8]:
    """The board with a new tile: a 2 (0.9) or a 4 on an empty cell drawn uniformly by `rng`.

    A ValueError says so if no cell is empty. (Environments draw from a stream of their own, fixed by their seed.)

    >>> int(spawn("2 4/. 2", np.random.default_rng(0))[1, 0])
    1
    """
    board = board_array(ranks)
    empty = np.flatnonzero(board == 0)
    if not len(empty):
        raise ValueError(f"board {to_text(board)!r} is full; expected an empty cell for the new tile")
    board.flat[rng.choice(empty)] = 1 if rng.random() < 0.9 else 2
    return board


def outcomes(ranks: Any) -> tuple[NDArray[np.uint8], NDArray[np.float64]]:
    """All boards that a new tile can lead to, uint8[n, rows, cols], and their probabilities float64[n].

    Cells in row-major order, the 2 before the 4; none from a full board.

    >>> boards, probabilities = outcomes("2 4/. 2")
    >>> boards.tolist(), probabilities.tolist()
    ([[[1, 2], [1, 1]], [[1, 2], [2, 1]]], [0.9, 0.1])
    """
    board = board_array(ranks)
    empty = np.flatnonzero(board == 0)
    boards = np.tile(board.ravel(), (2 * len(empty), 1))
    probabilities = np.empty(2 * len(empty))
    for i, (rank, probability) in enumerate(reference.TILE_PROBABILITIES):
        boards[np.arange(i, len(boards), 2), empty] = rank
        probabilities[i::2] = probability / max(len(empty), 1)
    return boards.reshape(-1, *board.shape), probabilities


def to_text(ranks: Any) -> str:
    """A board's text form: tiles by value, `.` for empty, `/` between rows.

    >>> to_text([[1, 0], [0, 3]])
    '2 ./. 8'
    """
    return reference.to_text(tuple(map(tuple, board_array(ranks).tolist())))


def from_text(text: str) -> NDArray[np.uint8]:
    """The ranks uint8[rows, cols] of a text form; a ValueError for anything that is not one.

    >>> from_text("2 ./. 8")
    array([[1, 0],
           [0, 3]], dtype=uint8)
    """
    return board_array(text)
