"""Tetris as placements of whole pieces: rules, environments, evaluations."""

from mergefall.tetris.evaluations import EVALUATIONS, Evaluation, evaluation
from mergefall.tetris.pieces import identify, rotations
from mergefall.tetris.rules import Placement, from_text, place, to_text

__all__ = [
    "EVALUATIONS",
    "Evaluation",
    "Placement",
    "evaluation",
    "from_text",
    "identify",
    "place",
    "rotations",
    "to_text",
]
