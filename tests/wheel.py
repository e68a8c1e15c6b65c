"""Build wheel and sdist, check what is in them, install each into an empty environment without extras and use it there.

    make wheel
    python tests/wheel.py --python python3.12 --python python3.14    on other Pythons
    python tests/wheel.py --dist dist                                 with what is built already

The sdist, built from the clone, must build the same wheel as the clone.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("envs/mergefall", "baselines/mergefall_baselines", "training/mergefall_training")
USE = """
import sys
import gymnasium as gym
import mergefall
from mergefall_baselines import make
from mergefall_training import evaluate

env = gym.make("mergefall/Game2048-v0")
observation, info = env.reset(seed=0)
env.step(int(info["action_mask"].argmax()))
envs = gym.make_vec("mergefall/Game2048-v0", num_envs=8)
observations, _ = envs.reset(seed=0)
player = make("2048/expectimax", depth=2)
envs.step(player.act(observations))
result = evaluate(player, "mergefall/Game2048-v0", 2, workers=1, progress=False)
assert len(result.episodes) == 2 and result.scores.min() > 0
lines = evaluate("tetris/two-tetrad", "mergefall/Tetris-v0", 1, env_kwargs={"rows": 8}, workers=1, progress=False)
assert lines.scores.min() > 0
small = evaluate("2048/ntuple", "mergefall/Game2048-v0", 2, workers=1, progress=False)
assert not {"torch", "matplotlib", "pygame", "stable_baselines3"} & set(sys.modules)
print("Python", sys.version.split()[0], mergefall.__file__, result.scores, lines.scores, small.scores)
"""


def build(folder):
    """The sdist of the clone and the wheel of the sdist. Raises AssertionError if the clone makes another wheel."""
    quiet = {"check": True, "stdout": subprocess.DEVNULL}
    subprocess.run([sys.executable, "-m", "build", "--outdir", folder, ROOT], **quiet)
    subprocess.run([sys.executable, "-m", "build", "--wheel", "--outdir", folder / "clone", ROOT], **quiet)
    (sdist,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    assert wheel.read_bytes() == (folder / "clone" / wheel.name).read_bytes(), "the sdist builds another wheel"
    return sdist, wheel


def check_content(wheel):
    """Raises AssertionError unless the wheel holds the files of the packages, data included, and no others."""
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    files = [(package, path) for package in PACKAGES for path in (ROOT / package).rglob("*") if path.is_file()]
    kept = {path.relative_to((ROOT / package).parent).as_posix() for package, path in files}
    kept -= {name for name in kept if "__pycache__" in name}
    assert names == kept, sorted(names ^ kept)
    print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB, {len(names)} files", flush=True)


def use(distribution, python, folder):
    """Install a wheel or sdist into an empty environment of a Python, and use it there."""
    home = folder / "empty"
    subprocess.run([python, "-m", "venv", "--clear", home], check=True)
    own = home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    pip = [own, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "-c", ROOT / "constraints.txt", distribution], check=True)
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    inside = {"check": True, "cwd": folder, "env": environment}
    subprocess.run([own, "-c", USE], **inside)
    subprocess.run([own, "-m", "mergefall_training", "players"], **inside, stdout=subprocess.DEVNULL)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", action="append", help="of the environment; may be repeated (default: this one)")
    parser.add_argument("--dist", type=Path, help="folder with a wheel and an sdist (default: both are built)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if options.dist:
            (sdist,), (wheel,) = options.dist.resolve().glob("*.tar.gz"), options.dist.resolve().glob("*.whl")
        else:
            sdist, wheel = build(folder)
        check_content(wheel)
        for python in options.python or [sys.executable]:
            for distribution in (wheel, sdist):
                use(distribution, python, folder)


if __name__ == "__main__":
    main()
