"""Settings of small runs, for the tests of several learners."""

from itertools import pairwise

import numpy as np
from mergefall_training.learn.run import Config

G2048, TETRIS, KEYS = "mergefall/Game2048-v0", "mergefall/Tetris-v0", "mergefall/TetrisKeys-v0"
SMALL = {"rows": 2, "cols": 3, "reward": "log2"}
FIELD = {"cols": 4, "rows": 5, "preview": 0}
KEYS_FIELD = {"cols": 6, "rows": 10, "preview": 1, "hold": False}
EXTRACTOR = {"channels": 16, "features_dim": 16}
NETWORK = {"features_extractor_class": "ranks-afterstates", "features_extractor_kwargs": EXTRACTOR, "net_arch": []}
AFTERSTATES = {"features_extractor_class": "board-afterstates", "net_arch": []}
OF_TETRIS = {"policy": "AfterstatesPolicy", "policy_kwargs": AFTERSTATES}
OF_KEYS = OF_TETRIS | {"policy_kwargs": AFTERSTATES | {"features_extractor_class": "keys-afterstates"}}
TAUGHT_KEYS = OF_KEYS | {"teacher": {"player": "tetris/keys", "placements": "drop"}}
SMALL_NETWORK = {"policy": "MlpPolicy", "policy_kwargs": {"net_arch": [4]}}
ON_POLICY = {"n_envs": 4, "n_steps": 8, "batch_size": 16, "n_epochs": 2, "normalize": True}
OFF_POLICY = {"n_envs": 4, "learning_starts": 20, "buffer_size": 40, "batch_size": 8, "gradient_steps": 1}
AFTERSTATE = {
    "n_envs": 8,
    "restarts": 0.5,
    "n_steps": 4,
    "batch_size": 16,
    "n_epochs": 2,
    "policy_kwargs": {"net_arch": [8]},
}
CMA_ES = {"heuristic": "bcts", "population": 12, "games": 2, "threads": 1}
LEARNERS = {
    "distill": {"n_envs": 8, "n_steps": 4, "gradient_steps": 2, "batch_size": 32, "buffer_size": 128},
    "kickstart": {"n_envs": 8, "n_steps": 4, "n_epochs": 2, "batch_size": 16},
}


def small(algorithm, changed=None, timesteps=192, interval=64, env_id=G2048, env_kwargs=SMALL, cap=None):
    """The configuration of a small run on 2×3; a teacher is the optimal player."""
    given = {"policy_kwargs": NETWORK, "teacher": "2048/optimal"} | LEARNERS[algorithm] | (changed or {})
    return Config(algorithm, env_id, env_kwargs, given, timesteps, interval, 5, 0, cap)


def random_layers(*sizes):
    """The arrays of an untrained network with layers of these sizes."""
    random, arrays = np.random.default_rng(0), {}
    for i, (wide, narrow) in enumerate(pairwise(sizes)):
        arrays[f"weight{i}"] = random.normal(size=(narrow, wide)).astype(np.float32)
        arrays[f"bias{i}"] = random.normal(size=narrow).astype(np.float32)
    return arrays
