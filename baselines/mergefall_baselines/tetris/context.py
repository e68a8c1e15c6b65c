"""The memory of one Tetris search, and the nodes that its kernels hand on.

Kernels receive the address of one `CONTEXT` record, called `ctx`, and read it as `c`. The record holds the rules, the
search's numbers and the addresses of its arrays, which the player keeps alive. Level 0 of the search is the root,
level k what follows k placements. Each level has its own board, memo and lists.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from mergefall.kernels import borrow, kernel
from mergefall.tetris.heuristics import MEMO
from mergefall.tetris.placements import ROTATIONS, SLIDES

from mergefall_baselines.tetris.memory import IDS, bag_after, chance_of

U = np.uint64
LISTED = SLIDES * ROTATIONS  # placements of a piece, at most, for each column of the field

CONTEXT = np.dtype(
    [
        ("depth", np.int64),  # own moves of the search
        ("cols", np.int64),
        ("rows", np.int64),
        ("first", np.int64),  # table row of piece id 0
        ("drawn", np.int64),  # ids that the game draws, as bits
        ("known", np.int64),  # pieces known at the root
        ("distribution", np.int64),  # of the unknown pieces, an index into `DISTRIBUTIONS`
        ("clear_first", np.int64),
        ("weights", np.uint64),  # float64[weight_count], the heuristic's
        ("weight_count", np.int64),
        ("columns", np.uint64),  # uint64[levels, cols], the boards
        ("memos", np.uint64),  # uint64[levels, MEMO], what the leaves on one board share
        ("placements", np.uint64),  # int64[levels, LISTED·cols]
        ("keys", np.uint64),  # float64[levels, LISTED·cols], by which placements are ordered
        ("scratch", np.uint64),  # uint64[cols]
        ("chances", np.uint64),  # float64[7], see `memory.py`
        ("beam", np.int64),  # placements that an inner node looks into, 0 for all
        ("lost", np.float64),  # value of a node whose piece cannot be placed
        ("stop", np.int64),  # set from outside: give up
    ]
)


class Node(NamedTuple):
    """A position between two placements; its board is that of its level.

    Attributes:
        level: int64, placements since the root.
        queue: uint64, ids of the known pieces, 4 bits each, the next one lowest.
        known: int64, how many pieces the queue holds.
        left: int64, own moves still to come.
        bag: int64, see `memory.py`.
    """

    level: np.int64
    queue: np.uint64
    known: int
    left: int
    bag: int


@kernel
def read(ctx):
    """The context's record."""
    return borrow(ctx, CONTEXT, 1)[0]


@kernel
def board_at(level, c):
    """The board of a level, uint64[cols]."""
    return borrow(c.columns + U(8 * level * c.cols), np.uint64, c.cols)


@kernel
def memo_at(level, c):
    """The memo of a level's board, uint64[MEMO]."""
    return borrow(c.memos + U(8 * MEMO * level), np.uint64, MEMO)


@kernel
def lists_at(level, c):
    """(placements int64[n], keys float64[n]) of a level."""
    count = LISTED * c.cols
    offset = U(8 * count * level)
    return borrow(c.placements + offset, np.int64, count), borrow(c.keys + offset, np.float64, count)


@kernel
def weights_of(c):
    """The heuristic's weights."""
    return borrow(c.weights, np.float64, c.weight_count)


@kernel
def scratch_of(c):
    """A board to overwrite, uint64[cols]."""
    return borrow(c.scratch, np.uint64, c.cols)


@kernel
def share_of(id, node, c):
    """The probability that a piece id is the node's next: 1 or 0 while the queue determines it."""
    if node.known:
        return 1.0 if np.int64(node.queue & U(15)) == id else 0.0
    return chance_of(id, node.bag, borrow(c.chances, np.float64, IDS))


@kernel
def node_after(node, id, c):
    """The node that follows a placement of the piece `id`, which comes next."""
    bag = node.bag if node.known else bag_after(id, node.bag, c.drawn)
    return Node(node.level + 1, node.queue >> U(4), max(node.known - 1, 0), node.left - 1, bag)
