"""Tetris as placements of whole pieces: rules, environments, evaluations."""

from mergefall.tetris.pieces import identify, rotations
from mergefall.tetris.rules import Placement, from_text, place, to_text

__all__ = ["Placement", "from_text", "identify", "place", "rotations", "to_text"]
