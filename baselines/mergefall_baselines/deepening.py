"""Iterative deepening: search deeper move by move until the time is up."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from mergefall.checks import number
from mergefall.typing import Array

DEEPEST = 64  # own moves, where the search itself has no limit


def seconds_option(time_limit: Any) -> float | None:
    """The option `time_limit`, checked: seconds for a decision, or None; raises ValueError for anything else."""
    return None if time_limit is None else number("time_limit", time_limit, above=0, most=threading.TIMEOUT_MAX)


def deepen(
    search: Callable[[], Any], seconds: float, record: Array, memory: Array, values: Array, actions: Array
) -> None:
    """Search 1, 2, 3 … moves deep until the time is up; leaves the results of the last complete search.

    Args:
        search: reads its depth from ``record["depth"]``, updates `memory`, and writes `values` and `actions`. It
            returns at once when ``record["stop"]`` is set.
        seconds: for all searches together.
        record: the context that the search's kernels read; its `depth` is the deepest search, if above 0.
    """
    deepest, before = int(record["depth"][0]), memory.copy()
    record["stop"], record["depth"] = 0, 1
    timer = threading.Timer(seconds, record.__setitem__, ("stop", 1))
    try:
        search()
        if np.isfinite(values).sum() < 2:  # no choice
            return
        timer.start()
        for depth in range(2, (deepest if deepest > 0 else DEEPEST) + 1):
            record["depth"], last = depth, (values.copy(), actions.copy())
            memory[:] = before
            search()
            if record["stop"][0]:
                values[:], actions[:] = last
                break
    finally:
        timer.cancel()
        record["depth"] = deepest
