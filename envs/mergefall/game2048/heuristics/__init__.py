"""The documented heuristics of 2048, for searches, shaping and plots, and those that users add."""

from mergefall.game2048.heuristics.base import Heuristic
from mergefall.game2048.heuristics.function import FunctionHeuristic
from mergefall.game2048.heuristics.monotone_smooth import MonotoneSmooth
from mergefall.game2048.heuristics.nneonneo import Nneonneo
from mergefall.game2048.heuristics.prairie_fire import PrairieFire
from mergefall.game2048.heuristics.tile_order import TileOrder
from mergefall.library import Library

HEURISTICS: dict[str, Heuristic] = {h.name: h for h in (TileOrder(), MonotoneSmooth(), PrairieFire(), Nneonneo())}
LIBRARY = Library("2048", Heuristic, HEURISTICS, FunctionHeuristic)
heuristic, register_heuristic = LIBRARY.read, LIBRARY.register

__all__ = [
    "HEURISTICS",
    "LIBRARY",
    "FunctionHeuristic",
    "Heuristic",
    "MonotoneSmooth",
    "Nneonneo",
    "PrairieFire",
    "TileOrder",
    "heuristic",
    "register_heuristic",
]
