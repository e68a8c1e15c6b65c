"""What potentials pay with the constants of `mergefall.shaping`: the figures of its table.

    python tests/benchmarks/shaping.py

For each potential: squash, scale and drop; F of the steps of random play and of a player's, as root mean square and
median of |F|, and the mean of what the last steps of its games pay; Φ of an empty board. 4×4, and 10×20 with uniform
pieces; seeds from 0.
"""

from __future__ import annotations

import gymnasium as gym
import mergefall  # noqa: F401  (registers the environments)
import numpy as np
from mergefall.game2048 import HEURISTICS
from mergefall.shaping import CONSTANTS
from mergefall_baselines import make

GAMES, STEPS = 64, 400
SQUASHES = {"identity": np.positive, "asinh": np.arcsinh}
GAME, TETRIS = "mergefall/Game2048-v0", "mergefall/Tetris-v0"
PLAYERS = {GAME: ("2048/random", "2048/greedy"), TETRIS: ("tetris/random", "tetris/bcts")}


def paid(env_id: str, name: str, player: str) -> tuple[np.ndarray, np.ndarray]:
    """F of all steps but the last ones, and of the last ones, of `GAMES` games in `STEPS` steps each."""
    envs = gym.make_vec(env_id, num_envs=GAMES, shaping={"potential": name})
    observations, _ = envs.reset(seed=0)
    actor, state = make(player), None
    steps, ends, begins = [], [], np.zeros(GAMES, bool)
    for _ in range(STEPS):
        actions, state = actor.predict(observations, state)
        observations, _, terminated, _, infos = envs.step(actions)
        steps.append(infos["shaping"][~terminated & ~begins])
        ends.append(infos["shaping"][terminated])
        begins = terminated
    return np.concatenate(steps), np.concatenate(ends)


def main() -> None:
    for name, (squash, scale, drop) in CONSTANTS.items():
        env_id = GAME if name in HEURISTICS else TETRIS
        line = f"{name:15}  {squash:8}  {scale:<6g}  {drop:<6g}"
        for player in PLAYERS[env_id]:
            steps, ends = paid(env_id, name, player)
            last = f"{ends.mean():6.1f}" if len(ends) else "     -"
            line += f"  {np.sqrt(np.mean(steps**2)):5.2f} {np.median(np.abs(steps)):5.2f} {last}"
        cells = 16 if env_id == GAME else 200
        print(f"{line}  {scale * SQUASHES[squash](drop * cells):6.1f}", flush=True)


if __name__ == "__main__":
    main()
