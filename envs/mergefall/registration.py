"""The table of environments that `import mergefall` registers with Gymnasium."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym


@dataclass(frozen=True)
class Entry:
    """One id: the name of its game, the entry points of its single and batched environment, its default arguments."""

    game: str
    single: str
    batched: str
    kwargs: dict[str, Any] = field(default_factory=dict)


_TETRIS = "tetris", "mergefall.tetris.env:TetrisEnv", "mergefall.tetris.vector_env:TetrisVectorEnv"

ENVIRONMENTS = {
    "mergefall/Game2048-v0": Entry(
        game="2048",
        single="mergefall.game2048.env:Game2048Env",
        batched="mergefall.game2048.vector_env:Game2048VectorEnv",
    ),
    "mergefall/Tetris-v0": Entry(*_TETRIS),
    "mergefall/SZTetris-v0": Entry(*_TETRIS, {"pieces": "sz"}),
    "mergefall/Quintris-v0": Entry(*_TETRIS, {"cols": 15, "rows": 25, "pieces": "five", "randomizer": "hidden"}),
}


def register_all() -> None:
    """Register the ids that are not registered yet."""
    for name, entry in ENVIRONMENTS.items():
        if name not in gym.registry:
            gym.register(id=name, entry_point=entry.single, vector_entry_point=entry.batched, kwargs=dict(entry.kwargs))
