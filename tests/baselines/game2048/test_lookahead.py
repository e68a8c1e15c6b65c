"""Expectimax over a player's values: exact values stay exact, and compiled searches find the same."""

import numpy as np
import pytest
from mergefall_baselines import Player, make

BOARDS = np.array(
    [
        [[5, 4, 3, 2], [1, 1, 0, 0], [2, 0, 0, 1], [0, 0, 0, 0]],
        [[11, 10, 3, 2], [5, 4, 2, 1], [2, 1, 1, 0], [1, 0, 0, 0]],
        [[1, 2, 1, 2], [2, 1, 2, 1], [1, 2, 1, 2], [2, 1, 2, 2]],  # close to lost
        [[1, 2, 1, 2], [2, 1, 2, 1], [1, 2, 1, 2], [2, 1, 2, 1]],  # lost
    ]
)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_over_perfect_play_it_is_perfect_play(depth):
    """Bellman's equation: optimal values, backed up through any number of moves and tiles, stay what they are."""
    boards = np.array([[[1, 1, 0], [0, 0, 2]], [[2, 3, 4], [1, 0, 0]], [[1, 2, 3], [2, 3, 1]], [[6, 5, 4], [1, 2, 2]]])
    found = make("2048/lookahead", of="2048/optimal", depth=depth).values(boards)
    np.testing.assert_allclose(found, make("2048/optimal").values(boards), rtol=1e-12)


@pytest.mark.parametrize("depth", [2, pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("leaf", "search", "heuristic"),
    [
        ("2048/ntuple", "2048/ntuple", {}),
        ("2048/greedy", "2048/expectimax", {"heuristic": "nneonneo"}),
        pytest.param("2048/greedy", "2048/expectimax", {"heuristic": "prairie-fire"}, marks=pytest.mark.slow),
        ("2048/greedy", "2048/expectimax", {"heuristic": None}),
    ],
)
def test_it_is_the_compiled_expectimax(leaf, search, heuristic, depth):
    found = make("2048/lookahead", of={"name": leaf, **heuristic}, depth=depth).values(BOARDS)
    np.testing.assert_allclose(found, make(search, depth=depth, **heuristic).values(BOARDS), rtol=1e-5)


class Judge(Player):
    """Values boards apart from actions, in logarithms of scores with a discount."""

    name, rewards, gamma = "judge", "log2", 0.5

    def values(self, observation, state=None):
        return np.zeros((*np.shape(observation)[:-2], 4))

    def board_values(self, observation):
        return np.asarray(observation).max(axis=(-2, -1)) * 1.0


def test_boards_are_worth_what_the_player_says():
    board = [[3, 0], [3, 0]]  # up and down merge to rank 4; right alone scores nothing
    found = make("2048/lookahead", of=Judge()).values(board)
    np.testing.assert_allclose(found, [np.log2(17) + 2, 1.5, np.log2(17) + 2, -np.inf])
    plain = make("2048/lookahead", of=Judge(), rewards=True).values(board)
    np.testing.assert_allclose(plain, [18, 1.5, 18, -np.inf])


def test_the_chance_of_a_tile_counts_no_points():
    player = {"player": "2048/optimal", "objective": 32}
    with pytest.raises(ValueError, match="no search counts the rewards that the values of"):
        make("2048/lookahead", of=player)
    board = [[2, 2, 0], [0, 0, 1]]
    assert make("2048/lookahead", of=player, rewards=False).values(board).max() > -np.inf
