"""2048 on small boards, solved exactly by dynamic programming over every position that a game can reach.

The random start is two tiles on different cells. `solve` lists the reachable afterstates in layers by the sum of their
tiles, then values them from the last layer back. A `Solution` looks values up. 3×3 has 388 921 077 states.

Source: the Bellman equation; sizes from 2×2 to 3×3 as in Yamashita, Kaneko & Nakayashiki (2022).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from mergefall.game2048 import reference
from mergefall.game2048.board import cells_in
from mergefall.game2048.packed import line_table, pack
from mergefall.kernels import kernel
from mergefall.typing import Array, Bytes, Floats, Ints, Kernel, Words
from numpy.typing import ArrayLike

from mergefall_baselines.game2048.player import FORM, Boards, boards_of
from mergefall_baselines.game2048.solver_kernels import (
    Table,
    canonical,
    decision_values,
    evaluate_boards,
    evaluate_layer,
    half_sum,
    slid,
    spawned,
)
from mergefall_baselines.kernel_player import KernelPlayer

SIZES = ((2, 2), (2, 3), (3, 2), (2, 4), (4, 2), (3, 3))
LARGE = 9  # cells: boards of this size take long to solve, so progress is shown


@lru_cache(maxsize=3)  # the players of a process share solutions, of up to 0.8 GiB
def solve(rows: int, cols: int, objective: str | int = "score") -> Solution:
    """Value every position of a small board exactly, to the end of the game and undiscounted.

    Args:
        rows, cols: one of 2×2, 2×3, 3×2, 2×4, 4×2 and 3×3.
        objective: ``"score"``, or a tile (4, 8, 16 …): values are the probability of ever making it.

    Raises ValueError for another size or objective.

    Example:
        >>> round(solve(2, 2).start_value, 6)
        66.964149
        >>> round(solve(2, 2, objective=32).start_value, 6)
        0.082887
    """
    check_size(rows, cols)
    goal = check_objective(objective)
    keys, bounds = _reachable(rows, cols)
    table = Table(keys, np.zeros(keys.size), bounds, line_table(cols), line_table(rows), rows, cols, goal)
    for layer in _track(range(bounds.size - 2, 0, -1), rows, cols, "valuing positions"):
        evaluate_layer(layer, table)
    return Solution(table)


@dataclass(frozen=True, eq=False)
class Solution:
    """The exact value of every position of a small board that a game from the random start can reach.

    Boards are ranks uint8[rows, cols], or a batch uint8[n, rows, cols].

    Raises ValueError for a board that no game can reach.
    """

    table: Table = field(repr=False)

    @cached_property
    def start_value(self) -> float:
        """Expected value over the random start: mean score, or the probability of making the tile."""
        boards, chances = _starts(self.table.rows, self.table.cols)
        return float(self.value(boards) @ chances)

    def value(self, ranks: ArrayLike) -> Any:
        """Value of a board with the player to move, a float64 (batch: float64[n]).

        Example:
            >>> round(float(solve(2, 2).value([[2, 3], [1, 0]])), 6)
            51.295858
        """
        return self._look_up(ranks)[0]

    def action_values(self, ranks: ArrayLike) -> Floats:
        """Value of each action, its own score included, float64[4] (batch: [n, 4]); -inf where illegal.

        Example:
            >>> solve(2, 2).action_values([[2, 3], [1, 0]]).round(3)
            array([  -inf, 51.296,  4.809,   -inf])
        """
        return self._look_up(ranks)[1]

    def _look_up(self, ranks: ArrayLike) -> tuple[Any, Floats]:
        ranks, rows, cols = np.asarray(ranks), self.table.rows, self.table.cols
        if ranks.shape[-2:] != (rows, cols) or ranks.ndim not in (2, 3) or ranks.dtype.kind not in "iu":
            expected = f"integer ranks ({rows}, {cols}), or a batch (n, {rows}, {cols})"
            raise ValueError(f"boards of shape {ranks.shape} and dtype {ranks.dtype}; expected {expected}")
        boards = np.ascontiguousarray(ranks, dtype=np.int64).reshape(-1, rows * cols)
        values, by_action = evaluate_boards(boards, self.table)
        if (unknown := np.isnan(by_action)).any():
            board = boards[unknown.any(axis=1).argmax()].reshape(rows, cols).tolist()
            text = str(board) if np.min(board) < 0 else reference.to_text(tuple(map(tuple, board)))
            raise ValueError(f"board {text} is not in the table; expected one that a game from two new tiles can reach")
        return (values, by_action) if ranks.ndim == 3 else (values[0], by_action[0])


@lru_cache(maxsize=2)  # shared by the objectives of one board
def _reachable(rows: int, cols: int) -> tuple[Words, Ints]:
    """All reachable afterstates, packed, in layers, and where the layers begin."""
    starts = [canonical(pack(board.reshape(-1), rows, cols), rows, cols) for board in _starts(rows, cols)[0]]
    by_layer: dict[int, list[Any]] = {}
    for board in starts:
        by_layer.setdefault(int(half_sum(board)), []).append(board)
    lines = line_table(cols), line_table(rows)
    layers = [np.zeros(0, np.uint64)] * 2
    count = 2 ** (rows * cols + 1) - 1  # no board is fuller than 4, 8, 16 …, one tile of each
    for layer in _track(range(2, count), rows, cols, "listing positions"):
        new = [spawned(layers[layer - rank], rank, rows, cols) for rank in (1, 2)]
        states = np.unique(np.concatenate([np.array(by_layer.get(layer, []), np.uint64), *new]))
        layers.append(np.unique(slid(states, *lines, rows, cols)))
    bounds = np.cumsum([0, *(boards.size for boards in layers)], dtype=np.int64)
    return np.concatenate(layers), bounds


def _starts(rows: int, cols: int) -> tuple[Bytes, Floats]:
    """All different random starts uint8[n, rows, cols] and their probabilities float64[n]."""
    chances: dict[reference.Board, float] = {}
    for one, p in reference.outcomes(((0,) * cols,) * rows):
        for two, q in reference.outcomes(one):
            chances[two] = chances.get(two, 0.0) + p * q
    return np.array(list(chances), dtype=np.uint8), np.array(list(chances.values()))


def check_size(rows: int, cols: int) -> None:
    """Raises ValueError for a board that is too large to be solved."""
    if (rows, cols) not in SIZES:
        sizes = ", ".join(f"{r}×{c}" for r, c in SIZES)
        raise ValueError(
            f"cannot solve 2048 on {rows}×{cols}: too many positions; expected one of {sizes}. On larger boards play "
            "many games from the position, by reset(options={'board': ...}), with a player such as '2048/strongest'"
        )


def check_objective(objective: str | int) -> int:
    """The rank of the objective's tile, 0 for the score; raises ValueError for anything else."""
    if objective == "score":
        return 0
    if not isinstance(objective, int) or objective < 4 or objective & (objective - 1):
        raise ValueError(f"objective={objective!r}; expected 'score' or a tile: 4, 8, 16 …")
    return objective.bit_length() - 1


def _track(layers: range, rows: int, cols: int, doing: str) -> Iterable[int]:
    if rows * cols < LARGE:
        return layers
    from rich.console import Console
    from rich.progress import track

    return track(layers, f"2048 {rows}×{cols}: {doing}", console=Console(stderr=True))


@kernel
def decide(state, memory, values, table):
    decision_values(pack(cells_in(state), table.rows, table.cols), table, values)
    return np.argmax(values)


class Optimal(KernelPlayer):
    """Perfect play by dynamic programming: no player has a higher expected score, or chance of making a tile.

    Values are exact: the undiscounted expected score from the move to the end of the game, or the probability of
    making the tile, in the game without a ``goal``. Values that differ only by rounding are made equal; ties go to the
    lowest action. Raises ValueError for a board that no game from two new tiles can reach.

    The first decision solves the board, once per process: 2×4 takes seven seconds, 3×3 a minute and a half and 0.8 GiB
    of memory.

    Args:
        rows, cols: the board's size: 2×2, 2×3, 3×2, 2×4, 4×2 or 3×3. Default: the observation's.
        objective: ``"score"`` (default), or a tile to make (8, 16 …).

    Example:
        >>> Optimal(rows=2, cols=2).values([[2, 3], [1, 0]]).round(3)
        array([  -inf, 51.296,  4.809,   -inf])
    """

    form = FORM
    plays = {"rows": 2, "cols": 3}  # noqa: RUF012

    def __init__(self, rows: int | None = None, cols: int | None = None, objective: str | int = "score") -> None:
        super().__init__(rows=rows, cols=cols)
        check_objective(objective)
        if rows and cols:
            check_size(rows, cols)
        self.objective = objective
        self.rewards = True if objective == "score" else None  # what its values count, for searches

    def solution(self, rows: int, cols: int) -> Solution:
        return solve(rows, cols, self.objective)

    def _make_decider(self, way: Boards, exact: bool) -> tuple[Kernel, Any]:
        return decide, self.solution(way.rows, way.cols).table

    def _decide(self, rules: Any, states: Array, memory: Array, values: Array, exact: bool) -> Ints:
        values[:] = self.solution(rules.rows, rules.cols).action_values(boards_of(rules, states))  # checks the boards
        return values.argmax(axis=1)
