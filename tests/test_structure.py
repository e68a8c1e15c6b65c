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


# What makes data of a file's text, and where. A new kind of file is read by `files.read_json`, `read_lines`,
# `read_yaml` or `arrays.read_arrays`. They pass it through `mergefall.imports.inert`, so nothing in it is run.
READING = {"json.load", "json.loads", "yaml.load", "load_yaml", "np.load", "torch.load", "pickle.load", "pickle.loads"}
READERS = {
    "baselines/mergefall_baselines/arrays.py": "read_arrays",
    "training/mergefall_training/files.py": "read_json, read_lines, read_yaml",
    "training/ppo.py": "its own checkpoints, with inert",
    "training/mergefall_training/yaml_numbers.py": "for read_yaml and the command line",
    "training/mergefall_training/cli.py": "options of the command line",
    "training/mergefall_training/play/workers.py": "a task of the parent process",
    "baselines/mergefall_baselines/tetris/protocol.py": "messages",
    "baselines/mergefall_baselines/tetris/bot.py": "messages",
    "envs/mergefall/text.py": "answers",
}
# What imports or runs what a text names, and where: `inert` knows how each of these texts is written.
RUNNING = {"imported", "load", "subprocess.Popen", "subprocess.run", "os.system", "eval", "exec", "__import__"}
RUNNERS = {
    "envs/mergefall/imports.py": "module:name",
    "envs/mergefall/library.py": "heuristics",
    "baselines/mergefall_baselines/registry.py": "players",
    "baselines/mergefall_baselines/tetris/bot.py": "the option command",
    "training/mergefall_training/play/match.py": "an environment's id with a module",
    "training/mergefall_training/play/records.py": "digests of code that plays",
    "training/mergefall_training/cli.py": "functions on the command line",
    "training/ppo.py": "its own function load",
}


@pytest.mark.parametrize(("calls", "places"), [(READING, READERS), (RUNNING, RUNNERS)], ids=["read", "run"])
def test_files_are_read_and_names_are_run_in_known_places(calls, places):
    found = set()
    for path in (path for package in ("envs", "baselines", "training") for path in (ROOT / package).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in calls:
                if not ast.unparse(node).startswith("json.loads(json.dumps("):  # a copy
                    found.add(path.relative_to(ROOT).as_posix())
    assert found == places.keys()
