"""The player that plays 2048 perfectly, on boards small enough to be solved."""

from __future__ import annotations

from typing import Any

import numpy as np
from mergefall.game2048.packed import pack
from mergefall.kernels import kernel
from mergefall.typing import Array, Kernel
from numpy.typing import NDArray

from mergefall_baselines.game2048.player import FORM, Boards, boards_of
from mergefall_baselines.game2048.solver import Solution, check_objective, check_size, solve
from mergefall_baselines.game2048.solver_kernels import decision_values
from mergefall_baselines.kernel_player import KernelPlayer

LARGE = 9  # cells: boards of this size take long to solve, so progress is shown


@kernel
def decide(cells, memory, values, table):
    """Fill values[4] by look-up; ties go to the lowest action."""
    decision_values(pack(cells, table.rows, table.cols), table, values)
    return np.argmax(values)


class Optimal(KernelPlayer):
    """Perfect play by dynamic programming: no player has a higher expected score, or chance of making a tile.

    Values are exact: the undiscounted expected score from the move to the end of the game, or the probability of
    making the tile, in the game without a ``goal``. Values that differ only by rounding are made equal; ties go to the
    lowest action. Raises ValueError for a board that no game from two new tiles can reach.

    The first decision solves the board, once per process: 2×4 takes seven seconds, 3×3 a minute and a half and 0.8 GiB
    of memory.

    Args:
        rows, cols: 2×2, 2×3, 3×2, 2×4, 4×2 or 3×3. Default: the observation's.
        objective: ``"score"``, or a tile (8, 16 …) to make.

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
        """The solution for boards of this size; raises ValueError for a size that cannot be solved."""
        return solve(rows, cols, self.objective, progress=rows * cols >= LARGE)

    def _make_decider(self, way: Boards, exact: bool) -> tuple[Kernel, Any]:
        return decide, self.solution(way.rows, way.cols).table

    def _decide(self, rules: Any, states: Array, memory: Array, values: Array, exact: bool) -> NDArray[np.int64]:
        boards = boards_of(rules, states)
        values[:] = self.solution(rules.rows, rules.cols).action_values(boards)  # checks the boards
        return values.argmax(axis=1)
