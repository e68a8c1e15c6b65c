"""A run is checked before its folder is made; what differs from a run on file is named, key by key."""

import os
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from mergefall_training.cli import main
from mergefall_training.files import differences
from mergefall_training.learn import ALGORITHMS
from mergefall_training.learn.presets import configure, load_preset, presets_of
from mergefall_training.learn.run import Config, begun, open_run, read_curve, train

from tests.fuzz import refused

from .small_runs import G2048, LEARNERS, TETRIS

QUICK = {"n_envs": 2, "n_steps": 4, "batch_size": 8}
REFUSED = {  # by learner and options, a part of what is said
    "maskable-ppo --set learning_rat=1": "maskable-ppo has no 'learning_rat'; it has batch_size, clip_range",
    "maskable-ppo --set policy=CnnPolic": "policy is 'CnnPolic'; expected one of",
    "maskable-ppo --set 'policy_kwargs={depth: 3}'": "maskable-ppo cannot be made of {",
    "maskable-ppo --set batch_size=24": "batch_size is 24; expected a divisor of n_envs · n_steps, 2048, above 1",
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


def command(capsys, out, text):
    """Train; returns (exit status, the last line of errors)."""
    options = "--timesteps 40 --interval 40 --episodes 2 --device cpu"
    try:
        main(["train", *shlex.split(f"{options} {text}"), "--out", str(out)])
    except SystemExit as ended:
        return ended.code, capsys.readouterr().err.splitlines()[-1]
    return 0, ""


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_refused_leaves_no_folder(tmp_path, capsys, text):
    status, said = command(capsys, tmp_path / "run", text)
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
    """Those with a teacher: `test_teachers.py`. The preset `network` goes with a network's file."""
    if name != "network":
        begun(configure(algorithm, env_id, preset=name or None))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_hyperparameter_is_refused_by_name(algorithm):
    env_id, name, _ = presets_of(algorithm)[0]
    config = configure(algorithm, env_id, preset=name or None)

    def check(**changed):
        begun(replace(config, hyperparameters=config.hyperparameters | changed))

    with pytest.raises(ValueError, match=f"{algorithm} has no 'typo'; it has ") as error:
        check(typo=1)
    for one in str(error.value).partition("it has ")[2].split(", "):
        for value in ("nonsense", -1, float("nan"), {"x": 1}):
            assert refused(lambda: check(**{one: value}), one, str(value)), (one, value)  # noqa: B023


QUICKLY = "maskable-ppo --env-option rows=4 --set n_envs=2 --set n_steps=4 --set batch_size=8"


def test_a_corrected_command_trains_and_another_one_is_refused_for_what_differs(tmp_path, capsys):
    out = tmp_path / "run"
    assert command(capsys, out, f"{QUICKLY} --set gama=0.5")[0] == 2
    assert command(capsys, out, f"{QUICKLY} --set gamma=0.5") == (0, "")
    before = (out / "config.json").read_bytes()
    changes = "--resume --env-option cols=3 --set gamma=0.75 --set vf_coef=0.25"
    status, said = command(capsys, out, f"{QUICKLY} {changes}")
    assert status == 2
    assert said == (
        f"mergefall: {out} holds another run: env_kwargs.cols is 4 there, 3 here; hyperparameters.gamma is 0.5 there, "
        "0.75 here; hyperparameters.vf_coef is 2.0 there, 0.25 here. Choose another folder, there perhaps with "
        f"warm_start={out}"
    )
    assert (out / "config.json").read_bytes() == before
    assert command(capsys, out, f"{QUICKLY} --resume --set gamma=0.5") == (0, "")


def test_the_folder_of_a_run_says_how_it_is_resumed(tmp_path, capsys, monkeypatch):
    config = configure("maskable-ppo", env_kwargs={"rows": 2}, changed=QUICK, timesteps=16, interval=8, episodes=2)
    out = tmp_path / "run"
    with open_run(out, config, progress=False):
        pass
    main(["train", str(out), "--resume", "--device", "cpu"])
    assert f"{out}: 16 steps" in capsys.readouterr().out
    for options in ([], ["--resume", "--timesteps", "32"], ["--resume", "--set", "gamma=0.5"]):
        with pytest.raises(SystemExit) as stopped:
            main(["train", str(out), *options])
        assert stopped.value.code == 2
        assert f"{out} is a run, which goes on as it was begun: " in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["train", str(tmp_path), "--resume"])
    assert f"{tmp_path} holds no training run" in capsys.readouterr().err
    monkeypatch.chdir(tmp_path)
    Path("maskable-ppo").mkdir()  # an algorithm's name stays one
    assert command(capsys, "other", QUICKLY) == (0, "")


def test_a_run_may_be_begun_or_resumed(tmp_path):
    config = configure("maskable-ppo", env_kwargs={"rows": 2}, changed=QUICK, timesteps=16, interval=8, episodes=2)
    for _ in range(2):
        train(tmp_path / "run", config, resume=True, progress=False)
        assert [point.step for point in read_curve(tmp_path / "run")] == [0, 8, 16]


@pytest.mark.parametrize(
    ("found", "asked", "expected"),
    [
        ({"a": 1, "b": {"c": [1, 2]}}, {"b": {"c": [1, 2]}, "a": 1}, []),
        ({"a": {"b": {"c": 1, "d": 2}}}, {"a": {"b": {"c": 1, "d": 3}}}, ["a.b.d is 2 there, 3 here"]),
        ({"a": {"b": 1}}, {"a": None}, ["a is {'b': 1} there, None here"]),
        ({"a": None}, {}, ["a is None there, missing here"]),
        ({}, {"a": {}}, ["a is missing there, {} here"]),
    ],
)
def test_differences(found, asked, expected):
    assert differences(found, asked) == expected


WITHOUT = """
import sys
for name in {missing!r}:
    sys.modules[name] = None  # as if it were not installed
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
