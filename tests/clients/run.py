"""Run short recipes against the real libraries, each in an environment of its own: `make clients`.

    python tests/clients/run.py [NAME…]

Builds the wheel, makes an environment under `.clients/` for each library, runs its recipe there, and writes the table
`training/CLIENTS.md`. With names, only these recipes are run, and their rows replaced. Environments are kept.
"""

import ast
import datetime
import os
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

from mergefall_training.play.tables import markdown

ROOT, HERE = Path(__file__).parents[2], Path(__file__).parent
HOME, TABLE = ROOT / ".clients", ROOT / "training" / "CLIENTS.md"
TORCH = "torch==2.13.0"  # the CPU build
CLIENTS = {  # by recipe: the library, an extra of the wheel, and what pip installs, the library first
    "sb3_ppo": ("Stable-Baselines3", "", "stable-baselines3", TORCH),
    "contrib_masks": ("sb3-contrib", "[train]", "sb3-contrib", TORCH),
    "zoo_train": ("rl_zoo3", "", "rl_zoo3", TORCH),
    "cleanrl_ppo": ("CleanRL (its shape)", "", TORCH),  # its programs are copied
    "torchrl_masks": ("TorchRL", "", "torchrl", TORCH),
    "tianshou_dqn": ("Tianshou", "", "tianshou", TORCH),
    "rllib_ppo": ("RLlib", "", "ray[rllib]", TORCH),
    "minari_data": ("Minari", "", "minari[create,hdf5]", "pillow"),
    # 2.8.1 wants gymnasium 1.0.0, which is older than what we take.
    "d3rlpy_cql": ("d3rlpy", "", "d3rlpy", "d3rlpy<2.8.1", "minari[hdf5]", "pillow", TORCH),
    "verifiers_puzzles": ("verifiers", "", "verifiers"),
    "textarena_game": ("TextArena", "", "textarena"),
    "optuna_search": ("Optuna", "[train]", "optuna", TORCH),
}
COLUMNS = ("library", "version", "gymnasium", "recipe", "passed", "seconds", "date")

HEAD = """# Other libraries

`make clients` builds the wheel, installs each library beside it in an environment of its own, and runs a short recipe
against it. The recipes are what to copy. This table is written by `tests/clients/run.py`.

"""
FOOT = """
PettingZoo: `mergefall.tetris.versus.parallel`, held by its own tests of the API.
"""


def main():
    names = sys.argv[1:] or list(CLIENTS)
    if unknown := set(names) - CLIENTS.keys():
        sys.exit(f"there is no recipe {', '.join(sorted(unknown))}; there are {', '.join(CLIENTS)}")
    written = TABLE.read_text() if TABLE.is_file() else ""
    rows = {
        name: line.strip("| ").split(" | ") for line in written.splitlines() for name in CLIENTS if f"/{name}." in line
    }
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "build", "--wheel", "--outdir", folder, ROOT], check=True)
        (wheel,) = Path(folder).glob("*.whl")
        for name in names:
            rows[name] = row_of(name, wheel)
            print(*rows[name], flush=True)
    TABLE.write_text(f"{HEAD}{markdown(COLUMNS, [rows[name] for name in CLIENTS if name in rows])}\n{FOOT}")
    if failed := [name for name in names if rows[name][4] == "no"]:
        sys.exit(f"failed: {', '.join(failed)}")


def row_of(name, wheel):
    """Run a recipe; its row of the table."""
    (title, extra, *packages), home, recipe = CLIENTS[name], HOME / name, HERE / f"{name}.py"
    print(f"== {title}", flush=True)
    python = home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not python.exists():
        venv.create(home, with_pip=True)
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*install, *packages, f"{wheel}{extra}"], check=True)
    subprocess.run([*install, "--force-reinstall", "--no-deps", wheel], check=True)
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        environment["MINARI_DATASETS_PATH"] = folder
        run = subprocess.run([python, recipe], cwd=folder, env=environment, timeout=900)
    seconds = time.monotonic() - start
    what = (ast.get_docstring(ast.parse(recipe.read_text())) or "").partition(": ")[2].rstrip(".")
    library = packages[0].partition("[")[0]
    versions = ["" if library == TORCH else version_of(python, library), version_of(python, "gymnasium")]
    passed = "no" if run.returncode else "yes"
    link = f"[{what}](../tests/clients/{name}.py)"
    return [title, *versions, link, passed, f"{seconds:.0f}", f"{datetime.date.today()}"]


def version_of(python, package):
    """The version of an installed package."""
    show = f"import importlib.metadata as m; print(m.version({package!r}))"
    return subprocess.run([python, "-c", show], capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    main()
