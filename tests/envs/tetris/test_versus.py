"""Matches of Tetris by keys: the plain rules of both sides, the same match for PettingZoo, and its own checks."""

import gymnasium as gym
import numpy as np
import pytest
from mergefall.tetris import game as words
from mergefall.tetris.keys import KEYS, match
from mergefall.tetris.versus.rules import Rules
from mergefall.words import stream_from_seed
from mergefall_baselines import make

from ..tools import equal
from .test_keys import CHANCES, reference_of, words_of

ID = "mergefall/TetrisVersus-v0"
AGENTS = ("player_0", "player_1")


def parallel_env(**kwargs):
    pytest.importorskip("pettingzoo")
    from mergefall.tetris.versus.parallel import parallel_env

    return parallel_env(**kwargs)


@pytest.mark.parametrize("seed", range(12))
def test_a_match_is_two_games_that_send_each_other_garbage(seed):
    rules = Rules(cols=4, rows=16, gravity=0.4, garbage={"rows": 0, "moves": 0.5})
    state = rules.new_states(1)[0]
    state[words.STREAM] = stream_from_seed(seed)
    match.begin(state, rules.pool(None), True)
    (own, other), streams = zip(*(reference_of(seed, rules, chair=chair) for chair in range(2)), strict=True)
    assert own.queue == other.queue
    rng, sent = np.random.default_rng(seed), 0
    field = (1 << 20) - 1
    for _ in range(2000):
        keys = [KEYS[key] for key in rng.choice(9, 2, p=CHANCES)]
        before = own.sent, other.sent
        own.step(keys[0])
        other.step(keys[1])
        own.pending += other.sent - before[1]
        other.pending += own.sent - before[0]
        sent += other.sent - before[1]
        state[state.size // 2 + words.OPPONENTS_KEY] = KEYS.index(keys[1])
        _, over, *_ = match.step(*match.sides(state), KEYS.index(keys[0]))
        for half, game, stream in zip(match.sides(state), (own, other), streams, strict=True):
            assert half[words.STREAM] == stream.state
            assert half[words.PENDING] == game.pending
            assert half[words.ATTACK] == game.attack
            assert (half[words.COLUMNS :] & np.uint64(field)).tolist() == words_of(game)
        assert over == (own.over or other.over)
        assert (
            match.won(*match.sides(state))
            == other.over - own.over
            == -match.won(*match.sides(rules.turned(state[None])[0]))
        )
        if over:
            break
    assert over


def test_the_parallel_match_is_that_of_the_environment():
    player, answers = make("tetris/keys", of="tetris/bcts"), []

    def opponent(observation):
        answers.append(int(player.act(observation)))
        return answers[-1]

    env, parallel = gym.make(ID, opponent=opponent, reward="attack"), parallel_env(reward="attack")
    seen, info = env.reset(seed=4)
    observations, infos = parallel.reset(seed=4)
    rng = np.random.default_rng(0)
    for _ in range(400):
        assert equal(dict(observations["player_0"]), seen)
        np.testing.assert_array_equal(observations["player_1"]["board"], seen["opponent"])
        assert {name: info[name] for name in ("lines", "pieces", "attack", "won")}.items() <= infos["player_0"].items()
        key = int(rng.choice(np.flatnonzero(info["action_mask"])))
        seen, reward, over, _, info = env.step(key)
        observations, rewards, overs, _, infos = parallel.step(dict(zip(AGENTS, (key, answers[-1]), strict=True)))
        assert (rewards["player_0"], overs["player_1"]) == (reward, over)
        if over:
            break
    assert over
    assert parallel.agents == []
    assert infos["player_1"]["won"] == -info["won"]


@pytest.mark.filterwarnings("ignore:The old environment creation API:DeprecationWarning")
def test_pettingzoos_checks():
    pytest.importorskip("pettingzoo")
    from mergefall.tetris.versus import parallel
    from pettingzoo.test import max_cycles_test, parallel_api_test, parallel_seed_test

    max_cycles_test(parallel)
    parallel_api_test(parallel_env(max_cycles=300), num_cycles=1000)
    parallel_seed_test(parallel_env)


def test_errors_name_the_value():
    for opponent, message in [
        ("2048/greedy", "opponent is '2048/greedy', which plays another game"),
        ({"player": "tetris/keys", "gravity": 3.0}, "gravity=3.0, but the environment has gravity=0.02"),
        (3, "opponent is 3"),
    ]:
        with pytest.raises(ValueError, match=message):
            gym.make(ID, opponent=opponent)
    match = parallel_env()
    for wrong, message in [
        (lambda: match.observation_space("player_2"), "agent is 'player_2'; expected one of 'player_0', 'player_1'"),
        (lambda: match.reset(options=[3]), r"reset options are \[3\]; expected options by agent"),
        (lambda: match.reset(options={"player_2": {"piece": "T"}}), "a match has no 'player_2'; it has player_0"),
        (lambda: match.reset(options={"player_1": 3}), "reset options are 3; expected a mapping"),
    ]:
        with pytest.raises(ValueError, match=message):
            wrong()
    with pytest.raises(ValueError, match="the match has not begun or is over; call reset"):
        match.step({"player_0": 0, "player_1": 0})
    match.reset()
    for actions in ([0, 0], {"player_0": 0}, {"player_0": 0, "player_1": 0, "player_2": 0}):
        with pytest.raises(ValueError, match=r"actions are .*; expected one of each agent"):
            match.step(actions)
    with pytest.raises(ValueError, match="render_mode is 'film'"):
        parallel_env(render_mode="film")


@pytest.mark.parametrize("key", [-1, 8, 10**11])
def test_a_key_that_is_none_of_the_game_is_refused(key):
    env = gym.make(ID, opponent=lambda observation: key)
    env.reset(seed=0)
    with pytest.raises(ValueError, match=rf"the opponent: action is .*{key}.*; expected an integer from 0 to 7"):
        env.step(0)


class Counting:
    """A policy that counts its decisions of each match, and notes how it was asked."""

    def __init__(self):
        self.asked = []

    def predict(self, observation, state=None, episode_start=None, deterministic=False, action_masks=None):
        count = np.zeros(len(episode_start), np.int64) if state is None else np.where(episode_start, 0, state)
        self.asked.append((count.tolist(), episode_start.tolist(), deterministic, action_masks.copy()))
        return 7 * action_masks[:, 7], count + 1  # it holds where it may


def test_an_opponent_is_asked_as_in_evaluation_and_forgets_the_last_match():
    single, batched = Counting(), Counting()
    env, envs = gym.make(ID, opponent=single), gym.make_vec(ID, num_envs=2, opponent=batched)
    for count in (3, 2):
        env.reset(seed=0)
        for _ in range(count):
            env.step(0)
    envs.reset(seed=0)
    for mask in ([True, False], [False, True]):
        envs.step([0, 0])
        envs.reset(seed=[0, 1], options={"reset_mask": np.array(mask)})
    envs.step([0, 0])
    for policy, counts in (single, [[0], [1], [2], [0], [1]]), (batched, [[0, 0], [0, 1], [1, 0]]):
        for (count, fresh, deterministic, masks), expected in zip(policy.asked, counts, strict=True):
            assert (count, fresh, deterministic) == (expected, [k == 0 for k in expected], True)
            assert masks[:, 7].tolist() == fresh  # a piece is held once


def test_afterstates_assume_that_the_opponent_waits():
    keys = iter([KEYS.index("hard drop"), KEYS.index("hard drop"), KEYS.index("wait")])
    env = gym.make(ID, opponent=lambda observation: next(keys), gravity=0, rows=4, cols=4).unwrapped
    env.reset(seed=0)
    for _ in range(2):
        env.step(KEYS.index("wait"))
    rewards = env.afterstates()[1]
    assert rewards[KEYS.index("wait")] == 0 == env.step(KEYS.index("wait"))[1]
