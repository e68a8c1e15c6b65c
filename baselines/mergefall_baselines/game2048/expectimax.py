"""Expectimax for 2048: best move against chance.

The kernels of a search call each other from the root down:

- `root_move` values one move of the root, `decide` all four.
- `chance` values an afterstate: the mean over new tiles of the best move after each. It calls itself.
- `at_once` values an afterstate that needs no `chance`: one that is stored, or near enough to the leaves.
- `last_chance` is `chance` where all moves lead to leaves; `best_leaf` is the best of these moves.
- `leaf` values the last afterstate.

`left` is the number of own moves after an afterstate, `TO_THE_END` without a limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from mergefall.interrupt import stopped
from mergefall.kernels import borrow, kernel
from mergefall.typing import Kernel
from mergefall.words import popcount

from mergefall_baselines.game2048.engines import Engine, after_of, can_move, engine, read, score_of
from mergefall_baselines.game2048.leaves import mean_of_best
from mergefall_baselines.game2048.player import Boards, pick
from mergefall_baselines.game2048.search import TO_THE_END, Search2048, SearchShape, own_moves
from mergefall_baselines.table import entry_type, find, forget, holds, keep

U = np.uint64


@cache
def expectimax_kernels(shape: SearchShape) -> tuple[Kernel, Kernel]:
    """``root_move(cells, action, settings) -> value`` of one move, and the decision kernel (see `player.py`)."""
    boards = engine(shape.kind, shape.heuristic, shape.scored)
    best_leaf, entry = _best_leaf(shape, boards), entry_type(shape.real)
    at_once = _at_once(shape, boards, _leaf(shape, boards), _last_chance(shape, boards, best_leaf))
    root_move = _root_move(shape, boards, at_once, _chance(shape, boards, at_once, best_leaf))

    @kernel(variant=boards.name)
    def decide(cells, memory, values, settings):
        ctx, _, order = settings
        c = read(ctx)
        forget(borrow(c.entries, entry, c.entry_count), own_moves(cells, c.depth))
        for i in range(4):
            values[order[i]] = root_move(cells, order[i], settings)
        return pick(values, order)

    return root_move, decide


def _best_leaf(shape: SearchShape, boards: Engine) -> Kernel:
    moves, evaluate, scored = boards.moves, boards.evaluate, shape.scored
    real, dead, lowest = shape.real, shape.real(shape.dead), shape.real(shape.lowest)

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

    return best_leaf


def _last_chance(shape: SearchShape, boards: Engine, best_leaf: Kernel) -> Kernel:
    open_cells, with_tile, by_lines = boards.open_cells, boards.with_tile, shape.by_lines
    real, dead, lowest = shape.real, shape.real(shape.dead), shape.real(shape.lowest)
    two, four = real(0.9), real(0.1)

    @kernel(variant=boards.name)
    def last_chance(board, ctx):
        """Value of an afterstate all of whose successors' moves lead to leaves: `best_leaf`, averaged."""
        c = read(ctx)
        if by_lines:
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

    return last_chance


def _leaf(shape: SearchShape, boards: Engine) -> Kernel:
    moves, open_cells, with_tile, evaluate = boards.moves, boards.open_cells, boards.with_tile, boards.evaluate
    real, dead = shape.real, shape.real(shape.dead)
    two, four = real(0.9), real(0.1)

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
                value = real(evaluate(state, True, ctx)) if can_move(state, moves(state, ctx)) else dead
                total += value * (two if rank == 1 else four)
            cells ^= bit
            empty += 1
        return total / real(empty)

    return leaf


def _at_once(shape: SearchShape, boards: Engine, leaf: Kernel, last_chance: Kernel) -> Kernel:
    open_cells, key_of, evaluate = boards.open_cells, boards.key, boards.evaluate
    real, dead, entry = shape.real, shape.real(shape.dead), entry_type(shape.real)
    two = real(0.9)

    @kernel(variant=boards.name)
    def at_once(board, left, probability, ctx):
        """(True, value) of an afterstate that is stored, a leaf, or all of whose successors' moves lead to leaves.

        Otherwise (False, any value). `probability` is that of the tiles drawn on the way to the afterstate.
        """
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
        share = probability / real(popcount(open_cells(board, ctx)))
        if (left > 1 or c.state_leaves == 0) and (left == 1 or share * two < c.cutoff):
            value = last_chance(board, ctx)
            keep(entries, index, key, value, left)
            return True, value
        return False, dead

    return at_once


def _chance(shape: SearchShape, boards: Engine, at_once: Kernel, best_leaf: Kernel) -> Kernel:
    key_of, moves, open_cells, with_tile = boards.key, boards.moves, boards.open_cells, boards.with_tile
    real, dead, lowest = shape.real, shape.real(shape.dead), shape.real(shape.lowest)
    two, four, scored, entry = real(0.9), real(0.1), shape.scored, entry_type(shape.real)

    @kernel(variant=boards.name)
    def chance(board, left, probability, ctx):
        """Value of an afterstate that `at_once` does not value."""
        if stopped():
            return dead
        c = read(ctx)
        cells = open_cells(board, ctx)
        empty = popcount(cells)
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

    return chance


def _root_move(shape: SearchShape, boards: Engine, at_once: Kernel, chance: Kernel) -> Kernel:
    from_cells, moves, scored = boards.from_cells, boards.moves, shape.scored
    real, entry = shape.real, entry_type(shape.real)

    @kernel(variant=boards.name)
    def root_move(cells, action, settings):
        """Value of one root move; -inf if it is illegal."""
        ctx, blank, _ = settings
        c = read(ctx)
        board = from_cells(blank, cells, c.cols)
        found = moves(board, ctx)
        after = after_of(found, action)
        if after == board:
            return -np.inf
        left = own_moves(cells, c.depth) - 1
        if c.own_table:
            forget(borrow(c.entries, entry, c.entry_count), left)
        known, value = at_once(after, left, real(1.0), ctx)
        if not known:
            value = chance(after, left, real(1.0), ctx)
        value = np.float64(value)
        return value + score_of(found, action) if scored else value

    return root_move


class Expectimax(Search2048):
    """Expectimax: the best move when each new tile is averaged over.

    A *position* is a board with the player to move, an *afterstate* the board that a move leaves. With `d` own moves
    left, their values are

    - ``position(d)`` = max over legal moves of ``score + afterstate(d − 1)``, or the lost value if no move is legal;
    - ``afterstate(d)`` = mean over empty cells of 0.9 ``position(d)`` with a 2 there + 0.1 ``position(d)`` with a 4;
    - ``afterstate(0)`` = the leaf: the heuristic's value of the board, or of the boards with one more tile, averaged.

    `score` counts only with `rewards`. The lost value is the heuristic's `dead`. Without a cut-off, `table`
    and `order` change no value.

    Args:
        heuristic: a name, a mapping with a name and weights, or None: leaves are worth 0 and the score counts. With
            ``nneonneo`` a position is worth at least 0, as in its program. Positions with negative values would
            therefore tie; its weight `base` keeps values positive.
        depth: own moves, the root move included; ``"distinct"`` is max(3, distinct tiles − 2) + 1, ``"empties"`` is 3
            with up to 6 empty cells, 2 with up to 11, else 1; None searches to the end of the game, on boards of up to
            6 cells and with a table, or with a `time_limit`.
        cutoff: an afterstate with a lower probability is a leaf. Default: 1e-4 with ``"distinct"``, else 0.
        table: True is one transposition table for each root move, ``"shared"`` is one for all four, False is none.
            With a cut-off, a stored value is used at its own depth or nearer the leaves, at any probability;
            ``"shared"`` then changes about 3 % of the moves, and is the fastest. Boards that do not fit into a word
            (see `mergefall.game2048.packed`) have no table.
        order: the order in which root moves are searched; ties go to the first. Below the root, moves are searched up,
            down, left, right. Default: 0, 1, 2, 3.
        time_limit: seconds for a decision; the search deepens move by move, and the last complete depth decides.
        leaf: ``"afterstate"``, or ``"state"``: one more tile, averaged over.
        rewards: whether the score of the moves counts. Default: only with heuristic None.
        rows, cols: the board's size. Default: the observation's.

    Source: with ``nneonneo`` and ``"distinct"`` this is github.com/nneonneo/2048-ai move by move, in single precision,
    given its order (0, 2, 3, 1). d5 of the evaluation document (Hanoi capstone project, 2021) is ``tile-order`` to
    depth 3.

    Example:
        >>> from mergefall_baselines import make
        >>> make("2048/expectimax", heuristic=None, depth=None).values([[1, 1], [2, 0]]).round(3)
        array([  -inf, 64.908, 57.746, 64.908])
    """

    exact_cells = 6

    def __init__(
        self,
        heuristic: Any = "nneonneo",
        depth: Any = 3,
        cutoff: float | None = None,
        table: bool | str = True,
        order: Sequence[int] | None = None,
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
        if depth is None and table is False and time_limit is None:
            raise ValueError("depth=None with table=False; expected a table, without which no search reaches the end")
        self.table = table

    def _make_decider(self, rules: Boards, exact: bool) -> tuple[Kernel, Any]:
        _, decide = expectimax_kernels(self._shape(rules))
        return decide, self._settings(rules)
