"""Evaluations of Tetris: what a search maximises, what a shaping potential follows, something to look at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mergefall.tetris.evaluations.base import MEMO, Evaluation, Kernels
from mergefall.tetris.evaluations.controllers import Bcts, Dellacherie, Dt10, Dt20, ElTetris, priority
from mergefall.tetris.evaluations.open_enclosed import OpenEnclosed
from mergefall.tetris.evaluations.two_tetrad import TwoTetrad
from mergefall.weighted import from_spec

EVALUATIONS: dict[str, Evaluation] = {
    e.name: e for e in (TwoTetrad(), OpenEnclosed(), Dellacherie(), Bcts(), Dt10(), Dt20(), ElTetris())
}

__all__ = [
    "EVALUATIONS",
    "MEMO",
    "Bcts",
    "Dellacherie",
    "Dt10",
    "Dt20",
    "ElTetris",
    "Evaluation",
    "Kernels",
    "OpenEnclosed",
    "TwoTetrad",
    "evaluation",
    "priority",
]


def evaluation(spec: str | Mapping[str, Any] | Evaluation) -> Evaluation:
    """An evaluation from its name, or from a mapping of `name` and the weights that are not the published ones.

    Raises ValueError for an unknown name or weight.

    Example:
        >>> evaluation({"name": "bcts", "holes": -14}).to_json()["holes"]
        -14
        >>> evaluation("low")
        Traceback (most recent call last):
        ValueError: no evaluation 'low'; there are two-tetrad, open-enclosed, dellacherie, bcts, dt-10, dt-20, el-tetris
    """
    return from_spec(Evaluation, EVALUATIONS, spec)
