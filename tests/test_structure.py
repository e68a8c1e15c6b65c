"""The structure of the packages: layers, no circles, no giant functions."""

import ast
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest
from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports

ROOT = Path(__file__).parents[1]
PACKAGES = ("envs/mergefall", "baselines/mergefall_baselines", "training/mergefall_training")
EVERYWHERE = (
    "tests/envs/**/*.py",
    "tests/baselines/**/*.py",
    "tests/training/test_cli.py",
    "tests/training/terminals.py",
)
POSIX = {"curses", "fcntl", "grp", "pty", "pwd", "resource", "termios", "tty"}
INSTALLED = {"gymnasium", "hypothesis", "matplotlib", "numba", "numpy", "pygame", "pytest", "rich", "tyro", "yaml"}
LONGEST = 80  # lines of a function


def test_no_file_imports_another_in_a_circle():
    graph = grimp.build_graph(*(Path(package).name for package in PACKAGES), exclude_type_checking_imports=True)
    TopologicalSorter({name: graph.find_modules_directly_imported_by(name) for name in graph.modules}).prepare()


def test_dependencies_point_one_way(monkeypatch):
    monkeypatch.chdir(ROOT)
    assert lint_imports(config_filename="pyproject.toml", no_cache=True) == EXIT_STATUS_SUCCESS


@pytest.mark.parametrize("package", PACKAGES)
def test_no_function_is_a_giant(package):
    giants = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"
        for path in (ROOT / package).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef) and node.end_lineno - node.lineno >= LONGEST
    ]
    assert not giants


@pytest.mark.parametrize("pattern", EVERYWHERE)
def test_files_that_run_on_every_system_import_what_is_there(pattern):
    """The workflow's job `core` has no PyTorch and, on Windows, no terminals."""
    ours = {Path(package).name for package in PACKAGES} | {"tests"}
    for path in ROOT.glob(pattern):
        there = (sys.stdlib_module_names - POSIX) | INSTALLED | ours | {one.stem for one in path.parent.glob("*.py")}
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) and not node.level else []
            assert {name.partition(".")[0] for name in names} <= there, path
