"""What there is: tables of the players and of the environments."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import mergefall  # noqa: F401  (registers the environments)
from gymnasium.envs.registration import load_env_creator
from mergefall_baselines import players
from rich.console import Console
from rich.table import Table


def show(table: Table) -> None:
    """Print a table to standard output."""
    console = Console()
    (console if console.is_terminal else Console(width=120)).print(table)


def envs_table() -> Table:
    """The environments, with their arguments and the defaults of these."""
    table = _table("environment", "arguments and their defaults")
    for spec in gym.registry.values():
        if spec.namespace == "mergefall":
            assert spec.entry_point is not None
            creator = spec.entry_point if callable(spec.entry_point) else load_env_creator(spec.entry_point)
            table.add_row(spec.id, signature(creator, spec.kwargs), first_sentence(inspect.getdoc(creator) or ""))
    return table


def players_table() -> Table:
    """The players, with their options and the defaults of these."""
    table = _table("player", "options and their defaults")
    for name, description in players().items():
        table.add_row(name, "", description)
    return table


def _table(*names: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in (*names, "what it is"):
        table.add_column(name, overflow="fold", no_wrap=name == names[0])
    return table


def signature(factory: Callable[..., Any], fixed: dict[str, Any]) -> str:
    """A factory's keyword arguments as ``name=default``, those that are ``fixed`` with that value."""
    parameters = inspect.signature(factory).parameters.values()
    defaults = {p.name: p.default for p in parameters if p.default is not p.empty}
    return ", ".join(f"{name}={value!r}" for name, value in (defaults | fixed).items())


def first_sentence(text: str) -> str:
    """The first sentence of a docstring, headings left out.

    >>> first_sentence("## Description" + chr(10) + "The game. More of it.")
    'The game.'
    """
    words = " ".join(line.strip() for line in text.splitlines() if not line.startswith("#")).split()
    return " ".join(words).partition(". ")[0].rstrip(".") + "."
