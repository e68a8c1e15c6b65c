"""What a player's moves lose on a small board against the best ones, by the exact solution.

    python tests/benchmarks/regret.py runs/3x3-3 --option model=last --rows 3 --cols 3 --games 4000

The mean over games is the optimum minus the player's expected score, with far less noise than scores have. 3×3 is
solved first, which takes minutes and 1.3 GiB of memory.
"""

from __future__ import annotations

import argparse

import gymnasium as gym
import mergefall  # noqa: F401
import numpy as np
from mergefall_baselines import make


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("player")
    parser.add_argument("--option", metavar="NAME=VALUE", action="append", default=[])
    parser.add_argument("--rows", type=int, default=3)
    parser.add_argument("--cols", type=int, default=3)
    parser.add_argument("--games", type=int, default=1000)
    asked = parser.parse_args()
    player = make(asked.player, **dict(pair.split("=", 1) for pair in asked.option))
    optimal = make("2048/optimal", rows=asked.rows, cols=asked.cols)
    envs = gym.make_vec("mergefall/Game2048-v0", asked.games, rows=asked.rows, cols=asked.cols)
    boards, _ = envs.reset(seed=0)
    scores, lost, playing = np.zeros(asked.games), np.zeros(asked.games), np.ones(asked.games, dtype=bool)
    while playing.any():
        actions, _ = player.predict(boards)
        worth = optimal.values(boards[playing])
        lost[playing] += worth.max(axis=1) - np.take_along_axis(worth, actions[playing, None], axis=1)[:, 0]
        boards, rewards, over, _, _ = envs.step(actions)
        scores[playing] += rewards[playing]
        playing &= ~over
    error = 1.96 * lost.std() / asked.games**0.5
    print(f"N={asked.games}, seeds from 0: lost {lost.mean():.1f} ± {error:.1f} a game; mean score {scores.mean():.1f}")


if __name__ == "__main__":
    main()
