"""Search players for 2048 and Tetris behind one protocol.

>>> from mergefall_baselines import make
>>> int(make("2048/greedy").act([[1, 1], [0, 2]]))
1

`make` makes a player by name, `players` lists them, `register` adds one; `Player` is the protocol.
"""

from mergefall_baselines.game2048.expectimax import expectimax, greedy
from mergefall_baselines.game2048.lookahead import Lookahead, Symmetric
from mergefall_baselines.game2048.mcts import Mcts
from mergefall_baselines.game2048.minimax import minimax, mixed
from mergefall_baselines.game2048.ntuple import ntuple, strongest
from mergefall_baselines.game2048.simple import Random, Rollout
from mergefall_baselines.game2048.solver import Optimal
from mergefall_baselines.player import Player, Trajectory, play_in_env
from mergefall_baselines.registry import make, players, register
from mergefall_baselines.tetris import keys as tetris_keys
from mergefall_baselines.tetris import mcts as tetris_mcts
from mergefall_baselines.tetris import simple as tetris_simple
from mergefall_baselines.tetris.beam import BeamSearch
from mergefall_baselines.tetris.bot import Bot
from mergefall_baselines.tetris.greedy import Greedy, dellacherie, preset
from mergefall_baselines.tetris.search import Expectimax, quintris, two_tetrad

__all__ = ["Player", "Trajectory", "make", "play_in_env", "players", "register"]

for _name, _factory in {
    "2048/random": Random,
    "2048/greedy": greedy,
    "2048/rollout": Rollout,
    "2048/expectimax": expectimax,
    "2048/minimax": minimax,
    "2048/mixed": mixed,
    "2048/optimal": Optimal,
    "2048/ntuple": ntuple,
    "2048/strongest": strongest,
    "2048/mcts": Mcts,
    "2048/lookahead": Lookahead,
    "2048/symmetric": Symmetric,
    "tetris/random": tetris_simple.Random,
    "tetris/rollout": tetris_simple.Rollout,
    "tetris/greedy": Greedy,
    "tetris/dellacherie": dellacherie,
    "tetris/bcts": preset("bcts", "Building Controllers for Tetris"),
    "tetris/dt-10": preset("dt-10", "The 10×10 controller of Gabillon et al."),
    "tetris/dt-20": preset("dt-20", "The 10×20 controller of Gabillon et al."),
    "tetris/el-tetris": preset("el-tetris", "El-Tetris"),
    "tetris/two-tetrad": two_tetrad,
    "tetris/expectimax": Expectimax,
    "tetris/mcts": tetris_mcts.Mcts,
    "tetris/beam": BeamSearch,
    "tetris/bot": Bot,
    "tetris/keys": tetris_keys.Keys,
    "keys/random": tetris_keys.Random,
    "quintris/expectimax": quintris,
}.items():
    register(_name, _factory)
