"""Rates that change while a learner trains."""

from __future__ import annotations

from typing import Any


def schedule(name: str, value: Any) -> Any:
    """A rate as a function of what remains of training, 1 to 0: constant, or falling to 0 for text ``lin_…``.

    >>> schedule("learning_rate", "lin_0.5")(0.5), schedule("learning_rate", 0.5)
    (0.25, 0.5)
    """
    text = isinstance(value, str)
    try:
        number = float(value.removeprefix("lin_")) if text and value.startswith("lin_") else value
    except ValueError:
        number = None
    if not isinstance(number, int | float) or isinstance(number, bool) or not number >= 0:
        raise ValueError(f"{name} is {value!r}; expected a number, or text such as 'lin_0.001'")
    if not text:
        return number
    return lambda remaining: number * max(remaining, 0.0)  # the last rollout may end beyond the last step
