"""The documented heuristics of 2048, for searches, shaping and plots."""

from __future__ import annotations

from mergefall.game2048.heuristics.base import Heuristic
from mergefall.game2048.heuristics.monotone_smooth import MonotoneSmooth
from mergefall.game2048.heuristics.nneonneo import Nneonneo
from mergefall.game2048.heuristics.prairie_fire import PrairieFire
from mergefall.game2048.heuristics.tile_order import TileOrder
from mergefall.typing import Options
from mergefall.weighted import from_spec

HEURISTICS: dict[str, Heuristic] = {h.name: h for h in (TileOrder(), MonotoneSmooth(), PrairieFire(), Nneonneo())}

__all__ = [
    "HEURISTICS",
    "Heuristic",
    "MonotoneSmooth",
    "Nneonneo",
    "PrairieFire",
    "TileOrder",
    "heuristic",
]


def heuristic(spec: str | Options | Heuristic) -> Heuristic:
    """A heuristic from its name, or from a mapping of `name` and weights; default weights: the published ones.

    Raises ValueError for an unknown name or weight.

    Example:
        >>> heuristic({"name": "nneonneo", "sum": -12}).to_json()["sum"]
        -12
        >>> heuristic("snake")
        Traceback (most recent call last):
        ValueError: no heuristic 'snake'; there are tile-order, monotone-smooth, prairie-fire, nneonneo
    """
    return from_spec(Heuristic, HEURISTICS, spec)
