"""The tree search of all Tetris players that look further than one piece, written once for any heuristic.

A node is a board and how many own moves are still to come. While pieces are known it is worth the best placement of the
next one; then it is worth the mean, over the pieces that may come, of the best placement of each. A placement adds its
terms of the move, the last one its other terms and those of the board. A piece that cannot be placed without ending the
game makes its node worth `lost`.

All memory is known to one record (`context.py`), whose address, `ctx`, nodes hand on.
"""

from __future__ import annotations

from functools import cache
from typing import Any, cast

import numpy as np
from mergefall.kernels import borrow, kernel
from mergefall.tetris.field import height_of, place, put
from mergefall.tetris.heuristics import Heuristic, Kernels
from mergefall.tetris.heuristics.base import plain_leaf
from mergefall.tetris.pieces import HEIGHTS
from mergefall.tetris.placements import action_of, column_of, list_placements, rotation_of, row_of

from mergefall_baselines.table import WHOLE, forget
from mergefall_baselines.tetris.context import (
    ENTRY,
    board_at,
    entry_of,
    lists_at,
    memo_at,
    read,
    share_of,
    store,
)
from mergefall_baselines.tetris.greedy import best_kernel
from mergefall_baselines.tetris.memory import IDS, bag_after, chances_of

U = np.uint64
SLACK = 1e-6  # what a bound must fall short by before it prunes: far above what rounding can do, far below a difference
MOST_MOVES = 16  # own moves that a search looks ahead at most


@kernel
def sort_down(placements, keys, count):
    """Sort by keys, highest first; equal ones stay in their order."""
    for i in range(1, count):
        placement, key, j = placements[i], keys[i], i
        while j > 0 and keys[j - 1] < key:
            placements[j], keys[j] = placements[j - 1], keys[j - 1]
            j -= 1
        placements[j], keys[j] = placement, key


class Nothing:
    """In place of a heuristic: every board is worth 0, so that only lines count."""

    name = "none"
    of_locked = False

    @staticmethod
    @cache
    def kernels(clears: bool = True) -> Kernels:
        @kernel
        def move(piece, rotation, column, y, lines, own, rows, weights):
            return 0.0

        @kernel
        def last(piece, rotation, column, y, rows, weights):
            return 0.0

        @kernel
        def board(columns, rows, weights):
            return 0.0

        @kernel
        def prepare(columns, rows, weights, memo):
            pass

        return Kernels(move, last, board, prepare, plain_leaf(cast(Any, Nothing), clears, move, last, board))


@cache
def search_kernel(
    cls: type[Heuristic] | type[Nothing], slides: bool, clears: bool, scored: bool, state_leaves: bool, bound: Any
) -> Any:
    """``decide`` of the search with one heuristic class.

    Its settings are (ctx, depth, known pieces, distribution, rows below the ceiling from which it is shallow, whether
    all values must be exact, the actions' ranks in ties, part, parts). Of the root's placements it searches every
    `parts`-th from number `part` on: several contexts share a decision.

    Args:
        slides: whether placements slide.
        clears: False leaves full rows on the boards of the search; the rules' overflow is then strict.
        scored: whether each line of the search is worth 1.
        state_leaves: whether a leaf has one more piece, and is worth `lost` where that cannot be placed.
        bound: None, or a kernel (columns, moves, rows, weights) -> float64, which no board after that many more
            placements exceeds in value: it lets the search leave out what cannot matter.
    """
    name = f"{cls.name}-{slides}-{clears}-{scored}-{state_leaves}-{bound is not None}"
    unscored, last, board, prepare, leaf = cls.kernels(clears)
    of_locked, bounded = cls.of_locked, bound is not None

    @kernel(variant=name)
    def scored_move(piece, rotation, column, y, lines, own, rows, weights):
        return unscored(piece, rotation, column, y, lines, own, rows, weights) + lines

    move = scored_move if scored else unscored
    if scored:
        leaf = plain_leaf(cast(Any, cls), clears, move, last, board)
    best_placement = best_kernel(leaf, slides, "lowest", False, f"{cls.name}-{clears}-{scored}")

    @kernel(variant=name)
    def placed(level, piece, placement, c):
        """(worth of the move, whether it is fatal); the next level's board is that after it."""
        columns, after = board_at(level, c), board_at(level + 1, c)
        rotation, column, y = rotation_of(placement), column_of(placement), row_of(placement)
        for i in range(c.cols):
            after[i] = columns[i]
        lines, own, over = 0, 0, False
        if clears:
            lines, own, over = place(after, piece, rotation, column, y, c.rows, c.clear_first != 0)
        else:
            put(after, piece, rotation, column, y)
            over = y + HEIGHTS[piece, rotation] > c.rows
        weights = borrow(c.weights, np.float64, c.weight_count)
        return move(piece, rotation, column, y, lines, own, c.rows, weights), over

    @kernel(variant=name)
    def ending(level, piece, placement, c):
        """What a placement that `placed` has played adds if it is the last."""
        weights = borrow(c.weights, np.float64, c.weight_count)
        rotation, column, y = rotation_of(placement), column_of(placement), row_of(placement)
        value = last(piece, rotation, column, y, c.rows, weights)
        if not of_locked:
            return value + board(board_at(level + 1, c), c.rows, weights)
        columns, locked = board_at(level, c), borrow(c.scratch, np.uint64, c.cols)
        for i in range(c.cols):
            locked[i] = columns[i]
        put(locked, piece, rotation, column, y)
        return value + board(locked, c.rows, weights)

    @kernel(variant=name)
    def of_leaf(level, piece, placement, c):
        """Value of a placement that is the last, -inf if it is fatal; the level's memo must be prepared."""
        rotation, column, y = rotation_of(placement), column_of(placement), row_of(placement)
        weights, scratch = borrow(c.weights, np.float64, c.weight_count), borrow(c.scratch, np.uint64, c.cols)
        columns, memo = board_at(level, c), memo_at(level, c)
        return leaf(columns, memo, piece, rotation, column, y, c.rows, c.clear_first != 0, weights, scratch)

    @kernel(variant=name)
    def best_leaf(level, piece, c):
        """The highest value among the placements of the last piece, -inf if all are fatal."""
        weights, scratch = borrow(c.weights, np.float64, c.weight_count), borrow(c.scratch, np.uint64, c.cols)
        ranks, values = borrow(c.placements, np.int64, 0), borrow(c.keys, np.float64, 0)
        columns, memo, clear_first = board_at(level, c), memo_at(level, c), c.clear_first != 0
        return best_placement(columns, piece, c.rows, clear_first, weights, memo, scratch, ranks, values)[1]

    @kernel(variant=name)
    def survives(level, piece, c):
        """Whether some placement of a piece does not end the game."""
        placements, _ = lists_at(level, c)
        for i in range(list_placements(board_at(level, c), piece, slides, placements)):
            _, over = placed(level, piece, placements[i], c)
            if not over:
                return True
        return False

    @kernel(variant=name)
    def at_the_end(level, piece, placement, queue, known, bag, c):
        """What a placement that `placed` has played adds where the search ends: of a state, averaged over its piece.

        `queue`, `known` and `bag` tell of the pieces after it.
        """
        worth = ending(level, piece, placement, c)
        if not state_leaves:
            return worth
        total = 0.0
        for id in range(IDS):
            share = share_of(id, queue, known, bag, c)
            if share > 0.0:
                total += share * (worth if survives(level + 1, c.first + id, c) else c.lost)
        return total

    @kernel(variant=name)
    def listed(level, piece, left, c):
        """How many placements of a piece are looked into; they and their keys are in the level's lists.

        The best come first: by a bound on what may follow, or by their values as the last placement. Keys are -inf
        for fatal ones.
        """
        placements, keys = lists_at(level, c)
        count = list_placements(board_at(level, c), piece, slides, placements)
        if bounded:
            weights = borrow(c.weights, np.float64, c.weight_count)
            for i in range(count):
                worth, over = placed(level, piece, placements[i], c)
                most = bound(board_at(level + 1, c), left - 1, c.rows, weights)
                keys[i] = -np.inf if over else worth + max(most, c.lost)
        elif c.beam:
            for i in range(count):
                keys[i] = of_leaf(level, piece, placements[i], c)
        if bounded or c.beam:
            sort_down(placements, keys, count)
        return min(count, c.beam) if c.beam else count

    @kernel(variant=name)
    def node(level, queue, known, left, bag, probability, upper, alpha, ctx):
        """Value of the board of a level, with `left` own moves to come, the pieces of the first `known` being known.

        `upper` is a bound on it. If it is below `alpha`, so is what is returned, which is then a bound on it, too.
        """
        c = read(ctx)
        if c.stop:
            return 0.0
        columns, total, rest, others = board_at(level, c), 0.0, 1.0, 0.0
        tabled = known == 0 and c.entry_count > 1
        if tabled:
            index, found, _ = entry_of(columns, left, bag, probability, c)
            if found:
                return borrow(c.entries, ENTRY, c.entry_count)[index].value
        if left == 1 or c.beam:
            prepare(columns, c.rows, borrow(c.weights, np.float64, c.weight_count), memo_at(level, c))
        for id in range(IDS):
            share = share_of(id, queue, known, bag, c)
            if share == 0.0:
                continue
            rest -= share
            need = -np.inf
            if bounded:
                others = max(rest, 0.0) * upper if rest > 1e-12 else 0.0
                need = (alpha - total - others) / share
            piece, best = c.first + id, -np.inf
            if left == 1 and not state_leaves:
                best = best_leaf(level, piece, c)
            else:
                placements, keys = lists_at(level, c)
                onward = probability * share
                stays = known <= 1 and onward < c.cutoff
                remaining = bag if known else bag_after(id, bag, c.drawn)
                if left == 1:
                    count = list_placements(columns, piece, slides, placements)
                else:
                    count = listed(level, piece, left, c)
                for i in range(count):
                    if bounded:
                        if keys[i] + SLACK < max(best, need):
                            best = max(best, keys[i])
                            break
                    value, over = placed(level, piece, placements[i], c)
                    if over:
                        continue
                    if stays:
                        value += ending(level, piece, placements[i], c)
                    elif left == 1:
                        later, unknown = queue >> U(4), max(known - 1, 0)
                        value += at_the_end(level, piece, placements[i], later, unknown, remaining, c)
                    else:
                        highest = keys[i] - value if bounded else np.inf
                        lowest = max(best, need) - value
                        value += node(
                            level + 1,
                            queue >> U(4),
                            max(known - 1, 0),
                            left - 1,
                            remaining,
                            onward,
                            highest,
                            lowest,
                            ctx,
                        )
                    best = max(best, value)
            if best == -np.inf:
                best = c.lost
            total += share * best
            if bounded:
                if best + SLACK < need:
                    return min(total + others, alpha - 2 * SLACK)
        if tabled and not c.stop:
            if total >= alpha:
                store(columns, left, bag, probability, total, c)
        return total

    @kernel(variant=name)
    def decide(columns, queue, memory, values, settings):
        ctx, depth, known, distribution, near_top, exact, ranks, part, parts = settings
        c, top, first_move, certain = read(ctx), np.int64(0), np.int64(1), np.float64(1.0)  # literals are types apart
        root, highest_column = board_at(top, c), 0
        for i in range(c.cols):
            root[i] = columns[i]
            highest_column = max(highest_column, height_of(columns[i]))
        if highest_column + near_top > c.rows:
            depth = 1
        for action in range(values.size):
            values[action] = -np.inf
        bag = chances_of(memory, distribution, c.drawn, borrow(c.chances, np.float64, IDS))
        if c.entry_count > 1:
            forget(borrow(c.entries, ENTRY, c.entry_count), WHOLE)
        prepare(root, c.rows, borrow(c.weights, np.float64, c.weight_count), memo_at(top, c))
        piece = c.first + np.int64(queue & U(15))
        placements, keys = lists_at(top, c)
        count = list_placements(root, piece, slides, placements)
        best, chosen = -np.inf, placements[0]
        if depth > 1:
            count = listed(top, piece, depth, c)
        for i in range(part, count, parts):
            placement = placements[i]
            if bounded and not exact and depth > 1:
                if keys[i] + SLACK < best:
                    break
            if depth == 1 and not state_leaves:
                value = of_leaf(top, piece, placement, c)
            else:
                value, over = placed(top, piece, placement, c)
                if over:
                    continue
                if depth == 1:
                    value += at_the_end(top, piece, placement, queue >> U(4), known - 1, bag, c)
                else:
                    highest = keys[i] - value if bounded else np.inf
                    lowest = -np.inf if exact else best - value
                    value += node(first_move, queue >> U(4), known - 1, depth - 1, bag, certain, highest, lowest, ctx)
            values[action_of(placement)] = value
            first = ranks[action_of(placement)] < ranks[action_of(chosen)]
            if value > best or (value == best and value > -np.inf and first):
                best, chosen = value, placement
        return chosen

    return decide
