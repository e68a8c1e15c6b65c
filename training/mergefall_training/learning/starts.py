"""Curricula: episodes that begin where a searcher's games have been, so that an agent sees what it does not reach yet.

`collect_starts` plays a player's games and keeps some of their positions; `with_starts` makes an environment begin at
those that a file holds. The file is a description and the observations (`models.write_arrays`).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from mergefall.checks import integer, number
from mergefall_baselines import Player, make
from mergefall_baselines.arrays import read_arrays, write_arrays
from numpy.typing import NDArray

from mergefall_training.evaluation import SEEDS
from mergefall_training.learning.games import games, stacked
from mergefall_training.workers import task

FORMAT, VERSION = "mergefall starts", 1
PARTS = ("board", "piece", "next")  # of a start, as `reset` takes them


def collect_starts(
    player: str | Player,
    env_id: str,
    episodes: int,
    *,
    every: int | None = None,
    before_end: Sequence[int] | None = None,
    seed: int = SEEDS,
    env_kwargs: dict[str, Any] | None = None,
    max_episode_steps: int | None = None,
    workers: int | None = 1,
    progress: bool = False,
    out: str | os.PathLike[str] | None = None,
) -> list[dict[str, Any]]:
    """Positions from a player's games: a list of `reset` options, for `set_starts`; also written to the file `out`.

    Args:
        player, env_id, env_kwargs, max_episode_steps, workers: who plays what, as in `evaluate`.
        episodes, seed: games are played from ``seed`` on; unless told, from seeds that evaluations do not use.
        every: take the positions after each `every` actions of a game, so that long games give more.
        before_end: or those so many actions before its end; a game that is no longer than that gives none.

    Example:
        >>> starts = collect_starts("2048/greedy", "mergefall/Game2048-v0", 3, before_end=[20, 50])
        >>> len(starts), starts[0]["board"].shape
        (6, (4, 4))
    """
    if (every is None) == (before_end is None):
        raise ValueError(f"every={every!r}, before_end={before_end!r}; expected one of them")
    ends = [integer("before_end", one, 1) for one in before_end or ()]
    step = None if every is None else integer("every", every, 1)
    job = task(make(player) if isinstance(player, str) else player, env_id, env_kwargs, max_episode_steps)
    seeds = range(seed, seed + integer("episodes", episodes, 1))
    starts: list[dict[str, Any]] = []
    for game in games(job, seeds, workers, "starts", progress):
        last = len(game)  # the final observation, which is no start
        times = range(step, last, step) if step else [last - end for end in ends if end < last]
        starts += [_start(game.observations, time) for time in times]
    if not starts:
        raise ValueError(f"no game of {episodes} is long enough for every={every!r}, before_end={before_end!r}")
    if out is not None:
        name = getattr(job.player, "name", type(job.player).__name__)
        about = {"env_id": job.env_id, "env_kwargs": job.env_kwargs, "player": name}
        about |= {"options": dict(getattr(job.player, "options", {})), "seeds": [seeds[0], seeds[-1]]}
        about |= {"every": every, "before_end": ends or None}
        write_arrays(out, FORMAT, VERSION, about, _arrays(starts))
    return starts


def load_starts(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """The `reset` options in a file that `collect_starts` wrote; anything else is a ValueError."""
    _, arrays, _ = read_arrays(path, FORMAT, VERSION)
    lengths = {len(part) for part in arrays.values()}
    if "board" not in arrays or not set(arrays) <= set(PARTS) or len(lengths) != 1:
        raise ValueError(f"{path} holds {sorted(arrays)}; expected boards, and as many pieces")
    return [{name: part[i] for name, part in arrays.items()} for i in range(len(arrays["board"]))]


def with_starts(env: Any, path: str | os.PathLike[str], ordinary: float = 0.5) -> Any:
    """The environment, single or batched, set to draw the starts of its episodes from a file; it is `env` itself.

    A share `ordinary` of the episodes begins as they would without (rounded to a whole number of the pool's entries).
    Raises ValueError for a share outside 0 … 1, for a damaged file, and for boards or pieces of another game.

    >>> import gymnasium as gym, mergefall, tempfile
    >>> path = tempfile.mkdtemp() + "/starts.npz"
    >>> _ = collect_starts("2048/greedy", "mergefall/Game2048-v0", 3, every=40, out=path)
    >>> env = with_starts(gym.make("mergefall/Game2048-v0"), path, ordinary=0)
    >>> bool(env.reset(seed=0)[0].sum() > 10)
    True
    """
    ordinary = number("ordinary", ordinary, 0, 1)
    starts = load_starts(path) if ordinary < 1 else []
    plain = round(len(starts) * ordinary / (1 - ordinary)) if starts else 0
    env.unwrapped.set_starts([*starts, *({} for _ in range(plain))])
    return env


def _start(observations: Any, time: int) -> dict[str, Any]:
    if isinstance(observations, dict):
        return {name: part[time] for name, part in observations.items()}
    return {"board": observations[time]}


def _arrays(starts: list[dict[str, Any]]) -> dict[str, NDArray[Any]]:
    return {name: np.asarray(part) for name, part in stacked(starts).items()}
