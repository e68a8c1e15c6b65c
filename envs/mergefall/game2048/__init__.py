"""2048: rules, environments, heuristics."""

from mergefall.game2048.clusters import Cluster, Fracture, MoveComparison, clusters, compare_move, fracture
from mergefall.game2048.heuristics import HEURISTICS, Heuristic, heuristic

__all__ = [
    "HEURISTICS",
    "Cluster",
    "Fracture",
    "Heuristic",
    "MoveComparison",
    "clusters",
    "compare_move",
    "fracture",
    "heuristic",
]
