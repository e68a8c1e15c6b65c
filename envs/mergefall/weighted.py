"""Weighted sums of named terms: the part that the heuristics of 2048 and of Tetris share."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache, cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numba import types  # pyright: ignore[reportPrivateImportUsage]
from numba.extending import intrinsic
from numpy.typing import ArrayLike

from mergefall import checks
from mergefall.checks import number
from mergefall.kernels import kernel
from mergefall.typing import Array, Bools, Dict, Floats, Kernel, Words

# The largest weight, by the precision of the kernels. Terms and the sums of a search may multiply it by 1e18 in single
# and by 1e100 in double precision (`tile-order` multiplies two weights) before it overflows.
LARGEST = {np.float32: 1e20, np.float64: 1e100}


def _dot(typing_context: Any, terms: Any, weights: Any, first: Any, start: Any = -0.0) -> Any:
    """start + Σ weights[first + i] · terms[i] over a tuple of numbers, added up in this order, without a loop."""

    def codegen(context, builder, signature, args):
        data, total = context.make_array(weights)(context, builder, args[1]).data, args[3]
        for i, kind in enumerate(terms.types):
            place = builder.add(args[2], context.get_constant(types.intp, i))
            term = context.cast(builder, builder.extract_value(args[0], i), kind, types.float64)
            product = builder.fmul(builder.load(builder.gep(data, [place])), term)
            total = builder.fadd(total, product)
        return total

    return types.float64(terms, weights, types.intp, types.float64), codegen


dot: Any = intrinsic(_dot)


def _as_many(typing_context: Any, terms: Any, count: Any) -> Any:
    """The terms, if there are as many as names: no kernel reads or writes beyond them. Checked while compiling."""
    expected = count.literal_value
    if not isinstance(terms, types.BaseTuple) or len(terms) != expected:
        raise ValueError(f"a kernel of terms returns {terms}; expected a tuple of {expected}, a number for each name")
    return terms(terms, count), lambda context, builder, signature, args: args[0]


as_many: Any = intrinsic(prefer_literal=True)(_as_many)


def _write(typing_context: Any, terms: Any, target: Any) -> Any:
    def codegen(context, builder, signature, args):
        data = context.make_array(target)(context, builder, args[1]).data
        for i, kind in enumerate(terms.types):
            term = context.cast(builder, builder.extract_value(args[0], i), kind, types.float64)
            builder.store(term, builder.gep(data, [context.get_constant(types.intp, i)]))
        return context.get_dummy_value()

    return types.void(terms, target), codegen


write_terms: Any = intrinsic(_write)


@kernel
def no_terms(*arguments):
    """For other kernels: called from Python, a kernel of any number of arguments is loaded anew each time."""
    return ()


class Terms(NamedTuple):
    """Names of terms, and the kernel that computes them: it returns a tuple of numbers in their order."""

    names: tuple[str, ...] = ()
    kernel: Any = no_terms

    @property
    def named(self) -> Kernel:
        """The kernel, which does not compile if it returns another number of terms than there are names."""
        return _counted(self.kernel, len(self.names)) if self.names else self.kernel


@cache
def _counted(kernel_of: Kernel, count: int) -> Kernel:
    @kernel(forceinline=True)
    def counted(*arguments):
        return as_many(kernel_of(*arguments), count)

    return counted


@dataclass(frozen=True)
class WeightedSum:
    """Named terms and a weight for each. The fields of a subclass are the weights; default: the published ones.

    The terms are class attributes, one `Terms` for each of the game's `KINDS`. `term_names` are the names of all,
    unless a class states them in another order.
    """

    KINDS: ClassVar[tuple[str, ...]] = ("of_board",)  # what terms may be of; the order of the weights for the kernels

    kind = "heuristic"  # its name in error messages
    name: ClassVar[str]
    term_names: ClassVar[tuple[str, ...]]
    of_board = Terms()
    vectors: ClassVar[Mapping[str, Mapping[str, float]]] = {}  # sets of weights that have a name
    real: ClassVar[type[np.floating]] = np.float64  # the precision of searches' values

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        if "term_names" not in cls.__dict__:
            cls.term_names = cls._names()
        for name, value in vars(cls).items():
            if isinstance(value, Terms) and name not in cls.KINDS:
                raise ValueError(f"{cls.__name__} has the terms {name!r}; expected {' or '.join(cls.KINDS)}")

    @classmethod
    def _names(cls) -> tuple[str, ...]:
        return tuple(name for kind in cls.KINDS for name in getattr(cls, kind).names)

    def __post_init__(self) -> None:
        for term in self.term_names:
            check_weight(self.name, term, getattr(self, term), self.real)

    def weight_vector(self) -> Floats:
        """The weights for the kernels, float64[k]: those of the terms by `KINDS`, 0 if one does not count."""
        return np.array([getattr(self, name, 0.0) for name in self._names()], dtype=np.float64)

    @cached_property
    def _weights(self) -> Floats:
        return self.weight_vector()

    @property
    def option_names(self) -> list[str]:
        return [field.name for field in fields(self) if field.name not in ("function", "label")]

    def of_states(self, states: Words) -> tuple[Floats, Bools]:
        """The values of states uint64[n, words] as `clone_state` returns them, 0 if the game is over; and whether."""
        values, over = np.empty(len(states)), np.empty(len(states), np.bool_)
        self.value_states(states, values, over)
        self.check()
        return values, over

    def value_states(self, states: Words, values: Floats, over: Bools) -> None:
        """Write `values` and `over` of `of_states`."""
        raise NotImplementedError

    def check_size(self, rows: int, cols: int) -> None:
        """Raises ValueError for a board size that the heuristic is not defined on."""

    def sized(self, name: str, boards: ArrayLike) -> Array:
        """One board or a batch as an array; raises ValueError for one of other dimensions, or of a wrong size."""
        array = checks.array(name, boards, "(rows, cols) or (n, rows, cols)")
        if array.ndim not in (2, 3):
            raise ValueError(f"{name} of shape {array.shape}; expected (rows, cols) or (n, rows, cols)")
        self.check_size(*array.shape[-2:])
        return array

    def check(self) -> None:
        """Raises what a user's function raised while compiled code called it (`functions.BoardFunction`)."""

    def to_json(self) -> Dict:
        """The name and all weights as JSON types, which `heuristic` reads back.

        >>> from mergefall.game2048 import HEURISTICS
        >>> HEURISTICS["monotone-smooth"].to_json()
        {'name': 'monotone-smooth', 'monotonicity': 1.0, 'smoothness': 0.1, 'empty': 2.5, 'max': 1.0, 'corner': 1.5}
        """
        return {"name": self.name} | {name: getattr(self, name) for name in self.option_names}


def plain(values: Any) -> Any:
    """One number as a float, an array as it is."""
    return values if np.ndim(values) else float(values)


def check_weight(owner: str, name: str, value: object, real: type[np.floating] = np.float64) -> None:
    """Raises ValueError for a weight that is not a finite number, or too large for kernels of precision `real`."""
    number(f"weight {name!r} of {owner}", value, -LARGEST[real], LARGEST[real])


# -- the weights in a heuristic's JSON form ----------------------------------------------------------------------------


def weights_of(spec: Any, path: str = "") -> dict[str, float]:
    """The weights in a heuristic's JSON form, path -> weight: all numbers that have a name.

    >>> weights_of({"name": "prairie-fire", "penalty": -1.0, "stages": [[11, {"penalty": -2.0}]]})
    {'penalty': -1.0, 'stages.0.1.penalty': -2.0}
    >>> weights_of({"name": "two-tetrad", "f1": 40.0, "f8": 20.0, "label": "tuned"})
    {'f1': 40.0, 'f8': 20.0}
    """
    found: dict[str, float] = {}
    for name, value in spec.items() if isinstance(spec, Mapping) else enumerate(spec):
        if isinstance(value, Mapping | list | tuple):
            found |= weights_of(value, f"{path}{name}.")
        elif isinstance(spec, Mapping) and isinstance(value, int | float) and not isinstance(value, bool):
            found[f"{path}{name}"] = float(value)
    return found


def with_weights(spec: Any, weights: dict[str, float]) -> Any:
    """A copy of a heuristic's JSON form with some weights replaced, path -> weight.

    >>> with_weights({"name": "nneonneo", "sum": -11.0}, {"sum": -12.0})
    {'name': 'nneonneo', 'sum': -12.0}
    """
    changed = copy.deepcopy(spec)
    for path, weight in weights.items():
        *parents, name = path.split(".")
        owner = changed
        for parent in parents:
            owner = owner[int(parent) if isinstance(owner, list) else parent]
        owner[name] = weight
    return changed
