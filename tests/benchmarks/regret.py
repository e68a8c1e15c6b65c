"""What a player's moves lose on a small board against the best ones, by the exact solution.

    python tests/benchmarks/regret.py runs/3x3-3 --option model=last --rows 3 --cols 3 --games 4000

The mean over games is the optimum minus the player's expected score, with far less noise than scores have. 3×3 is
solved first, which takes minutes and 1.3 GiB of memory.
"""

import argparse

import gymnasium as gym
import numpy as np
from mergefall_baselines import make
from mergefall_training.cli import parse_options


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("player")
    parser.add_argument("--option", metavar="NAME=VALUE", action="append", default=[])
    parser.add_argument("--rows", type=int, default=3)
    parser.add_argument("--cols", type=int, default=3)
    parser.add_argument("--games", type=int, default=1000)
    asked = parser.parse_args()
    player = make(asked.player, **parse_options(asked.option))
    envs = gym.make_vec("mergefall/Game2048-v0", asked.games, rows=asked.rows, cols=asked.cols)
    optimal = make("2048/optimal", rows=asked.rows, cols=asked.cols)
    boards, _ = envs.reset(seed=0)
    lost, playing, games = np.zeros(asked.games), np.ones(asked.games, dtype=bool), np.arange(asked.games)
    while playing.any():
        actions, values = player.predict(boards)[0], optimal.values(boards)
        lost[playing] += (values.max(axis=1) - values[games, actions])[playing]
        boards, _, over, _, _ = envs.step(actions)
        playing &= ~over
    error = 1.96 * lost.std() / asked.games**0.5
    print(f"N={asked.games}, seeds from 0: {lost.mean():.1f} ± {error:.1f} lost a game (95 %)")


if __name__ == "__main__":
    main()
