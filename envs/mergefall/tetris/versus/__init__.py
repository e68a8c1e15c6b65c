"""Tetris by keys against another player."""

from mergefall.tetris import heuristics
from mergefall.tetris.versus.env import TetrisVersusEnv
from mergefall.tetris.versus.vector_env import TetrisVersusVectorEnv

__all__ = ["TetrisVersusEnv", "TetrisVersusVectorEnv", "heuristics"]
