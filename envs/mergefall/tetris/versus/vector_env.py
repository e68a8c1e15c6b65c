"""The batched environment of Tetris matches."""

from __future__ import annotations

from typing import Any

from mergefall.tetris.keys.vector_env import TetrisKeysVectorEnv
from mergefall.tetris.versus.env import Opponent, TetrisVersusEnv


class TetrisVersusVectorEnv(TetrisKeysVectorEnv):
    """n matches of Tetris by keys stepped together, all against one player, which decides for all at once.

    `TetrisVersusEnv` describes the match, `mergefall.vector.GameVectorEnv` the batch and its further arguments.

    >>> import gymnasium as gym, mergefall
    >>> envs = gym.make_vec("mergefall/TetrisVersus-v0", num_envs=3, opponent="tetris/keys")
    >>> obs, infos = envs.reset(seed=0)
    >>> obs, rewards, terminated, truncated, infos = envs.step([1, 6, 0])
    >>> obs["opponent"].shape, infos["won"]
    ((3, 24, 10), array([0, 0, 0]))
    """

    single_type = TetrisVersusEnv

    def __init__(self, num_envs: int = 1, *values: Any, **arguments: Any) -> None:
        super().__init__(num_envs, *values, **arguments)
        self._rival = Opponent(self.rules)

    def _answer(self) -> None:
        self._rival.write_keys(self._states)
