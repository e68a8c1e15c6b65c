"""Cloning learns the teacher's moves, goes on where it stopped, and MaskablePPO goes on from it."""

import gymnasium as gym
import minari
import numpy as np
import pytest
from mergefall_baselines import make
from mergefall_training import evaluate
from mergefall_training.learn import player_maker, trainer
from mergefall_training.learn.clone import train as cloning
from mergefall_training.learn.clone.demonstrations import demonstrate
from mergefall_training.learn.models import load_model
from mergefall_training.learn.run import Config, open_run, read_curve
from mergefall_training.play.starts import collect_starts
from mergefall_training.wrappers.wrapping import wrapped

from tests.training.learn.small_runs import FIELD, G2048, SMALL, TETRIS, same, trained

NETWORK = {"features_extractor_class": "ranks-conv", "features_extractor_kwargs": {"channels": 16}, "net_arch": []}
CLONE = {"teacher": {"name": "2048/optimal"}, "games": 30, "batch_size": 64, "policy_kwargs": NETWORK}
PPO = {"policy": "MlpPolicy", "policy_kwargs": NETWORK, "n_envs": 4, "n_steps": 16, "batch_size": 32}


def clone(changed=None, timesteps=600, interval=200, env_id=G2048, env_kwargs=SMALL):
    return Config("clone", env_id, env_kwargs, CLONE | (changed or {}), timesteps, interval, episodes=5)


def ppo(changed=None, timesteps=192):
    return Config("maskable-ppo", G2048, SMALL, PPO | (changed or {}), timesteps, 64, episodes=5)


def test_the_teachers_moves_are_learnt(tmp_path):
    trained(tmp_path / "run", clone({"learning_rate": 0.005}, timesteps=20_000, interval=20_000))
    points = read_curve(tmp_path / "run")
    assert points[-1].step == 20_000
    assert points[0].figures["matched"] < 0.5 < 0.65 < points[-1].figures["matched"]
    player = make(str(tmp_path / "run"))
    ours = evaluate(player, G2048, 40, env_kwargs=SMALL, workers=1, progress=False)
    chance = evaluate("2048/random", G2048, 40, env_kwargs=SMALL, workers=1, progress=False)
    assert ours.mean().low > chance.mean().high


def test_tetris_is_cloned_too(tmp_path):
    settings = {"teacher": "tetris/bcts", "games": 4, "policy": "MultiInputPolicy", "learning_rate": "lin_0.003"}
    settings["policy_kwargs"] = {"features_extractor_class": "board-conv", "net_arch": []}
    config = clone(settings, timesteps=3000, interval=1500, env_id=TETRIS, env_kwargs=FIELD)
    trained(tmp_path / "run", config)
    points = read_curve(tmp_path / "run")
    assert points[-1].figures["matched"] > 2 * max(points[0].figures["matched"], 0.05)


def test_a_run_that_was_killed_ends_where_an_unbroken_one_ends(tmp_path, monkeypatch):
    whole = trained(tmp_path / "whole", clone())
    for steps in (4, 7):  # right after a checkpoint is due, and in between
        folder, calls = tmp_path / f"killed-{steps}", []

        def dies(*arguments, steps=steps, calls=calls, learn=cloning.learn):
            calls.append(1)
            if len(calls) > steps:
                raise KeyboardInterrupt
            return learn(*arguments)

        with monkeypatch.context() as patch:
            patch.setattr(cloning, "learn", dies)
            with pytest.raises(KeyboardInterrupt):
                trained(folder, clone())
        assert same(trained(folder, clone(), resume=True), whole)
        curves = [
            [(point.step, point.mean, point.figures) for point in read_curve(run)]
            for run in (folder, tmp_path / "whole")
        ]
        assert curves[0] == curves[1]


def test_a_dataset_teaches_what_its_player_does(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "datasets"))
    name = demonstrate("2048/optimal", G2048, 30, env_kwargs=SMALL, progress=False)
    straight = trained(tmp_path / "straight", clone())
    changed = {"teacher": None, "dataset": name}
    assert same(trained(tmp_path / "dataset", clone(changed)), straight)
    for kwargs, message in (
        (SMALL | {"rows": 3}, "rows is 2 in .*; expected 3"),
        (SMALL | {"reward": "score"}, "reward is 'log2' in .*; expected the run's, or vf_coef=0"),
        (SMALL | {"shaping": {"potential": "nneonneo", "gamma": 0.99}}, "shaping is None in .*; expected the run's"),
    ):
        with pytest.raises(ValueError, match=message):
            trained(tmp_path / message[:5], clone(changed | {"gamma": 0.99}, env_kwargs=kwargs))


def test_a_run_does_not_go_on_with_other_games(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "datasets"))
    name = demonstrate("2048/optimal", G2048, 30, env_kwargs=SMALL, progress=False)
    config = clone({"teacher": None, "dataset": name})
    trained(tmp_path / "run", config)
    minari.delete_dataset(name)
    assert demonstrate("2048/random", G2048, 30, env_kwargs=SMALL, dataset=name, progress=False) == name
    with pytest.raises(ValueError, match=f"'{name}' has other games than when the run began"):
        trained(tmp_path / "run", config, resume=True)


def test_returns_are_those_from_each_time_on():
    rewards, gamma = np.random.default_rng(0).random(9), 0.9
    expected = [sum(gamma ** (k - t) * rewards[k] for k in range(t, 9)) for t in range(9)]
    np.testing.assert_allclose(cloning.discounted(rewards, gamma), expected)


@pytest.mark.parametrize("normalize", [False, True])
def test_values_are_of_the_teachers_returns(tmp_path, normalize):
    config = clone({"normalize": normalize, "learning_rate": 0.003}, timesteps=8000, interval=8000)
    h = cloning.Hyperparameters.read(config.hyperparameters)
    learnt, _, (factor, shift), unit = cloning.moves_of(config, h)
    games = list(cloning._teacher_games(config, h, False))[3:]
    returns = np.concatenate([cloning.discounted(game.rewards, 0.99) for game in games])
    assert unit == pytest.approx(returns.std(), rel=0.05) if normalize else unit == 1  # of all games, and of these
    np.testing.assert_allclose((learnt.returns * factor + shift) * unit, returns, rtol=0.05)
    model = trained(tmp_path / "run", config)
    player = player_maker("clone")(model.spec, model.arrays)
    values = player.board_values(learnt.observations)  # in units of the reward
    assert np.corrcoef(values, returns)[0, 1] > 0.8
    assert abs(values.mean() / returns.mean() - 1) < 0.1
    assert player.gamma == 0.99


def test_illegal_actions_are_not_learnt(monkeypatch):
    config = clone()
    h = cloning.Hyperparameters.read(config.hyperparameters)
    games = list(cloning._teacher_games(config, h, False))
    whole, _, _, _ = cloning.moves_of(config, h)
    illegal = []
    for game in games:
        found = np.argwhere(game.masks[:-1] == 0)[::2]
        game.actions[found[:, 0]] = found[:, 1]
        legal = game.masks[np.arange(len(game)), game.actions] == 1
        illegal.append(~legal)
    monkeypatch.setattr(cloning, "_games", lambda *_: games)
    kept, held_out, _, _ = cloning.moves_of(config, h)
    left = ~np.concatenate(illegal[3:])
    assert 0 < left.sum() < len(whole)
    np.testing.assert_array_equal(kept.observations, whole.observations[left])
    np.testing.assert_array_equal(kept.actions, whole.actions[left])
    np.testing.assert_array_equal(kept.returns, whole.returns[left])
    assert held_out.masks[np.arange(len(held_out)), held_out.actions].all()
    for game in games:
        game.actions[:] = game.masks[:-1].argmin(1)
        game.masks[np.arange(len(game)), game.actions] = 0
    with pytest.raises(ValueError, match=r"the teacher chose \d+ illegal actions and no legal one"):
        cloning.moves_of(config, h)


def test_every_pass_has_every_move_once_wherever_it_is_taken_up():
    def all_from(step):
        return np.concatenate(list(cloning.batches(50, 8, 3, step, 150)))

    whole = all_from(0)
    for turn in range(3):
        assert sorted(whole[50 * turn : 50 * (turn + 1)]) == list(range(50))
    assert (whole[:50] != whole[50:100]).any()
    for step in (1, 50, 77, 149):
        assert (all_from(step) == whole[step:]).all()


def test_maskable_ppo_goes_on_from_a_clone(tmp_path):
    model = trained(tmp_path / "clone", clone())
    changed = {"warm_start": str(tmp_path / "clone" / "model.npz")}
    with open_run(tmp_path / "ppo", ppo(changed), progress=False) as run:
        trainer("maskable-ppo").train(run)
    first = read_curve(tmp_path / "ppo")[0]
    assert (first.step, first.mean) == (0, read_curve(tmp_path / "clone")[-1].mean)
    assert not same(load_model(tmp_path / "ppo" / "model.npz"), model)
    other = ppo(changed | {"policy_kwargs": {"net_arch": [32]}})
    with pytest.raises(ValueError, match="warm_start: policy_kwargs is"):
        trained(tmp_path / "other", other)
    deep_q = {
        "policy": "MlpPolicy",
        "policy_kwargs": NETWORK,
        "warm_start": changed["warm_start"],
        "learning_starts": 0,
    }
    with pytest.raises(ValueError, match="does not fit the network of dqn"):
        trained(tmp_path / "dqn", Config("dqn", G2048, SMALL, deep_q, 10, 10))


@pytest.mark.parametrize("way", ["regret", "adversary", "starts"])
def test_wrapped_training_goes_on_where_it_stopped(tmp_path, way):
    collect_starts("2048/greedy", G2048, 3, every=4, env_kwargs=SMALL, out=tmp_path / "starts.npz")
    arguments = {
        "regret": {"player": "2048/greedy", "keep": 0.1},
        "adversary": {"player": {"name": "2048/minimax", "depth": 1}, "rate": 0.5},
        "starts": {"path": str(tmp_path / "starts.npz")},
    }
    config = ppo({"env_wrapper": [{way: arguments[way]}]})
    whole = trained(tmp_path / "whole", config)
    assert not same(whole, trained(tmp_path / "plain", ppo()))
    with open_run(tmp_path / "stopped", config, progress=False) as run:
        keep, run.save_checkpoint = run.save_checkpoint, lambda step, state: stop(keep, step, state)

        def stop(keep, step, state):
            keep(step, state)
            if step == 128:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            trainer(config.algorithm).train(run)
    assert same(trained(tmp_path / "stopped", config, resume=True), whole)


def test_what_makes_no_sense_is_refused(tmp_path):
    for k, (changed, message) in enumerate(
        (
            ({"teacher": None}, "expected one of them"),
            ({"dataset": "a-v0"}, "expected one of them"),
            ({"holdout": 2}, "holdout is 2"),
            ({"holdout": 1.0}, "expected some to learn from"),
            ({"gamma": "0.9"}, "gamma is '0.9'"),
            ({"n_envs": 4}, "clone has no 'n_envs'"),
            ({"policy": "CnnRnn"}, "policy is 'CnnRnn'"),
            ({"teacher": "tetris/bcts"}, "plays|expected|no environment|env_id"),
        )
    ):
        with pytest.raises(ValueError, match=message):
            trained(tmp_path / str(k), clone(changed))


def test_wrappers_that_make_no_sense_are_refused():
    env = gym.make(G2048)
    for specs, message in (
        ("fear", "env_wrapper is 'fear'; expected"),
        ([{"regret": {"player": "2048/greedy"}, "starts": {}}], "env_wrapper is"),
        ([{"regret": 3}], "env_wrapper is"),
        ([{"regret": {"teacher": "2048/greedy"}}], "'regret' does not take"),
        ("adversary", "'adversary' does not take"),
    ):
        with pytest.raises(ValueError, match=message):
            wrapped(env, specs)
    assert wrapped(env, None) is env
