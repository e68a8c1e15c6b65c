"""The 2048 environments: arguments, starts, goals, rewards, and the batch against single environments."""

import multiprocessing
import os
import time

import gymnasium as gym
import numpy as np
import pytest
from mergefall.game2048 import Game2048Env, Game2048VectorEnv, draw, from_text, move, to_text
from mergefall.game2048 import board as core
from mergefall.game2048.batch import payment
from mergefall.game2048.rules import Rules
from mergefall.threads import share

from ..test_api import equal

NAME = "mergefall/Game2048-v0"
START = "2 2 4 ./. . . ./. . . ./. . . ."


def test_every_reward_is_described():
    count = len(Rules.choices("reward"))
    assert all(np.isfinite(payment(4, 3, 3, reward, False)) for reward in range(count))
    assert np.isnan(payment(4, 3, 3, count, False))  # not as one of the others


def test_log2_rewards():
    env = Game2048Env(reward="log2")
    env.reset(options={"board": START})
    boards, rewards, legal = env.afterstates()
    np.testing.assert_allclose(rewards, [0, np.log2(5), 0, np.log2(5)])
    assert legal.tolist() == [False, True, True, True]
    np.testing.assert_array_equal(boards[3], move(START, 3)[0])
    *_, info = (result := env.step(1))
    assert result[1] == pytest.approx(np.log2(5))
    assert info["score"] == 4
    for row in (9, 9, 8, 8, 5, 5), (3, 3, 1, 1, 0, 0):  # of 6×6, where NumPy's log2 may have another last bit
        env = Game2048Env(6, 6, reward="log2")
        env.reset(options={"board": [row] * 6})
        rewards, states = env.afterstates()[1], env.clone_state()
        for action in np.flatnonzero(rewards):
            env.restore_state(states)
            assert env.step(action)[1] == rewards[action]


@pytest.mark.parametrize(("goal", "last"), [(None, -1), (8, 0)])
def test_survival_pays_for_no_more_than_the_lost_game(goal, last):
    env, rewards, over = Game2048Env(2, 2, goal=goal, reward="survival"), [], False
    _, info = env.reset(seed=0)
    while not over:
        assert not env.afterstates()[1].any()
        _, reward, over, _, info = env.step(int(info["action_mask"].argmax()))
        rewards.append(reward)
    assert len(rewards) > 3
    assert rewards == [0] * (len(rewards) - 1) + [last]


def test_the_goal_ends_the_game():
    env = Game2048Env(goal=8)
    env.reset(options={"board": "4 4 . ./. . . ./. . . ./. . . ."})
    _, reward, terminated, _, info = env.step(3)
    assert (reward, terminated, info["max_tile"]) == (8.0, True, 8)
    assert info["action_mask"].tolist() == [1, 1, 1, 1]
    with pytest.raises(ValueError, match="reaches the goal 8"):
        env.reset(options={"board": "8 . . ./. . . ./. . . ./. . . ."})


def test_drawn_starts_come_from_the_pool():
    env = Game2048Env()
    pool = ["2 . . ./. . . ./. . . ./. . . .", "4 . . ./. . . ./. . . ./. . . ."]
    env.set_starts([{"board": text} for text in pool])
    drawn = [to_text(env.reset(seed=seed)[0]) for seed in range(200)]
    assert set(drawn) == set(pool)
    assert 60 < drawn.count(pool[0]) < 140
    assert to_text(env.reset(options={"board": START})[0]) == START
    env.set_starts(None)
    assert (env.reset(seed=0)[0] > 0).sum() == 2


@pytest.mark.parametrize(("rows", "cols"), [(4, 4), (3, 5)])
def test_all_threads_play_as_one(rows, cols):
    games = 2100
    one, four = (Game2048VectorEnv(games, rows, cols, threads=threads) for threads in (1, 4))
    assert (one.threads, four.threads) == (1, 4)
    assert equal(one.reset(seed=3), four.reset(seed=3))
    rng = np.random.default_rng(0)
    for _ in range(60):
        actions = rng.integers(0, 4, games)
        assert equal(one.step(actions), four.step(actions))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="fork is POSIX")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_threads_survive_a_fork():
    envs = Game2048VectorEnv(2100, threads=2)
    envs.reset(seed=3)
    envs.step(np.zeros(2100, int))
    state = envs.clone_state()
    with multiprocessing.get_context("fork").Pool(1) as pool:
        mine = envs.step(np.ones(2100, int))
        theirs = pool.apply_async(_stepped, [state]).get(timeout=600)
    assert equal(mine, theirs)


def _stepped(state):
    envs = Game2048VectorEnv(2100, threads=2)
    envs.restore_state(state)
    return envs.step(np.ones(2100, int))


def test_an_error_is_raised_when_every_thread_has_ended():
    ends, errors = [], []

    def work(piece):
        time.sleep(0.02 * piece)
        ends.append(piece)
        raise KeyError(piece)

    for _ in range(5):
        ends.clear()
        with pytest.raises(KeyError) as caught:
            share(work, range(3), threads=3)
        errors.append(caught.value)
        count = len(ends)
        time.sleep(0.1)
        assert len(ends) == count


def test_the_text_of_a_board_in_a_terminal():
    env = Game2048Env(2, 3, render_mode="ansi")
    env.reset(options={"board": "2 . 128/. . ."})
    lines = env.render().splitlines()
    assert lines[0] == "score 0"
    assert [text in lines[2] for text in (" 2 ", " · ", " 128 ", "\x1b[0m")] == [True] * 4


def test_pictures():
    plain, scored = draw(START), draw(from_text(START), score=123456)
    assert plain.shape == (460, 460, 3)
    assert scored.shape == (524, 460, 3)
    tiles = {draw([[rank, 0], [0, 0]])[12:112, 12:112].tobytes() for rank in range(1, 6)}
    assert len(tiles) == 5
    assert draw([range(1, 7), range(31, 37), *[[0] * 6] * 4], score=10**9).std() > 10


def test_drawing_names_the_missing_extra(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "pygame", None)
    with pytest.raises(gym.error.DependencyNotInstalled, match=r"pygame is not installed.*extra 'render'"):
        draw(START)


def test_the_order_of_a_seeds_draws_is_fixed():
    """Trajectories are part of v0: a change here needs a new version of the environment."""
    env = Game2048Env()
    board, _ = env.reset(seed=0)
    for action in [0, 1, 2, 3] * 8:
        board, *_, info = env.step(action)
    assert (to_text(board), info["score"]) == FIXED
    assert int(env.clone_state()[core.STREAM]) == STREAM


FIXED, STREAM = ("8 . . 2/2 4 . ./2 32 8 ./8 4 . .", 180), 16035913692475880328
