"""The batched environment of Tetris by keys: n games stepped by one kernel call, each as the single one would."""

from mergefall.tetris.keys.env import TetrisKeysEnv
from mergefall.vector import GameVectorEnv


class TetrisKeysVectorEnv(GameVectorEnv):
    """n games of Tetris by keys stepped together.

    `TetrisKeysEnv` describes the game, `mergefall.vector.GameVectorEnv` the batch and its further arguments.

    >>> import gymnasium as gym, mergefall
    >>> envs = gym.make_vec("mergefall/TetrisKeys-v0", num_envs=3)
    >>> obs, infos = envs.reset(seed=0)
    >>> obs["board"].shape, obs["place"].shape, obs["queue"].shape, infos["action_mask"].shape
    ((3, 24, 10), (3, 3), (3, 5), (3, 8))
    >>> obs, rewards, terminated, truncated, infos = envs.step([1, 6, 0])
    >>> rewards.dtype, infos["pieces"]
    (dtype('float64'), array([0, 1, 0]))
    """

    single_type, fewest = TetrisKeysEnv, 1024
