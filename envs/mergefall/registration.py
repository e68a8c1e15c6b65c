"""The environments' ids: one table of what `import mergefall` registers with Gymnasium."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym


@dataclass(frozen=True)
class Entry:
    """Where an id's single and batched environment are, and the arguments that make it what it is."""

    single: str
    batched: str
    kwargs: dict[str, Any] = field(default_factory=dict)


ENVIRONMENTS = {
    "mergefall/Game2048-v0": Entry(
        single="mergefall.game2048.env:Game2048Env",
        batched="mergefall.game2048.vector_env:Game2048VectorEnv",
    ),
}


def register_all() -> None:
    """Register every id of the table that is not registered yet."""
    for name, entry in ENVIRONMENTS.items():
        if name not in gym.registry:
            gym.register(id=name, entry_point=entry.single, vector_entry_point=entry.batched, kwargs=dict(entry.kwargs))
