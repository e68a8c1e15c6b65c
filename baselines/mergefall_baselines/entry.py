"""Decision kernels, and calls of them through pointers, so that one compiled loop serves all players.

A player brings a decision kernel, in both games

    decide(state, memory, values, settings) -> choice

- `state`: uint64[words], a game as its environment keeps it; to be left as it is.
- `memory`: uint64[words], what the player remembers, its random stream first.
- `values`: float64[n_actions], filled by the kernel; -inf where illegal.
- `settings`: whatever the kernel needs: numbers, booleans, contiguous arrays, None, or tuples of them.
- `choice`: int64, an action, shifted by `kernel_player.Form.shift` bits.

An *entry* is a kernel with the same signature for all players, which calls a decision kernel by its address and looks
at its values. There is one for each type of settings. Its own settings are the address of words: the decision kernel's
address, then its settings by `words_of`, which `settings_at` reads. Below 0, its choice says why there is none.

A call by `call` takes 6 ns more than a direct one, and compiles nothing of what is called into the caller. The callee
does not see that its arrays have no owner (`mergefall.kernels.unowned`).
"""

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from mergefall.kernels import kernel, unowned
from mergefall.typing import Kernel
from numba import types  # pyright: ignore[reportPrivateImportUsage]
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array

WORDS, VALUES = (types.Array(kind, 1, "C") for kind in (types.uint64, types.float64))


def signature_of(settings: Any) -> Any:
    """The signature of decision kernels with settings of a type."""
    return types.int64(WORDS, WORDS, VALUES, settings)


ENTRY = signature_of(types.uint64)
ENTRY_TYPE = types.FunctionType(ENTRY)


def address_of(function: Kernel, signature: Any) -> np.uint64:
    """The address of a kernel's machine code for a signature, for `call` in this process."""
    function.compile(signature.args)
    compiled = function.get_compile_result(signature)
    if compiled.signature.return_type != signature.return_type:
        raise TypeError(f"{function} returns {compiled.signature.return_type}; expected {signature.return_type}")
    return np.uint64(compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name))


def words_of(settings: Any) -> list[int]:
    """Settings as words: a number as its value or bits, an array as its address and shape, a tuple as its parts.

    The caller keeps the arrays alive. Raises ValueError for an array that is not contiguous.
    """
    match settings:
        case None:
            return []
        case tuple():
            return [word for part in settings for word in words_of(part)]
        case np.ndarray():
            if not settings.flags.c_contiguous:
                raise ValueError(f"an array of settings has strides {settings.strides}; expected a contiguous one")
            return [settings.ctypes.data, *settings.shape]
        case float() | np.floating():
            return [int(np.float64(settings).view(np.uint64))]
    return [int(settings) & (1 << 64) - 1]


def _call(typing_context: Any, address: Any, kind: Any, arguments: Any) -> Any:
    """``call(address, kind, arguments)``: a call of the kernel at an address; `kind` is `types.FunctionType`."""
    signature = kind.instance_type.signature
    if signature.args != tuple(arguments.types):
        raise TypeError(f"arguments are {arguments}; expected {signature.args}")

    def codegen(context, builder, _, args):
        convention = context.call_conv
        callee = builder.inttoptr(
            args[0], convention.get_function_type(signature.return_type, signature.args).as_pointer()
        )
        values = [builder.extract_value(args[2], i) for i in range(len(signature.args))]
        status, result = convention.call_function(builder, callee, signature.return_type, signature.args, values)
        with cgutils.if_unlikely(builder, status.is_error):
            convention.return_status_propagate(builder, status)
        return result

    return signature.return_type(types.uint64, kind, arguments), codegen


call: Any = intrinsic(_call)


def _value(context: Any, builder: Any, kind: Any, words: Iterator[Any]) -> Any:
    """The value of a type from the next words."""
    if isinstance(kind, types.BaseTuple):
        parts = [_value(context, builder, part, words) for part in kind.types]  # pyright: ignore
        return context.make_tuple(builder, kind, parts)
    if isinstance(kind, types.NoneType):
        return context.get_dummy_value()
    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, builder)
        data, shape = builder.inttoptr(next(words), array.data.type), [next(words) for _ in range(kind.ndim)]
        size = context.get_abi_sizeof(context.get_data_type(kind.dtype))
        strides = [context.get_constant(types.intp, size)]
        for extent in reversed(shape[1:]):
            strides.insert(0, builder.mul(strides[0], extent))
        populate_array(array, data, shape, strides, size, None)
        return array._getvalue()
    if isinstance(kind, types.Float):
        real = builder.bitcast(next(words), context.get_value_type(types.float64))
        return context.cast(builder, real, types.float64, kind)
    return context.cast(builder, next(words), types.int64, kind)


def _settings_at(typing_context: Any, address: Any, kind: Any) -> Any:
    """The settings of type `kind`, a compile-time constant, whose words begin at an address."""

    def codegen(context, builder, signature, args):
        def words():
            pointer = builder.inttoptr(args[0], context.get_value_type(types.CPointer(types.uint64)))
            while True:
                yield builder.load(pointer)
                pointer = builder.gep(pointer, [context.get_constant(types.intp, 1)])

        return _value(context, builder, signature.return_type, words())

    return kind.instance_type(types.uint64, kind), codegen


settings_at: Any = intrinsic(_settings_at)


@cache
def entry_kernel(signature: Any) -> Kernel:
    """The entry of decision kernels of a signature."""
    decide_type, settings_type = types.FunctionType(signature), types.Tuple((types.uint64, signature.args[-1]))

    @kernel(forceinline=True)
    def entry(state, memory, values, settings):
        decide, own = settings_at(settings, settings_type)
        return call(decide, decide_type, (unowned(state), unowned(memory), unowned(values), own))

    return entry
