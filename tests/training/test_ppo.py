"""The one-file PPO: its advantages against slow twins, the same end whether or not it is interrupted, and it learns."""

import copy
import importlib.util
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from time import sleep

import gymnasium as gym
import numpy as np
import pytest
import torch

SCRIPT = Path(__file__).parents[2] / "training" / "ppo.py"
spec = importlib.util.spec_from_file_location("ppo_script", SCRIPT)
ppo = importlib.util.module_from_spec(spec)
sys.modules[spec.name] = ppo  # where dataclasses look for it
spec.loader.exec_module(ppo)

TINY = {"num_envs": 16, "num_steps": 4, "batch_size": 32, "epochs": 2, "channels": 8, "interval": 5, "games": 5}
GAME2048 = {"env_kwargs": {"rows": 2, "cols": 3}, **TINY}
TETRIS = {"env_id": "mergefall/Tetris-v0", "env_kwargs": {"cols": 5, "rows": 8, "placements": "slide"}, **TINY}
TETRIS |= {"shaping": "bcts", "max_episode_steps": 6}


@pytest.fixture(autouse=True)
def _one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # sums are then added up in one order
    yield
    torch.set_num_threads(threads)


def weights(folder):
    return torch.load(folder / "checkpoint.pt", weights_only=True)["agent"]


def same(ours, theirs):
    return ours.keys() == theirs.keys() and all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_advantages_are_those_of_their_definition():
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
    np.testing.assert_allclose(ppo.advantages_of(*arrays, gamma, gae_lambda), slow)


def test_a_rollout_is_what_single_environments_say():
    """Returns with λ = 0 are r + γV(s′), where s′ comes before any reset, and V is 0 where a game is over."""
    tiny = TINY | {"num_steps": 40, "env_kwargs": {"rows": 2, "cols": 2}, "max_episode_steps": 9, "gae_lambda": 0.0}
    config = ppo.Config(**tiny, seed=2)
    run = ppo.Trainer(config)
    scale = copy.deepcopy(run.scale)
    numbers, masks, actions, _, _, returns = run.rollout()
    rewards, next_values = torch.zeros(40, 16, dtype=torch.float64), torch.zeros(40, 16)
    over, cut = torch.zeros(2, 40, 16, dtype=torch.bool)
    for i in range(16):
        env = gym.make(config.env_id, rows=2, cols=2, reward="log2", max_episode_steps=9)
        observation, info = env.reset(seed=3_000_000 + i)
        for t in range(40):
            assert numbers[t, i].tolist() == observation.flatten().tolist()
            assert masks[t, i].tolist() == info["action_mask"].tolist()
            observation, rewards[t, i], terminated, truncated, info = env.step(int(actions[t, i]))
            over[t, i], cut[t, i] = terminated, truncated and not terminated
            if not terminated:
                with torch.no_grad():
                    next_values[t, i] = run.agent.value_of(ppo.numbers_of(observation, 1)).item()
            if terminated or truncated:
                observation, info = env.reset()
    assert over.any()
    assert cut.any()
    for t in range(40):
        expected = scale(rewards[t], over[t] | cut[t]) + config.gamma * next_values[t]
        np.testing.assert_allclose(returns[t], expected, atol=1e-5)


def test_rewards_are_scaled_by_the_deviation_of_all_returns_so_far():
    random = np.random.default_rng(1)
    rewards, ended = random.normal(2.0, 3.0, size=(20, 4)), random.random((20, 4)) < 0.2
    scale, current, seen = ppo.RewardScale(4, 0.9), np.zeros(4), []
    for t in range(20):
        current = 0.9 * current + rewards[t]
        seen.extend(current)
        found = scale(torch.from_numpy(rewards[t]), torch.from_numpy(ended[t]))
        np.testing.assert_allclose(found, np.clip(rewards[t] / np.std(seen), -10, 10), rtol=1e-3)
        current[ended[t]] = 0.0


def test_a_killed_run_goes_on_to_the_same_end(tmp_path):
    config = ppo.Config(**GAME2048, total_steps=4_000, out=str(tmp_path / "killed"))
    arguments = ["--env-kwargs", "rows", "2", "cols", "3", "--total-steps", "4000", "--out", config.out]
    arguments += [part for name, value in TINY.items() for part in (f"--{name.replace('_', '-')}", str(value))]
    threads = {"OMP_NUM_THREADS": str(torch.get_num_threads())}
    process = subprocess.Popen([sys.executable, str(SCRIPT), *arguments], env=os.environ | threads)
    while process.poll() is None and not (tmp_path / "killed" / "checkpoint.pt").exists():
        sleep(0.01)
    process.kill()
    process.wait()
    assert (tmp_path / "killed" / "checkpoint.pt").exists()
    ppo.train(replace(config, resume=True))
    ppo.train(replace(config, out=str(tmp_path / "unbroken")))
    assert same(weights(tmp_path / "killed"), weights(tmp_path / "unbroken"))


@pytest.mark.parametrize("settings", [GAME2048, TETRIS], ids=["2048", "tetris"])
def test_an_interrupted_run_goes_on_to_the_same_end(tmp_path, monkeypatch, capsys, settings):
    config = ppo.Config(**settings, total_steps=1300, out=str(tmp_path / "unbroken"))
    ppo.main(config)
    unbroken = capsys.readouterr().out.splitlines()[-1]
    ppo.main(replace(config, out="elsewhere", evaluate=str(tmp_path / "unbroken" / "checkpoint.pt")))
    assert capsys.readouterr().out.splitlines() == [unbroken]

    learn, broken = ppo.Trainer.learn, replace(config, out=str(tmp_path / "broken"))

    def interrupted(run, *arguments):
        if run.update == 12:  # after the checkpoint of 10
            raise KeyboardInterrupt
        return learn(run, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(ppo.Trainer, "learn", interrupted)
        with pytest.raises(KeyboardInterrupt):
            ppo.main(broken)
    capsys.readouterr()
    with pytest.raises(ValueError, match="exists; go on from it"):
        ppo.main(broken)
    with pytest.raises(ValueError, match=r"another run: gamma is 0.99 there, 0.9 here$"):
        ppo.main(replace(broken, resume=True, gamma=0.9))
    ppo.main(replace(broken, resume=True))
    assert capsys.readouterr().out.splitlines()[-1] == unbroken
    assert same(weights(tmp_path / "broken"), weights(tmp_path / "unbroken"))
    assert not same(weights(tmp_path / "broken"), ppo.Trainer(config).agent.state_dict())


def test_it_learns(tmp_path):
    small = {"num_envs": 32, "batch_size": 128, "channels": 32, "learning_rate": 0.004, "games": 200}
    config = ppo.Config(env_kwargs={"rows": 2, "cols": 3}, **small, total_steps=20_000, out=str(tmp_path))
    assert ppo.evaluate(ppo.train(config), config).mean() > 110  # random legal moves: 61


def test_shaping_has_the_discount_of_the_learner():
    envs = ppo.make_envs(ppo.Config(shaping="monotone-smooth", gamma=0.9), 1, "SameStep")
    assert envs.shaping.gamma == 0.9


def test_a_batch_that_does_not_divide_the_rollout_is_an_error():
    with pytest.raises(ValueError, match="2048; expected a multiple of batch_size, 1000"):
        ppo.Config(batch_size=1000)
