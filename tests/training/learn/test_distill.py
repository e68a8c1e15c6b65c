"""Distillation learns a teacher's values on boards that the student reaches; MaskablePPO continues from it."""

import numpy as np
import pytest
from mergefall_baselines import make
from mergefall_training import evaluate
from mergefall_training.learn.distill.train import Learner
from mergefall_training.learn.models import save_model
from mergefall_training.learn.run import Config, begun

from tests.training.learn.small_runs import (
    FIELD,
    G2048,
    NETWORK,
    OF_TETRIS,
    SMALL,
    TETRIS,
    small,
    trained,
)


@pytest.mark.slow
def test_tetris_is_distilled_too(tmp_path):
    changed = {"teacher": "tetris/bcts", "n_envs": 32, "learning_rate": 0.005} | OF_TETRIS
    config = small("distill", changed, timesteps=12_800, interval=12_800, env_id=TETRIS, env_kwargs=FIELD, cap=60)
    trained(tmp_path / "run", config)
    player = make(str(tmp_path / "run"), model="last")
    ours = evaluate(player, TETRIS, 40, env_kwargs=FIELD, workers=1, max_episode_steps=200, progress=False)
    chance = evaluate("tetris/random", TETRIS, 40, env_kwargs=FIELD, workers=1, max_episode_steps=200, progress=False)
    assert np.mean([e.pieces for e in ours.episodes]) > 2 * np.mean([e.pieces for e in chance.episodes])


def test_a_value_head_is_taken_over_with_its_unit(tmp_path):
    """Else rewards would be many times too large for it, until the run has found the unit itself."""
    first = saved(tmp_path / "model.npz")
    taken = {"warm_start": str(tmp_path / "model.npz")}
    on_policy = {"policy": "MlpPolicy", "policy_kwargs": NETWORK, "n_envs": 4, "n_steps": 16, "batch_size": 32}
    ppo = Config("maskable-ppo", G2048, SMALL, on_policy | taken | {"normalize": True}, 192, 64)
    for config in (ppo, small("distill", taken)):
        learner = begun(config, "cpu")
        assert learner.network()["reward_unit"] == pytest.approx(20.0, rel=1e-3)
        np.testing.assert_array_equal(learner.arrays()["value_net.weight"], first.arrays()["value_net.weight"])


@pytest.mark.parametrize("changed", [{"env_kwargs": {**SMALL, "reward": "score"}}, {"unit": 1.0}])
def test_a_value_head_of_other_rewards_begins_anew(tmp_path, changed):
    saved(tmp_path / "model.npz", **changed)
    second = Learner(small("distill", {"warm_start": str(tmp_path / "model.npz")}), "cpu")
    fresh = second.arrays()["value_net.weight"]
    second.begin()
    np.testing.assert_array_equal(second.arrays()["value_net.weight"], fresh)
    assert second.network()["reward_unit"] == pytest.approx(1.0)


def saved(path, env_kwargs=None, unit=20.0):
    """A learner whose model is in a file, with the unit of its rewards."""
    learner = Learner(small("distill"), "cpu")
    learner.model.policy.value_net.weight.data += 1
    network = learner.network() | {"reward_unit": unit}
    spec = {"algorithm": "distill", "env_id": G2048, "env_kwargs": env_kwargs or learner.config.env_kwargs}
    save_model(path, spec | {"network": network}, learner.arrays())
    return learner
