"""Functions of a board, which compiled searches call by their address.

A kernel that calls a function by its address is compiled once for all functions, and stays in the cache. A Python
function is called back through `ctypes`, which takes Python's lock; a Numba function becomes a C function.
"""

from __future__ import annotations

import ctypes
import math
import multiprocessing
import sys
from collections.abc import Callable
from typing import Any, cast

import numba
import numpy as np
from llvmlite import ir
from numba import carray, types  # pyright: ignore[reportPrivateImportUsage]
from numba.core.errors import NumbaError
from numba.extending import intrinsic
from numpy.typing import NDArray

from mergefall.kernels import kernel

CALLBACK = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
SIGNATURE = types.float64(types.CPointer(types.uint8), types.int64, types.int64)


def _call_at(typing_context: Any, address: Any, cells: Any, rows: Any, cols: Any) -> Any:
    """Call the C function at an address: double (*)(cells, rows, cols)."""
    signature = types.float64(types.uint64, types.uintp, types.int64, types.int64)

    def codegen(context, builder, signature, args):
        word = ir.IntType(64)
        kind = ir.FunctionType(ir.DoubleType(), [word, word, word])
        return builder.call(builder.inttoptr(args[0], kind.as_pointer()), args[1:])

    return signature, codegen


_call: Any = intrinsic(_call_at)


@kernel
def value_at(weights, cells, rows, cols):
    """The value of a board, cells uint8[rows·cols], by the function whose address is the bits of weights[0]."""
    return _call(weights[:1].view(np.uint64)[0], cells.ctypes.data, np.int64(rows), np.int64(cols))


class BoardFunction:
    """A function of a board, int64[rows, cols] -> number, at an address.

    An exception cannot pass through compiled code: `check` raises it afterwards. Raises ValueError for a Numba function
    that does not compile.
    """

    said = False  # that a Python function is slow

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        self.name, self._function = name, function
        self._error: BaseException | None = None
        if is_compiled(function):
            self._called: Any = _compiled(function, name)
            address = self._called.address
        else:
            _say_slow(name)
            self._called = CALLBACK(self._call)
            address = cast(int, ctypes.cast(self._called, ctypes.c_void_p).value)
        self.weight = np.array([address], dtype=np.uint64).view(np.float64)  # for `value_at`

    def _call(self, data: int, rows: int, cols: int) -> float:
        if self._error is not None:  # the search is lost already: let it end soon
            return math.nan
        try:
            cells = np.frombuffer(ctypes.string_at(data, rows * cols), np.uint8)
            board: NDArray[np.int64] = cells.reshape(rows, cols).astype(np.int64)
            return self._number(self._function(board), board)
        except BaseException as error:  # Ctrl-C, too
            self._error = error
            return math.nan

    def _number(self, value: Any, board: NDArray[np.int64]) -> float:
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = math.nan
        if not math.isfinite(number):
            raise ValueError(f"{self.name} values {board.tolist()} at {value!r}; expected a finite number")
        return number

    def check(self) -> None:
        """Raises what the function raised since the last check."""
        error, self._error = self._error, None
        if error is not None:
            raise error


def is_compiled(function: Any) -> bool:
    """Whether Numba compiles a function."""
    return hasattr(function, "py_func")


def _compiled(function: Any, name: str) -> Any:
    def call(data, rows, cols):
        cells = carray(data, (rows, cols))
        board = np.empty((rows, cols), np.int64)
        for r in range(rows):
            for c in range(cols):
                board[r, c] = cells[r, c]
        return np.float64(function(board))

    try:
        return cast(Any, numba.cfunc)(SIGNATURE)(call)
    except NumbaError as error:
        raise ValueError(f"{name} does not compile for a board int64[rows, cols]: {error}") from error


def _say_slow(name: str) -> None:
    if not BoardFunction.said and multiprocessing.parent_process() is None:  # once, not in each worker
        BoardFunction.said = True
        message = "is a Python function, called for each valued board; with @numba.njit it runs at compiled speed"
        print(f"mergefall: {name} {message}", file=sys.stderr, flush=True)
