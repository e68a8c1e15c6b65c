"""The batched 2048 environment: one kernel call steps n games, each exactly as the single environment does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mergefall.game2048 import batch, packed
from mergefall.game2048 import board as core
from mergefall.game2048.env import Game2048Env
from mergefall.game2048.render import frame
from mergefall.typing import Array
from mergefall.vector import GameVectorEnv


class Game2048VectorEnv(GameVectorEnv):
    """n games of 2048 stepped together; `Game2048Env` describes the game.

    `gymnasium.make_vec("mergefall/Game2048-v0", num_envs=n)` makes one. Game i of a batch that is reset with seed s
    plays exactly as a single environment that is reset with seed s + i. The batch returns what Gymnasium's
    `SyncVectorEnv` of single environments returns, infos and their `_key` masks included. All arrays are fresh.

    `mergefall.vector.GameVectorEnv` describes the arguments besides those of the single environment.

    >>> import gymnasium as gym, mergefall
    >>> envs = gym.make_vec("mergefall/Game2048-v0", num_envs=3, autoreset_mode="SameStep")
    >>> obs, infos = envs.reset(seed=0)
    >>> obs.shape, infos["action_mask"].shape
    ((3, 4, 4), (3, 4))
    >>> obs, rewards, terminated, truncated, infos = envs.step([0, 1, 2])
    >>> rewards.dtype, infos["score"].dtype
    (dtype('float64'), dtype('int64'))
    """

    single_type, view_type, fewest = Game2048Env, Game2048Env.view_type, 2048

    def __init__(self, num_envs: int = 1, *values: Any, **arguments: Any) -> None:
        super().__init__(num_envs, *values, **arguments)
        rules = self.rules
        lines, reward = packed.lines_for(rules.rows, rules.cols), batch.REWARDS.index(rules.reward)
        self._limits = lines, reward, rules.illegal_limit, self.max_episode_steps or 0

    def _empty(self) -> batch.Seen:
        return batch.Seen.empty(self._states)

    def _begin(self, which: NDArray[np.int64], starts: Array, drawn: bool) -> None:
        batch.begin(self._states, which, starts, drawn)

    def _look(self, which: NDArray[np.int64], seen: batch.Seen) -> None:
        batch.look(self._states, which, seen)

    def _step_part(
        self, part: tuple[int, int], actions: NDArray[np.int64], fresh: NDArray[np.bool_], seen: batch.Seen
    ) -> None:
        batch.stepper()(*part, self._states, actions, fresh, self._pool, self._limits, seen)

    def _observations(self, seen: batch.Seen) -> NDArray[np.uint8]:
        ranks = seen.cells.view(np.uint8)[:, : self.rules.rows * self.rules.cols]
        return np.ascontiguousarray(ranks).reshape(-1, self.rules.rows, self.rules.cols)

    def _columns(self, seen: batch.Seen) -> dict[str, Array]:
        return {
            "action_mask": seen.masks.view(np.int8).reshape(-1, 4),
            "score": seen.scores,
            "max_tile": seen.max_tiles,
            "legal": seen.legal,
        }

    def _frames(self, mode: str) -> Iterator[Any]:
        boards, scores = self.rules.observations(self._states), self._states[:, core.SCORE].tolist()
        return (frame(board, score, mode) for board, score in zip(boards, scores, strict=True))
