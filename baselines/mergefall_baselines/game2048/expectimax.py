"""Expectimax for 2048: best move against chance."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from mergefall.kernels import kernel

from mergefall_baselines.game2048.engines import Context, Engine, engine
from mergefall_baselines.game2048.leaves import best_leaves
from mergefall_baselines.game2048.searches import TO_THE_END, Search2048, own_moves
from mergefall_baselines.game2048.table import find, forget, holds, keep

Settings = tuple[Context, int, bool]  # context, depth rule, whether each root move has the table to itself


@cache
def expectimax_kernels(kind: str, heuristic: Any) -> tuple[Any, Any]:
    """The search for one way of holding boards and one heuristic class.

    ``root_move(cells, action, settings) -> value`` searches one move, ``decide`` all four, as `base.py` says.
    """
    real = heuristic.real if heuristic else np.float64
    dead = real(heuristic.dead if heuristic else 0.0)
    floored = heuristic is not None and heuristic.floored
    line_values = kind == "packed" and heuristic is not None and heuristic.line_additive
    return _compile(engine(kind, heuristic), real, dead, floored, line_values)


def _compile(boards: Engine, real: Any, dead: Any, floored: bool, line_values: bool) -> tuple[Any, Any]:
    _, from_cells, moves, is_empty, with_tile, key_of, evaluate = boards
    two, four = real(0.9), real(0.1)
    lowest = dead if floored else real(-np.inf)

    @kernel(variant=boards.name)
    def best_leaf(state, ctx):
        """Value of a player's node whose moves lead to leaves."""
        best = lowest
        legal = False
        afterstates, scores = moves(state, ctx)
        for action in range(4):
            if afterstates[action] != state:
                legal = True
                best = max(best, real(evaluate(afterstates[action], False, ctx) + ctx.rewards * scores[action]))
        return best if legal else dead

    @kernel(variant=boards.name)
    def last_chance(board, ctx):
        """Value of an afterstate all of whose successors' moves lead to leaves: `best_leaf`, averaged."""
        total = real(0.0)
        empty = 0
        fast = line_values and ctx.rewards == 0.0
        if line_values:
            if fast:
                best_leaves(board, ctx.row_lines, ctx.tables[0], ctx.leaves, lowest)
        for r in range(ctx.rows):
            for c in range(ctx.cols):
                if is_empty(board, r, c):
                    empty += 1
                    if fast:
                        low, high = ctx.leaves[8 * r + 2 * c], ctx.leaves[8 * r + 2 * c + 1]
                        total += (low if low != lowest else dead) * two
                        total += (high if high != lowest else dead) * four
                    else:
                        total += best_leaf(with_tile(board, r, c, 1), ctx) * two
                        total += best_leaf(with_tile(board, r, c, 2), ctx) * four
        return total / real(empty)

    @kernel(variant=boards.name)
    def state_leaf(board, ctx):
        """Value of a leaf that has one more tile."""
        total = real(0.0)
        empty = 0
        for r in range(ctx.rows):
            for c in range(ctx.cols):
                if is_empty(board, r, c):
                    empty += 1
                    for rank in range(1, 3):
                        state = with_tile(board, r, c, rank)
                        afterstates, _ = moves(state, ctx)
                        legal = False
                        for action in range(4):
                            legal |= afterstates[action] != state
                        value = real(evaluate(state, True, ctx)) if legal else dead
                        total += value * (two if rank == 1 else four)
        return total / real(empty)

    @kernel(variant=boards.name)
    def chance(board, left, probability, ctx):
        if left == 0:
            return state_leaf(board, ctx) if ctx.state_leaves else real(evaluate(board, False, ctx))
        if probability < ctx.cutoff:
            return real(evaluate(board, False, ctx))
        key = key_of(board)
        index = find(ctx.entries, key)
        if holds(ctx.entries, index, key):
            stored = np.int64(ctx.entries[index].tag & 255)
            if stored == left or (stored > left and ctx.cutoff > 0.0):
                return ctx.entries[index].value
        if ctx.stop[0]:
            return dead
        empty = 0
        for r in range(ctx.rows):
            for c in range(ctx.cols):
                empty += is_empty(board, r, c)
        share = probability / real(empty)
        after_two, after_four = share * two, share * four
        last = left == 1 and not ctx.state_leaves
        if last or after_two < ctx.cutoff:
            value = last_chance(board, ctx)
        else:
            total = real(0.0)
            for r in range(ctx.rows):
                for c in range(ctx.cols):
                    if not is_empty(board, r, c):
                        continue
                    for rank in range(1, 3):
                        state = with_tile(board, r, c, rank)
                        onward = after_two if rank == 1 else after_four
                        if onward < ctx.cutoff:
                            best = best_leaf(state, ctx)
                        else:
                            best = lowest
                            legal = False
                            afterstates, scores = moves(state, ctx)
                            for i in range(4):
                                action = ctx.order[i]
                                if afterstates[action] != state:
                                    legal = True
                                    later = chance(afterstates[action], left - (left != TO_THE_END), onward, ctx)
                                    best = max(best, real(later + ctx.rewards * scores[action]))
                            if not legal:
                                best = dead
                        total += best * (two if rank == 1 else four)
            value = total / real(empty)
        index = find(ctx.entries, key)  # the search below may have filled the place found before
        keep(ctx.entries, index, key, value, left)
        return value

    @kernel(variant=boards.name)
    def root_move(cells, action, settings):
        """Value of one root move; -inf if it is illegal."""
        ctx, rule, own_table = settings
        board = from_cells(cells, ctx)
        afterstates, scores = moves(board, ctx)
        if afterstates[action] == board:
            return -np.inf
        if own_table:
            forget(ctx.entries)
        left = own_moves(cells, rule) - 1
        return np.float64(chance(afterstates[action], left, real(1.0), ctx) + ctx.rewards * scores[action])

    @kernel(variant=boards.name)
    def decide(cells, memory, values, settings):
        ctx = settings[0]
        forget(ctx.entries)
        for i in range(4):
            values[ctx.order[i]] = root_move(cells, ctx.order[i], settings)

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
        ctx = self.context(rows, cols, kind, 23 if self.table else 0, self.cutoff)
        return decide, (ctx, self.rule, self.table is True)
