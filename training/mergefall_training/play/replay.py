"""A player's games step by step: every observation, action mask, action and reward."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from mergefall.games import stack
from mergefall.typing import Observation
from mergefall_baselines import Trajectory
from numpy.typing import NDArray

from mergefall_training.play.workers import Task, trajectories, workers_of
from mergefall_training.progress import progress_bar


@dataclass(frozen=True)
class Replay:
    """One finished game of n actions.

    - `observations`: n + 1 observations, an array or a dict of arrays.
    - `masks`: the action masks, int8[n + 1, actions].
    - `actions`: int64[n]; `rewards`: float64[n]; `terminations`, `truncations`: bool[n].
    """

    seed: int
    observations: Observation
    masks: NDArray[np.int8]
    actions: NDArray[np.int64]
    rewards: NDArray[np.float64]
    terminations: NDArray[np.bool_]
    truncations: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.actions)


def replays(
    task: Task, seeds: Sequence[int], workers: int | None = 1, title: str = "games", progress: bool = False
) -> Iterator[Replay]:
    """Play a task's games from `seeds` and yield them in that order; `workers` processes (None: one per core) play.

    >>> from mergefall_baselines import make
    >>> from mergefall_training.play.workers import task
    >>> job = task(make("2048/greedy"), "mergefall/Game2048-v0", {"rows": 2, "cols": 2}, None)
    >>> game = next(replays(job, [5]))
    >>> game.observations.shape == (len(game) + 1, 2, 2), game.terminations[-1]
    (True, np.True_)
    """
    with progress_bar(title, len(seeds), enabled=progress) as show:
        env, actions = gym.make(task.env_id, max_episode_steps=task.max_episode_steps, **task.env_kwargs), 0
        try:
            for played, trajectory in enumerate(trajectories(task, seeds, workers_of(workers)), start=1):
                yield replayed(env, trajectory)
                actions += len(trajectory)
                show(played, f"{actions:,} actions")
        finally:
            env.close()


def replayed(env: gym.Env[Any, Any], trajectory: Trajectory) -> Replay:
    """Play a trajectory again in `env`.

    Raises ValueError for a game that is longer than the actions that its trajectory keeps.
    """
    if len(trajectory) > len(trajectory.actions):
        raise ValueError(
            f"the game from seed {trajectory.seed} has {len(trajectory)} actions, of which {len(trajectory.actions)} "
            "were kept; cap games by max_episode_steps"
        )
    observation, info = env.reset(seed=trajectory.seed)
    seen, masks, steps = [observation], [info["action_mask"]], []
    for action in trajectory.actions.tolist():
        observation, reward, terminated, truncated, info = env.step(action)
        seen.append(observation)
        masks.append(info["action_mask"])
        steps.append((reward, terminated, truncated))
    rewards, terminations, truncations = map(np.array, zip(*steps, strict=True))
    return Replay(
        trajectory.seed,
        stack(seen),
        np.stack(masks),
        trajectory.actions.astype(np.int64),
        rewards.astype(np.float64),
        terminations,
        truncations,
    )
