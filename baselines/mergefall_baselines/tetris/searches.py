"""What the tree searches of Tetris share: options, and the memory handed to their kernels."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
from mergefall.checks import choice, integer
from mergefall.tetris.heuristics import MEMO
from mergefall.tetris.heuristics import heuristic as make_heuristic
from mergefall.tetris.placements import action_of
from mergefall.tetris.rules import Rules
from mergefall.threads import share
from numpy.typing import NDArray

from mergefall_baselines.deepening import deepen, seconds_option
from mergefall_baselines.player import Trajectory, check_values, play_in_env
from mergefall_baselines.table import new_table
from mergefall_baselines.tetris.context import CONTEXT
from mergefall_baselines.tetris.memory import DISTRIBUTIONS, IDS, OF_RANDOMIZER, distribution_option
from mergefall_baselines.tetris.player import TetrisPlayer, ranks_of
from mergefall_baselines.tetris.search import MOST_MOVES, Nothing, search_kernel

SMALL_TABLE, LARGE_TABLE = 14, 18  # bits: entries for the chance nodes of a search of three moves, and of more


class TetrisSearch(TetrisPlayer):
    """A search to a depth with a heuristic; see `search.py` for the value it denotes, and subclasses for options."""

    clears = True  # whether full rows are cleared within the search
    bound: Any = None  # see `search_kernel`
    only_known = False  # whether it looks no further than the known pieces

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
        order: Any = None,
        near_top: int | None = None,
        time_limit: float | None = None,
        threads: int = 1,
        leaf: str = "afterstate",
        **rules: Any,
    ) -> None:
        super().__init__(**rules)
        self._held: list[NDArray[Any]] = []  # what kernels know by address
        self._records: dict[int, NDArray[np.void]] = {}
        self._contexts: dict[int, list[np.uint64]] = {}  # those of all threads, by the first's
        self.heuristic = None if heuristic is None else make_heuristic(heuristic)
        self.depth = integer("depth", depth, 1, MOST_MOVES)
        self.distribution = distribution_option(distribution)
        self.beam = 0 if beam is None else integer("beam", beam, 1)
        self.cutoff = 0.0 if cutoff is None else cutoff
        if isinstance(cutoff, bool) or not isinstance(self.cutoff, int | float) or not 0 <= self.cutoff < 1:
            raise ValueError(f"cutoff={cutoff!r}; expected a probability from 0 up to 1")
        if not isinstance(table, bool):
            raise ValueError(f"table={table!r}; expected True or False")
        self.table = table
        if lost is not None and (
            isinstance(lost, bool) or not isinstance(lost, int | float) or not math.isfinite(lost)
        ):
            raise ValueError(f"lost={lost!r}; expected a finite number, or None for -inf")
        self.lost = -math.inf if lost is None else lost
        if rewards is not None and not isinstance(rewards, bool):
            raise ValueError(f"rewards={rewards!r}; expected True, False or None")
        self.rewards = self.heuristic is None if rewards is None else rewards
        self.order = order
        self.near_top = 0 if near_top is None else integer("near_top", near_top, 0)
        self.time_limit, self.threads = seconds_option(time_limit), integer("threads", threads, 1)
        if threads > 1 and time_limit is not None:
            raise ValueError(f"threads={threads!r} with time_limit={time_limit!r}; expected one of the two")
        self.state_leaves = choice("leaf", leaf, ("afterstate", "state")) == "state"

    def play(
        self, env_id: str, seed: int, env_kwargs: Mapping[str, Any] | None = None, max_episode_steps: int | None = None
    ) -> Trajectory:
        if self.time_limit is None:
            return super().play(env_id, seed, env_kwargs, max_episode_steps)
        player = self.with_rules(asdict(self.rules_of(env_id, env_kwargs)))
        return play_in_env(player, env_id, seed, env_kwargs, max_episode_steps)

    def _decide(self, rules: Rules, exact: bool, columns: Any, queue: Any, memory: Any, values: Any) -> int:
        if self.threads > 1:
            return self._decide_together(rules, exact, columns, queue, memory, values)
        if self.time_limit is None:
            return super()._decide(rules, exact, columns, queue, memory, values)
        decide, (ctx, deepest, *others) = self.decider(rules, exact)

        def search(depth: int, found: NDArray[np.float64]) -> int:
            return decide(columns, queue, memory, found, (ctx, depth, *others))

        return deepen(search, deepest, self.time_limit, self._records[int(ctx)], values)

    def _decide_together(
        self, rules: Rules, exact: bool, columns: Any, queue: Any, memory: Any, values: NDArray[np.float64]
    ) -> int:
        """The same decision, the root's placements being dealt to the threads; each has a context of its own."""
        decide, (ctx, *others, ranks, _, _) = self.decider(rules, exact)
        parts, chosen = np.empty((self.threads, values.size)), [0] * self.threads

        def search(part: int) -> None:
            mine = self._contexts[int(ctx)][part], *others, ranks, part, self.threads
            chosen[part] = decide(columns, queue, memory, parts[part], mine)

        share(search, range(self.threads), self.threads)
        np.max(parts, axis=0, out=values)  # what a thread does not search is -inf
        check_values(self.name, values)
        best = np.flatnonzero(values == values.max())
        if values[best[0]] == -np.inf:
            return chosen[0]
        first = best[ranks[best].argmin()]
        return next(placement for placement in chosen if action_of.py_func(placement) == first)

    def _make_decider(self, rules: Rules, exact: bool) -> tuple[Any, Any]:
        cls = type(self.heuristic) if self.heuristic else Nothing
        slides = rules.placements == "slide"
        decide = search_kernel(cls, slides, self.clears, self.rewards, self.state_leaves, self.bound)
        known = 1 + rules.preview
        depth = min(self.depth, known) if self.only_known else self.depth
        distribution = DISTRIBUTIONS.index(self.distribution or OF_RANDOMIZER[rules.randomizer])
        contexts = [self._context(rules, depth) for _ in range(self.threads)]
        self._contexts[int(contexts[0])] = contexts
        ranks = ranks_of(self.order, rules.n_actions)
        return decide, (contexts[0], depth, known, distribution, self.near_top, exact, ranks, 0, 1)

    def _context(self, rules: Rules, depth: int) -> np.uint64:
        """The address of a search's context, which this player keeps alive."""
        record = np.zeros(1, dtype=CONTEXT)

        def address(array: NDArray[Any]) -> int:
            self._held.append(array)
            return array.ctypes.data

        cols, levels = rules.cols, depth + 1 + self.state_leaves
        weights = self.heuristic.weight_vector() if self.heuristic else np.zeros(1)
        entries = new_table(self._table_bits(depth, 1 + rules.preview), np.float64)
        record["cols"], record["rows"] = cols, rules.rows
        record["first"], record["drawn"] = rules.piece_set.first, sum(1 << id for id in rules.piece_set.drawn)
        record["clear_first"] = rules.overflow == "clear_first"
        record["weights"], record["weight_count"] = address(weights), weights.size
        record["columns"] = address(np.zeros((levels, cols), dtype=np.uint64))
        record["memos"] = address(np.zeros((levels, MEMO), dtype=np.uint64))
        record["placements"] = address(np.zeros((levels, 12 * cols), dtype=np.int64))
        record["keys"] = address(np.zeros((levels, 12 * cols)))
        record["scratch"] = address(np.zeros(cols, dtype=np.uint64))
        record["chances"] = address(np.zeros(IDS))
        record["entries"], record["entry_count"] = address(entries), entries.size
        record["boards"] = address(np.zeros((entries.size, cols + 2), dtype=np.uint64))
        record["beam"], record["cutoff"], record["lost"] = self.beam, self.cutoff, self.lost
        self._records[record.ctypes.data] = record
        return np.uint64(record.ctypes.data)

    def _table_bits(self, depth: int, known: int) -> int:
        """The size of the table: nothing is met twice before a chance node that is not the last."""
        chances = depth - known
        if not self.table or chances < 1 or depth < 3:
            return 0
        return SMALL_TABLE if depth == 3 else LARGE_TABLE
