"""2048: rules, environments, heuristics."""

from mergefall.game2048.heuristics import HEURISTICS, Heuristic, heuristic

__all__ = ["HEURISTICS", "Heuristic", "heuristic"]
