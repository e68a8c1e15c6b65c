"""Players by name: registered here, or brought by installed distributions through entry points."""

import inspect
from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from functools import cache, partial
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from mergefall.checks import near
from mergefall.games import ENVIRONMENTS, game_of, home_of
from mergefall.imports import imported, is_import, name_of
from mergefall.library import holds_function, to_json
from mergefall.typing import Dict, Options

from mergefall_baselines.player import OfPredictor, Player, parts_of

Factory = Callable[..., Any]
_FACTORIES: dict[str, Factory] = {}


def register(name: str, factory: Factory) -> None:
    """Add a player: ``make(name, **options)`` then calls ``factory(**options)``.

    Args:
        name: ``game/player``, such as ``2048/edges``.
        factory: a class or function that returns a `Player`, or an object with Stable-Baselines3's ``predict``.

            - Its parameters are the player's options, JSON types.
            - The first line of its docstring describes the player in lists.
            - Its attribute `plays`, if it has one, holds arguments of the environment that commands play the player
              in, perhaps with an `env_id`; or it is a function that returns them for the player's options.

    Worker processes of `evaluate` and `compare` get the factories that they need. The same class or function may be
    registered again, as a notebook does. Raises ValueError if the name is taken.
    """
    if name in _FACTORIES and name_of(_FACTORIES[name]) != name_of(factory):
        raise ValueError(f"there is a player {name!r} already")
    _FACTORIES[name] = factory


def make(name: str, **options: Any) -> Player:
    """Make a player.

    Args:
        name: one of

            - a registered name, such as ``2048/expectimax``; `players` lists them.
            - the path of a trained agent: its run folder or model file.
            - ``module:name``: a class or a function in a module that can be imported, as `register` takes it; or a
              policy, a function of one observation that returns an action. A function that loads a model of
              Stable-Baselines3 makes that model play.
        options: the player's options; its docstring describes them.

    Raises ValueError for an unknown name, for an unknown option, and for a missing one.

    Example:
        >>> from mergefall_baselines import make
        >>> player = make("2048/greedy")
        >>> int(player.act([[1, 1], [0, 2]]))
        1
    """
    factory = factory_of(name)
    if "player" in options and "of" in inspect.signature(factory).parameters:
        options["of"] = options.pop("player")  # its name in version 0.1.0
    _check_options(name, options)
    player = player_of(factory(**options), f"what {name} makes")
    player.name = player.made_as = name
    player.options = {key: to_json(value) for key, value in options.items()} | dict(player.options)
    player.functions = {key: value for key, value in options.items() if holds_function(value)}
    return player


def signature_of(name: str) -> inspect.Signature:
    """The options of a player, as the signature of its factory: `rules` stands there as the game's rules."""
    factory = factory_of(name)
    options = list(inspect.signature(factory).parameters.values())
    home, form = home_of(name), getattr(factory, "form", None)
    game = form.rules if form else home and game_of(home)  # a player's class may play another game than its name
    if game and options and options[-1].name == "rules":  # **rules
        rules = options.pop()
        options += [
            rules.replace(name=rule, kind=rules.KEYWORD_ONLY, default=None) for rule in game.arguments("players")
        ]
    return inspect.Signature(options)


def _check_options(name: str, options: Options) -> None:
    """Raises ValueError for an option that a player does not have, and for one that it needs."""
    known = signature_of(name).parameters
    named = {option: one for option, one in known.items() if one.kind is not one.VAR_KEYWORD}
    if unknown := [option for option in options if option not in known and len(named) == len(known)]:
        names = [option for option in known if option != "checksum"]
        there = ", ".join(names) or f"none, and its settings are fixed: `mergefall players {name}` names them"
        raise ValueError(f"{name} has no option {unknown[0]!r}; it has {there}{near(unknown[0], names)}")
    if missing := [option for option, one in named.items() if one.default is one.empty and option not in options]:
        raise ValueError(f"{name} needs the option {missing[0]!r}")


def environment_of(name: str, options: Options) -> tuple[str | None, Dict]:
    """Id and arguments of the environment that a player plays by default; the id is None if nothing says it.

    The player's options that are rules replace its default ones. Raises ValueError as `make` does.

    >>> environment_of("2048/optimal", {"cols": 2})
    ('mergefall/Game2048-v0', {'rows': 2, 'cols': 2})
    >>> environment_of("tetris/greedy", {})
    ('mergefall/Tetris-v0', {})
    """
    factory = factory_of(name)
    _check_options(name, options)
    plays: Options | Callable[..., Options] = getattr(factory, "plays", {})
    arguments: Dict = dict(plays(**options) if callable(plays) else plays)
    env_id = arguments.pop("env_id", None) or home_of(name)
    rules = game_of(env_id).rules_of(options) if arguments and env_id in ENVIRONMENTS else {}
    return env_id, arguments | rules


def player_of(spec: Any, what: str = "player") -> Player:
    """The player of a spec: a name, a mapping of `player` and options, a player, or what acts as one.

    That is an object with Stable-Baselines3's ``predict``, or a function of one observation that returns an action.
    Raises ValueError, which calls it `what`, for anything else.

    >>> from mergefall_baselines.registry import player_of
    >>> player_of({"player": "2048/greedy", "heuristic": "nneonneo"}).name
    '2048/greedy'
    """
    match spec:
        case str():
            return make(spec)
        case Player():
            return spec
        case Mapping():
            name, options = parts_of(spec)
            if isinstance(name, str):
                return make(name, **options)
            if name is not None and not options:
                return player_of(name, what)
        case _ if hasattr(spec, "predict") or (callable(spec) and not isinstance(spec, type)):
            return OfPredictor(spec)
    raise ValueError(
        f"{what} is {spec!r}; expected a Player, a player's name, a mapping of player and options, an object with "
        "Stable-Baselines3's `predict`, or a function of an observation that returns an action"
    )


def without_memory(player: Player, what: str = "player") -> Player:
    """The player itself; raises ValueError if its values are no function of the observation, because it remembers.

    A player that remembers only to save time is not refused.

    `what` is what the message calls it.
    """
    if player.start(0) is not None and not player.caches:
        raise ValueError(f"{what} is {player.name!r}, which remembers; expected one that needs the observation alone")
    return player


def of_game(spec: Any, rules: type, what: str = "player") -> Player:
    """The player of a spec; raises ValueError, which calls it `what`, if games of such `rules` are not its own."""
    player = player_of(spec, what)
    if player.form is not None and not issubclass(rules, player.form.rules):
        raise ValueError(f"{what} is {player.name!r}, which plays another game")
    return player


def player_under(rules: Any, spec: Any, what: str = "player") -> Player:
    """The player of a spec under an environment's `rules`; its values need the observation alone.

    Raises ValueError as `of_game` and `without_memory` do, and for a player of other rules.
    """
    player = of_game(spec, type(rules), what)
    return without_memory(player.with_rules(asdict(rules)), what)


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
            factory: Any = partial(provider.player_at, name)
            if hasattr(provider, "trained_in"):
                factory.plays = partial(provider.trained_in, name)
            return factory
    if is_import(name):
        found = imported(name)
        if isinstance(found, type):
            return found
        if callable(found) and not hasattr(found, "predict"):
            parameters = list(inspect.signature(found).parameters.values())
            options = [one for one in parameters if one.default is not one.empty or one.kind is one.VAR_KEYWORD]
            if len(parameters) != 1 or options:  # else a policy: it takes an observation, for options have defaults
                return found
        return lambda: player_of(found, name)
    beside = [path.as_posix() for path in Path(name).parent.glob("*")] if home_of(name) is None else []
    meant = near(name, [*players(), *beside]) or f"; there are {', '.join(players())}."
    raise ValueError(
        f"there is no player {name!r}{meant} Run folders and model files are players by their paths, classes and "
        "functions of a module by 'module:name'"
    )


def added(names: Iterable[str]) -> dict[str, Factory]:
    """Those of some names under which `register` was called outside this package, with their factories."""
    wanted, ours = set(names), f"{__name__.partition('.')[0]}."
    return {name: one for name, one in _FACTORIES.items() if name in wanted and not name_of(one).startswith(ours)}


def adopt(factories: Mapping[str, Factory]) -> None:
    """Take over what `added` returned in another process."""
    for name, factory in factories.items():
        _FACTORIES.setdefault(name, factory)


@cache
def _providers() -> list[Any]:
    """The modules that installed distributions name in the entry-point group `mergefall.players`.

    Such a module has

    - ``PLAYERS``, a mapping of names to factories as `register` takes them;
    - optionally ``player_at(path, **options)``, which makes the player in a file or folder, and perhaps
      ``trained_in(path, **options)``, the `plays` of such a player.
    """
    return [entry.load() for entry in entry_points(group="mergefall.players")]


def players() -> dict[str, str]:
    """All players by name, with the first line of their descriptions."""
    factories = ChainMap(_FACTORIES, *(provider.PLAYERS for provider in _providers()))
    return {name: (inspect.getdoc(factory) or "").split("\n")[0] for name, factory in sorted(factories.items())}
