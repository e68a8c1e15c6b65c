"""Distillation learns a teacher's values on boards that the student reaches; MaskablePPO continues from it."""

import numpy as np
import pytest
import torch
from mergefall_baselines import make
from mergefall_training import evaluate
from mergefall_training.learn.distill.train import Learner
from mergefall_training.learn.models import save_model
from mergefall_training.learn.run import Config
from mergefall_training.learn.sb3.train import begin, build

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


def values_of_first_board(learner):
    """The value of the first board in units of the reward."""
    with torch.no_grad():
        values = learner.outputs(learner.observations, learner.masks)[1]
    return float(values[0]) * learner.reward_unit


@pytest.mark.parametrize("normalize", [True, False])
def test_a_value_head_is_taken_over_with_its_unit(tmp_path, normalize):
    """Else rewards would be many times too large for it, until the run has found the unit itself."""
    first = Learner(small("distill"), "cpu")
    first.deviations.var = np.float64(400.0)
    spec = {"algorithm": "distill", "env_id": G2048, "env_kwargs": first.config.env_kwargs, "network": first.network()}
    save_model(tmp_path / "model.npz", spec, first.arrays())
    second = Learner(small("distill", {"warm_start": str(tmp_path / "model.npz")}), "cpu")
    second.begin()
    assert first.reward_unit == second.reward_unit == pytest.approx(20.0)
    assert values_of_first_board(first) == pytest.approx(values_of_first_board(second), rel=1e-5)
    changed = {"policy": "MlpPolicy", "policy_kwargs": NETWORK, "n_envs": 4, "n_steps": 16, "batch_size": 32}
    changed |= {"warm_start": str(tmp_path / "model.npz"), "normalize": normalize}
    config = Config("maskable-ppo", G2048, SMALL, changed, 192, 64)
    model = build(config, "cpu")
    begin(model, config)
    if normalize:
        assert np.sqrt(model.get_vec_normalize_env().ret_rms.var) == pytest.approx(20.0, rel=1e-3)
    unit = 1.0 if normalize else 20.0
    ratio = model.policy.value_net.weight.detach() / first.policy.value_net.weight.detach()
    assert torch.allclose(ratio, torch.full_like(ratio, unit), rtol=1e-4)


@pytest.mark.parametrize("changed", [{"env_kwargs": {**SMALL, "reward": "score"}}, {"unit": 1.0}])
def test_a_value_head_of_other_rewards_begins_anew(tmp_path, changed):
    first = Learner(small("distill"), "cpu")
    first.deviations.var = np.float64(400.0)
    first.policy.value_net.weight.data += 1
    network = first.network() | ({"reward_unit": changed["unit"]} if "unit" in changed else {})
    kwargs = changed.get("env_kwargs", first.config.env_kwargs)
    spec = {"algorithm": "distill", "env_id": G2048, "env_kwargs": kwargs, "network": network}
    save_model(tmp_path / "model.npz", spec, first.arrays())
    second = Learner(small("distill", {"warm_start": str(tmp_path / "model.npz")}), "cpu")
    fresh = second.policy.value_net.weight.clone()
    second.begin()
    assert torch.equal(second.policy.value_net.weight, fresh)
    assert second.deviations.var == 1.0
