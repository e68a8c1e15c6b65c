"""The one-file PPO: advantages and rollouts against slow twins, equal agents from equal arguments, and learning."""

import copy
import importlib.util
import sys
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
import torch
from mergefall_baselines import make
from mergefall_training import evaluate

SCRIPT = Path(__file__).parents[2] / "training" / "ppo.py"
spec = importlib.util.spec_from_file_location("ppo_script", SCRIPT)
ppo = importlib.util.module_from_spec(spec)
sys.modules[spec.name] = ppo  # where dataclasses look for it
spec.loader.exec_module(ppo)

TINY = {"num_envs": 16, "num_steps": 4, "num_minibatches": 2, "update_epochs": 2, "channels": 8}
TINY |= {"checkpoint_interval": 5}
GAME2048 = {"env_kwargs": {"rows": 2, "cols": 3}, **TINY}
TETRIS = {"env_id": "mergefall/Tetris-v0", "env_kwargs": {"cols": 5, "rows": 8, "placements": "slide"}, **TINY}
TETRIS |= {"shaping": "bcts", "max_episode_steps": 6}


def test_advantages_match_their_definition():
    random, gamma, gae_lambda = np.random.default_rng(0), 0.9, 0.8
    rewards, values, next_values = random.normal(size=(3, 7, 5))
    terminated, truncated = random.random((2, 7, 5)) < 0.2
    next_values[terminated] = 0.0
    slow = np.zeros((7, 5))
    for i in range(5):
        for t in range(7):
            for k in range(t, 7):
                error = rewards[k, i] + gamma * next_values[k, i] - values[k, i]
                slow[t, i] += (gamma * gae_lambda) ** (k - t) * error
                if terminated[k, i] or truncated[k, i]:
                    break
    arrays = map(torch.from_numpy, (rewards, values, next_values, terminated | truncated))
    np.testing.assert_allclose(ppo.compute_gae(*arrays, gamma, gae_lambda), slow)


@pytest.mark.parametrize("kwargs", [GAME2048, TETRIS, TETRIS | {"env_kwargs": {"hold": True, "preview": 2}}])
def test_networks_see_all_parts_of_an_observation_as_zeros_and_ones(kwargs):
    trainer, seen = ppo.Trainer(ppo.Args(**kwargs)), []
    space = gym.spaces.Dict({"board": trainer.envs.single_observation_space})
    space = space["board"] if isinstance(space["board"], gym.spaces.Dict) else space
    trainer.agent.network.windows[0].register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    space.seed(0)
    first, others = space.sample(), [space.sample() for _ in range(5)]
    for name in space:
        values = {trainer.agent.get_value(ppo.flatten_obs(first | {name: one[name]}, 1)).item() for one in others}
        assert len(values) > 1, name
    assert set(torch.cat(seen).unique().tolist()) == {0, 1}


def test_games_by_keys_are_refused():
    with pytest.raises(ValueError, match=r"'place'.*; these networks take 2048 and Tetris by placements"):
        ppo.Trainer(ppo.Args(**TINY, env_id="mergefall/TetrisKeys-v0"))


def test_a_rollout_matches_single_environments():
    """Returns with λ = 0 are r + γV(s′), where s′ comes before any reset, and V is 0 where a game is over."""
    tiny = TINY | {"num_steps": 40, "env_kwargs": {"rows": 2, "cols": 2}, "max_episode_steps": 9, "gae_lambda": 0.0}
    trainer = ppo.Trainer(args := ppo.Args(**tiny, seed=2))
    scale = copy.deepcopy(trainer.normalize_reward)
    obs, masks, actions, _, _, returns = trainer.rollout()
    rewards, next_values = torch.zeros(2, 40, 16, dtype=torch.float64)
    over, cut = torch.zeros(2, 40, 16, dtype=torch.bool)
    for i in range(16):
        env = gym.make(args.env_id, rows=2, cols=2, reward="log2", max_episode_steps=9)
        observation, info = env.reset(seed=3_000_000 + i)
        for t in range(40):
            assert obs[t, i].tolist() == observation.flatten().tolist()
            assert masks[t, i].tolist() == info["action_mask"].tolist()
            observation, rewards[t, i], over[t, i], cut[t, i], info = env.step(int(actions[t, i]))
            if not over[t, i]:
                next_values[t, i] = trainer.agent.get_value(ppo.flatten_obs(observation, 1)).item()
            if over[t, i] or cut[t, i]:
                observation, info = env.reset()
    assert over.any()
    assert (cut & ~over).any()
    for t in range(40):
        expected = scale(rewards[t], over[t] | cut[t]) + args.gamma * next_values[t]
        np.testing.assert_allclose(returns[t], expected, atol=1e-5)


def test_rewards_are_scaled_by_the_deviation_of_all_returns_so_far():
    random = np.random.default_rng(1)
    rewards, ended = random.normal(2.0, 3.0, size=(20, 4)), random.random((20, 4)) < 0.2
    scale, current, seen = ppo.NormalizeReward(4, 0.9), np.zeros(4), []
    for t in range(20):
        current = 0.9 * current + rewards[t]
        seen.extend(current)
        found = scale(torch.from_numpy(rewards[t]), torch.from_numpy(ended[t]))
        np.testing.assert_allclose(found, np.clip(rewards[t] / np.std(seen), -10, 10), rtol=1e-3)
        current[ended[t]] = 0.0


@pytest.mark.parametrize("settings", [GAME2048, TETRIS], ids=["2048", "tetris"])
def test_equal_arguments_give_equal_agents_that_are_players(tmp_path, settings):
    args = [ppo.Args(**settings, total_timesteps=640, out=str(tmp_path / name)) for name in ("one", "two")]
    agents = [ppo.train(one) for one in args]
    files = [tmp_path / name / "checkpoint.pt" for name in ("one", "two")]
    one, two = (torch.load(file, weights_only=True)["agent"] for file in files)
    torch.testing.assert_close(one, two, rtol=0, atol=0)
    fresh = ppo.Trainer(args[0]).agent.state_dict()
    assert any(not torch.equal(array, fresh[name]) for name, array in agents[0].state_dict().items())
    with pytest.raises(ValueError, match=r"checkpoint\.pt exists; choose another folder"):
        ppo.train(args[0])
    player = make("ppo_script:Player", checkpoint=str(files[0]))
    cap = {"max_episode_steps": settings.get("max_episode_steps"), "workers": 1, "progress": False}
    played = evaluate(player, args[0].env_id, 5, env_kwargs=settings["env_kwargs"], **cap)
    assert all(episode.length > 0 for episode in played.episodes)


def test_it_learns(tmp_path):
    small = {"num_envs": 32, "num_minibatches": 2, "channels": 32, "learning_rate": 0.004}
    ppo.train(ppo.Args(env_kwargs={"rows": 2, "cols": 3}, **small, total_timesteps=20_000, out=str(tmp_path)))
    player = make("ppo_script:Player", checkpoint=str(tmp_path / "checkpoint.pt"))
    kwargs = {"env_kwargs": {"rows": 2, "cols": 3}, "workers": 1, "progress": False}
    assert evaluate(player, "mergefall/Game2048-v0", 200, **kwargs).mean().value > 110  # random legal moves: 61


def test_shaping_has_the_discount_of_the_learner():
    assert ppo.make_envs(ppo.Args(shaping="monotone-smooth", gamma=0.9), 1, "SameStep").shaping.gamma == 0.9


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"seed": -1}, "seed is -1; expected at least 0"),
        ({"num_minibatches": 3}, "num_minibatches is 3; expected a divisor of num_envs · num_steps, 2048"),
    ],
)
def test_bad_arguments(changed, message):
    with pytest.raises(ValueError, match=message):
        ppo.Args(**changed)


def test_a_checkpoint_of_a_gpu_plays_without_one(tmp_path):
    ppo.train(ppo.Args(**GAME2048, total_timesteps=64, out=str(tmp_path)))
    state = torch.load(tmp_path / "checkpoint.pt", weights_only=True)
    state["args"]["device"] = "cuda"
    torch.save(state, tmp_path / "checkpoint.pt")
    player = ppo.Player(str(tmp_path / "checkpoint.pt"))
    observation, info = gym.make("mergefall/Game2048-v0", **GAME2048["env_kwargs"]).reset(seed=0)
    action, _ = player.predict(observation, action_masks=info["action_mask"])
    assert info["action_mask"][action]
    assert ppo.Player.plays(str(tmp_path / "checkpoint.pt"))["rows"] == 2
