"""d3rlpy: offline learning from a player's games, as arrays."""

import d3rlpy
import minari
import numpy as np
from mergefall_baselines import make
from mergefall_training.learn.demonstrations import demonstrate

name = demonstrate(make("2048/greedy"), "mergefall/Game2048-v0", 5, dataset="games/greedy-v0", workers=1)
episodes = list(minari.load_dataset(name).iterate_episodes())
dataset = d3rlpy.dataset.MDPDataset(
    observations=np.concatenate([e.observations[:-1].reshape(-1, 16).astype(np.float32) for e in episodes]),
    actions=np.concatenate([e.actions for e in episodes]),
    rewards=np.concatenate([e.rewards for e in episodes]),
    terminals=np.concatenate([e.terminations for e in episodes]),
)
algorithm = d3rlpy.algos.DiscreteCQLConfig(batch_size=32).create(device="cpu:0")
algorithm.fit(dataset, n_steps=50, n_steps_per_epoch=50)

# What `make clients` checks beyond that:
print(algorithm.predict(dataset.episodes[0].observations[:3]))
