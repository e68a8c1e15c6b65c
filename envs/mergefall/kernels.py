"""The one way kernels are compiled: Numba, cached on disk, never stale, never compiled at import.

Numba keys its cache on the file that defines a function, while our kernels inline rules from other files. So the cache
key here holds a digest of every kernel file: those of `mergefall`, of the package the kernel is defined in, and of the
packages that the kernels below it are from. Each compiled signature has a file of its own, written whole and renamed,
so processes may compile side by side.
"""

from __future__ import annotations

import hashlib
import pickle
import sys
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import CellType
from typing import Any, cast

import numba
from llvmlite import ir
from numba import carray, types  # pyright: ignore[reportPrivateImportUsage]
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.dispatcher import Dispatcher
from numba.extending import intrinsic

SLOW_COMPILE = 1.0  # seconds of compiling after which the user is told what is going on
_MARK = b"mergefall.kernels"  # a kernel file is one that imports from this module


def kernel_files(*packages: Path) -> list[Path]:
    """The kernel files of `mergefall` and of `packages` (folders), sorted."""
    sources = {path for root in (Path(__file__).parent, *packages) for path in root.rglob("*.py")}
    return [path for path in sorted(sources) if _MARK in path.read_bytes()]


@cache
def digest(packages: frozenset[Path]) -> str:
    """A digest of the kernel files of `mergefall` and of `packages`, as hexadecimal text."""
    texts = [(path.name, path.read_bytes()) for path in kernel_files(*packages)]
    return hashlib.sha256(repr(texts).encode()).hexdigest()


def _packages(function: Callable[..., Any]) -> frozenset[Path]:
    """The packages of a function, of the kernels that it names or closes over, and of theirs."""
    code, cells = function.__code__, function.__closure__ or ()
    named = [function.__globals__.get(name) for name in code.co_names]
    enclosed = [cell.cell_contents for cell in cells if cell != CellType()]  # its own is empty yet, if it calls itself
    callees = [value for value in (*named, *enclosed) if isinstance(value, Dispatcher)]
    own = frozenset([_package_root(Path(code.co_filename))])
    return own.union(*(getattr(callee, "packages", ()) for callee in callees))


def _package_root(source: Path) -> Path:
    root = source.parent
    while (root.parent / "__init__.py").exists():
        root = root.parent
    return root


class _Notice:
    """Says on stderr, once, that kernels are being compiled, if it takes long enough to be noticed."""

    said = False

    def __init__(self) -> None:
        self._timer: threading.Timer | None = None

    def start(self) -> None:
        if not _Notice.said:
            self._timer = threading.Timer(SLOW_COMPILE, self._say)
            self._timer.daemon = True
            self._timer.start()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    @staticmethod
    def _say() -> None:
        if not _Notice.said:
            _Notice.said = True
            print("mergefall: compiling kernels for this machine (once; they are cached)", file=sys.stderr, flush=True)


class _FilePerSignature(IndexDataCacheFile):
    """A cache file for each signature, repeating the key it was made under: no index that two writers could tear."""

    def _path(self, key: Any) -> str:
        return self._data_path(self._data_name(int(hashlib.sha256(repr(key).encode()).hexdigest()[:12], 16)))

    def load(self, key: Any) -> Any:
        try:
            content = Path(self._path(key)).read_bytes()
        except FileNotFoundError:
            return None
        stamp, data = pickle.loads(content)
        return pickle.loads(data) if stamp == (self._version, self._source_stamp, repr(key)) else None

    def save(self, key: Any, data: Any) -> None:
        stamp = (self._version, self._source_stamp, repr(key))
        with self._open_for_write(self._path(key)) as file:
            file.write(pickle.dumps((stamp, self._dump(data))))


class _KernelCache(FunctionCache):
    def __init__(self, function: Callable[..., Any], packages: frozenset[Path]) -> None:
        super().__init__(function)
        self._notice = _Notice()
        self._cache_file = _FilePerSignature(
            cache_path=self._cache_path,
            filename_base=self._impl.filename_base,
            source_stamp=digest(packages),
        )

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        return sig, codegen.magic_tuple()

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        data = super().load_overload(sig, target_context)
        if data is None:
            self._notice.start()
        return data

    def save_overload(self, sig: Any, data: Any) -> None:
        self._notice.stop()
        super().save_overload(sig, data)


def kernel(function: Callable[..., Any] | None = None, *, variant: str = "", **options: Any) -> Any:
    """Compile a function on its first call and keep the machine code on disk.

    Args:
        function: plain functions over integers, arrays and tuples.
        variant: tells apart kernels made from one function inside a factory (a closure over other kernels).
        options: Numba's own, such as ``forceinline`` and ``inline``; kernels let go of Python's lock (``nogil``).

    A kernel that calls itself must do so with arguments of its own types, so without literals, which are a type apart:
    Numba crashes on loading kernels from its cache that call each other in a circle.

    Example:
        >>> from mergefall.kernels import kernel
        >>> @kernel
        ... def twice(x):
        ...     return 2 * x
        >>> twice.py_func(4)
        8
    """
    if function is None:
        return lambda decorated: kernel(decorated, variant=variant, **options)
    told = "-".join([variant] * bool(variant) + [f"{key}={options[key]}" for key in sorted(options)])
    # Numba names machine code after the function and a count that begins anew in each process. Two kernels of one
    # factory, compiled by two processes, could bear one name, and a third process that loads both would call the wrong.
    function.__qualname__ = f"{function.__qualname__}-{told}"
    dispatcher: Any = numba.njit(nogil=True, **options)(function)
    dispatcher.variant = told
    if Path(function.__code__.co_filename).exists():  # not so in a doctest or at a prompt
        dispatcher.packages = _packages(function)
        dispatcher._cache = _KernelCache(function, dispatcher.packages)
    return dispatcher


def _pointer_to(typing_context: Any, address: Any, dtype: Any) -> Any:
    """An address as a pointer to values of `dtype`, a NumPy type known to the compiler."""
    value = dtype.dtype if isinstance(dtype, types.DType) else dtype.instance_type
    signature = types.CPointer(value)(address, dtype)

    def codegen(context, builder, signature, args):
        return builder.inttoptr(args[0], context.get_value_type(signature.return_type))

    return signature, codegen


_pointer: Any = intrinsic(_pointer_to)


@kernel
def borrow(address, dtype, count):
    """A one-dimensional array over memory that the caller keeps alive, from its address as uint64.

    A kernel that calls itself hands on one word instead of seven for each array, and counts no references (half the
    time of a deep search).
    """
    return carray(_pointer(address, dtype), (count,))


def _without_owner(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    if isinstance(kind, types.BaseTuple):
        for i, element in enumerate(cast(Any, kind).types):
            part = _without_owner(context, builder, element, builder.extract_value(value, i))
            value = builder.insert_value(value, part, i)
    elif isinstance(kind, types.Array):
        array = context.make_array(kind)(context, builder, value)
        array.meminfo = array.meminfo.type(None)
        array.parent = array.parent.type(None)
        value = array._getvalue()
    return value


def _unowned(typing_context: Any, arrays: Any) -> Any:
    """An array, or a tuple of arrays and other things, without what counts references to its memory.

    For loops that hand arrays to other kernels: each counting is an atomic operation, and a few of them take longer
    than a step of a game. The caller's own arrays keep the memory alive.
    """

    def codegen(context, builder, signature, args):
        return _without_owner(context, builder, signature.args[0], args[0])

    return arrays(arrays), codegen


unowned: Any = intrinsic(_unowned)


def _prefetched(typing_context: Any, array: Any, index: Any) -> Any:
    """Begin to bring the cache line of array[index] near, to be written: for loops that know where they will look."""

    def codegen(context, builder, signature, args):
        word, byte = ir.IntType(32), ir.IntType(8).as_pointer()
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        address = builder.bitcast(builder.gep(data, [args[1]]), byte)
        about = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        hint = builder.module.declare_intrinsic("llvm.prefetch", [byte], about)
        builder.call(hint, [address, word(1), word(3), word(1)])  # to be written; to all caches; data
        return context.get_dummy_value()

    return types.void(array, index), codegen


prefetch: Any = intrinsic(_prefetched)


def direct(kernel: Any, *arguments: Any) -> Callable[..., Any]:
    """The compiled function for arguments of these types, to be called without Numba's look at each type (0.15 µs).

    Nothing converts what it is called with: an argument of another type raises or is misread. It is not picklable.
    """
    return kernel.compile(tuple(numba.typeof(argument) for argument in arguments))
