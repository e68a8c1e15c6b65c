"""rl_zoo3: its own training script and hyper-parameters, by the shell."""

import subprocess
import sys
import tempfile
from pathlib import Path

folder = Path(tempfile.mkdtemp())
settings = folder / "ppo.yml"
settings.write_text("""
mergefall/Game2048-v0:
  n_timesteps: 2048
  n_envs: 4
  policy: MlpPolicy
  n_steps: 128
  env_wrapper: [mergefall.wrappers.ReplaceIllegal, {mergefall.wrappers.ViewObservation: {kind: flat}}]
""")
command = f"-m rl_zoo3.train --algo ppo --env mergefall/Game2048-v0 --gym-packages mergefall --conf-file {settings}"
subprocess.run([sys.executable, *command.split(), "-f", folder, "--eval-freq", "-1"], check=True)
(model,) = folder.rglob("mergefall-Game2048-v0.zip")
print(model.stat().st_size, "bytes")
