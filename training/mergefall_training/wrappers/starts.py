"""Curricula: episodes start at positions from a searcher's games that the agent cannot reach yet.

`collect_starts` plays a player's games and writes some of their positions to a file; `with_starts` makes an environment
start at the positions of a file.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from mergefall.checks import integer, number
from mergefall.games import GAMES, game_of, stack, take
from mergefall.typing import Array, Environment
from mergefall_baselines import Player, make
from mergefall_baselines.arrays import read_arrays, write_arrays

from mergefall_training.play.evaluation import SEEDS
from mergefall_training.play.replay import replays
from mergefall_training.play.workers import task

FORMAT, VERSION = "mergefall starts", 1
PARTS = {part for game in GAMES.values() for part in game.start}  # of a start, as `reset` takes them


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
    """Positions from a player's games, as a list of `reset` options for `set_starts`.

    Args:
        player, env_id, env_kwargs, max_episode_steps, workers, progress: as in `evaluate`.
        episodes, seed: number of games, and seed of the first; default: beyond the seeds of evaluations.
        every: take the position after every so many actions; long games give more positions.
        before_end: instead of `every`: take the positions so many actions before the end; shorter games give none.
        out: file to write the positions to.

    Raises ValueError unless exactly one of `every` and `before_end` is given, and if no game is long enough.

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
    kind = game_of(job.env_id)
    for game in replays(job, seeds, workers, "starts", progress):
        last = len(game)  # the final observation is no start
        times = range(step, last, step) if step else [last - end for end in ends if end < last]
        starts += [kind.start_of(take(game.observations, time)) for time in times]
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
    """The `reset` options in a file of `collect_starts`. Raises ValueError for any other file."""
    _, arrays, _ = read_arrays(path, FORMAT, VERSION)
    lengths = {len(part) for part in arrays.values()}
    if "board" not in arrays or not set(arrays) <= PARTS or len(lengths) != 1:
        raise ValueError(f"{path} holds {sorted(arrays)}; expected boards, and as many pieces")
    return [{name: part[i] for name, part in arrays.items()} for i in range(len(arrays["board"]))]


def with_starts(env: Environment, path: str | os.PathLike[str], ordinary: float = 0.5) -> Any:
    """Make a single or batched environment draw the starts of its episodes from a file; returns `env` itself.

    `ordinary`: share of episodes with an ordinary start, rounded to a whole number of entries of the pool.
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


def _arrays(starts: list[dict[str, Any]]) -> dict[str, Array]:
    return {name: np.asarray(part) for name, part in stack(starts).items()}
