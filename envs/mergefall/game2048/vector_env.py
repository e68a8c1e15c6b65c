"""The batched 2048 environment: one kernel call steps n games, each exactly as the single environment does."""

from mergefall.game2048.env import Game2048Env
from mergefall.vector import GameVectorEnv


class Game2048VectorEnv(GameVectorEnv):
    """n games of 2048 stepped together.

    `Game2048Env` describes the game, `mergefall.vector.GameVectorEnv` the batch and its further arguments.

    >>> import gymnasium as gym, mergefall
    >>> envs = gym.make_vec("mergefall/Game2048-v0", num_envs=3, autoreset_mode="SameStep")
    >>> obs, infos = envs.reset(seed=0)
    >>> obs.shape, infos["action_mask"].shape
    ((3, 4, 4), (3, 4))
    >>> obs, rewards, terminated, truncated, infos = envs.step([0, 1, 2])
    >>> rewards.dtype, infos["score"].dtype
    (dtype('float64'), dtype('int64'))
    """

    single_type, fewest = Game2048Env, 2048
