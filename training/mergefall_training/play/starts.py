"""Positions from a player's games, to start episodes at; `mergefall_training.wrappers.with_starts` uses them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from mergefall.checks import integer
from mergefall.games import game_of, stack, take
from mergefall.typing import Array
from mergefall_baselines import Player, make
from mergefall_baselines.arrays import write_arrays

from mergefall_training.play.evaluation import SEEDS
from mergefall_training.play.replay import replays
from mergefall_training.play.workers import task
from mergefall_training.wrappers.starts import FORMAT, VERSION


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


def _arrays(starts: list[dict[str, Any]]) -> dict[str, Array]:
    return {name: np.asarray(part) for name, part in stack(starts).items()}
