"""`share`: a loop over pieces of work on several threads, for kernels that release Python's lock.

Compared with Numba's parallel loops, it needs no compiling. It waits only for threads that have begun a piece, so a
busy machine slows it down little. It survives `fork`, after which GNU OpenMP kills a process that uses it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from itertools import pairwise
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

T = TypeVar("T")  # a piece of work


def cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Share(Generic[T]):
    """One helper's part in a loop. `help` does nothing after `close`; `close` waits for a `help` that has begun.

    `error` is what ended `help` early, None if nothing did.
    """

    def __init__(self, work: Callable[[T], None], left: list[T]) -> None:
        self._work, self._left = work, left
        self._begun, self._done = threading.Lock(), threading.Lock()
        self.error: BaseException | None = None
        self._done.acquire()

    def help(self) -> None:
        if self._begun.acquire(blocking=False):
            try:
                _drain(self._work, self._left)
            except BaseException as error:  # `share` raises it in the caller's thread
                self.error = error
            finally:
                self._done.release()

    def close(self) -> None:
        if not self._begun.acquire(blocking=False):
            self._done.acquire()


class _Crew:
    """The helper threads of this process, which wait for shares."""

    def __init__(self) -> None:
        self._shares: SimpleQueue[_Share[Any]] = SimpleQueue()
        self._lock = threading.Lock()
        self._size = 0

    def call(self, share: _Share[Any], size: int) -> None:
        if self._size < size:
            with self._lock:
                for _ in range(self._size, size):
                    threading.Thread(target=self._help, daemon=True, name="mergefall").start()
                self._size = max(self._size, size)
        self._shares.put(share)

    def _help(self) -> None:
        while True:
            self._shares.get().help()


_crew = _Crew()


def _forked() -> None:
    """Start afresh in a forked child, which has none of its parent's threads."""
    global _crew
    _crew = _Crew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


def ranges(n: int, threads: int) -> list[tuple[int, int]]:
    """Split `range(n)` into at most `threads` consecutive parts (begin, end) for `share`; none is empty unless n is 0.

    >>> ranges(5, threads=2), ranges(1, threads=4)
    ([(0, 2), (2, 5)], [(0, 1)])
    """
    threads = max(1, min(threads, n))
    edges = [n * i // threads for i in range(threads + 1)]
    return list(pairwise(edges))


def _drain(work: Callable[[T], None], left: list[T]) -> None:
    while True:
        try:
            piece = left.pop()  # atomic, so several threads can take from the list
        except IndexError:
            return
        work(piece)


def share(work: Callable[[T], None], pieces: Iterable[T], threads: int) -> None:
    """Call `work(piece)` for every piece, in any order, on up to `threads` threads, the caller's included.

    Returns when all pieces are done. An exception in a thread ends its part. When all have ended, one of the exceptions
    is raised here, the caller's first.

    >>> done = []
    >>> share(done.append, range(10), threads=3)
    >>> sorted(done)
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    """
    left = list(pieces)
    shares = [_Share(work, left) for _ in range(min(threads, len(left)) - 1)]
    for one in shares:
        _crew.call(one, len(shares))
    try:
        _drain(work, left)
    finally:
        for one in shares:  # no helper works on when this returns or raises
            one.close()
    for one in shares:
        if one.error is not None:
            raise one.error
