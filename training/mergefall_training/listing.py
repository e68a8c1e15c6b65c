"""What there is: tables of the players and of the environments."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any

import gymnasium as gym
import mergefall  # noqa: F401  (registers the environments)
from gymnasium.envs.registration import load_env_creator
from mergefall_baselines import players
from mergefall_baselines.registry import factory_of
from rich.table import Table
from rich.text import Text


def envs_table() -> Table:
    """The environments, with their arguments and the defaults of these."""
    table = _table("environment", "arguments and their defaults")
    for spec in gym.registry.values():
        if spec.namespace == "mergefall":
            assert spec.entry_point is not None
            creator = spec.entry_point if callable(spec.entry_point) else load_env_creator(spec.entry_point)
            row = spec.id, signature(creator, spec.kwargs), first_sentence(inspect.getdoc(creator) or "")
            table.add_row(*map(Text, row))
    return table


def players_table() -> Table:
    """The players, with their options and the defaults of these."""
    table = _table("player", "options and their defaults")
    for name, description in players().items():
        table.add_row(*map(Text, (name, signature(factory_of(name)), description)))
    return table


def _table(*names: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in (*names, "what it is"):
        table.add_column(name, overflow="fold", no_wrap=name == names[0])
    return table


def signature(factory: Callable[..., Any], fixed: Mapping[str, Any] | None = None) -> str:
    """A factory's arguments as ``name=default``, those that are ``fixed`` with that value.

    >>> signature(lambda rows, depth=3, table=True: None, {"table": False})
    'rows, depth=3, table=False'
    """
    defaults = {p.name: p.default for p in inspect.signature(factory).parameters.values()} | dict(fixed or {})
    return ", ".join(
        name if value is inspect.Parameter.empty else f"{name}={value!r}" for name, value in defaults.items()
    )


def first_sentence(text: str) -> str:
    """The first sentence of a docstring, headings left out.

    >>> first_sentence("## Description" + chr(10) + "The game, by G. Author. More of it.")
    'The game, by G. Author.'
    """
    words = " ".join(line.strip() for line in text.splitlines() if not line.startswith("#")).split()
    # An initial's full stop ends no sentence.
    return re.split(r"(?<=[\w)]{2}\.) ", " ".join(words))[0]
