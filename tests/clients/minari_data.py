"""Minari: a data set of expert games, and one that Minari's own DataCollector records."""

import gymnasium as gym
import minari
from mergefall_baselines import make
from mergefall_training.learn.demonstrations import demonstrate

expert = make("2048/expectimax", depth=1)
name = demonstrate(expert, "mergefall/Game2048-v0", 3, dataset="games/expert-v0", workers=1)
dataset = minari.load_dataset(name)
episode = next(dataset.iterate_episodes())
print(dataset.total_episodes, "games;", len(episode.actions), "moves in the first")

# What `make clients` checks beyond that:
assert dataset.recover_environment().spec.id == "mergefall/Game2048-v0"

env = minari.DataCollector(gym.make("mergefall/Tetris-v0", rows=10))
player = make("tetris/bcts")
observation, _ = env.reset(seed=0)
for _ in range(50):
    observation, _, terminated, _, _ = env.step(int(player.act(observation)))
recorded = env.create_dataset("games/tetris-v0", algorithm_name="bcts")
assert recorded.total_steps == 50
