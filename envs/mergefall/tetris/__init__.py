"""Tetris as placements of whole pieces: rules, environments, evaluations."""

from mergefall.tetris.env import TetrisEnv
from mergefall.tetris.evaluations import EVALUATIONS, Evaluation, evaluation
from mergefall.tetris.pieces import PIECE_SETS, identify, rotations
from mergefall.tetris.plot import draw_board, plot_terms
from mergefall.tetris.render import draw
from mergefall.tetris.rules import Placement, from_text, place, to_text
from mergefall.tetris.vector_env import TetrisVectorEnv

__all__ = [
    "EVALUATIONS",
    "PIECE_SETS",
    "Evaluation",
    "Placement",
    "TetrisEnv",
    "TetrisVectorEnv",
    "draw",
    "draw_board",
    "evaluation",
    "from_text",
    "identify",
    "place",
    "plot_terms",
    "rotations",
    "to_text",
]
