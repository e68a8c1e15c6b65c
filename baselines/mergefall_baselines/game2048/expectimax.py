"""Expectimax for 2048: best move against chance."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from mergefall.kernels import borrow, kernel

from mergefall_baselines.game2048.engines import Engine, engine, read
from mergefall_baselines.game2048.leaves import best_leaves
from mergefall_baselines.game2048.searches import TO_THE_END, Search2048, own_moves
from mergefall_baselines.game2048.table import entry_type, find, forget, holds, keep


@cache
def expectimax_kernels(kind: str, heuristic: Any) -> tuple[Any, Any]:
    """The search for one way of holding boards and one heuristic class.

    ``root_move(cells, action, settings) -> value`` searches one move, ``decide`` all four, as `base.py` says.
    Settings are (ctx, empty board, depth rule, whether each root move has the table to itself, order).
    """
    real = heuristic.real if heuristic else np.float64
    dead = real(heuristic.dead if heuristic else 0.0)
    floored = heuristic is not None and heuristic.floored
    line_values = kind == "packed" and heuristic is not None and heuristic.line_additive
    return _compile(engine(kind, heuristic), real, dead, dead if floored else real(-np.inf), line_values)


def _compile(boards: Engine, real: Any, dead: Any, lowest: Any, line_values: bool) -> tuple[Any, Any]:
    _, from_cells, key_of, moves, open_cells, with_tile, cell_of, evaluate = boards
    two, four = real(0.9), real(0.1)
    entry = entry_type(real)
    U = np.uint64

    @kernel(variant=boards.name)
    def best_leaf(state, ctx):
        """Value of a player's node whose moves lead to leaves."""
        c = read(ctx)
        best, legal = lowest, False
        after0, after1, after2, after3, along, across = moves(state, ctx)
        for i in range(4):
            if after0 != state:
                legal = True
                value = real(evaluate(after0, False, ctx))
                if c.rewards != 0.0:
                    value = real(value + c.rewards * (along if i < 2 else across))
                best = max(best, value)
            after0, after1, after2 = after1, after2, after3
        return best if legal else dead

    @kernel(variant=boards.name)
    def last_chance(board, ctx):
        """Value of an afterstate all of whose successors' moves lead to leaves: `best_leaf`, averaged."""
        c = read(ctx)
        cells = open_cells(board, ctx)
        total, empty = real(0.0), 0
        if line_values:
            if c.rewards == 0.0:
                leaves = borrow(c.leaves, real, 32)
                best_leaves(board, c.row_lines, c.table0, c.leaves, lowest)
                while cells:
                    index = U(2 * cell_of(cells))
                    with_two, with_four = leaves[index], leaves[index + U(1)]
                    total += (with_two if with_two != lowest else dead) * two
                    total += (with_four if with_four != lowest else dead) * four
                    cells &= cells - U(1)
                    empty += 1
                return total / real(empty)
        while cells:
            bit = cells & (~cells + U(1))
            total += best_leaf(with_tile(board, bit, 1), ctx) * two
            total += best_leaf(with_tile(board, bit, 2), ctx) * four
            cells ^= bit
            empty += 1
        return total / real(empty)

    @kernel(variant=boards.name)
    def leaf(board, ctx):
        """Value of an afterstate at the end of the search: its own, or averaged over one more tile."""
        if read(ctx).state_leaves == 0:
            return real(evaluate(board, False, ctx))
        cells = open_cells(board, ctx)
        total, empty = real(0.0), 0
        while cells:
            bit = cells & (~cells + U(1))
            for rank in range(1, 3):
                state = with_tile(board, bit, rank)
                up, down, left, right, _, _ = moves(state, ctx)
                legal = up != state or down != state or left != state or right != state
                value = real(evaluate(state, True, ctx)) if legal else dead
                total += value * (two if rank == 1 else four)
            cells ^= bit
            empty += 1
        return total / real(empty)

    @kernel(variant=boards.name)
    def chance(board, left, probability, ctx):
        """Value of an afterstate after which `left` own moves follow (255: to the end)."""
        c = read(ctx)
        if left == 0:
            return leaf(board, ctx)
        if probability < c.cutoff:
            return real(evaluate(board, False, ctx))
        key = key_of(board)
        entries = borrow(c.entries, entry, c.entry_count)
        index = find(entries, key)
        if holds(entries, index, key):
            stored = np.int64(entries[index].tag & 255)
            if stored == left or (stored > left and c.cutoff > 0.0):
                return entries[index].value
        if c.stop:
            return dead
        cells = open_cells(board, ctx)
        empty, rest = 0, cells
        while rest:
            rest &= rest - U(1)
            empty += 1
        share = probability / real(empty)
        if (left == 1 and c.state_leaves == 0) or share * two < c.cutoff:
            value = last_chance(board, ctx)
        else:
            total = real(0.0)
            below = left - (left != TO_THE_END)
            while cells:
                bit = cells & (~cells + U(1))
                cells ^= bit
                for rank in range(1, 3):
                    weight = two if rank == 1 else four
                    state = with_tile(board, bit, rank)
                    onward = share * weight
                    if onward < c.cutoff:
                        total += best_leaf(state, ctx) * weight
                        continue
                    best, legal = lowest, False
                    after0, after1, after2, after3, along, across = moves(state, ctx)
                    for i in range(4):
                        if after0 != state:
                            legal = True
                            later = chance(after0, below, onward, ctx)
                            if c.rewards != 0.0:
                                later = real(later + c.rewards * (along if i < 2 else across))
                            best = max(best, later)
                        after0, after1, after2 = after1, after2, after3
                    total += (best if legal else dead) * weight
            value = total / real(empty)
            index = find(entries, key)  # the search below may have filled the place found before
        keep(entries, index, key, value, left)
        return value

    @kernel(variant=boards.name)
    def root_move(cells, action, settings):
        """Value of one root move; -inf if it is illegal."""
        ctx, blank, rule, own_table, _ = settings
        c = read(ctx)
        board = from_cells(blank, cells, c.cols)
        up, down, left, right, along, across = moves(board, ctx)
        after = up if action == 0 else right if action == 1 else down if action == 2 else left
        if after == board:
            return -np.inf
        left = own_moves(cells, rule) - 1
        if own_table:
            forget(borrow(c.entries, entry, c.entry_count), left)
        value = chance(after, left, real(1.0), ctx)
        return np.float64(value) + c.rewards * (across if action & 1 else along)

    @kernel(variant=boards.name)
    def decide(cells, memory, values, settings):
        c, order = read(settings[0]), settings[4]
        forget(borrow(c.entries, entry, c.entry_count), own_moves(cells, settings[2]))
        for i in range(4):
            values[order[i]] = root_move(cells, order[i], settings)

    return root_move, decide


class Expectimax(Search2048):
    """Expectimax: the best move when each new tile is averaged over."""

    def __init__(
        self,
        heuristic: Any = "nneonneo",
        depth: Any = 3,
        cutoff: float | None = None,
        table: Any = True,
        order: Any = None,
        threads: int = 1,
        time_limit: float | None = None,
        leaf: str = "afterstate",
        rewards: bool | None = None,
        rows: int | None = None,
        cols: int | None = None,
    ) -> None:
        super().__init__(heuristic, depth, leaf, rewards, order, rows, cols)
        self.cutoff = (1e-4 if depth == "distinct" else 0.0) if cutoff is None else float(cutoff)
        self.table = table
        self.threads = threads
        self.time_limit = time_limit

    def _make_decider(self, kind: str, rows: int, cols: int) -> tuple[Any, Any]:
        _, decide = expectimax_kernels(kind, type(self.heuristic) if self.heuristic else None)
        ctx, blank = self.context(kind, rows, cols, 21 if self.table else 0, self.cutoff)
        return decide, (ctx, blank, self.rule, self.table is True, self._order)
