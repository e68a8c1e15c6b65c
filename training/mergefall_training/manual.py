"""Commands that return pages about players, heuristics, environments, suites and learners: docstrings and defaults.

Pages are plain text; lists are as wide as the terminal, and at most `WIDEST` columns.
"""

from __future__ import annotations

import inspect
import re
import shutil
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields
from importlib import import_module
from typing import Annotated, Any

import tyro

WIDEST = 120
INDENT = "    "
Name = Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="[NAME]")]


# -- pages ------------------------------------------------------------------------------------------------------------


def players(name: Name = None) -> str:
    """List the players with their options and defaults, or describe one.

    Args:
        name: Name of a player, or module:name; default: list all.
    """
    from mergefall_baselines import registry

    if name is not None:
        factory: Any = registry.factory_of(name)
        if "__doc__" not in vars(factory):
            factory = getattr(factory, "func", factory)  # of a path
        return _page(name, _about(factory), {"Options and defaults": listed(registry.signature_of(name))})
    rows = [(known, about, listed(registry.signature_of(known))) for known, about in registry.players().items()]
    return _listing(rows, "mergefall players NAME")


def heuristics(name: Name = None) -> str:
    """List the heuristics of both games with their weights, or describe one.

    Args:
        name: Name of a heuristic; default: list all.
    """
    from mergefall.checks import choice
    from mergefall.games import games
    from mergefall.library import origin

    libraries = {id(game.library()): game for game in reversed(games().values())}  # several games share one
    known = [(game.name, *entry) for game in reversed(libraries.values()) for entry in game.library().known.items()]
    rows = []
    for game, one, heuristic in known:
        title, about = f"{game}: {one}", _about(origin(heuristic))
        weights = ", ".join(f"{weight}={getattr(heuristic, weight)!r}" for weight in heuristic.option_names) or "none"
        if one == name:
            return _page(title, about, {"Weights": weights})
        rows.append((title, about.split("\n")[0], weights))
    if name is not None:
        choice("heuristic", name, [one for _, one, _ in known])
    return _listing(rows, "mergefall heuristics NAME")


def envs(name: Name = None) -> str:
    """List the environments with their arguments and defaults, or describe one.

    Args:
        name: Id of an environment; default: list all.
    """
    import gymnasium as gym
    from gymnasium.envs.registration import load_env_creator
    from mergefall.games import ENVIRONMENTS, game_of

    rows = []
    for env_id in ENVIRONMENTS:
        spec: Any = gym.registry[env_id]
        creator = load_env_creator(spec.entry_point)
        about, arguments = _about(creator), listed(inspect.signature(creator), spec.kwargs)
        if name is not None and name.removeprefix("mergefall:") in (env_id, env_id.removeprefix("mergefall/")):
            return _page(env_id, about, {"Arguments and defaults": arguments})
        rows.append((env_id, first_sentence(about), arguments))
    if name is not None:
        game_of(name)  # raises ValueError
    return _listing(rows, "mergefall envs ID")


def suites() -> str:
    """List the suites that `mergefall compare` plays."""
    from mergefall_training.compare.suite import load_suite, suite_names

    rows = []
    for suite in map(load_suite, suite_names()):
        games = dict.fromkeys(contest.series or contest.name for contest in suite.contests)
        rows.append((suite.name, " ".join(suite.description.split()), f"games: {', '.join(games)}"))
    return _listing(rows, "mergefall compare NAME")


def training_page(algorithm: str) -> str:
    """A learner's docstring, hyper-parameters and presets."""
    from mergefall_training.learn import trainer
    from mergefall_training.learn.presets import presets_of

    module = trainer(algorithm)
    presets = [
        f"{env_id}{f' --preset {name}' if name else ''}: {', '.join(f'{key}={value}' for key, value in given.items())}"
        for env_id, name, given in presets_of(algorithm)
    ]
    defaults, meanings = _hyperparameters(module, algorithm)
    sections = {
        "Defaults of hyper-parameters (--set NAME=VALUE)": defaults,
        "Presets, which change them": "\n".join(presets),
    }
    text = _page(f"mergefall train {algorithm}", f"{_about(module)}\n\n{meanings}", sections)
    return f"{text}\n\nmergefall train --help lists the options of the command."


# -- what pages are made of -------------------------------------------------------------------------------------------


def _about(thing: Any) -> str:
    return inspect.getdoc(thing) or ""


def listed(signature: inspect.Signature, fixed: Mapping[str, Any] | None = None) -> str:
    """The arguments of a signature as ``name=default``; those in `fixed` with that value.

    >>> listed(inspect.signature(lambda rows, depth=3, table=True: None), {"table": False})
    'rows, depth=3, table=False'
    """
    parameters = signature.parameters.values()
    defaults = {p.name: p.default for p in parameters if p.kind is not p.VAR_KEYWORD} | dict(fixed or {})
    return ", ".join(
        name if value is inspect.Parameter.empty else f"{name}={value!r}" for name, value in defaults.items()
    )


def first_sentence(text: str) -> str:
    """The first sentence of a docstring without its headings.

    >>> first_sentence("## Description" + chr(10) + "The game, by G. Author. More of it.")
    'The game, by G. Author.'
    """
    words = " ".join(line.strip() for line in text.splitlines() if not line.startswith("#")).split()
    # A full stop after an initial ends no sentence.
    return re.split(r"(?<=[\w)]{2}\.) ", " ".join(words))[0]


def _hyperparameters(module: Any, algorithm: str) -> tuple[str, str]:
    """(names and defaults, meanings) of a learner's hyper-parameters.

    Ours are fields of a dataclass, and its docstring and those of its bases say what they mean. Those of
    Stable-Baselines3 are arguments of its class.
    """
    own: Any = getattr(module, "Hyperparameters", None)
    kind = own or module.Learner.kind or module.CLASSES[algorithm]
    if own:
        made = {one.name: one.default_factory() for one in fields(own) if one.default_factory is not MISSING}
        defaults, told = {one.name: one.default for one in fields(own)} | made, own.__mro__[-2::-1]
    else:
        defaults = import_module("mergefall_training.learn.sb3.train").arguments_of(kind)
        told = [cls for cls in kind.__mro__ if not cls.__module__.startswith("mergefall")][:1]
    return ", ".join(f"{name}={default!r}" for name, default in defaults.items()), "\n\n".join(map(_about, told))


# -- layout -----------------------------------------------------------------------------------------------------------


def _wrapped(text: str) -> str:
    """Indented lines that fit the terminal."""
    width = min(shutil.get_terminal_size().columns, WIDEST)
    lines = (
        textwrap.fill(
            line.strip(),
            width,
            initial_indent=(margin := INDENT + " " * (len(line) - len(line.lstrip()))),
            subsequent_indent=margin + INDENT,
            break_long_words=False,
            break_on_hyphens=False,
        )
        for line in text.splitlines()
    )
    return "\n".join(lines)


def _listing(rows: Iterable[tuple[str, str, str]], more: str) -> str:
    """Names, each with what it is and its options below it."""
    parts = ["\n".join([name, *map(_wrapped, filter(None, texts))]) for name, *texts in rows]
    return "\n".join([*parts, "", f"{more} tells more."])


def _page(title: str, about: str, sections: Mapping[str, str]) -> str:
    """A docstring as it is, and below it sections by their headings."""
    texts = (f"{heading}:\n{_wrapped(text)}" for heading, text in sections.items())
    return "\n\n".join(filter(None, [title, about, *texts]))
