"""Afterstate learning: its inputs, targets, gradients and players against slow or hand-made twins; resuming."""

from itertools import pairwise

import gymnasium as gym
import mergefall
import numpy as np
import pytest
import torch
from mergefall.game2048 import board
from mergefall.games import board_of, game_of
from mergefall.tetris import HEURISTICS
from mergefall.tetris.game import QUEUE
from mergefall_baselines import Player, make, play_in_env, register, registry
from mergefall_training import evaluate
from mergefall_training.learn.afterstate.inputs import (
    INPUTS,
    INPUTS_OF,
    afterstates_2048,
    canonical,
    tetris_afterstates,
)
from mergefall_training.learn.afterstate.player import ValueNetwork, network_value, player
from mergefall_training.learn.afterstate.train import Hyperparameters, Learner, targets, train
from mergefall_training.learn.models import load_model
from mergefall_training.learn.presets import configure
from mergefall_training.learn.run import Config, open_run, read_checkpoint, read_curve

TETRIS, GAME2048 = "mergefall/Tetris-v0", "mergefall/Game2048-v0"
SMALL = {"cols": 6, "rows": 10}
RULES = [
    SMALL,
    {"cols": 6, "rows": 8, "placements": "slide", "preview": 0, "reward": "score"},
    {"cols": 5, "rows": 8, "pieces": "sz", "overflow": "clear_first", "preview": 2},
    {"cols": 7, "rows": 8, "pieces": "five", "randomizer": "hidden"},
]
TINY = {"n_envs": 8, "n_steps": 4, "batch_size": 16, "n_epochs": 2, "policy_kwargs": {"net_arch": [8]}}


def played(env_id, kwargs, steps, n=6):
    """A batched environment after random play, and what it shows."""
    envs = gym.make_vec(env_id, num_envs=n, **kwargs)
    observations, infos = envs.reset(seed=3)
    random = np.random.default_rng(0)
    for _ in range(steps):
        scores = random.random(infos["action_mask"].shape) * infos["action_mask"]
        observations, _, _, _, infos = envs.step(scores.argmax(axis=1))
    return envs, observations


def config(env_id=TETRIS, env_kwargs=SMALL, timesteps=192, interval=64, **changes):
    return Config("afterstate", env_id, dict(env_kwargs), TINY | changes, timesteps, interval, 2, max_episode_steps=40)


def agent(env_id, env_kwargs, units=(8,), seed=0, gamma=0.9):
    """(an untrained player, its arrays) for an environment."""
    env = gym.make(env_id, **env_kwargs)
    random = np.random.default_rng(seed)
    size = INPUTS_OF[game_of(env_id).name].size(env.unwrapped.rules)
    sizes, arrays = [size, *units, 1], {}
    for i, (n_in, n_out) in enumerate(pairwise(sizes)):
        arrays[f"weight{i}"] = random.normal(size=(n_out, n_in)).astype(np.float32)
        arrays[f"bias{i}"] = random.normal(size=n_out).astype(np.float32)
    spec = {"env_id": env_id, "env_kwargs": config(env_id, env_kwargs).env_kwargs}
    return player(spec | {"network": {"gamma": gamma, "inputs": INPUTS}}, arrays), arrays


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
    envs, observations = played(TETRIS, kwargs, steps)
    table = tetris_afterstates(observations, envs.rules)
    for threads in (2, 9):  # more than there are games, too
        for ours, same in zip(tetris_afterstates(observations, envs.rules, threads), table, strict=True):
            np.testing.assert_array_equal(ours, same)
    single = gym.make(TETRIS, **kwargs).unwrapped
    for i, state in enumerate(envs.clone_state()):
        single.restore_state(state)
        boards, rewards, legal = single.afterstates()
        _, legal, over = single.afterstate_terms("bcts")
        if not legal.any():  # the game is over, which its board does not show
            continue
        rows = slice(table.begins[i], table.begins[i + 1])
        np.testing.assert_array_equal(table.actions[rows], np.flatnonzero(legal))
        np.testing.assert_array_equal(table.rewards[rows], rewards[legal])
        np.testing.assert_array_equal(table.over[rows], over[legal])
        slow = np.array([slow_inputs(board) for board in boards[legal]], np.float32)
        np.testing.assert_allclose(table.inputs[rows], slow, rtol=1e-6)


@pytest.mark.parametrize("kwargs", RULES, ids=str)
def test_table_of_one_action_of_each_game_has_the_rows_of_the_whole_table(kwargs):
    envs, observations = played(TETRIS, kwargs, 7)
    table = tetris_afterstates(observations, envs.rules)
    games = np.repeat(np.arange(envs.num_envs), np.diff(table.begins))
    for action in range(envs.rules.n_actions):
        rows, actions = table.actions == action, np.full(envs.num_envs, action)
        found = tetris_afterstates(observations, envs.rules, 2, actions)
        np.testing.assert_array_equal(np.diff(found.begins), np.bincount(games[rows], minlength=envs.num_envs))
        for ours, expected in zip(found[1:], table[1:], strict=True):
            np.testing.assert_array_equal(ours, expected[rows])


@pytest.mark.parametrize("kwargs", [{}, {"rows": 2, "cols": 3, "reward": "log2"}], ids=str)
def test_table_of_2048_is_what_single_environments_say(kwargs):
    envs, boards = played(GAME2048, kwargs, 9)
    table = afterstates_2048(boards, envs.rules)
    after, rewards, legal = envs.afterstates()
    np.testing.assert_array_equal(table.actions, np.nonzero(legal)[1])
    np.testing.assert_array_equal(np.diff(table.begins), legal.sum(axis=1))
    np.testing.assert_allclose(table.rewards, rewards[legal], rtol=1e-6)
    hot = table.inputs.reshape(len(table.inputs), boards[0].size, -1)
    ranks = hot.argmax(axis=2) + 1
    np.testing.assert_array_equal(np.where(hot.any(axis=2), ranks, 0), after[legal].reshape(len(hot), -1))
    assert hot.sum(axis=2).max() == 1


@pytest.mark.parametrize("shape", [(4, 4), (2, 3), (3, 2), (1, 4), (3, 3)])
def test_symmetric_boards_have_one_canonical_image(shape):
    boards = np.random.default_rng(0).integers(0, 4, (200, *shape)).astype(np.uint8)
    found = canonical(boards)
    for board_, ours in zip(boards, found, strict=True):
        turned = [np.rot90(board_, k) for k in range(4)]
        images = [image for one in turned for image in (one, np.fliplr(one)) if image.shape == shape]
        assert ours.tolist() == max(image.tolist() for image in images)
        same = canonical(np.array(images))
        assert (same == ours).all()


@pytest.mark.parametrize("units", [(), (3,), (16, 5)])
def test_compiled_network_is_pytorchs(units):
    sizes = [7, *units, 1]
    layers = [torch.nn.Linear(*size) for size in pairwise(sizes)]
    arrays = {f"weight{i}": layer.weight.detach().numpy() for i, layer in enumerate(layers)}
    arrays |= {f"bias{i}": layer.bias.detach().numpy() for i, layer in enumerate(layers)}
    network = ValueNetwork(arrays, 7).layers()
    for x in torch.randn(5, 7) * torch.tensor([1, 1, 1, 0, 0, 0, 0]), torch.randn(5, 7):
        value = x
        for layer in layers[:-1]:
            value = torch.relu(layer(value))
        expected = layers[-1](value).detach().numpy()[:, 0]
        found = [network_value(row, network) for row in x.numpy()]
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_targets_of_a_hand_made_rollout():
    # Three steps of four games: one goes on, one dies by its third action, one is cut off after its second, and in one
    # chance ends the game after the second. What follows an end is another game.
    rewards = np.array([[9, 9, 9, 9], [1, 1, 1, 1], [2, 0, 2, 2], [3, 3, 3, 3]], np.float32)
    values = np.array([[10, 10, 10, 10], [20, 20, 20, 20], [30, 0, 30, 30], [40, 40, 40, 40]], np.float32)
    over, terminated, truncated = np.zeros((4, 4), bool), np.zeros((3, 4), bool), np.zeros((3, 4), bool)
    over[2, 1] = terminated[2, 1] = truncated[1, 2] = terminated[1, 3] = True

    def found(td_lambda):
        return targets(rewards, values, over, terminated, truncated, 0.5, td_lambda).T

    goes_on, dies, is_cut, chance = found(0.0)
    np.testing.assert_array_equal(goes_on, [11, 17, 23])
    np.testing.assert_array_equal(dies[:2], [11, 0])  # dying pays 0 and is worth 0
    np.testing.assert_array_equal(is_cut, [11, 20, 23])  # what was thought it stays
    np.testing.assert_array_equal(chance, [11, 0, 23])

    goes_on, dies, is_cut, chance = found(1.0)
    np.testing.assert_array_equal(goes_on, [1 + 0.5 * (2 + 0.5 * 23), 2 + 0.5 * 23, 23])
    np.testing.assert_array_equal(dies[:2], [1, 0])
    np.testing.assert_array_equal(is_cut, [1 + 0.5 * 20, 20, 23])
    np.testing.assert_array_equal(chance, [1, 0, 23])

    second = 2 + 0.5 * (0.5 * 30 + 0.5 * 23)
    np.testing.assert_array_equal(found(0.5)[0], [1 + 0.5 * (0.5 * 20 + 0.5 * second), second, 23])


def test_a_gradient_step_goes_towards_the_target():
    learner = Learner(config(policy_kwargs={"net_arch": []}, learning_rate=0.01, n_epochs=1), torch.device("cpu"))
    layer = learner.layers[0]
    x = np.zeros((1, layer.in_features), np.float32)
    x[0, :2] = 1, -2
    before, value = layer.weight.detach().clone(), learner.values(torch.from_numpy(x)).item()
    loss = learner._fit(x, np.array([value + 1], np.float32))
    moved = (layer.weight.detach() - before).numpy()[0]
    assert loss == pytest.approx(1)
    # The gradient of (V − target)² is −2x; Adam's first step is the learning rate, against its sign.
    np.testing.assert_allclose(moved[:2], [0.01, -0.01], rtol=1e-4)
    assert not moved[2:].any()


def test_the_model_is_the_mean_of_the_networks():
    learner = Learner(config(average=0.75, n_epochs=1, learning_rate=0.5), torch.device("cpu"))
    x, y = np.ones((16, learner.layers[0].in_features), np.float32), np.ones(16, np.float32)
    networks = []
    for _ in range(3):
        learner._fit(x, y)  # one step
        networks.append([part.detach().numpy().copy() for part in learner.layers.parameters()])
    for i, array in enumerate(learner.arrays().values()):
        first, second, third = (network[i] for network in networks)
        np.testing.assert_allclose(array, 0.75 * (0.75 * first + 0.25 * second) + 0.25 * third, rtol=1e-4, atol=1e-6)
    twin = Learner(learner.config, torch.device("cpu"))
    twin.restore(0, learner.state())
    np.testing.assert_array_equal(twin.arrays()["weight0"], learner.arrays()["weight0"])


def test_a_run_begins_with_what_another_has_learnt(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    changed = {"warm_start": str(first), "learning_rate": 0.5}
    for folder, asked in ((first, config()), (second, config(**changed))):
        with open_run(folder, asked, progress=False) as run:
            train(run)
    curves = [[point.mean for point in read_curve(folder)] for folder in (first, second)]
    assert curves[0][-1] == curves[1][0] != curves[0][0]
    _, state, _ = read_checkpoint(first)
    learner = Learner(config(**changed), torch.device("cpu"))
    learner.warm_start()
    for name, part in learner.layers.state_dict().items():
        assert torch.equal(part, state["layers"][name])
    steps = [part["step"].item() for part in learner.optimizer.state_dict()["state"].values()]
    assert min(steps) == max(steps) == state["optimizer"]["state"][0]["step"] > 0
    for other in ({"policy_kwargs": {"net_arch": [3]}}, {"reward_scale": 0.5}):
        with pytest.raises(ValueError, match=r"warm_start: the run in .* is .*; expected"):
            Learner(config(**changed | other), torch.device("cpu")).warm_start()


@pytest.mark.parametrize("scale", [1.0, 0.25])
@pytest.mark.parametrize(("env_id", "kwargs"), [(TETRIS, RULES[1]), (GAME2048, {"rows": 3, "cols": 3})])
def test_player_and_learner_think_the_same(env_id, kwargs, scale):
    learner = Learner(config(env_id, kwargs, reward_scale=scale), torch.device("cpu"))
    learner.learn()
    decisions = learner.decide()
    spec = {"env_id": env_id, "env_kwargs": learner.config.env_kwargs, "network": {"gamma": 0.9, "inputs": INPUTS}}
    trained = player(spec, learner.arrays())
    values = trained.values(learner.observations)
    expected = (decisions.rewards + 0.9 * decisions.values) / scale
    live = ~decisions.over
    np.testing.assert_allclose(values.max(axis=1)[live], expected[live], rtol=1e-3, atol=1e-3)
    # Either may take another action where two are worth the same but for rounding.
    for actions in (trained.act(learner.observations), decisions.actions):
        chosen = np.take_along_axis(values, actions[:, None], axis=1)[:, 0]
        np.testing.assert_allclose(chosen[live], values.max(axis=1)[live], rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("kwargs", RULES, ids=str)
def test_tetris_player_keeps_the_protocol(kwargs):
    mine, _ = agent(TETRIS, kwargs)
    envs, batch = played(TETRIS, kwargs, 4)
    values = mine.values(batch)
    _, legal, over = envs.afterstate_terms("bcts")
    going = legal.any(axis=1)  # what is over does not show it
    np.testing.assert_array_equal(np.isfinite(values)[going], (legal & ~over)[going])
    first = {name: part[0] for name, part in batch.items()}
    np.testing.assert_array_equal(mine.values(first), values[0])
    assert mine.act(first) == mine.act(batch)[0] == values[0].argmax()
    without = {name: part for name, part in batch.items() if name != "queue"}
    np.testing.assert_array_equal(mine.values(without), values)


def test_all_fatal_placements_leave_the_first_legal_one():
    mine, _ = agent(TETRIS, {"cols": 4, "rows": 4})
    observation = {"board": mergefall.tetris.from_text(".###/.###/.###/.###"), "piece": 1}  # O
    assert np.isneginf(mine.values(observation)).all()
    assert mine.act(observation) == 0


@pytest.mark.parametrize(("env_id", "kwargs"), [(TETRIS, SMALL), (TETRIS, RULES[2]), (GAME2048, {})])
def test_compiled_episode_is_the_gym_loops(env_id, kwargs):
    mine, _ = agent(env_id, kwargs)
    compiled, plain = mine.play(env_id, 5, kwargs, 60), play_in_env(mine, env_id, 5, kwargs, 60)
    np.testing.assert_array_equal(compiled.actions, plain.actions)
    assert compiled.figures == plain.figures


@pytest.mark.parametrize(("env_id", "kwargs"), [(TETRIS, SMALL), (GAME2048, {})])
def test_a_network_whose_sums_overflow_ends_the_episode_with_an_error(env_id, kwargs):
    playing, _ = agent(env_id, kwargs)
    playing._network.parameters[:] = 3e38
    with pytest.raises(ValueError, match=r"values action \d+ at (nan|inf)"):
        playing.play(env_id, 0, kwargs, 500)


def test_learns_to_clear_lines(tmp_path):
    quick = {"n_envs": 64, "n_steps": 8, "batch_size": 256, "policy_kwargs": {"net_arch": [32]}}
    asked = Config("afterstate", TETRIS, {**SMALL, "preview": 0}, quick, 20_480, 20_480, 10, max_episode_steps=1000)
    with open_run(tmp_path / "run", asked, progress=False) as run:
        train(run)
        before, after = run.points
    assert after.mean > 3 * before.mean


def test_a_resumed_run_ends_where_an_unbroken_one_ends(tmp_path, monkeypatch):
    with open_run(tmp_path / "unbroken", config(), progress=False) as run:
        train(run)
        expected = run.points

    class Killed(Exception):
        pass

    calls, learn = [], Learner.learn

    def dying(self):
        calls.append(self.step)
        if len(calls) in (2, 6):  # on the way to a checkpoint, and right after one
            raise Killed
        return learn(self)

    monkeypatch.setattr(Learner, "learn", dying)
    for _ in range(2):
        with open_run(tmp_path / "broken", config(), resume="auto", progress=False) as run, pytest.raises(Killed):
            train(run)
    with open_run(tmp_path / "broken", config(), resume="auto", progress=False) as run:
        train(run)
        found = run.points
    assert calls == [0, 32, 0, 32, 64, 96, 64, 96, 128, 160]
    assert [point.step for point in found] == [0, 64, 128, 192]
    for one, other in zip(found, expected, strict=True):
        assert (one.mean, one.episodes) == (other.mean, other.episodes)
    for name in ("model.npz", "best.npz"):
        one, other = (load_model(tmp_path / folder / name) for folder in ("unbroken", "broken"))
        assert one.arrays.keys() == other.arrays.keys()
        for key, array in one.arrays.items():
            np.testing.assert_array_equal(array, other.arrays[key])


@pytest.mark.parametrize(("env_id", "kwargs"), [(TETRIS, SMALL), (GAME2048, {"rows": 3, "cols": 3})])
def test_a_run_folder_is_a_player(tmp_path, env_id, kwargs):
    folder = tmp_path / "run"
    with open_run(folder, config(env_id, kwargs, 32, 32), progress=False) as run:
        train(run)
    assert (folder / "model.npz").stat().st_size < 1_000_000
    found = evaluate(str(folder), env_id, 3, env_kwargs=kwargs, workers=1, max_episode_steps=50, progress=False)
    trained = make(str(folder))
    assert found.episodes[1].score == trained.play(env_id, 1, kwargs, 50).figures["score"]


def test_a_search_counts_the_rewards_and_the_discount_of_an_agent_at_its_leaves():
    """Two own moves by Bellman's equation, with the environment's own afterstates and outcomes."""
    kwargs = {"rows": 2, "cols": 3, "reward": "log2"}
    leaf, _ = agent(GAME2048, kwargs, gamma=0.5)
    env = gym.make(GAME2048, **kwargs).unwrapped
    observation, _ = env.reset(seed=1)
    _, rewards, legal = env.afterstates()
    expected = np.full(4, -np.inf)
    for action in np.flatnonzero(legal):
        boards, chances = env.chance_outcomes(int(action))
        best = leaf.values(boards).max(axis=1)
        expected[action] = rewards[action] + 0.5 * chances @ np.where(np.isfinite(best), best, 0.0)
    found = make("2048/lookahead", player=leaf, depth=2).values(observation)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    trees = make("2048/mcts", heuristic={"player": leaf})
    assert (trees.rewards, trees.plan.gamma) == ("log2", 0.5)
    pieces = agent(TETRIS, SMALL, gamma=0.75)[0]
    assert make("tetris/mcts", heuristic={"player": pieces}).plan.gamma == 0.75
    paid = agent(TETRIS, SMALL | {"reward": "score"})[0]
    with pytest.raises(ValueError, match="no search counts the rewards that the values of"):
        make("tetris/mcts", heuristic={"player": paid})


def test_tetris_player_takes_other_heights_but_no_other_width():
    mine, _ = agent(TETRIS, SMALL)
    assert mine.with_rules({"cols": 6, "rows": 20, "preview": 1}).values(played(TETRIS, {"cols": 6}, 0)[1]).shape == (
        6,
        24,
    )
    with pytest.raises(ValueError, match="cols=6, but the environment has cols=7"):
        mine.with_rules({"cols": 7})


@pytest.mark.parametrize("env_id", [TETRIS, "mergefall/SZTetris-v0", GAME2048])
def test_presets_are_sound(env_id):
    asked = configure("afterstate", env_id, changed={"n_envs": 2})
    assert Learner(asked, torch.device("cpu")).decide().actions.shape == (2,)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"gama": 1}, "no 'gama'; it has n_envs"),
        ({"gamma": 1.5}, "gamma is 1.5"),
        ({"td_lambda": "high"}, "td_lambda is 'high'"),
        ({"n_steps": 0}, "n_steps is 0"),
        ({"reward_scale": 0}, "reward_scale is 0"),
        ({"average": 2}, "average is 2"),
        ({"average": 1.0}, "average is 1; expected less"),
        ({"warm_start": 5}, "warm_start is 5; expected a run folder"),
        ({"learning_rate": "low"}, "learning_rate is 'low'"),
        ({"policy_kwargs": {"net_arch": [0]}}, "net_arch is 0"),
        ({"policy_kwargs": {"layers": [8]}}, "expected {'net_arch'"),
    ],
)
def test_bad_hyperparameters(changes, message):
    with pytest.raises(ValueError, match=message):
        Hyperparameters.read(changes)


def test_what_games_show_is_what_the_last_step_returned():
    for env_id in (TETRIS, GAME2048):
        envs, observations = played(env_id, {}, 9)
        shown = envs.unwrapped.observations()
        if env_id == TETRIS:
            assert shown.keys() == observations.keys()
        else:
            shown, observations = {"": shown}, {"": observations}
        for name, part in observations.items():
            np.testing.assert_array_equal(shown[name], part)


def test_a_checkpoint_of_games_that_are_no_games_is_refused():
    """What the games show follows from them, and is not taken from the file."""
    learner = Learner(config(), torch.device("cpu"))
    state = learner.state()
    games = state["games"].copy()
    games[3, QUEUE] = 9
    with pytest.raises(ValueError, match="state of game 3 has the queue 0x9"):
        learner.restore(0, state | {"games": games})
    learner.restore(0, state | {"observations": {"board": None, "piece": np.full(8, 1 << 40)}})
    np.testing.assert_array_equal(learner.observations["piece"], state["games"][:, QUEUE] & np.uint64(15))
    learner = Learner(config(GAME2048, {"rows": 2, "cols": 2}), torch.device("cpu"))
    state = learner.state()
    state["games"][5, board.CELLS :] = np.array([1, 2, 3, 4, 0, 0, 0, 0], np.uint8).view(np.uint64)
    with pytest.raises(ValueError, match="game 5 is over; expected games that are not over"):
        learner.restore(0, state)


def test_more_full_rows_than_a_piece_can_complete_pay_as_the_most_it_can():
    """Observations may show them, though no game does."""
    envs, observations = played(TETRIS, SMALL | {"reward": "score"}, 0)
    observations["board"][:, 4:] = 1
    table = tetris_afterstates(observations, envs.unwrapped.rules)
    assert set(table.rewards.tolist()) == {1240.0}


def test_a_goal_and_arrays_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="neither goal nor shaping"):
        Learner(config(GAME2048, {"goal": 64}), torch.device("cpu"))
    _, arrays = agent(TETRIS, SMALL)
    spec = {"env_id": TETRIS, "env_kwargs": config().env_kwargs, "network": {"gamma": 0.9, "inputs": INPUTS}}
    with pytest.raises(ValueError, match="expected float32 layers from 63 inputs to one value"):
        player(spec | {"env_kwargs": config(env_kwargs={"cols": 7}).env_kwargs}, arrays)
    with pytest.raises(ValueError, match="expected float32 layers from 54"):
        player(spec, {name: array for name, array in arrays.items() if name != "bias1"})
    for gamma in (None, float("nan"), 2):
        with pytest.raises(ValueError, match=f"gamma is {gamma}"):
            player(spec | {"network": {"gamma": gamma, "inputs": INPUTS}}, arrays)
    with pytest.raises(ValueError, match="expected float32 layers from 54"):
        player(spec, {name: array.astype(np.float64) for name, array in arrays.items()})
    with pytest.raises(ValueError, match="inputs are 'pixels'"):
        player(spec | {"network": {"gamma": 0.9, "inputs": "pixels"}}, arrays)


@pytest.mark.parametrize(("env_id", "kwargs", "guide"), [(TETRIS, SMALL, "tetris/bcts"), (GAME2048, {}, "2048/greedy")])
def test_a_guide_plays_first(env_id, kwargs, guide):
    """While the guide plays, the games are those that it plays alone; afterwards they are the network's."""
    learner = Learner(config(env_id, kwargs, guide=guide, guide_share=0.5), torch.device("cpu"))
    alone = make(guide).with_rules(learner.config.env_kwargs)
    decisions = []
    while learner.step < learner.config.timesteps:
        observations = learner.observations
        decisions.append((learner.decide().actions == alone.act(observations)).all())
        learner.learn()
    half = len(decisions) // 2
    assert all(decisions[:half])
    assert not any(decisions[half:])


def test_a_network_learns_what_the_play_of_its_guide_is_worth():
    """Against the mean return of games that the guide plays alone, from the start on."""
    changed = {"guide": "tetris/bcts", "guide_share": 1.0, "gamma": 0.9, "policy_kwargs": {"net_arch": [32]}}
    changed |= {"n_envs": 128, "n_steps": 16, "batch_size": 256}
    learner = Learner(config(timesteps=200_000, **changed), torch.device("cpu"))
    while learner.step < learner.config.timesteps:
        learner.learn()
    learner.step -= 1  # the guide still plays
    learner.envs = gym.make_vec(TETRIS, num_envs=512, **SMALL)
    learner.observations, _ = learner.envs.reset(seed=5)
    decided = learner.decide()
    found, returns = decided.rewards + np.float32(0.9) * decided.values, np.zeros(512)
    for step in range(60):
        learner.observations, rewards, *_ = learner.envs.step(learner.decide().actions)
        returns += 0.9**step * rewards
    assert found.mean() == pytest.approx(returns.mean(), rel=0.1)


def test_a_guide_that_plays_another_game_is_refused():
    with pytest.raises(ValueError, match="guide is 7; expected a player's name"):
        Learner(config(guide=7), torch.device("cpu"))
    with pytest.raises(ValueError, match="this player plays one of mergefall/Game2048-v0"):
        Learner(config(guide="2048/greedy"), torch.device("cpu"))


def test_a_guide_that_remembers_is_refused():
    with pytest.raises(ValueError, match="guide is '2048/random', which remembers"):
        Learner(config(GAME2048, {}, guide="2048/random"), torch.device("cpu"))


class FirstLegal:
    """Takes the first legal action, as a model of Stable-Baselines3 that knows masks."""

    def predict(self, observation, state=None, episode_start=None, deterministic=True, action_masks=None):
        return np.asarray(action_masks).argmax(axis=-1), None


def test_a_guide_may_be_a_model_of_another_library():
    register("2048/first-legal", FirstLegal)
    learner = Learner(config(GAME2048, {}, guide="2048/first-legal", guide_share=1.0), torch.device("cpu"))
    for _ in range(3):
        learner.learn()
    assert learner.step == 3 * len(learner.observations) * learner.hyperparameters.n_steps


def test_a_rollout_of_fatal_placements_alone_teaches_nothing():
    changes = {"n_envs": 1, "n_steps": 1, "batch_size": 1}
    learner = Learner(config(TETRIS, {"rows": 4, "cols": 4}, 200, **changes), torch.device("cpu"))
    while learner.step < 200:
        assert np.isfinite(learner.learn()["loss"])


class Stubborn(Player):
    """Always wants the same action, legal or not."""

    def predict(self, observation, state=None, episode_start=None, deterministic=True):
        return np.zeros(np.shape(board_of(observation))[:-2], np.int64), state


def test_an_illegal_action_of_a_guide_is_named():
    register("2048/stubborn", Stubborn)
    try:
        learner = Learner(config(GAME2048, {}, guide="2048/stubborn", guide_share=1.0), torch.device("cpu"))
        with pytest.raises(ValueError, match="guide '2048/stubborn' plays the illegal action 0"):  # noqa: PT012
            for _ in range(100):
                learner.learn()
    finally:
        del registry._FACTORIES["2048/stubborn"]
