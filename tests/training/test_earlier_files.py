"""Files of earlier versions, in which Tetris observations have the part `next`, are read with today's `queue`."""

from types import SimpleNamespace

import gymnasium as gym
import mergefall  # noqa: F401
import numpy as np
from mergefall_baselines.arrays import write_arrays
from mergefall_training.learn.clone import demonstrations
from mergefall_training.learn.models import flatten, unflatten
from mergefall_training.wrappers.starts import FORMAT, VERSION, load_starts, with_starts

SEEN = {"board": np.zeros((2, 4, 5), np.uint8), "piece": np.array([2, 3]), "next": np.array([[5], [6]])}


def assert_renamed(parts):
    assert list(parts) == ["board", "piece", "queue"]  # sorted, as spaces sort them, so flattened ones stay the same
    np.testing.assert_array_equal(parts["queue"], SEEN["next"])


def test_start_positions(tmp_path):
    write_arrays(tmp_path / "starts.npz", FORMAT, VERSION, {}, SEEN)
    assert [start["queue"].tolist() for start in load_starts(tmp_path / "starts.npz")] == [[5], [6]]
    env = with_starts(gym.make("mergefall/Tetris-v0", cols=5, rows=4), tmp_path / "starts.npz", ordinary=0)
    observation, _ = env.reset(seed=0)
    assert (int(observation["piece"]), *observation["queue"]) in {(2, 5), (3, 6)}


def test_checkpoints():
    state = unflatten(*flatten({"observations": SEEN, "links": {"next": 1}}))
    assert_renamed(state["observations"])
    assert state["links"] == {"next": 1}  # no observation


def test_recorded_games():
    played = {"actions": [0], "rewards": [0.0], "terminations": [False], "truncations": [True]}
    episode = SimpleNamespace(observations=SEEN, infos={"action_mask": np.ones((2, 20), np.int8)}, **played)
    assert_renamed(demonstrations._game(episode, 7).observations)
