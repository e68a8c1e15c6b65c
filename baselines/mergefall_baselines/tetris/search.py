"""What the tree searches of Tetris share: their options, and their memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from mergefall.checks import choice, integer, number
from mergefall.tetris.heuristics import MEMO, Heuristic
from mergefall.tetris.heuristics import heuristic as make_heuristic
from mergefall.tetris.placements import action_of
from mergefall.tetris.rules import Rules
from mergefall.threads import share
from mergefall.typing import Array
from numpy.typing import NDArray

from mergefall_baselines.deepening import deepen, seconds_option
from mergefall_baselines.player import check_values
from mergefall_baselines.table import new_table
from mergefall_baselines.tetris.context import CONTEXT, LISTED
from mergefall_baselines.tetris.memory import IDS, bits_of, distribution_index, distribution_option
from mergefall_baselines.tetris.player import TetrisPlayer, ranks_of
from mergefall_baselines.tetris.search_kernels import NoHeuristic, SearchSettings, SearchShape, search_kernel

MOST_MOVES = 16  # own moves that a search looks ahead at most
SMALL_TABLE, LARGE_TABLE = 14, 18  # bits: entries for the chance nodes of a search of three moves, and of more


class TetrisSearch(TetrisPlayer):
    """A search to a depth with a heuristic.

    `search_kernels.py` defines the values; `Expectimax` describes the options. A subclass chooses which of them it has.
    """

    clears = True  # whether full rows are cleared within the search
    bound: Callable[[], Any] | None = None  # makes the bound kernel of its `SearchShape`
    only_known = False  # whether the search ends with the known pieces

    def __init__(
        self,
        heuristic: Any,
        depth: int,
        distribution: str | None = None,
        beam: int | None = None,
        cutoff: float | None = None,
        table: bool = True,
        lost: float | None = None,
        rewards: bool | None = None,
        order: Sequence[int] | None = None,
        near_top: int | None = None,
        time_limit: float | None = None,
        threads: int = 1,
        leaf: str = "afterstate",
        **rules: Any,
    ) -> None:
        super().__init__(**rules)
        self.heuristic: Heuristic | None = None if heuristic is None else make_heuristic(heuristic)
        self.depth = integer("depth", depth, 1, MOST_MOVES)
        self.distribution = distribution_option(distribution)
        self.beam = 0 if beam is None else integer("beam", beam, 1)
        self.cutoff = 0.0 if cutoff is None else cutoff
        if isinstance(cutoff, bool) or not isinstance(self.cutoff, int | float) or not 0 <= self.cutoff < 1:
            raise ValueError(f"cutoff={cutoff!r}; expected a probability from 0 up to 1")
        if not isinstance(table, bool):
            raise ValueError(f"table={table!r}; expected True or False")
        self.table = table
        self.lost = -math.inf if lost is None else number("lost", lost)
        if rewards is not None and not isinstance(rewards, bool):
            raise ValueError(f"rewards={rewards!r}; expected True, False or None")
        self.rewards = self.heuristic is None if rewards is None else rewards
        self.order = order
        self.near_top = 0 if near_top is None else integer("near_top", near_top, 0)
        self.time_limit, self.threads = seconds_option(time_limit), integer("threads", threads, 1)
        if threads > 1 and time_limit is not None:
            raise ValueError(f"threads={threads!r} with time_limit={time_limit!r}; expected one of the two")
        self.state_leaves = choice("leaf", leaf, ("afterstate", "state")) == "state"

    @property
    def sees_next(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether the search goes beyond the current piece."""
        return self.depth > 1 or self.state_leaves

    def _decides_by_kernel(self) -> bool:
        return self.threads == 1 and self.time_limit is None and super()._decides_by_kernel()

    def _decide(self, rules: Rules, exact: bool, columns: Array, queue: np.uint64, memory: Array, values: Any) -> int:
        if self.threads > 1:
            return self._decide_together(rules, exact, columns, queue, memory, values)
        if self.time_limit is None:
            return super()._decide(rules, exact, columns, queue, memory, values)
        decide, settings = self.decider(rules, exact)

        def search(depth: int, found: NDArray[np.float64]) -> int:
            return decide(columns, queue, memory, found, settings._replace(depth=depth))

        return deepen(search, settings.depth, self.time_limit, self._records[int(settings.ctx)], values)

    def _decide_together(
        self, rules: Rules, exact: bool, columns: Array, queue: np.uint64, memory: Array, values: NDArray[np.float64]
    ) -> int:
        """The decision of one thread, made by several: each searches some of the root's placements."""
        decide, settings = self.decider(rules, exact)
        ranks = settings.ranks
        found, chosen = np.empty((self.threads, values.size)), [0] * self.threads

        def search(part: int) -> None:
            ctx = settings.ctx + np.uint64(part * CONTEXT.itemsize)
            mine = settings._replace(ctx=ctx, part=part, parts=self.threads)
            chosen[part] = decide(columns, queue, memory, found[part], mine)

        share(search, range(self.threads), self.threads)
        np.max(found, axis=0, out=values)  # a placement that a thread does not search is -inf there
        self._check_heuristic()
        check_values(self.name, values)
        best = np.flatnonzero(values == values.max())
        if values[best[0]] == -np.inf:
            return chosen[0]
        first = best[ranks[best].argmin()]
        return next(placement for placement in chosen if action_of.py_func(placement) == first)

    def _make_decider(self, rules: Rules, exact: bool) -> tuple[Any, SearchSettings]:
        heuristic = self.heuristic or NoHeuristic()
        slides = rules.placements == "slide"
        bound = self.bound() if self.bound else None
        shape = SearchShape(type(heuristic), slides, self.clears, self.rewards, self.state_leaves, bound)
        known = 1 + rules.preview
        depth = min(self.depth, known) if self.only_known else self.depth
        distribution, ranks = distribution_index(self.distribution, rules), self._ranks(rules)
        ctx = self._new_contexts(rules, heuristic, depth)
        return search_kernel(shape), SearchSettings(ctx, depth, known, distribution, self.near_top, exact, ranks)

    def _ranks(self, rules: Rules) -> NDArray[np.int64]:
        """The place of each action in the order of ties, int64[n_actions]."""
        return ranks_of(self.order, rules.n_actions)

    def _new_contexts(self, rules: Rules, heuristic: Heuristic, depth: int) -> np.uint64:
        """The address of the memory for a search: one context for each thread, side by side."""
        heuristic.check_size(rules.rows, rules.cols)
        records = np.zeros(self.threads, dtype=CONTEXT)
        cols, levels, pieces = rules.cols, depth + 1 + self.state_leaves, rules.piece_set
        for record in records:
            weights = heuristic.weight_vector()
            entries = new_table(self._table_bits(depth, 1 + rules.preview), np.float64)
            record["cols"], record["rows"], record["clear_first"] = cols, rules.rows, rules.overflow == "clear_first"
            record["first"], record["drawn"] = pieces.first, bits_of(pieces.drawn)
            record["weights"], record["weight_count"] = self._address(weights), weights.size
            record["columns"] = self._address(np.zeros((levels, cols), dtype=np.uint64))
            record["memos"] = self._address(np.zeros((levels, MEMO), dtype=np.uint64))
            record["placements"] = self._address(np.zeros((levels, LISTED * cols), dtype=np.int64))
            record["keys"] = self._address(np.zeros((levels, LISTED * cols)))
            record["scratch"] = self._address(np.zeros(cols, dtype=np.uint64))
            record["chances"] = self._address(np.zeros(IDS))
            record["entries"], record["entry_count"] = self._address(entries), entries.size
            record["boards"] = self._address(np.zeros((entries.size, cols + 2), dtype=np.uint64))
            record["beam"], record["cutoff"], record["lost"] = self.beam, self.cutoff, self.lost
        self._records[records.ctypes.data] = records
        return np.uint64(records.ctypes.data)

    def _table_bits(self, depth: int, known: int) -> int:
        """The size of the table; 0 if no chance node comes before the last own move, for then no node repeats."""
        if not self.table or depth <= known or depth < 3:
            return 0
        return SMALL_TABLE if depth == 3 else LARGE_TABLE
