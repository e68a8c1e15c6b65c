"""Expert iteration plays as its search says, learns the search's policy and values, and gets better at small boards."""

import numpy as np
import pytest
import torch
from mergefall_baselines import make
from mergefall_training import evaluate
from mergefall_training.learn.expert_iteration.train import Learner
from mergefall_training.learn.run import open_run

from tests.training.learn.small_runs import FIELD, G2048, OF_TETRIS, SMALL, TETRIS, small, trained


def test_the_network_gives_the_search_its_policy_and_its_values_in_units_of_the_reward():
    learner = Learner(small("expert-iteration"), "cpu")
    for _ in range(3):
        learner.learn()  # so that the unit is not 1
    network = learner.search.leaf
    preferences, values = network.search_values(learner.observations)
    with torch.no_grad():
        log_probs, found = learner.outputs(learner.observations, learner.masks)
    np.testing.assert_allclose(np.exp(preferences), log_probs.exp().numpy(), atol=1e-6)
    assert (np.isfinite(preferences) == learner.masks).all()
    unit = np.sqrt(learner.envs.normalize.ret_rms.var)
    assert unit != pytest.approx(1, abs=1e-3)
    np.testing.assert_allclose(values, found.numpy() * unit, rtol=1e-5)


def test_moves_policy_and_values_are_those_of_the_search():
    learner = Learner(small("expert-iteration", {"simulations": 24}), "cpu")
    chosen = learner.choose()
    found = learner.search.statistics(learner.observations)
    np.testing.assert_array_equal(chosen.actions, found.actions)
    np.testing.assert_allclose(np.exp(chosen.log_probs), found.policy, atol=1e-6)
    np.testing.assert_allclose(chosen.values * learner.reward_unit, found.value, rtol=1e-5)
    assert (np.exp(chosen.log_probs)[~learner.masks] < 1e-6).all()


def test_the_noise_of_a_board_is_never_the_same_again():
    learner = Learner(small("expert-iteration", {"n_envs": 32, "gumbel_scale": 5.0}), "cpu")
    chosen = np.stack([learner.choose().actions for _ in range(20)])
    assert (chosen != chosen[0]).any(axis=0).mean() > 0.9


def test_a_search_values_one_move_before_the_end_as_its_rewards(tmp_path):
    """With a network that says 0, a decision is worth its rewards: here log2(1 + 8) for the merge of two 4s."""
    learner = Learner(small("expert-iteration", {"simulations": 8}, env_kwargs=SMALL), "cpu")
    with torch.no_grad():
        for parameter in learner.policy.value_net.parameters():
            parameter.zero_()
    board = np.array([[[2, 2, 1], [3, 4, 5]]], np.uint8)
    values = learner.search.statistics(board).values[0]
    left, right = values[3], values[1]
    assert max(left, right) > np.log2(9) * 0.5  # the first value, 0, counts as one visit
    assert np.isneginf(values[[0, 2]]).all()


@pytest.mark.parametrize(
    ("env", "reward"),
    [
        ({"env_kwargs": SMALL | {"goal": 64, "reward": "goal"}}, "goal"),
        ({"env_kwargs": SMALL | {"goal": 64}}, "log2"),  # the search would play on
        ({"env_kwargs": SMALL | {"shaping": {"potential": "nneonneo"}}, "changed": {"gamma": 0.9}}, "log2"),
        ({"env_id": TETRIS, "env_kwargs": FIELD | {"reward": "score"}, "changed": OF_TETRIS}, "score"),
    ],
)
def test_rewards_that_no_search_counts_are_refused(env, reward):
    with pytest.raises(ValueError, match=f"no search counts the rewards of {{'reward': '{reward}'.*expected"):
        Learner(small("expert-iteration", **env), "cpu")


def test_searches_with_an_agent_of_other_rewards_ask_what_to_count(tmp_path):
    kwargs = SMALL | {"shaping": {"potential": "nneonneo"}}
    trained(tmp_path / "run", small("distill", {"gamma": 0.9}, env_kwargs=kwargs))
    leaf = {"player": str(tmp_path / "run")}
    with pytest.raises(ValueError, match=r"no search counts the rewards that the values of .* stand for; give rewards"):
        make("2048/mcts", heuristic=leaf)
    assert make("2048/mcts", heuristic=leaf, rewards=False).rewards is False


def test_without_memory_the_hidden_pieces_are_equally_likely():
    config = small(
        "expert-iteration", OF_TETRIS, env_id=TETRIS, env_kwargs=FIELD | {"pieces": "five", "randomizer": "hidden"}
    )
    assert not Learner(config, "cpu").search.remembers


def test_it_learns_without_a_teacher(tmp_path):
    """2×3 is solved: perfect play scores 480, random play an eighth of it."""
    changed = {"n_envs": 128, "gradient_steps": 8, "batch_size": 256, "buffer_size": 4096, "learning_rate": "lin_0.01"}
    trained(tmp_path / "run", small("expert-iteration", changed | {"simulations": 8}, 20_480, 20_480))
    ours = evaluate(make(str(tmp_path / "run"), model="last"), G2048, 200, env_kwargs=SMALL, workers=1, progress=False)
    assert ours.mean().low > 120


def test_tetris_learns_too(tmp_path):
    changed = {"n_envs": 16, "n_steps": 8, "batch_size": 128, "simulations": 8, "learning_rate": 0.005} | OF_TETRIS
    config = small("expert-iteration", changed, 6_400, 6_400, env_id=TETRIS, env_kwargs=FIELD, cap=60)
    trained(tmp_path / "run", config)
    player = make(str(tmp_path / "run"), model="last")
    ours = evaluate(player, TETRIS, 40, env_kwargs=FIELD, workers=1, max_episode_steps=200, progress=False)
    chance = evaluate("tetris/random", TETRIS, 40, env_kwargs=FIELD, workers=1, max_episode_steps=200, progress=False)
    assert np.mean([e.pieces for e in ours.episodes]) > 1.5 * np.mean([e.pieces for e in chance.episodes])


def test_a_search_with_the_trained_agent_is_the_search_that_it_learned_from(tmp_path):
    config = small(
        "expert-iteration", {"mixed_precision": False, "gumbel_scale": 0.5, "value_scale": 0.1, "simulations": 12}
    )
    trained(tmp_path / "run", config)
    with open_run(tmp_path / "run", config, resume=True, progress=False) as run:
        learner, checkpoint = Learner(config, "cpu"), run.load_checkpoint()
    learner.restore(*checkpoint)
    options = {"simulations": 12, "considered": 8, "value_scale": 0.1, "gumbel_scale": 0.5, "temperature": 1.0}
    agent = {"player": {"name": str(tmp_path / "run"), "model": "last"}}
    ours = make("2048/mcts", heuristic=agent, **options).statistics(learner.observations)
    theirs = learner.search.statistics(learner.observations)
    np.testing.assert_array_equal(ours.actions, theirs.actions)
    np.testing.assert_allclose(ours.values, theirs.values, rtol=1e-4)
    np.testing.assert_allclose(ours.policy, theirs.policy, atol=1e-4)
