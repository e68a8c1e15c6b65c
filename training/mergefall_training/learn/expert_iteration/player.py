"""Policies of expert iteration as players; like cloned ones, they are policies of MaskablePPO."""

from __future__ import annotations

from mergefall_training.learn.clone.player import player

__all__ = ["player"]
