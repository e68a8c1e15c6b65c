"""Pages about players, heuristics, environments, suites and learners: docstrings and defaults, for the command.

Pages are plain text, as wide as the terminal and at most `WIDEST` columns.
"""

from __future__ import annotations

import ast
import inspect
import re
import shutil
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from mergefall.library import origin

WIDEST = 100
INDENT = "    "


# -- pages ------------------------------------------------------------------------------------------------------------


def players_page(name: str | None) -> str:
    """All players with their options and defaults; with a name the docstring of that player."""
    from mergefall_baselines import players
    from mergefall_baselines.registry import factory_of

    if name is not None:
        factory: Any = factory_of(name)
        factory = getattr(factory, "func", factory)  # of a path
        return _page(name, _about(factory), [("Options and defaults", signature(factory))])
    rows = [(known, about, signature(factory_of(known))) for known, about in players().items()]
    return _listing(rows, "mergefall players NAME")


def heuristics_page(name: str | None) -> str:
    """All heuristics with their weights; with a name the docstring of that heuristic."""
    from mergefall.games import GAMES

    found = []
    for game in GAMES.values():
        game.library.load()
        found += [(game, known, heuristic) for known, heuristic in game.heuristics.items()]
    if name is not None:
        chosen = [(game, heuristic) for game, known, heuristic in found if known == name]
        if not chosen:
            raise ValueError(f"no heuristic {name!r}; there are {', '.join(known for _, known, _ in found)}")
        return "\n\n".join(
            _page(f"{game.name}: {name}", _about(origin(heuristic)), [("Weights", _weights(heuristic))])
            for game, heuristic in chosen
        )
    rows = [
        (f"{game.name}: {known}", _about(origin(heuristic)).split("\n")[0], _weights(heuristic))
        for game, known, heuristic in found
    ]
    return _listing(rows, "mergefall heuristics NAME")


def environments_page(env_id: str | None) -> str:
    """All environments with their arguments and defaults; with an id the docstring of that environment."""
    import gymnasium as gym
    import mergefall  # noqa: F401  (registers the environments)
    from gymnasium.envs.registration import load_env_creator

    rows, docs = [], {}
    for spec in gym.registry.values():
        if spec.namespace == "mergefall":
            assert spec.entry_point is not None
            creator = spec.entry_point if callable(spec.entry_point) else load_env_creator(spec.entry_point)
            docs[spec.id] = inspect.getdoc(creator) or ""
            rows.append((spec.id, first_sentence(docs[spec.id]), signature(creator, spec.kwargs)))
    if env_id is None:
        return _listing(rows, "mergefall envs ID")
    wanted = env_id.removeprefix("mergefall:")
    matches = [row for row in rows if wanted in (row[0], row[0].removeprefix("mergefall/"))]
    if not matches:
        raise ValueError(f"env is {env_id!r}; expected one of {', '.join(docs)}")
    known, _, arguments = matches[0]
    return _page(known, docs[known], [("Arguments and defaults", arguments)])


def suites_page() -> str:
    """All suites with what they compare."""
    from mergefall_training.compare.suite import FOLDER, suite_names
    from mergefall_training.yaml_numbers import load_yaml

    rows = []
    for name in suite_names():
        content = load_yaml((FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))
        games = [
            game["name"] + ending
            for game in content["games"]
            for ending in [f"-{preset}" for preset in game.get("presets", [])] or [""]
        ]
        rows.append((name, " ".join(content.get("description", "").split()), f"games: {', '.join(games)}"))
    return _listing(rows, "mergefall compare NAME")


def training_page(algorithm: str) -> str:
    """A learner's docstring, hyper-parameters and presets."""
    from mergefall_training.learn import trainer
    from mergefall_training.learn.presets import presets_of

    module, found = trainer(algorithm), presets_of(algorithm)
    usual = {env_id: given for env_id, name, given in found if not name}
    parameters = [
        (f"{name} = {default}{_in_presets(name, usual)}", about)
        for name, default, about in _hyperparameters(module, algorithm)
    ]
    sections = [("Hyper-parameters (--set NAME=VALUE) and defaults", _entries(parameters))]
    presets = [
        (f"{env_id}{f' --preset {name}' if name else ''}", ", ".join(f"{key}={value}" for key, value in given.items()))
        for env_id, name, given in found
    ]
    sections.append(("Presets, which change defaults", _entries(presets)))
    text = _page(f"mergefall train {algorithm}", _about(module), sections)
    return f"{text}\n\nmergefall train --help lists the options of the command."


# -- what pages are made of -------------------------------------------------------------------------------------------


def _about(thing: Any) -> str:
    return inspect.getdoc(thing) or ""


def _weights(heuristic: Any) -> str:
    return ", ".join(f"{name}={getattr(heuristic, name)!r}" for name in heuristic.option_names) or "none"


def signature(factory: Callable[..., Any], fixed: Mapping[str, Any] | None = None) -> str:
    """The arguments of a factory as ``name=default``; those in `fixed` with that value.

    >>> signature(lambda rows, depth=3, table=True: None, {"table": False})
    'rows, depth=3, table=False'
    """
    parameters = inspect.signature(factory).parameters.values()
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


def _in_presets(name: str, usual: Mapping[str, Mapping[str, Any]]) -> str:
    """What the usual presets, by environment, set a hyper-parameter to.

    >>> _in_presets("gamma", {"mergefall/Game2048-v0": {"gamma": 0.9}, "mergefall/Tetris-v0": {}})
    ' (preset: Game2048-v0 0.9)'
    """
    given = [f"{env_id.rpartition('/')[2]} {preset[name]}" for env_id, preset in usual.items() if name in preset]
    return f" (preset: {', '.join(given)})" if given else ""


def _hyperparameters(module: Any, algorithm: str) -> list[tuple[str, str, str]]:
    """(name, default, meaning) of a learner's hyper-parameters."""
    if hasattr(module, "Hyperparameters"):
        return list(fields_of(module.Hyperparameters))
    kind = module.CLASSES[algorithm]  # of Stable-Baselines3, whose arguments are the hyper-parameters
    texts = "\n".join(cls.__doc__ or "" for cls in reversed(kind.__mro__))
    about = {
        name: " ".join(text.split())
        for name, text in re.findall(r":param (\w+):(.*?)(?=\n\s*:param|\n\s*\n|\Z)", texts, re.DOTALL)
    }
    found = [p for p in inspect.signature(kind).parameters.values() if p.name not in module.NOT_TO_SET]
    return [(p.name, repr(p.default), module.MEANINGS.get(p.name) or about.get(p.name, "")) for p in found]


def fields_of(kind: type) -> Iterator[tuple[str, str, str]]:
    """(name, default as source, meaning) of a dataclass's fields.

    The meaning is the text below a field, or the comment beside it, or that of the base class.
    """
    found: dict[str, tuple[str, str]] = {}
    for cls in reversed(kind.__mro__[:-1]):
        source = textwrap.dedent(inspect.getsource(cls))
        lines, (definition,) = source.splitlines(), ast.parse(source).body
        assert isinstance(definition, ast.ClassDef)
        for node, after in zip(definition.body, [*definition.body[1:], None], strict=True):
            if not isinstance(node, ast.AnnAssign) or "ClassVar" in ast.unparse(node.annotation):
                continue
            about = lines[(node.end_lineno or node.lineno) - 1].partition("  # ")[2]
            if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
                about = " ".join(str(after.value.value).split())
            default = "required" if node.value is None else ast.unparse(node.value)
            default = re.sub(r"field\(default_factory=(?:lambda: )?(.*)\)", r"\1", default)
            name = ast.unparse(node.target)
            found[name] = default, about or found.get(name, ("", ""))[1]
    for name, (default, about) in found.items():
        yield name, default, about


# -- layout -----------------------------------------------------------------------------------------------------------


def _width() -> int:
    return min(shutil.get_terminal_size().columns, WIDEST)


def _filled(text: str, indent: str = "", hanging: str | None = None) -> str:
    return textwrap.fill(
        text,
        _width(),
        initial_indent=indent,
        subsequent_indent=indent if hanging is None else hanging,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _listing(rows: Iterable[tuple[str, str, str]], more: str) -> str:
    """Names, each with what it is and its options below it."""
    parts = []
    for name, about, options in rows:
        lines = [_filled(text, INDENT) for text in (about, options) if text]
        parts.append("\n".join([name, *lines]))
    return "\n".join([*parts, "", f"{more} tells more."])


def _page(title: str, about: str, sections: Iterable[tuple[str, str]]) -> str:
    parts = [title, wrapped(about, _width())]
    parts += [f"{heading}:\n{text if text.startswith(INDENT) else _filled(text, INDENT)}" for heading, text in sections]
    return "\n\n".join(part for part in parts if part)


def _entries(entries: Iterable[tuple[str, str]]) -> str:
    """Entries with their meanings below them."""
    return "\n".join(
        "\n".join([_filled(name, INDENT, INDENT * 2), *([_filled(about, INDENT * 2)] if about else [])])
        for name, about in entries
    )


def wrapped(text: str, width: int) -> str:
    """A docstring wrapped to a width: paragraphs, bullets and entries such as `name: text` are filled anew.

    Examples, tables and formulas, whose lines are indented or begin with a sign, keep their lines.

    >>> print(wrapped("One line that is long.\\nIt goes on.\\n\\n- a bullet\\n  of two lines", 30))
    One line that is long. It goes
    on.
    <BLANKLINE>
    - a bullet of two lines
    """
    done: list[str] = []
    for block in re.split(r"\n\s*\n", text.rstrip()):
        if done:
            done.append("")
        done += _block(block.splitlines(), width)
    return "\n".join(done)


_ENTRY = re.compile(r"\s*(?:- |\d+\. )\S|\s+[\w`]+(?:, [\w`]+)*: \S")
_AS_IT_IS = re.compile(r"\s*(?:>>>|\.\.\.|\||```|#)|\s+mergefall [a-z]")


def _block(lines: list[str], width: int) -> Iterator[str]:
    if any(_AS_IT_IS.match(line) for line in lines):
        yield from lines
        return
    paragraph: list[str] = []
    for line in lines:
        entry, indent = _ENTRY.match(line), len(line) - len(line.lstrip())
        first = paragraph[0] if paragraph else ""
        own = len(first) - len(first.lstrip())
        hangs = bool(_ENTRY.match(first)) and indent > own
        if paragraph and (entry or not (hangs or (indent == own and not _ENTRY.match(first))) or first.endswith(":")):
            yield from _fill(paragraph, width)
            paragraph = []
        paragraph.append(line)
    yield from _fill(paragraph, width)


def _fill(paragraph: list[str], width: int) -> Iterator[str]:
    if not paragraph:
        return
    first = paragraph[0]
    indent = " " * (len(first) - len(first.lstrip()))
    hanging = indent + ("  " if first.lstrip().startswith("- ") else INDENT if _ENTRY.match(first) else "")
    words = " ".join(line.strip() for line in paragraph)
    yield from textwrap.wrap(
        words,
        width,
        initial_indent=indent,
        subsequent_indent=hanging,
        break_long_words=False,
        break_on_hyphens=False,
    )
