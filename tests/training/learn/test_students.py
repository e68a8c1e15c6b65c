"""Learners with a teacher: its labels, distillation, kickstarting, and how well their students play."""

import gymnasium as gym
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from mergefall_baselines import Player, make
from mergefall_baselines.registry import player_of
from mergefall_training import evaluate
from mergefall_training.learn import trainer
from mergefall_training.learn.models import save_model
from mergefall_training.learn.presets import configure, presets_of
from mergefall_training.learn.run import Config, begun, train
from mergefall_training.learn.sb3 import train as sb3
from mergefall_training.learn.sb3.networks import parameters_of
from mergefall_training.learn.teachers import Teachers, gaps, soft_targets
from stable_baselines3.common.logger import configure as configure_logger

from tests.training.learn.small_runs import (
    G2048,
    KEYS,
    KEYS_FIELD,
    LEARNERS,
    NETWORK,
    OF_TETRIS,
    SMALL,
    TETRIS,
    small,
)


def learner_of(config):
    return trainer(config.algorithm).Learner(config, "cpu")


def rollout(model):
    """One rollout, from which nothing is learnt."""
    _, callback = model._setup_learn(1)
    model.collect_rollouts(model.env, callback, model.rollout_buffer, model.n_steps)
    return model.rollout()


@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_moves_are_drawn_or_the_most_probable(rate):
    model = learner_of(small("distill", {"n_envs": 64, "exploration_rate": rate})).model
    steps, *boards = rollout(model)
    with torch.no_grad():
        log_probs = model.outputs(*boards)[0]
    chosen = steps.actions.flatten()
    torch.testing.assert_close(log_probs.gather(1, chosen[:, None])[:, 0], steps.old_log_prob)
    assert (steps.action_masks[torch.arange(len(chosen)), chosen] == 1).all()
    assert (chosen == log_probs.argmax(dim=1)).all() == (rate == 0.0)


# -- going on ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", LEARNERS)
def test_a_checkpoint_that_does_not_fit_is_refused(algorithm):
    learner = learner_of(small(algorithm))
    state = learner.state()
    wrong = {"random": {}, "games": {}, "teachers": [0.0]}
    for name, value in wrong.items():
        with pytest.raises((ValueError, TypeError, RuntimeError, LookupError)):
            learner.restore(0, state | {name: value})


LEARNING = {
    "distill": {"n_envs": 128, "batch_size": 256, "buffer_size": 4096, "gradient_steps": 8, "exploration_rate": 0.5},
    "kickstart": {
        "n_envs": 32,
        "n_steps": 8,
        "n_epochs": 4,
        "batch_size": 64,
        "learning_rate": "lin_0.01",
        "kickstart_share": 1.0,
        "kickstart_coef": 10.0,
    },
}


@pytest.mark.parametrize("algorithm", ["distill", pytest.param("kickstart", marks=pytest.mark.slow)])
def test_the_student_plays_nearly_as_its_teacher(tmp_path, algorithm):
    """2×3 is solved: perfect play scores 480, random play less than half of it."""
    train(tmp_path, small(algorithm, LEARNING[algorithm], timesteps=20_480, interval=20_480), progress=False)
    player = make(str(tmp_path), model="last")
    assert evaluate(player, G2048, 200, env_kwargs=SMALL, workers=1, progress=False).mean().low > 0.55 * 480


# -- teachers ----------------------------------------------------------------------------------------------------------


def teachers_of(teacher, gap_share=0.3, workers=1, config=None):
    return Teachers(config or small("distill", timesteps=300), teacher, gap_share, workers, taught=1.0)


def boards():
    envs = gym.make_vec(G2048, num_envs=24, **SMALL)
    found, infos = envs.reset(seed=3)
    for _ in range(8):
        found, *_, infos = envs.step(infos["action_mask"].argmax(axis=1))
    return found


def test_an_agent_teaches_on_threads_by_the_rules_of_the_run():
    """Its own rules, those that it was trained by, have 40 actions in place of 120 here."""
    config = small("distill", OF_TETRIS, env_id=TETRIS, env_kwargs={"cols": 10, "rows": 5, "placements": "slide"})
    seen, _ = gym.make_vec(TETRIS, num_envs=6, **config.env_kwargs).reset(seed=0)
    expected = make("tetris/cross-entropy").with_rules(config.env_kwargs).values(seen)
    assert expected.shape == (6, 120)
    teachers = teachers_of("tetris/cross-entropy", workers=2, config=config)
    np.testing.assert_array_equal(teachers.values(seen, 0), expected)


def test_each_teacher_of_a_list_has_an_equal_share_of_the_steps():
    seen, names = boards(), ["2048/optimal", "2048/greedy", {"name": "2048/expectimax", "depth": 2}]
    players = [player_of(name).with_rules(SMALL) for name in names]
    teachers = teachers_of(names)
    for step, number in ((0, 0), (99, 0), (100, 1), (199, 1), (200, 2), (299, 2), (320, 2)):
        np.testing.assert_array_equal(teachers.values(seen, step), players[number].values(seen))


VALUES = st.lists(st.lists(st.floats(-1e6, 1e6) | st.just(-np.inf), min_size=4, max_size=4), min_size=1, max_size=6)


@given(VALUES, st.floats(1e-3, 1e6))
def test_targets_are_chances_that_follow_the_values(rows, temperature):
    values = np.array(rows)
    legal = np.isfinite(values) | (np.arange(4) == 0)
    targets = soft_targets(values, legal, temperature)
    assert targets.dtype == np.float32
    for row, chances, allowed in zip(values, targets, legal, strict=True):
        shares = np.exp((row - row.max()) / temperature) if np.isfinite(row).any() else allowed
        np.testing.assert_allclose(chances, shares / shares.sum(), rtol=1e-3, atol=1e-20)


def test_gaps_leave_out_boards_with_one_move():
    values = np.array([[3.0, -np.inf, 1.0], [2.0, -np.inf, -np.inf], [-np.inf] * 3, [5.0, 5.0, 0.0]])
    np.testing.assert_array_equal(gaps(values), [2.0, 0.0])


def test_the_temperature_is_of_the_teachers_gaps():
    seen, legal = boards(), np.ones((24, 4), bool)
    teachers = teachers_of("2048/optimal", gap_share=0.5)
    targets, values = teachers.targets(seen, legal, 0), teachers.values(seen, 0)
    expected = 0.5 * np.median(gaps(values))
    assert teachers.temperature == pytest.approx(expected)
    np.testing.assert_array_equal(targets, soft_targets(values, legal, expected))


def test_the_temperature_starts_anew_with_each_teacher():
    seen, legal = boards(), np.ones((24, 4), bool)
    both = teachers_of(["2048/optimal", {"name": "2048/expectimax", "depth": 1}])
    both.targets(seen, legal, 0)
    both.targets(seen, legal, 150)
    alone = teachers_of({"name": "2048/expectimax", "depth": 1})
    alone.targets(seen, legal, 0)
    assert both.temperature == alone.temperature


@pytest.mark.parametrize(
    ("algorithm", "env_id", "name"), [(one, *found[:2]) for one in LEARNERS for found in presets_of(one)]
)
def test_the_teachers_of_the_presets_need_the_observation_alone(algorithm, env_id, name):
    config = configure(algorithm, env_id, preset=name)
    jobs = teachers_of(config.hyperparameters["teacher"], config=config).jobs
    assert jobs
    assert all(job.player.start(0) is None or job.player.caches for job in jobs)


@pytest.mark.slow  # to compile
def test_a_player_that_caches_plays_the_same_game_if_it_is_asked_about_single_boards():
    """`tetris/keys` remembers its route; without it, it finds one of as many keys to the same place."""
    ours, theirs = (gym.make_vec(KEYS, num_envs=16, **KEYS_FIELD) for _ in range(2))
    player, state = make("tetris/keys", placements="drop", **KEYS_FIELD), None
    seen, others = (envs.reset(seed=0)[0] for envs in (ours, theirs))
    for _ in range(150):
        keys, state = player.predict(seen, state)
        seen, *_, infos = ours.step(keys)
        others, *_, their_infos = theirs.step(player.values(others).argmax(axis=1))
        np.testing.assert_array_equal(seen["board"], others["board"])
    assert infos["lines"].sum() == their_infos["lines"].sum() > 0


class FirstLegal(Player):
    def predict(self, observation, state=None, episode_start=None, deterministic=True, action_masks=None):
        return np.flatnonzero(action_masks)[0], state


def test_a_player_without_values_cannot_teach():
    with pytest.raises(ValueError, match="teacher: player does not value actions; it only chooses one"):
        teachers_of(FirstLegal()).check(boards())


# -- distillation ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "unit"), [({}, 20.0), ({"env_kwargs": {**SMALL, "reward": "score"}}, 1.0), ({"unit": 1.0}, 1.0)]
)
def test_a_value_head_is_taken_over_with_its_unit_if_that_is_known(tmp_path, changed, unit):
    """Else rewards would be many times too large for it, until the run has found the unit itself."""
    first = saved(tmp_path / "model.npz", **changed).arrays()["value_net.weight"]
    taken = {"warm_start": str(tmp_path / "model.npz")}
    on_policy = {"policy": "MlpPolicy", "policy_kwargs": NETWORK, "n_envs": 4, "n_steps": 16, "batch_size": 32}
    ppo = Config("maskable-ppo", G2048, SMALL, on_policy | taken | {"normalize": True}, 192, 64)
    for config in (ppo, small("distill", taken)):
        learner = begun(config, "cpu")
        assert learner.network()["reward_unit"] == pytest.approx(unit, rel=1e-3)
        assert np.array_equal(learner.arrays()["value_net.weight"], first) == (unit == 20.0)


def saved(path, env_kwargs=None, unit=20.0):
    """A learner whose model is in a file, with the unit of its rewards."""
    learner = learner_of(small("distill"))
    learner.model.policy.value_net.weight.data += 1
    network = learner.network() | {"reward_unit": unit}
    spec = {"algorithm": "distill", "env_id": G2048, "env_kwargs": env_kwargs or learner.config.env_kwargs}
    save_model(path, spec | {"network": network}, learner.arrays())
    return learner


# -- kickstarting ------------------------------------------------------------------------------------------------------

PPO = {
    "n_envs": 8,
    "n_steps": 4,
    "batch_size": 32,
    "n_epochs": 1,
    "gamma": 0.9,
    "clip_range": 0.1,
    "ent_coef": 0.05,
    "gae_lambda": 0.8,
    "vf_coef": 0.7,
    "max_grad_norm": 0.3,
    "mixed_precision": False,
    "learning_rate": 0.1,
    "policy_kwargs": NETWORK | {"optimizer_kwargs": {"eps": 1.0}},  # so that rounding errors stay small
}


def learnt(model, timesteps):
    """The figures that a model logs in each of its updates."""
    model.set_logger(configure_logger(None, []))
    logged, train = [], model.train

    def watched():
        train()
        logged.append({name.removeprefix("train/"): value for name, value in model.logger.name_to_value.items()})

    model.train = watched
    model.learn(timesteps)
    return logged


def test_without_its_teacher_it_takes_the_gradient_steps_of_maskable_ppo():
    ours = learner_of(small("kickstart", PPO | {"kickstart_coef": 0.0})).model
    network = {"policy": "MlpPolicy", "normalize": True}
    theirs = sb3.build(Config("maskable-ppo", G2048, SMALL, PPO | network, 192, 64), "cpu")
    before, theirs_before = parameters_of(ours.policy), parameters_of(theirs.policy)
    for model in (ours, theirs):
        torch.manual_seed(0)
        learnt(model, 32)
    for name, array in parameters_of(theirs.policy).items():
        np.testing.assert_array_equal(before[name], theirs_before[name])
        np.testing.assert_allclose(parameters_of(ours.policy)[name], array, atol=1e-6)
    assert any(not np.array_equal(before[name], array) for name, array in parameters_of(ours.policy).items())


def test_the_teachers_loss_is_the_cross_entropy_to_its_targets():
    model = learner_of(small("kickstart", PPO | {"learning_rate": 0.0})).model
    (figures,), (_, boards, masks) = learnt(model, 32), model.rollout()
    targets = model.teachers.targets(boards, masks, 0)  # of the same boards in another order
    with torch.no_grad():
        log_probs = model.outputs(boards, masks)[0].numpy()
    expected = -np.where(targets > 0, targets * log_probs, 0).sum(axis=1).mean()
    assert figures["teacher_loss"] == pytest.approx(expected, rel=1e-5)


def weights(**changed):
    model = learner_of(small("kickstart", changed, timesteps=128)).model
    asked, targets = [], model.teachers.targets
    model.teachers.targets = lambda *boards: asked.append(boards[-1]) or targets(*boards)
    return [figures["kickstart_coef"] for figures in learnt(model, 128)], asked, model.teachers


def test_the_teacher_fades_and_is_then_not_asked():
    found, asked, _ = weights(kickstart_coef=2.0, kickstart_share=0.5)
    assert found == [2.0, 1.0, 0.0, 0.0]
    assert asked == [0, 32]


def test_above_1_the_teacher_helps_until_the_end():
    both = ["2048/optimal", "2048/greedy"]
    found, _, teachers = weights(kickstart_coef=3.0, kickstart_share=1.5, teacher=both)
    assert found == [3.0, 2.5, 2.0, 1.5]
    assert [teachers.number_at(step) for step in (0, 63, 64, 127)] == [0, 0, 1, 1]
