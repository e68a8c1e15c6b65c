"""What users write, with all types: `make lint` checks it in pyright's strict mode."""

from typing import Any

import gymnasium as gym
import numpy as np
from mergefall.game2048 import Game2048Env
from mergefall.tetris import TetrisEnv
from mergefall_baselines import Player, make
from mergefall_training import evaluate
from numpy.typing import NDArray


def empty_cells(board: NDArray[np.uint8]) -> float:
    """A heuristic of one's own."""
    return float((board == 0).sum())


class FirstLegal:
    """A player of one's own."""

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> tuple[int, Any]:
        legal = make("2048/greedy").values(observation) > -np.inf
        return int(legal.argmax()), state


def play_once(env: Game2048Env, player: Player) -> int:
    """The score of one game."""
    observation, _info = env.reset(seed=0)
    while True:
        observation, _reward, terminated, truncated, info = env.step(int(player.act(observation)))
        if terminated or truncated:
            return int(info["score"])


def test_what_users_write() -> None:
    """Use environments, players, heuristics, shaping and evaluation."""
    env = Game2048Env(rows=2, cols=3)
    env.reset(seed=0)
    boards, rewards, legal = env.afterstates()
    print(boards.shape, rewards.shape, legal.shape)
    print(play_once(env, make("2048/optimal")))

    tetris = TetrisEnv(cols=5, rows=6)
    observation, info = tetris.reset(seed=0)
    tetris.step(int(make("tetris/bcts").act(observation)))
    print(info["action_mask"].sum())

    own = evaluate(make("2048/expectimax", heuristic=empty_cells, depth=1), "mergefall/Game2048-v0", 2, workers=1)
    other = evaluate(FirstLegal(), "mergefall/Game2048-v0", 2, workers=1)
    versus = own.versus(other)
    print(own.summary().mean.value, versus.higher.value, versus.difference)
    print([episode.score for episode in own.episodes])

    Game2048Env(shaping={"potential": "nneonneo"}).reset(seed=0)
    envs = gym.make_vec("mergefall/Game2048-v0", num_envs=4)
    batch, _infos = envs.reset(seed=0)
    print(make("2048/greedy").act(batch))
