"""Evaluations against the adversary: the plain game at rate 0, the same games however they are played, honest files."""

import gymnasium as gym
import pytest
from mergefall_baselines import make
from mergefall_training.play.evaluation import evaluate
from mergefall_training.wrappers import adversary

from .test_evaluation import timeless

G2048, TETRIS = "mergefall/Game2048-v0", "mergefall/Tetris-v0"
MINIMIZER = {"player": "2048/minimax", "depth": 1}
GAMES = [
    (G2048, {"rows": 3, "cols": 3}, "2048/greedy", MINIMIZER),
    (TETRIS, {"cols": 6, "rows": 6, "preview": 0}, "tetris/bcts", "tetris/greedy"),
    (TETRIS, {"cols": 6, "rows": 6}, "tetris/two-tetrad", {"player": "tetris/two-tetrad", "heuristic": "bcts"}),
]


def play(player="2048/greedy", episodes=6, rate=0.3, env_id=G2048, kwargs=GAMES[0][1], against=MINIMIZER, **options):
    given = None if rate is None else {"player": against, "rate": rate}
    given = {"env_kwargs": kwargs, "workers": 1, "progress": False, "adversary": given, **options}
    return evaluate(player, env_id, episodes, **given)


def side_by_side(name):
    """The player, as one that decides for many games in little more time than for one."""
    player = make(name)
    player.batched = True
    return player


@pytest.mark.parametrize(("env_id", "kwargs", "name", "against"), GAMES)
@pytest.mark.parametrize("made", [make, side_by_side])
def test_at_rate_zero_it_is_the_plain_evaluation(env_id, kwargs, name, against, made):
    options = {"env_id": env_id, "kwargs": kwargs, "against": against, "max_episode_steps": 100}
    ours, plain = (play(made(name), rate=rate, **options) for rate in (0, None))
    assert timeless(ours.episodes) == timeless(plain.episodes)
    assert ours.header == plain.header
    assert ours.header.adversary is None


@pytest.mark.parametrize("rate", [0.4, 1])
@pytest.mark.parametrize(("env_id", "kwargs", "name", "against"), GAMES)
def test_games_are_those_of_the_wrapped_environment_single_or_batched(env_id, kwargs, name, against, rate):
    options = {"env_id": env_id, "kwargs": kwargs, "against": against, "rate": rate, "max_episode_steps": 100}
    single, batched = (timeless(play(made(name), **options).episodes) for made in (make, side_by_side))
    assert single == batched
    player, env = make(name), adversary(gym.make(env_id, max_episode_steps=100, **kwargs), against, rate)
    for episode in single:
        (observation, _), over, steps, info = env.reset(seed=episode.seed), False, 0, {}
        while not over:
            observation, _, terminated, truncated, info = env.step(int(player.act(observation)))
            over, steps = terminated or truncated, steps + 1
        assert (steps, info["score"]) == (episode.length, episode.score)


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({}, "expected a 'player', perhaps with a 'rate'"),
        ({"player": MINIMIZER, "rate": 1.5}, "rate is 1.5"),
        ({"player": {"depth": 1}}, "expected a Player, a player's name, a mapping of player and options"),
        ({"player": {"player": "2048/minimax", "deepness": 1}}, "deepness"),
        ({"player": {"player": "2048/minimax", "rows": 4}}, "made for rows=4"),
        ({"player": "2048/random"}, "remembers"),
        ("2048/minimax", "adversary is '2048/minimax'"),
    ],
)
def test_bad_input_is_named(tmp_path, given, complaint):
    with pytest.raises(ValueError, match=complaint):
        play(adversary=given, out=tmp_path / "games.jsonl")
    assert not list(tmp_path.iterdir())
