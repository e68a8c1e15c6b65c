"""The tree search of all Tetris players that look further than one piece, written once for any heuristic.

Terms:

- An *own move* is one placement. `left` counts the own moves still to come, `depth` those from the root.
- A *node* is a board before an own move. While its next piece is known, its value is that of the best placement of that
  piece. Otherwise it is a *chance node*: its value is the mean, over the pieces that may come, of the value of the best
  placement of each.
- A *leaf* is the last placement that is searched, because no own move is left or because the cut-off ends the search
  there.

Values:

- A placement that is no leaf adds the heuristic's terms of the move to the value of the node after it.
- A leaf is worth its terms of the move, its terms of the last placement, and the terms of the board after it.
- With state leaves the last own move is followed by one more piece: the placement then counts `lost`, in place of the
  last terms and those of the board, for the share of the pieces that cannot be placed after it.
- A fatal placement is worth -inf. A piece all of whose placements are worth -inf counts `lost`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import ClassVar, NamedTuple

import numpy as np
from mergefall.interrupt import stopped
from mergefall.kernels import borrow, kernel
from mergefall.tetris.field import height_of, place, put
from mergefall.tetris.heuristics import Heuristic, Kernels
from mergefall.tetris.heuristics.function import placement_terms as lines_of
from mergefall.tetris.pieces import HEIGHTS
from mergefall.tetris.placements import action_of, column_of, list_placements, rotation_of, row_of
from mergefall.typing import Kernel
from numpy.typing import NDArray

from mergefall_baselines.tetris.context import (
    Node,
    board_at,
    empty_table,
    lists_at,
    memo_at,
    node_after,
    read,
    scratch_of,
    share_of,
    store,
    stored_value,
    uses_table,
    weights_of,
)
from mergefall_baselines.tetris.greedy import best_kernel
from mergefall_baselines.tetris.memory import IDS, chances_of

U = np.uint64
SLACK = 1e-6  # a bound prunes only if it falls short by this much: above rounding errors, below any real difference
ROUNDING = 1e-12  # a probability that should be 0 may be this much above it


@kernel
def _no_terms(columns, rows, weights):
    return (0.0,)


@dataclass(frozen=True)
class NoHeuristic(Heuristic):
    """In place of a heuristic: every board is worth 0, so that only lines count."""

    name: ClassVar[str] = "none"
    term_names: ClassVar[tuple[str, ...]] = ("lines",)
    of_placement: ClassVar[tuple[str, ...]] = term_names
    of_board: ClassVar[tuple[str, ...]] = ("nothing",)
    placement_kernel: ClassVar[Kernel] = staticmethod(lines_of)
    terms_kernel: ClassVar[Kernel] = staticmethod(_no_terms)

    lines: float = 1.0


@dataclass(frozen=True)
class SearchShape:
    """What a search is compiled for.

    Attributes:
        heuristic: the heuristic's class; its weights are data.
        slides: whether placements slide.
        clears: False leaves full rows on the boards of the search; the rules' overflow is then strict.
        state_leaves: whether one more piece follows the last own move.
        bound: None, or a kernel (columns, moves, rows, weights) -> float64. No board reached from `columns` in that
            many more placements has a higher value than it returns, so the search skips placements that cannot matter.
    """

    heuristic: type[Heuristic]
    slides: bool
    clears: bool = True
    state_leaves: bool = False
    bound: Kernel = None

    @property
    def name(self) -> str:
        """The variant of its kernels."""
        flags = self.slides, self.clears, self.state_leaves, self.bound is not None
        return "-".join((self.heuristic.name, *map(str, flags)))


class SearchSettings(NamedTuple):
    """The numbers of a search, which ``decide`` takes.

    Attributes:
        ctx: uint64, address of the search's context.
        known: pieces known at the root.
        distribution: of the unknown pieces, an index into `DISTRIBUTIONS`.
        near_top: depth is 1 while a column is higher than this many rows below the ceiling.
        exact: whether all values must be exact. If False, only the best must be; others may be too low.
        ranks: int64[n_actions], the actions' ranks; among equal values the lowest rank wins.
    """

    ctx: np.uint64
    known: int
    distribution: int
    near_top: int
    exact: bool
    ranks: NDArray[np.int64]


@kernel
def sort_down(placements, keys, count):
    """Sort by keys, highest first; equal ones stay in their order."""
    for i in range(1, count):
        placement, key, j = placements[i], keys[i], i
        while j > 0 and keys[j - 1] < key:
            placements[j], keys[j] = placements[j - 1], keys[j - 1]
            j -= 1
        placements[j], keys[j] = placement, key


class _Moves(NamedTuple):
    """Kernels for one placement that `list_placements` listed; see `_move_kernels`."""

    play: Kernel
    last_terms: Kernel
    state_value: Kernel


def _move_kernels(shape: SearchShape, heuristic: Kernels) -> _Moves:
    slides, clears, state_leaves, of_locked = shape.slides, shape.clears, shape.state_leaves, shape.heuristic.of_locked
    move, last, board = heuristic.move, heuristic.last, heuristic.board

    @kernel(variant=shape.name)
    def play(level, piece, placement, c):
        """Play a placement onto the next level's board: (terms of the move, whether it is fatal)."""
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
        return move(piece, rotation, column, y, lines, own, c.rows, weights_of(c)), over

    @kernel(variant=shape.name)
    def last_terms(level, piece, placement, c):
        """What a placement that `play` has just played adds as the last one: its last terms, and those of the board."""
        weights, rotation, column, y = weights_of(c), rotation_of(placement), column_of(placement), row_of(placement)
        value = last(piece, rotation, column, y, c.rows, weights)
        if not of_locked:
            return value + board(board_at(level + 1, c), c.rows, weights)
        columns, locked = board_at(level, c), scratch_of(c)
        for i in range(c.cols):
            locked[i] = columns[i]
        put(locked, piece, rotation, column, y)
        return value + board(locked, c.rows, weights)

    @kernel(variant=shape.name)
    def can_be_placed(level, piece, c):
        """Whether some placement of a piece is not fatal."""
        placements, _ = lists_at(level, c)
        for i in range(list_placements(board_at(level, c), piece, slides, placements)):
            _, fatal = play(level, piece, placements[i], c)
            if not fatal:
                return True
        return False

    @kernel(variant=shape.name)
    def state_value(after, piece, placement, c):
        """What a placement that `play` has just played adds as the last own move; `after` is the node that follows."""
        value = last_terms(after.level - 1, piece, placement, c)
        if not state_leaves:
            return value
        mean = 0.0
        for id in range(IDS):
            share = share_of(id, after, c)
            if share > 0.0:
                mean += share * (value if can_be_placed(after.level, c.first + id, c) else c.lost)
        return mean

    return _Moves(play, last_terms, state_value)


class _Leaves(NamedTuple):
    """Kernels for leaves on one board; see `_leaf_kernels`."""

    value: Kernel
    best: Kernel


def _leaf_kernels(shape: SearchShape, heuristic: Kernels) -> _Leaves:
    """Leaves on a level's board; the heuristic's `prepare` must have filled the level's memo."""
    leaf = heuristic.leaf
    best_placement = best_kernel(leaf, shape.slides, "lowest", False)

    @kernel(variant=shape.name)
    def leaf_value(level, piece, placement, c):
        """Value of a placement as a leaf, -inf if it is fatal."""
        rotation, column, y = rotation_of(placement), column_of(placement), row_of(placement)
        columns, memo, weights, scratch = board_at(level, c), memo_at(level, c), weights_of(c), scratch_of(c)
        return leaf(columns, memo, piece, rotation, column, y, c.rows, c.clear_first != 0, weights, scratch)

    @kernel(variant=shape.name)
    def best_leaf(level, piece, c):
        """The highest value of a piece's placements as leaves, -inf if all are fatal."""
        columns, memo, weights, scratch = board_at(level, c), memo_at(level, c), weights_of(c), scratch_of(c)
        ranks, values = borrow(c.placements, np.int64, 0), borrow(c.keys, np.float64, 0)  # not used
        return best_placement(columns, piece, c.rows, c.clear_first != 0, weights, memo, scratch, ranks, values)[1]

    return _Leaves(leaf_value, best_leaf)


def _listing_kernels(shape: SearchShape, moves: _Moves, leaves: _Leaves) -> tuple[Kernel, Kernel]:
    """(select, listed): which placements a node searches, and in which order."""
    slides, bound, bounded = shape.slides, shape.bound, shape.bound is not None
    play, leaf_value = moves.play, leaves.value

    @kernel(variant=shape.name)
    def select(level, piece, count, left, c):
        """Order a level's `count` listed placements for a search of `left` own moves; returns how many to search.

        With a bound a placement's key is the most that it can be worth; with a beam it is the value as a leaf. Either
        way fatal ones get -inf. The highest keys come first, and only `beam` placements are searched. Without both, and
        for the last own move, the order stays and there are no keys.
        """
        if left == 1 or not (bounded or c.beam):
            return count
        placements, keys = lists_at(level, c)
        for i in range(count):
            if bounded:
                value, fatal = play(level, piece, placements[i], c)
                most = bound(board_at(level + 1, c), left - 1, c.rows, weights_of(c))
                keys[i] = -np.inf if fatal else value + max(most, c.lost)
            else:
                keys[i] = leaf_value(level, piece, placements[i], c)
        sort_down(placements, keys, count)
        return min(count, c.beam) if c.beam else count

    @kernel(variant=shape.name)
    def listed(at, piece, c):
        """How many placements of a piece a node searches; they are in its level's list."""
        placements, _ = lists_at(at.level, c)
        count = list_placements(board_at(at.level, c), piece, slides, placements)
        return select(at.level, piece, count, at.left, c)

    return select, listed


def _end_kernel(shape: SearchShape, moves: _Moves, leaves: _Leaves, listed: Kernel) -> Kernel:
    state_leaves, bounded, best_leaf = shape.state_leaves, shape.bound is not None, leaves.best
    play, last_terms, state_value = moves

    @kernel(variant=shape.name)
    def best_end(at, after, piece, need, c):
        """(True, value of a piece's best placement) if all of its placements are leaves, else (False, -inf).

        A value below `need` may be too high, but stays below `need`.
        """
        if at.left == 1 and not state_leaves:
            return True, best_leaf(at.level, piece, c)
        unlikely = at.known <= 1 and after.probability < c.cutoff
        best = -np.inf
        if at.left > 1 and not unlikely:
            return False, best
        placements, keys = lists_at(at.level, c)
        for i in range(listed(at, piece, c)):
            if bounded and at.left > 1 and keys[i] + SLACK < max(best, need):
                return True, max(best, keys[i])
            value, fatal = play(at.level, piece, placements[i], c)
            if not fatal:
                if unlikely:
                    value += last_terms(at.level, piece, placements[i], c)
                else:
                    value += state_value(after, piece, placements[i], c)
                best = max(best, value)
        return True, best

    return best_end


def _node_kernel(shape: SearchShape, prepare: Kernel, play: Kernel, listed: Kernel, best_end: Kernel) -> Kernel:
    bounded = shape.bound is not None

    @kernel(variant=shape.name)
    def node(at, upper, alpha, ctx):
        """Search a node.

        Let v be the node's value. The caller promises v ≤ `upper`. If v ≥ `alpha`, `node` returns v. Otherwise it
        returns some r with v ≤ r < `alpha`. Values closer than `SLACK` count as equal. Without a bound kernel, `node`
        always returns v. Once `stop` is set, what it returns means nothing.
        """
        c = read(ctx)
        if c.stop or stopped():
            return 0.0
        if uses_table(at, c):
            found, value = stored_value(at, c)
            if found:
                return value
        if at.left == 1 or c.beam:
            prepare(board_at(at.level, c), c.rows, memo_at(at.level, c))
        total, rest, others, need = 0.0, 1.0, 0.0, -np.inf
        placements, keys = lists_at(at.level, c)
        for id in range(IDS):
            share = share_of(id, at, c)
            if share == 0.0:
                continue
            rest -= share
            if bounded:  # the other pieces are worth `others` at most, so below `need` this one leaves v < alpha
                others = max(rest, 0.0) * upper if rest > ROUNDING else 0.0
                need = (alpha - total - others) / share
            piece, after = c.first + id, node_after(at, id, share, c)
            ends, best = best_end(at, after, piece, need, c)
            for i in range(0 if ends else listed(at, piece, c)):
                if bounded and keys[i] + SLACK < max(best, need):
                    best = max(best, keys[i])
                    break
                value, fatal = play(at.level, piece, placements[i], c)
                if not fatal:
                    highest = keys[i] - value if bounded else np.inf
                    best = max(best, value + node(after, highest, max(best, need) - value, ctx))
            best = c.lost if best == -np.inf else best
            total += share * best
            if bounded and best + SLACK < need:
                return min(total + others, alpha - 2 * SLACK)
        if uses_table(at, c) and not c.stop and total >= alpha:
            store(at, total, c)
        return total

    return node


def _root_kernels(
    shape: SearchShape, prepare: Kernel, moves: _Moves, leaf_value: Kernel, node: Kernel
) -> tuple[Kernel, Kernel]:
    """(root_node, root_value)."""
    state_leaves, bounded = shape.state_leaves, shape.bound is not None
    play, _, state_value = moves

    @kernel(variant=shape.name)
    def root_node(columns, queue, memory, settings, c):
        """The root, its board and memo ready; its depth is 1 near the top."""
        level, highest = np.int64(0), 0
        root = board_at(level, c)
        for i in range(c.cols):
            root[i] = columns[i]
            highest = max(highest, height_of(columns[i]))
        left = 1 if highest + settings.near_top > c.rows else c.depth
        prepare(root, c.rows, memo_at(level, c))
        bag = chances_of(memory, settings.distribution, c.drawn, borrow(c.chances, np.float64, IDS))
        return Node(level, queue, settings.known, left, bag, np.float64(1.0))

    @kernel(variant=shape.name)
    def root_value(root, after, piece, placement, key, alpha, ctx):
        """Value v of a root placement, -inf if it is fatal; if v < `alpha`, some r with v ≤ r < `alpha`."""
        c = read(ctx)
        if root.left == 1 and not state_leaves:
            return leaf_value(root.level, piece, placement, c)
        value, fatal = play(root.level, piece, placement, c)
        if fatal:
            return -np.inf
        if root.left == 1:
            return value + state_value(after, piece, placement, c)
        highest = key - value if bounded else np.inf
        return value + node(after, highest, alpha - value, ctx)

    return root_node, root_value


@cache
def search_kernel(shape: SearchShape) -> Kernel:
    """The kernel ``decide`` of a search: ``decide(columns, queue, memory, values, SearchSettings)``, see `player.py`.

    The module's docstring defines the value of a root placement. Ties go to the lowest rank. If all values are -inf,
    ``decide`` chooses the first legal action.
    """
    slides, bounded = shape.slides, shape.bound is not None
    heuristic = shape.heuristic.kernels(shape.clears)
    moves, leaves = _move_kernels(shape, heuristic), _leaf_kernels(shape, heuristic)
    select, listed = _listing_kernels(shape, moves, leaves)
    best_end = _end_kernel(shape, moves, leaves, listed)
    node = _node_kernel(shape, heuristic.prepare, moves.play, listed, best_end)
    root_node, root_value = _root_kernels(shape, heuristic.prepare, moves, leaves.value, node)

    @kernel(variant=shape.name)
    def decide(columns, queue, memory, values, settings):
        ctx, ranks, c = settings.ctx, settings.ranks, read(settings.ctx)
        for action in range(values.size):
            values[action] = -np.inf
        empty_table(c)
        root, id = root_node(columns, queue, memory, settings, c), np.int64(queue & U(15))
        after, piece = node_after(root, id, 1.0, c), c.first + id
        placements, keys = lists_at(root.level, c)
        count = list_placements(columns, piece, slides, placements)
        best, chosen = -np.inf, placements[0]
        prunes = bounded and root.left > 1 and not settings.exact
        for i in range(select(root.level, piece, count, root.left, c)):
            placement = placements[i]
            if prunes and keys[i] + SLACK < best:
                break
            alpha = -np.inf if settings.exact else best
            value = root_value(root, after, piece, placement, keys[i], alpha, ctx)
            values[action_of(placement)] = value
            is_first = ranks[action_of(placement)] < ranks[action_of(chosen)]
            if value > best or (value == best and value > -np.inf and is_first):
                best, chosen = value, placement
        return chosen

    return decide
