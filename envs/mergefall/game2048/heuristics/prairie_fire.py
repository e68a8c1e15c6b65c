"""`prairie-fire`: how clustered or broken up a board is (the cluster note); weights may change over a game."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mergefall.game2048.heuristics.base import MAX_RANK, Heuristic
from mergefall.game2048.heuristics.prairie_packed import packed_tables, value_of_packed
from mergefall.game2048.heuristics.prairie_terms import TERMS, terms_of_cells, value_of_cells
from mergefall.weighted import check_weight


@dataclass(frozen=True)
class PrairieFire(Heuristic):
    """Reward large clusters of equal cells and large tiles, punish many clusters.

    The utility that the note's author settled on: `reward` (Σ over ranks of 1.5^largest cluster), `penalty` (Σ over
    ranks of 3^number of clusters), both with empty cells as a rank, and `bonus` for the largest tile (256 10, 512 20,
    1024 50, 2048 100 … 16384 and up 800). `to_move` makes no difference.

    The note's other ideas have weight 0 unless told. Over clusters of tiles: `cluster_size` (Σ size of those of 2 and
    more), `fragments` (−Σ over ranks of clusters less one), `shape` (−Σ turns), `neighbours` (touching pairs of
    clusters one rank apart). Over tiles: `large` (Σ rank), `low` (−those 4 ranks or more below the largest), `cliffs`
    (−neighbouring pairs 4 ranks or more apart), `checkerboard` (−2×2 blocks without an equal neighbouring pair),
    `gap_merges` (equal pairs in a line with empty cells, and nothing else, between). Over empty cells:
    `zero_fragments` (−clusters beyond the first).

    `stages` lets the weights change over a game: (rank, weights) pairs in ascending order. From that rank of the
    largest tile on, until the next stage, these weights replace the base ones.

    Source: the cluster note and the utility of aabs/edx-ai-week4-project (2017), ranked by the raw value, since the
    program's sigmoid saturates, and with the bonus given once.

    Example:
        >>> fire = PrairieFire(stages=((11, {"penalty": -2, "cliffs": 1}),))
        >>> fire.at(10).penalty, fire.at(12).penalty
        (-1.0, -2)
        >>> PrairieFire()([[1, 1, 2], [0, 1, 2]])
        -1.875
    """

    name: ClassVar[str] = "prairie-fire"
    term_names: ClassVar[tuple[str, ...]] = TERMS
    dead: ClassVar[float] = -1e9
    terms_kernel = staticmethod(terms_of_cells)
    cells_kernel = staticmethod(value_of_cells)
    packed_kernel = staticmethod(value_of_packed)

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

    def at(self, top: int) -> PrairieFire:
        """The heuristic without stages that holds while the largest tile has rank `top`."""
        current: Mapping[str, float] = {}
        for rank, weights in self.stages:
            if rank <= top:
                current = weights
        return replace(self, stages=(), **current)

    def weight_vector(self) -> NDArray[np.float64]:
        """For each stage, the base being the first, the rank it begins at and the weights: float64[14·(1 + stages)]."""
        vector: list[float] = []
        for rank in (0, *(rank for rank, _ in self.stages)):
            now = self.at(rank)
            vector += [rank, *(getattr(now, term) for term in TERMS)]
        return np.array(vector, dtype=np.float64)

    def tables(self) -> tuple[NDArray[np.int64], NDArray[np.uint16]]:
        """What burns in each set of cells, int64[65536], and what lies on each line, uint16[65536]; for any weights."""
        return packed_tables()

    def to_json(self) -> dict[str, Any]:
        return super().to_json() | {"stages": [[rank, dict(weights)] for rank, weights in self.stages]}


def _checked_stages(stages: Any) -> tuple[tuple[int, dict[str, float]], ...]:
    """Stages as (rank, weights), in ascending order of ranks from 1 up; ValueError for anything else."""
    if not isinstance(stages, list | tuple):
        raise ValueError(f"stages of prairie-fire are {stages!r}; expected pairs (rank of the largest tile, weights)")
    checked: list[tuple[int, dict[str, float]]] = []
    for stage in stages:
        if not isinstance(stage, list | tuple) or len(stage) != 2 or not isinstance(stage[1], Mapping):
            raise ValueError(f"stage {stage!r} of prairie-fire; expected (rank of the largest tile, weights by name)")
        rank, weights = stage
        if type(rank) is not int or not 1 <= rank <= MAX_RANK or (checked and rank <= checked[-1][0]):
            raise ValueError(f"stage of prairie-fire from rank {rank!r}; expected ascending ranks from 1 to {MAX_RANK}")
        for name, weight in weights.items():
            if name not in TERMS:
                raise ValueError(f"prairie-fire has no weight {name!r}; a stage can replace {', '.join(TERMS)}")
            check_weight("prairie-fire", name, weight)
        checked.append((rank, dict(weights)))
    return tuple(checked)
