"""Iterative deepening: search deeper move by move until the time is up."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray


def seconds_option(time_limit: Any) -> float | None:
    """The option `time_limit`, checked: seconds for a decision, or None; raises ValueError for anything else."""
    number = isinstance(time_limit, int | float) and not isinstance(time_limit, bool)
    if time_limit is not None and not (number and 0 < time_limit <= threading.TIMEOUT_MAX):
        raise ValueError(f"time_limit={time_limit!r}; expected seconds above 0")
    return time_limit


def deepen(
    search: Callable[[int, NDArray[np.float64]], Any],
    deepest: int,
    seconds: float,
    record: NDArray[np.void],
    values: NDArray[np.float64],
) -> Any:
    """Search 1, 2, 3 … moves deep until the time is up; returns the result of the last complete search.

    Args:
        search: ``search(depth, values) -> result`` fills the values of the actions. It returns at once when
            ``record["stop"]`` is set.
        deepest: the last depth.
        seconds: for all searches together.
        record: the context that the search's kernels read.
        values: float64[n_actions], filled with the values of the last complete search.
    """
    record["stop"] = 0
    result = search(1, values)
    if np.isfinite(values).sum() < 2:  # no choice
        return result
    timer = threading.Timer(seconds, record.__setitem__, ("stop", 1))
    timer.start()
    deeper = np.empty_like(values)
    try:
        for depth in range(2, deepest + 1):
            found = search(depth, deeper)
            if record["stop"][0]:
                break
            result = found
            values[:] = deeper
    finally:
        timer.cancel()
        timer.join()
    return result
