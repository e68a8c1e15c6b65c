"""Evolved weights: updates against a plain twin, learning, resuming, and players that are `tetris/greedy` or search."""

import subprocess
import sys
from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import pytest
from mergefall.tetris import HEURISTICS
from mergefall_baselines import make
from mergefall_training.learn.afterstate.inputs import INPUTS, tetris_inputs
from mergefall_training.learn.afterstate.player import player as player_of_network
from mergefall_training.learn.evolution.player import LOST, names_of, player
from mergefall_training.learn.evolution.train import Learner
from mergefall_training.learn.models import load_model, save_model
from mergefall_training.learn.presets import configure
from mergefall_training.learn.run import Config, begun, train

from .small_runs import CMA_ES, TETRIS, random_layers

SMALL = {"cols": 6, "rows": 8, "preview": 0}


def config(timesteps=8000, interval=1600, episodes=2, cap=60, env_kwargs=SMALL, **changes):
    return Config("cma-es", TETRIS, env_kwargs, CMA_ES | changes, timesteps, interval, episodes, 0, cap)


def test_it_finds_the_best_direction():
    aim, learner = np.eye(8)[2] - np.eye(8)[5], begun(config(population=20))
    before = np.random.get_state()[1].copy()  # noqa: NPY002 (the library draws from there by default)
    for _ in range(60):
        drawn = learner.draw()
        learner.take(drawn, (learner._scaled(np.array(drawn)) @ aim).tolist())
    assert learner._scaled(learner.gaussian.mean) @ aim > 0.99 * 2**0.5
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_learns_to_clear_lines(tmp_path):
    before, after = train(tmp_path, config(60_000, 60_000, 20, 1000, population=30), progress=False).points
    assert before.mean < 1  # all placements are worth the same
    assert after.mean > 30


def test_pieces_are_those_of_greedy_players_on_common_fresh_games():
    learner = begun(config())
    candidates = learner._scaled(np.array([[-1.0] * 8, [0.0, 1, -1, -1, -4, -1, 0, 0]]))
    for generation in (0, 3):
        learner.values = [[0.0] * 12] * generation
        for weights, pieces in zip(candidates, learner.play(candidates), strict=True):
            bcts = HEURISTICS["bcts"]
            mine = make("tetris/greedy", heuristic=replace(bcts, **dict(zip(names_of(bcts), weights, strict=True))))
            seeds = [1_000_000 + 2 * generation + k for k in range(2)]
            assert pieces.tolist() == [len(mine.play(TETRIS, seed, SMALL, 60)) for seed in seeds]


def test_threads_make_no_difference():
    one, two = (begun(config(threads=threads)) for threads in (1, 3))
    for _ in range(4):
        assert one.learn() == two.learn()
    np.testing.assert_array_equal(one.gaussian.mean, two.gaussian.mean)


def test_the_model_is_a_running_mean():
    learner, expected = begun(config(averaging=3)), np.zeros(8)
    for generation in range(1, 6):
        learner.learn()
        share = 1 / min(generation, 3)
        expected = (1 - share) * expected + share * learner._scaled(learner.gaussian.mean)
        weights = learner.arrays()["weights"]
        np.testing.assert_allclose(weights * np.linalg.norm(expected), expected)


def test_an_error_in_a_game_is_told(monkeypatch):
    learner = begun(config(threads=2))
    monkeypatch.setattr("mergefall_baselines.tetris.greedy.Greedy.play", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        learner.learn()


@pytest.mark.parametrize(("depth", "kind"), [(1, "tetris/greedy"), (2, "tetris/expectimax")])
def test_a_run_folder_plays_with_its_weights(tmp_path, depth, kind):
    train(tmp_path, config(1000, depth=depth), progress=False)
    agent, weights = make(str(tmp_path), model="last"), load_model(tmp_path / "model.npz").arrays["weights"]
    assert weights.shape == (8,)
    assert np.linalg.norm(weights) == pytest.approx(1)
    spec = {"name": "bcts", **dict(zip(HEURISTICS["bcts"].term_names, weights.tolist(), strict=True))}
    expected = make(kind, heuristic=spec, **({} if depth == 1 else {"depth": depth, "lost": LOST}))
    kwargs = {"cols": 5, "rows": 6, "preview": 0, "overflow": "clear_first"}  # others than it was trained by
    for seed in range(3):
        games = [one.with_rules(kwargs).play(TETRIS, seed, kwargs, 50).actions.tolist() for one in (agent, expected)]
        assert games[0] == games[1]


def test_a_player_imports_no_learner(tmp_path):
    train(tmp_path, config(1000), progress=False)
    code = f"""
import sys
from mergefall_baselines import make
make({str(tmp_path)!r}).play({TETRIS!r}, 0, {SMALL!r}, 5)
print([name for name in ('torch', 'cma', 'stable_baselines3') if name in sys.modules])
"""
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_a_model_that_does_not_fit_is_refused():
    learner = begun(config())
    spec = {"env_id": TETRIS, "env_kwargs": learner.config.env_kwargs, "network": learner.network()}
    assert player(spec, learner.arrays()).defaults["placements"] == "drop"
    for network, arrays in (
        (spec["network"], {}),
        (spec["network"], {"weights": np.zeros(9)}),
        (spec["network"], {"weights": learner.arrays()["weights"].astype(np.float32)}),
        (spec["network"], learner.arrays() | {"more": np.zeros(9)}),
        ({**spec["network"], "names": ["holes"]}, learner.arrays()),
    ):
        with pytest.raises(ValueError, match="a model's weights are"):
            player({**spec, "network": network}, arrays)


# -- the last layer of a network ---------------------------------------------------------------------------------------


def network_file(folder, units=(5, 4), env_kwargs=SMALL):
    """A model file of an untrained network, as `afterstate` writes it."""
    kwargs = configure("afterstate", TETRIS, env_kwargs=env_kwargs).env_kwargs
    arrays = random_layers(tetris_inputs(kwargs["cols"]), *units, 1)
    network = {"gamma": 0.9, "inputs": INPUTS}
    spec = {"algorithm": "afterstate", "env_id": TETRIS, "env_kwargs": kwargs, "network": network}
    save_model(file := str(folder / "model.npz"), spec, arrays)
    return file, spec, arrays


def test_candidates_of_a_network_differ_in_its_last_layer(tmp_path):
    file, spec, arrays = network_file(tmp_path)
    learner = begun(config(warm_start=file, spread=0.2))
    np.testing.assert_equal(learner.arrays(), arrays)  # the model begins as the network
    change = np.arange(1.0, 5.0)
    found, before = learner.arrays_of(change), arrays["weight2"][0]
    np.testing.assert_allclose(found["weight2"][0], before + np.sqrt((before**2).mean()) * change, rtol=1e-5)
    np.testing.assert_equal(found | {"weight2": 0}, arrays | {"weight2": 0})
    deviations = np.array(learner.draw())
    assert deviations.shape == (12, 4)
    assert 0.1 < deviations.std() < 0.4
    pieces = learner.play(np.stack([np.zeros(4), change]))
    for i, parameters in enumerate((arrays, found)):
        plain = player_of_network(spec, parameters)
        assert pieces[i].tolist() == [len(plain.play(TETRIS, 1_000_000 + k, SMALL, 60)) for k in range(2)]


def test_evolution_goes_on_from_the_network_that_it_began_with(tmp_path, monkeypatch):
    """Also if the run that it came from has gone on, or is gone."""
    file, spec, arrays = network_file(tmp_path)
    again = config(4000, warm_start=file)
    train(tmp_path / "whole", again, progress=False)
    with monkeypatch.context() as patch:
        patch.setattr(Learner, "play", Mock(side_effect=KeyboardInterrupt))  # after the first checkpoint
        with pytest.raises(KeyboardInterrupt):
            train(tmp_path / "part", again, progress=False)
    save_model(file, spec, {name: array + 1 for name, array in arrays.items()})
    train(tmp_path / "part", again, resume=True, progress=False)
    models = [load_model(tmp_path / name / "model.npz").checksum for name in ("whole", "part")]
    assert models[0] == models[1]


@pytest.mark.parametrize(
    ("units", "reward", "changes", "message"),
    [
        (
            (5, 4),
            "lines",
            {"env_kwargs": {**SMALL, "cols": 5}},
            "'cols': 6,.* a hidden layer, .*'cols': 5",
        ),
        ((), "lines", {}, "with a hidden layer"),
        ((5, 4), "lines", {"depth": 3}, "depth is 3; a network plays without search"),
        ((5, 4), "score", {}, r"'reward': 'score'\}; expected one of afterstate .*'reward': 'lines'"),
    ],
)
def test_a_network_that_does_not_fit_is_refused(tmp_path, units, reward, changes, message):
    file, _, _ = network_file(tmp_path, units, SMALL | {"reward": reward})
    with pytest.raises(ValueError, match=message):
        begun(config(warm_start=file, **changes))
