"""Afterstate learning: its inputs, targets, gradients and players against slow or hand-made twins; resuming."""

from itertools import pairwise

import gymnasium as gym
import mergefall
import numpy as np
import pytest
import torch
from mergefall.tetris import HEURISTICS
from mergefall.tetris.game import QUEUE
from mergefall_baselines import make
from mergefall_training.learn.afterstate.inputs import INPUTS, tetris_afterstates, tetris_inputs
from mergefall_training.learn.afterstate.player import layers_of, network_value, player
from mergefall_training.learn.afterstate.train import Learner
from mergefall_training.learn.run import Config, train

from .small_runs import AFTERSTATE, TETRIS, random_layers

SMALL = {"cols": 6, "rows": 10}
RULES = [
    SMALL,
    {"cols": 6, "rows": 8, "placements": "slide", "preview": 0, "reward": "score"},
    {"cols": 5, "rows": 8, "pieces": "sz", "overflow": "clear_first", "preview": 2},
    {"cols": 7, "rows": 8, "pieces": "five", "randomizer": "hidden"},
    pytest.param({"cols": 6, "rows": 8, "placements": "reachable", "hold": True}, marks=pytest.mark.slow),
]


def played(kwargs, steps):
    """A batched environment after random play, and what it shows."""
    envs = gym.make_vec(TETRIS, num_envs=6, **kwargs)
    observations, infos = envs.reset(seed=3)
    random = np.random.default_rng(0)
    for _ in range(steps):
        scores = random.random(infos["action_mask"].shape) * infos["action_mask"]
        observations, _, _, _, infos = envs.step(scores.argmax(axis=1))
    return envs, observations


def config(env_kwargs=SMALL, timesteps=192, **changes):
    return Config("afterstate", TETRIS, env_kwargs, AFTERSTATE | changes, timesteps, 64, 2, max_episode_steps=40)


def agent(env_kwargs, arrays=None, **network):
    """A player for an environment, with other arrays or another description of its network than an untrained one's."""
    spec = {"env_id": TETRIS, "env_kwargs": config(env_kwargs).env_kwargs}
    network = {"gamma": 0.9, "inputs": INPUTS} | network
    return player(spec | {"network": network}, arrays or random_layers(tetris_inputs(env_kwargs["cols"]), 8, 1))


def slow_inputs(board):
    """The inputs of one Tetris board, from its definition."""
    rows, cols = board.shape
    terms = HEURISTICS["dt-10"].board_terms(board) | HEURISTICS["bcts"].board_terms(board)
    scales = {"row_transitions": 20, "column_transitions": 20, "wells": 20}
    order = ["row_transitions", "column_transitions", "holes", "hole_depth", "wells", "rows_with_holes", "diversity"]
    heights = [next((rows - r for r in range(rows) if board[r, c]), 0) for c in range(cols)]
    holes = [int(heights[c] - board[:, c].sum()) for c in range(cols)]
    steps = [[float(min(max(b - a, -3), 3) == k) for k in range(-3, 4)] for a, b in pairwise(heights)]
    found = [terms[name] / scales.get(name, 8) for name in order]
    return [*found, *(h / 5 for h in heights), *(h / 2 for h in holes), *(x for step in steps for x in step)]


@pytest.mark.parametrize("kwargs", RULES, ids=str)
@pytest.mark.parametrize("steps", [0, 7])
def test_table_of_tetris_is_what_single_environments_say(kwargs, steps):
    envs, observations = played(kwargs, steps)
    table = tetris_afterstates(observations, envs.rules)
    single = gym.make(TETRIS, **kwargs).unwrapped
    for i, state in enumerate(envs.clone_state()):
        single.restore_state(state)
        boards, rewards, legal = single.afterstates()
        over = single.fatal_actions()
        if not legal.any():  # the game is over, which its board does not show
            continue
        rows = slice(table.begins[i], table.begins[i + 1])
        np.testing.assert_array_equal(table.actions[rows], np.flatnonzero(legal))
        np.testing.assert_array_equal(table.rewards[rows], rewards[legal])
        np.testing.assert_array_equal(table.over[rows], over[legal])
        slow = np.array([slow_inputs(board) for board in boards[legal]], np.float32)
        np.testing.assert_allclose(table.inputs[rows], slow, rtol=1e-6)
    games = np.repeat(np.arange(envs.num_envs), np.diff(table.begins))
    for action in range(envs.rules.n_actions):  # the table of one action of each game
        rows, actions = table.actions == action, np.full(envs.num_envs, action)
        found = tetris_afterstates(observations, envs.rules, actions)
        np.testing.assert_array_equal(np.diff(found.begins), np.bincount(games[rows], minlength=envs.num_envs))
        for ours, expected in zip(found[1:], table[1:], strict=True):
            np.testing.assert_array_equal(ours, expected[rows])


@pytest.mark.parametrize("units", [(), (3,), (16, 5)])
def test_compiled_network_is_pytorchs(units):
    arrays, rows = random_layers(7, *units, 1), torch.randn(10, 7)
    rows[:5, 3:] = 0
    weights = {name: torch.from_numpy(array) for name, array in arrays.items()}
    value = rows
    for i in range(len(units) + 1):
        value = (value.relu() if i else value) @ weights[f"weight{i}"].T + weights[f"bias{i}"]
    network = layers_of(arrays, 7)
    np.testing.assert_allclose([network_value(row, network) for row in rows.numpy()], value[:, 0], rtol=1e-4, atol=1e-5)


def test_the_model_is_the_mean_of_the_networks():
    learner = Learner(config(average=0.75, n_epochs=1, learning_rate=0.5), "cpu")
    x, y = np.ones((16, learner.layers[0].in_features), np.float32), np.ones(16, np.float32)
    networks = []
    for _ in range(3):
        learner._fit(x, y)  # one step
        networks.append([part.detach().numpy().copy() for part in learner.layers.parameters()])
    for array, first, second, third in zip(learner.arrays().values(), *networks, strict=True):
        np.testing.assert_allclose(array, 0.75 * (0.75 * first + 0.25 * second) + 0.25 * third, rtol=1e-4, atol=1e-6)


def test_player_and_learner_think_the_same():
    learner = Learner(config(RULES[1]), "cpu")
    learner.learn()
    best, rewards, of_best, over, _ = learner.decide()
    trained = agent(RULES[1], learner.arrays())
    values = trained.values(learner.observations)
    expected, live = rewards + 0.9 * of_best, ~over
    np.testing.assert_allclose(values.max(axis=1)[live], expected[live], rtol=1e-3, atol=1e-3)
    # Either may take another action where two are worth the same but for rounding.
    for actions in (trained.act(learner.observations), best):
        chosen = np.take_along_axis(values, actions[:, None], axis=1)[:, 0]
        np.testing.assert_allclose(chosen[live], values.max(axis=1)[live], rtol=1e-5, atol=1e-4)


def test_all_fatal_placements_leave_the_first_legal_one():
    mine = agent({"cols": 4, "rows": 4})
    observation = {"board": mergefall.tetris.from_text(".###/.###/.###/.###"), "piece": 1}  # O
    assert np.isneginf(mine.values(observation)).all()
    assert mine.act(observation) == 0


def test_a_network_whose_sums_overflow_ends_the_episode_with_an_error():
    playing = agent(SMALL)
    playing._layers.parameters[:] = 3e38
    with pytest.raises(ValueError, match=r"values action \d+ at (nan|inf)"):
        playing.play(TETRIS, 0, SMALL, 500)


def test_learns_to_clear_lines(tmp_path):
    quick = {"n_envs": 64, "n_steps": 8, "batch_size": 256, "policy_kwargs": {"net_arch": [32]}}
    asked = Config("afterstate", TETRIS, {**SMALL, "preview": 0}, quick, 20_480, 20_480, 10, max_episode_steps=1000)
    before, after = train(tmp_path, asked, progress=False).points
    assert after.mean > 3 * before.mean


def test_a_search_counts_the_rewards_and_the_discount_of_an_agent_at_its_leaves():
    pieces = agent(SMALL, gamma=0.75)
    assert make("tetris/mcts", heuristic={"player": pieces}).plan.gamma == 0.75
    paid = agent(SMALL | {"reward": "score"})
    with pytest.raises(ValueError, match="no search counts the rewards that the values of"):
        make("tetris/mcts", heuristic={"player": paid})


def test_a_checkpoint_of_games_that_are_no_games_is_refused():
    """What the games show follows from them, and is not taken from the file."""
    learner = Learner(config(), "cpu")
    state = learner.state()
    games = state["games"].copy()
    games[3, QUEUE] = 9
    with pytest.raises(ValueError, match="state of game 3 has the queue 0x9"):
        learner.restore(0, state | {"games": games})
    learner.restore(0, state | {"observations": {"board": None, "piece": np.full(8, 1 << 40)}})
    np.testing.assert_array_equal(learner.observations["piece"], state["games"][:, QUEUE] & np.uint64(15))


def test_more_full_rows_than_a_piece_can_complete_pay_as_the_most_it_can():
    """Observations may show them, though no game does."""
    envs, observations = played(SMALL | {"reward": "score"}, 0)
    observations["board"][:, 4:] = 1
    table = tetris_afterstates(observations, envs.unwrapped.rules)
    assert set(table.rewards.tolist()) == {1240.0}


@pytest.mark.parametrize(
    ("cols", "network", "changed", "message"),
    [
        (7, {}, {}, "expected float32 layers from 63 inputs to one value"),
        (6, {}, {"more": np.zeros(1)}, "expected float32 layers from 54"),
        (6, {}, {"bias0": np.zeros(8)}, "expected float32 layers"),
        (6, {"gamma": float("nan")}, {}, "gamma is nan"),
        (6, {"inputs": "pixels"}, {}, "inputs are 'pixels'"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(cols, network, changed, message):
    with pytest.raises(ValueError, match=message):
        agent({"cols": cols, "rows": 10}, random_layers(54, 8, 1) | changed, **network)


def test_a_rollout_of_fatal_placements_alone_teaches_nothing():
    changes = {"n_envs": 1, "n_steps": 1, "batch_size": 1}
    learner = Learner(config({"rows": 4, "cols": 4}, 200, **changes), "cpu")
    while learner.step < 200:
        assert np.isfinite(learner.learn()["loss"])
