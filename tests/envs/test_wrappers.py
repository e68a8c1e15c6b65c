"""The wrappers of both games: what they show, and that each is the same batched, copied and made again."""

import gymnasium as gym
import numpy as np
import pytest
from mergefall.games import take
from mergefall.tetris import TetrisEnv, from_text
from mergefall.wrappers import encode, flat, observe_mask, planes, replace_illegal

from .tools import equal

G2048, TETRIS = "mergefall/Game2048-v0", "mergefall/Tetris-v0"
GAMES = [(G2048, {"rows": 2, "cols": 3}), (G2048, {"reward": "log2"})]
GAMES += [(TETRIS, {"cols": 4, "rows": 5, "preview": 0, "placements": "slide"})]
GAMES += [(TETRIS, {"cols": 5, "rows": 6, "placements": "reachable", "hold": True})]
GAMES += [(TETRIS, {"cols": 6, "rows": 8, "preview": 2, "pieces": "five"})]
each_game = pytest.mark.parametrize(("env_id", "kwargs"), GAMES)


def test_what_2048_shows():
    options = {"board": "2 . 8/4 2 ."}
    ranks = [1, 0, 3, 2, 1, 0]
    env = gym.make(G2048, rows=2, cols=3)
    seen = flat(env).reset(options=options)[0]
    assert seen.dtype == np.float32
    assert seen.reshape(6, 8).argmax(axis=1).tolist() == ranks
    assert seen.sum() == 6
    shown = planes(env).reset(options=options)[0]
    assert shown.shape == (8, 2, 3)
    assert shown.argmax(axis=0).ravel().tolist() == ranks
    assert shown.sum() == 6


def test_what_tetris_shows():
    options = {"board": "..../..../..../##..", "piece": "T", "queue": ["L"]}
    pieces = [0, 0, 1, 0, 0, 0, 0] + [0] * 6 + [1]
    seen, _ = flat(TetrisEnv(4, 4)).reset(options=options)
    assert seen.tolist() == [0] * 12 + [1, 1, 0, 0] + pieces
    board = from_text(options["board"])
    shown, _ = planes(TetrisEnv(4, 4)).reset(options=options)
    np.testing.assert_array_equal(shown[0], board)
    assert shown[1:].min(axis=(1, 2)).tolist() == shown[1:].max(axis=(1, 2)).tolist() == pieces


KEYS = "mergefall/TetrisKeys-v0"
SHOWN = [*GAMES, ("mergefall/Quintris-v0", {}), (KEYS, {"levels": True, "garbage": {"rows": 2}})]
SHOWN += [(KEYS, {"preview": 0, "hold": False, "rows": 6}), ("mergefall/TetrisVersus-v0", {"opponent": "keys/random"})]


@pytest.mark.parametrize("wrap", [flat, planes])
@pytest.mark.parametrize(("env_id", "kwargs"), SHOWN)
def test_an_encoded_observation_is_what_the_wrapper_shows(wrap, env_id, kwargs):
    """Single and batched, in play; all numbers lie from 0 to 1."""
    pieces = {"pieces": "five"} if env_id == "mergefall/Quintris-v0" or kwargs.get("pieces") == "five" else {}
    plain, shown = gym.make_vec(env_id, num_envs=3, **kwargs), wrap(gym.make_vec(env_id, num_envs=3, **kwargs))
    assert plain.reset(seed=2)[1].keys() == shown.reset(seed=2)[1].keys()
    for _ in range(60):
        actions = plain.action_masks().argmax(axis=1)
        observations, seen = (envs.step(actions)[0] for envs in (plain, shown))
        assert seen.min() == 0 < seen.max() <= 1
        np.testing.assert_array_equal(encode(wrap.__name__, observations, **pieces), seen)
        np.testing.assert_array_equal(encode(wrap.__name__, take(observations, 1), **pieces), seen[1])


OBSERVED, _ = gym.make(KEYS, preview=0, hold=False).reset(seed=0)
BOARD = OBSERVED["board"]


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        BOARD[0],
        np.full((4, 4), 58, np.uint8),
        OBSERVED | {"board": BOARD + np.uint8(2)},
        OBSERVED | {"hold": 8},
        {"board": BOARD},
        {"piece": 0},
    ],
)
def test_what_no_environment_observes_is_not_encoded(wrong):
    assert encode("flat", OBSERVED).any()
    with pytest.raises(ValueError, match="; expected"):
        encode("flat", wrong)


@each_game
def test_a_replaced_action_is_a_random_legal_one(env_id, kwargs):
    """Every action leads on, and legal ones are left alone."""
    env, plain = replace_illegal(gym.make(env_id, **kwargs)), gym.make(env_id, **kwargs)
    rng, replaced = np.random.default_rng(0), 0
    _, info = env.reset(seed=0)
    plain.reset(seed=0)
    for _ in range(150):
        mask, state = info["action_mask"], env.unwrapped.clone_state()
        action = int(rng.integers(len(mask)))
        returned = env.step(action)
        info = returned[-1]
        assert info.pop("replaced") == (not mask[action])
        expected = []
        for played in [action] if mask[action] else np.flatnonzero(mask):
            plain.unwrapped.restore_state(state)
            expected.append(plain.unwrapped.step(int(played)))
        assert any(equal(returned, one) for one in expected)
        replaced += not mask[action]
        if returned[2]:
            _, info = env.reset()
    assert replaced > 5


def test_replacements_are_uniform():
    """Of 3 legal actions each is drawn a third of the time: five standard errors of 6000 draws are 0.03."""
    start = {"board": "2 4 8 16/. . . ./. . . ./. . . 32"}
    envs = replace_illegal(gym.make_vec(G2048, num_envs=6000))
    envs.reset(seed=0, options=start)
    legal = envs.action_masks()[0]
    illegal = int(np.flatnonzero(~legal)[0])
    boards = envs.unwrapped.afterstates()[0][0]
    after, *_ = envs.step(np.full(6000, illegal))
    shares = [
        ((after == board) | ((board == 0) & (after > 0) & (after < 3))).all(axis=(1, 2)).mean()
        for board in boards[legal]
    ]
    assert sum(shares) == pytest.approx(1)
    np.testing.assert_allclose(shares, 1 / legal.sum(), atol=0.03)


def test_observed_masks_follow_a_restored_state():
    envs = observe_mask(gym.make_vec(G2048, num_envs=2))
    envs.reset(seed=0, options={"board": "2 4 8 16/. . . ./. . . ./. . . ."})
    state = envs.clone_state()
    envs.reset(seed=1)
    envs.restore_state(state)
    seen, _ = envs.reset(seed=2, options={"reset_mask": np.array([True, False])})
    assert seen["observation"][1, 0].tolist() == [1, 2, 3, 4]
    assert seen["action_mask"][1].tolist() == [0, 0, 1, 0]
