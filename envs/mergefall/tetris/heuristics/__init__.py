"""The documented heuristics of Tetris: values for searches, potentials for shaping, terms to look at."""

from __future__ import annotations

from mergefall.tetris.heuristics.base import MEMO, Heuristic, Kernels
from mergefall.tetris.heuristics.controllers import Bcts, Dellacherie, Dt10, Dt20, ElTetris, priority
from mergefall.tetris.heuristics.open_enclosed import OpenEnclosed
from mergefall.tetris.heuristics.two_tetrad import TwoTetrad
from mergefall.typing import Options
from mergefall.weighted import from_spec

HEURISTICS: dict[str, Heuristic] = {
    h.name: h for h in (TwoTetrad(), OpenEnclosed(), Dellacherie(), Bcts(), Dt10(), Dt20(), ElTetris())
}

__all__ = [
    "HEURISTICS",
    "MEMO",
    "Bcts",
    "Dellacherie",
    "Dt10",
    "Dt20",
    "ElTetris",
    "Heuristic",
    "Kernels",
    "OpenEnclosed",
    "TwoTetrad",
    "heuristic",
    "priority",
]


def heuristic(spec: str | Options | Heuristic) -> Heuristic:
    """A heuristic from its name, or from a mapping of `name` and the weights that differ from the published ones.

    Raises ValueError for an unknown name or weight.

    Example:
        >>> heuristic({"name": "bcts", "holes": -14}).to_json()["holes"]
        -14
        >>> heuristic("low")
        Traceback (most recent call last):
        ValueError: no heuristic 'low'; there are two-tetrad, open-enclosed, dellacherie, bcts, dt-10, dt-20, el-tetris
    """
    return from_spec(Heuristic, HEURISTICS, spec)
