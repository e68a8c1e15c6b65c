"""The tree search of all Tetris players that look further than one piece, written once for any heuristic.

- An *own move* is one placement. `left` counts the own moves still to come, `depth` those from the root.
- A *node* is a board before an own move. While its next piece is known, its value is that of the best placement of that
  piece, else the mean of that over the pieces that may come.
- A *leaf* is the last placement that is searched. It is worth the heuristic's terms of the move, its terms of the last
  placement, and the terms of the board after it. Any other placement adds its terms of the move to the node after it.
- A fatal placement is worth -inf. A piece all of whose placements are worth -inf counts `lost`.

The memory of a search, `c`, is that of `Expectimax._make_decider`. Level 0 is the root, level k what follows k
placements. Each level has its own board, memo and lists.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from mergefall.interrupt import stopped
from mergefall.kernels import borrow, kernel
from mergefall.tetris.field import copy, place, put
from mergefall.tetris.game import QUEUE, columns_in
from mergefall.tetris.heuristics.base import MEMO, Kernels, Recipe, kernels_of
from mergefall.tetris.pieces import HEIGHTS
from mergefall.tetris.placements import action_of, at_rest, lister
from mergefall.typing import Kernel
from mergefall.words import popcount

from mergefall_baselines.tetris.greedy import best_kernel
from mergefall_baselines.tetris.player import IDS, bag_after, chances_of

U = np.uint64
SLACK = 1e-6  # a bound prunes only if it falls short by this much: above rounding errors, below any real difference
ROUNDING = 1e-12  # a probability that should be 0 may be this much above it


class Node(NamedTuple):
    """A position between two placements; its board is that of its level."""

    level: np.int64  # placements since the root
    queue: np.uint64  # ids of the known pieces, 4 bits each, the next one lowest
    known: int  # how many pieces the queue holds
    left: int  # own moves still to come
    bag: int  # see `player.py`


@kernel
def at_level(level, c):
    """What belongs to a level: its board uint64[cols], the board's memo, and lists of placements and of their keys."""
    listed = U(8 * c.listed * level)
    return (
        borrow(c.columns + U(8 * level * c.cols), np.uint64, c.cols),
        borrow(c.memos + U(8 * MEMO * level), np.uint64, MEMO),
        borrow(c.placements + listed, np.int64, c.listed),
        borrow(c.keys + listed, np.float64, c.listed),
    )


@kernel
def node_after(node, id, c):
    """The node that follows a placement of the piece `id`, which comes next."""
    bag = node.bag if node.known else bag_after(id, node.bag, c.drawn)
    return Node(node.level + 1, node.queue >> U(4), max(node.known - 1, 0), node.left - 1, bag)


def _placement_kernels(heuristic: Kernels, best: Kernel, list_all: Kernel, clears: bool, bound: Kernel) -> Any:
    """(play, leaf_value, listed), the kernels for placements on a level's board; the last two may need its memo."""
    move, leaf, bounded = heuristic.move, heuristic.leaf, bound is not None

    @kernel
    def play(level, piece, placement, c):
        """Play a placement onto the next level's board: (terms of the move, whether it is fatal)."""
        (rotation, column, y), after = at_rest(placement), at_level(level + 1, c)[0]
        copy(at_level(level, c)[0], after)
        if clears:
            lines, own, over = place(after, piece, rotation, column, y, c.rows, c.clear_first != 0)
        else:
            put(after, piece, rotation, column, y)
            lines, own, over = 0, 0, y + HEIGHTS[piece, rotation] > c.rows
        weights = borrow(c.weights, np.float64, c.weight_count)
        return move(piece, rotation, column, y, lines, own, c.rows, weights), over

    @kernel
    def leaf_value(level, piece, placement, c):
        """The value of a placement as a leaf; at -1 that of the best one."""
        (columns, memo, _, keys), clear_first = at_level(level, c), c.clear_first != 0
        weights, scratch = borrow(c.weights, np.float64, c.weight_count), borrow(c.scratch, np.uint64, c.cols)
        if placement < 0:
            return best(columns, piece, c.rows, clear_first, weights, memo, scratch, keys[:0])[1]
        rotation, column, y = at_rest(placement)
        return leaf(columns, memo, piece, rotation, column, y, c.rows, clear_first, weights, scratch)

    @kernel
    def listed(at, piece, c):
        """List the placements of a piece in a node's level, in the order of the search; returns how many to search.

        With a bound a placement's key is the most that it can be worth; with a beam it is the value as a leaf. Either
        way fatal ones get -inf. The highest keys come first, equal ones in their order, and only `beam` placements are
        searched. Without both, and for the last own move, the order stays and there are no keys.
        """
        columns, _, placements, keys = at_level(at.level, c)
        count = list_all(columns, piece, c.rows, placements)
        if at.left == 1 or not (bounded or c.beam):
            return count
        for i in range(count):
            placement = placements[i]
            if bounded:
                value, fatal = play(at.level, piece, placement, c)
                after, weights = at_level(at.level + 1, c)[0], borrow(c.weights, np.float64, c.weight_count)
                key = -np.inf if fatal else value + max(bound(after, at.left - 1, c.rows, weights), c.lost)
            else:
                key = leaf_value(at.level, piece, placement, c)
            j = i
            while j > 0 and keys[j - 1] < key:
                placements[j], keys[j] = placements[j - 1], keys[j - 1]
                j -= 1
            placements[j], keys[j] = placement, key
        return min(count, c.beam) if c.beam else count

    return play, leaf_value, listed


def _node_kernel(bounded: bool, prepare: Kernel, play: Kernel, leaf_value: Kernel, listed: Kernel) -> Kernel:
    @kernel
    def node(at, upper, alpha, c):
        """Search a node.

        Let v be the node's value. The caller promises v ≤ `upper`. If v ≥ `alpha`, `node` returns v. Otherwise it
        returns some r with v ≤ r < `alpha`. Values closer than `SLACK` count as equal. Without a bound kernel, `node`
        always returns v. Once stopped, what it returns means nothing.
        """
        if stopped():
            return 0.0
        columns, memo, placements, keys = at_level(at.level, c)
        if at.left == 1 or c.beam:
            prepare(columns, c.rows, memo)
        total, rest, others, need = 0.0, 1.0, 0.0, -np.inf
        for id in range(IDS):
            if at.known:
                share = np.float64(np.int64(at.queue & U(15)) == id)
            elif at.bag:
                share = np.float64(at.bag >> id & 1) / popcount(U(at.bag))
            else:
                share = borrow(c.chances, np.float64, IDS)[id]
            if share == 0.0:
                continue
            rest -= share
            if bounded:  # the other pieces are worth `others` at most, so below `need` this one leaves v < alpha
                others = max(rest, 0.0) * upper if rest > ROUNDING else 0.0
                need = (alpha - total - others) / share
            piece, after = c.first + id, node_after(at, id, c)
            best = leaf_value(at.level, piece, -1, c) if at.left == 1 else -np.inf
            for i in range(listed(at, piece, c) if at.left > 1 else 0):
                if bounded and keys[i] + SLACK < max(best, need):
                    best = max(best, keys[i])
                    break
                value, fatal = play(at.level, piece, placements[i], c)
                if not fatal:
                    highest = keys[i] - value if bounded else np.inf
                    best = max(best, value + node(after, highest, max(best, need) - value, c))
            best = c.lost if best == -np.inf else best
            total += share * best
            if bounded and best + SLACK < need:
                return min(total + others, alpha - 2 * SLACK)
        return total

    return node


@cache
def search_kernel(recipe: Recipe, slides: bool, reachable: bool, clears: bool, bound: Kernel) -> Kernel:
    """The decision kernel of a search, see `player.py`; its settings are (the memory of a search, exact).

    Args:
        recipe: the heuristic's; its weights are data.
        slides, reachable: whether placements slide, and whether they are the reachable ones.
        clears: False leaves full rows on the boards of the search; the rules' overflow is then strict.
        bound: None, or a kernel (columns, moves, rows, weights) -> float64. No board reached from `columns` in that
            many more placements has a higher value than it returns, so the search skips placements that cannot matter.

    The module's docstring defines the value of a root placement. Ties go to the lowest action. If all values are -inf,
    it chooses the first legal action. Unless `exact`, only the best value is exact; others may be too low.
    """
    heuristic, list_all = kernels_of(recipe, clears), lister(slides, reachable)
    best_of, prepare, bounded = best_kernel(heuristic.leaf, slides, reachable), heuristic.prepare, bound is not None
    play, leaf_value, listed = _placement_kernels(heuristic, best_of, list_all, clears, bound)
    node = _node_kernel(bounded, prepare, play, leaf_value, listed)

    @kernel
    def decide(state, memory, values, settings):
        contexts, exact = settings
        c, level, queue = contexts[0], np.int64(0), state[QUEUE]
        columns, memo, placements, keys = at_level(level, c)
        values[:] = -np.inf
        copy(columns_in(state), columns)
        prepare(columns, c.rows, memo)
        bag = chances_of(memory, c.distribution, c.drawn, borrow(c.chances, np.float64, IDS))
        root, id = Node(level, queue, c.known, c.depth, bag), np.int64(queue & U(15))
        after, piece = node_after(root, id, c), c.first + id
        best, chosen = -np.inf, np.int64(0)
        prunes = bounded and root.left > 1 and not exact
        for i in range(listed(root, piece, c)):
            placement = placements[i]
            if prunes and keys[i] + SLACK < best:
                break
            if root.left == 1:
                value = leaf_value(level, piece, placement, c)
            else:
                value, fatal = play(level, piece, placement, c)
                if fatal:
                    value = -np.inf
                else:
                    highest = keys[i] - value if bounded else np.inf
                    value += node(after, highest, -np.inf if exact else best - value, c)
            values[action_of(placement)] = value
            if value > best or (value == best and value > -np.inf and action_of(placement) < action_of(chosen)):
                best, chosen = value, placement
        if best == -np.inf:
            list_all(columns, piece, c.rows, placements)
            chosen = placements[0]
        return chosen

    return decide
