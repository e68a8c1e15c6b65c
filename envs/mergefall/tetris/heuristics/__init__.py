"""The documented heuristics of Tetris: values for searches, potentials for shaping, terms to look at."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mergefall.library import Library
from mergefall.tetris.heuristics.base import MEMO, Heuristic, Kernels, Memo
from mergefall.tetris.heuristics.controllers import Bcts, Dellacherie, Dt10, Dt20, ElTetris, priority
from mergefall.tetris.heuristics.function import FunctionHeuristic
from mergefall.tetris.heuristics.open_enclosed import OpenEnclosed
from mergefall.tetris.heuristics.two_tetrad import TwoTetrad
from mergefall.typing import Options

HEURISTICS: dict[str, Heuristic] = {
    h.name: h for h in (TwoTetrad(), OpenEnclosed(), Dellacherie(), Bcts(), Dt10(), Dt20(), ElTetris())
}
LIBRARY = Library("tetris", Heuristic, HEURISTICS, FunctionHeuristic)

__all__ = [
    "HEURISTICS",
    "LIBRARY",
    "MEMO",
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


def heuristic(spec: str | Options | Heuristic | Callable[..., Any]) -> Heuristic:
    """A heuristic from a name, from a mapping of `name` and weights, or from a function of a board.

    Args:
        spec: one of

            - a name in `HEURISTICS`; default weights: the published ones.
            - ``"module:name"``, a function or a heuristic in a module that can be imported.
            - a mapping of such a ``name`` and the weights that differ. The one weight of a function is `lines`, what
              each row counts that a placement clears (default: 0).
            - a function: it receives the board after clearing, int64[rows, cols] of 0 and 1, row 0 on top, and returns
              a finite number. Searches call a Python function for each leaf, which is slow, and run a Numba function
              (`numba.njit`) at compiled speed.
            - a `Heuristic`, which is returned.

    Raises ValueError for anything else, and for an unknown name or weight.

    Example:
        >>> heuristic({"name": "bcts", "holes": -14}).to_json()["holes"]
        -14
        >>> heuristic("low")
        Traceback (most recent call last):
        ValueError: no heuristic 'low'; there are two-tetrad, open-enclosed, dellacherie, bcts, dt-10, dt-20, el-tetris, and functions as 'module:name'
    """  # noqa: E501
    return LIBRARY.read(spec)


def register_heuristic(name: str, heuristic: Heuristic | Callable[..., Any]) -> None:
    """Make a heuristic or a function of a board known by a name, wherever heuristics have names.

    Worker processes of `evaluate` and `compare` get what was registered. A registered function may be registered again
    after a change, as a notebook does.

    Args:
        name: without a colon; for a heuristic its class's `name`.
        heuristic: a function of a board int64[rows, cols], see `heuristic`; a `Heuristic`; or a class of them.

    Raises ValueError if the name is taken.

    Example:
        >>> register_heuristic("low", lambda board: -board.any(axis=1).sum())
        >>> HEURISTICS.pop("low").board([[0, 0, 0, 0], [0, 0, 0, 0], [1, 0, 0, 0], [1, 1, 0, 0]])
        -2.0
    """
    LIBRARY.register(name, heuristic)
