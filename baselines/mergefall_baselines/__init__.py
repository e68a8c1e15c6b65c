"""Search players for 2048 and Tetris behind one protocol.

>>> from mergefall_baselines import make
>>> int(make("2048/greedy").act([[1, 1], [0, 2]]))
1

`make` makes a player by name, `players` lists them, `register` adds one; `Player` is the protocol.
"""

from mergefall_baselines.game2048.expectimax import expectimax, greedy
from mergefall_baselines.game2048.lookahead import Lookahead
from mergefall_baselines.game2048.mcts import mcts
from mergefall_baselines.game2048.minimax import minimax, mixed
from mergefall_baselines.game2048.ntuple import ntuple
from mergefall_baselines.game2048.optimal import Optimal
from mergefall_baselines.game2048.simple import Random, Rollout
from mergefall_baselines.game2048.symmetric import Symmetric
from mergefall_baselines.player import Player, Trajectory, play_in_env
from mergefall_baselines.registry import make, players, register
from mergefall_baselines.tetris import expectimax as tetris_expectimax
from mergefall_baselines.tetris import greedy as tetris_greedy
from mergefall_baselines.tetris import mcts as tetris_mcts
from mergefall_baselines.tetris import quintris as tetris_quintris
from mergefall_baselines.tetris import simple as tetris_simple
from mergefall_baselines.tetris import two_tetrad as tetris_two_tetrad

__all__ = ["Player", "Trajectory", "make", "play_in_env", "players", "register"]

register("2048/random", Random)
register("2048/greedy", greedy)
register("2048/rollout", Rollout)
register("2048/expectimax", expectimax)
register("2048/minimax", minimax)
register("2048/mixed", mixed)
register("2048/optimal", Optimal)
register("2048/ntuple", ntuple)
register("2048/mcts", mcts)
register("2048/lookahead", Lookahead)
register("2048/symmetric", Symmetric)
register("tetris/random", tetris_simple.Random)
register("tetris/rollout", tetris_simple.Rollout)
register("tetris/greedy", tetris_greedy.Greedy)
register("tetris/dellacherie", tetris_greedy.dellacherie)
register("tetris/bcts", tetris_greedy.preset("bcts", "Building Controllers for Tetris"))
register("tetris/dt-10", tetris_greedy.preset("dt-10", "The 10×10 controller of Gabillon et al."))
register("tetris/dt-20", tetris_greedy.preset("dt-20", "The 10×20 controller of Gabillon et al."))
register("tetris/el-tetris", tetris_greedy.preset("el-tetris", "El-Tetris"))
register("tetris/two-tetrad", tetris_two_tetrad.TwoTetrad)
register("tetris/expectimax", tetris_expectimax.Expectimax)
register("tetris/mcts", tetris_mcts.mcts)
register("quintris/expectimax", tetris_quintris.Quintris)
