"""Monte-Carlo tree search in 2048: exact values on small boards, the chances of tiles, leaves of all kinds."""

import numpy as np
import pytest
from mergefall.game2048 import from_text, outcomes
from mergefall.game2048.board import CELLS
from mergefall.game2048.rules import move
from mergefall_baselines import Player, make, tree

from ..trees import searched_tree

BOARD = from_text("32 16 8 4/2 2 . ./4 . . 2/. . . .")
SMALL = [[[1, 1], [0, 0]], [[2, 3], [1, 0]], [[1, 2], [3, 0]], [[3, 3], [1, 0]], [[1, 4], [2, 0]]]


def outside(**options):
    """A player whose leaves are valued outside of the compiled search, which then need not be compiled for them."""
    player = make("2048/mcts", **options)
    player.compiled = False
    return player


def test_with_exact_leaves_the_values_are_exact_but_for_chance():
    """The mean over draws is all that differs; the R2 sequence makes it small."""
    player = outside(heuristic={"player": "2048/optimal"}, simulations=1500)
    optimal = make("2048/optimal")
    for board in SMALL:
        exact, (_, edges, _) = optimal.values(board), searched_tree(player, board)
        often = edges[0]["visits"] > 100
        np.testing.assert_allclose(player.values(board)[often], exact[often], rtol=0.05, atol=0.5)
        assert exact.max() - exact[player.act(board)] < 0.02 * exact.max()


@pytest.mark.parametrize("compiled", [True, False])
def test_what_memory_held_before_does_not_matter(monkeypatch, compiled):
    """A board of 2×2 fills four of the eight bytes of its word, and draws depend on the whole word."""
    filled = 0

    class Dirty:
        def __getattr__(self, name):
            return getattr(np, name)

        @staticmethod
        def empty(shape, dtype=float):
            array = np.empty(shape, dtype)
            array.view(np.uint8).fill(filled)
            return array

    def values():
        player = make("2048/mcts", heuristic=None, simulations=300)
        player.compiled = compiled
        return [player.values(board).tolist() for board in SMALL]

    found = [values()]  # compiles, too
    monkeypatch.setattr(tree, "np", Dirty())
    for byte in (0x55, 0xAA):
        filled = byte
        found.append(values())
    assert found[0] == found[1] == found[2]


def test_new_tiles_come_with_their_probabilities():
    nodes, edges, states = searched_tree(make("2048/mcts", simulations=3000), BOARD)
    for action in range(4):
        after, _, legal = move(BOARD, action)
        boards, probabilities = outcomes(after)
        children = np.flatnonzero((nodes["parent"] == 0) & (nodes["action"] == action))
        children = children[children > 0]
        visits = {states[i, CELLS:].tobytes(): 1 + edges[i]["visits"].sum() for i in children}
        assert legal
        counts = np.array([visits.pop(board.tobytes(), 0) for board in boards])
        assert not visits
        assert counts.sum() == edges[0, action]["visits"]
        assert abs(counts - counts.sum() * probabilities).max() < 8  # independent draws would differ by about 12


class Shortsighted(Player):
    """All boards are worth nothing, and later moves, too."""

    gamma = 0.0

    def values(self, observation, state=None):
        return np.zeros((len(observation), 4))


@pytest.mark.parametrize("rewards", [True, "log2"])
def test_without_a_future_every_visit_counts_the_reward_of_the_move_alone(rewards):
    player = make("2048/mcts", heuristic={"player": Shortsighted()}, simulations=40, rewards=rewards)
    _, edges, _ = searched_tree(player, BOARD)
    visits = edges[0]["visits"]
    assert visits.all()
    scores = [move(BOARD, action)[1] for action in range(4)]
    expected = np.log2(1 + np.array(scores)) if rewards == "log2" else np.array(scores)
    assert sorted(scores) == [0, 0, 4, 4]
    np.testing.assert_allclose(edges[0]["total"] / visits, expected)


class Policy(Player):
    """The same values of actions for every board, and another value for the board itself."""

    def __init__(self, values, board_value):
        self.of_actions, self.of_board = values, board_value

    def values(self, observation, state=None):
        return np.broadcast_to(self.of_actions, (len(observation), 4))

    def board_values(self, observation):
        return np.full(len(observation), self.of_board)


def test_a_policy_makes_priors_and_its_critic_values_leaves():
    policy = {"player": Policy(np.log([0.1, 0.2, 0.3, 0.4]), 7.0)}
    player = make("2048/mcts", heuristic=policy, temperature=1.0, simulations=40, rewards=False)
    _, edges, _ = searched_tree(player, BOARD)
    np.testing.assert_allclose(edges[0]["prior"], [0.1, 0.2, 0.3, 0.4])
    np.testing.assert_allclose(player.values(BOARD), 7.0)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_board_that_has_no_value_is_an_error(value):
    """NaN would stand for the value of the best action, which of a policy is a log-probability."""
    with pytest.raises(ValueError, match=f"values a board at {value}; expected a number"):
        make("2048/mcts", heuristic={"player": Policy(-np.ones(4), value)}, simulations=4).values(BOARD)
    with pytest.raises(ValueError, match=rf"values action \d at {value}"):
        make("2048/lookahead", of=Policy(-np.ones(4), value), rewards=False).values(BOARD)


@pytest.mark.parametrize("compiled", [pytest.param(True, marks=pytest.mark.slow), False])
def test_leaves_whose_values_are_no_numbers_end_the_search_with_an_error(compiled):
    player = make("2048/mcts", heuristic={"player": "2048/optimal"})
    player.compiled = compiled
    with pytest.raises(ValueError, match=r"not in the table|values action \d at nan"):
        player.values([[9, 9], [0, 0]])  # no such board comes up in a game of 2×2
