"""Tetris as placements of whole pieces: rules, environments, heuristics."""

from mergefall.tetris.env import TetrisEnv
from mergefall.tetris.heuristics import HEURISTICS, Heuristic, heuristic, register_heuristic
from mergefall.tetris.pieces import PIECE_SETS, identify, rotations
from mergefall.tetris.plot import draw_board, plot_terms
from mergefall.tetris.render import draw
from mergefall.tetris.rules import Placement, from_text, place, to_text
from mergefall.tetris.vector_env import TetrisVectorEnv

__all__ = [
    "HEURISTICS",
    "PIECE_SETS",
    "Heuristic",
    "Placement",
    "TetrisEnv",
    "TetrisVectorEnv",
    "draw",
    "draw_board",
    "from_text",
    "heuristic",
    "identify",
    "place",
    "plot_terms",
    "register_heuristic",
    "rotations",
    "to_text",
]
