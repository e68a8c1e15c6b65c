"""A run of any learner that was killed, wherever it was, ends where an unbroken one ends."""

import itertools
import json
import math
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
from mergefall_baselines import arrays
from mergefall_baselines.arrays import read_arrays
from mergefall_training import files
from mergefall_training.learn.models import load_model
from mergefall_training.learn.ntuple import train as ntuple_train
from mergefall_training.learn.run import CHECKPOINT, Config, Point, Run, open_run, read_curve, train

from tests.training.learn.small_runs import (
    FIELD,
    G2048,
    KEYS,
    KEYS_FIELD,
    NETWORK,
    OF_KEYS,
    OF_TETRIS,
    SMALL,
    TAUGHT_KEYS,
    TETRIS,
    small,
)

SMALL_NETWORK = {"policy": "MlpPolicy", "policy_kwargs": {"net_arch": [4]}}
ON_POLICY = {"n_envs": 4, "n_steps": 8, "batch_size": 16, "n_epochs": 2, "normalize": True}
OFF_POLICY = {"n_envs": 4, "learning_starts": 20, "buffer_size": 40, "batch_size": 8, "gradient_steps": 1}
AFTERSTATE = {"n_envs": 8, "n_steps": 4, "batch_size": 16, "n_epochs": 2, "policy_kwargs": {"net_arch": [8]}}
CMA_ES = {"heuristic": "bcts", "population": 12, "games": 2, "threads": 1}
NTUPLE = {"patterns": "0123 01", "learning_rate": 0.5, "threads": 1, "coherence": 0.5}
RUNS = {  # made later: a configuration is checked by an environment, which compiles kernels
    "maskable-ppo 2048": lambda: Config("maskable-ppo", G2048, SMALL, ON_POLICY | SMALL_NETWORK, 256, 64, 3),
    "maskable-ppo tetris": lambda: Config("maskable-ppo", TETRIS, FIELD, ON_POLICY | OF_TETRIS, 256, 64, 3),
    "maskable-ppo keys": lambda: Config("maskable-ppo", KEYS, KEYS_FIELD, ON_POLICY | OF_KEYS, 256, 64, 3, 0, 40),
    "dqn": lambda: Config(
        "dqn", TETRIS, FIELD, OFF_POLICY | SMALL_NETWORK | {"policy": "MultiInputPolicy"}, 128, 48, 3
    ),
    "dqn over afterstates": lambda: Config("dqn", TETRIS, FIELD, OFF_POLICY | OF_TETRIS, 128, 48, 3),
    "distill": lambda: small("distill", {"policy_kwargs": NETWORK, "teacher": ["2048/optimal", "2048/greedy"]}),
    "distill keys": lambda: small("distill", TAUGHT_KEYS, env_id=KEYS, env_kwargs=KEYS_FIELD, cap=40),
    "kickstart": lambda: small("kickstart"),
    "kickstart keys": lambda: small("kickstart", TAUGHT_KEYS, env_id=KEYS, env_kwargs=KEYS_FIELD, cap=40),
    "afterstate": lambda: Config("afterstate", TETRIS, FIELD, AFTERSTATE, 192, 64, 3, 0, 40),
    "cma-es": lambda: Config("cma-es", TETRIS, FIELD, CMA_ES, 4000, 1200, 3, 0, 60),
    "ntuple": lambda: Config("ntuple", G2048, {"rows": 2, "cols": 2}, NTUPLE, 6000, 2000, 3),
}


class Killed(BaseException):
    """What no handler catches, as a kill is not."""


def dying(method, at):
    """A method of `Run` that kills at its `at`-th call."""
    calls = []

    def called(*arguments):
        calls.append(1)
        if len(calls) == at:
            raise Killed
        return method(*arguments)

    return called


def ends(folder):
    """All that a run left, but for times."""
    _, checkpoint, _ = read_arrays(folder / "checkpoint.npz", CHECKPOINT, 1)
    models = [load_model(folder / name).arrays for name in ("best.npz", "model.npz")]
    return [(point.step, point.mean) for point in read_curve(folder)], [checkpoint, *models]


SLOW = ("dqn", "distill keys", "kickstart keys", "maskable-ppo 2048")


@pytest.mark.parametrize("name", [pytest.param(one, marks=[pytest.mark.slow] * (one in SLOW)) for one in RUNS])
def test_a_killed_run_ends_as_an_unbroken_one(tmp_path, monkeypatch, name):
    monkeypatch.setattr(ntuple_train, "ROUND", 500)
    config = RUNS[name]()
    train(tmp_path / "whole", config, progress=False)
    # In the middle of an interval; between an evaluation and its checkpoint; right after one.
    for method, at in (("due", 3), ("save_checkpoint", 2), ("due", 2)):
        with monkeypatch.context() as patch:
            patch.setattr(Run, method, dying(getattr(Run, method), at))
            with pytest.raises(Killed):
                train(tmp_path / "broken", config, resume=True, progress=False)
    train(tmp_path / "broken", config, resume=True, progress=False)
    assert len(assert_equal_ends(tmp_path / "broken", tmp_path / "whole")) > 3


def assert_equal_ends(broken, unbroken):
    """Checks that two runs left the same; returns their curve."""
    (curve, found), (expected, whole) = ends(broken), ends(unbroken)
    assert curve == expected
    for one, other in zip(found, whole, strict=True):
        assert one.keys() == other.keys()
        for key, array in one.items():
            np.testing.assert_array_equal(array, other[key], strict=True)
    return curve


def test_what_json_lacks_is_kept(tmp_path):
    """The infinite mean of a run in which no game ended, the ends of one game, and a learner's infinite numbers."""
    ends, state = {"mean": math.inf, "low": 5.0, "high": math.inf}, {"best": -math.inf, "array": np.arange(3)}
    point = Point(step=0, seconds=1.0, episodes=3, headline="lines", **ends, capped=3, tiles={})
    points = [point, replace(point, step=9, mean=7.0, low=math.nan, high=math.nan)]
    with open_run(tmp_path, RUNS["cma-es"](), progress=False) as run:
        run.points = points
        run.save_checkpoint(9, state)
    for line in (tmp_path / "curve.jsonl").read_text().splitlines():
        json.loads(line, parse_constant=pytest.fail)
    with np.load(tmp_path / "checkpoint.npz") as entries:
        json.loads(entries["description"].tobytes(), parse_constant=pytest.fail)
    with open_run(tmp_path, RUNS["cma-es"](), resume=True, progress=False) as run:
        assert str(run.points) == str(points)  # NaN is not equal to itself
        run.points = []
        assert str(run.load_checkpoint()) == str((9, state))
        assert str(run.points) == str(points)


def test_a_run_killed_at_any_write_ends_as_an_unbroken_one(tmp_path, monkeypatch):
    monkeypatch.setattr(ntuple_train, "ROUND", 500)
    config, whole_file = RUNS["ntuple"](), arrays.whole_file
    train(tmp_path / "whole", config, progress=False)
    for last in itertools.count(1):
        written = itertools.count(1)

        @contextmanager
        def whole_until_the_last(path, written=written, last=last):
            with whole_file(path) as temporary:
                yield temporary
            if next(written) == last:
                raise Killed

        folder = tmp_path / str(last)
        with monkeypatch.context() as patch:
            for module in (arrays, files):
                patch.setattr(module, "whole_file", whole_until_the_last)
            try:
                train(folder, config, progress=False)
                break
            except Killed:
                pass
        train(folder, config, resume=True, progress=False)
        assert_equal_ends(folder, tmp_path / "whole")
    assert last > 4 * 3  # each evaluation writes three files at least
