"""Curricula: episodes start at positions from a searcher's games that the agent cannot reach yet.

`mergefall_training.play.starts.collect_starts` plays a player's games and writes some of their positions to a file;
`with_starts` makes an environment start at the positions of a file.
"""

from __future__ import annotations

import os
from typing import Any

import gymnasium as gym
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector import VectorEnv
from mergefall.checks import number
from mergefall.games import GAMES, with_current_names
from mergefall.typing import Environment
from mergefall_baselines.arrays import read_arrays

FORMAT, VERSION = "mergefall starts", 1
MOST = 1_000_000  # ordinary starts in a pool
PARTS = {part for game in GAMES.values() for part in game.start}  # of a start, as `reset` takes them


def load_starts(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """The `reset` options in a file of `collect_starts`. Raises ValueError for any other file."""
    arrays = with_current_names(read_arrays(path, FORMAT, VERSION)[1])
    lengths = {len(part) for part in arrays.values()}
    if "board" not in arrays or not set(arrays) <= PARTS or len(lengths) != 1:
        raise ValueError(f"{path} holds {sorted(arrays)}; expected boards, and as many pieces")
    return [{name: part[i] for name, part in arrays.items()} for i in range(len(arrays["board"]))]


def with_starts(env: Environment, path: str | os.PathLike[str], ordinary: float = 0.5) -> Any:
    """Make a single or batched environment draw the starts of its episodes from a file.

    `ordinary`: share of episodes with an ordinary start, rounded to a whole number of entries of the pool.
    Raises ValueError for a share outside 0 … 1, for a damaged file, and for boards or pieces of another game.

    >>> import gymnasium as gym, mergefall, tempfile
    >>> from mergefall_training.play.starts import collect_starts
    >>> path = tempfile.mkdtemp() + "/starts.npz"
    >>> _ = collect_starts("2048/greedy", "mergefall/Game2048-v0", 3, every=40, out=path)
    >>> env = with_starts(gym.make("mergefall/Game2048-v0"), path, ordinary=0)
    >>> bool(env.reset(seed=0)[0].sum() > 10)
    True
    """
    if not isinstance(env.unwrapped, VectorEnv):
        return WithStarts(env, path, ordinary)
    _draw_starts(env, path, ordinary)
    return env


class WithStarts(gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """A single environment with starts from a file; see `with_starts`."""

    def __init__(self, env: Environment, path: str | os.PathLike[str], ordinary: float = 0.5) -> None:
        RecordConstructorArgs.__init__(self, path=os.fspath(path), ordinary=ordinary)
        gym.Wrapper.__init__(self, env)
        _draw_starts(env, path, ordinary)


def _draw_starts(env: Environment, path: str | os.PathLike[str], ordinary: float) -> None:
    ordinary = number("ordinary", ordinary, 0, 1)
    starts = load_starts(path) if ordinary < 1 else []
    plain = round(len(starts) * ordinary / (1 - ordinary)) if starts else 0
    if plain > MOST:
        raise ValueError(f"ordinary is {ordinary}; expected less beside {len(starts)} starts, or 1")
    env.unwrapped.set_starts([*starts, *({} for _ in range(plain))])
