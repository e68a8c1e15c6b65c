"""sb3-contrib: MaskablePPO on the native batch, and its own evaluation of one of our players."""

import gymnasium as gym
from mergefall_baselines import make
from mergefall_training import evaluate
from mergefall_training.learn.sb3.vec_env import make_vec_env
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.evaluation import evaluate_policy

envs = make_vec_env("mergefall/Tetris-v0", 16, env_kwargs={"rows": 10})
model = MaskablePPO("MultiInputPolicy", envs, n_steps=64, batch_size=256).learn(2048)
print(evaluate(model, "mergefall/Tetris-v0", 5, env_kwargs={"rows": 10}, workers=1).summary().mean)

mean, deviation = evaluate_policy(make("2048/greedy"), gym.make("mergefall/Game2048-v0"), n_eval_episodes=5)
print(f"mean score of 2048/greedy {mean:.0f}")

# What `make clients` checks beyond that:
assert mean > 500
