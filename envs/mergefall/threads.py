"""`share`: a loop over pieces of work on several threads, for kernels that release Python's lock.

Compared with Numba's parallel loops, it needs no compiling. It waits only for threads that have begun a piece, so a
busy machine slows it down little. It survives `fork`, after which GNU OpenMP kills a process that uses it.
"""

import os
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")  # a piece of work

_lock = threading.Lock()
_jobs: SimpleQueue[Callable[[], None]] = SimpleQueue()  # for the helper threads of this process
_helpers = 0  # their number


def _forked() -> None:
    """Start afresh in a forked child, which has none of its parent's threads."""
    global _lock, _jobs, _helpers
    _lock, _jobs, _helpers = threading.Lock(), SimpleQueue(), 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


def cores() -> int:
    """The number of cores that this process may use: `PYTHON_CPU_COUNT`, else what system and container grant."""
    if os.environ.get("PYTHON_CPU_COUNT", "").isdecimal():
        return max(1, int(os.environ["PYTHON_CPU_COUNT"]))
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with suppress(OSError, ValueError):  # no Linux, or no limit ("max")
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        count = min(count, max(1, -(-int(quota) // int(period))))
    return count


def _help() -> None:
    while True:
        _jobs.get()()


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
    global _helpers
    left, errors = list(pieces), []

    def help_with(begun: Any, ended: Any) -> None:
        if begun.acquire(blocking=False):  # else `share` has returned, or no longer waits for this helper
            try:
                _drain(work, left)
            except BaseException as error:  # raised in the caller's thread
                errors.append(error)
            finally:
                ended.release()

    helpers = [(threading.Lock(), threading.Lock()) for _ in range(min(threads, len(left)) - 1)]
    with _lock:
        for _ in range(_helpers, len(helpers)):
            threading.Thread(target=_help, daemon=True, name="mergefall").start()
        _helpers = max(_helpers, len(helpers))
    for begun, ended in helpers:
        ended.acquire()
        _jobs.put(partial(help_with, begun, ended))
    try:
        _drain(work, left)
    finally:
        left.clear()
        for begun, ended in helpers:  # no helper works on when this returns or raises
            if not begun.acquire(blocking=False):
                ended.acquire()
    if errors:
        raise errors[0]
