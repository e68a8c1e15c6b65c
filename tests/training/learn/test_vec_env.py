"""The native batches behind Stable-Baselines3's `VecEnv`: as its `DummyVecEnv` of single environments."""

import sys
from importlib import import_module

import gymnasium as gym
import mergefall  # noqa: F401
import numpy as np
import pytest
from gymnasium.error import DependencyNotInstalled
from gymnasium.vector import AutoresetMode
from mergefall_baselines import make
from mergefall_training.learn.sb3.vec_env import NativeVecEnv, make_vec_env
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.evaluation import evaluate_policy as masked_evaluate_policy
from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

GAMES = [  # id, arguments, cap, and whether episodes are cut off, or end, or both
    ("mergefall/Game2048-v0", {"rows": 2, "cols": 2, "illegal_limit": 2}, None, {True, False}),
    ("mergefall/Game2048-v0", {"rows": 2, "cols": 3, "reward": "log2"}, 8, {True}),
    ("mergefall/Tetris-v0", {"cols": 5, "rows": 5, "preview": 2}, None, {False}),
    ("mergefall/Tetris-v0", {"cols": 6, "rows": 10, "preview": 0}, 5, {True, False}),
    ("mergefall/Quintris-v0", {"cols": 8, "rows": 6, "illegal_limit": 1}, None, {True, False}),
]


def equal(one, other):
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(equal(one[key], other[key]) for key in one)
    return np.asarray(one).dtype == np.asarray(other).dtype and np.array_equal(one, other)


@pytest.mark.parametrize(("env_id", "kwargs", "cap", "ends"), GAMES)
def test_as_single_environments(env_id, kwargs, cap, ends):
    native = make_vec_env(env_id, 3, env_kwargs=kwargs, max_episode_steps=cap)
    single = DummyVecEnv([lambda: gym.make(env_id, max_episode_steps=cap, **kwargs)] * 3)
    assert native.seed(7) == single.seed(7)
    assert native.observation_space == single.observation_space
    assert equal(native.reset(), single.reset())
    rng, ended = np.random.default_rng(0), set()
    for _ in range(80):
        masks = get_action_masks(native)
        np.testing.assert_array_equal(masks, get_action_masks(single))
        wanted = np.where(rng.random((3, 1)) < 0.2, ~masks, masks)  # illegal actions cut games off
        actions = np.argmax(wanted * rng.random(masks.shape), axis=1)
        found, expected = native.step(actions), single.step(actions)
        assert equal(found[0], expected[0])
        assert equal(found[1], expected[1])
        assert equal(found[2], expected[2])
        for done, mine, theirs in zip(found[2], found[3], expected[3], strict=True):
            episode = mine.pop("episode", None)
            assert equal(mine, theirs)
            assert (episode is not None) == done
            if done:
                ended.add(mine["TimeLimit.truncated"])
    assert ended == ends


def test_masks_are_one_array():
    envs = make_vec_env("mergefall/Game2048-v0", 4, seed=0)
    envs.reset()
    assert is_masking_supported(envs)
    assert is_masking_supported(VecNormalize(envs))
    masks = envs.env_method("action_masks")
    assert masks.shape == (4, 4)
    np.testing.assert_array_equal(envs.env_method("action_masks", indices=[2, 0]), masks[[2, 0]])
    assert not envs.has_attr("no_such_thing")


def test_returns_are_logged_without_a_monitor():
    envs = make_vec_env("mergefall/Game2048-v0", 8, 0, {"rows": 2, "cols": 2})
    model = MaskablePPO("MlpPolicy", envs, n_steps=32, batch_size=256, seed=0).learn(256)
    assert model.ep_info_buffer
    assert model.ep_info_buffer[0].keys() == {"r", "l", "t"}


@pytest.mark.parametrize(
    ("name", "kwargs"), [("2048/greedy", {"rows": 2, "cols": 3}), ("tetris/dellacherie", {"cols": 5, "rows": 5})]
)
def test_search_players_play_in_the_masked_evaluate_policy(name, kwargs):
    env_id = "mergefall/Game2048-v0" if name.startswith("2048") else "mergefall/Tetris-v0"
    player, envs = make(name).with_rules(kwargs), make_vec_env(env_id, 2, 3, kwargs, max_episode_steps=40)
    found = masked_evaluate_policy(player, envs, 4, return_episode_rewards=True)
    envs.seed(3)
    assert found == evaluate_policy(player, envs, 4, return_episode_rewards=True)


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ValueError, match="autoreset_mode"):
        NativeVecEnv(gym.make_vec("mergefall/Game2048-v0", 2, autoreset_mode=AutoresetMode.NEXT_STEP))
    envs = make_vec_env("mergefall/Game2048-v0", 2)
    with pytest.raises(ValueError, match="indices=0"):
        envs.set_attr("render_mode", None, indices=0)
    envs.set_options([{}, {"board": [[1, 1, 0, 0]] + [[0] * 4] * 3}])
    with pytest.raises(ValueError, match="options differ"):
        envs.reset()
    envs.set_options({"board": [[1, 1, 0, 0]] + [[0] * 4] * 3})
    assert (envs.reset()[:, 0, :2] == 1).all()
    assert (envs.reset() > 0).sum() == 4


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "stable_baselines3", None)  # importing it fails
    monkeypatch.delitem(sys.modules, "mergefall_training.learn.sb3")
    with pytest.raises(DependencyNotInstalled, match=r"stable_baselines3 is not installed.*extra 'train'"):
        import_module("mergefall_training.learn.sb3")
