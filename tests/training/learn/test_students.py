"""What learners with a student share: games played, returns, resuming, warm starts, and what they refuse."""

import numpy as np
import pytest
import torch
from mergefall_baselines import make
from mergefall_training import evaluate
from mergefall_training.learn import trainer
from mergefall_training.learn.run import read_curve
from mergefall_training.learn.student import lambda_returns

from tests.training.learn.small_runs import (
    FIELD,
    G2048,
    LEARNERS,
    NETWORK,
    OF_TETRIS,
    SMALL,
    TETRIS,
    small,
    trained,
)


def learner_of(config):
    return trainer(config.algorithm).Learner(config, "cpu")


# -- playing -----------------------------------------------------------------------------------------------------------


def test_lambda_returns_are_weighted_sums_of_n_step_returns():
    """By the definition: (1 − λ) Σ λⁿ⁻¹ Gₙ, with the last return taking the rest of the weight."""
    rng, gamma, lam, steps = np.random.default_rng(1), 0.9, 0.7, 7
    rewards, values, following = (rng.random((steps, 40)).astype(np.float32) for _ in range(3))
    done = rng.random((steps, 40)) < 0.2
    following = np.where(done, following, np.concatenate([values[1:], following[-1:]]))
    found = lambda_returns(rewards, values, following, done, gamma, lam)
    for game in range(40):
        for start in range(steps):
            returns, total = [], 0.0
            for n, t in enumerate(range(start, steps)):
                total += gamma**n * rewards[t, game]
                returns.append(total + gamma ** (n + 1) * following[t, game])
                if done[t, game]:
                    break
            weights = [(1 - lam) * lam**n for n in range(len(returns) - 1)]
            weights.append(1 - sum(weights))
            assert found[start, game] == pytest.approx(np.dot(weights, returns), rel=1e-5)


def test_a_capped_game_is_worth_what_the_network_says_of_its_last_state():
    """With gamma 1 and λ 0, the return of a step is its reward plus the value of the state that it leads to."""
    changed = {"gamma": 1.0, "gae_lambda": 0.0, "n_envs": 4, "n_steps": 3, "batch_size": 4} | OF_TETRIS
    config = small("distill", changed | {"teacher": "tetris/bcts"}, env_id=TETRIS, env_kwargs=FIELD, cap=3)
    learner = learner_of(config)
    ended, step = [], learner.games.step

    def watched(actions):
        returned = step(actions)
        ended.append((returned[1], returned[2], returned[3], returned[4]))
        return returned

    learner.games.step = watched
    played = learner.play()
    capped = 0
    unit = learner.reward_unit  # of the last step
    for game in range(4):
        rewards, terminated, truncated, infos = (part for part in ended[2])
        if not (terminated[game] or truncated[game]):
            continue
        value = 0.0
        if truncated[game] and not terminated[game]:
            capped += 1
            last = {name: np.asarray(part)[None] for name, part in infos["final_obs"][game].items()}
            with torch.no_grad():
                value = learner.outputs(last, None)[1].item()
        assert played.returns[8 + game] == pytest.approx(rewards[game] / unit + value, rel=1e-4, abs=1e-5)
    assert capped


@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_moves_are_drawn_or_the_most_probable(rate):
    learner = learner_of(small("kickstart", {"n_envs": 64}))
    learner.exploration_rate = rate
    played = learner.play()
    with torch.no_grad():
        log_probs = learner.outputs(played.observations, played.masks)[0].numpy()
    np.testing.assert_allclose(played.log_probs, log_probs, rtol=1e-5)
    assert played.masks[np.arange(len(log_probs)), played.actions].all()
    assert (played.actions == log_probs.argmax(axis=1)).all() == (rate == 0.0)


# -- going on ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", LEARNERS)
def test_a_checkpoint_that_does_not_fit_is_refused(algorithm):
    learner = learner_of(small(algorithm))
    state = learner.state()
    wrong = {"random": torch.zeros(3, dtype=torch.uint8), "games": {}, "teachers": [0.0]}
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
    with pytest.raises(ValueError, match="warm_start: policy_kwargs is"):
        trainer(algorithm).check(small(algorithm, changed))


# -- bad input ---------------------------------------------------------------------------------------------------------


LEARNING = {
    "distill": {"n_envs": 128, "batch_size": 256, "buffer_size": 4096, "gradient_steps": 8, "exploration_rate": 0.5},
    "kickstart": {"n_envs": 32, "n_steps": 8, "n_epochs": 4, "batch_size": 64, "learning_rate": "lin_0.01"}
    | {"kickstart_share": 1.0, "kickstart_coef": 10.0},
}


@pytest.mark.parametrize("algorithm", LEARNERS)
def test_the_student_plays_nearly_as_its_teacher(tmp_path, algorithm):
    """2×3 is solved: perfect play scores 480, random play less than half of it."""
    trained(tmp_path / "run", small(algorithm, LEARNING[algorithm], timesteps=20_480, interval=20_480))
    player = make(str(tmp_path / "run"), model="last")
    assert evaluate(player, G2048, 200, env_kwargs=SMALL, workers=1, progress=False).mean().low > 0.55 * 480
