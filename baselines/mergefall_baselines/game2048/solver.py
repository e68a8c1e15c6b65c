"""2048 on small boards, solved exactly by dynamic programming over every position that a game can reach.

The random start is two tiles on different cells. `solve` lists the reachable afterstates in layers by the sum of their
tiles, then values them from the last layer back. 3×3 has 388 921 077 states.

Source: the Bellman equation; sizes from 2×2 to 3×3 as in Yamashita, Kaneko & Nakayashiki (2022).
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import numpy as np
from mergefall.game2048 import reference
from mergefall.game2048.packed import line_table, pack
from mergefall.typing import Bytes, Floats, Ints, Kernel, Words

from mergefall_baselines.game2048.player import FORM, Boards
from mergefall_baselines.game2048.solver_kernels import (
    Table,
    canonical,
    decide,
    evaluate_layer,
    half_sum,
    slid,
    spawned,
    state_value,
)
from mergefall_baselines.kernel_player import KernelPlayer

SIZES = ((2, 2), (2, 3), (3, 2), (2, 4), (4, 2), (3, 3))
LARGE = 9  # cells: boards of this size take long to solve, so progress is shown


@lru_cache(maxsize=3)  # the players of a process share tables, of up to 0.8 GiB
def solve(rows: int, cols: int, objective: str | int = "score") -> Table:
    """Value every position of a small board exactly, to the end of the game and undiscounted.

    Args:
        rows, cols: one of 2×2, 2×3, 3×2, 2×4, 4×2 and 3×3.
        objective: ``"score"``, or a tile (4, 8, 16 …): values are the probability of ever making it.

    Raises ValueError for another size or objective.
    """
    check_size(rows, cols)
    goal = check_objective(objective)
    keys, bounds = _reachable(rows, cols)
    table = Table(keys, np.zeros(keys.size), bounds, line_table(cols), line_table(rows), rows, cols, goal)
    for layer in _track(range(bounds.size - 2, 0, -1), rows, cols, "valuing positions"):
        evaluate_layer(layer, table)
    return table


@lru_cache(maxsize=2)  # shared by the objectives of one board
def _reachable(rows: int, cols: int) -> tuple[Words, Ints]:
    """All reachable afterstates, packed, in layers, and where the layers begin."""
    packed = [pack(board.reshape(-1), rows, cols) for board in _starts(rows, cols)[0]]
    starts = np.array([canonical(board, rows, cols) for board in packed], np.uint64)
    layer_of_start = np.array([half_sum(board) for board in packed])
    lines = line_table(cols), line_table(rows)
    layers = [np.zeros(0, np.uint64)] * 2
    count = 2 ** (rows * cols + 1) - 1  # no board is fuller than 4, 8, 16 …, one tile of each
    for layer in _track(range(2, count), rows, cols, "listing positions"):
        new = [spawned(layers[layer - rank], rank, rows, cols) for rank in (1, 2)]
        states = np.unique(np.concatenate([starts[layer_of_start == layer], *new]))
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

    def start_value(self, rows: int, cols: int) -> float:
        """The expected value of games from the random start.

        >>> round(Optimal().start_value(2, 2), 6), round(Optimal(objective=32).start_value(2, 2), 6)
        (66.964149, 0.082887)
        """
        (boards, chances), table = _starts(rows, cols), solve(rows, cols, self.objective)
        packed = [pack(board.reshape(-1), rows, cols) for board in boards]
        return float(chances @ [state_value(board, half_sum(board), table) for board in packed])

    def _make_decider(self, way: Boards, exact: bool) -> tuple[Kernel, Any]:
        return decide, solve(way.rows, way.cols, self.objective)

    def _settle(self, rules: Any, states: Words, values: Floats) -> None:
        if (unknown := np.isnan(values)).any():
            board = rules.observations(states)[unknown.any(axis=1).argmax()].tolist()
            text = reference.to_text(tuple(map(tuple, board)))
            raise ValueError(f"board {text} is not in the table; expected one that a game from two new tiles can reach")
        super()._settle(rules, states, values)
