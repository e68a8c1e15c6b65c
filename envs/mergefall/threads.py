"""`share`: a loop over pieces of work on several threads, for kernels that release Python's lock.

Compared with Numba's parallel loops, it needs no compiling. It waits only for threads that have begun a piece, so a
busy machine slows it down little. It survives `fork`, after which GNU OpenMP kills a process that uses it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")  # a piece of work


@cache
def _helpers(process: int) -> ThreadPoolExecutor:
    """The threads of a process that help `share`; a forked child, which has none of its parent's, gets its own."""
    return ThreadPoolExecutor(64, "mergefall")


def cores() -> int:
    """The number of cores that system and container grant this process."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with suppress(OSError, ValueError):  # no Linux, or no limit ("max")
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        count = min(count, max(1, -(-int(quota) // int(period))))
    return count


def _drain(work: Callable[[T], None], left: list[T]) -> None:
    while True:
        try:
            piece = left.pop()  # atomic, so several threads can take from the list
        except IndexError:
            return
        work(piece)


def share(work: Callable[[T], None], pieces: Iterable[T], threads: int) -> None:
    """Call `work(piece)` for every piece, in any order, on up to `threads` threads, the caller's included.

    Returns when all pieces are done. An exception in a thread ends its part, in the caller's all parts. When all have
    ended, one of the exceptions is raised here, the caller's first.

    >>> done = []
    >>> share(done.append, range(10), threads=3)
    >>> sorted(done)
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    """
    left = list(pieces)
    pool = _helpers(os.getpid())
    helpers = [pool.submit(_drain, work, left) for _ in range(min(threads, len(left)) - 1)]
    try:
        _drain(work, left)
    finally:  # no helper works on when this returns or raises
        left.clear()
        errors = [helper.exception() for helper in helpers if not helper.cancel()]
    for error in filter(None, errors):
        raise error
