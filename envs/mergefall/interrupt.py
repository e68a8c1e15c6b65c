"""Ctrl-C in compiled code, where Python cannot raise KeyboardInterrupt.

- A kernel that may run long asks `stopped()` and returns soon if it is true; its result then means nothing.
- `Caller` calls such kernels, and raises KeyboardInterrupt when they have returned; after a `deadline`, TimeoutError.
- While a kernel is compiled, Ctrl-C waits for the end of that kernel; LLVM would lose it and Numba fail later.
"""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter, sleep
from typing import Any

import numpy as np
from llvmlite import binding, ir
from numba import types  # pyright: ignore[reportPrivateImportUsage]
from numba.core import event
from numba.extending import intrinsic

QUICK = 0.02  # seconds: after a shorter call the next one stays in the main thread
_flag = np.zeros(1, np.int64)  # whether kernels are to return
_running, _stops, _lock = 0, 0, threading.Lock()  # calls outside of the main thread; how often calls were stopped
binding.add_symbol("mergefall_stopped", _flag.ctypes.data)  # cached machine code finds it by name in each process


def _load_flag(typing_context: Any) -> Any:
    def codegen(context, builder, signature, args):
        module, word = builder.module, ir.IntType(64)
        name = "mergefall_stopped"
        flag = module.globals[name] if name in module.globals else ir.GlobalVariable(module, word, name)
        return builder.icmp_signed("!=", builder.load_atomic(flag, "monotonic", 8), word(0))

    return types.boolean(), codegen


stopped: Any = intrinsic(_load_flag)
_of_thread = threading.local()  # its attribute `deadline`


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Searches of this thread end after so many seconds, with TimeoutError, and others that run then as by Ctrl-C."""
    before, _of_thread.deadline = getattr(_of_thread, "deadline", None), perf_counter() + seconds
    try:
        yield
    finally:
        _of_thread.deadline = before


class Caller:
    """Calls compiled functions so that Ctrl-C ends those that ask `stopped`.

    The main thread lets another thread call and waits, so that it can see Ctrl-C. It calls itself if its last call was
    quick, because another thread takes 0.1 ms. Calls from other threads end, too, when the main thread sees Ctrl-C.
    """

    def __init__(self) -> None:
        self._quick = False

    def __call__(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """The result of `function(*arguments)`; raises what it raises, or KeyboardInterrupt."""
        aside = threading.get_ident() != threading.main_thread().ident
        if (left := getattr(_of_thread, "search", None)) is not None:  # Ctrl-C came twice
            left.end()
        while _flag[0] and not aside:  # searches are being stopped
            _count(0)
            sleep(0.001)
        began, stops, latest = perf_counter(), _stops, getattr(_of_thread, "deadline", None)
        if latest is not None and began > latest:
            raise TimeoutError
        if latest is not None or not (aside or self._quick):
            result = _beside(function, arguments, latest)
        else:
            result = _counted(function, arguments) if aside else function(*arguments)
        self._quick = perf_counter() - began < QUICK
        if _stops != stops:
            raise KeyboardInterrupt
        return result


def _counted(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """Call a function in a thread other than the main one; raises KeyboardInterrupt while others are being stopped."""
    _count(1)
    try:
        if _flag[0]:
            raise KeyboardInterrupt
        return function(*arguments)
    finally:
        _count(-1)


def _count(change: int) -> None:
    """Count a call that begins or ends; the end of the last one clears the flag, which all others must see."""
    global _running
    with _lock:
        _running += change
        if _running == 0:
            _flag[0] = 0


class _Search(threading.Thread):
    """A call in a thread of its own, for another thread that waits.

    Ctrl-C may come at any point, also twice, so `end` may be called again: by the next search, which would share the
    memory of this one. A plain lock tells its end: an interrupted wait leaves others in disorder.
    """

    def __init__(self, *call: Any) -> None:
        super().__init__(daemon=True, name="mergefall-search")
        self._call, self._cancelled, self.going = call, False, threading.Lock()
        self.results: list[Any] = []
        self.errors: list[BaseException] = []
        self.going.acquire()

    def run(self) -> None:
        try:
            if not self._cancelled:
                self.results.append(_counted(*self._call))
        except BaseException as error:
            self.errors.append(error)
        finally:
            self.going.release()

    def end(self) -> None:
        """Stop the call, and those of other threads, and wait for its end."""
        global _stops
        self._cancelled = True  # if it is not alive yet
        over = False
        while not over:
            with _lock:
                if _running:
                    _stops, _flag[0] = _stops + 1, 1
            over = not self.is_alive() or self.going.acquire(timeout=0.01)
        _of_thread.search = None


def _beside(function: Callable[..., Any], arguments: tuple[Any, ...], latest: float | None) -> Any:
    """Call a function in another thread; an exception in this one, as by Ctrl-C, ends the call."""
    search = _of_thread.search = _Search(function, arguments)
    try:
        search.start()
        while not search.going.acquire(timeout=0.1):  # Windows sees Ctrl-C only between waits
            if latest is not None and perf_counter() > latest:
                raise TimeoutError
    except BaseException:
        search.end()
        raise
    _of_thread.search = None
    for error in search.errors:
        raise error
    return search.results[0]


def _forked() -> None:
    """A child process has none of its parent's searches."""
    global _running, _lock
    _running, _lock, _flag[0] = 0, threading.Lock(), 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


class _Compiling(event.Listener):
    def __init__(self) -> None:
        self._depth, self._pressed, self._handler = 0, False, signal.SIG_DFL

    def on_start(self, event: Any) -> None:
        if threading.get_ident() != threading.main_thread().ident:
            if _flag[0]:
                raise KeyboardInterrupt
            return
        if self._depth == 0:
            self._pressed, self._handler = False, signal.getsignal(signal.SIGINT)
            if callable(self._handler):
                signal.signal(signal.SIGINT, self._press)
        self._depth += 1
        if self._pressed:  # before the next of several kernels
            raise KeyboardInterrupt

    def on_end(self, event: Any) -> None:
        if threading.current_thread() is threading.main_thread():
            self._depth -= 1
            if self._depth == 0 and callable(self._handler):
                signal.signal(signal.SIGINT, self._handler)
                if self._pressed:
                    signal.raise_signal(signal.SIGINT)

    def _press(self, number: int, frame: Any) -> None:
        self._pressed = True


event.register("numba:compile", _Compiling())
