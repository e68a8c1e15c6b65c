"""The batched Tetris environment: n games stepped by one kernel call, each as the single environment would step it."""

from mergefall.tetris.env import TetrisEnv, TetrisGames
from mergefall.vector import GameVectorEnv


class TetrisVectorEnv(TetrisGames, GameVectorEnv):
    """n games of Tetris stepped together.

    `TetrisEnv` describes the game, `mergefall.vector.GameVectorEnv` the batch and its further arguments.

    >>> import gymnasium as gym, mergefall
    >>> envs = gym.make_vec("mergefall/Tetris-v0", num_envs=3, preview=2)
    >>> obs, infos = envs.reset(seed=0)
    >>> obs["board"].shape, obs["piece"].shape, obs["queue"].shape, infos["action_mask"].shape
    ((3, 20, 10), (3,), (3, 2), (3, 40))
    >>> obs, rewards, terminated, truncated, infos = envs.step([0, 1, 2])
    >>> rewards.dtype, infos["pieces"]
    (dtype('float64'), array([1, 1, 1]))
    """

    single_type, fewest = TetrisEnv, 1024
