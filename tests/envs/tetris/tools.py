"""What the tests of Tetris share: golden data, and one compiled step of every action from many states."""

import json
from functools import cache
from pathlib import Path

import numpy as np
from mergefall.tetris import batch, game
from mergefall.tetris.field import columns_of


@cache
def golden():
    path = Path(__file__).parents[2] / "golden" / "tetris.json"
    return json.loads(path.read_text(encoding="utf-8"))


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
    """(states [n, actions, words] after each action, `batch.Seen` with a row for each), as the batch steps them."""
    n, actions = len(states), settings.n_actions
    after, seen = np.repeat(states, actions, axis=0), settings.seen(n * actions)
    chosen, fresh = np.tile(np.arange(actions), n), np.zeros(n * actions, np.bool_)
    rules = settings.payments(), 1 << 40, 0
    batch.step(0, n * actions, after, chosen, fresh, settings.pool(None), rules, seen)
    return after.reshape(n, actions, -1), seen
