"""What the tests of Tetris share: golden data, and one compiled step of every action from many states."""

from functools import partial

import numpy as np
from mergefall.tetris import game
from mergefall.tetris.field import columns_of

from .. import tools

golden = partial(tools.golden, "tetris")
# The published controllers, as the golden data and as the package name them.
CONTROLLERS = {"dellacherie": "dellacherie", "bcts": "bcts", "dt10": "dt-10", "dt20": "dt-20", "el_tetris": "el-tetris"}


def cells(rows):
    """Golden rows of text as an array."""
    return np.array([[cell == "#" for cell in row] for row in rows], dtype=np.uint8)


def states_of(settings, boards, pieces):
    """States with boards [n, rows, cols] and piece ids [n]; all else is as at a start."""
    states = settings.new_states(len(boards))
    states[:, game.COLUMNS :] = columns_of(np.asarray(boards))
    states[:, game.QUEUE] = pieces
    return states


def every_action(settings, states):
    """(states [n, actions, words] after each action, `Seen` with a row for each), as the batch steps them."""
    n, actions = len(states), settings.n_actions
    after, seen = np.repeat(states, actions, axis=0), settings.seen(n * actions)
    chosen, fresh = np.tile(np.arange(actions), n), np.zeros(n * actions, np.bool_)
    rules = settings.reward_index, 1 << 40, 0, settings.reach
    settings.kernels.step(0, n * actions, after, chosen, fresh, settings.pool(None), rules, seen)
    return after.reshape(n, actions, -1), seen
