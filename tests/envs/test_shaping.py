"""Potential-based shaping: it telescopes, leaves the optimal policy, and is the same however it is asked for."""

import json
import re

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from mergefall.game2048 import HEURISTICS as OF_2048
from mergefall.game2048 import heuristic, legal_actions
from mergefall.games import board_of
from mergefall.shaping import CONSTANTS
from mergefall.tetris import HEURISTICS as OF_TETRIS
from mergefall_baselines import make

from .test_own_heuristics import compiled_differences, differences
from .tools import equal

GAME, TETRIS = "mergefall/Game2048-v0", "mergefall/Tetris-v0"
SMALL_TETRIS = {"cols": 6, "rows": 8}
GAMES = [(GAME, name, {}) for name in OF_2048] + [(TETRIS, name, SMALL_TETRIS) for name in OF_TETRIS]
GAMES += [(GAME, "tile-order", {"goal": 32}), (GAME, differences, {}), (TETRIS, compiled_differences, SMALL_TETRIS)]
each_potential = pytest.mark.parametrize(("env_id", "name", "kwargs"), GAMES)
OF_PLAYERS = [
    (GAME, {"name": "2048/ntuple"}, {}),
    (GAME, {"name": "2048/expectimax", "heuristic": "nneonneo", "depth": 1}, {"rows": 3, "cols": 3}),
    (TETRIS, "tetris/bcts", SMALL_TETRIS),
    (TETRIS, {"name": "tetris/two-tetrad"}, SMALL_TETRIS | {"placements": "slide", "preview": 2}),
]


def potential_of(name, boards, scale=None, squash=None, offset=None):
    """Φ of boards that do not end a game, by the formula, from the public heuristics."""
    boards = np.asarray(boards)
    if callable(name):
        return np.array([differences(board.astype(float)) for board in boards])
    h = OF_TETRIS[name].board if name in OF_TETRIS else OF_2048[name]
    h = heuristic({"name": name, "base": 0}) if name == "nneonneo" else h
    usual_squash, usual_scale, drop = CONSTANTS[name]
    if offset is None and name == "tile-order":
        offset = 0.0  # 30 for each empty cell, less 30 for each
    elif offset is None:
        offset = h(np.zeros(boards.shape[-2:], int)) - drop * boards[0].size
    bent = {"identity": np.positive, "asinh": np.arcsinh}[squash or usual_squash](h(boards) - offset)
    return (scale or usual_scale) * bent


def play(env, seed, illegal=0.2, only_illegal_after=10**9):
    """(observations, rewards, infos, whether it terminated) of an episode of random play, now and then illegal."""
    rng = np.random.default_rng(seed)
    observation, info = env.reset(seed=seed)
    observations, rewards, infos = [observation], [], [info]
    terminated = truncated = False
    while not (terminated or truncated):
        kind = int(rng.random() >= illegal and len(rewards) < only_illegal_after)
        actions = np.flatnonzero(info["action_mask"] == kind)
        actions = actions if len(actions) else np.arange(len(info["action_mask"]))
        observation, reward, terminated, truncated, info = env.step(rng.choice(actions))
        observations.append(observation)
        rewards.append(reward)
        infos.append(info)
    return observations, np.array(rewards), infos, terminated


def check_telescoping(env_id, kwargs, shaping, limits, values_of, close, **how):
    """Discounted, F adds up to γᵀΦ(s_T) − Φ(s₀); a terminal state has Φ = 0, and rewards are the plain ones besides."""
    gamma = shaping["gamma"]
    observations, rewards, infos, terminated = play(gym.make(env_id, shaping=shaping, **kwargs, **limits), 3, **how)
    same, plain, plain_infos, _ = play(gym.make(env_id, **kwargs, **limits), 3, **how)
    assert terminated == (not limits)
    assert equal(same, observations)
    values = values_of(observations)
    values[-1] *= not terminated
    paid = np.array([info.pop("shaping") for info in infos])
    assert equal(infos, plain_infos)
    assert paid[0] == 0
    np.testing.assert_allclose(paid[1:], gamma * values[1:] - values[:-1], rtol=close, atol=close)
    np.testing.assert_array_equal(rewards, plain + paid[1:])
    discounts = gamma ** np.arange(len(paid))
    total = discounts[-1] * values[-1] - values[0]
    np.testing.assert_allclose(paid[1:] @ discounts[:-1], total, rtol=close, atol=close)


@each_potential
@pytest.mark.parametrize("end", ["terminal", "steps", "illegal"])
@pytest.mark.parametrize("gamma", [0.9, 1])
def test_it_telescopes_over_an_episode(env_id, name, kwargs, end, gamma):
    limits = {"terminal": {}, "steps": {"max_episode_steps": 6}, "illegal": {"illegal_limit": 4}}[end]
    how = {"illegal": {"only_illegal_after": 4}}.get(end, {})
    shaping, close = {"potential": name, "gamma": gamma}, 1e-4 if name == "nneonneo" else 1e-9
    check_telescoping(
        env_id, kwargs, shaping, limits, lambda seen: potential_of(name, [*map(board_of, seen)]), close, **how
    )


def test_options_replace_the_table():
    for options in ({"scale": 3, "offset": 7.5}, {"squash": "asinh", "offset": 0}, {"scale": 0.01, "gamma": None}):
        boards, _, infos, _ = play(
            gym.make(GAME, rows=3, cols=3, shaping={"potential": "monotone-smooth", **options}), 1
        )
        values = potential_of("monotone-smooth", boards, **{k: v for k, v in options.items() if k != "gamma"})
        values[-1] = 0
        expected = 0.99 * values[1:] - values[:-1]
        np.testing.assert_allclose([info["shaping"] for info in infos[1:]], expected, atol=1e-12)


def test_boards_beyond_a_word():
    """A tile that no packed board holds: the value goes on in another kernel."""
    for name in OF_2048:
        env = gym.make(GAME, shaping={"potential": name, "gamma": 1}).unwrapped
        before, _ = env.reset(seed=0, options={"board": "32768 32768 4 2/16384 . 8 2/. . . ./. . . 2"})
        after, *_, info = env.step(3)
        assert after.max() == 16
        values = potential_of(name, [before, after])
        assert info["shaping"] == pytest.approx(values[1] - values[0], rel=1e-5)


@pytest.mark.parametrize(
    ("shaping", "message"),
    [
        ("bcts", "shaping is 'bcts'; expected a mapping"),
        ({"potential": "bcts", "discount": 1}, "shaping has no 'discount'; it has potential, gamma"),
        ({"potential": "low"}, "'low'; there are"),
        ({"potential": "?", "gamma": 0}, "gamma is 0; expected a finite number above 0 up to 1"),
        ({"potential": "?", "scale": 0}, "scale is 0; expected a finite number above 0"),
        ({"potential": "?", "squash": "tanh"}, "squash is 'tanh'; expected one of 'identity', 'asinh'"),
    ],
)
@pytest.mark.parametrize(("env_id", "name"), [(GAME, "prairie-fire"), (TETRIS, "dt-20")])
def test_bad_options_raise(env_id, name, shaping, message):
    shaping = json.loads(json.dumps(shaping).replace("?", name))
    for call in (gym.make, gym.make_vec):
        with pytest.raises(ValueError, match=message):
            call(env_id, shaping=shaping)


# -- players as potentials ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("env_id", "player", "kwargs"), OF_PLAYERS)
@pytest.mark.parametrize("end", [{}, {"max_episode_steps": 3}])
def test_a_players_values_telescope(env_id, player, kwargs, end):
    """Φ is the best of the player's own values; 0 in a terminal state, and kept where an episode is truncated."""
    judge = make(**({"name": player} if isinstance(player, str) else player)).with_rules(kwargs)

    def values_of(seen):
        best = np.array([judge.values(observation).max() for observation in seen])
        return 0.01 * (np.where(np.isfinite(best), best, 0) - 5.0)

    shaping = {"potential": {"player": player}, "gamma": 0.9, "scale": 0.01, "offset": 5.0}
    check_telescoping(env_id, kwargs, shaping, end, values_of, 1e-9, illegal=0)


@pytest.mark.parametrize(
    ("potential", "message"),
    [
        ({"player": "2048/nobody"}, "there is no player '2048/nobody'"),
        ({"player": 3}, "potential is"),
        ({"player": "tetris/bcts"}, "potential is 'tetris/bcts', which plays another game"),
        ({"player": "2048/rollout"}, "potential is '2048/rollout', which remembers"),
        ({"player": {"name": "2048/expectimax", "rows": 4}}, "was made for rows=4, but the environment has rows=3"),
        ("tile-order", "board of 3×3; tile-order is defined on 4×4 only"),
    ],
)
def test_what_cannot_be_a_potential_is_refused(potential, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        gym.make(GAME, rows=3, cols=3, shaping={"potential": potential})


def raises_where_a_game_is_over(cells):
    """A potential that is undefined where no move is legal."""
    legal = legal_actions(cells)
    assert legal.any()
    return float(legal.sum())


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_finished_games_are_not_valued(mode):
    """There Φ is 0, in a batch as alone, so a function need not be defined there."""
    shaping = {"potential": raises_where_a_game_is_over, "gamma": 1.0}
    envs = gym.make_vec(GAME, num_envs=4, rows=2, cols=2, autoreset_mode=mode.value, shaping=shaping)
    _, infos = envs.reset(seed=0)
    rng, ended = np.random.default_rng(0), np.zeros(4, bool)
    for _ in range(60):
        if mode is AutoresetMode.DISABLED and ended.any():
            _, infos = envs.reset(options={"reset_mask": ended})
        *_, terminated, truncated, infos = envs.step((infos["action_mask"] * rng.random((4, 4))).argmax(axis=1))
        ended = terminated | truncated
