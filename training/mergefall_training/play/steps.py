"""Games step by step: one generator, under everything that plays a game in its environment or plays it again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from mergefall.games import stack
from mergefall.typing import Observation
from mergefall_baselines import Player, Trajectory
from mergefall_baselines.player import checked, takes_masks
from numpy.typing import NDArray

from mergefall_training.play.workers import Task, spread, workers_of
from mergefall_training.progress import progress_bar


@dataclass(frozen=True)
class Step:
    """A position of a game, or of each game of a batch, and the action that led to it.

    - `observation`, `info`, `reward`, `terminated`, `truncated`: as the environment returned them.
    - `action`: None at the start.
    """

    observation: Any
    info: dict[str, Any]
    action: Any = None
    reward: Any = 0.0
    terminated: Any = False
    truncated: Any = False


Choose = Callable[[Step], Any]  # the action at a step; None: the game is not played on


def steps(env: Any, seed: Any, choose: Choose) -> Iterator[Step]:
    """The steps of a game from ``reset(seed=seed)`` to its end, or until `choose` returns None.

    `env` may be a batch of environments; `seed` is then a list, and actions are arrays.

    >>> import mergefall
    >>> env = gym.make("mergefall/Game2048-v0", rows=2, cols=2)
    >>> [step.action for step in steps(env, 0, recorded([0, 1]))]
    [None, 0, 1]
    """
    observation, info = env.reset(seed=seed)
    step = Step(observation, info)
    yield step
    while not np.all(np.logical_or(step.terminated, step.truncated)):
        action = choose(step)
        if action is None:
            return
        observation, reward, terminated, truncated, info = env.step(action)
        step = Step(observation, info, action, reward, terminated, truncated)
        yield step


def recorded(actions: Iterable[Any]) -> Choose:
    """The actions in their order, then None."""
    left = iter(actions)
    return lambda step: next(left, None)


def chosen_by(player: Player, seed: int) -> Choose:
    """The actions of a player in a game from a seed."""
    state, masked = player.start(seed), takes_masks(player)

    def choose(step: Step) -> int:
        nonlocal state
        masks = {"action_masks": step.info["action_mask"].astype(np.bool_)} if masked else {}
        action, state = player.predict(step.observation, state, **masks)
        return checked(player, action)

    return choose


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
            trajectories = spread(task, Task.trajectory, seeds, workers_of(workers), in_order=True)
            for played, trajectory in enumerate(trajectories, start=1):
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
    first, *others = steps(env, trajectory.seed, recorded(trajectory.actions.tolist()))
    return Replay(
        trajectory.seed,
        stack([step.observation for step in (first, *others)]),
        np.stack([step.info["action_mask"] for step in (first, *others)]),
        trajectory.actions.astype(np.int64),
        np.array([step.reward for step in others], np.float64),
        np.array([step.terminated for step in others]),
        np.array([step.truncated for step in others]),
    )
