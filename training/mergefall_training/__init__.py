"""Evaluation, comparison and tuning of players."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mergefall_training.play.evaluation import Evaluation, evaluate

__all__ = ["Evaluation", "evaluate"]


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    # Loaded when first asked for: `mergefall --help` should not wait for compilers and players.
    if name in __all__:
        return getattr(import_module(f"{__name__}.play.evaluation"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
