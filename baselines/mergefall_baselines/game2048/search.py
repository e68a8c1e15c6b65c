"""Shared by the searches of 2048: options, depth rules, and the context and settings of their kernels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from mergefall.game2048.heuristics import Heuristic
from mergefall.game2048.heuristics import heuristic as make_heuristic
from mergefall.game2048.packed import area, line_table
from mergefall.kernels import kernel
from mergefall.words import popcount
from numpy.typing import NDArray

from mergefall_baselines.deepening import seconds_option
from mergefall_baselines.game2048.engines import CONTEXT, tables_of
from mergefall_baselines.game2048.leaves import REAL, SUMS, slid_lines
from mergefall_baselines.game2048.player import FORM, MARGIN, Boards
from mergefall_baselines.kernel_player import KernelPlayer
from mergefall_baselines.table import new_table

TO_THE_END = 255  # own moves left of a search without a depth limit
UNLIMITED, DISTINCT, EMPTIES = 0, -1, -2  # how kernels know depths that are no number
DEPTH_RULES = {None: UNLIMITED, "distinct": DISTINCT, "empties": EMPTIES}
LARGEST_TABLE = 21  # bits: two million entries
LINE = 4  # the longest line of a board in a word


class SearchShape(NamedTuple):
    """The facts about a search that its kernels are compiled for: code for other searches is left out."""

    kind: str  # how boards are held, see `Boards`
    heuristic: type[Heuristic] | None  # None: every leaf is worth 0
    scored: bool  # whether the score of the moves counts

    @property
    def real(self) -> Any:
        """The floating-point type of values."""
        return self.heuristic.real if self.heuristic else np.float64

    @property
    def dead(self) -> float:
        """The value of a board without a legal move."""
        if self.heuristic is None:
            return 0.0
        return getattr(self.heuristic, "dead_scored", self.heuristic.dead) if self.scored else self.heuristic.dead

    @property
    def lowest(self) -> float:
        """A lower bound of the value of every other board."""
        return self.dead if self.heuristic and self.heuristic.floored else -np.inf

    @property
    def by_lines(self) -> bool:
        """Whether `leaves.py` can value the last level: the value is a sum over lines."""
        heuristic = self.heuristic
        return self.kind == "packed" and heuristic is not None and heuristic.line_additive and not self.scored


# The settings of a search's kernels: the address of its context (`engines.CONTEXT`), an empty board, which tells the
# compiler how boards are held, and the order of the root moves.
Settings = tuple[np.uint64, Any, NDArray[np.int64]]


def depth_rule(depth: Any) -> int:
    """The option `depth` as kernels take it: a number of own moves, or one of `DEPTH_RULES`.

    Raises ValueError for anything else.
    """
    if (depth is None or isinstance(depth, str)) and depth in DEPTH_RULES:
        return DEPTH_RULES[depth]
    if isinstance(depth, int) and not isinstance(depth, bool) and 1 <= depth <= MARGIN:
        return depth
    raise ValueError(f"depth={depth!r}; expected 1 to {MARGIN} own moves, 'distinct', 'empties' or None")


@kernel
def own_moves(cells, rule):
    """The depth of a search in own moves: `rule` itself if above 0, else by one of `DEPTH_RULES`."""
    if rule > 0:
        return rule
    if rule == UNLIMITED:
        return TO_THE_END + 1
    empty, seen = 0, 0
    for i in range(cells.size):
        empty += cells[i] == 0
        if cells[i]:
            seen |= 1 << cells[i]
    if rule == EMPTIES:
        return 3 if empty <= 6 else 2 if empty <= 11 else 1
    return max(3, popcount(np.uint64(seen)) - 2) + 1


def order_option(order: Sequence[int] | None) -> NDArray[np.int64]:
    """The option `order`, checked, int64[4]: the four actions, the preferred ones in ties first."""
    actions = np.asarray(range(4) if order is None else order)
    if actions.dtype.kind not in "iu" or actions.ndim != 1 or sorted(actions) != [0, 1, 2, 3]:
        raise ValueError(f"order={order!r} is no order of the actions; expected each of 0, 1, 2, 3 once")
    return actions.astype(np.int64)


def table_bits(cutoff: float) -> int:
    """The size of a search's table: 2**bits entries.

    Under a cut-off p, a search stores fewer than 20 / p afterstates, a fifth of the entries. A larger table than needed
    costs time: the processor's caches do not hold it.
    """
    return min(LARGEST_TABLE, max(10, math.ceil(math.log2(100 / max(cutoff, 1e-300)))))


class Search2048(KernelPlayer):
    """A search to a depth, with a heuristic at its leaves.

    Args:
        heuristic: a name, a mapping with a name and weights, or None: every leaf is worth 0.
        depth: own moves, the root move included; ``"distinct"`` is max(3, distinct tiles − 2) + 1, ``"empties"`` is 3
            with up to 6 empty cells, 2 with up to 11, else 1; None searches to the end of the game, on
            boards of up to 4 cells.
        leaf: ``"afterstate"``, the board that the last own move leaves; ``"state"``, that board with one more tile.
        rewards: whether the score of the moves counts. Default: only with heuristic None.
        order: the order in which root moves are searched; ties go to the first. Default: 0, 1, 2, 3.
        time_limit: seconds for a decision: the search deepens move by move, up to `depth` if that is a number, and the
            last complete depth decides. Two runs may differ. Default: no limit.
        rows, cols: the board's size. Default: the observation's.
    """

    form = FORM
    table: bool | str = False  # options that not every search has
    cutoff: float = 0.0
    exact_cells: int = 4  # `depth=None` searches boards of up to so many cells

    def __init__(
        self,
        heuristic: Any,
        depth: Any,
        leaf: str = "afterstate",
        rewards: bool | None = None,
        order: Sequence[int] | None = None,
        time_limit: float | None = None,
        rows: int | None = None,
        cols: int | None = None,
    ) -> None:
        super().__init__(rows=rows, cols=cols)
        self._order = order_option(order)
        if leaf not in ("afterstate", "state"):
            raise ValueError(f"leaf={leaf!r}; expected 'afterstate' or 'state'")
        self.heuristic = None if heuristic is None else make_heuristic(heuristic)
        self.rule = depth_rule(depth)
        if rewards not in (None, True, False) or isinstance(rewards, int) != isinstance(rewards, bool):
            raise ValueError(f"rewards={rewards!r}; expected True, False or None")
        self.time_limit = seconds_option(time_limit)
        self.state_leaves = leaf == "state"
        self.rewards = self.heuristic is None if rewards is None else bool(rewards)

    def _shape(self, boards: Boards) -> SearchShape:
        return SearchShape(boards.kind, type(self.heuristic) if self.heuristic else None, self.rewards)

    def _settings(self, boards: Boards) -> Settings:
        """Settings with a context and a table of their own."""
        kind, rows, cols = boards
        if self.rule == UNLIMITED and self.time_limit is None and rows * cols > self.exact_cells:
            raise ValueError(
                f"depth=None on {rows}×{cols}: {self.name} searches to the end of the game on boards of up to "
                f"{self.exact_cells} cells; expected a number of own moves, such as depth=3"
            )
        shape, heuristic = self._shape(boards), self.heuristic
        record = np.zeros(1, dtype=CONTEXT)
        record["rows"], record["cols"], record["depth"], record["own_table"] = rows, cols, self.rule, self.table is True
        record["cutoff"], record["state_leaves"] = shape.real(self.cutoff), self.state_leaves
        if heuristic:
            heuristic.check_size(rows, cols)
        weights = heuristic.weight_vector() if heuristic else np.zeros(1)
        record["weights"], record["weight_count"] = self._hold(weights), weights.size
        record["cells"] = self._hold(np.zeros(rows * cols, dtype=np.uint8))
        record["row_lines"] = self._hold(line_table(min(cols, LINE)))
        record["column_lines"] = self._hold(line_table(min(rows, LINE)))
        bits = table_bits(self.cutoff) if self.table and kind != "wide" else 0
        entries = new_table(bits, shape.real)
        record["entries"], record["entry_count"] = self._hold(entries), entries.size
        if kind != "wide":
            record["area"] = area(rows, cols)
        if kind == "packed" and heuristic:
            for i, table in enumerate(tables_of(heuristic)):
                record[f"table{i}"] = self._hold(table)
            if heuristic.line_additive:
                record["slid_lines"] = self._hold(slid_lines(heuristic))
                record["sums"] = self._hold(np.zeros(SUMS, REAL))
        blank = (np.uint64(0),) * rows if kind == "wide" else np.uint64(0)
        return self._hold(record), blank, self._order
