"""Functions of a board, which compiled searches call by their address.

A kernel that calls a function by its address is compiled once for all functions, and stays in the cache. A Python
function is called back through `ctypes`, which takes Python's lock; a Numba function becomes a C function. Neither an
exception nor a value that is no finite number may be lost in compiled code: `BoardFunction.check` raises them.
"""

import ctypes
import math
import multiprocessing
import sys
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cache, cached_property
from typing import Any, cast

import numba
import numpy as np
from llvmlite import ir
from numba import carray, types  # pyright: ignore[reportPrivateImportUsage]
from numba.core.errors import NumbaError
from numba.extending import intrinsic

from mergefall.kernels import borrow, kernel
from mergefall.typing import Floats, Ints
from mergefall.weighted import WeightedSum

LARGEST = 1024  # cells of a board that is told of

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

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        self.name, self._function = name, function
        self._error: BaseException | None = None
        self._failed = np.zeros(3 + LARGEST, np.int64)  # of a Numba function: whether it failed; rows, cols, cells
        if hasattr(function, "py_func"):  # of Numba
            self._called: Any = _compiled(function, name, self._failed)
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
            board: Ints = cells.reshape(rows, cols).astype(np.int64)
            return self._number(self._function(board), board)
        except BaseException as error:  # Ctrl-C, too
            self._error = error
            return math.nan

    def _number(self, value: Any, board: Ints) -> float:
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = math.nan
        if not math.isfinite(number):
            raise ValueError(f"{self.name} values {board.tolist()} at {value!r}; expected a finite number")
        return number

    def check(self) -> None:
        """Raises what the function raised since the last check, and ValueError if it was no finite number."""
        error, self._error = self._error, None
        if error is not None:
            raise error
        failed, rows, cols = self._failed[:3].tolist()
        if failed:
            self._failed[0] = 0
            board = self._failed[3 : 3 + rows * cols].reshape(rows, cols).copy()
            value = self._function(board)  # raises again what it raised
            self._number(value, board)


@dataclass(frozen=True)
class OfFunction(WeightedSum):
    """The value that a function gives a board, as a heuristic with the term `value`; the base of those of both games.

    The function's address stands behind the weights of the terms, for `value_at`.
    """

    name = "function"  # of the class, whose kernels serve all functions; an instance has its own name
    value = 1.0

    function: Callable[..., Any]
    label: str

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "name", self.label)

    def __reduce__(self) -> Any:
        return type(self), tuple(getattr(self, field.name) for field in fields(self))

    @cached_property
    def _called(self) -> BoardFunction:
        return BoardFunction(self.function, self.label)

    def weight_vector(self) -> Floats:
        return np.append(super().weight_vector(), self._called.weight)

    def check(self) -> None:
        self._called.check()


def _compiled(function: Any, name: str, failed: Ints) -> Any:
    """The C function of a Numba function; a board that it fails on is written into `failed`, if none is there."""
    address, size = np.uint64(failed.ctypes.data), len(failed)

    def call(data, rows, cols):
        cells, told = carray(data, (rows, cols)), borrow(address, np.int64, size)
        if told[0]:  # the search is lost already: let it end soon
            return np.nan
        board = np.empty((rows, cols), np.int64)
        for r in range(rows):
            for c in range(cols):
                board[r, c] = cells[r, c]
        try:
            value = np.float64(function(board))
        except Exception:
            value = np.nan  # `check` raises it
        if not np.isfinite(value):
            for i in range(min(rows * cols, size - 3)):
                told[3 + i] = cells[i // cols, i % cols]
            told[0], told[1], told[2] = 1, rows, cols
            return np.nan
        return value

    try:
        return cast(Any, numba.cfunc)(SIGNATURE)(call)
    except NumbaError as error:
        raise ValueError(f"{name} does not compile for a board int64[rows, cols]: {error}") from error


@cache  # once for each function
def _say_slow(name: str) -> None:
    if multiprocessing.parent_process() is None:  # not in each worker
        message = "is a Python function, called for each valued board; with @numba.njit it runs at compiled speed"
        print(f"mergefall: {name} {message}", file=sys.stderr, flush=True)
