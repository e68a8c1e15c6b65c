"""Search players for 2048 and Tetris behind one protocol."""

from mergefall_baselines.player import Player, Trajectory, play_in_env
from mergefall_baselines.registry import make, players, register

__all__ = ["Player", "Trajectory", "make", "play_in_env", "players", "register"]
