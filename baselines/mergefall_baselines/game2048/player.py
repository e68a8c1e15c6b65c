"""2048 for `KernelPlayer`: how observations become states, and the entry that calls its decision kernels."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from mergefall.checks import array
from mergefall.game2048 import board
from mergefall.game2048.packed import fits
from mergefall.game2048.rules import Rules
from mergefall.kernels import kernel, unowned
from mergefall.typing import Array, Kernel, Observation
from numba import types  # pyright: ignore[reportPrivateImportUsage]
from numpy.typing import NDArray

from mergefall_baselines.entry import call, settings_at
from mergefall_baselines.kernel_player import (
    FORMS,
    GO_ON,
    ILLEGAL,
    OUTGROWN,
    OVER,
    UNDECIDED,
    Form,
    episode_loop,
    has_nonsense,
)
from mergefall_baselines.player import NotFiniteError, check_values

MARGIN = 64  # own moves ahead for which a packed board must hold; only exact searches look further, on small boards
MAX_RANK = 57  # the next ones may merge past int64 on 6×6, where a move makes 18 merges


class Boards(NamedTuple):
    """How a kernel holds boards, and their size; searches by words are in `search.py`, others in `cells.py`."""

    kind: str  # "packed": 4×4 in a word; "small": smaller boards in a word; "wide": any board
    rows: int
    cols: int


def _ways(rules: Rules) -> tuple[Boards, ...]:
    """The ways to hold boards, the fastest first; a game can outgrow all but "wide"."""
    rows, cols = rules.rows, rules.cols
    wide = Boards("wide", rows, cols)
    if rows > 4 or cols > 4:
        return (wide,)
    return Boards("packed" if rows == cols == 4 else "small", rows, cols), wide


@kernel
def pick(values, order):
    """The action of the highest value; ties, and a board without a legal move, go to the first in `order`."""
    best = order[0]
    for i in range(1, 4):
        if values[order[i]] > values[best]:
            best = order[i]
    return best


@kernel
def _turn(state, action):
    gain, _, over, _ = board.step(state, action)
    if gain < 0:  # it would be chosen again, for ever
        return ILLEGAL
    return OVER if over else GO_ON


@cache
def _entry(signature: Any, bounded: bool) -> Kernel:
    decide_type, settings_type = types.FunctionType(signature), types.Tuple((types.uint64, signature.args[-1]))

    @kernel
    def entry(state, memory, values, settings):
        state, memory, values = unowned((state, memory, values))
        rows, cols, _ = board.shape_of(state)
        if bounded and not fits(board.flat_cells(state, rows, cols), rows, cols, MARGIN):
            return OUTGROWN
        decide, own = settings_at(settings, settings_type)
        action = call(decide, decide_type, (state, memory, values, own))
        return UNDECIDED - action if values[action] == -np.inf or has_nonsense(values) else action

    return entry


def _read(name: str, observation: Observation) -> tuple[Array, dict[str, int], bool]:
    """(the ranks, the sizes, whether there is no batch); raises ValueError for anything else."""
    expected = "integer ranks (rows, cols), or a batch (n, rows, cols)"
    ranks = array(f"{name}: observation", observation, expected)
    if ranks.ndim not in (2, 3) or ranks.dtype.kind not in "iu":
        raise ValueError(
            f"{name} got an observation of shape {ranks.shape} and dtype {ranks.dtype}; expected {expected}"
        )
    if ranks.astype(np.uint64).max(initial=0) > MAX_RANK:  # so are ranks below 0
        raise ValueError(f"{name} got ranks from {ranks.min()} to {ranks.max()}; expected 0 to {MAX_RANK}")
    return ranks, {"rows": ranks.shape[-2], "cols": ranks.shape[-1]}, ranks.ndim == 2


def _states(name: str, ranks: Array, rules: Rules) -> NDArray[np.uint64]:
    states = board.new_states(ranks.size // (rules.rows * rules.cols), rules.rows, rules.cols)
    board.cells_of(states, rules.rows, rules.cols)[:] = ranks
    return states


def boards_of(rules: Rules, states: NDArray[np.uint64]) -> NDArray[np.uint8]:
    """The boards in states uint64[n, words], uint8[n, rows, cols]."""
    return np.ascontiguousarray(rules.observations(states))


def _settle(name: str, values: NDArray[np.float64], state: NDArray[np.uint64]) -> None:
    """Raises NotFiniteError if an action is worth NaN or +inf, or all legal actions -inf."""
    check_values(name, values)
    rows, cols, _ = board.shape_of.py_func(state)
    if board.legal_mask(board.flat_cells.py_func(state, rows, cols), rows, cols):
        raise NotFiniteError(f"{name} values every legal action at -inf; expected a finite number")


def _figures(state: NDArray[np.uint64]) -> dict[str, int]:
    rows, cols, _ = board.shape_of.py_func(state)
    return {"score": int(state[board.SCORE]), "max_tile": 1 << int(board.cells_of(state, rows, cols).max())}


FORM = FORMS["2048"] = Form(
    rules=Rules,
    memory_words=1,
    start=board.start,
    loop=episode_loop(_turn, 0),
    shift=0,
    entry=lambda signature, boards: _entry(signature, boards.kind != "wide"),
    ways=_ways,
    read=_read,
    states=_states,
    settle=_settle,
    figures=_figures,
)
