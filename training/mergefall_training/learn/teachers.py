"""Teachers: what players think of the actions on a batch of boards, in this process or in several."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import numpy as np
from mergefall.games import board_of, take
from mergefall.typing import Observation
from mergefall_baselines.registry import player_of, without_memory
from numpy.typing import NDArray

from mergefall_training.learn.run import Config
from mergefall_training.play.workers import process_pool, task, unpack_task

F = np.float32
GAP_MEMORY = 0.99  # share of its old value that the running median gap keeps at each round


class Teachers:
    """The teachers of a run, one after the other, each for an equal share of their steps.

    Their targets are softmax(values / τ). τ, `temperature`, is `gap_share` of the running median of the gaps between
    the teacher's two best values, which starts anew with each teacher.

    Args:
        teacher: a player's name, a mapping of it and its options, or a list of these.
        workers: processes that label boards; 1: this one.
        taught: share of the run's steps in which they teach.
    """

    def __init__(self, config: Config, teacher: Any, gap_share: float, workers: int, taught: float) -> None:
        specs = teacher if isinstance(teacher, list) and teacher else [teacher]
        players = [player_of(one, "teacher") for one in specs]
        self.jobs = [task(player, config.env_id, config.env_kwargs, config.max_episode_steps) for player in players]
        self._gap_share, self._workers, self._timesteps = gap_share, workers, max(taught * config.timesteps, 1)
        self.gap, self.gap_of = 0.0, -1  # the running median gap, and of which teacher
        self._open = ExitStack()
        self._pool = self._open.enter_context(process_pool(workers)) if workers > 1 else None

    def close(self) -> None:
        """End the worker processes."""
        self._open.close()

    @property
    def temperature(self) -> float:
        """τ of the last targets."""
        return max(self._gap_share * self.gap, 1e-9)

    def number_at(self, step: int) -> int:
        """The index of the teacher at a step."""
        return min(int(len(self.jobs) * step / self._timesteps), len(self.jobs) - 1)

    def targets(self, observations: Observation, masks: NDArray[np.bool_], step: int) -> NDArray[np.float32]:
        """What the teacher at a step says to a batch, float32[n, actions]."""
        values = self.values(observations, step)
        of_boards, teacher = gaps(values), self.number_at(step)
        if of_boards.size:
            kept = GAP_MEMORY if teacher == self.gap_of and self.gap else 0.0
            self.gap, self.gap_of = kept * self.gap + (1 - kept) * float(np.median(of_boards)), teacher
        return soft_targets(values, masks, self.temperature)

    def values(self, observations: Observation, step: int) -> NDArray[np.float64]:
        """The values of all actions, float64[n, actions], by the teacher at a step; −∞ if illegal or fatal."""
        job = self.jobs[self.number_at(step)]
        if self._pool is None:
            return job.player.values(observations)
        packed = job.pack()
        rows = np.array_split(np.arange(len(board_of(observations))), self._workers)
        parts = [take(observations, part) for part in rows]
        return np.concatenate(list(self._pool.map(_values, [packed] * len(parts), parts)))

    def check(self, observations: Observation) -> None:
        """Raise ValueError for a teacher that cannot teach on a batch such as `observations`.

        A teacher plays this game, values actions, and does not remember: it is asked about single boards.
        """
        for job in self.jobs:
            without_memory(job.player, "teacher")
            job.trajectory(0, 1)
            try:
                job.player.values(take(observations, slice(1)))
            except NotImplementedError as error:
                raise ValueError(f"teacher: {error}") from error


def _values(packed: bytes, observations: Observation) -> NDArray[np.float64]:
    return unpack_task(packed).player.values(observations)


def gaps(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The differences between the best and the second-best finite value of each row of float64[n, actions].

    Rows with fewer than two finite values are left out.

    >>> gaps(np.array([[1, 5, 3], [-np.inf, 2, -np.inf]]))
    array([2.])
    """
    second, best = np.sort(values, axis=1)[:, -2:].T
    there = np.isfinite(second)
    return best[there] - second[there]


def soft_targets(values: NDArray[np.float64], legal: NDArray[np.bool_], temperature: float) -> NDArray[np.float32]:
    """softmax(values / temperature) of each row of float64[n, actions], as float32; 0 for an illegal action.

    A row whose legal values are all −∞ is uniform over the legal actions.

    >>> soft_targets(np.log(np.array([[1.0, 3.0]])), np.ones((1, 2), bool), 1.0)
    array([[0.25, 0.75]], dtype=float32)
    """
    values = np.where(legal, values, -np.inf)
    best = values.max(axis=1, keepdims=True)
    lost = ~np.isfinite(best)
    weights = np.where(lost, legal, np.exp((values - np.where(lost, 0, best)) / temperature))
    return (weights / weights.sum(axis=1, keepdims=True)).astype(F)
