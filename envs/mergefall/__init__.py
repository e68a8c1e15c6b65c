"""2048 and Tetris as exact, fast Gymnasium environments. Importing this package registers them."""

__version__ = "0.1.0"

from importlib import import_module
from typing import Any

from mergefall.games import register_all

register_all()


def __getattr__(name: str) -> Any:
    """The packages of the games, imported when they are first used."""
    if name in ("game2048", "tetris"):
        return import_module(f"mergefall.{name}")
    raise AttributeError(f"module 'mergefall' has no attribute {name!r}")
