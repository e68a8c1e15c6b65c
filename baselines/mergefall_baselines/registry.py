"""Players by name: registered here, or brought by installed distributions through entry points."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from mergefall_baselines.player import Player

ENTRY_POINTS = "mergefall.players"

Factory = Callable[..., Player]

_FACTORIES: dict[str, Factory] = {}


def register(name: str, factory: Factory) -> None:
    """Add a player: ``make(name, **options)`` then calls ``factory(**options)``.

    Args:
        name: ``game/player``.
        factory: its parameters are the player's options, JSON types; its docstring's first line describes the player.

    Worker processes make players by name, so call `register` in a module that they import. Raises ValueError if the
    name is taken.
    """
    if name in _FACTORIES:
        raise ValueError(f"there is a player {name!r} already")
    _FACTORIES[name] = factory


def make(name: str, **options: Any) -> Player:
    """Make a player by its name, or by the path of a trained agent (its run folder or model file).

    Raises ValueError for an unknown name, for an unknown option, and for a missing one.

    Example:
        >>> from mergefall_baselines import make
        >>> player = make("2048/greedy")
        >>> int(player.act([[1, 1], [0, 2]]))
        1
    """
    factory = factory_of(name)
    known = inspect.signature(factory).parameters
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in known.values())
    for option in options:
        if option not in known and not takes_any:
            raise ValueError(f"{name} has no option {option!r}; it has {', '.join(known) or 'none'}")
    for option, parameter in known.items():
        required = parameter.default is parameter.empty and parameter.kind is not parameter.VAR_KEYWORD
        if required and option not in options:
            raise ValueError(f"{name} needs the option {option!r}")
    player = factory(**options)
    player.name = player.made_as = name
    player.options = {key: _json_of(value) for key, value in options.items()} | dict(player.options)
    return player


def player_of(spec: Any, what: str = "player") -> Player:
    """The player of a spec: a name, a mapping of `name` and options, or a player; raises ValueError for anything else.

    `what` is what the message calls it.

    >>> from mergefall_baselines.registry import player_of
    >>> player_of({"name": "2048/greedy", "heuristic": "nneonneo"}).name
    '2048/greedy'
    """
    if isinstance(spec, Player):
        return spec
    options = {"name": spec} if isinstance(spec, str) else dict(spec) if isinstance(spec, Mapping) else {}
    if not isinstance(options.get("name"), str):
        raise ValueError(f"{what} is {spec!r}; expected a player's name, or a mapping of name and options")
    return make(**options)


def _json_of(value: Any) -> Any:
    return value.to_json() if hasattr(value, "to_json") else copy.deepcopy(value)


def factory_of(name: str) -> Factory:
    """The factory of a player: its signature holds the options, its docstring describes the player.

    Raises ValueError if there is no such player.
    """
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

    Such a module has

    - ``PLAYERS``, a mapping of names to factories as `register` takes them;
    - optionally ``player_at(path, **options)``, which makes the player in a file or folder.
    """
    return [entry.load() for entry in entry_points(group=ENTRY_POINTS)]


def players() -> dict[str, str]:
    """All players by name, with the first line of their descriptions."""
    factories = dict(_FACTORIES)
    for provider in _providers():
        factories = {**provider.PLAYERS, **factories}
    return {name: (inspect.getdoc(factory) or "").split("\n")[0] for name, factory in sorted(factories.items())}
