"""What the searches share: options, depth rules, and the context handed to their kernels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from mergefall.game2048.heuristics import heuristic as make_heuristic
from mergefall.game2048.packed import area, line_table
from mergefall.kernels import kernel
from numpy.typing import NDArray

from mergefall_baselines.deepening import deepen, seconds_option
from mergefall_baselines.game2048.engines import CONTEXT, tables_of
from mergefall_baselines.game2048.leaves import REAL, SUMS, slid_lines
from mergefall_baselines.game2048.player import MARGIN, Player2048, is_count
from mergefall_baselines.player import Trajectory, play_in_env
from mergefall_baselines.table import new_table

TO_THE_END = 255  # own moves left of a search without a depth limit
RULES = {None: 0, "distinct": -1, "empties": -2}


def depth_rule(depth: Any) -> int:
    """A `depth` option as kernels take it: a number of own moves, or one of `RULES`; raises ValueError."""
    if (depth is None or isinstance(depth, str)) and depth in RULES:
        return RULES[depth]
    if isinstance(depth, int) and is_count(depth) and depth <= MARGIN:
        return depth
    raise ValueError(f"depth={depth!r}; expected 1 to {MARGIN} own moves, 'distinct', 'empties' or None")


@kernel
def own_moves(cells, rule):
    """Depth of a search in own moves under a rule: a number above 0 is the depth itself, else see `RULES`."""
    if rule > 0:
        return rule
    if rule == 0:
        return TO_THE_END + 1
    empty, seen = 0, 0
    for i in range(cells.size):
        empty += cells[i] == 0
        if cells[i]:
            seen |= 1 << cells[i]
    if rule == -2:
        return 3 if empty <= 6 else 2 if empty <= 11 else 1
    distinct = 0
    while seen:
        seen &= seen - 1
        distinct += 1
    return max(3, distinct - 2) + 1


class Search2048(Player2048):
    """A search to a depth, with a heuristic at its leaves.

    Options: heuristic (a name, a mapping with a name and weights, or None for exact search), depth (own moves, the
    root move included; ``distinct``, ``empties`` or None, to the end), leaf (``afterstate``, or ``state`` with one more
    tile), rewards (whether the score of the moves counts; False with a heuristic, True without), order (in which root
    moves are searched; ties go to the first), time_limit (seconds a decision: the search deepens move by move, up to
    `depth` if that is a number, until they are up; no two runs need agree), rows, cols (the environment's).
    """

    def __init__(
        self,
        heuristic: Any,
        depth: Any,
        leaf: str = "afterstate",
        rewards: bool | None = None,
        order: Any = None,
        time_limit: float | None = None,
        rows: int | None = None,
        cols: int | None = None,
    ) -> None:
        super().__init__(rows, cols, order)
        if leaf not in ("afterstate", "state"):
            raise ValueError(f"leaf={leaf!r}; expected 'afterstate' or 'state'")
        self.heuristic = None if heuristic is None else make_heuristic(heuristic)
        self.rule = depth_rule(depth)
        if rewards not in (None, True, False) or isinstance(rewards, int) != isinstance(rewards, bool):
            raise ValueError(f"rewards={rewards!r}; expected True, False or None")
        self.time_limit = seconds_option(time_limit)
        self.state_leaves = leaf == "state"
        self._records: dict[int, NDArray[np.void]] = {}
        self.rewards = self.heuristic is None if rewards is None else bool(rewards)
        self.real = self.heuristic.real if self.heuristic else np.float64

    def play(
        self, env_id: str, seed: int, env_kwargs: Mapping[str, Any] | None = None, max_episode_steps: int | None = None
    ) -> Trajectory:
        if self.time_limit is None:
            return super().play(env_id, seed, env_kwargs, max_episode_steps)
        return play_in_env(self.with_rules(env_kwargs or {}), env_id, seed, env_kwargs, max_episode_steps)

    def _decide(self, decider: Any, kind: str, ranks: Any, memory: Any, values: NDArray[np.float64]) -> None:
        if self.time_limit is None:
            super()._decide(decider, kind, ranks, memory, values)
        else:
            decide, settings = decider(kind, *ranks.shape)
            record, cells = self._records[int(settings[0])], ranks.reshape(-1)

            def search(depth: int, found: NDArray[np.float64]) -> None:
                decide(cells, memory, found, (*settings[:2], depth, *settings[3:]))

            deepen(search, self.rule if self.rule > 0 else MARGIN, self.time_limit, record, values)

    def context(self, kind: str, rows: int, cols: int, table_bits: int = 0, cutoff: float = 0.0) -> tuple[Any, Any]:
        """The address of a search's context, which this player keeps alive, and an empty board. One for each thread."""
        record = np.zeros(1, dtype=CONTEXT)

        def address(array: NDArray[Any]) -> int:
            self._held.append(array)
            return array.ctypes.data

        heuristic = self.heuristic
        if heuristic:
            heuristic.check_size(rows, cols)
        tables = tables_of(heuristic) if heuristic and kind == "packed" else ()
        weights = heuristic.weight_vector() if heuristic else np.zeros(1)
        entries = new_table(0 if kind == "wide" else table_bits, self.real)
        record["rows"], record["cols"], record["area"] = rows, cols, area(rows, cols) if kind != "wide" else 0
        record["row_lines"] = address(line_table(min(cols, 4)))
        record["column_lines"] = address(line_table(min(rows, 4)))
        for i, table in enumerate(tables):
            record[f"table{i}"] = address(table)
        record["weights"], record["weight_count"] = address(weights), weights.size
        record["cells"] = address(np.zeros(rows * cols, dtype=np.uint8))
        if heuristic and heuristic.line_additive and kind == "packed":
            record["slid_lines"], record["sums"] = address(slid_lines(heuristic)), address(np.zeros(SUMS, REAL))
        record["entries"], record["entry_count"] = address(entries), entries.size
        record["cutoff"] = self.real(cutoff)
        record["state_leaves"] = self.state_leaves
        self._records[record.ctypes.data] = record
        return np.uint64(record.ctypes.data), (np.uint64(0),) * rows if kind == "wide" else np.uint64(0)
