"""Search players in environments: what they do where chance would have done it, single, batched, and in evaluations."""

import json
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from mergefall.chance import STREAM
from mergefall.game2048 import reference
from mergefall.tetris import game as tetris
from mergefall_baselines import make
from mergefall_baselines.player import chosen_by, steps
from mergefall_training.play.evaluation import evaluate
from mergefall_training.wrappers import adversary, wrapped

from ...envs.tools import equal, play
from ..play.test_evaluation import timeless

G2048, TETRIS = "mergefall/Game2048-v0", "mergefall/Tetris-v0"
GREEDY = {"name": "2048/greedy", "heuristic": "monotone-smooth"}
TWO = {"name": "tetris/two-tetrad", "heuristic": "bcts"}
SMALL = {"cols": 5, "rows": 5, "illegal_limit": 3}
GAMES = [(G2048, {"rows": 3, "cols": 3, "illegal_limit": 3}, GREEDY), (TETRIS, SMALL, TWO)]
MODES = ["NextStep", "SameStep", "Disabled"]
each_game = pytest.mark.parametrize(("env_id", "kwargs", "player"), GAMES)


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
@each_game
def test_batched_is_single_side_by_side(env_id, kwargs, player, mode):
    wrapper = partial(adversary, rate=0.6)
    one = [lambda: wrapper(gym.make(env_id, max_episode_steps=40, **kwargs), player)] * 3
    native = gym.make_vec(env_id, num_envs=3, autoreset_mode=mode, max_episode_steps=40, **kwargs)
    assert equal(played(wrapper(native, player)), played(SyncVectorEnv(one, autoreset_mode=AutoresetMode(mode))))


@each_game
def test_an_adversary_that_never_picks_is_chance(env_id, kwargs, player):
    plain = gym.make_vec(env_id, num_envs=4, **kwargs)
    wrapped = adversary(gym.make_vec(env_id, num_envs=4, **kwargs), player, rate=0.0)
    assert equal(played(wrapped), played(plain))


@each_game
def test_at_rate_one_the_player_is_left_with_least(env_id, kwargs, player):
    """Every draw is compared with what the environment does when it is told each outcome outright."""
    env, searcher = adversary(gym.make(env_id, **kwargs), player), make(**player)
    generator = np.random.default_rng(0)
    observation, info = env.reset(seed=0)
    for _ in range(40):
        action = int(random_actions(info["action_mask"][None], generator, illegal=0)[0])
        after, state = env.unwrapped.afterstates()[0][action], env.unwrapped.clone_state()
        found, _, terminated, _, info = env.step(action)
        others = [np.array(board) for board, _ in reference.outcomes(tuple(map(tuple, after.tolist())))]
        if env_id == TETRIS:
            others = [{"board": after, "piece": observation["queue"][0], "queue": [piece]} for piece in range(7)]
        if env_id == G2048 or not terminated:
            np.testing.assert_equal(found, others[np.argmin([searcher.values(other).max() for other in others])])
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


TETRIS_RULES = {"cols": 8, "preview": 2, "overflow": "clear_first"}
CHANCES = [
    (G2048, {"rows": 3, "cols": 3}),
    *(
        (TETRIS, TETRIS_RULES | {"pieces": pieces, "randomizer": randomizer})
        for pieces in tetris.SETS
        for randomizer in tetris.RANDOMIZERS
    ),
]


def plain(observation):
    parts = observation if isinstance(observation, dict) else {"board": observation}
    return {name: np.asarray(part).tolist() for name, part in parts.items()}


@pytest.mark.parametrize(("env_id", "kwargs"), CHANCES, ids=str)
def test_every_outcome_of_chance_can_be_forced(env_id, kwargs):
    env = gym.make(env_id, **kwargs)
    (_, info), streams = env.reset(seed=4), np.random.default_rng(1).integers(0, 1 << 63, 40, dtype=np.uint64)
    for step in range(12):
        legal, state = np.flatnonzero(info["action_mask"]), env.unwrapped.clone_state()
        action = int(legal[step % min(5, len(legal))])
        forced = [env.unwrapped.rules.chance_outcomes(np.append(s, state[1:]), action) for s in streams[:3]]

        def played(stream, state=state, action=action):
            env.unwrapped.restore_state(np.append(stream, state[1:]))
            found, _, terminated, _, info = env.step(action)
            assert not terminated
            return plain(found), info

        parts = plain(forced[0].observations)
        wanted = [dict(zip(parts, one, strict=True)) for one in zip(*parts.values(), strict=True)]
        assert all(played(stream)[0] in wanted for stream in streams)  # by chance
        for outcomes in forced:
            for stream, expected in zip(outcomes.streams, wanted, strict=True):
                found, info = played(stream)
                assert found == expected


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


@each_game
def test_made_again_from_the_spec(env_id, kwargs, player):
    """The spec records a player by its name and options, even if it was given as a `Player`."""
    env = adversary(gym.make(env_id, **kwargs), make(**player), rate=0.5)
    again = gym.make(EnvSpec.from_json(json.loads(json.dumps(env.spec.to_json()))))
    assert again.spec == env.spec
    assert equal(play(again, 3, 30), play(env, 3, 30))


@pytest.mark.filterwarnings("ignore:.*different from the unwrapped version")
@each_game
def test_gymnasiums_checker(env_id, kwargs, player):
    check_env(adversary(gym.make(env_id, **kwargs).unwrapped, player), skip_render_check=True)


def test_illegal_actions_are_replaced_in_training_environments_too():
    envs = wrapped(gym.make_vec(G2048, num_envs=2, illegal_limit=3), [{"replace_illegal": {}}])
    envs.reset(seed=0)
    assert not np.any([envs.step([0, 0])[3] for _ in range(20)])


@pytest.mark.parametrize("mode", MODES[:2])
@each_game
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


# -- evaluations against the adversary ---------------------------------------------------------------------------------


MINIMIZER = {"player": "2048/minimax", "depth": 1}
MATCHES = [
    (G2048, {"rows": 3, "cols": 3}, "2048/greedy", MINIMIZER),
    (TETRIS, {"cols": 6, "rows": 6, "preview": 0}, "tetris/bcts", "tetris/greedy"),
    (TETRIS, {"cols": 6, "rows": 6}, "tetris/two-tetrad", {"player": "tetris/two-tetrad", "heuristic": "bcts"}),
]


def games(player="2048/greedy", episodes=6, rate=0.3, env_id=G2048, kwargs=MATCHES[0][1], against=MINIMIZER, **options):
    given = None if rate is None else {"player": against, "rate": rate}
    given = {"env_kwargs": kwargs, "workers": 1, "progress": False, "adversary": given, **options}
    return evaluate(player, env_id, episodes, **given)


def side_by_side(name):
    """The player, as one that decides for many games in little more time than for one."""
    player = make(name)
    player.batched = True
    return player


@pytest.mark.parametrize(("env_id", "kwargs", "name", "against"), MATCHES)
@pytest.mark.parametrize("made", [make, side_by_side])
def test_at_rate_zero_it_is_the_plain_evaluation(env_id, kwargs, name, against, made):
    options = {"env_id": env_id, "kwargs": kwargs, "against": against, "max_episode_steps": 100}
    ours, plain = (games(made(name), rate=rate, **options) for rate in (0, None))
    assert timeless(ours.episodes) == timeless(plain.episodes)
    assert ours.header == plain.header
    assert ours.header.adversary is None


@pytest.mark.parametrize("rate", [0.4, 1])
@pytest.mark.parametrize(("env_id", "kwargs", "name", "against"), MATCHES)
def test_games_are_those_of_the_wrapped_environment_single_or_batched(env_id, kwargs, name, against, rate):
    options = {"env_id": env_id, "kwargs": kwargs, "against": against, "rate": rate, "max_episode_steps": 100}
    single, batched = (timeless(games(made(name), **options).episodes) for made in (make, side_by_side))
    assert single == batched
    player, env = make(name), adversary(gym.make(env_id, max_episode_steps=100, **kwargs), against, rate)
    for episode in single:
        *_, last = played = [*steps(env, episode.seed, chosen_by(player, episode.seed))]
        assert (len(played) - 1, last.info["score"]) == (episode.length, episode.score)


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({}, "expected a 'player', perhaps with a 'rate'"),
        ({"player": {"depth": 1}}, "expected a Player, a player's name, a mapping of player and options"),
        ({"player": {"player": "2048/minimax", "deepness": 1}}, "deepness"),
        ("2048/minimax", "adversary is '2048/minimax'"),
    ],
)
def test_bad_input_is_named(tmp_path, given, complaint):
    with pytest.raises(ValueError, match=complaint):
        games(adversary=given, out=tmp_path / "games.jsonl")
    assert not list(tmp_path.iterdir())
