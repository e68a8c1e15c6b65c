"""Whole episodes played side by side in one batched environment: quick for players that decide for many at once."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from time import perf_counter
from typing import Any

import gymnasium as gym
import numpy as np
from mergefall_baselines import Player
from numpy.typing import NDArray

from mergefall_training.learning.env_wrappers import wrapped
from mergefall_training.records import Episode, episode_from
from mergefall_training.workers import Task

AT_ONCE = 256
_FIGURES = ("score", "max_tile", "lines", "pieces")


def play_together(job: Task, seeds: Sequence[int], env_wrapper: Any = None) -> Generator[Episode]:
    """The task's episodes from ``seeds`` as `workers.play_all` plays them, each as it ends.

    A game's ``seconds`` are its share of the time that all took. With `env_wrapper` they are played in an environment
    so wrapped (`env_wrappers.wrapped`). The player is one that remembers nothing.

    >>> from mergefall_training.workers import task
    >>> from mergefall_baselines import make
    >>> job = task(make("2048/greedy"), "mergefall/Game2048-v0", {"rows": 2, "cols": 2}, None)
    >>> sorted(episode.seed for episode in play_together(job, [5, 6]))
    [5, 6]
    """
    for first in range(0, len(seeds), AT_ONCE):
        yield from _play(job, seeds[first : first + AT_ONCE], env_wrapper)


def _play(job: Task, seeds: Sequence[int], env_wrapper: Any) -> Generator[Episode]:
    player = job.player
    assert isinstance(player, Player)
    assert player.start(0) is None
    native = gym.make_vec(
        job.env_id, num_envs=len(seeds), max_episode_steps=job.max_episode_steps, **_without_rendering(job.env_kwargs)
    )
    envs = wrapped(native, env_wrapper)
    observations, _ = envs.reset(seed=list(seeds))  # pyright: ignore[reportArgumentType]
    playing = np.arange(len(seeds))  # games that are not over; the others are stepped along and not looked at
    actions, length, seconds = np.zeros(len(seeds), dtype=np.int64), 0, 0.0
    player.act(observations)  # compiled, so that no game's seconds hold the time to get ready
    while playing.size:
        begun = perf_counter()
        actions[:] = 0
        actions[playing] = player.act(_rows(observations, playing))
        observations, _, terminated, truncated, infos = envs.step(actions)
        length, seconds = length + 1, seconds + (perf_counter() - begun) / playing.size
        for i in playing[(terminated | truncated)[playing]]:
            figures = {name: int(infos[name][i]) for name in _FIGURES if name in infos}
            record = {"seed": seeds[i], "length": length, "terminated": bool(terminated[i]), "seconds": seconds}
            yield episode_from(record | figures)
        playing = playing[~(terminated | truncated)[playing]]


def _without_rendering(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in kwargs.items() if name != "render_mode"}


def _rows(observations: Any, which: NDArray[np.int64]) -> Any:
    if isinstance(observations, dict):
        return {name: part[which] for name, part in observations.items()}
    return observations[which]
