"""Evaluation, comparison and tuning of players."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mergefall_training.comparison import compare
    from mergefall_training.evaluation import Evaluation, evaluate
    from mergefall_training.suites import load_suite

__all__ = ["Evaluation", "compare", "evaluate", "load_suite"]

_HOMES = {"Evaluation": "evaluation", "compare": "comparison", "evaluate": "evaluation", "load_suite": "suites"}


def __getattr__(name: str) -> Any:
    # Loaded when first asked for: `mergefall --help` should not wait for compilers and players.
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
