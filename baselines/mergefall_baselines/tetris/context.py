"""The memory of a Tetris search: one record, and the arrays that it knows by address and the player keeps alive.

Each level of the tree has a board and lists of placements of its own.
"""

from __future__ import annotations

import numpy as np
from mergefall.kernels import borrow, kernel
from mergefall.tetris.heuristics import MEMO

from mergefall_baselines.table import entry_type, find, holds, keep
from mergefall_baselines.tetris.memory import IDS, chance_of

U = np.uint64
ENTRY = entry_type(np.float64)

CONTEXT = np.dtype(
    [
        ("cols", np.int64),
        ("rows", np.int64),
        ("first", np.int64),  # table row of piece id 0
        ("drawn", np.int64),  # ids that appear, as bits
        ("clear_first", np.int64),
        ("weights", np.uint64),  # float64[weight_count], the heuristic's
        ("weight_count", np.int64),
        ("columns", np.uint64),  # uint64[levels, cols], the boards
        ("memos", np.uint64),  # uint64[levels, MEMO], what leaves on a board share
        ("placements", np.uint64),  # int64[levels, 12·cols]
        ("keys", np.uint64),  # float64[levels, 12·cols], what placements are ordered by
        ("scratch", np.uint64),  # uint64[cols]
        ("chances", np.uint64),  # float64[7], see `chances.py`
        ("entries", np.uint64),  # transposition table, see `mergefall_baselines.table`
        ("entry_count", np.int64),
        ("boards", np.uint64),  # uint64[entry_count, cols + 2], what each entry is of
        ("beam", np.int64),  # placements of a node that are looked into, 0 for all
        ("cutoff", np.float64),  # chance nodes below this probability are leaves
        ("lost", np.float64),  # worth of a node whose piece cannot be placed
        ("stop", np.int64),  # set from outside: give up
    ]
)


@kernel
def read(ctx):
    """The record that all nodes share."""
    return borrow(ctx, CONTEXT, 1)[0]


@kernel
def board_at(level, c):
    """The board of a level, uint64[cols]."""
    return borrow(c.columns + U(8 * level * c.cols), np.uint64, c.cols)


@kernel
def memo_at(level, c):
    """What the leaves on a level's board share."""
    return borrow(c.memos + U(8 * MEMO * level), np.uint64, MEMO)


@kernel
def lists_at(level, c):
    """A level's placements and what they are ordered by."""
    count = 12 * c.cols
    offset = U(8 * count * level)
    return borrow(c.placements + offset, np.int64, count), borrow(c.keys + offset, np.float64, count)


@kernel
def entry_of(columns, left, bag, probability, c):
    """(index, whether that entry is of this very node, its key) in the transposition table."""
    entries = borrow(c.entries, ENTRY, c.entry_count)
    told = U(bag) | U(left) << U(8)
    likely = U(probability * 2.0**53) if c.cutoff > 0.0 else U(0)
    key = told ^ likely
    for i in range(c.cols):
        key = (key ^ columns[i] ^ key >> U(29)) * U(0xBF58476D1CE4E5B9)
    index = find(entries, key)
    if not holds(entries, index, key):
        return index, False, key
    board = borrow(c.boards + U(8 * index * (c.cols + 2)), np.uint64, c.cols + 2)
    same = board[c.cols] == told and board[c.cols + 1] == likely
    for i in range(c.cols):
        same = same and board[i] == columns[i]
    return index, same, key


@kernel
def store(columns, left, bag, probability, value, c):
    """Keep a node's value in the transposition table."""
    index, _, key = entry_of(columns, left, bag, probability, c)
    keep(borrow(c.entries, ENTRY, c.entry_count), index, key, value, left)
    board = borrow(c.boards + U(8 * index * (c.cols + 2)), np.uint64, c.cols + 2)
    for i in range(c.cols):
        board[i] = columns[i]
    board[c.cols] = U(bag) | U(left) << U(8)
    board[c.cols + 1] = U(probability * 2.0**53) if c.cutoff > 0.0 else U(0)


@kernel
def share_of(id, queue, known, bag, c):
    """The probability that a piece id is the next: 1 or 0 while it is known."""
    if known:
        return 1.0 if np.int64(queue & U(15)) == id else 0.0
    return chance_of(id, bag, borrow(c.chances, np.float64, IDS))
