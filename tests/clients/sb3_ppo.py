"""Stable-Baselines3: plain PPO. It knows no masks, so illegal moves are replaced."""

import gymnasium as gym
import mergefall  # registers the environments
from mergefall.wrappers import flat, replace_illegal
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy


def wrapped(env: gym.Env) -> gym.Env:
    return flat(replace_illegal(env))


envs = make_vec_env("mergefall/Game2048-v0", n_envs=4, wrapper_class=wrapped, env_kwargs={"reward": "log2"})
model = PPO("MlpPolicy", envs, n_steps=64, batch_size=64).learn(1024)
mean, deviation = evaluate_policy(model, wrapped(gym.make("mergefall/Game2048-v0")), n_eval_episodes=5)
print(f"mean score {mean:.0f}")

# What `make clients` checks beyond that:
assert mean > 0
