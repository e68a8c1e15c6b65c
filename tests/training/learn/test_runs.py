"""Runs: what is refused leaves no folder, what differs is named, and a killed run ends as an unbroken one."""

import itertools
import json
import math
import os
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from mergefall_baselines import arrays
from mergefall_baselines.arrays import read_arrays
from mergefall_training import files
from mergefall_training.learn import ALGORITHMS
from mergefall_training.learn.models import flatten, load_model
from mergefall_training.learn.ntuple import train as ntuple_train
from mergefall_training.learn.presets import configure, load_preset, presets_of
from mergefall_training.learn.run import (
    CHECKPOINT,
    Config,
    Point,
    Run,
    begun,
    open_run,
    read_checkpoint,
    read_curve,
    train,
)

from tests.fuzz import refused
from tests.training.learn.small_runs import (
    AFTERSTATE,
    CMA_ES,
    FIELD,
    G2048,
    KEYS,
    KEYS_FIELD,
    LEARNERS,
    NETWORK,
    OF_KEYS,
    OF_TETRIS,
    OFF_POLICY,
    ON_POLICY,
    SMALL,
    SMALL_NETWORK,
    TAUGHT_KEYS,
    TETRIS,
    small,
)

REFUSED = {  # by learner and options, a part of what is said
    "maskable-ppo --set learning_rat=1": "maskable-ppo has no 'learning_rat'; it has batch_size, clip_range",
    "maskable-ppo --set policy=CnnPolic": "policy is 'CnnPolic'; expected one of",
    "maskable-ppo --set 'policy_kwargs={depth: 3}'": "maskable-ppo cannot be made of {",
    "maskable-ppo --set batch_size=24": "batch_size is 24; expected a divisor of n_envs · n_steps, 4096, above 1",
    "maskable-ppo --set warm_start=nothing": "there is no file nothing; expected a mergefall model",
    "maskable-ppo --set env_wrapper=fear": "env_wrapper is 'fear'; expected a list of {NAME: ARGUMENTS}",
    "maskable-ppo --device cuad": "device is 'cuad'; expected auto, cpu, or another that PyTorch finds here",
    "dqn --set policy_kwargs={} --set learning_starts=8": "features_extractor_class is FlattenExtractor; Afterstates",
    "dqn --set learning_starts=10_000_000": "learning_starts is 10000000, timesteps is ",
    "afterstate --set warm_start=nothing": "nothing holds no training run",
    "afterstate --set 'policy_kwargs={net_arch: [0]}'": "net_arch is 0",
    "afterstate --set 'policy_kwargs={layers: [8]}'": "expected {'net_arch'",
    "cma-es --set spread=1.0": "spread is 1.0, which goes with warm_start",
    "cma-es --set population=3": "population is 3",
    "cma-es --set 'heuristic={name: bcts, hole: 1}'": "has no 'hole'",
    "cma-es --set heuristic=[holes]": "heuristic ['holes']; expected a name, a mapping",
    "cma-es --env-option reward=score": "takes no reward but lines",
    "ntuple --set patterns=0z": "pattern '0z' does not fit 4×4",
    "ntuple --set threads=true": "threads is True",
    "ntuple --env-option reward=log2": "learns 2048 from its score",
    "ntuple --env-option goal=16": "without goal",
    "ntuple --env-option rows=5": "5",
    "kickstart --set teacher=null": "teacher is None; expected a Player, a player's name",
    "kickstart --set batch_size=1": "batch_size is 1; expected a divisor",
    "kickstart --set batch_size=5": "batch_size is 5; expected a divisor of n_envs · n_steps, ",
    "distill --set teacher=tetris/bcts": "expected the game of mergefall/Tetris-v0",
    "distill --set gap_share=0": "gap_share is 0; expected a finite number above 0",
    "distill --set teacher=[]": "teacher is []; expected a Player",
    "distill --set 'teacher=[2048/greedy, 3]'": "teacher is 3; expected a Player",
    f"distill --env {TETRIS} --set teacher=tetris/expectimax --env-option randomizer=bag7": "', which remembers",
}


@pytest.fixture
def begin(command):
    """Trains into a folder; returns (exit status, the last line of errors)."""
    options = "--timesteps 40 --interval 40 --episodes 2 --device cpu"

    def run(out, text):
        _, errors, status = command(f"train {options} {text} --out", out)
        return status, errors.splitlines()[-1] if status else ""

    return run


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_refused_leaves_no_folder(tmp_path, begin, text):
    status, said = begin(tmp_path / "run", text)
    assert status == 2
    assert REFUSED[text] in said
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("algorithm", "complaint"),
    [
        ("cma-es", "expected the game of mergefall/Tetris-v0"),
        ("afterstate", "afterstate learns Tetris, without "),
    ],
)
def test_what_learns_tetris_does_not_learn_2048(algorithm, complaint):
    with pytest.raises(ValueError, match=complaint):
        begun(Config(algorithm, G2048, {}, {}, 10, 10))


@pytest.mark.parametrize(
    ("algorithm", "env_id", "name"),
    [(one, *found[:2]) for one in ALGORITHMS if one not in LEARNERS for found in presets_of(one)],
)
def test_presets_are_sound(algorithm, env_id, name):
    """Those with a teacher: `test_students.py`. The preset `network` goes with a network's file."""
    if name != "network":
        begun(configure(algorithm, env_id, preset=name))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_hyperparameter_is_refused_by_name(algorithm):
    env_id, name, _ = presets_of(algorithm)[0]
    config = configure(algorithm, env_id, preset=name)

    def check(**changed):
        begun(replace(config, hyperparameters=config.hyperparameters | changed))

    with pytest.raises(ValueError, match=f"{algorithm} has no 'typo'; it has ") as error:
        check(typo=1)
    for one in str(error.value).partition("it has ")[2].split(", "):
        for value in ("nonsense", -1, float("nan"), {"x": 1}):
            assert refused(lambda: check(**{one: value}), one, str(value)), (one, value)  # noqa: B023


QUICKLY = "maskable-ppo --env-option rows=4 --set n_envs=2 --set n_steps=4 --set batch_size=8"


def test_a_corrected_command_trains_and_another_one_is_refused_for_what_differs(tmp_path, begin):
    out = tmp_path / "run"
    assert begin(out, f"{QUICKLY} --set gama=0.5")[0] == 2
    assert begin(out, f"{QUICKLY} --set gamma=0.5") == (0, "")
    before = (out / "config.json").read_bytes()
    changes = "--resume --env-option cols=3 --set gamma=0.75 --set vf_coef=0.25"
    status, said = begin(out, f"{QUICKLY} {changes}")
    assert status == 2
    assert said == (
        f"mergefall: {out} holds another run: env_kwargs.cols is 4 there, 3 here; hyperparameters.gamma is 0.5 there, "
        "0.75 here; hyperparameters.vf_coef is 2.0 there, 0.25 here. Choose another folder, there perhaps with "
        f"warm_start={out}"
    )
    assert (out / "config.json").read_bytes() == before
    assert begin(out, f"{QUICKLY} --resume --set gamma=0.5") == (0, "")


def test_the_folder_of_a_run_says_how_it_is_resumed(tmp_path, command, begin, monkeypatch):
    out = tmp_path / "run"
    with open_run(out, RUNS["afterstate"](), progress=False):
        pass
    assert f"{out}: 192 steps" in command("train --resume --device cpu", out)[0]
    for options in ("", "--resume --timesteps 32", "--resume --set gamma=0.5"):
        _, errors, status = command(f"train {options}", out)
        assert status == 2
        assert f"{out} is a run, which goes on as it was begun: " in errors
    assert f"{tmp_path} holds no training run" in command("train --resume", tmp_path)[1]
    monkeypatch.chdir(tmp_path)
    Path("maskable-ppo").mkdir()  # an algorithm's name stays one
    assert begin("other", QUICKLY) == (0, "")


WITHOUT = """
import sys
class NotInstalled:
    def find_spec(name, *others):
        if name in {missing!r}:
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, NotInstalled)
from mergefall_training.learn.run import Config, train
train({folder!r}, Config(*{config!r}, episodes=2), progress=False)
"""
ALL = ("torch", "stable_baselines3", "sb3_contrib", "tensorboard")


@pytest.mark.parametrize(
    ("missing", "config"),
    [
        (ALL, ("ntuple", "mergefall/Game2048-v0", {"rows": 2, "cols": 2}, {"patterns": "0123 01"}, 100, 100)),
        (ALL, ("cma-es", "mergefall/Tetris-v0", {"rows": 4}, {"population": 4, "games": 1}, 50, 50)),
        (ALL[1:3], ("afterstate", "mergefall/Tetris-v0", {"rows": 4, "preview": 0}, {"n_envs": 2}, 64, 64)),
    ],
)
def test_learners_import_only_what_they_need(tmp_path, missing, config):
    script = WITHOUT.format(missing=missing, folder=str(tmp_path / "run"), config=config)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=600)
    assert run.returncode == 0, run.stderr
    assert ("tensorboard is not installed" in run.stderr) == ("tensorboard" in missing)
    assert len(read_curve(tmp_path / "run")) > 1


def test_changing_a_preset_changes_no_other():
    load_preset("maskable-ppo", "mergefall/Tetris-v0")["env_kwargs"]["rows"] = 4
    assert load_preset("maskable-ppo", "mergefall/Tetris-v0")["env_kwargs"] == {"rows": 10}


def test_the_board_of_a_preset_is_for_its_own_environment():
    """Another environment of the game has its own size; the module before an id does not matter."""
    for env_id, size in (("Tetris", (10, 10)), ("SZTetris", (10, 20)), ("Quintris", (15, 25))):
        found = configure("maskable-ppo", f"mergefall:mergefall/{env_id}-v0").env_kwargs
        assert (found["cols"], found["rows"]) == size
    assert configure("maskable-ppo", "mergefall/Quintris-v0", env_kwargs={"rows": 12}).env_kwargs["rows"] == 12


# -- killed runs -------------------------------------------------------------------------------------------------------


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


OTHER = {"policy_kwargs": {"net_arch": [3]}}
WARM = {  # by run: its file, what begins as it ended, another network, and what is said of that
    "maskable-ppo 2048": ("model.npz", "policy", OTHER, r"net_arch is \[4\] there, \[3\] here"),
    **dict.fromkeys(
        LEARNERS, ("model.npz", "policy", {"policy_kwargs": NETWORK | {"net_arch": [4]}}, "is another model: .* there")
    ),
    "afterstate": ("", "layers optimizer", OTHER, r"net_arch is \[8\] there, \[3\] here"),
    "ntuple": ("", "weights coherence", {"patterns": "0123"}, "patterns is '0123 01' there, '0123' here"),
}


@pytest.mark.parametrize("name", WARM)
def test_a_warm_start_begins_where_the_other_run_ended(tmp_path, name):
    config, (file, kept, other, complaint) = RUNS[name](), WARM[name]
    train(tmp_path, config, progress=False)

    def second(**changed):
        settings = config.hyperparameters | {"warm_start": str(tmp_path / file)} | changed
        return begun(replace(config, hyperparameters=settings), "cpu")

    found, expected = (
        flatten({key: state[key] for key in kept.split()})[1]
        for state in (second().state(), read_checkpoint(tmp_path)[1])
    )
    assert found.keys() == expected.keys()
    for key, array in expected.items():
        np.testing.assert_array_equal(found[key], array)
    with pytest.raises(ValueError, match=complaint):
        second(**other)


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
