"""Imports: objects by the text `module:name`, for command lines and suites, and modules that need an extra."""

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from importlib.metadata import entry_points
from types import ModuleType
from typing import Any, TypeVar

from gymnasium.error import DependencyNotInstalled

_PATH = re.compile(r"[^\W\d][\w.]*:[^\W\d][\w.]*")
_folders: list[str] = []  # where a program looks for the modules that its user names
_typed: set[str] = set()  # words of the user's that files may repeat
T = TypeVar("T")
ONLY_YOU = "only you may name one: on the command line, as module:name or 'command=PROGRAM ARGUMENT', or by mergefall.imports.allow"  # noqa: E501
_EXTRAS = {
    "render": ("pygame", "matplotlib", "moviepy", "imageio"),
    "train": ("torch", "stable_baselines3", "sb3_contrib", "tensorboard", "minari", "cma"),
    "ray": ("ray",),
    "pettingzoo": ("pettingzoo",),
}  # what each extra of pyproject.toml brings


def look_in(folder: str) -> None:
    """From now on `load` finds modules of this folder, too."""
    if folder not in _folders:
        _folders.append(folder)


def load(module: str) -> ModuleType:
    """Import a module that the user names.

    The folders of `look_in` go to the end of `sys.path`, and not before they are needed: libraries look for modules
    that are not installed, and would import files that lie there by chance.
    """
    if module not in sys.modules:
        sys.path += [folder for folder in _folders if folder not in sys.path and "" not in sys.path]
    return import_module(module)


def import_extra(module: str) -> ModuleType:
    """Import a module that needs an extra, itself or by what it imports.

    Raises DependencyNotInstalled if a package of an extra is missing; the message names the extra and how to get it.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        for extra, packages in _EXTRAS.items():
            if missing in packages:
                needed = f"{missing} is not installed: this needs the extra {extra!r} ({_command(extra)})"
                raise DependencyNotInstalled(needed) from error
        raise


def _command(extra: str) -> str:
    """The command that installs an extra: from the package index once pyproject.toml names addresses."""
    for entry in entry_points(group="mergefall.players", name="mergefall_training"):
        if entry.dist and entry.dist.metadata.get_all("Project-URL"):
            return f'pip install "{entry.dist.name}[{extra}]"'
    return f'in a clone: pip install -e ".[{extra}]"'


def is_import(text: object) -> bool:
    """Whether a value is text such as `package.module:name`.

    >>> is_import("my_package.boards:Corner"), is_import("2048/greedy"), is_import("C:/runs/first")
    (True, False, False)
    """
    return isinstance(text, str) and _PATH.fullmatch(text) is not None


def imported(text: str) -> Any:
    """The object that `module:name` names; the name may have dots. Raises ValueError if there is none.

    >>> imported("mergefall.games:games")()["2048"].headline
    'score'
    """
    module, _, name = text.partition(":")
    try:
        found: Any = load(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise  # the module is there, and imports one that is not
        meant = f"; did you mean '{module[:-3]}:{name}'?" if module.endswith(".py") else ""
        raise ValueError(f"{text!r} names the module {module!r}; there is none here or installed{meant}") from error
    for part in name.split("."):
        if not hasattr(found, part):
            raise ValueError(f"{text!r}: there is no {part!r} in {module}")
        found = getattr(found, part)
    return found


def name_of(value: Any) -> str:
    """A function's or class's `module:name`; of what cannot be imported, a text with `<` in it.

    Such are lambdas, inner functions, methods of objects, and objects that can be called.

    >>> name_of(imported), name_of("text".upper)
    ('mergefall.imports:imported', 'builtins:<str.upper>')
    """
    value = getattr(value, "py_func", value)
    owner = getattr(value, "__self__", None)
    if isinstance(owner, type):  # a method of a class, which may inherit it
        return f"{owner.__module__}:{owner.__qualname__}.{value.__name__}"
    if owner is not None and not isinstance(owner, ModuleType):
        return f"{type(owner).__module__}:<{value.__qualname__}>"
    if not hasattr(value, "__qualname__"):
        return f"{type(value).__module__}:<{type(value).__qualname__}>"
    return f"{value.__module__}:{value.__qualname__}"


def inert(content: T, typed: Any = (), but: Sequence[str] = ()) -> T:
    """What a file says, if it imports and runs nothing: every reader of files returns its content through here.

    Only the user may name a module to import (`module:name`, or an environment's id with a module) or a program to run
    (an option `command`): on the command line, in Python, but in no file.

    Args:
        content: nested data of the file.
        typed: nested data of the user's, such as the options of a command, whose names the file may repeat.
        but: dotted paths of what is only shown or compared, and nothing is made of.

    Raises ValueError for a name that is neither in `typed` nor among the words of the command line (`allow`).

    >>> inert({"env_kwargs": {"opponent": {"player": "os:system"}}})
    Traceback (most recent call last):
    ValueError: env_kwargs.opponent.player names 'os:system', a module to import or a program to run; only you may name one: on the command line, as module:name or 'command=PROGRAM ARGUMENT', or by mergefall.imports.allow
    """  # noqa: E501
    allowed = {*_typed, *strings_in(typed), *(f"command={text}" for text in strings_in(typed))}
    for path, text in _running(content):
        if text not in allowed and not any(f"{path}.".startswith(f"{part}.") for part in but):
            raise ValueError(f"{path} names {text!r}, a module to import or a program to run; {ONLY_YOU}")
    return content


def allow(words: Iterable[str]) -> None:
    """From now on `inert` lets files repeat what these words of the user's name.

    That is each `module:name`, and after ``command=`` or ``command:`` a program and its arguments. No other word may be
    run: a file's own path is one.
    """
    for word in words:
        _typed.update([word, *_PATH.findall(word)])
        if command := re.search(r"\bcommand\s*[=:](.*)", word, re.DOTALL):
            _typed.update(f"command={part}" for part in re.findall(r"""[^\s\[\]{},"']+""", command[1]))


def _running(value: Any, path: str = "", key: str = "") -> Iterator[tuple[str, str]]:
    """(dotted path, text) of all that would be imported or run if something were made of nested data."""
    if isinstance(value, list | tuple):
        for part in value:
            yield from _running(part, path, key)
    elif isinstance(value, Mapping) and key != "command":
        for name, part in value.items():
            yield from _running(part, f"{path}.{name}".removeprefix("."), str(name))
    else:
        an_id = key in ("env", "env_id") and ":" in str(value).removeprefix("mergefall:")
        if key == "command" and value is not None:
            yield path, f"command={value}"
        elif an_id or is_import(value):
            yield path, str(value)


def strings_in(value: Any) -> Iterator[str]:
    """All text in nested mappings and lists, keys aside.

    >>> list(strings_in({"name": "2048/greedy", "heuristic": {"name": "corner", "empty": 1}}))
    ['2048/greedy', 'corner']
    """
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from strings_in(part)
