"""Teachers: what players think of the actions on a batch of boards."""

from copy import copy
from typing import Any

import numpy as np
from mergefall.checks import in_place
from mergefall.games import board_of, take
from mergefall.threads import share
from mergefall.typing import Array, Bools, Floats, Observation
from mergefall_baselines.registry import player_of, without_memory

from mergefall_training.learn.run import Config
from mergefall_training.play.workers import task

F = np.float32
GAP_MEMORY = 0.99  # share of its old value that the running median gap keeps at each round


class Teachers:
    """The teachers of a run, one after the other, each for an equal share of their steps.

    Their targets are softmax(values / τ). τ, `temperature`, is `gap_share` of the running median of the gaps between
    the teacher's two best values, which starts anew with each teacher.

    Args:
        teacher: a player's name, a mapping of it and its options, or a list of these.
        workers: threads that label boards.
        taught: share of the run's steps in which they teach.
    """

    def __init__(self, config: Config, teacher: Any, gap_share: float, workers: int, taught: float) -> None:
        specs = teacher if isinstance(teacher, list) and teacher else [teacher]
        self.jobs = [task(player_of(one, "teacher"), config.match) for one in specs]
        # A copy for each thread: a player decides one batch at a time.
        self._players = [[copy(job.player) for _ in range(workers)] for job in self.jobs]
        self._gap_share, self._steps_each = gap_share, max(taught * config.timesteps, 1) / len(specs)
        self.gap, self.gap_of = 0.0, -1  # the running median gap, and of which teacher

    @property
    def temperature(self) -> float:
        """τ of the last targets."""
        return max(self._gap_share * self.gap, 1e-9)

    def number_at(self, step: int) -> int:
        """The index of the teacher at a step."""
        return min(int(step / self._steps_each), len(self.jobs) - 1)

    def targets(self, observations: Observation, masks: Bools, step: int) -> Array:
        """The targets of a batch by the teacher at a step, float32[n, actions]."""
        values = self.values(observations, step)
        of_boards, teacher = gaps(values), self.number_at(step)
        if of_boards.size:
            kept = GAP_MEMORY if teacher == self.gap_of and self.gap else 0.0
            self.gap, self.gap_of = kept * self.gap + (1 - kept) * float(np.median(of_boards)), teacher
        return soft_targets(values, masks, self.temperature)

    def values(self, observations: Observation, step: int) -> Floats:
        """The values of all actions, float64[n, actions], by the teacher at a step; −∞ if illegal or fatal."""
        players, count = self._players[self.number_at(step)], len(board_of(observations))
        parts: list[Any] = np.array_split(np.arange(count), min(len(players), count))

        def label(k: int) -> None:
            parts[k] = players[k].values(take(observations, parts[k]))

        share(label, range(len(parts)), len(parts))
        return np.concatenate(parts)

    def check(self, observations: Observation) -> None:
        """Raise ValueError for a teacher that cannot teach on a batch such as `observations`.

        A teacher plays this game and values actions. It is asked about single boards, so it may remember only to save
        time.
        """
        for job in self.jobs:
            without_memory(job.player, "teacher")
            job.trajectory(0, 1)
            with in_place("teacher"):
                job.player.values(take(observations, slice(1)))


def gaps(values: Floats) -> Floats:
    """The differences between the best and the second-best finite value of each row of float64[n, actions].

    Rows with fewer than two finite values are left out.
    """
    second, best = np.sort(values, axis=1)[:, -2:].T
    there = np.isfinite(second)
    return best[there] - second[there]


def soft_targets(values: Floats, legal: Bools, temperature: float) -> Array:
    """softmax(values / temperature) of each row of float64[n, actions], as float32; 0 for an illegal action.

    A row whose legal values are all −∞ is uniform over the legal actions.
    """
    values = np.where(legal, values, -np.inf)
    best = values.max(axis=1, keepdims=True)
    lost = ~np.isfinite(best)
    weights = np.where(lost, legal, np.exp((values - np.where(lost, 0, best)) / temperature))
    return (weights / weights.sum(axis=1, keepdims=True)).astype(F)
