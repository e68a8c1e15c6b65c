"""`prairie-fire`: clusters of equal cells, by size and number (the cluster note); weights may change over a game."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mergefall.checks import integer, known
from mergefall.game2048.heuristics.base import NO_TABLE, Heuristic, filled
from mergefall.game2048.heuristics.prairie_kernels import TERMS, combine, fill_table, terms_of_cells, value_of_packed
from mergefall.game2048.rules import MAX_RANK
from mergefall.typing import Array, Dict, Floats
from mergefall.weighted import Terms


@dataclass(frozen=True)
class PrairieFire(Heuristic):
    """Reward large clusters of equal cells and large tiles, punish many clusters.

    The terms of the note's final utility; the first two count empty cells as a rank:

    - `reward`: Σ over ranks of 1.5^size of the largest cluster.
    - `penalty`: Σ over ranks of 3^number of clusters.
    - `bonus`: 10 for a largest tile of 256, 20 for 512, 50 for 1024, 100 for 2048, and so on; 800 from 16384 on.

    The note's other ideas, whose default weight is 0; with any of them searches take longer. Of clusters of tiles:

    - `cluster_size`: Σ size of clusters of 2 or more cells.
    - `fragments`: −Σ over ranks of (clusters − 1).
    - `shape`: −Σ turns.
    - `neighbours`: touching pairs of clusters one rank apart.

    Of tiles:

    - `large`: Σ rank.
    - `low`: −tiles 4 or more ranks below the largest.
    - `cliffs`: −neighbouring pairs 4 or more ranks apart.
    - `checkerboard`: −2×2 blocks without an equal neighbouring pair.
    - `gap_merges`: equal pairs in a line with only empty cells, at least one, between them.

    Of empty cells:

    - `zero_fragments`: −clusters beyond the first.

    `stages` changes the weights during a game: (rank, weights) pairs in ascending order. While the largest tile has at
    least that rank, and less than the next stage's, these weights replace the base ones. `to_move` is ignored.

    Source: the cluster note and the utility of aabs/edx-ai-week4-project (2017). The value is the raw one, because the
    program's sigmoid saturates, and the bonus is given once.

    Example:
        >>> fire = PrairieFire(stages=((11, {"penalty": -2, "cliffs": 1}),))
        >>> fire.at(10).penalty, fire.at(12).penalty
        (-1.0, -2)
        >>> PrairieFire()([[1, 1, 2], [0, 1, 2]])
        -1.875
    """

    name = "prairie-fire"
    dead = -1e9
    of_board = Terms(TERMS, terms_of_cells)
    combine_kernel = combine
    packed_kernel = value_of_packed

    reward: float = 1.0
    penalty: float = -1.0
    bonus: float = 1.0
    cluster_size: float = 0.0
    fragments: float = 0.0
    large: float = 0.0
    low: float = 0.0
    zero_fragments: float = 0.0
    shape: float = 0.0
    neighbours: float = 0.0
    cliffs: float = 0.0
    checkerboard: float = 0.0
    gap_merges: float = 0.0
    stages: tuple[tuple[int, Mapping[str, float]], ...] = field(default=(), hash=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "stages", _checked_stages(self.stages))

    def at(self, top: int) -> "PrairieFire":
        """The heuristic, without stages, that applies while the largest tile has rank `top`."""
        current: Mapping[str, float] = {}
        for rank, weights in self.stages:
            if rank <= top:
                current = weights
        return replace(self, stages=(), **current)

    def weight_vector(self) -> Floats:
        """The rank at which each stage begins (the base: 0) and its weights, float64[14·(1 + stages)]."""
        vector: list[float] = []
        for rank in (0, *(rank for rank, _ in self.stages)):
            now = self.at(rank)
            vector += [rank, *(getattr(now, term) for term in TERMS)]
        return np.array(vector, dtype=np.float64)

    def tables(self) -> tuple[Array, ...]:
        return *filled(fill_table, (), (1 << 16, np.int64)), NO_TABLE

    def to_json(self) -> Dict:
        return super().to_json() | {"stages": [[rank, dict(weights)] for rank, weights in self.stages]}


def _checked_stages(stages: Any) -> tuple[tuple[int, dict[str, float]], ...]:
    """Stages as (rank, weights) pairs; raises ValueError unless ranks ascend from 1 up and all weights are valid."""
    if not isinstance(stages, list | tuple):
        raise ValueError(f"stages of prairie-fire are {stages!r}; expected pairs (rank of the largest tile, weights)")
    checked: list[tuple[int, dict[str, float]]] = []
    for stage in stages:
        if not isinstance(stage, list | tuple) or len(stage) != 2 or not isinstance(stage[1], Mapping):
            raise ValueError(f"stage {stage!r} of prairie-fire; expected (rank of the largest tile, weights by name)")
        least = checked[-1][0] + 1 if checked else 1  # ranks ascend
        rank, weights = integer("rank of a stage of prairie-fire", stage[0], least, MAX_RANK), dict(stage[1])
        known("a stage of prairie-fire", weights, TERMS)
        PrairieFire(**weights)
        checked.append((rank, weights))
    return tuple(checked)
