"""Digests of a user's own code and models, so that results of earlier ones are not taken for results of these.

A digest of code is of a function or class, and of everything in its module and in other modules of the user's that it
refers to; comments and layout do not count. Installed packages have versions instead, and are left out. A digest of a
model is of its file.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from mergefall.games import GAMES
from mergefall.imports import is_import, load, name_of, strings_in
from mergefall.library import origin
from mergefall_baselines.registry import added

from mergefall_training.files import model_file

_INSTALLED = {"site-packages", "dist-packages"}
_OURS = {"mergefall", "mergefall_baselines", "mergefall_training"}


def code_of(*described: Any) -> dict[str, str]:
    """The digests of a user's own code by `module:name`, and of models by the text that names them.

    `described`: nested data that names players and heuristics, and players themselves.

    >>> code_of("2048/greedy", {"heuristic": "nneonneo"})
    {}
    """
    paths = [path for part in described for path in _paths_in(part)]
    digests = {path: _digest(path) for path in paths}
    models = {text: sha256(file.read_bytes()).hexdigest()[:16] for text, file in _models_in(described)}
    return {name: digest for name, digest in (digests | models).items() if digest}


def _models_in(part: Any) -> Iterator[tuple[str, Path]]:
    """(text, file) of everything in nested data that names a file or a run folder, there with `model` beside it."""
    parts = part.values() if isinstance(part, Mapping) else part if isinstance(part, list | tuple) else ()
    model = part.get("model") if isinstance(part, Mapping) else None
    for text in parts:
        if not isinstance(text, str):
            yield from _models_in(text)
            continue
        with suppress(ValueError, OSError):  # most texts name no file
            file = model_file(text, model or "best")
            if file.suffix and file.is_file():
                yield text, file


def _paths_in(part: Any) -> Iterator[str]:
    """The `module:name` of everything that nested data names, or of the class of anything else."""
    if not isinstance(part, str | Mapping | list):
        yield name_of(type(part))
        return
    texts = set(strings_in(part))
    yield from sorted(text for text in texts if is_import(text))
    yield from map(name_of, added(texts).values())
    for game in GAMES.values():
        yield from (name_of(origin(heuristic)) for name, heuristic in game.library.added().items() if name in texts)


def _digest(path: str) -> str | None:
    """The digest of the code at `module:name`; None if no file of the user's has it, as in a notebook."""
    module, _, name = path.partition(":")
    with suppress(ModuleNotFoundError):  # text with a colon need not name a module
        load(module)  # before a run is resumed, nothing has imported its teacher
    todo, done, code = [(module, name.partition(".")[0])], set[tuple[str, str]](), list[str]()
    while todo:
        known = todo.pop()
        statements = _statements(known[0])
        if known in done or not statements:
            continue
        done.add(known)
        for statement in statements:
            # Of a module that is referred to as a whole (no name), every statement counts.
            if not known[1] or {known[1], "*"} & _bound(statement):
                code.append(f"{known[0]}: {ast.unparse(statement)}")
                todo += _references(statement, known[0])
    return sha256("\n".join(sorted(code)).encode()).hexdigest()[:16] if code else None


def _statements(module: str) -> list[ast.stmt]:
    """The statements of a module of the user's; none for installed ones, and for those without a file."""
    file = _file(module)
    return ast.parse(file.read_bytes()).body if file else []


def _file(module: str) -> Path | None:
    """The file of a module of the user's, which need not have been imported; None for all other modules."""
    package, _, below = module.partition(".")
    if package in _OURS or package in sys.stdlib_module_names:
        return None
    origin = None
    if module in sys.modules:
        origin = getattr(sys.modules[module], "__file__", None)
    elif not below or _file(package):  # to look into a package is to import it
        with suppress(ModuleNotFoundError):  # the second name of `module.name` need not be a module
            spec = find_spec(module)
            origin = spec.origin if spec else None
    file = Path(origin or "")
    return file if file.suffix == ".py" and file.is_file() and not _INSTALLED & set(file.parts) else None


def _bound(statement: ast.stmt) -> set[str]:
    """The names that a statement at the top of a module gives a value to, or whose objects it may change.

    Among those of ``from module import *`` is `*`.
    """
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {statement.name}
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return {alias.asname or alias.name.partition(".")[0] for alias in statement.names}
    nodes = list(ast.walk(statement))
    imports = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
    defined = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    stored = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    parts = [node for node in nodes if isinstance(node, ast.Attribute | ast.Subscript)]
    changed = {_root(node) for node in parts if not isinstance(node.ctx, ast.Load)}
    called = {_root(node.func) for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)}
    if isinstance(statement, ast.Expr):
        called |= {node.id for node in nodes if isinstance(node, ast.Name)}
    return set[str]().union(*map(_bound, imports), defined, stored, changed, called) - {""}


def _root(node: ast.expr) -> str:
    """The name that `name.attribute[item]…` begins with; empty if it begins otherwise."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _package(module: str) -> str:
    """The package that a module's relative imports begin at."""
    if module in sys.modules:
        return sys.modules[module].__package__ or ""
    file = _file(module)
    return module if file and file.stem == "__init__" else module.rpartition(".")[0]


def _references(statement: ast.stmt, module: str) -> Iterator[tuple[str, str]]:
    """(module, name) of everything that a statement may refer to; the name is empty for a whole module."""
    package = _package(module)
    for node in ast.walk(statement):
        if isinstance(node, ast.Name):
            yield module, node.id
        elif isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) + 1 - node.level] if node.level else []
            source = ".".join([*above, *([node.module] if node.module else [])])
            yield from ((source, alias.name.strip("*")) for alias in node.names)  # no name is all of them
            yield from ((f"{source}.{alias.name}", "") for alias in node.names)  # if the name is a module
