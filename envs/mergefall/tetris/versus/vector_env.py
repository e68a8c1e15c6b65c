"""The batched environment of Tetris matches."""

from mergefall.tetris.keys.vector_env import TetrisKeysVectorEnv
from mergefall.tetris.versus.env import Matches, TetrisVersusEnv


class TetrisVersusVectorEnv(Matches, TetrisKeysVectorEnv):
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
