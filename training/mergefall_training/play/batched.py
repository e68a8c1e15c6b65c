"""Play whole episodes side by side in one batched environment: fast for players that decide for many games at once."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from time import perf_counter

import gymnasium as gym
import numpy as np
from mergefall.games import game_of, take
from mergefall_baselines import Player

from mergefall_training.play.actions import ActionLogs
from mergefall_training.play.records import Episode, episode_from
from mergefall_training.play.workers import Task

AT_ONCE = 1024


def play_together(job: Task, seeds: Sequence[int]) -> Generator[Episode]:
    """The task's episodes from ``seeds`` as `workers.play_all` plays them, each as it ends.

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
    player = job.player
    assert isinstance(player, Player)
    assert player.start(0) is None
    game, kwargs = game_of(job.env_id), {name: v for name, v in job.env_kwargs.items() if name != "render_mode"}
    envs = gym.make_vec(job.env_id, num_envs=len(seeds), max_episode_steps=job.max_episode_steps, **kwargs)
    envs = job.opposed(envs)
    observations, _ = envs.reset(seed=list(seeds))
    playing = np.arange(len(seeds))  # games that are not over; the others are stepped too, but ignored
    logs = ActionLogs(len(seeds))
    actions, length, seconds = np.zeros(len(seeds), dtype=np.int64), 0, 0.0
    player.act(observations)  # compiles, so that no game's `seconds` includes compiling
    while playing.size:
        begun = perf_counter()
        actions[:] = 0
        actions[playing] = player.act(take(observations, playing))
        observations, _, terminated, truncated, infos = envs.step(actions)
        logs.add(actions)
        length, seconds = length + 1, seconds + (perf_counter() - begun) / playing.size
        for i in playing[(terminated | truncated)[playing]]:
            figures = {name: int(infos[name][i]) for name in game.figures}
            record = {"seed": seeds[i], "length": length, "terminated": bool(terminated[i]), "seconds": seconds}
            yield episode_from(record | figures | logs.fields(i))
        playing = playing[~(terminated | truncated)[playing]]
