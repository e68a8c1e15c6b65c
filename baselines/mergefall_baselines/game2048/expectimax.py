"""Expectimax for 2048: best move against chance."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
from mergefall.kernels import borrow, kernel
from mergefall.threads import share
from numpy.typing import NDArray

from mergefall_baselines.game2048.engines import Engine, count, engine, read
from mergefall_baselines.game2048.leaves import mean_of_best
from mergefall_baselines.game2048.player import is_count
from mergefall_baselines.game2048.searches import TO_THE_END, Search2048, own_moves
from mergefall_baselines.table import entry_type, find, forget, holds, keep

LARGEST_TABLE = 21  # bits: two million entries


def table_bits(cutoff: float) -> int:
    """The size of a search's table: a cut-off p leaves fewer than 20 / p afterstates to store, a fifth of the entries.

    A table that is larger than it need be costs time: the processor's caches do not hold it.
    """
    return LARGEST_TABLE if cutoff == 0 else min(LARGEST_TABLE, max(10, math.ceil(math.log2(100 / cutoff))))


@cache
def expectimax_kernels(kind: str, heuristic: Any, scored: bool) -> tuple[Any, Any]:
    """The search for one way of holding boards and one heuristic class.

    ``root_move(cells, action, settings) -> value`` searches one move, ``decide`` all four, as `base.py` says.
    Settings are (ctx, empty board, depth rule, whether each root move has the table to itself, order).
    """
    real = heuristic.real if heuristic else np.float64
    dead = real(heuristic.dead if heuristic else 0.0)
    floored = heuristic is not None and heuristic.floored
    line_values = kind == "packed" and heuristic is not None and heuristic.line_additive and not scored
    return _compile(engine(kind, heuristic, scored), real, dead, dead if floored else real(-np.inf), line_values)


def _compile(boards: Engine, real: Any, dead: Any, lowest: Any, line_values: bool) -> tuple[Any, Any]:
    _, scored, from_cells, key_of, moves, open_cells, with_tile, evaluate = boards
    two, four = real(0.9), real(0.1)
    entry = entry_type(real)
    U = np.uint64

    @kernel(variant=boards.name)
    def best_leaf(state, ctx):
        """Value of a player's node whose moves lead to leaves."""
        best, legal = lowest, False
        after0, after1, after2, after3, along, across = moves(state, ctx)
        for i in range(4):
            if after0 != state:
                legal = True
                value = real(evaluate(after0, False, ctx))
                if scored:
                    value = real(value + (along if i < 2 else across))
                best = max(best, value)
            after0, after1, after2 = after1, after2, after3
        return best if legal else dead

    @kernel(variant=boards.name)
    def last_chance(board, ctx):
        """Value of an afterstate all of whose successors' moves lead to leaves: `best_leaf`, averaged."""
        c = read(ctx)
        if line_values:
            return mean_of_best(board, c.slid_lines, c.table0, c.sums, lowest, dead)
        cells = open_cells(board, ctx)
        total, empty = real(0.0), 0
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
    def at_once(board, left, probability, ctx):
        """(True, value) of an afterstate that is stored, a leaf, or all of whose successors' moves lead to leaves."""
        c = read(ctx)
        if left == 0:
            return True, leaf(board, ctx)
        if probability < c.cutoff:
            return True, real(evaluate(board, False, ctx))
        key = key_of(board)
        entries = borrow(c.entries, entry, c.entry_count)
        index = find(entries, key)
        if holds(entries, index, key):
            stored = np.int64(entries[index].tag & 255)
            if stored == left or (stored > left and c.cutoff > 0.0):
                return True, entries[index].value
        if c.stop:
            return True, dead
        share = probability / real(count(open_cells(board, ctx)))
        if (left > 1 or c.state_leaves == 0) and (left == 1 or share * two < c.cutoff):
            value = last_chance(board, ctx)
            keep(entries, index, key, value, left)
            return True, value
        return False, dead

    @kernel(variant=boards.name)
    def chance(board, left, probability, ctx):
        """Value of an afterstate after which `left` own moves follow (255: to the end), once `at_once` has not told."""
        c = read(ctx)
        cells = open_cells(board, ctx)
        empty = count(cells)
        share = probability / real(empty)
        plain = left > 1 or c.state_leaves == 0  # a leaf below has no more tile than the afterstate
        below = left - (left != TO_THE_END)
        total = real(0.0)
        while cells:
            bit = cells & (~cells + U(1))
            cells ^= bit
            for rank in range(1, 3):
                weight = two if rank == 1 else four
                state = with_tile(board, bit, rank)
                onward = share * weight
                if plain and onward < c.cutoff:
                    total += best_leaf(state, ctx) * weight
                    continue
                best, legal = lowest, False
                after0, after1, after2, after3, along, across = moves(state, ctx)
                for i in range(4):
                    if after0 != state:
                        legal = True
                        known, later = at_once(after0, below, onward, ctx)
                        if not known:
                            later = chance(after0, below, onward, ctx)
                        if scored:
                            later = real(later + (along if i < 2 else across))
                        best = max(best, later)
                    after0, after1, after2 = after1, after2, after3
                total += (best if legal else dead) * weight
        value = total / real(empty)
        key, entries = key_of(board), borrow(c.entries, entry, c.entry_count)
        keep(entries, find(entries, key), key, value, left)
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
        known, value = at_once(after, left, real(1.0), ctx)
        if not known:
            value = chance(after, left, real(1.0), ctx)
        value = np.float64(value)
        return value + (across if action & 1 else along) if scored else value

    @kernel(variant=boards.name)
    def decide(cells, memory, values, settings):
        c, order = read(settings[0]), settings[4]
        forget(borrow(c.entries, entry, c.entry_count), own_moves(cells, settings[2]))
        for i in range(4):
            values[order[i]] = root_move(cells, order[i], settings)

    return root_move, decide


class Expectimax(Search2048):
    """Expectimax: the best move when each new tile is averaged over.

    Denotes max over moves of the mean over cells and tiles of …, to `depth` own moves; the leaf is the last afterstate.

    Args:
        heuristic: a name, a mapping with a name and weights, or None: leaves are worth 0 and the score counts. With
            ``nneonneo`` no node of the player's is worth less than 0, as in its program: a heuristic that goes below
            (its weight `base` keeps it above) then ties.
        depth: own moves, the root move included; ``"distinct"`` is max(3, distinct tiles − 2) + 1, ``"empties"`` 3 with
            6 empty cells or fewer, 2 with up to 11, else 1; None searches to the end of the game.
        cutoff: an afterstate met with a lower probability is a leaf; None is 1e-4 with ``"distinct"``, else 0.
        table: True keeps values of afterstates for each root move, ``"shared"`` for all four, False none. Without
            cut-off this changes no value. With one, an entry stands for what it was found with, at the same depth or
            nearer the root, whatever its probability now; ``"shared"`` then changes about 3 % of the moves, and is the
            fastest. Boards too large for a word (see `mergefall.game2048.packed`) are searched without.
        order: of the root moves, in which they are searched; ties go to the first. Below the root it is up, down, left,
            right.
        threads: search the root moves of a decision side by side; the values stay the same. Episodes played in the
            compiled loop take one thread.
        time_limit: seconds a decision; the search deepens move by move until they are up.
        leaf: ``"state"`` adds one tile to each leaf, averaged over.
        rewards: whether the score of the moves counts; None: only with heuristic None.

    Source: with ``nneonneo`` and ``"distinct"`` this is github.com/nneonneo/2048-ai move by move, in single precision,
    given its order (0, 2, 3, 1); the tile-order document's d5 is ``tile-order`` to depth 3.

    Example:
        >>> from mergefall_baselines import make
        >>> make("2048/expectimax", heuristic=None, depth=None).values([[1, 1], [2, 0]]).round(3)
        array([  -inf, 64.908, 57.746, 64.908])
    """

    def __init__(
        self,
        heuristic: Any = "nneonneo",
        depth: Any = 3,
        cutoff: float | None = None,
        table: bool | str = True,
        order: Any = None,
        threads: int = 1,
        time_limit: float | None = None,
        leaf: str = "afterstate",
        rewards: bool | None = None,
        rows: int | None = None,
        cols: int | None = None,
    ) -> None:
        super().__init__(heuristic, depth, leaf, rewards, order, time_limit, rows, cols)
        self.cutoff = (1e-4 if depth == "distinct" else 0.0) if cutoff is None else cutoff
        if not isinstance(self.cutoff, int | float) or not 0 <= self.cutoff < 1:
            raise ValueError(f"cutoff={cutoff!r}; expected a probability from 0 up to 1")
        if not isinstance(table, bool) and table != "shared":
            raise ValueError(f"table={table!r}; expected True, False or 'shared'")
        if not is_count(threads) or (threads > 1 and table == "shared"):
            raise ValueError(f"threads={threads!r}, table={table!r}; expected 1 thread or more, and 1 to share a table")
        if threads > 1 and time_limit is not None:
            raise ValueError(f"threads={threads!r} with time_limit={time_limit!r}; expected one of the two")
        self.table, self.threads = table, threads

    def _make_decider(self, kind: str, rows: int, cols: int) -> tuple[Any, Any]:
        _, decide = self._kernels(kind)
        return decide, self._settings(kind, rows, cols)

    def _kernels(self, kind: str) -> tuple[Any, Any]:
        return expectimax_kernels(kind, type(self.heuristic) if self.heuristic else None, self.rewards)

    def _settings(self, kind: str, rows: int, cols: int) -> Any:
        ctx, blank = self.context(kind, rows, cols, table_bits(self.cutoff) if self.table else 0, self.cutoff)
        return ctx, blank, self.rule, self.table is True, self._order

    def _decide(self, decider: Any, kind: str, ranks: Any, memory: Any, values: NDArray[np.float64]) -> None:
        if self.threads == 1:
            return super()._decide(decider, kind, ranks, memory, values)
        root_move, _ = self._kernels(kind)
        settings = self._once(self._settings_each, kind, *ranks.shape)

        def search(action: int) -> None:
            values[action] = root_move(ranks.reshape(-1), action, settings[action])

        share(search, range(4), self.threads)

    def _settings_each(self, kind: str, rows: int, cols: int) -> Any:
        """Settings for each root move, with scratch and a table of its own."""
        return [self._settings(kind, rows, cols) for _ in range(4)]


def greedy(heuristic: Any = None, order: Any = None, rows: int | None = None, cols: int | None = None) -> Expectimax:
    """Greedy: the move with the highest score, or with a heuristic the one that leaves the best afterstate.

    Options: heuristic (see 2048/expectimax), order (of ties), rows, cols.
    """
    return Expectimax(heuristic, depth=1, order=order, rows=rows, cols=cols, table=False)
