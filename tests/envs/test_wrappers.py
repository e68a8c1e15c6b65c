"""Wrappers of both games: what they show and play, batches beside single environments, specs, pickles."""

import pickle

import gymnasium as gym
import mergefall  # noqa: F401
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import SyncVectorEnv
from mergefall import wrappers
from mergefall.game2048 import Game2048Env
from mergefall.tetris import HEURISTICS, TetrisEnv, from_text

from .tools import equal

G2048, TETRIS = "mergefall/Game2048-v0", "mergefall/Tetris-v0"
LINE = "..../..../..../##.."
VARIANTS = [
    (G2048, {}),
    (G2048, {"rows": 2, "cols": 3, "reward": "log2"}),
    (TETRIS, {"cols": 6, "rows": 8}),
    (TETRIS, {"cols": 5, "rows": 9, "preview": 0, "placements": "slide"}),
    (TETRIS, {"cols": 7, "rows": 8, "pieces": "five", "preview": 2}),
]
WRAPPERS = {
    "planes": wrappers.planes,
    "flat": wrappers.flat,
    "features": lambda env: wrappers.features(env, {"name": "dellacherie", "holes": -3}),
    "replace_illegal": wrappers.replace_illegal,
}
CASES = [(name, *variant) for name in WRAPPERS for variant in VARIANTS if name != "features" or variant[0] == TETRIS]
each_case = pytest.mark.parametrize(("name", "env_id", "kwargs"), CASES)


@each_case
def test_a_game_of_a_batch_is_a_single_game(name, env_id, kwargs):
    env, rng = WRAPPERS[name](gym.make(env_id, **kwargs)), np.random.default_rng(0)
    envs = WRAPPERS[name](gym.make_vec(env_id, num_envs=3, autoreset_mode="Disabled", **kwargs))
    assert envs.single_observation_space == env.observation_space
    observations, infos = envs.reset(seed=4)
    observation, info = env.reset(seed=5)
    for _ in range(6):
        assert observations in envs.observation_space
        assert equal(wrapped_row(observations, 1), observation)
        assert infos["action_mask"][1].tolist() == info["action_mask"].tolist()
        if name == "replace_illegal":
            assert infos["replaced"][1] == info["replaced"]
        action = int(rng.integers(env.action_space.n))
        observations, rewards, terminated, _, infos = envs.step([action] * 3)
        observation, reward, over, _, info = env.step(action)
        assert (rewards[1], terminated[1]) == (reward, over)
        if over or terminated.any():
            break


def wrapped_row(observations, i):
    return {key: part[i] for key, part in observations.items()} if isinstance(observations, dict) else observations[i]


@pytest.mark.filterwarnings("ignore:.*different from the unwrapped version")
@each_case
def test_gymnasiums_checker_passes(name, env_id, kwargs):
    env = WRAPPERS[name](gym.make(env_id, **kwargs))
    check_env(env, skip_render_check=True)
    assert env.reset(seed=0)[0] in env.observation_space


@each_case
def test_made_again_from_spec_and_pickle(name, env_id, kwargs):
    env = WRAPPERS[name](gym.make(env_id, **kwargs))
    again = [gym.make(EnvSpec.from_json(env.spec.to_json())), pickle.loads(pickle.dumps(env))]
    assert all(type(one) is type(env) for one in again)
    played = [one.reset(seed=1)[0] for one in (env, *again)]
    for _ in range(5):
        assert equal(played[0], played[1])
        assert equal(played[0], played[2])
        played = [one.step(0)[0] for one in (env, *again)]


def test_what_views_of_2048_say():
    board = np.array([[0, 1, 2], [7, 0, 3]])
    planes, _ = wrappers.planes(Game2048Env(2, 3)).reset(options={"board": board})
    assert planes.shape == (8, 2, 3)
    for rank in range(8):
        assert planes[rank].tolist() == (board == rank).tolist()
    flat, _ = wrappers.flat(Game2048Env(2, 3)).reset(options={"board": board})
    assert np.flatnonzero(flat).tolist() == [8 * cell + rank for cell, rank in enumerate(board.ravel())]


def test_what_views_of_tetris_say():
    options = {"board": LINE, "piece": "T", "queue": ["L"]}
    pieces = [0, 0, 1, 0, 0, 0, 0] + [0] * 6 + [1]
    flat, _ = wrappers.flat(TetrisEnv(4, 4)).reset(options=options)
    assert flat.tolist() == [0] * 12 + [1, 1, 0, 0] + pieces
    features, _ = wrappers.features(TetrisEnv(4, 4), "open-enclosed").reset(options=options)
    assert features.tolist() == [*HEURISTICS["open-enclosed"].board_terms(from_text(LINE)).values(), *pieces]
    planes, _ = wrappers.planes(TetrisEnv(4, 4)).reset(options=options)
    np.testing.assert_array_equal(planes[0], from_text(LINE))
    assert planes[1:].min(axis=(1, 2)).tolist() == planes[1:].max(axis=(1, 2)).tolist() == pieces


@pytest.mark.parametrize(("env_id", "kwargs"), [(G2048, {"rows": 2, "cols": 2}), (TETRIS, {"cols": 4, "rows": 4})])
def test_final_observations_are_viewed_too(env_id, kwargs):
    envs = wrappers.flat(gym.make_vec(env_id, num_envs=2, autoreset_mode="SameStep", **kwargs))
    _, infos = envs.reset(seed=0)
    while "final_obs" not in infos:
        *_, infos = envs.step(infos["action_mask"].argmax(axis=1))
    for final in infos["final_obs"][infos["_final_obs"]]:
        assert final in envs.single_observation_space


@pytest.mark.parametrize(("env_id", "kwargs"), VARIANTS)
def test_no_illegal_action_is_played(env_id, kwargs):
    """An action that no position allows for long is replaced by all legal ones; a legal one stays."""
    env, rng = wrappers.replace_illegal(gym.make(env_id, **kwargs)), np.random.default_rng(1)
    _, info = env.reset(seed=3)
    replaced = 0
    for _ in range(200):
        mask, action = info["action_mask"], int(rng.integers(env.action_space.n))
        before = env.unwrapped.clone_state()
        _, _, terminated, truncated, info = env.step(action)
        assert info["replaced"] == (not mask[action])
        assert not np.array_equal(before, env.unwrapped.clone_state())
        replaced += info["replaced"]
        if terminated or truncated:
            _, info = env.reset()
    assert replaced > 0


def test_replacements_are_random_and_follow_the_seed():
    env = wrappers.replace_illegal(Game2048Env())
    options = {"board": ". . . ./. . . ./2 . . ./4 8 16 32"}

    def played(seed):
        env.reset(seed=seed, options=options)
        return env.step(2)[0].tolist()  # down is illegal; up and right are not

    outcomes = [played(seed) for seed in range(20)]
    assert outcomes == [played(seed) for seed in range(20)]
    assert {tuple(map(bool, outcome[0])) for outcome in outcomes} > {(True, True, True, True)}  # after up, and others


@pytest.mark.parametrize("name", list(WRAPPERS))
def test_what_cannot_be_wrapped_is_named(name):
    with pytest.raises(ValueError, match=r"env is SyncVectorEnv\(.*expected "):
        WRAPPERS[name](SyncVectorEnv([TetrisEnv]))


def test_features_are_of_tetris():
    with pytest.raises(ValueError, match=r"env is <.*Game2048Env.*expected a Tetris environment"):
        wrappers.features(gym.make(G2048), "bcts")
