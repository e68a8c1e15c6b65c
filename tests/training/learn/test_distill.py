"""Distillation learns a teacher's values on its own boards and resumes; MaskablePPO continues from what it learned."""

import re

import gymnasium as gym
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from mergefall_baselines import Player, make
from mergefall_training import evaluate
from mergefall_training.learn import player_maker, trainer
from mergefall_training.learn.distill.teachers import Teachers, gaps, soft_targets, specs_of, values_of
from mergefall_training.learn.distill.train import Learner, lambda_returns
from mergefall_training.learn.models import load_model
from mergefall_training.learn.run import Config, open_run, read_curve

G2048, TETRIS = "mergefall/Game2048-v0", "mergefall/Tetris-v0"
SMALL = {"rows": 2, "cols": 3, "reward": "log2"}
FIELD = {"cols": 4, "rows": 5, "preview": 0}
EXTRACTOR = {"channels": 16, "features_dim": 16}
NETWORK = {"features_extractor_class": "ranks-afterstates", "features_extractor_kwargs": EXTRACTOR, "net_arch": []}
QUICK = {"n_envs": 8, "n_steps": 4, "gradient_steps": 2, "batch_size": 32, "buffer_size": 128}
DISTILL = {"teacher": "2048/optimal", "policy_kwargs": NETWORK} | QUICK
AFTERSTATES = {"features_extractor_class": "board-afterstates", "net_arch": []}
OF_TETRIS = {"policy": "AfterstatesPolicy", "policy_kwargs": AFTERSTATES}


@pytest.fixture(autouse=True)
def _one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # sums are then added up in one order
    yield
    torch.set_num_threads(threads)


def distill(changed=None, timesteps=192, interval=64, env_id=G2048, env_kwargs=SMALL, cap=None):
    return Config("distill", env_id, env_kwargs, DISTILL | (changed or {}), timesteps, interval, 5, 0, cap)


def trained(folder, config, **how):
    """The last model of a run."""
    with open_run(folder, config, progress=False, **how) as run:
        trainer(config.algorithm).train(run)
    return load_model(folder / "model.npz")


def same(model, other):
    return model.arrays.keys() == other.arrays.keys() and all(
        np.array_equal(model.arrays[name], other.arrays[name]) for name in model.arrays
    )


def curve(folder):
    """A run's curve without its times."""
    return [(point.step, point.mean, point.figures) for point in read_curve(folder)]


# -- what is learned ---------------------------------------------------------------------------------------------------


def test_the_student_plays_nearly_as_its_teacher(tmp_path):
    """2×3 is solved: perfect play scores 480, random play less than half of it."""
    changed = {"n_envs": 32, "gradient_steps": 8, "batch_size": 256, "buffer_size": 4096, "exploration_rate": 0.5}
    trained(tmp_path / "run", distill(changed, timesteps=20_480, interval=20_480))
    ours = evaluate(make(str(tmp_path / "run"), model="last"), G2048, 200, env_kwargs=SMALL, workers=1, progress=False)
    best = evaluate("2048/optimal", G2048, 200, env_kwargs=SMALL, workers=1, progress=False)
    assert ours.mean().low > 0.55 * best.mean().value


@pytest.mark.parametrize("target", ["returns", "teacher"])
def test_tetris_is_distilled_too(tmp_path, target):
    changed = {"teacher": "tetris/bcts", "value_target": target, "n_envs": 32, "learning_rate": 0.005} | OF_TETRIS
    config = distill(changed, timesteps=12_800, interval=12_800, env_id=TETRIS, env_kwargs=FIELD, cap=60)
    trained(tmp_path / "run", config)
    player = make(str(tmp_path / "run"), model="last")
    ours = evaluate(player, TETRIS, 40, env_kwargs=FIELD, workers=1, max_episode_steps=200, progress=False)
    chance = evaluate("tetris/random", TETRIS, 40, env_kwargs=FIELD, workers=1, max_episode_steps=200, progress=False)
    assert np.mean([e.pieces for e in ours.episodes]) > 2 * np.mean([e.pieces for e in chance.episodes])


@pytest.mark.parametrize("normalize", [False, True])
def test_values_are_of_the_students_returns(tmp_path, normalize):
    """The value of the first board is the mean return of the student's games, in the unit that `normalize` says."""
    changed = {"normalize": normalize, "gae_lambda": 0.95, "n_steps": 16, "exploration_rate": 0.0, "gamma": 0.9}
    config = distill(changed | {"n_envs": 32, "vf_coef": 2.0}, timesteps=51_200, interval=51_200)
    with open_run(tmp_path / "run", config, progress=False) as run:
        learner = Learner(run.config, "cpu")
        with learner.teachers:
            while learner.step < 51_200:
                learner.learn()
    spec = {"env_id": G2048, "env_kwargs": SMALL, "algorithm": "maskable-ppo", "network": learner.network()}
    player = player_maker("distill")(spec, learner.arrays())
    env, found, expected = gym.make(G2048, **SMALL), [], []
    for seed in range(60):
        observation, _ = env.reset(seed=seed)
        found.append(player.board_values(observation).item())
        rewards, over = [], False
        while not over:
            observation, reward, over, _, _ = env.step(int(player.act(observation)))
            rewards.append(reward)
        expected.append(np.sum(rewards * 0.9 ** np.arange(len(rewards))))
    unit = np.sqrt(learner.envs.normalize.ret_rms.var) if normalize else 1.0
    assert abs(np.mean(found) * unit / np.mean(expected) - 1) < 0.25


def test_values_of_the_teacher_are_in_its_unit(tmp_path):
    """The optimal player values a board by the score to come."""
    changed = {"value_target": "teacher", "n_envs": 32, "vf_coef": 2.0, "gradient_steps": 8, "buffer_size": 4096}
    changed |= {"batch_size": 256, "exploration_rate": 0.5}
    trained(tmp_path / "run", distill(changed, timesteps=20_480, interval=20_480))
    player, teacher = make(str(tmp_path / "run"), model="last"), make("2048/optimal").with_rules(SMALL)
    envs = gym.make_vec(G2048, num_envs=256, **SMALL)
    boards, _ = envs.reset(seed=5)
    for _ in range(10):
        boards, *_ = envs.step(player.act(boards))
    going = np.isfinite(teacher.board_values(boards))
    ours, theirs = player.board_values(boards[going]), teacher.board_values(boards[going])
    assert np.corrcoef(ours, theirs)[0, 1] > 0.5
    assert abs(ours.mean() / theirs.mean() - 1) < 0.2


# -- going on ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("changed", [{}, {"value_target": "teacher", "teacher": ["2048/optimal", "2048/greedy"]}])
def test_a_run_that_was_killed_ends_where_an_unbroken_one_ends(tmp_path, monkeypatch, changed):
    whole = trained(tmp_path / "whole", distill(changed))
    for rounds in (2, 3):  # right after a checkpoint is due, and in between
        folder, calls = tmp_path / f"killed-{rounds}", []

        def dies(self, rounds=rounds, calls=calls, learn=Learner.learn):
            calls.append(1)
            if len(calls) > rounds:
                raise KeyboardInterrupt
            return learn(self)

        with monkeypatch.context() as patch:
            patch.setattr(Learner, "learn", dies)
            with pytest.raises(KeyboardInterrupt):
                trained(folder, distill(changed))
        assert same(trained(folder, distill(changed), resume=True), whole)
        assert curve(folder) == curve(tmp_path / "whole")


def test_a_checkpoint_that_does_not_fit_is_refused(tmp_path):
    trained(tmp_path / "run", distill())
    learner = Learner(distill(), "cpu")
    state = learner.state()
    for name, value in {"rounds": [[1, 2]], "random": torch.zeros(3, dtype=torch.uint8), "scales": [0.0]}.items():
        with pytest.raises((ValueError, TypeError, RuntimeError)):
            learner.restore(0, state | {name: value})


def test_maskable_ppo_goes_on_from_it(tmp_path):
    model = trained(tmp_path / "distill", distill())
    changed = {"policy": "MlpPolicy", "policy_kwargs": NETWORK, "n_envs": 4, "n_steps": 16, "batch_size": 32}
    changed["warm_start"] = str(tmp_path / "distill" / "model.npz")
    trained(tmp_path / "ppo", Config("maskable-ppo", G2048, SMALL, changed, 192, 64, episodes=5))
    first = read_curve(tmp_path / "ppo")[0]
    assert (first.step, first.mean) == (0, read_curve(tmp_path / "distill")[-1].mean)
    assert not same(load_model(tmp_path / "ppo" / "model.npz"), model)


# -- teachers ----------------------------------------------------------------------------------------------------------


def boards(count=24):
    envs = gym.make_vec(G2048, num_envs=count, **SMALL)
    found, infos = envs.reset(seed=3)
    for _ in range(8):
        found, *_, infos = envs.step(infos["action_mask"].argmax(axis=1))
    return found


def test_any_number_of_workers_gives_the_same_labels():
    seen = boards()
    expected = make("2048/optimal").with_rules(SMALL).values(seen)
    for workers in (1, 2):
        with Teachers(distill(), {"name": "2048/optimal"}, workers) as teachers:
            np.testing.assert_array_equal(teachers.values(seen, len(seen), 0), expected)


def test_each_teacher_of_a_list_has_an_equal_share_of_the_steps():
    seen, names = boards(), ["2048/optimal", "2048/greedy", {"name": "2048/expectimax", "depth": 2}]
    players = [make(**spec).with_rules(SMALL) for spec in specs_of(names)]
    teachers = Teachers(distill(timesteps=300), names)
    for step, number in ((0, 0), (99, 0), (100, 1), (199, 1), (200, 2), (299, 2), (320, 2)):
        np.testing.assert_array_equal(teachers.values(seen, len(seen), step), players[number].values(seen))


VALUES = st.lists(st.lists(st.floats(-1e6, 1e6) | st.just(-np.inf), min_size=4, max_size=4), min_size=1, max_size=6)


@given(VALUES, st.floats(1e-3, 1e6))
def test_targets_are_chances_that_follow_the_values(rows, temperature):
    values = np.array(rows)
    legal = np.isfinite(values) | (np.arange(4) == 0)
    targets = soft_targets(values, legal, temperature)
    assert targets.dtype == np.float32
    np.testing.assert_allclose(targets.sum(axis=1), 1, rtol=1e-5)
    assert not targets[~legal].any()
    for row, chances, allowed in zip(values, targets, legal, strict=True):
        if not np.isfinite(row[allowed]).any():
            np.testing.assert_allclose(chances[allowed], 1 / allowed.sum())
            continue
        order = np.argsort(row[allowed])
        assert (np.diff(chances[allowed][order]) >= -1e-6).all()
        finite = np.flatnonzero(np.isfinite(row) & (chances > 1e-20))
        for a in finite:
            for b in finite:
                assert np.isclose(
                    np.log(chances[a] / chances[b]), (row[a] - row[b]) / temperature, rtol=1e-3, atol=1e-3
                )


def test_gaps_leave_out_boards_with_one_move():
    values = np.array([[3.0, -np.inf, 1.0], [2.0, -np.inf, -np.inf], [-np.inf] * 3, [5.0, 5.0, 0.0]])
    np.testing.assert_array_equal(gaps(values), [2.0, 0.0])


def test_the_temperature_is_of_the_teachers_gaps():
    learner = Learner(distill({"gap_share": 0.5}), "cpu")
    learner.learn()
    seen = learner.rounds[0].observations
    expected = 0.5 * np.median(gaps(make("2048/optimal").with_rules(SMALL).values(seen)))
    assert learner._temperature(np.full((1, 4), -np.inf)) == pytest.approx(expected)
    fixed = Learner(distill({"temperature": 7.0}), "cpu")
    assert fixed._temperature(np.array([[1.0, 100.0]])) == 7.0


def test_lambda_returns_are_weighted_sums_of_n_step_returns():
    """By the definition: (1 − λ) Σ λⁿ⁻¹ Gₙ, with the last return taking the rest of the weight."""
    rng, gamma, lam, steps = np.random.default_rng(1), 0.9, 0.7, 7
    rewards, values = rng.random((steps, 40)), rng.random((steps + 1, 40))
    terminated = rng.random((steps, 40)) < 0.15
    truncated = (rng.random((steps, 40)) < 0.1) & ~terminated
    found = lambda_returns(rewards, values, terminated, truncated, gamma, lam)
    for game in range(40):
        for start in range(steps):
            returns, total = [], 0.0
            for n, t in enumerate(range(start, steps)):
                if truncated[t, game]:  # the value of the state before stands for all that would have come
                    returns.append(total + gamma**n * values[t, game])
                    break
                total += gamma**n * rewards[t, game]
                if terminated[t, game]:
                    returns.append(total)
                    break
                returns.append(total + gamma ** (n + 1) * values[t + 1, game])
            weights = [(1 - lam) * lam**n for n in range(len(returns) - 1)]
            weights.append(1 - sum(weights))
            assert found[start, game] == pytest.approx(np.dot(weights, returns))


# -- bad input ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"teacher": "2048/nobody"}, "there is no player '2048/nobody'"),
        ({"teacher": {"depth": 2}}, "teacher is {'depth': 2}; expected a player's name, a mapping"),
        ({"teacher": []}, "teacher is []; expected a player's name"),
        ({"teacher": ["2048/optimal", 3]}, "teacher is ['2048/optimal', 3]; expected a player's name"),
        ({"teacher": "tetris/bcts"}, "expected one of mergefall/Tetris-v0"),
        ({"temperature": 0}, "temperature is 0; expected a finite number above 0"),
        ({"exploration_rate": 2}, "exploration_rate is 2; expected a finite number from 0 up to 1"),
        ({"value_target": "score"}, "value_target is 'score'; expected one of 'returns', 'teacher'"),
        ({"learning_rate": "low"}, "learning_rate is 'low'; expected a number"),
        ({"policy": "None"}, "policy is 'None'"),
        ({"workers": 0}, "workers is 0; expected an integer"),
        ({"lam": 1}, "distill has no 'lam'; it has"),
    ],
)
def test_what_cannot_be_learnt_is_refused_before_a_run_begins(changed, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        trainer("distill").check(distill(changed))


def test_a_teacher_without_values_is_refused(tmp_path):
    trained(tmp_path / "run", distill())
    trainer("distill").check(distill({"teacher": str(tmp_path / "run")}))  # an agent's preferences are values
    with pytest.raises(ValueError, match="teacher: player does not value actions; it only chooses one"):
        values_of(Player(), boards())
