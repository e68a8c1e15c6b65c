"""`kernel`: compiles functions by Numba on their first call and keeps the machine code on disk, never stale.

Numba keys its cache on the file that defines a function, but our kernels inline others from other files. Here a file in
the cache is named by a digest of all that is compiled into the kernel: its own code, the code of every function that it
calls, directly or not, the constants that they take from closures, globals and modules, and Numba's settings. So an
edit compiles anew just the kernels that reach it, and processes with different versions or settings, as
NUMBA_BOUNDSCHECK and NUMBA_OPT, can share one folder.

The folder is the variable NUMBA_CACHE_DIR; by default `__pycache__` beside the kernel's file, or a folder of the user
if that cannot be written. A damaged file counts as missing. Where no folder can be written, every process compiles its
kernels anew, and one warning says so. Who can write a file of the folder decides what a process executes.
"""

import hashlib
import io
import os
import pickle
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, cached_property
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, cast
from uuid import uuid4

import numba
import numpy as np
from llvmlite import ir
from numba import carray, types  # pyright: ignore[reportPrivateImportUsage]
from numba.core import config
from numba.core.caching import CompileResultCacheImpl, NullCache
from numba.core.serialize import NumbaPickler
from numba.extending import intrinsic
from numba.misc.appdirs import AppDirs

from mergefall import interrupt as interrupt  # delays Ctrl-C while a kernel is compiled

SLOW_COMPILE = 1.0  # seconds of compiling after which a notice is printed
_FOREIGN = {"builtins", "ctypes", "llvmlite", "math", "numba", "numpy"}  # packages whose code is not ours to digest
_WHEREVER = ("CACHE", "CUDA", "GDB", "THREADS")  # in names of settings that differ by machine, not in machine code


def fingerprint(function: Callable[..., Any]) -> str:
    """A digest, as hexadecimal text, of all that is compiled into a kernel: equal for equal machine code.

    >>> from mergefall.kernels import fingerprint, kernel
    >>> fingerprint(kernel(lambda x: x + 1)) == fingerprint(kernel(lambda x: x + 2))
    False
    """
    reached = [cast(FunctionType, getattr(function, "py_func", function))]
    places = {reached[0]: 0}
    content = hashlib.sha256(str(getattr(function, "targetoptions", "")).encode())
    for one in reached:  # which grows
        content.update(f"{one.__module__}\n{_text_of_code(one.__code__)}\n".encode())  # the machine code names modules
        for name, value in _compiled_in(one):
            callee = _python_function(value)
            if callee is None:
                content.update(f"{name}={_text(value)}\n".encode())
                continue
            if callee not in places:
                places[callee] = len(reached)
                reached.append(callee)
            content.update(f"{name}: {places[callee]} {getattr(value, 'targetoptions', '')}\n".encode())
    return content.hexdigest()


def _python_function(value: Any) -> FunctionType | None:
    """The Python function behind a kernel, a plain Numba function or an intrinsic; None for anything else."""
    function = getattr(value, "py_func", getattr(value, "_defn", value))
    ours = isinstance(function, FunctionType) and function.__module__.partition(".")[0] not in _FOREIGN
    return function if ours else None


def _compiled_in(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """The values by name that a function takes from its closure, its globals, their modules and its defaults."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        yield name, cell.cell_contents
    names = _names(function.__code__)
    values = {name: function.__globals__[name] for name in names if name in function.__globals__}
    for name, value in values.items():
        if not isinstance(value, ModuleType):
            yield name, value
        elif value.__name__.partition(".")[0] not in _FOREIGN:
            yield from ((f"{name}.{part}", getattr(value, part)) for part in names if hasattr(value, part))
    yield "defaults", function.__defaults__


@cache
def _names(code: CodeType) -> tuple[str, ...]:
    """The names of globals and attributes in a function and in those inside it, each once."""
    inner = (name for one in code.co_consts if isinstance(one, CodeType) for name in _names(one))
    return tuple(dict.fromkeys((*code.co_names, *inner)))


@cache
def _text_of_code(code: CodeType) -> str:
    constants = [_text_of_code(one) if isinstance(one, CodeType) else _text(one) for one in code.co_consts]
    variables = (code.co_argcount, code.co_flags, code.co_varnames, code.co_freevars, code.co_cellvars)
    return repr((code.co_code, code.co_exceptiontable, code.co_names, variables, constants))


def _text(value: Any) -> str:
    """A value as text: equal for values that Numba compiles into the same machine code."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}"
    if isinstance(value, tuple | frozenset):
        parts = [_text(part) for part in value]
        return f"{type(value).__name__}{parts if isinstance(value, tuple) else sorted(parts)}"
    if isinstance(value, type):
        return f"{value!r}{getattr(value, '_fields', '')}{list(getattr(value, '__members__', ()))}"
    constant = isinstance(value, bool | int | float | complex | str | bytes | np.generic | np.dtype | types.Type | None)
    return repr(value) if constant else type(value).__qualname__  # Numba compiles no other values into a function


def _settings() -> list[str]:
    """Numba's settings, from its variables or set by code: those that change machine code, and all that might."""
    found = ((name, value) for name, value in vars(config).items() if name.isupper())
    return [f"{name}={value!r}" for name, value in found if not any(part in name for part in _WHEREVER)]


@cache  # once
def _say_slow() -> None:
    print("mergefall: compiling kernels for this machine (once; they are cached)", file=sys.stderr, flush=True)


class _KernelCache(NullCache):
    """The compiled signatures of a kernel: a file for each, named by the kernel's fingerprint and the signature.

    A file holds a digest of its content, then the content. It is written whole and then renamed, so several processes
    can compile at once.
    """

    warned = False

    def __init__(self, dispatcher: Any) -> None:
        self._dispatcher, self._function = dispatcher, dispatcher.py_func
        self._code = CompileResultCacheImpl.__new__(CompileResultCacheImpl)  # without a search for a folder

    def _folders(self) -> list[Path]:
        """Where files are looked for, and written to if it can be."""
        source = Path(self._function.__code__.co_filename)
        if not source.exists():  # in a doctest or at a prompt
            return []
        if folder := config.CACHE_DIR:  # pyright: ignore[reportAttributeAccessIssue]
            return [Path(folder)]
        return [source.parent / "__pycache__", Path(AppDirs("mergefall", appauthor=False).user_cache_dir)]

    @cached_property
    def _fingerprint(self) -> str:
        # Numba names machine code by the function and a counter that starts again in each process. Two kernels that
        # two processes compiled could get the same name, and a third process that loads both would call the wrong one.
        digest = fingerprint(self._dispatcher)
        self._function.__qualname__ += f"-{digest[:16]}"
        return digest

    def _name(self, sig: Any, target_context: Any) -> str:
        machine = (numba.__version__, sys.implementation.cache_tag, target_context.codegen().magic_tuple())
        fields = [(one.__module__, one._fields) for one in _named_tuples(sig)]
        key = repr((self._fingerprint, sig, fields, machine, _settings()))
        return f"{self._function.__name__}-{hashlib.sha256(key.encode()).hexdigest()[:24]}.nbc"

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        target_context.refresh()
        name = self._name(sig, target_context)
        for folder in self._folders():
            content = _content(folder / name)
            if content is not None:
                with suppress(AttributeError, ImportError):  # a class is not where it was
                    return self._code.rebuild(target_context, _Unpickler(content, sig).load())
        self._notice = threading.Timer(SLOW_COMPILE, _say_slow)
        self._notice.daemon = True
        self._notice.start()
        return None

    def save_overload(self, sig: Any, cres: Any) -> None:
        self._notice.cancel()
        folders = self._folders()
        if not folders or not self._code.check_cachable(cres):
            return
        content = io.BytesIO()
        _Pickler(content).dump(self._code.reduce(cres))
        failures = []
        for folder in folders:
            try:
                return _write(folder / self._name(sig, cres.target_context), content.getvalue())
            except OSError as error:  # read-only, full, or something else of this name
                failures.append(str(error))
        if not _KernelCache.warned:
            _KernelCache.warned = True
            warnings.warn(
                f"compiled kernels cannot be kept, so every process compiles them ({'; '.join(failures)}); "
                "set the variable NUMBA_CACHE_DIR to a folder that can be written",
                RuntimeWarning,
                stacklevel=2,
            )


def _named_tuples(kinds: Any) -> list[Any]:
    """The classes of a signature's named tuples; its text shows their names alone."""
    own = [kinds.instance_class] if isinstance(kinds, types.NamedTuple | types.NamedUniTuple) else []
    return sum(map(_named_tuples, getattr(kinds, "types", kinds if isinstance(kinds, tuple) else ())), own)


class _Pickler(NumbaPickler):
    """Writes the classes of named tuples by name.

    Numba writes a class by value if its module is `__main__` or was loaded twice. What is read then is another class,
    so no kernel that is compiled anew could pass its tuples to one from the cache.
    """

    def persistent_id(self, obj: Any) -> tuple[str, str] | None:
        named = isinstance(obj, type) and issubclass(obj, tuple) and hasattr(obj, "_fields")
        return (obj.__module__, obj.__qualname__) if named else None


class _Unpickler(pickle.Unpickler):
    """Takes the classes of named tuples from the signature, and others from their modules."""

    def __init__(self, content: bytes, sig: Any) -> None:
        super().__init__(io.BytesIO(content))
        self._classes = {(one.__module__, one.__qualname__): one for one in _named_tuples(sig)}

    def persistent_load(self, pid: tuple[str, str]) -> Any:
        module, name = pid
        return self._classes.get(pid) or attrgetter(name)(import_module(module))


def _content(path: Path) -> bytes | None:
    """The content of a file of the cache; None for one that is missing, cannot be read or is damaged."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    digest, content = content[:32], content[32:]
    return content if hashlib.sha256(content).digest() == digest else None


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".{uuid4().hex}.part")  # readable by others as the umask says
    try:
        part.write_bytes(hashlib.sha256(content).digest() + content)
        os.replace(part, path)
    except OSError:
        part.unlink(missing_ok=True)
        raise


def kernel(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compile a function on its first call and keep the machine code on disk.

    Args:
        function: a function over integers, floats, arrays and tuples.
        options: Numba's, such as `forceinline` and `inline`. Kernels release Python's lock (`nogil`).

    A kernel that calls itself must pass arguments of the types that it received.
    """
    if function is None:
        return lambda decorated: kernel(decorated, **options)
    # No kernel is called from C, so the wrapper for that, which takes time to compile, is left out by default.
    options = {"nogil": True, "no_cfunc_wrapper": True, **options}
    dispatcher: Any = cast(Any, numba.njit)(**options)(function)
    dispatcher._cache = _KernelCache(dispatcher)
    # Numba compiles a kernel once more for each literal that another passes to it.
    called = dispatcher.get_call_template
    dispatcher.get_call_template = lambda args, kws: called(
        tuple(map(types.unliteral, args)), {name: types.unliteral(kind) for name, kind in kws.items()}
    )
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
