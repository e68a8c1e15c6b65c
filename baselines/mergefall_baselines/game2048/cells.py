"""Boards that do not fit into a word, as the searches of 2048 hold them: rows of a scratch, named by their numbers.

Each level of a search has five rows: a state with the player to move, and behind it the afterstates of its four moves.
"""

from __future__ import annotations

import numpy as np
from mergefall.game2048.board import move_cells
from mergefall.kernels import borrow, kernel
from mergefall.words import trailing_zeros

U = np.uint64
ROWS = 5  # of a level


@kernel
def cells_at(row, c):
    """The flat cells of a board, uint8[rows·cols]."""
    size = c.rows * c.cols
    return borrow(c.cells + row * U(size), np.uint8, size)


@kernel
def free_cells(board, c):
    """The empty cells, a bit for each."""
    cells, free = cells_at(board, c), U(0)
    for i in range(cells.size):
        free |= U(cells[i] == 0) << U(i)
    return free


@kernel
def put_in_cells(board, bit, rank, c):
    """The state after a new tile on an afterstate, in the next level."""
    state = (board // U(ROWS) + U(1)) * U(ROWS)
    cells = cells_at(state, c)
    cells[:] = cells_at(board, c)
    cells[trailing_zeros(bit)] = rank
    return state


@kernel
def _moved(state, action, c):
    row = state + U(1 + action)
    cells = cells_at(row, c)
    cells[:] = cells_at(state, c)
    score = move_cells(cells, c.rows, c.cols, action)
    return row if score >= 0 else state, score


@kernel
def slide_cells(state, c):
    """What `search.slide` returns of a board in a word."""
    (up, along), (right, across) = _moved(state, 0, c), _moved(state, 1, c)
    (down, back), (left, off) = _moved(state, 2, c), _moved(state, 3, c)
    return up, right, down, left, max(along, back), max(across, off)
