"""Players by name."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from functools import cache, partial
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from mergefall_baselines.player import Player

ENTRY_POINTS = "mergefall.players"

_FACTORIES: dict[str, Callable[..., Player]] = {}


def register(name: str, factory: Callable[..., Player]) -> None:
    """Add a player: ``make(name, **options)`` then calls ``factory(**options)``.

    `name` is ``game/player``; the factory's parameters are the player's options, and JSON types. Raises ValueError if
    the name is taken. Worker processes make their own, so register in a module that they import.
    """
    if name in _FACTORIES:
        raise ValueError(f"there is a player {name!r} already")
    _FACTORIES[name] = factory


def make(name: str, **options: Any) -> Player:
    """Make a player by its registered name, or by the path of a trained agent (its run folder or model file).

    Raises ValueError for an unknown name, and for an option that the player does not have.

    Example:
        >>> from mergefall_baselines import make
        >>> player = make("2048/greedy")
        >>> int(player.act([[1, 1], [0, 2]]))
        1
    """
    factory = factory_of(name)
    known = inspect.signature(factory).parameters
    any_option = any(parameter.kind is parameter.VAR_KEYWORD for parameter in known.values())
    for option in options:
        if option not in known and not any_option:
            raise ValueError(f"{name} has no option {option!r}; it has {', '.join(known) or 'none'}")
    required = [key for key, p in known.items() if p.default is p.empty and p.kind is not p.VAR_KEYWORD]
    missing = [key for key in required if key not in options]
    if missing:
        raise ValueError(f"{name} needs the option {missing[0]!r}")
    player = factory(**options)
    player.name = name
    told = {
        key: value.to_json() if hasattr(value, "to_json") else copy.deepcopy(value) for key, value in options.items()
    }
    player.options = told | dict(player.options)  # a trained agent adds which one it is
    return player


def factory_of(name: str) -> Callable[..., Player]:
    """What makes the player: its signature holds the options, its docstring says what it does."""
    if name in _FACTORIES:
        return _FACTORIES[name]
    for provider in _providers():
        if name in provider.PLAYERS:
            return provider.PLAYERS[name]
        if hasattr(provider, "player_at") and Path(name).exists():
            return partial(provider.player_at, name)
    raise ValueError(f"there is no player {name!r}; there are {', '.join(players())}, and paths of trained agents")


@cache
def _providers() -> list[Any]:
    """The modules that installed distributions name in the entry-point group `mergefall.players`.

    Such a module has `PLAYERS`, a mapping of names to factories as `register` takes them, and may have
    ``player_at(path, **options)``, which makes the player that a path stands for.
    """
    return [entry.load() for entry in entry_points(group=ENTRY_POINTS)]


def players() -> dict[str, str]:
    """All players by name, those of other distributions included: name -> what it is, in one line."""
    factories = dict(_FACTORIES)
    for provider in _providers():
        factories |= provider.PLAYERS
    return {name: (inspect.getdoc(factory) or "").split("\n")[0] for name, factory in sorted(factories.items())}
