"""Play whole episodes side by side in one batched environment: fast for players that decide for many games at once."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from concurrent.futures import ProcessPoolExecutor
from time import perf_counter

import gymnasium as gym
import numpy as np
from mergefall.games import game_of, take
from mergefall.typing import Array

from mergefall_training.play.actions import RECORDED, text_of
from mergefall_training.play.records import Episode, episode_from
from mergefall_training.play.steps import Step, steps
from mergefall_training.play.workers import Task, spread

AT_ONCE = 1024


def play_all(
    job: Task, seeds: Sequence[int], workers: int = 1, executor: str | ProcessPoolExecutor = "processes"
) -> Generator[Episode]:
    """Play the task's episodes from `seeds`; yields each as it ends, in any order.

    A `Player.batched` plays side by side in this process, others as `workers.spread` does; Ray plays both.
    """
    if executor != "ray" and job.player.batched:
        yield from play_together(job, seeds)
    else:
        yield from spread(job, Task.episode, seeds, workers, executor)


def play_together(job: Task, seeds: Sequence[int]) -> Generator[Episode]:
    """The task's episodes from ``seeds`` as `workers.spread` plays them, each as it ends.

    The `seconds` of a game are its share of the total time. The player must remember nothing.

    >>> from mergefall_training.play.workers import task
    >>> from mergefall_baselines import make
    >>> job = task(make("2048/greedy"), "mergefall/Game2048-v0", {"rows": 2, "cols": 2}, None)
    >>> sorted(episode.seed for episode in play_together(job, [5, 6]))
    [5, 6]
    """
    for first in range(0, len(seeds), AT_ONCE):
        yield from _play(job, seeds[first : first + AT_ONCE])


def _play(job: Task, seeds: Sequence[int]) -> Generator[Episode]:
    player, n = job.player, len(seeds)
    assert player.start(0) is None
    game, kwargs = game_of(job.env_id), {name: v for name, v in job.env_kwargs.items() if name != "render_mode"}
    envs = job.opposed(gym.make_vec(job.env_id, num_envs=n, max_episode_steps=job.max_episode_steps, **kwargs))
    playing = np.arange(n)  # games that are not over; the others are stepped too, but ignored
    actions, table, seconds = np.zeros(n, np.int64), np.empty((1024, n), np.uint16), 0.0

    def choose(step: Step) -> Array | None:
        actions[:] = 0
        actions[playing] = player.act(take(step.observation, playing))
        return actions if playing.size else None

    begun = perf_counter()
    for length, step in enumerate(steps(envs, list(seeds), choose)):
        if length == 0:
            player.act(step.observation)  # compiles, so that no game's `seconds` includes compiling
        else:
            seconds += (perf_counter() - begun) / playing.size
            if length <= RECORDED:
                table = table if length <= len(table) else np.concatenate([table, np.empty_like(table)])
                table[length - 1] = actions
            over = (step.terminated | step.truncated)[playing]
            for i in playing[over]:
                record = {"seed": seeds[i], "length": length, "terminated": bool(step.terminated[i])}
                figures = {name: int(step.info[name][i]) for name in game.figures}
                played = {"seconds": seconds, "actions": text_of(table[: min(length, RECORDED), i])}
                yield episode_from(record | figures | played)
            playing = playing[~over]
        begun = perf_counter()
