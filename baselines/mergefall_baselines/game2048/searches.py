"""What the searches share: options, depth rules, and the context handed to their kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
from mergefall.game2048.heuristics import heuristic as make_heuristic
from mergefall.game2048.packed import area, line_table
from mergefall.kernels import kernel
from numpy.typing import NDArray

from mergefall_baselines.game2048.base import MARGIN, Player2048
from mergefall_baselines.game2048.engines import CONTEXT, tables_of
from mergefall_baselines.game2048.table import new_table

TO_THE_END = 255  # own moves left of a search without a depth limit
RULES = {None: 0, "distinct": -1, "empties": -2}


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
    tile), rewards (whether the score of the moves counts; False with a heuristic, True without), order, rows, cols.
    """

    def __init__(
        self,
        heuristic: Any,
        depth: Any,
        leaf: str = "afterstate",
        rewards: bool | None = None,
        order: Any = None,
        rows: int | None = None,
        cols: int | None = None,
    ) -> None:
        super().__init__(rows, cols, order)
        if not (depth in RULES if depth is None or isinstance(depth, str) else 1 <= depth <= MARGIN):
            raise ValueError(f"depth={depth!r}; expected 1 to {MARGIN} own moves, 'distinct', 'empties' or None")
        if leaf not in ("afterstate", "state"):
            raise ValueError(f"leaf={leaf!r}; expected 'afterstate' or 'state'")
        self.heuristic = None if heuristic is None else make_heuristic(heuristic)
        self.rule = RULES[depth] if depth is None or isinstance(depth, str) else int(depth)
        self.state_leaves = leaf == "state"
        self.rewards = self.heuristic is None if rewards is None else bool(rewards)
        self.real = self.heuristic.real if self.heuristic else np.float64

    def context(self, kind: str, rows: int, cols: int, table_bits: int = 0, cutoff: float = 0.0) -> tuple[Any, Any]:
        """The address of a search's context, which this player keeps alive, and an empty board. One for each thread."""
        record = np.zeros(1, dtype=CONTEXT)

        def address(array: NDArray[Any]) -> int:
            self._held.append(array)
            return array.ctypes.data

        heuristic = self.heuristic
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
        record["leaves"] = address(np.zeros(32, dtype=self.real))
        record["entries"], record["entry_count"] = address(entries), entries.size
        record["cutoff"], record["rewards"] = self.real(cutoff), self.rewards
        record["state_leaves"] = self.state_leaves
        return np.uint64(address(record)), (np.uint64(0),) * rows if kind == "wide" else np.uint64(0)
