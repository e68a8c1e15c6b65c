"""Search players in environments: what they do where chance would have done it."""

import json
from functools import partial

import gymnasium as gym
import mergefall  # noqa: F401
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from mergefall.chance import STREAM, forced
from mergefall.game2048 import board as board2048
from mergefall.game2048.rules import Rules as Rules2048
from mergefall.tetris import game as tetris
from mergefall.words import next_bits, stream_before
from mergefall_baselines import make
from mergefall_training.wrappers import adversary, wrapped

from ...envs.tools import equal, play

G2048, TETRIS = "mergefall/Game2048-v0", "mergefall/Tetris-v0"
GREEDY = {"name": "2048/greedy", "heuristic": "monotone-smooth"}
TWO = {"name": "tetris/two-tetrad", "heuristic": "bcts"}
SMALL = {"cols": 5, "rows": 5, "illegal_limit": 3}
GAMES = [(G2048, {"rows": 3, "cols": 3, "illegal_limit": 3}, GREEDY), (TETRIS, SMALL, TWO)]
MODES = ["NextStep", "SameStep", "Disabled"]


def random_actions(masks, generator, illegal=0.2):
    """An action for each row of masks, legal but for now and then."""
    masks = np.where(generator.random((len(masks), 1)) < illegal, 1, masks)
    return np.array([generator.choice(np.flatnonzero(mask)) for mask in masks])


def played(env, steps=120, seed=3):
    """All returns of random play in a batched environment."""
    generator = np.random.default_rng(seed)
    returns = [env.reset(seed=seed)]
    masks = returns[0][1]["action_mask"]
    for _ in range(steps):
        returns.append(env.step(random_actions(masks, generator)))
        masks, ended = returns[-1][4]["action_mask"], returns[-1][2] | returns[-1][3]
        if env.metadata["autoreset_mode"] is AutoresetMode.DISABLED and ended.any():
            returns.append(env.reset(options={"reset_mask": ended}))
            masks = np.where(ended[:, None], returns[-1][1]["action_mask"], masks)
    env.close()
    return returns


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("env_id", "kwargs", "player"), GAMES)
def test_batched_is_single_side_by_side(env_id, kwargs, player, mode):
    wrapper = partial(adversary, rate=0.6)
    one = [lambda: wrapper(gym.make(env_id, max_episode_steps=40, **kwargs), player)] * 3
    native = gym.make_vec(env_id, num_envs=3, autoreset_mode=mode, max_episode_steps=40, **kwargs)
    assert equal(played(wrapper(native, player)), played(SyncVectorEnv(one, autoreset_mode=AutoresetMode(mode))))


@pytest.mark.parametrize(("env_id", "kwargs", "player"), GAMES)
def test_an_adversary_that_never_picks_is_chance(env_id, kwargs, player):
    plain = gym.make_vec(env_id, num_envs=4, **kwargs)
    wrapped = adversary(gym.make_vec(env_id, num_envs=4, **kwargs), player, rate=0.0)
    assert equal(played(wrapped), played(plain))


@pytest.mark.parametrize(("env_id", "kwargs", "player"), GAMES)
def test_at_rate_one_the_player_is_left_with_least(env_id, kwargs, player):
    """Every draw is compared with what the environment does when it is told each outcome outright."""
    env, searcher = (
        adversary(gym.make(env_id, **kwargs), player),
        make(**player),
    )
    generator, seen = np.random.default_rng(0), 0
    observation, info = env.reset(seed=0)
    while seen < 40:
        action = int(random_actions(info["action_mask"][None], generator, illegal=0)[0])
        boards, _, _ = env.unwrapped.afterstates()
        state = env.unwrapped.clone_state()
        found, _, terminated, _, info = env.step(action)
        if env_id == TETRIS and not terminated:
            known = int(observation["queue"][0])
            others = [{"board": boards[action], "piece": known, "queue": [piece]} for piece in range(7)]
            assert found["queue"][0] == np.argmin([searcher.values(other).max() for other in others])
            assert found["piece"] == known
        elif env_id == G2048:
            others = [boards[action].copy() for _ in range(2 * int((boards[action] == 0).sum()))]
            for i, cell in enumerate(np.argwhere(boards[action] == 0).repeat(2, axis=0)):
                others[i][tuple(cell)] = 1 + i % 2
            assert (found == others[np.argmin([searcher.values(other).max() for other in others])]).all()
        seen += 1
        observation = found
        if terminated:
            observation, info = env.reset()
        assert env.unwrapped.clone_state()[STREAM] != state[STREAM]


def test_the_rate_is_the_share_of_draws_that_are_picked():
    """On one empty cell the greedy player fears the 4 here, which chance draws one time in ten."""
    start = {"board": "8 4 8 4/4 16 4 8/2 4 8 4/4 4 16 32"}
    env = adversary(gym.make_vec(G2048, num_envs=4000), GREEDY, rate=0.5)
    env.reset(seed=0, options=start)
    fours = (env.step(np.full(4000, 1))[0][:, 3, 0] == 2).mean()
    assert 0.52 < fours < 0.58  # 0.55 expected, five standard errors are 0.04


def test_a_stream_is_set_back_to_any_draw():
    bits = np.random.default_rng(0).integers(0, 1 << 63, 100, dtype=np.uint64)
    assert [int(next_bits.py_func(np.array([stream_before(b)]))[1][0]) for b in bits] == bits.tolist()


def test_every_outcome_of_2048_can_be_forced():
    state = board2048.new_states(1, 3, 3)[0]
    ranks = np.array([[1, 1, 0], [2, 0, 3], [4, 5, 6]], np.uint8)
    board2048.cells_of(state, 3, 3)[:] = ranks
    after = np.array([[2, 0, 0], [2, 3, 0], [4, 5, 6]], np.uint8)
    outcomes = Rules2048(3, 3).chance_outcomes(after, state, board2048.LEFT)
    assert len(outcomes.observations) == 6
    for stream in np.random.default_rng(1).integers(0, 1 << 63, 50, dtype=np.uint64):
        for k, wanted in enumerate(outcomes.observations):
            state[STREAM] = forced(stream, outcomes.upper[k], outcomes.lower[k])
            copy = state.copy()
            board2048.step(copy, board2048.LEFT)
            assert (board2048.cells_of(copy, 3, 3) == wanted).all()


@pytest.mark.parametrize("randomizer", tetris.RANDOMIZERS)
@pytest.mark.parametrize("set_of_pieces", tetris.SETS)
def test_every_piece_that_can_come_can_be_forced(set_of_pieces, randomizer):
    env = gym.make(TETRIS, pieces=set_of_pieces, randomizer=randomizer, cols=8, preview=2, overflow="clear_first")
    _, info = env.reset(seed=4)
    for step in range(12):
        state, action = env.unwrapped.clone_state(), int(np.flatnonzero(info["action_mask"])[step % 5])
        boards, _, _ = env.unwrapped.afterstates()
        outcomes = env.unwrapped.rules.chance_outcomes(boards[action], state, action)
        met = set()
        for stream in range(40):  # by chance
            env.unwrapped.restore_state(np.append(np.uint64(stream * 977), state[1:]))
            met.add(int(env.step(action)[0]["queue"][-1]))
        assert met <= set(outcomes.observations["queue"][:, -1].tolist())
        for k, piece in enumerate(outcomes.observations["queue"][:, -1]):
            state[STREAM] = forced(np.uint64(step), outcomes.upper[k], outcomes.lower[k])
            env.unwrapped.restore_state(state)
            found, _, terminated, _, info = env.step(action)
            assert not terminated
            assert {name: np.asarray(part).tolist() for name, part in found.items()} == {
                name: part[k].tolist() for name, part in outcomes.observations.items()
            }
            assert found["queue"][-1] == piece


def test_what_makes_no_sense_is_refused():
    env, batch = gym.make(G2048), SyncVectorEnv([lambda: gym.make(G2048)])
    for make_it, message in (
        (lambda: adversary(gym.make("CartPole-v1"), "2048/greedy"), "expected one of mergefall's"),
        (lambda: adversary(env, "2048/greedy", rate=1.5), "rate is 1.5"),
        (lambda: adversary(env, "2048/random"), "'2048/random', which remembers"),
        (lambda: adversary(env, {"name": "2048/greedy", "rows": 3}), "made for rows=3"),
        (lambda: adversary(batch, "2048/greedy"), "native"),
        (lambda: adversary(gym.make(TETRIS), "quintris/expectimax"), "remembers"),
        (lambda: adversary(gym.make(TETRIS), "tetris/bcts"), "which looks at the current piece alone"),
    ):
        with pytest.raises(ValueError, match=message):
            make_it()


@pytest.mark.parametrize(("env_id", "kwargs", "player"), GAMES)
def test_made_again_from_the_spec(env_id, kwargs, player):
    """The spec records a player by its name and options, even if it was given as a `Player`."""
    env = adversary(gym.make(env_id, **kwargs), make(**player), rate=0.5)
    again = gym.make(EnvSpec.from_json(json.loads(json.dumps(env.spec.to_json()))))
    assert again.spec == env.spec
    assert equal(play(again, 3, 30), play(env, 3, 30))


@pytest.mark.filterwarnings("ignore:.*different from the unwrapped version")
@pytest.mark.parametrize(("env_id", "kwargs", "player"), GAMES)
def test_gymnasiums_checker(env_id, kwargs, player):
    check_env(adversary(gym.make(env_id, **kwargs).unwrapped, player), skip_render_check=True)


def test_illegal_actions_are_replaced_in_training_environments_too():
    envs = wrapped(gym.make_vec(G2048, num_envs=2, illegal_limit=3), [{"replace_illegal": {}}])
    envs.reset(seed=0)
    assert not np.any([envs.step([0, 0])[3] for _ in range(20)])


@pytest.mark.parametrize("mode", MODES[:2])
@pytest.mark.parametrize(("env_id", "kwargs", "player"), GAMES)
def test_what_is_cloned_goes_on_the_same(env_id, kwargs, player, mode):
    def made():
        return adversary(gym.make_vec(env_id, num_envs=3, autoreset_mode=mode, **kwargs), player, rate=0.5)

    env, other, generator = made(), made(), np.random.default_rng(5)
    _, infos = env.reset(seed=5)
    for _ in range(25):
        infos = env.step(random_actions(infos["action_mask"], generator))[4]
    state = env.clone_state()
    other.restore_state(state)
    for _ in range(25):
        actions = random_actions(infos["action_mask"], generator)
        ours, theirs = env.step(actions), other.step(actions)
        assert equal(ours, theirs)
        infos = ours[4]
