"""rl_zoo3: its own training script and hyper-parameters, by the shell."""

import subprocess
import sys
from pathlib import Path

Path("ppo.yml").write_text("""
mergefall/Game2048-v0:
  n_timesteps: 2048
  n_envs: 4
  policy: MlpPolicy
  n_steps: 128
  env_wrapper: [mergefall.wrappers.ReplaceIllegal, {mergefall.wrappers.ViewObservation: {kind: flat}}]
""")
command = "-m rl_zoo3.train --algo ppo --env mergefall/Game2048-v0 --gym-packages mergefall --conf-file ppo.yml"
subprocess.run([sys.executable, *command.split()], check=True)

# What `make clients` checks beyond that:
(model,) = Path("logs").rglob("mergefall-Game2048-v0.zip")
print(model.stat().st_size, "bytes")
