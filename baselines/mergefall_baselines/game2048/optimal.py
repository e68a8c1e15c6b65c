"""The player that plays 2048 perfectly, on boards small enough to be solved."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from mergefall.game2048.packed import pack
from mergefall.kernels import kernel
from numpy.typing import NDArray

from mergefall_baselines.game2048.player import Player2048
from mergefall_baselines.game2048.solver import Solution, check_objective, check_size, solve
from mergefall_baselines.game2048.solver_kernels import decision_values

LARGE = 9  # cells from which on solving takes so long that progress is shown


@kernel(variant="optimal")  # of the episode loop compiled around it
def decide(cells, memory, values, table):
    """Fill values[4] by look-up."""
    decision_values(pack(cells, table.rows, table.cols), table, values)


class Optimal(Player2048):
    """Perfect play by dynamic programming: no player has a higher expected score, or chance of making a tile.

    Its values are exact: the expected score from the move to the end of the game, undiscounted, or the probability of
    making the tile. They are those of the game without a ``goal``. Values that differ by rounding alone are equal, and
    ties go to the lowest action. It knows the boards that a game from two new tiles can come to; any other is a
    ValueError.

    The board is solved when the first decision is asked for, once in a process: 2×4 takes seven seconds, 3×3
    a minute and a half and 0.8 GiB of memory.

    Args:
        rows, cols: the environment's, if left out; 2×2, 2×3, 3×2, 2×4, 4×2 or 3×3.
        objective: ``"score"``, or a tile (8, 16 …) to make.
        path: a file that keeps the solution: read if it is there, else written. Worth it for 3×3 (0.5 GB).

    Example:
        >>> Optimal(rows=2, cols=2).values([[2, 3], [1, 0]]).round(3)
        array([  -inf, 51.296,  4.809,   -inf])
    """

    def __init__(
        self,
        rows: int | None = None,
        cols: int | None = None,
        objective: str | int = "score",
        path: str | None = None,
    ) -> None:
        super().__init__(rows, cols)
        check_objective(objective)
        if rows and cols:
            check_size(rows, cols)
        self.objective, self.path = objective, path

    def solution(self, rows: int, cols: int) -> Solution:
        """The solution that decides on boards of this size."""
        check_size(rows, cols)
        return _solution(rows, cols, self.objective, self.path)

    def _make_decider(self, kind: str, rows: int, cols: int) -> tuple[Any, Any]:
        return decide, self.solution(rows, cols).table

    def _values(self, decider: Any, boards: NDArray[np.uint8], memory: NDArray[np.uint64]) -> NDArray[np.float64]:
        return self.solution(*boards.shape[1:]).action_values(boards)


@lru_cache(maxsize=8)
def _solution(rows: int, cols: int, objective: str | int, path: str | None) -> Solution:
    """Solve, or read what was solved before; players of one process share it."""
    large = rows * cols >= LARGE
    if path is None:
        return solve(rows, cols, objective, progress=large)
    if not Path(path).exists():
        if not Path(path).parent.is_dir():
            raise ValueError(f"path={path!r}: there is no folder {str(Path(path).parent)!r} to keep the solution in")
        solution = solve(rows, cols, objective, progress=large)
        solution.save(path)
        return solution
    solution = Solution.load(path)
    found = solution.rows, solution.cols, solution.objective, solution.policy
    if found != (rows, cols, objective, "optimal"):
        raise ValueError(f"{path} holds the solution {found}; expected {(rows, cols, objective, 'optimal')}")
    return solution
