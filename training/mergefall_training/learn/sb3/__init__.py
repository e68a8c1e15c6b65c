"""PPO, DQN, MaskablePPO and QR-DQN by Stable-Baselines3 and sb3-contrib."""

from mergefall.imports import import_extra

import_extra("stable_baselines3")  # a clear error if it is missing
