"""2048: rules, environments, heuristics."""

from mergefall.game2048.clusters import Cluster, MoveComparison, clusters, compare_move
from mergefall.game2048.env import Game2048Env
from mergefall.game2048.heuristics import HEURISTICS, Heuristic, heuristic, register_heuristic
from mergefall.game2048.plot import draw_board, plot_clusters, plot_move, plot_terms
from mergefall.game2048.reference import ACTIONS, DOWN, LEFT, RIGHT, UP
from mergefall.game2048.render import draw
from mergefall.game2048.rules import from_text, images, legal_actions, move, outcomes, to_text
from mergefall.game2048.vector_env import Game2048VectorEnv

__all__ = [
    "ACTIONS",
    "DOWN",
    "HEURISTICS",
    "LEFT",
    "RIGHT",
    "UP",
    "Cluster",
    "Game2048Env",
    "Game2048VectorEnv",
    "Heuristic",
    "MoveComparison",
    "clusters",
    "compare_move",
    "draw",
    "draw_board",
    "from_text",
    "heuristic",
    "images",
    "legal_actions",
    "move",
    "outcomes",
    "plot_clusters",
    "plot_move",
    "plot_terms",
    "register_heuristic",
    "to_text",
]
