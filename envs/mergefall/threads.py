"""A loop shared by threads: for kernels that let go of Python's lock, called for one piece of the work at a time.

Unlike a parallel loop of Numba's this costs no compiling, waits for nobody who has not begun (so a busy machine slows
it down no more than it must), and survives `fork`, after which GNU OpenMP ends whoever uses it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from queue import SimpleQueue
from typing import Any


def cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Share:
    """One helper's part in a loop: it may begin until the caller has run out of work, and then the caller waits."""

    def __init__(self, work: Callable[[Any], None], left: list[Any]) -> None:
        self._work, self._left = work, left
        self._begun, self._done = threading.Lock(), threading.Lock()
        self._error: BaseException | None = None
        self._done.acquire()

    def help(self) -> None:
        if self._begun.acquire(blocking=False):
            try:
                _drain(self._work, self._left)
            except BaseException as error:  # told to the caller, whose thread it belongs to
                self._error = error
            finally:
                self._done.release()

    def close(self) -> None:
        if not self._begun.acquire(blocking=False):
            self._done.acquire()
            if self._error is not None:
                raise self._error


class _Crew:
    """The helpers of this process, threads that wait for shares."""

    def __init__(self) -> None:
        self._shares: SimpleQueue[_Share] = SimpleQueue()
        self._lock = threading.Lock()
        self._size = 0

    def call(self, share: _Share, size: int) -> None:
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
    """A forked child has none of its parent's threads."""
    global _crew
    _crew = _Crew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


def _drain(work: Callable[[Any], None], left: list[Any]) -> None:
    while True:
        try:
            piece = left.pop()  # one step, whoever else takes from the list
        except IndexError:
            return
        work(piece)


def share(work: Callable[[Any], None], pieces: Iterable[Any], threads: int) -> None:
    """Call `work(piece)` for every piece, in any order, on up to `threads` threads, the caller's among them.

    Returns when all is done. An exception ends the thread's part and is raised here.

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
        for one in shares:
            one.close()
