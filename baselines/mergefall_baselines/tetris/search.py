"""What the tree searches of Tetris share: their options, and their memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from mergefall.checks import choice, integer, number
from mergefall.tetris.heuristics import MEMO, Heuristic
from mergefall.tetris.heuristics import heuristic as make_heuristic
from mergefall.tetris.rules import Rules
from numpy.typing import NDArray

from mergefall_baselines.deepening import seconds_option
from mergefall_baselines.kernel_player import KernelPlayer
from mergefall_baselines.table import new_table
from mergefall_baselines.tetris.context import CONTEXT, LISTED
from mergefall_baselines.tetris.memory import IDS, bits_of, distribution_index, distribution_option
from mergefall_baselines.tetris.player import FORM, ranks_of
from mergefall_baselines.tetris.search_kernels import NoHeuristic, SearchSettings, SearchShape, search_kernel

MOST_MOVES = 16  # own moves that a search looks ahead at most
SMALL_TABLE, LARGE_TABLE = 14, 18  # bits: entries for the chance nodes of a search of three moves, and of more


class TetrisSearch(KernelPlayer):
    """A search to a depth with a heuristic.

    `search_kernels.py` defines the values; `Expectimax` describes the options. A subclass chooses which of them it has.
    """

    form = FORM
    two_kernels = True  # `exact` is a setting
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
        order: Sequence[int] | None = None,
        near_top: int | None = None,
        time_limit: float | None = None,
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
        self.rewards = self.heuristic is None
        self.order = order
        self.near_top = 0 if near_top is None else integer("near_top", near_top, 0)
        self.time_limit = seconds_option(time_limit)
        self.state_leaves = choice("leaf", leaf, ("afterstate", "state")) == "state"

    @property
    def sees_next(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether the search goes beyond the current piece."""
        return self.depth > 1 or self.state_leaves

    def _make_decider(self, rules: Rules, exact: bool) -> tuple[Any, SearchSettings]:
        heuristic = self.heuristic or NoHeuristic()
        slides = rules.placements == "slide"
        bound = self.bound() if self.bound else None
        shape = SearchShape(type(heuristic), slides, self.clears, self.state_leaves, bound)
        known = 1 + rules.preview
        depth = min(self.depth, known) if self.only_known else self.depth
        distribution, ranks = distribution_index(self.distribution, rules), self._ranks(rules)
        ctx = self._new_context(rules, heuristic, depth)
        return search_kernel(shape), SearchSettings(ctx, known, distribution, self.near_top, exact, ranks)

    def _ranks(self, rules: Rules) -> NDArray[np.int64]:
        """The place of each action in the order of ties, int64[n_actions]."""
        return ranks_of(self.order, rules.n_actions)

    def _new_context(self, rules: Rules, heuristic: Heuristic, depth: int) -> np.uint64:
        """The address of the memory for a search."""
        heuristic.check_size(rules.rows, rules.cols)
        record, cols, levels, pieces = np.zeros(1, CONTEXT), rules.cols, depth + 1 + self.state_leaves, rules.piece_set
        weights = heuristic.weight_vector()
        entries = new_table(self._table_bits(depth, 1 + rules.preview), np.float64)
        record["depth"] = depth
        record["cols"], record["rows"], record["clear_first"] = cols, rules.rows, rules.overflow == "clear_first"
        record["first"], record["drawn"] = pieces.first, bits_of(pieces.drawn)
        record["weights"], record["weight_count"] = self._hold(weights), weights.size
        record["columns"] = self._hold(np.zeros((levels, cols), dtype=np.uint64))
        record["memos"] = self._hold(np.zeros((levels, MEMO), dtype=np.uint64))
        record["placements"] = self._hold(np.zeros((levels, LISTED * cols), dtype=np.int64))
        record["keys"] = self._hold(np.zeros((levels, LISTED * cols)))
        record["scratch"] = self._hold(np.zeros(cols, dtype=np.uint64))
        record["chances"] = self._hold(np.zeros(IDS))
        record["entries"], record["entry_count"] = self._hold(entries), entries.size
        record["boards"] = self._hold(np.zeros((entries.size, cols + 2), dtype=np.uint64))
        record["beam"], record["cutoff"], record["lost"] = self.beam, self.cutoff, self.lost
        return self._hold(record)

    def _table_bits(self, depth: int, known: int) -> int:
        """The size of the table; 0 if no chance node comes before the last own move, for then no node repeats."""
        if not self.table or depth <= known or depth < 3:
            return 0
        return SMALL_TABLE if depth == 3 else LARGE_TABLE
