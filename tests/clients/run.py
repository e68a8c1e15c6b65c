"""Run short recipes against the real libraries, each in an environment of its own: `make clients`.

    python tests/clients/run.py [NAME…]

Builds the wheel, makes an environment under `.clients/` for each library, runs its recipe there, and writes the table
`training/CLIENTS.md`. With names, only these recipes are run, and their rows replaced. Environments are kept.
"""

from __future__ import annotations

import ast
import datetime
import os
import re
import subprocess
import sys
import tempfile
import time
import venv
from dataclasses import dataclass
from pathlib import Path

ROOT, HERE = Path(__file__).parents[2], Path(__file__).parent
HOME, TABLE = ROOT / ".clients", ROOT / "training" / "CLIENTS.md"
TORCH = "torch==2.13.0"  # the CPU build


@dataclass(frozen=True)
class Client:
    """A library.

    - `title`: as people write it.
    - `packages`: what pip installs beside the wheel, the library first.
    - `extra`: an extra of the wheel.
    - `installed`: whether the library is a package; CleanRL's programs are copied.
    """

    title: str
    packages: tuple[str, ...]
    extra: str = ""
    installed: bool = True


CLIENTS = {
    "sb3_ppo": Client("Stable-Baselines3", ("stable-baselines3", TORCH)),
    "contrib_masks": Client("sb3-contrib", ("sb3-contrib", TORCH), "[train]"),
    "zoo_train": Client("rl_zoo3", ("rl_zoo3", TORCH)),
    "cleanrl_ppo": Client("CleanRL (its shape)", (TORCH,), installed=False),
    "torchrl_masks": Client("TorchRL", ("torchrl", TORCH)),
    "tianshou_dqn": Client("Tianshou", ("tianshou", TORCH)),
    "rllib_ppo": Client("RLlib", ("ray[rllib]", TORCH)),
    "minari_data": Client("Minari", ("minari[create,hdf5]", "pillow")),
    "d3rlpy_cql": Client("d3rlpy", ("d3rlpy", "minari[hdf5]", "pillow", TORCH)),
    "verifiers_puzzles": Client("verifiers", ("verifiers",)),
    "textarena_game": Client("TextArena", ("textarena",)),
    "optuna_search": Client("Optuna", ("optuna", TORCH), "[train]"),
}

HEAD = """# Other libraries

`make clients` builds the wheel, installs each library beside it in an environment of its own, and runs a short recipe
against it. The recipes are what to copy. This table is written by `tests/clients/run.py`.

"""
FOOT = """
PettingZoo: `mergefall.tetris.versus.parallel`, held by its own tests of the API.
"""


def main() -> None:
    names = sys.argv[1:] or list(CLIENTS)
    if unknown := set(names) - CLIENTS.keys():
        sys.exit(f"there is no recipe {', '.join(sorted(unknown))}; there are {', '.join(CLIENTS)}")
    rows = written_rows()
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "build", "--wheel", "--outdir", folder, ROOT], check=True)
        (wheel,) = Path(folder).glob("*.whl")
        for name in names:
            rows[name] = row_of(name, wheel)
            print(rows[name], flush=True)
    columns = ("library", "version", "gymnasium", "recipe", "passed", "seconds", "date")
    lines = [f"| {' | '.join(columns)} |", f"|{' --- |' * len(columns)}"]
    TABLE.write_text(HEAD + "\n".join([*lines, *(rows[name] for name in CLIENTS if name in rows)]) + "\n" + FOOT)
    if failed := [name for name in names if "| yes |" not in rows[name]]:
        sys.exit(f"failed: {', '.join(failed)}")


def written_rows() -> dict[str, str]:
    """The rows of the table as it is, by recipe."""
    text = TABLE.read_text() if TABLE.is_file() else ""
    return {found[1]: line for line in text.splitlines() if (found := re.search(r"\((?:\S*/)?(\w+)\.py\)", line))}


def row_of(name: str, wheel: Path) -> str:
    """Run a recipe; its row of the table."""
    client, home = CLIENTS[name], HOME / name
    print(f"== {client.title}", flush=True)
    python = home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not python.exists():
        venv.create(home, with_pip=True)
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*install, *client.packages, f"{wheel}{client.extra}"], check=True)
    subprocess.run([*install, "--force-reinstall", "--no-deps", wheel], check=True)
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        environment["MINARI_DATASETS_PATH"] = folder
        run = subprocess.run([python, HERE / f"{name}.py"], cwd=folder, env=environment, timeout=900)
    seconds = time.monotonic() - start
    what = (ast.get_docstring(ast.parse((HERE / f"{name}.py").read_text())) or "").partition(": ")[2].rstrip(".")
    library = re.split(r"[\[=]", client.packages[0])[0]
    versions = [version_of(python, library) if client.installed else "", version_of(python, "gymnasium")]
    passed = "no" if run.returncode else "yes"
    recipe = f"[{what}](../tests/clients/{name}.py)"
    cells = [client.title, *versions, recipe, passed, f"{seconds:.0f}", f"{datetime.date.today()}"]
    return f"| {' | '.join(cells)} |"


def version_of(python: Path, package: str) -> str:
    """The version of an installed package."""
    show = f"import importlib.metadata as m; print(m.version({package!r}))"
    return subprocess.run([python, "-c", show], capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    main()
