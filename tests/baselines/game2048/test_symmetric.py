"""A player made symmetric plays alike on all images of a board, by the image that it values most."""

import numpy as np
import pytest
from mergefall.game2048 import HEURISTICS, from_text, images, move
from mergefall_baselines import make, play_in_env

SEARCH = {"name": "2048/expectimax", "heuristic": "tile-order", "depth": 2}
RNG = np.random.default_rng(0)
BOARDS = RNG.permuted(np.tile(np.r_[np.zeros(5), 1, 1, 2, np.arange(2, 10)], (50, 1)), axis=1).reshape(-1, 4, 4)
BOARDS = BOARDS.astype(np.uint8)


@pytest.mark.parametrize("by", [None, {"name": "2048/greedy", "heuristic": "tile-order"}])
def test_images_of_a_board_are_played_alike(by):
    player = make("2048/symmetric", player=SEARCH, by=by)
    values = player.values(BOARDS)
    found, actions = images(BOARDS)
    for i, turned in enumerate(actions):
        np.testing.assert_array_equal(player.values(found[:, i]), values[:, turned])
    plain = make(**SEARCH).values(BOARDS)
    assert any((make(**SEARCH).values(found[:, i]) != plain[:, turned]).any() for i, turned in enumerate(actions))


def test_it_plays_the_image_that_it_values_most():
    search, found = make(**SEARCH), images(BOARDS)[0]
    best = np.stack([search.values(found[:, i]).max(axis=1) for i in range(8)]).max(axis=0)
    np.testing.assert_array_equal(make("2048/symmetric", player=SEARCH).values(BOARDS).max(axis=1), best)


@pytest.mark.parametrize("heuristic", ["nneonneo", "monotone-smooth", "prairie-fire"])
def test_a_symmetric_player_stays_what_it_is(heuristic):
    assert heuristic in HEURISTICS
    player = {"name": "2048/greedy", "heuristic": heuristic}
    found = make("2048/symmetric", player=player).values(BOARDS)
    np.testing.assert_allclose(found, make(**player).values(BOARDS), rtol=1e-6)


def test_boards_that_are_not_square():
    player, plain = make("2048/symmetric", player="2048/optimal"), make("2048/optimal")
    boards = np.array([[[1, 1, 0], [0, 0, 2]], [[2, 3, 4], [1, 0, 0]]])
    np.testing.assert_allclose(player.values(boards), plain.values(boards), rtol=1e-12)


def test_whole_games_and_searches_over_it():
    player = make("2048/symmetric", player={"name": "2048/greedy", "heuristic": "tile-order"})
    game = player.play("mergefall/Game2048-v0", 5, {"goal": 64})
    assert game.actions.tolist() == play_in_env(player, "mergefall/Game2048-v0", 5, {"goal": 64}).actions.tolist()
    assert make("2048/lookahead", player=player).rewards is False
    assert make("2048/lookahead", player={"name": "2048/symmetric", "player": "2048/ntuple"}).rewards is True


def test_bad_options_are_named():
    with pytest.raises(ValueError, match="no player '2048/none'"):
        make("2048/symmetric", player="2048/none")
    with pytest.raises(ValueError, match="plays another game"):
        make("2048/symmetric", player="2048/greedy", by="tetris/greedy")


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
