"""The documented heuristics of 2048, for searches, shaping and plots, and those that users add."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mergefall.game2048.heuristics.base import Heuristic
from mergefall.game2048.heuristics.function import FunctionHeuristic
from mergefall.game2048.heuristics.monotone_smooth import MonotoneSmooth
from mergefall.game2048.heuristics.nneonneo import Nneonneo
from mergefall.game2048.heuristics.prairie_fire import PrairieFire
from mergefall.game2048.heuristics.tile_order import TileOrder
from mergefall.library import Library
from mergefall.typing import Options

HEURISTICS: dict[str, Heuristic] = {h.name: h for h in (TileOrder(), MonotoneSmooth(), PrairieFire(), Nneonneo())}
LIBRARY = Library("2048", Heuristic, HEURISTICS, FunctionHeuristic)

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


def heuristic(spec: str | Options | Heuristic | Callable[..., Any]) -> Heuristic:
    """A heuristic from a name, from a mapping of `name` and weights, or from a function of a board.

    Args:
        spec: one of

            - a name in `HEURISTICS`; default weights: the published ones.
            - ``"module:name"``, a function or a heuristic in a module that can be imported.
            - a mapping of such a ``name`` and the weights that differ.
            - a function: it receives ranks, int64[rows, cols] (log2 of the tiles, 0 for empty cells), and returns a
              finite number. Searches call a Python function for each leaf, which is slow, and run a Numba function
              (`numba.njit`) at compiled speed.
            - a `Heuristic`, which is returned.

    Raises ValueError for anything else, and for an unknown name or weight.

    Example:
        >>> heuristic({"name": "nneonneo", "sum": -12}).to_json()["sum"]
        -12
        >>> heuristic(lambda board: (board == 0).sum())([[1, 0], [0, 0]])
        3.0
        >>> heuristic("snake")
        Traceback (most recent call last):
        ValueError: no heuristic 'snake'; there are tile-order, monotone-smooth, prairie-fire, nneonneo, and functions as 'module:name'
    """  # noqa: E501
    return LIBRARY.read(spec)


def register_heuristic(name: str, heuristic: Heuristic | Callable[..., Any]) -> None:
    """Make a heuristic or a function of a board known by a name, wherever heuristics have names.

    Worker processes of `evaluate` and `compare` get what was registered. A registered function may be registered again
    after a change, as a notebook does.

    Args:
        name: without a colon; for a heuristic its class's `name`.
        heuristic: a function of ranks int64[rows, cols], see `heuristic`; a `Heuristic`; or a class of them.

    Raises ValueError if the name is taken.

    Example:
        >>> register_heuristic("empty-cells", lambda board: (board == 0).sum())
        >>> HEURISTICS.pop("empty-cells")([[1, 0], [0, 0]])
        3.0
    """
    LIBRARY.register(name, heuristic)
