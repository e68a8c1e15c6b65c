"""Checks of arguments, shared by both games. Errors name the value and the expectation."""

import math
import operator
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any

import numpy as np

from mergefall.typing import Array, Options

MOST_COUNTED = 1 << 53  # more steps than any episode has


def integer(name: str, value: Any, low: int, high: int | None = MOST_COUNTED) -> int:
    """`value` as an int; raises ValueError unless it is an integer from `low` to `high` (None: no limit)."""
    try:
        number = None if isinstance(value, (bool, np.bool_)) else operator.index(value)
    except TypeError:
        number = None
    if number is None or number < low or (high is not None and number > high):
        open_ended = high is None or (high == MOST_COUNTED and (number is None or number < low))
        expected = f"of at least {low}" if open_ended else f"from {low} to {high}"
        raise ValueError(f"{name} is {value!r}; expected an integer {expected}")
    return number


def made_of(name: str, value: Any, kind: Any, expected: str) -> Any:
    """`value`; raises ValueError unless it is an instance of `kind`."""
    if not isinstance(value, kind):
        raise ValueError(f"{name} are {value!r}; expected {expected}")
    return value


def boolean(name: str, value: Any) -> bool:
    """`value`, if it is True or False. Raises ValueError, with its `name`, otherwise."""
    if not isinstance(value, bool):
        raise ValueError(f"{name} is {value!r}; expected true or false")
    return value


def array(name: str, value: Any, expected: str) -> Array:
    """`value` as an array of any dtype; raises ValueError if its rows differ in length."""
    try:
        return np.asarray(value)
    except ValueError:
        raise ValueError(f"{name} {value!r} has rows of different lengths; expected {expected}") from None


def choice(name: str, value: Any, choices: Any) -> Any:
    """`value`; raises ValueError unless it is one of the strings `choices`."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} is {value!r}; expected one of {', '.join(map(repr, choices))}{near(value, choices)}")
    return value


def near(value: Any, names: Iterable[str]) -> str:
    """The end of a message about an unknown name: the known one that it resembles.

    >>> near("learning-rat", ["depth", "learning_rate"]), near("x", ["depth"])
    ("; did you mean 'learning_rate'?", '')
    """
    found = get_close_matches(str(value).replace("-", "_"), list(names), 1)
    return f"; did you mean {found[0]!r}?" if found else ""


def typed(name: str, value: Any, dtype: Any, *shape: int | None) -> Array:
    """`value`, which must be an array of a dtype and shape, None being any length; a ValueError names it otherwise."""
    fits = isinstance(value, np.ndarray) and value.dtype == dtype and value.ndim == len(shape)
    if not fits or any(size not in (None, found) for size, found in zip(shape, value.shape, strict=True)):
        found = f"{value.dtype}{list(value.shape)}" if isinstance(value, np.ndarray) else repr(value)
        sizes = ", ".join("n" if size is None else str(size) for size in shape)
        raise ValueError(f"{name} is {found}; expected {np.dtype(dtype)}[{sizes}]")
    return value


def within(name: str, values: Array, low: int, high: int) -> None:
    """A ValueError for the first number of an array that is below `low` or above `high`."""
    if values.size and not low <= values.min() <= values.max() <= high:
        raise ValueError(f"{name} holds {values[(values < low) | (values > high)][0]}; expected {low} to {high}")


def known(owner: str, given: Options, names: Iterable[str]) -> None:
    """Raises ValueError for the first of the given options that is not among `names`, the options of `owner`."""
    names = list(names)
    if unknown := sorted(set(map(str, given)) - set(names)):
        there = ", ".join(names) or "none"
        raise ValueError(f"{owner} has no {unknown[0]!r}; it has {there}{near(unknown[0], names)}")


def number(
    name: str, value: Any, least: float = -math.inf, most: float = math.inf, *, above: float = -math.inf
) -> float:
    """`value` as a float; raises ValueError unless it is finite, from `least` to `most`, and greater than `above`."""
    plain = float(value) if isinstance(value, np.integer | np.floating) else value
    real = isinstance(plain, int | float) and not isinstance(plain, bool)
    finite = real and abs(plain) <= sys.float_info.max  # `isfinite` raises for an int that is no float
    if not finite or not (least <= plain <= most and plain > above):
        low = f" from {least}" if least > -math.inf else f" above {above}" if above > -math.inf else ""
        high = f" up to {most}" if most < math.inf else ""
        raise ValueError(f"{name} is {value!r}; expected a finite number{low}{high}")
    return float(plain)


@contextmanager
def in_place(where: str, kinds: tuple[type[Exception], ...] = (ValueError,)) -> Iterator[None]:
    """An error of `kinds` in this block becomes a ValueError with `where`, such as a file and a line, in front."""
    try:
        yield
    except kinds as error:
        raise ValueError(f"{where}: {error if isinstance(error, ValueError) else repr(error)}") from error
