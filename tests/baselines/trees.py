"""What tree searches left in memory."""

import copy
from unittest.mock import patch

from mergefall_baselines import mcts
from mergefall_baselines.tree import tree_at


def searched_tree(player, observation, *state):
    """(nodes, edges, states) of the search from one observation, the unused part left out."""
    made = []
    with patch.object(mcts, "new_trees", lambda *sizes, make=mcts.new_trees: made.append(make(*sizes)) or made[-1]):
        copy.copy(player).predict(observation, *state)  # a copy has no trees yet
    tree = tree_at.py_func(made[0], 0)  # a leaf's player may grow others
    count = tree.tree["count"][0]
    return tree.nodes[:count], tree.edges[:count], tree.states[:count]
