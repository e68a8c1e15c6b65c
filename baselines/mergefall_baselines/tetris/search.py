"""The tree search of all Tetris players that look further than one piece, written once for any evaluation.

A node is a board and how many own moves are still to come. While pieces are known it is worth the best placement of the
next one; then it is worth the mean, over the pieces that may come, of the best placement of each. A placement adds its
terms of the move, the last one its other terms and those of the board. A piece that cannot be placed without ending the
game makes its node worth `lost`.

Each level of the tree has a board and lists of placements of its own, in arrays that the player keeps alive; nodes hand
on the address of one record, `ctx`, that knows them all.
"""

from __future__ import annotations

from functools import cache
from typing import Any, cast

import numpy as np
from mergefall.kernels import borrow, kernel
from mergefall.tetris.evaluations import MEMO, Evaluation, Kernels
from mergefall.tetris.evaluations.base import plain_leaf
from mergefall.tetris.field import height_of, landing, place, put
from mergefall.tetris.pieces import HEIGHTS, WIDTHS
from mergefall.tetris.placements import (
    ROTATIONS,
    STEPS,
    action_of,
    column_of,
    list_placements,
    packed,
    rotation_of,
    row_at_rest,
    row_of,
)

from mergefall_baselines.table import entry_type, find, forget, holds, keep
from mergefall_baselines.tetris.chances import IDS, bag_after, chance_of, chances_of

U = np.uint64
ENTRY = entry_type(np.float64)
SLACK = 1e-6  # what a bound must fall short by before it prunes: far above what rounding can do, far below a difference
MOST_MOVES = 16  # own moves that a search looks ahead at most

CONTEXT = np.dtype(
    [
        ("cols", np.int64),
        ("rows", np.int64),
        ("first", np.int64),  # table row of piece id 0
        ("drawn", np.int64),  # ids that appear, as bits
        ("clear_first", np.int64),
        ("weights", np.uint64),  # float64[weight_count], the evaluation's
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
def sort_down(placements, keys, count):
    """Sort by keys, highest first; equal ones stay in their order."""
    for i in range(1, count):
        placement, key, j = placements[i], keys[i], i
        while j > 0 and keys[j - 1] < key:
            placements[j], keys[j] = placements[j - 1], keys[j - 1]
            j -= 1
        placements[j], keys[j] = placement, key


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


class Nothing:
    """In place of an evaluation: every board is worth 0, so that only lines count."""

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
def search_kernel(cls: type[Evaluation] | type[Nothing], slides: bool, clears: bool, scored: bool, bound: Any) -> Any:
    """``decide`` of the search with one evaluation class.

    Args:
        slides: whether placements slide.
        clears: False leaves full rows on the boards of the search; the rules' overflow is then strict.
        scored: whether each line of the search is worth 1.
        bound: None, or a kernel (columns, moves, rows, weights) -> float64, which no board after that many more
            placements exceeds in value: it lets the search leave out what cannot matter.
    """
    name = f"{cls.name}-{slides}-{clears}-{scored}-{bound is not None}"
    evaluation = cls.kernels(clears)
    move, last, board, prepare, leaf = evaluation
    of_locked, bounded = cls.of_locked, bound is not None

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
        value = move(piece, rotation, column, y, lines, own, c.rows, borrow(c.weights, np.float64, c.weight_count))
        if scored:
            value += lines
        return value, over

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
    def of_leaf(level, piece, rotation, column, y, c):
        """Value of a placement that is the last, -inf if it is fatal; the level's memo must be prepared."""
        if scored:
            placement = packed(y, column, rotation, np.int64(0))
            value, over = placed(level, piece, placement, c)
            return -np.inf if over else value + ending(level, piece, placement, c)
        weights, scratch = borrow(c.weights, np.float64, c.weight_count), borrow(c.scratch, np.uint64, c.cols)
        columns, memo = board_at(level, c), memo_at(level, c)
        return leaf(columns, memo, piece, rotation, column, y, c.rows, c.clear_first != 0, weights, scratch)

    @kernel(variant=name)
    def best_leaf(level, piece, c):
        """The highest value among the placements of the last piece, -inf if all are fatal."""
        columns, memo, best = board_at(level, c), memo_at(level, c), -np.inf
        weights, scratch = borrow(c.weights, np.float64, c.weight_count), borrow(c.scratch, np.uint64, c.cols)
        cols, rows, clear_first = c.cols, c.rows, c.clear_first != 0
        for slide in range(3 if slides else 1):
            for rotation in range(ROTATIONS):
                width = WIDTHS[piece, rotation]
                for column in range(cols - width + 1 if width else 0):
                    if slides:
                        y, end = row_at_rest(columns, piece, slide, rotation, column), column + STEPS[slide]
                        if y < 0:
                            continue
                    else:
                        y, end = landing(columns, piece, rotation, column), column
                    if scored:
                        value = of_leaf(level, piece, rotation, end, y, c)
                    else:
                        value = leaf(columns, memo, piece, rotation, end, y, rows, clear_first, weights, scratch)
                    best = max(best, value)
        return best

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
                p = placements[i]
                keys[i] = of_leaf(level, piece, rotation_of(p), column_of(p), row_of(p), c)
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
            if known:
                share = 1.0 if np.int64(queue & U(15)) == id else 0.0
            else:
                share = chance_of(id, bag, borrow(c.chances, np.float64, IDS))
            if share == 0.0:
                continue
            rest -= share
            need = -np.inf
            if bounded:
                others = max(rest, 0.0) * upper if rest > 1e-12 else 0.0
                need = (alpha - total - others) / share
            piece, best = c.first + id, -np.inf
            if left == 1:
                best = best_leaf(level, piece, c)
            else:
                placements, keys = lists_at(level, c)
                onward = probability * share
                stays = known <= 1 and onward < c.cutoff
                remaining = bag if known else bag_after(id, bag, c.drawn)
                for i in range(listed(level, piece, left, c)):
                    if bounded:
                        if keys[i] + SLACK < max(best, need):
                            best = max(best, keys[i])
                            break
                    value, over = placed(level, piece, placements[i], c)
                    if over:
                        continue
                    if stays:
                        value += ending(level, piece, placements[i], c)
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
        ctx, depth, known, distribution, near_top, exact, ranks = settings
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
            forget(borrow(c.entries, ENTRY, c.entry_count), MOST_MOVES + 12)
        prepare(root, c.rows, borrow(c.weights, np.float64, c.weight_count), memo_at(top, c))
        piece = c.first + np.int64(queue & U(15))
        placements, keys = lists_at(top, c)
        count = list_placements(root, piece, slides, placements)
        best, chosen = -np.inf, placements[0]
        if depth > 1:
            count = listed(top, piece, depth, c)
        for i in range(count):
            placement = placements[i]
            if bounded and not exact and depth > 1:
                if keys[i] + SLACK < best:
                    break
            if depth == 1:
                value = of_leaf(top, piece, rotation_of(placement), column_of(placement), row_of(placement), c)
            else:
                value, over = placed(top, piece, placement, c)
                if over:
                    continue
                highest = keys[i] - value if bounded else np.inf
                lowest = -np.inf if exact else best - value
                value += node(first_move, queue >> U(4), known - 1, depth - 1, bag, certain, highest, lowest, ctx)
            values[action_of(placement)] = value
            first = ranks[action_of(placement)] < ranks[action_of(chosen)]
            if value > best or (value == best and value > -np.inf and first):
                best, chosen = value, placement
        return chosen

    return decide
