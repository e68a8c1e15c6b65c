"""MaskablePPO by sb3-contrib and DQN by Stable-Baselines3."""

from mergefall.imports import import_extra

import_extra("stable_baselines3")  # a clear error if it is missing
