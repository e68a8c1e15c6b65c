"""Monte-Carlo tree search in Tetris: rules of all kinds, the chances of pieces, fatal placements."""

import numpy as np
import pytest
from mergefall.tetris import from_text, game
from mergefall_baselines import Player, make
from mergefall_baselines.tetris import mcts

from ..trees import searched_tree

FIELD = {"board": from_text("...../...../...../...../##..#"), "piece": 1, "queue": [2]}


def test_known_pieces_come_and_unknown_ones_are_drawn():
    """With leaves that look at the current piece alone, a piece is drawn only when the known ones are used up."""
    nodes, _, states = searched_tree(make("tetris/mcts", simulations=300), FIELD)
    pieces = (states[:, game.QUEUE] & np.uint64(15)).astype(int)
    first, second = nodes["depth"] == 1, nodes["depth"] == 2
    assert (pieces[first] == 2).all()
    assert (nodes["outcome"][first] == 0).all()
    assert set(pieces[second]) == set(range(7))
    assert (states[1:, mcts.KNOWN] == 1).all()


@pytest.mark.slow
def test_leaves_that_see_the_next_piece_get_it():
    nodes, _, states = searched_tree(
        make("tetris/mcts", simulations=300, heuristic={"player": "tetris/two-tetrad"}), FIELD
    )
    first = nodes["depth"] == 1
    assert (states[1:, mcts.KNOWN] == 2).all()
    assert (states[first, game.QUEUE] & np.uint64(15) == 2).all()
    assert set((states[first, game.QUEUE] >> np.uint64(4)).astype(int)) == set(range(7))


def test_pieces_come_with_their_probabilities():
    shown = {"board": FIELD["board"], "piece": 1}
    nodes, edges, _ = searched_tree(make("tetris/mcts", simulations=2000), shown)
    action = edges[0]["visits"].argmax()
    children = np.flatnonzero((nodes["parent"] == 0) & (nodes["action"] == action) & (nodes["depth"] == 1))
    assert (nodes["over"][children] == 0).all()
    visits = 1 + edges[children]["visits"].sum(axis=1)
    assert visits.sum() == edges[0, action]["visits"]
    assert abs(visits - visits.sum() / 7).max() < 5  # independent draws would differ by about 10


def test_what_is_left_of_a_bag_is_drawn():
    player = make("tetris/mcts", simulations=400, randomizer="bag7", preview=0)
    assert player.remembers
    assert not player.batched
    memory = player.start(0)
    for piece in (0, 3, 4, 5):
        _, memory = player.predict({"board": FIELD["board"], "piece": piece}, memory)
    nodes, _, states = searched_tree(player, {"board": FIELD["board"], "piece": 1}, memory)  # 2 and 6 are left
    drawn = (states[:, game.QUEUE] & np.uint64(15)).astype(int)
    assert set(drawn[nodes["depth"] == 1]) == {2, 6}
    for i in np.flatnonzero(nodes["depth"] == 2):
        assert {drawn[i], drawn[nodes["parent"][i]]} == {2, 6}


def test_the_terms_of_moves_count_on_the_way():
    """One simulation: the mean of the value before it, and of the move's terms plus the best placement after it."""
    player = make("tetris/mcts", simulations=1)
    exact = make("tetris/expectimax", depth=2).values(FIELD)
    _, edges, _ = searched_tree(player, FIELD)
    searched = edges[0]["visits"].argmax()
    before = make("tetris/greedy").values(FIELD)[searched]
    assert (before + edges[0, searched]["total"]) / 2 == pytest.approx((before + exact[searched]) / 2)


def test_fatal_placements_are_legal_but_worth_less_than_the_others():
    shown = {"board": from_text("####./####./####./####./####."), "piece": 1, "queue": [1]}
    player = make("tetris/mcts", simulations=20)
    values = player.values(shown)
    assert np.isfinite(values).sum() == 4
    assert player.act(shown) == np.flatnonzero(np.isfinite(values))[0]
    low = {"board": from_text("...../####./####./####./####."), "piece": 0, "queue": [1]}
    values, greedy = player.values(low), make("tetris/greedy").values(low)
    fatal = np.isfinite(values) & ~np.isfinite(greedy)
    assert fatal.any()
    assert values[fatal].max() <= values[np.isfinite(greedy)].min()


def test_a_policy_at_the_leaves_gets_no_simulation_of_a_fatal_placement():
    class Policy(Player):
        """Equal preferences for all placements, and a value of 5 for every board."""

        def values(self, observation, state=None):
            return np.zeros((len(observation["board"]), 20))

        def board_values(self, observation):
            return np.full(len(observation["board"]), 5.0)

    shown = {"board": from_text("...../####./####./####./####."), "piece": 0, "queue": [1]}
    safe = np.isfinite(make("tetris/greedy").values(shown))
    player = make("tetris/mcts", heuristic={"player": Policy()}, simulations=60, temperature=1.0)
    player = player.with_rules({"cols": 5, "rows": 5, "preview": 1})
    _, edges, _ = searched_tree(player, shown)
    values = player.values(shown)
    assert (np.isfinite(values) & ~safe).any()
    assert edges[0, safe]["visits"].sum() == 60
    assert values[~safe].max() <= values[safe].min()


def test_the_rules_of_the_leaf_are_checked():
    with pytest.raises(ValueError, match="cols"):
        make("tetris/mcts", heuristic={"player": {"player": "tetris/bcts", "cols": 8}}).values(FIELD)


def test_rewards_that_no_search_counts_are_named():
    leaf = {"player": {"player": "tetris/rollout", "games": 3, "length": 5}}
    with pytest.raises(ValueError, match="no search counts the rewards that the values of tetris/rollout stand for"):
        make("tetris/mcts", heuristic=leaf)
    values = make("tetris/mcts", heuristic=leaf, rewards=True, simulations=20).values(FIELD)
    assert values[np.isfinite(values)].min() >= 0


def test_leaves_from_outside_see_as_many_pieces_as_the_root():
    class Nearsighted(Player):
        sees_next = False

        def values(self, observation, state=None):
            assert np.isin(observation["piece"], (3, 4)).all()
            assert np.isin(observation["queue"], (3, 4)).all()
            return np.zeros((len(observation["board"]), 20))

    shown = {"board": from_text("...../...../...../...../##..#"), "piece": 3, "queue": [4, 4]}
    player = make("tetris/mcts", heuristic={"player": Nearsighted()}, pieces="sz", preview=2, simulations=60)
    _, edges, _ = searched_tree(player.with_rules({"cols": 5, "rows": 5}), shown)
    assert edges[0]["visits"].sum() == 60
