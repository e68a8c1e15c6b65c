"""What learners with a student share: moves, resuming, warm starts, and how well they learn."""

import pytest
import torch
from mergefall_baselines import make
from mergefall_training import evaluate
from mergefall_training.learn import trainer
from mergefall_training.learn.run import begun, read_curve

from tests.training.learn.small_runs import (
    G2048,
    LEARNERS,
    NETWORK,
    SMALL,
    small,
    trained,
)


def learner_of(config):
    return trainer(config.algorithm).Learner(config, "cpu")


def rollout(model):
    """The steps of one rollout, from which nothing is learnt."""
    _, callback = model._setup_learn(1)
    model.collect_rollouts(model.env, callback, model.rollout_buffer, model.n_steps)
    return next(model.rollout_buffer.get())


@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_moves_are_drawn_or_the_most_probable(rate):
    model = learner_of(small("distill", {"n_envs": 64, "exploration_rate": rate})).model
    steps = rollout(model)
    with torch.no_grad():
        log_probs = model.outputs(*model.observed(steps))[0]
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


@pytest.mark.parametrize("algorithm", LEARNERS)
def test_a_warm_start_begins_where_the_other_run_ended(tmp_path, algorithm):
    trained(tmp_path / "first", small("distill"))
    changed = {"warm_start": str(tmp_path / "first" / "model.npz")}
    trained(tmp_path / "second", small(algorithm, changed))
    assert read_curve(tmp_path / "second")[0].mean == read_curve(tmp_path / "first")[-1].mean
    changed["policy_kwargs"] = NETWORK | {"features_extractor_kwargs": {"channels": 8, "features_dim": 16}}
    with pytest.raises(ValueError, match=r"policy_kwargs.features_extractor_kwargs.channels is 16 there, 8 here"):
        begun(small(algorithm, changed))


# -- bad input ---------------------------------------------------------------------------------------------------------


LEARNING = {
    "distill": {"n_envs": 128, "batch_size": 256, "buffer_size": 4096, "gradient_steps": 8, "exploration_rate": 0.5},
    "kickstart": {"n_envs": 32, "n_steps": 8, "n_epochs": 4, "batch_size": 64, "learning_rate": "lin_0.01"}
    | {"kickstart_share": 1.0, "kickstart_coef": 10.0},
}


@pytest.mark.parametrize("algorithm", ["distill", pytest.param("kickstart", marks=pytest.mark.slow)])
def test_the_student_plays_nearly_as_its_teacher(tmp_path, algorithm):
    """2×3 is solved: perfect play scores 480, random play less than half of it."""
    trained(tmp_path / "run", small(algorithm, LEARNING[algorithm], timesteps=20_480, interval=20_480))
    player = make(str(tmp_path / "run"), model="last")
    assert evaluate(player, G2048, 200, env_kwargs=SMALL, workers=1, progress=False).mean().low > 0.55 * 480
