"""Boards up to 4×4 in one 64-bit word: the engine of everything that must be fast.

Cell (r, c) is the four bits at 16·r + 4·c; rows and columns beyond a smaller board stay zero:

    bits  0- 3  4- 7  8-11 12-15        row 0
         16-19 20-23 24-27 28-31        row 1 …

Ranks go up to 15. A board of 13 cells or more can outgrow that (two 32768 make 65536), so who searches a packed board
first asks `fits`. Lines are slid by a table with one entry for each of the 65536 lines, built from `board.slide`:

    bits 0-15 towards the first cell, 16-31 towards the last, 32-61 score, 62 / 63 whether the line changes so
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from mergefall.game2048.board import slide
from mergefall.kernels import kernel

U = np.uint64
LINE = U(0xFFFF)
GAIN = U(0x3FFFFFFF)
LOW_BITS = U(0x1111111111111111)


@kernel
def fill_line_table(table, cells):
    """Fill a table of line entries uint64[65536] for lines as long as the scratch `cells` uint8[length] (2 to 4)."""
    length = cells.size
    for line in range(1 << (4 * length)):
        entry = U(0)
        for back in range(2):
            for i in range(length):
                cells[i] = line >> (4 * i) & 15
            start, stride = back * (length - 1), 1 - 2 * back
            score = slide(cells, start, stride, length)
            for i in range(length):
                entry |= U(min(cells[i], 15)) << U(16 * back + 4 * i)  # rank 16 never arises where `fits` holds
            if score >= 0:
                entry |= U(1) << U(62 + back)
                if back == 0:
                    entry |= U(score) << U(32)
        table[line] = entry


@cache
def line_table(length: int) -> NDArray[np.uint64]:
    """The line table for boards whose lines have `length` cells, uint64[65536], read-only."""
    table = np.zeros(1 << 16, dtype=np.uint64)
    fill_line_table(table, np.zeros(length, dtype=np.uint8))
    table.flags.writeable = False
    return table


@kernel
def pack(cells, rows, cols):
    """Flat cells uint8[rows·cols], ranks up to 15, as a packed board."""
    board = U(0)
    for r in range(rows):
        for c in range(cols):
            board |= U(cells[r * cols + c]) << U(16 * r + 4 * c)
    return board


@kernel
def unpack(board, cells, rows, cols):
    """Write a packed board into flat cells."""
    for r in range(rows):
        for c in range(cols):
            cells[r * cols + c] = board >> U(16 * r + 4 * c) & U(15)


@kernel
def fits(cells, rows, cols, moves):
    """Whether no line of play of `moves` own moves from these cells can make a rank above 15.

    A tile of rank 16 takes tiles that sum to 65536, and each move adds at most 4 to the sum.
    """
    if rows > 4 or cols > 4:
        return False
    total = 0
    for i in range(cells.size):
        if cells[i] > 15:
            return False
        if cells[i]:
            total += 1 << cells[i]
    return total + 4 * moves < 1 << 16


@kernel
def transpose(board):
    """Exchange rows and columns.

    0 1 2 3      0 4 8 c
    4 5 6 7  →   1 5 9 d
    8 9 a b      2 6 a e
    c d e f      3 7 b f
    """
    a = (
        (board & U(0xF0F00F0FF0F00F0F))
        | (board & U(0x0000F0F00000F0F0)) << U(12)
        | (board & U(0x0F0F00000F0F0000)) >> U(12)
    )
    return (a & U(0xFF00FF0000FF00FF)) | (a & U(0x00FF00FF00000000)) >> U(24) | (a & U(0x00000000FF00FF00)) << U(24)


@kernel
def spread(line):
    """Lay a line out as a column: its four cells at bits 0, 16, 32 and 48."""
    pairs = (line & U(0xFF)) | (line & U(0xFF00)) << U(24)
    return (pairs & U(0x0000000F0000000F)) | (pairs & U(0x000000F0000000F0)) << U(12)


@kernel
def empties(board):
    """One bit (the lowest of its four) for each zero cell of the whole 4×4 word."""
    filled = board | board >> U(1)
    filled |= filled >> U(2)
    return ~filled & LOW_BITS


@kernel
def area(rows, cols):
    """One bit (the lowest of its four) for each cell of a rows×cols board."""
    bits = U(0)
    for r in range(rows):
        for c in range(cols):
            bits |= U(1) << U(16 * r + 4 * c)
    return bits


@kernel
def slide_rows(board, lines):
    """All rows slid both ways: (towards column 0, towards the last column, score).

    A result equal to `board` means that the action is illegal. For columns, hand in the transposed board.
    """
    e0 = lines[board & LINE]
    e1 = lines[board >> U(16) & LINE]
    e2 = lines[board >> U(32) & LINE]
    e3 = lines[board >> U(48)]
    left = (e0 & LINE) | (e1 & LINE) << U(16) | (e2 & LINE) << U(32) | (e3 & LINE) << U(48)
    right = (e0 >> U(16) & LINE) | (e1 & U(0xFFFF0000)) | (e2 & U(0xFFFF0000)) << U(16) | (e3 & U(0xFFFF0000)) << U(32)
    gain = (e0 >> U(32) & GAIN) + (e1 >> U(32) & GAIN) + (e2 >> U(32) & GAIN) + (e3 >> U(32) & GAIN)
    return left, right, gain


@kernel
def moves(board, row_lines, column_lines):
    """The four afterstates in the order of the actions, then the scores of a vertical and of a horizontal move.

    An afterstate equal to `board` means that its action is illegal.
    """
    left, right, across = slide_rows(board, row_lines)
    up, down, along = slide_rows(transpose(board), column_lines)
    return transpose(up), right, transpose(down), left, along, across
