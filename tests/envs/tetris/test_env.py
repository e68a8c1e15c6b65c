"""The Tetris environments' own promises; `tests/envs/test_api.py` tests what holds for every id."""

import gymnasium as gym
import numpy as np
import pytest
from mergefall.tetris.env import TetrisEnv

from ..tools import equal


@pytest.mark.parametrize(("tall", "score"), [(1, 40), (2, 100), (3, 300), (4, 1200), (5, 1240)])
def test_scores_are_those_of_nintendos_tetris(tall, score):
    board = np.zeros((6, 4), np.uint8)
    board[6 - tall :, 1:] = 1
    env = TetrisEnv(4, 6, "five" if tall == 5 else "tetromino", reward="score")
    env.reset(seed=0, options={"board": board, "piece": "I5" if tall == 5 else "I"})
    _, reward, _, _, info = env.step(4)
    assert (reward, info["score"], info["lines"]) == (score, score, tall)


def test_cells_have_the_colours_of_the_pieces_that_left_them():
    env = TetrisEnv(4, 6, render_mode="ansi")
    env.reset(seed=0, options={"board": "..../..../..../..../..../..##", "piece": "O", "queue": ["I"]})
    canvas = env._canvas
    env.step(0)  # clears the lower row: the upper half of O comes down
    assert canvas.scene(env._states[0]).cells.tolist() == [[0] * 4] * 5 + [[3, 3, 0, 0]]
    env.step(4 + 2)  # I upright beside it
    assert canvas.scene(env._states[0]).cells[:, 2].tolist() == [0, 0, 2, 2, 2, 2]
    env.restore_state(env.clone_state())
    assert set(env._canvas.scene(env._states[0]).cells.ravel().tolist()) == {0, 1}
    text = env.render()
    assert text.splitlines()[0] == "lines 1  score 40  pieces 2"


@pytest.mark.parametrize("mode", ["ansi", "rgb_array"])
def test_a_finished_game_is_drawn(mode):
    """Its last piece rests above the field, where another one would rest above the picture."""
    env = gym.make("mergefall/Tetris-v0", cols=4, rows=4, render_mode=mode).unwrapped
    env.reset(seed=0, options={"board": "#.../#.../#.../#...", "piece": "I", "queue": ["I"]})
    assert env.step(4)[2]
    env.step(4)
    assert env.render() is not None


def test_a_game_that_is_over_stays_over():
    env = TetrisEnv(4, 4, placements="slide")
    env.reset(seed=0, options={"board": "#.../#.../#.../#..."})
    observation, reward, over, _, info = env.step(0)
    assert (reward, over) == (0.0, True)
    assert info["action_mask"].all()
    for action in range(env.action_space.n):
        again, reward, over, _, told = env.step(action)
        assert (reward, over, told["legal"]) == (0.0, True, False)
        assert equal(again, observation)
    boards, rewards, legal = env.afterstates()
    assert not legal.any()
    assert not rewards.any()
    assert (boards == observation["board"]).all()
