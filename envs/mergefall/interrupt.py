"""Ctrl-C in compiled code, where Python cannot raise KeyboardInterrupt.

- A kernel that may run long asks `stopped()` and returns soon if it is true; its result then means nothing.
- `Caller` calls such kernels, and raises KeyboardInterrupt when they have returned; after a `deadline`, TimeoutError.
- While a kernel is compiled, Ctrl-C waits for the end of that kernel; LLVM would lose it and Numba fail later.
"""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
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
    """Searches of this thread end after so many seconds, with TimeoutError."""
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
        began, stops, latest = perf_counter(), _stops, getattr(_of_thread, "deadline", None)
        if latest is None and threading.get_ident() != threading.main_thread().ident:
            result = _counted(function, arguments)
        elif latest is None and self._quick:
            result = function(*arguments)
        else:
            result = _beside(function, arguments, latest)
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


def _beside(function: Callable[..., Any], arguments: tuple[Any, ...], latest: float | None) -> Any:
    """Call a function in another thread; an exception in this one, as by Ctrl-C, sets the flag."""
    global _stops
    results, errors, done, cancelled = [], [], threading.Event(), threading.Event()

    def call() -> None:
        try:
            if not cancelled.is_set():
                results.append(_counted(function, arguments))
        except BaseException as error:
            errors.append(error)
        finally:
            done.set()

    thread = threading.Thread(target=call, daemon=True, name="mergefall-search")
    try:
        thread.start()
        while not done.wait(0.1):  # Windows sees Ctrl-C only between waits
            if latest is not None and perf_counter() > latest:
                raise TimeoutError
    except BaseException:
        with _lock:
            _flag[0], _stops = 1, _stops + 1
        cancelled.set()  # if Ctrl-C came before the thread was alive
        if thread.is_alive():
            done.wait()
        _count(0)
        raise
    for error in errors:
        raise error
    return results[0]


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
