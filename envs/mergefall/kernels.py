"""`kernel`: compiles functions by Numba on their first call and caches them on disk, never stale.

Numba keys its cache on the file that defines a function, but our kernels inline rules from other files. So the cache
key here includes a digest of all kernel files: of `mergefall`, of the package that defines the kernel, and of the
packages of the kernels that it calls; and one of the constants that they take from other files. What their closures
hold is a part of the kernel's name. Each compiled signature has its own file, which is written whole and then renamed,
so several processes can compile at once.
"""

from __future__ import annotations

import hashlib
import pickle
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import numba
import numpy as np
from llvmlite import ir
from numba import carray, types  # pyright: ignore[reportPrivateImportUsage]
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.extending import intrinsic

SLOW_COMPILE = 1.0  # seconds of compiling after which a notice is printed
_MARK = b"mergefall.kernels"  # a kernel file is one that imports from this module


def kernel_files(*packages: Path) -> list[Path]:
    """The kernel files of `mergefall` and of `packages` (folders), sorted."""
    sources = {path for root in (Path(__file__).parent, *packages) for path in root.rglob("*.py")}
    return [path for path in sorted(sources) if _MARK in _content(path)]


def _content(path: Path) -> bytes:
    """The content of a file; nothing of what cannot be read, which an editor or another program may leave there."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


@cache
def digest(packages: frozenset[Path]) -> str:
    """A digest of the kernel files of `mergefall` and of `packages`, as hexadecimal text."""
    texts = [(path.name, path.read_bytes()) for path in kernel_files(*packages)]
    return hashlib.sha256(repr(texts).encode()).hexdigest()


def _package_root(source: Path) -> Path:
    root = source.parent
    while (root.parent / "__init__.py").exists():
        root = root.parent
    return root


def _closure(function: Callable[..., Any]) -> dict[str, Any]:
    """The values in a function's closure by name."""
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with suppress(ValueError):  # an empty cell: its kernel is defined further down, so in this file
            found[name] = cell.cell_contents
    return found


def _globals(function: Callable[..., Any]) -> dict[str, Any]:
    """The globals that a function names, and what it names in modules."""
    names = function.__code__.co_names
    named = {name: function.__globals__[name] for name in names if name in function.__globals__}
    modules = [module for module in named.values() if isinstance(module, ModuleType)]
    parts = {f"{one.__name__}.{name}": getattr(one, name, None) for one in modules for name in names}
    return named | parts


def _called(function: Callable[..., Any]) -> list[Any]:
    """The kernels in a function's closure and among its globals."""
    return [
        value for value in (*_globals(function).values(), *_closure(function).values()) if hasattr(value, "py_func")
    ]


def _packages(function: Callable[..., Any]) -> frozenset[Path]:
    """The packages of a function and of the kernels that it calls."""
    own = _package_root(Path(function.__code__.co_filename))
    return frozenset({own}.union(*(getattr(one, "packages", ()) for one in _called(function))))


def _constants(function: Callable[..., Any]) -> tuple[str, ...]:
    """What is compiled into a function from its closure, and into the kernels that it calls from theirs, as texts."""
    own = [f"{name}={_text(value)}" for name, value in _closure(function).items() if not hasattr(value, "py_func")]
    return (*own, *(text for one in _called(function) for text in getattr(one, "constants", ())))


def _from_files(function: Callable[..., Any], seen: frozenset[Any] = frozenset()) -> str:
    """A digest of what is compiled into a function from files that need not be kernel files.

    These are its constant globals, the files of plain Numba functions that it calls, and what is in those and in its
    kernels.
    """
    texts = [f"{name}={_text(value)}" for name, value in _globals(function).items() if isinstance(value, _CONSTANTS)]
    for one in _called(function):
        if hasattr(one, "from_files"):
            texts.append(one.from_files)
        elif one.py_func not in seen:  # a function may call itself
            file = Path(one.py_func.__code__.co_filename)
            texts += [repr(_content(file)), _from_files(one.py_func, seen | {one.py_func})]
    return hashlib.sha256(repr(texts).encode()).hexdigest()


_CONSTANTS = bool | int | float | complex | str | tuple | np.generic | np.ndarray | np.dtype


def _text(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}"
    if isinstance(value, tuple):
        return f"({', '.join(map(_text, value))})"
    known = isinstance(value, bool | int | float | complex | str | np.generic | np.dtype | type | None)
    return repr(value) if known else type(value).__qualname__  # Numba compiles no other values into a function


class _Notice:
    """Prints to stderr, once, that kernels are being compiled, if that takes long enough to be noticed."""

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
    """A cache file for each signature that holds its own key, instead of an index that two writers could damage."""

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
    def __init__(self, function: Callable[..., Any], packages: frozenset[Path], from_files: str) -> None:
        super().__init__(function)
        self._notice = _Notice()
        self._cache_file = _FilePerSignature(
            cache_path=self._cache_path,
            filename_base=self._impl.filename_base,
            source_stamp=digest(packages) + from_files,
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
        function: a function over integers, floats, arrays and tuples.
        variant: distinguishes kernels that a factory makes from one function (closures over other kernels).
        options: Numba's, such as `forceinline` and `inline`. Kernels release Python's lock (`nogil`).

    A kernel that calls itself must pass arguments of the types that it received. Do not pass literals: they have other
    types, and Numba crashes when it loads kernels from its cache that call each other in a circle.

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
    constants = _constants(function)
    compiled_in = [hashlib.sha256(repr(constants).encode()).hexdigest()[:8]] * bool(constants)
    label = "-".join([variant] * bool(variant) + [f"{key}={options[key]}" for key in sorted(options)] + compiled_in)
    # Numba names machine code by the function and a counter that starts again in each process. Two kernels of one
    # factory, compiled by two processes, could get the same name, and a third process that loads both would call the
    # wrong one.
    function.__qualname__ = f"{function.__qualname__}-{label}"
    # No kernel is called from C, so the wrapper for that, which takes time to compile, is left out.
    dispatcher: Any = cast(Any, numba.njit)(nogil=True, no_cfunc_wrapper=True, **options)(function)
    dispatcher.variant, dispatcher.constants, dispatcher.from_files = label, constants, _from_files(function)
    if Path(function.__code__.co_filename).exists():  # False in a doctest or at a prompt
        dispatcher.packages = _packages(function)
        dispatcher._cache = _KernelCache(function, dispatcher.packages, dispatcher.from_files)
    return dispatcher


def _pointer_to(typing_context: Any, address: Any, dtype: Any) -> Any:
    """An address as a pointer to values of `dtype`, a NumPy type that is a compile-time constant."""
    value = dtype.dtype if isinstance(dtype, types.DType) else dtype.instance_type
    signature = types.CPointer(value)(address, dtype)

    def codegen(context, builder, signature, args):
        return builder.inttoptr(args[0], context.get_value_type(signature.return_type))

    return signature, codegen


_pointer: Any = intrinsic(_pointer_to)


@kernel
def borrow(address, dtype, count):
    """A one-dimensional array over memory that the caller keeps alive, from its address as uint64.

    With it, a recursive kernel passes on one word for each array instead of seven, and counts no references; both took
    half the time of a deep search.
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
    """An array, or a (nested) tuple of arrays and other values, without its reference count.

    For loops that pass arrays to other kernels: each count is an atomic operation, and a few of them take longer than a
    step of a game. The caller's own arrays keep the memory alive.
    """

    def codegen(context, builder, signature, args):
        return _without_owner(context, builder, signature.args[0], args[0])

    return arrays(arrays), codegen


unowned: Any = intrinsic(_unowned)


def _prefetched(typing_context: Any, array: Any, index: Any) -> Any:
    """Prefetch the cache line of array[index] for writing, in loops that know where they will look next."""

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
    """The compiled function for arguments of these types; a call saves Numba's look at each type (0.15 µs).

    Arguments are not converted: one of another type raises an error or is misread. The function cannot be pickled.
    """
    return kernel.compile(tuple(numba.typeof(argument) for argument in arguments))
