"""Build a wheel, install it into an empty environment without any extra, and use it there: `make wheel`."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
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
assert not {"torch", "matplotlib", "pygame", "stable_baselines3"} & set(sys.modules)
print("used without extras:", mergefall.__file__, result.scores.tolist())
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "build", "--wheel", "--outdir", folder, ROOT], check=True)
        (wheel,) = Path(folder).glob("*.whl")
        home = Path(folder) / "empty"
        venv.create(home, with_pip=True)
        python = home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
        install = [python, "-m", "pip", "install", "--quiet", "-c", ROOT / "constraints.txt", wheel]
        subprocess.run(install, check=True)
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        subprocess.run([python, "-c", USE], check=True, cwd=folder, env=environment)
        subprocess.run([python, "-m", "mergefall_training", "players"], check=True, cwd=folder, env=environment)


if __name__ == "__main__":
    main()
