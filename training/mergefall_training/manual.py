"""Commands that return pages about players, heuristics, environments, suites and learners: docstrings and defaults.

Pages are plain text; lists are as wide as the terminal, and at most `WIDEST` columns.
"""

import inspect
import re
import shutil
import textwrap
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from tyro.conf import Positional, arg

WIDEST = 120
INDENT = "    "
Name = Annotated[str | None, Positional, arg(metavar="[NAME]")]


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

    rows: dict[str, tuple[str, str, str]] = {}
    for game in games().values():
        for known, heuristic in game.library().known.items():
            weights = ", ".join(f"{weight}={getattr(heuristic, weight)!r}" for weight in heuristic.option_names)
            row = f"{game.name}: {known}", _about(origin(heuristic)), weights or "none"
            rows.setdefault(known, row)  # several games share a library
    return _described(rows, name and choice("heuristic", name, rows), "mergefall heuristics NAME", "Weights")


def envs(name: Name = None) -> str:
    """List the environments with their arguments and defaults, or describe one.

    Args:
        name: Id of an environment; default: list all.
    """
    import gymnasium as gym
    from gymnasium.envs.registration import load_env_creator
    from mergefall.games import ENVIRONMENTS, game_of

    rows: dict[str, tuple[str, str, str]] = {}
    for env_id in ENVIRONMENTS:
        spec: Any = gym.registry[env_id]
        creator = load_env_creator(spec.entry_point)
        rows[env_id] = env_id, _about(creator), listed(inspect.signature(creator), spec.kwargs)
    if name is not None:
        name = f"mergefall/{name.rpartition('/')[2]}"
        game_of(name)  # raises ValueError
    return _described(rows, name, "mergefall envs ID", "Arguments and defaults")


def suites() -> str:
    """List the suites that `mergefall compare` plays."""
    from mergefall_training.compare.suite import load_suite, suite_names

    rows = []
    for suite in map(load_suite, suite_names()):
        games = dict.fromkeys(contest.series or contest.name for contest in suite.contests)
        rows.append((suite.name, " ".join(suite.description.split()), f"games: {', '.join(games)}"))
    return _listing(rows, "mergefall compare NAME")


def training_page(algorithm: str) -> str:
    """A learner's docstring, hyper-parameters and presets.

    Our hyper-parameters are fields of a dataclass, and its docstring and those of its bases say what they mean. Those
    of Stable-Baselines3 are arguments of its class.
    """
    from mergefall_training.learn import trainer
    from mergefall_training.learn.presets import presets_of

    module = trainer(algorithm)
    if own := getattr(module, "Hyperparameters", None):
        defaults, told = vars(own()), own.__mro__[-2::-1]
    else:
        kind = module.CLASSES[algorithm]
        defaults = module.arguments_of(kind)
        told = [cls for cls in kind.__mro__ if not cls.__module__.startswith("mergefall")][:1]
    presets = [
        f"{env_id} --preset {name}: {', '.join(f'{key}={value}' for key, value in given.items())}"
        for env_id, name, given in presets_of(algorithm)
    ]
    sections = {
        "Defaults of hyper-parameters (--set NAME=VALUE)": ", ".join(f"{one}={defaults[one]!r}" for one in defaults),
        "Presets, which change them": "\n".join(presets),
    }
    text = _page(f"mergefall train {algorithm}", "\n\n".join(map(_about, [module, *told])), sections)
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


# -- layout -----------------------------------------------------------------------------------------------------------


def _wrapped(text: str) -> str:
    """Indented lines that fit the terminal."""
    lines = textwrap.TextWrapper(
        min(shutil.get_terminal_size().columns, WIDEST),
        initial_indent=INDENT,
        subsequent_indent=INDENT * 2,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(map(lines.fill, text.splitlines()))


def _listing(rows: Iterable[tuple[str, str, str]], more: str) -> str:
    """Names, each with what it is and its options below it."""
    parts = ["\n".join([name, *map(_wrapped, filter(None, texts))]) for name, *texts in rows]
    return "\n".join([*parts, "", f"{more} tells more."])


def _described(rows: Mapping[str, tuple[str, str, str]], name: str | None, more: str, heading: str) -> str:
    """The listing of all rows (title, docstring, arguments), or the page of the one that is named."""
    if name is None:
        return _listing(((title, first_sentence(about), given) for title, about, given in rows.values()), more)
    title, about, given = rows[name]
    return _page(title, about, {heading: given})


def _page(title: str, about: str, sections: Mapping[str, str]) -> str:
    """A docstring as it is, and below it sections by their headings."""
    texts = (f"{heading}:\n{_wrapped(text)}" for heading, text in sections.items())
    return "\n\n".join(filter(None, [title, about, *texts]))
