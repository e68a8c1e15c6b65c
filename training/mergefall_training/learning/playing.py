"""Whole episodes played side by side in one batched environment: quick for players that decide for many at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any

import gymnasium as gym
import numpy as np
from mergefall_baselines import Player
from numpy.typing import NDArray

from mergefall_training.records import Episode, episode_from
from mergefall_training.workers import Task

_FIGURES = ("score", "max_tile", "lines", "pieces")


def play_together(job: Task, seeds: Sequence[int]) -> list[Episode]:
    """The task's episodes from ``seeds``, as `workers.play_all` plays them; a game's ``seconds`` are its share.

    The player is one that remembers nothing.

    >>> from mergefall_training.workers import task
    >>> from mergefall_baselines import make
    >>> job = task(make("2048/greedy"), "mergefall/Game2048-v0", {"rows": 2, "cols": 2}, None)
    >>> [episode.seed for episode in play_together(job, [5, 6])]
    [5, 6]
    """
    start, player = perf_counter(), job.player
    assert isinstance(player, Player)
    assert player.start(0) is None
    envs = gym.make_vec(
        job.env_id, num_envs=len(seeds), max_episode_steps=job.max_episode_steps, **_without_rendering(job.env_kwargs)
    )
    observations, _ = envs.reset(seed=list(seeds))  # pyright: ignore[reportArgumentType]
    playing = np.arange(len(seeds))  # games that are not over; the others are stepped along and not looked at
    actions, length, found = np.zeros(len(seeds), dtype=np.int64), 0, {}
    while playing.size:
        actions[:] = 0
        actions[playing] = player.act(_rows(observations, playing))
        observations, _, terminated, truncated, infos = envs.step(actions)
        length += 1
        for i in playing[(terminated | truncated)[playing]]:
            figures = {name: int(infos[name][i]) for name in _FIGURES if name in infos}
            found[int(i)] = {"seed": seeds[i], "length": length, "terminated": bool(terminated[i]), **figures}
        playing = playing[~(terminated | truncated)[playing]]
    share = (perf_counter() - start) / sum(record["length"] for record in found.values())
    return [episode_from(found[i] | {"seconds": share * found[i]["length"]}) for i in range(len(seeds))]


def _without_rendering(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in kwargs.items() if name != "render_mode"}


def _rows(observations: Any, which: NDArray[np.int64]) -> Any:
    if isinstance(observations, dict):
        return {name: part[which] for name, part in observations.items()}
    return observations[which]
