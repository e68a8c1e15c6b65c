"""A player made symmetric plays alike on all images of a board, by the image that it values most."""

from itertools import combinations

import numpy as np
import pytest
from mergefall.game2048 import from_text, images, move
from mergefall_baselines import Player, make
from mergefall_baselines.player import NotFiniteError
from mergefall_baselines.registry import player_of

SEARCH = {"player": "2048/expectimax", "heuristic": "tile-order", "depth": 2}
RNG = np.random.default_rng(0)
BOARDS = RNG.permuted(np.tile(np.r_[np.zeros(5), 1, 1, 2, np.arange(2, 10)], (50, 1)), axis=1).reshape(-1, 4, 4)
STARTS = np.array([np.isin(range(16), cells) for cells in combinations(range(16), 2)])
BOARDS = np.concatenate([BOARDS, STARTS.reshape(-1, 4, 4)]).astype(np.uint8)  # start boards have equally good images


def played_alike(player):
    found, actions = images(BOARDS)
    values = player.values(BOARDS)
    return all(np.array_equal(player.values(found[:, i]), values[:, turned]) for i, turned in enumerate(actions))


@pytest.mark.parametrize("by", [None, {"player": "2048/greedy", "heuristic": "tile-order"}])
def test_images_of_a_board_are_played_alike(by):
    assert not played_alike(player_of(SEARCH))
    assert played_alike(make("2048/symmetric", of=SEARCH, by=by))


def test_it_plays_the_image_that_it_values_most():
    search, found = player_of(SEARCH), images(BOARDS)[0]
    best = np.stack([search.values(found[:, i]).max(axis=1) for i in range(8)]).max(axis=0)
    np.testing.assert_array_equal(make("2048/symmetric", of=SEARCH).values(BOARDS).max(axis=1), best)


class Judge(Player):
    """Values boards apart from moves: by the corner that is empty or holds a low tile."""

    name = "judge"

    def values(self, observation, state=None):
        return np.where(np.arange(4) == 1, 0.0, -1.0) + np.zeros((len(observation), 1))

    def board_values(self, observation):
        return -np.asarray(observation)[:, 0, 0].astype(float)


def test_a_search_over_it_counts_the_rewards_of_its_player():
    player = {"player": "2048/symmetric", "of": {"player": "2048/greedy", "heuristic": "tile-order"}}
    assert make("2048/lookahead", of=player).rewards is False
    assert make("2048/lookahead", of=player | {"of": "2048/ntuple"}).rewards is True


def test_values_that_are_no_numbers_are_named():
    class Broken(Judge):
        def values(self, observation, state=None):
            return np.full((len(observation), 4), np.nan)

    for players in ({"of": Broken()}, {"of": Judge(), "by": Broken()}):
        with pytest.raises(NotFiniteError, match="judge values action 0 at nan"):
            make("2048/symmetric", **players).values(BOARDS[:2])


@pytest.mark.parametrize("text", ["2 4 . ./. 8 8 ./16 . 2 2/. . 4 4", "2 4 4/. 8 ."])
def test_actions_on_an_image_are_moves_on_the_board(text):
    board = from_text(text)
    found, actions = images(board)
    shapes = {image.tobytes() for image in found}
    assert len(shapes) == len(found) == (8 if board.shape[0] == board.shape[1] else 4)
    np.testing.assert_array_equal(found[0], board)
    for i, turned in enumerate(actions):
        for action in range(4):
            after, score, legal = move(found[i], action)
            of_board = move(board, int(turned[action]))
            np.testing.assert_array_equal(after, images(of_board[0])[0][i])
            assert (score, legal) == of_board[1:]
