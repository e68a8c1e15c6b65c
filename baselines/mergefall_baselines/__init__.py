"""Search players for 2048 behind one protocol."""

from mergefall_baselines.game2048.expectimax import Expectimax, greedy
from mergefall_baselines.game2048.minimax import Minimax, Mixed
from mergefall_baselines.game2048.optimal import Optimal
from mergefall_baselines.game2048.simple import Random, Rollout
from mergefall_baselines.player import Player, Trajectory, play_in_env
from mergefall_baselines.registry import make, players, register

__all__ = ["Player", "Trajectory", "make", "play_in_env", "players", "register"]

register("2048/random", Random)
register("2048/greedy", greedy)
register("2048/rollout", Rollout)
register("2048/expectimax", Expectimax)
register("2048/minimax", Minimax)
register("2048/mixed", Mixed)
register("2048/optimal", Optimal)
