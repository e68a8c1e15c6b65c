"""The documented heuristics of Tetris: values for searches, potentials for shaping, terms to look at."""

from mergefall.library import Library
from mergefall.tetris.heuristics.attack import Attack
from mergefall.tetris.heuristics.base import MEMO, Heuristic, Kernels, Memo
from mergefall.tetris.heuristics.controllers import Bcts, Dellacherie, Dt10, Dt20, ElTetris, priority
from mergefall.tetris.heuristics.function import FunctionHeuristic
from mergefall.tetris.heuristics.open_enclosed import OpenEnclosed
from mergefall.tetris.heuristics.two_tetrad import TwoTetrad

HEURISTICS: dict[str, Heuristic] = {
    h.name: h for h in (TwoTetrad(), OpenEnclosed(), Dellacherie(), Bcts(), Dt10(), Dt20(), ElTetris(), Attack())
}
LIBRARY = Library("tetris", Heuristic, HEURISTICS, FunctionHeuristic)
heuristic, register_heuristic = LIBRARY.read, LIBRARY.register

__all__ = [
    "HEURISTICS",
    "LIBRARY",
    "MEMO",
    "Attack",
    "Bcts",
    "Dellacherie",
    "Dt10",
    "Dt20",
    "ElTetris",
    "FunctionHeuristic",
    "Heuristic",
    "Kernels",
    "Memo",
    "OpenEnclosed",
    "TwoTetrad",
    "heuristic",
    "priority",
    "register_heuristic",
]
