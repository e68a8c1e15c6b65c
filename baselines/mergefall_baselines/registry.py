"""Players by name."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from gymnasium.error import DependencyNotInstalled

from mergefall_baselines.player import Player

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
    if Path(name).exists():
        return partial(_agent, name)
    raise ValueError(
        f"there is no player {name!r}; there are {', '.join(sorted(_FACTORIES))}, and paths of trained agents"
    )


def shipped(file: str, what: str) -> Callable[..., Player]:
    """What makes a trained agent that comes with `mergefall_training`; `what` says in a line which one it is."""

    def factory(checksum: str | None = None, **options: Any) -> Player:
        agents = _agents(file)
        return agents.agent(str(agents.SHIPPED / file), checksum=checksum, **options)

    factory.__doc__ = what
    return factory


def _agent(path: str, model: str = "best", checksum: str | None = None, **options: Any) -> Player:
    """The trained agent in a run folder (its `best` or its `last` model) or in a model file; `options` are its own."""
    return _agents(path).agent(path, model, checksum, **options)


def _agents(path: str) -> Any:
    """The module that makes trained agents; where it is missing, the error says how to get it."""
    try:
        from mergefall_training.learning import agents  # the one import from outside: a path is a convenience
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        raise DependencyNotInstalled(f'{path} needs {missing}; pip install "mergefall[train]" brings it') from error
    return agents


def players() -> dict[str, str]:
    """The registered players: name -> what it is, in one line."""
    return {name: (inspect.getdoc(factory) or "").split("\n")[0] for name, factory in sorted(_FACTORIES.items())}
