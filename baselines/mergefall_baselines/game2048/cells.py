"""The searches of 2048 on flat cells: for boards that do not fit into a word, without tables and without pruning."""

from __future__ import annotations

from functools import cache

import numpy as np
from mergefall.game2048.board import board_in, legal_mask, move_cells
from mergefall.interrupt import stopped
from mergefall.kernels import borrow, kernel
from mergefall.typing import Kernel

from mergefall_baselines.game2048.player import pick
from mergefall_baselines.game2048.search import INNER, SearchKind, own_moves


def _afterstate_kernel(shape: SearchKind, opponent: str) -> Kernel:
    chance, mixed, scored, value_of = opponent == "chance", opponent == "mixed", shape.scored, shape.value_kernel
    real = shape.real if chance else np.float64
    dead, lowest, two, four = real(shape.dead), real(shape.lowest if chance else -np.inf), real(0.9), real(0.1)

    @kernel
    def afterstate(left, weight, c):
        """Value of the afterstate in row `left` of the scratch, which is the number of own moves left.

        `weight` is its probability, or 2^d in a mixed search.
        """
        size, weights = c.rows * c.cols, borrow(c.weights, np.float64, c.weight_count)
        cells = borrow(c.cells + np.uint64(left * size), np.uint8, size)
        leaf = (left == 0 and c.state_leaves == 0) or (chance and left > 0 and weight < c.cutoff)
        leaf |= c.stop != 0 or stopped()
        own = real(value_of(cells, c.rows, c.cols, False, weights) if leaf or mixed else 0.0)
        own = own * weight if mixed else own
        if leaf:
            return own
        empty = 0
        for i in range(size):
            empty += cells[i] == 0
        total, worst = real(0.0), real(np.inf)
        for i in range(size):
            if cells[i]:
                continue
            pair = real(0.0)
            for rank in range(1, 3):
                cells[i] = rank
                share = two if rank == 1 else four
                onward = real(4.0) * weight if mixed else weight / real(empty) * share
                itself = real(value_of(cells, c.rows, c.cols, True, weights) if left == 0 or mixed else 0.0)
                best, legal = lowest, left == 0 and legal_mask(cells, c.rows, c.cols) != 0
                if legal:
                    best = real(0.0) if mixed else itself
                if left > 0:
                    after = borrow(c.cells + np.uint64((left - 1) * size), np.uint8, size)
                    for k in range(0, 8, 2):
                        after[:] = cells
                        score = move_cells(after, c.rows, c.cols, INNER >> k & 3)
                        if score >= 0:
                            legal = True
                            later = afterstate(left - 1, onward, c)
                            best = max(best, real(later + score) if scored else later)
                if not legal:
                    best = dead
                if mixed:
                    twice = real(2.0)
                    best = best + itself * twice * weight if legal else dead * twice * weight
                else:
                    worst = min(worst, best)
                total += best * share
                pair += best * share
            cells[i] = 0
            if mixed:
                worst = min(worst, pair)
        return total / real(empty) if chance else worst + own

    return afterstate


@cache
def cells_kernel(shape: SearchKind, opponent: str) -> Kernel:
    """The decision kernel against an opponent.

    "chance" is averaged over, "adversary" picks the worst cell and tile, "mixed" the worst cell and averages over its
    tiles. See the players in `expectimax.py` and `minimax.py` for what they value.
    """
    scored, afterstate = shape.scored, _afterstate_kernel(shape, opponent)
    start = (shape.real if opponent == "chance" else np.float64)(2.0 if opponent == "mixed" else 1.0)

    @kernel
    def decide_by_cells(state, memory, values, settings):
        contexts, order = settings
        c, cells = contexts[0], board_in(state)[0]
        left = own_moves(cells, c.depth) - 1
        after = borrow(c.cells + np.uint64(left * cells.size), np.uint8, cells.size)
        for action in range(4):
            after[:] = cells
            score = move_cells(after, c.rows, c.cols, action)
            values[action] = -np.inf
            if score >= 0:
                value = afterstate(left, start, c)
                values[action] = np.float64(value) + score if scored else value
        return pick(values, order)

    return decide_by_cells
