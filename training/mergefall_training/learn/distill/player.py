"""Distilled policies as players; they are policies of MaskablePPO."""

from mergefall_training.learn.sb3.player import player

__all__ = ["player"]
