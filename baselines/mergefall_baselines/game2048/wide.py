"""Boards of any size as tuples of words: a row each, eight bits a cell. This form is for boards that outgrow `packed`.

Like packed boards they are immutable values, so a search is written once for both. Lines are slid cell by cell, without
tables.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from mergefall.game2048.board import move_cells
from mergefall.kernels import kernel
from numba.cpython.unsafe import tuple as unsafe_tuple

U = np.uint64
CELL = U(255)
tuple_setitem: Any = unsafe_tuple.tuple_setitem  # in a kernel: a copy with one element replaced


@kernel
def widen(board, cells, cols):
    """Flat cells as a wide board; `board` is any tuple of uint64, one for each row."""
    for r in range(len(board)):
        word = U(0)
        for c in range(cols):
            word |= U(cells[r * cols + c]) << U(8 * c)
        board = tuple_setitem(board, r, word)
    return board


@kernel
def unwiden(board, cells, cols):
    """Write a wide board into flat cells uint8[rows·cols]."""
    for r in range(len(board)):
        for c in range(cols):
            cells[r * cols + c] = board[r] >> U(8 * c) & CELL


@kernel
def moved(board, cells, cols, action):
    """(afterstate, score) of one action; `cells` is scratch. An illegal action returns `board` itself."""
    unwiden(board, cells, cols)
    gain = move_cells(cells, len(board), cols, action)
    return (widen(board, cells, cols), U(gain)) if gain >= 0 else (board, U(0))
