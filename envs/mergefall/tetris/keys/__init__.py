"""Tetris by keys: gravity, SRS, hold, garbage and attack, on the boards and heuristics of `mergefall.tetris`."""

from mergefall.tetris import heuristics
from mergefall.tetris.keys.env import TetrisKeysEnv
from mergefall.tetris.keys.game import CLEARS
from mergefall.tetris.keys.rules import KEYS, STATUS
from mergefall.tetris.keys.vector_env import TetrisKeysVectorEnv

__all__ = ["CLEARS", "KEYS", "STATUS", "TetrisKeysEnv", "TetrisKeysVectorEnv", "heuristics"]
