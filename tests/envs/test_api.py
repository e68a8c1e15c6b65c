"""What every registered id promises: one test each over all of them."""

import copy
import json
import pickle
import subprocess
import sys

import gymnasium as gym
import mergefall
import numpy as np
import pygame
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from mergefall.games import ENVIRONMENTS
from mergefall.wrappers import flat, observe_mask, planes, replace_illegal

from .tools import arrays, equal, play

IDS = list(ENVIRONMENTS)
KEYS, VERSUS = "mergefall/TetrisKeys-v0", "mergefall/TetrisVersus-v0"  # where no action is illegal
TURNS = [name for name in IDS if name not in (KEYS, VERSUS)]
CUT = {"illegal_limit": 3, "max_episode_steps": 20}
each_id = pytest.mark.parametrize("name", IDS)


def test_the_games_are_there_after_import_of_the_package():
    code = "import sys, mergefall; assert 'mergefall.tetris' not in sys.modules; print(mergefall.tetris.place)"
    assert "function place" in subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
    with pytest.raises(AttributeError, match="module 'mergefall' has no attribute 'chess'"):
        mergefall.chess  # noqa: B018


VARIANTS = [(name, {}) for name in IDS] + [
    (IDS[0], {"rows": 2, "cols": 3, "goal": 16, "reward": "goal", "illegal_limit": 2}),
    (IDS[0], {"rows": 5, "cols": 6, "reward": "log2", "illegal_limit": 2, "max_episode_steps": 20}),
    (IDS[1], {"placements": "slide", "cols": 6, "rows": 8, "preview": 3, "illegal_limit": 2}),
    (IDS[1], {"preview": 0, "overflow": "clear_first", "reward": "score", "cols": 4, "rows": 6}),
    (IDS[1], {"pieces": "sz", "randomizer": "bag7", "preview": 8, "cols": 16, "rows": 5, "max_episode_steps": 20}),
    (IDS[1], {"placements": "reachable", "cols": 6, "rows": 7, "illegal_limit": 2}),
    (IDS[1], {"placements": "reachable", "hold": True, "randomizer": "bag7", "preview": 3, "cols": 5, "rows": 6}),
    (IDS[1], {"hold": True, "randomizer": "hidden", "cols": 6, "rows": 7, "illegal_limit": 2}),
    (IDS[3], {"placements": "slide", "cols": 7, "rows": 9, "illegal_limit": 3, "max_episode_steps": 20}),
    (KEYS, {"cols": 5, "rows": 6, "preview": 0, "hold": False, "gravity": 2, "reward": "score", "levels": True}),
    (KEYS, {"pieces": "sz", "rotate_180": True, "garbage": {"rows": 0.7, "holes": 2}, "reward": "attack", "rows": 7}),
    (IDS[0], {"shaping": {"potential": "nneonneo"}}),
    (IDS[0], {"shaping": {"potential": {"player": {"name": "2048/expectimax", "depth": 1}}}, **CUT}),
    (IDS[1], {"shaping": {"potential": {"name": "bcts", "holes": -20}, "gamma": 0.9, "squash": "asinh"}, "rows": 8}),
    (IDS[1], {"shaping": {"potential": {"player": {"name": "tetris/two-tetrad"}}}, "preview": 2, "rows": 6, **CUT}),
    (IDS[3], {"shaping": {"potential": "dellacherie"}, "rows": 8, "illegal_limit": 2}),
    (KEYS, {"shaping": {"potential": "bcts"}, "rows": 8, "garbage": {"rows": 0.5}}),
    (
        VERSUS,
        {"shaping": {"potential": "bcts"}, "opponent": {"player": "tetris/keys", "of": "tetris/random"}, "rows": 8},
    ),
]
WRAPS = [flat, planes, replace_illegal, lambda env: observe_mask(flat(env), mask="legal")]
WRAPS.append(lambda env: flat(replace_illegal(env)))
GAMES = [(IDS[0], CUT), *VARIANTS[len(IDS) :]]
CASES = [(lambda env: env, *one) for one in VARIANTS]
CASES += [(wrap, *GAMES[(i + more) % 9]) for i, wrap in enumerate(WRAPS) for more in (0, 4)]
each_case = pytest.mark.parametrize(("wrap", "name", "kwargs"), CASES)


@pytest.mark.filterwarnings("ignore:.*different from the unwrapped version")
@each_case
def test_gymnasiums_checker(wrap, name, kwargs):
    """Warnings are errors throughout the tests."""
    check_env(wrap(gym.make(name, **kwargs).unwrapped))


@each_case
def test_the_same_seed_is_the_same_game_also_by_a_spec_from_json(wrap, name, kwargs):
    env = wrap(gym.make(name, **kwargs))
    again = gym.make(EnvSpec.from_json(json.loads(json.dumps(env.spec.to_json()))))
    assert again.spec == env.spec
    first = play(env, 3, 60)
    assert equal(first, play(again, 3, 60))
    assert equal(first, play(env, 3, 60))
    assert not equal(first, play(env, 2**40, 60))


@pytest.mark.parametrize(("name", "kwargs"), [one for one in VARIANTS if one[0] in TURNS and "shaping" not in one[1]])
def test_the_mask_marks_the_actions_that_change_the_state(name, kwargs):
    env = gym.make(name, **kwargs)
    base = env.unwrapped
    rng = np.random.default_rng(0)
    observation, info = env.reset(seed=0)
    for _ in range(40):
        mask, state = info["action_mask"], base.clone_state()
        assert mask.dtype == np.int8
        np.testing.assert_array_equal(base.action_masks(), mask == 1)
        assert base.action_masks().dtype == np.bool_
        boards, rewards, legal = base.afterstates()
        fatal = base.fatal_actions() if name != IDS[0] else mask
        for action in range(len(mask)):
            after, reward, terminated, truncated, told = base.step(action)
            assert told["legal"] == bool(mask[action]) == legal[action]
            assert reward == rewards[action]
            if name != IDS[0]:
                assert equal(after["board"], boards[action])
                assert fatal[action] == terminated
            if not mask[action]:
                assert equal(after, observation)
                assert (reward, terminated, truncated) == (0.0, False, False)
            base.restore_state(state)
        observation, _, terminated, truncated, info = env.step(rng.choice(np.flatnonzero(mask)))
        assert info["action_mask"].all() or not terminated
        if terminated or truncated:
            observation, info = env.reset()


@pytest.mark.parametrize("name", TURNS)
def test_illegal_actions_touch_nothing_and_truncate(name):
    env = gym.make(name, illegal_limit=5)
    base = env.unwrapped
    for seed in range(30):
        _, info = env.reset(seed=seed)
        illegal = np.flatnonzero(info["action_mask"] == 0)
        if len(illegal):
            break
    legal = np.flatnonzero(info["action_mask"])[0]
    state = base.clone_state()
    expected = base.step(legal)
    base.restore_state(state)
    for i in range(1, 5):
        assert env.step(illegal[0])[1:4] == (0.0, False, False), i
    assert equal(env.step(legal), expected)  # the stream has not moved
    base.restore_state(state)
    truncations = [env.step(illegal[0])[3] for _ in range(6)]
    assert truncations == [False] * 4 + [True] * 2
    env.reset(seed=seed)
    assert not env.step(illegal[0])[3]


@each_case
@pytest.mark.parametrize("copied", [lambda env: pickle.loads(pickle.dumps(env)), copy.deepcopy])
def test_pickles_and_deep_copies_play_on_alike(wrap, name, kwargs, copied):
    envs = wrap(gym.make(name, **kwargs)), wrap(gym.make_vec(name, num_envs=3, **kwargs))
    for env in envs:
        env.reset(seed=6)
        env.action_space.seed(1)
        env.step(env.action_space.sample())
        other = copied(env)
        for _ in range(100):
            action = env.action_space.sample()
            assert equal(env.step(action), other.step(action))


@each_id
@pytest.mark.parametrize("batched", [False, True])
def test_no_array_is_shared(name, batched):
    env = gym.make_vec(name, num_envs=3, autoreset_mode="SameStep") if batched else gym.make(name)
    base = env.unwrapped
    own = arrays(list(vars(base).values()))
    seen = []
    returned = env.reset(seed=0)
    for _ in range(60):
        new = arrays([returned, base.action_masks(), base.clone_state(), base.afterstates()])
        for array in new:
            assert array.flags.writeable
            assert not any(np.shares_memory(array, other) for other in own + seen)
        seen = new
        returned = env.step(env.action_space.sample())
        if not batched and returned[2]:
            returned = env.reset()


@each_id
def test_bad_actions_raise_and_leave_the_game(name):
    env = gym.make(name)
    env.reset(seed=0)
    state = env.unwrapped.clone_state()
    for action in (-1, int(env.action_space.n), 1.0, "0", None, [0]):
        with pytest.raises(ValueError, match="action is"):
            env.unwrapped.step(action)
    np.testing.assert_array_equal(env.unwrapped.clone_state(), state)
    for action in (np.int8(0), np.uint64(1), np.array(2)):
        env.step(action)


@each_case
@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_batched_is_single(wrap, name, kwargs, mode):
    """The native batch returns what Gymnasium's batch of single environments returns, types and infos included."""
    n = 5
    native = wrap(gym.make_vec(name, num_envs=n, autoreset_mode=mode.value, **kwargs))
    sync = SyncVectorEnv([lambda: wrap(gym.make(name, **kwargs))] * n, autoreset_mode=mode)
    modes = {"render_modes": native.metadata["render_modes"]}  # a batch shows no windows
    assert native.metadata == {**sync.metadata, **modes}
    for attribute in ("observation_space", "action_space", "single_observation_space", "single_action_space"):
        assert getattr(native, attribute) == getattr(sync, attribute)
    rng, ended, board = np.random.default_rng(2), 0, np.zeros(native.unwrapped.afterstates()[0].shape[2:], int)
    board[-1, 1:3] = 1
    pool = [{"board": board}, {}, {"board": None}]
    native.unwrapped.set_starts(pool)
    sync.call("set_starts", pool)
    assert equal(native.reset(seed=11), sync.reset(seed=11))
    assert native.unwrapped.np_random_seed == sync.np_random_seed
    for _ in range(300):
        masks = np.stack(sync.call("action_masks"))
        random = rng.integers(0, masks.shape[1], n)
        actions = np.where(rng.random(n) < 0.2, random, (masks * rng.random(masks.shape)).argmax(axis=1))
        mine, theirs = native.step(actions), sync.step(actions)
        assert equal(mine, theirs)
        over = theirs[2] | theirs[3]
        ended += over.sum()
        if mode is AutoresetMode.DISABLED and over.any():
            with pytest.raises(gym.error.ResetNeeded):
                native.step(actions)
            seeds = [None, 5, None, 6, 7] if rng.random() < 0.5 else None
            resets = [envs.reset(seed=seeds, options={"reset_mask": over.copy()}) for envs in (native, sync)]
            assert equal(*resets)
    assert ended > 3
    options, seeds = {"board": board}, [4, None, 0, 8, None]
    assert equal(native.reset(seed=seeds, options=options), sync.reset(seed=seeds, options=options))
    for mine, theirs in zip(native.unwrapped.afterstates(), zip(*sync.call("afterstates"), strict=True), strict=True):
        assert equal(mine, np.stack(theirs))
    if hasattr(native.unwrapped, "fatal_actions"):
        assert equal(native.unwrapped.fatal_actions(), np.stack(sync.call("fatal_actions")))


@each_id
@pytest.mark.parametrize("mode", ["ansi", "rgb_array"])
def test_rendering(name, mode):
    env = gym.make(name, render_mode=mode)
    envs = gym.make_vec(name, num_envs=2, render_mode=mode)
    _, info = env.reset(seed=0)
    envs.reset(seed=0)
    for _ in range(5):
        action = int(info["action_mask"].argmax())
        _, _, _, _, info = env.step(action)
        envs.step([action, action])
    picture, pictures = env.render(), envs.render()
    assert equal(pictures[0], picture)
    assert len(pictures) == 2
    if mode == "rgb_array":
        assert picture.dtype == np.uint8
        assert picture.ndim == 3
        assert picture.std() > 10
    env.close()
    env.close()
    envs.close()


@each_id
def test_a_window_for_human(name, monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    env = gym.make(name, render_mode="human")
    env.reset(seed=0)
    assert pygame.display.get_init()
    env.step(0)
    assert env.render() is None
    pickle.loads(pickle.dumps(env.unwrapped)).step(1)
    env.close()
    assert not pygame.display.get_init()


def test_the_keys_of_2048_for_play_by_hand():
    keys = gym.make(IDS[0]).unwrapped.get_keys_to_action()
    for arrow, action in zip((pygame.K_UP, pygame.K_RIGHT, pygame.K_DOWN, pygame.K_LEFT), range(4), strict=True):
        assert keys[(arrow,)] == action
