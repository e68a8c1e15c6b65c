"""Kickstarting takes PPO's gradient steps, learns from its teacher while that is heard, and goes on without it."""

import numpy as np
import pytest
import torch
from mergefall.games import take
from mergefall_training.learn.kickstart.train import Learner
from mergefall_training.learn.run import Config
from mergefall_training.learn.sb3.networks import parameters_of
from mergefall_training.learn.sb3.train import build
from mergefall_training.learn.training import set_learning_rate

from tests.training.learn.small_runs import G2048, NETWORK, SMALL, small


def test_without_its_teacher_it_takes_the_gradient_steps_of_maskable_ppo(tmp_path):
    """sb3-contrib's `train` on the same rollout gives the same parameters."""
    settings = {"n_envs": 8, "n_steps": 4, "batch_size": 32, "n_epochs": 1, "learning_rate": 0.01, "gamma": 0.9}
    settings |= {"clip_range": 0.1, "ent_coef": 0.05, "vf_coef": 0.7, "max_grad_norm": 0.3, "normalize": True}
    settings["mixed_precision"] = False
    shared = {name: value for name, value in settings.items() if name != "normalize"}
    ours = Learner(small("kickstart", shared | {"kickstart_coef": 0.0}), "cpu")
    played = ours.play()
    start = parameters_of(ours.policy)

    network = {"policy": "MlpPolicy", "policy_kwargs": NETWORK}
    model = build(Config("maskable-ppo", G2048, SMALL, settings | network, 192, 64), "cpu")
    model.set_logger(_Silent())
    model.policy.load_state_dict(ours.policy.state_dict())
    buffer = model.rollout_buffer
    buffer.reset()
    columns = {"observations": played.observations, "action_masks": played.masks, "actions": played.actions}
    log_probs = played.log_probs[np.arange(32), played.actions]
    columns |= {"log_probs": log_probs, "values": played.values, "returns": played.returns}
    for name, column in (columns | {"advantages": played.returns - played.values}).items():
        getattr(buffer, name)[:] = np.asarray(column).reshape(getattr(buffer, name).shape)
    buffer.full = True
    model.train()

    set_learning_rate(ours.policy.optimizer, ours.h.learning_rate, ours.config, ours.step)
    ours._fit(played, None, 0.0, np.arange(32))
    theirs, moved = parameters_of(model.policy), parameters_of(ours.policy)
    assert any(not np.array_equal(start[name], moved[name]) for name in start)
    for name, array in theirs.items():
        np.testing.assert_allclose(moved[name], array, atol=2e-5)


class _Silent:
    def record(self, *_, **__):
        pass


def test_the_teachers_loss_is_the_cross_entropy_to_its_targets():
    learner = Learner(small("kickstart"), "cpu")
    played = learner.play()
    rows = np.arange(8)
    targets = learner.teachers.targets(played.observations, played.masks, 0)
    with torch.no_grad():
        log_probs = learner.outputs(take(played.observations, rows), played.masks[rows])[0].numpy()
    expected = np.mean(
        [-sum(t * p for t, p in zip(*row, strict=True) if t) for row in zip(targets[:8], log_probs, strict=True)]
    )
    assert learner._fit(played, targets, 1.0, rows)[-1] == pytest.approx(expected, rel=1e-5)


def test_the_teacher_fades_and_is_then_not_asked():
    learner = Learner(small("kickstart", {"kickstart_coef": 2.0, "kickstart_share": 0.5}, timesteps=128), "cpu")
    asked, targets = [], learner.teachers.targets
    learner.teachers.targets = lambda *boards: asked.append(learner.step) or targets(*boards)
    weights = [learner.learn()["kickstart_coef"] for _ in range(4)]
    assert weights == [2.0, 1.0, 0.0, 0.0]
    assert len(asked) == 2


def test_above_1_the_teacher_helps_until_the_end():
    changed = {"kickstart_coef": 3.0, "kickstart_share": 1.5, "teacher": ["2048/optimal", "2048/greedy"]}
    learner = Learner(small("kickstart", changed, timesteps=128), "cpu")
    assert [learner.learn()["kickstart_coef"] for _ in range(4)] == [3.0, 2.5, 2.0, 1.5]
    assert [learner.teachers.number_at(step) for step in (0, 63, 64, 127)] == [0, 0, 1, 1]
