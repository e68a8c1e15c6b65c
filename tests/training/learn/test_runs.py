"""A run is checked before its folder is made; what differs from a run on file is named, key by key."""

import json
import os
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

from .small_runs import G2048, LEARNERS, NETWORK, OF_TETRIS, TETRIS

ON_TETRIS = ("afterstate", "cma-es")
SMALL = ["--env-option", "rows=4", "--timesteps", "40", "--interval", "40", "--episodes", "2", "--device", "cpu"]
BAG = {"env_id": TETRIS, "cols": 5, "rows": 6, "randomizer": "bag7"}

QUICK = {"n_envs": 2, "n_steps": 4, "batch_size": 8}


def command(capsys, algorithm, out, *options, **changed):
    """Train; returns (exit status, the last line of errors)."""
    game = "Tetris" if algorithm in ON_TETRIS else "Game2048"
    texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in changed.items()}
    settings = [f"--set={name}={text}" for name, text in texts.items()]
    try:
        main(["train", algorithm, "--env", f"mergefall/{game}-v0", "--out", str(out), *SMALL, *settings, *options])
    except SystemExit as ended:
        return ended.code, capsys.readouterr().err.splitlines()[-1]
    return 0, ""


@pytest.mark.parametrize(
    ("algorithm", "changed", "complaint"),
    [
        ("maskable-ppo", {"learning_rat": 1}, "maskable-ppo has no 'learning_rat'; it has batch_size, clip_range"),
        ("maskable-ppo", {"policy": "CnnPolic"}, "policy is 'CnnPolic'; expected one of"),
        (
            "dqn",
            {"policy_kwargs": {}, "learning_starts": 8},
            "features_extractor_class is FlattenExtractor; AfterstatesPolicy takes",
        ),
        ("maskable-ppo", {"policy_kwargs": {"depth": 3}}, "maskable-ppo cannot be made of {"),
        ("maskable-ppo", {"batch_size": 24}, "batch_size is 24; expected a divisor of n_envs · n_steps, 2048, above 1"),
        ("maskable-ppo", {"warm_start": "nothing"}, "there is no file nothing; expected a mergefall model"),
        ("maskable-ppo", {"env_wrapper": "fear"}, "env_wrapper is 'fear'; expected a list of {NAME: ARGUMENTS}"),
        ("dqn", {"learning_starts": 10_000_000}, "learning_starts is 10000000, timesteps is "),
        ("afterstate", {"warm_start": "nothing"}, "nothing holds no training run"),
        ("ntuple", {"patterns": "'0z'"}, "pattern '0z' does not fit 4×4"),
    ],
)
def test_what_is_refused_leaves_no_folder(tmp_path, capsys, algorithm, changed, complaint):
    status, said = command(capsys, algorithm, tmp_path / "run", **changed)
    assert status == 2
    assert complaint in said
    assert not list(tmp_path.iterdir())


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


@pytest.mark.parametrize(
    ("algorithm", "env_kwargs", "changed", "complaint"),
    [
        ("cma-es", {}, {"spread": 1.0}, "spread is 1.0, which goes with warm_start"),
        ("cma-es", {}, {"population": 3}, "population is 3"),
        ("cma-es", {}, {"heuristic": {"name": "bcts", "hole": 1}}, "has no 'hole'"),
        ("cma-es", {}, {"heuristic": []}, r"features are \[\]; expected some of landing_height"),
        ("cma-es", {}, {"heuristic": ["holes", "holes"]}, "each once"),
        ("cma-es", {}, {"heuristic": ["holes", "f1"]}, "'f1'"),
        ("cma-es", {"reward": "score"}, {}, "takes no reward but lines"),
        ("cma-es", {"env_id": G2048}, {}, "expected the game of mergefall/Tetris-v0"),
        ("afterstate", {}, {"policy_kwargs": {"net_arch": [0]}}, "net_arch is 0"),
        ("afterstate", {}, {"policy_kwargs": {"layers": [8]}}, "expected {'net_arch'"),
        ("afterstate", {"env_id": G2048}, {}, "afterstate learns Tetris, without shaping"),
        ("ntuple", {}, {"threads": True}, "threads is True"),
        ("ntuple", {"reward": "log2"}, {}, "learns 2048 from its score"),
        ("ntuple", {"goal": 16}, {}, "without goal"),
        ("ntuple", {}, {"patterns": "04"}, "'04'"),
        ("ntuple", {"rows": 5}, {}, "5"),
        ("kickstart", {}, {"teacher": None}, "teacher is None; expected a Player, a player's name"),
        ("distill", {}, {"teacher": "tetris/bcts"}, "expected the game of mergefall/Tetris-v0"),
        ("kickstart", {}, {"batch_size": 1}, "batch_size is 1; expected a divisor"),
        ("kickstart", {}, {"batch_size": 5}, "batch_size is 5; expected a divisor of n_envs · n_steps, 32"),
        ("distill", {}, {"gap_share": 0}, "gap_share is 0; expected a finite number above 0"),
        ("distill", {}, {"teacher": []}, r"teacher is \[\]; expected a Player"),
        ("distill", {}, {"teacher": ["2048/optimal", 3]}, "teacher is 3; expected a Player"),
        ("distill", BAG, {"teacher": "tetris/expectimax"} | OF_TETRIS, "expectimax', which remembers"),
    ],
)
def test_what_cannot_be_learnt_is_refused(algorithm, env_kwargs, changed, complaint):
    kwargs = {"env_id": TETRIS, "rows": 6} if algorithm in ON_TETRIS else {"env_id": G2048, "rows": 2, "cols": 2}
    kwargs |= env_kwargs
    usual = {"policy_kwargs": NETWORK, "teacher": "2048/optimal"} | LEARNERS[algorithm] if algorithm in LEARNERS else {}
    config = Config(algorithm, kwargs.pop("env_id"), kwargs, usual | changed, 10, 10)
    with pytest.raises(ValueError, match=complaint):
        begun(config)


def test_a_device_that_is_none_leaves_no_folder(tmp_path, capsys):
    status, said = command(capsys, "maskable-ppo", tmp_path / "run", "--device", "cuad")
    assert (status, said) == (2, "mergefall: device is 'cuad'; expected auto, cpu, or another that PyTorch finds here")
    assert not list(tmp_path.iterdir())


def test_a_corrected_command_trains_and_another_one_is_refused_for_what_differs(tmp_path, capsys):
    out = tmp_path / "run"
    assert command(capsys, "maskable-ppo", out, gama=0.5, **QUICK)[0] == 2
    assert command(capsys, "maskable-ppo", out, gamma=0.5, **QUICK) == (0, "")
    before = (out / "config.json").read_bytes()
    other = QUICK | {"gamma": 0.75, "vf_coef": 0.25}
    status, said = command(capsys, "maskable-ppo", out, "--resume", "--env-option", "cols=3", **other)
    assert status == 2
    assert said == (
        f"mergefall: {out} holds another run: env_kwargs.cols is 4 there, 3 here; hyperparameters.gamma is 0.5 there, "
        "0.75 here; hyperparameters.vf_coef is 2.0 there, 0.25 here. Choose another folder, there perhaps with "
        f"warm_start={out}"
    )
    assert (out / "config.json").read_bytes() == before
    assert command(capsys, "maskable-ppo", out, "--resume", gamma=0.5, **QUICK) == (0, "")


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
    assert command(capsys, "maskable-ppo", Path("other"), **QUICK) == (0, "")


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
