"""Kickstarting takes PPO's gradient steps, learns from its teacher while that is heard, and goes on without it."""

import numpy as np
import pytest
import torch
from mergefall_training.learn.kickstart.train import Learner
from mergefall_training.learn.run import Config
from mergefall_training.learn.sb3 import train as sb3
from mergefall_training.learn.sb3.networks import parameters_of
from stable_baselines3.common.logger import configure

from tests.training.learn.small_runs import G2048, NETWORK, SMALL, small

PPO = {"n_envs": 8, "n_steps": 4, "batch_size": 32, "n_epochs": 1, "gamma": 0.9, "clip_range": 0.1, "ent_coef": 0.05}
PPO |= {"gae_lambda": 0.8, "vf_coef": 0.7, "max_grad_norm": 0.3, "mixed_precision": False, "learning_rate": 0.1}
PPO |= {"policy_kwargs": NETWORK | {"optimizer_kwargs": {"eps": 1.0}}}  # so that rounding errors stay small


def learnt(model, timesteps):
    """The figures that a model logs in each of its updates."""
    model.set_logger(configure(None, []))
    logged, train = [], model.train

    def watched():
        train()
        logged.append({name.removeprefix("train/"): value for name, value in model.logger.name_to_value.items()})

    model.train = watched
    model.learn(timesteps)
    return logged


def test_without_its_teacher_it_takes_the_gradient_steps_of_maskable_ppo():
    ours = Learner(small("kickstart", PPO | {"kickstart_coef": 0.0}), "cpu").model
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
    model = Learner(small("kickstart", PPO | {"learning_rate": 0.0}), "cpu").model
    (figures,), steps = learnt(model, 32), next(model.rollout_buffer.get())
    boards, masks = model.observed(steps)
    targets = model.teachers.targets(boards, masks, 0)  # of the same boards in another order
    with torch.no_grad():
        log_probs = model.outputs(boards, masks)[0].numpy()
    expected = -np.where(targets > 0, targets * log_probs, 0).sum(axis=1).mean()
    assert figures["teacher_loss"] == pytest.approx(expected, rel=1e-5)


def weights(changed, timesteps):
    model = Learner(small("kickstart", changed, timesteps=timesteps), "cpu").model
    asked, targets = [], model.teachers.targets
    model.teachers.targets = lambda *boards: asked.append(boards[-1]) or targets(*boards)
    return [figures["kickstart_coef"] for figures in learnt(model, timesteps)], asked, model.teachers


def test_the_teacher_fades_and_is_then_not_asked():
    found, asked, _ = weights({"kickstart_coef": 2.0, "kickstart_share": 0.5}, 128)
    assert found == [2.0, 1.0, 0.0, 0.0]
    assert asked == [0, 32]


def test_above_1_the_teacher_helps_until_the_end():
    changed = {"kickstart_coef": 3.0, "kickstart_share": 1.5, "teacher": ["2048/optimal", "2048/greedy"]}
    found, _, teachers = weights(changed, 128)
    assert found == [3.0, 2.5, 2.0, 1.5]
    assert [teachers.number_at(step) for step in (0, 63, 64, 127)] == [0, 0, 1, 1]
