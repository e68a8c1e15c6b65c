"""A player's games as learners take them: each observation, action and reward, from the seed on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from mergefall.threads import cores
from mergefall_baselines import Trajectory
from numpy.typing import NDArray
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from mergefall_training.console import console
from mergefall_training.workers import Task, trajectories


@dataclass(frozen=True)
class Game:
    """One finished game of n actions.

    ``observations`` are the n + 1 that were seen, an array or a dictionary of arrays; ``masks`` int8[n + 1, actions]
    says what was legal; ``actions`` int64[n], ``rewards`` float64[n], ``terminations`` and ``truncations`` bool[n].
    """

    seed: int
    observations: Any
    masks: NDArray[np.int8]
    actions: NDArray[np.int64]
    rewards: NDArray[np.float64]
    terminations: NDArray[np.bool_]
    truncations: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.actions)


def games(
    task: Task, seeds: Sequence[int], workers: int | None = 1, title: str = "games", progress: bool = False
) -> Iterator[Game]:
    """Play a task's games from `seeds`, in that order, over `workers` processes (None: one per core).

    >>> from mergefall_baselines import make
    >>> from mergefall_training.workers import task
    >>> job = task(make("2048/greedy"), "mergefall/Game2048-v0", {"rows": 2, "cols": 2}, None)
    >>> game = next(games(job, [5]))
    >>> game.observations.shape == (len(game) + 1, 2, 2), game.terminations[-1]
    (True, np.True_)
    """
    columns = (TextColumn("{task.description}", markup=False), BarColumn(bar_width=20), MofNCompleteColumn())
    columns += (TextColumn("{task.fields[actions]:,} actions"), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console(stderr=True), disable=not progress) as bar:
        row, actions = bar.add_task(title, total=len(seeds), actions=0), 0
        env = gym.make(task.env_id, max_episode_steps=task.max_episode_steps, **task.env_kwargs)
        try:
            for trajectory in trajectories(task, seeds, workers or cores()):
                yield replayed(env, trajectory)
                actions += len(trajectory)
                bar.update(row, advance=1, actions=actions)
        finally:
            env.close()


def replayed(env: gym.Env[Any, Any], trajectory: Trajectory) -> Game:
    """A game that was played in such an environment, action by action."""
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
    return Game(
        trajectory.seed,
        stacked(seen),
        np.stack(masks),
        trajectory.actions.astype(np.int64),
        rewards.astype(np.float64),
        terminations,
        truncations,
    )


def stacked(observations: Sequence[Any]) -> Any:
    """Observations as one batch."""
    if isinstance(observations[0], dict):
        return {name: np.stack([one[name] for one in observations]) for name in observations[0]}
    return np.stack(observations)
