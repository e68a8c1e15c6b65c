"""No file that is read makes Gymnasium import a module; a user who names one may."""

import json
import sys
from dataclasses import asdict, replace

import pytest
import torch
from mergefall.checks import id_of_file
from mergefall_baselines import make
from mergefall_baselines.arrays import read_arrays, write_arrays
from mergefall_training import cli, evaluate
from mergefall_training.compare.suite import load_suite
from mergefall_training.learn import models
from mergefall_training.learn.agents import SHIPPED, trained_in
from mergefall_training.learn.models import load_model
from mergefall_training.learn.presets import configure
from mergefall_training.learn.run import Config, read_config, read_curve, train
from mergefall_training.play.records import read_records
from mergefall_training.play.watching import Show
from mergefall_training.tune.climbing import Climb
from mergefall_training.tune.weights import tune

from .test_ppo import ppo

GAME, TETRIS = "mergefall/Game2048-v0", "mergefall/Tetris-v0"
EVIL = f"evilmod:{TETRIS}"
REFUSED = rf"env_id is 'evilmod:{TETRIS}'; expected an id that names no module to import"
SMALL = {"cols": 4, "rows": 4}


@pytest.fixture(autouse=True)
def evil(tmp_path, monkeypatch):
    """A module that could be imported and must not be; as `evil.imported` it says whether it was."""
    folder, trace = tmp_path / "modules", tmp_path / "imported"
    folder.mkdir()
    (folder / "evilmod.py").write_text(f"open({str(trace)!r}, 'w').close()\nclass Env: pass\n")
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "evilmod", raising=False)
    yield trace
    sys.modules.pop("evilmod", None)


@pytest.fixture
def refused(evil):
    """Checks that a file is refused for its id, and that nothing was imported."""

    def check(read, *arguments, match=REFUSED, **options):
        with pytest.raises(ValueError, match=match):
            read(*arguments, **options)
        assert not evil.exists()

    yield check
    assert not evil.exists()


def rewritten(path, old=TETRIS, new=EVIL):
    """A text file with another id in it."""
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    return path


@pytest.mark.parametrize(
    "env_id", [EVIL, ":Own-v0", "mergefall.evil:Own-v0", "a:mergefall:Own-v0", None, 3, {"id": TETRIS}]
)
def test_ids_that_files_may_not_hold(env_id):
    with pytest.raises(ValueError, match=r"env_id is .*; expected an id that names no module"):
        id_of_file(env_id)


def test_a_user_may_name_a_module(evil):
    assert evaluate("tetris/random", EVIL, 1, env_kwargs=SMALL, workers=1, progress=False).header.env_id == TETRIS
    assert evil.exists()


def test_a_record(tmp_path, refused, capsys):
    path = tmp_path / "run.jsonl"
    evaluate("tetris/random", TETRIS, 1, env_kwargs=SMALL, workers=1, out=path, progress=False)
    rewritten(path, TETRIS, f"mergefall:{TETRIS}")
    assert Show.recorded(path, 0).actions
    rewritten(path, f"mergefall:{TETRIS}", EVIL)
    refused(read_records, path, match=rf"run.jsonl, line 1: {REFUSED}")
    refused(Show.recorded, path, 0)
    with pytest.raises(SystemExit):
        cli.main(["watch", str(path)])
    assert "env_id is 'evilmod:" in capsys.readouterr().err


def test_a_record_of_an_environment_that_the_user_names_resumes(tmp_path, monkeypatch):
    (tmp_path / "modules" / "own_tetris.py").write_text(
        "import gymnasium as gym\ngym.register('OwnTetris-v0', 'mergefall.tetris.env:TetrisEnv', kwargs={'cols': 5})\n"
    )
    found = [
        evaluate("tetris/random", "own_tetris:OwnTetris-v0", n, workers=1, out=tmp_path / "own.jsonl", progress=False)
        for n in (1, 2)
    ]
    assert found[1].episodes[0] == found[0].episodes[0]
    config = Config("maskable-ppo", "own_tetris:OwnTetris-v0", {}, {"policy": "MultiInputPolicy"}, 10, 10)
    assert (config.env_id, config.env_kwargs["cols"]) == ("OwnTetris-v0", 5)


@pytest.mark.parametrize("file", sorted(path.name for path in SHIPPED.glob("tetris-*.npz")))
def test_a_model(tmp_path, refused, capsys, file):
    spec, arrays, _ = read_arrays(SHIPPED / file, models.FORMAT, models.VERSION)
    path = tmp_path / "model.npz"
    write_arrays(path, models.FORMAT, models.VERSION, spec | {"env_id": EVIL}, arrays)
    for read in (load_model, trained_in, make):
        refused(read, str(path), match=rf"model.npz: {REFUSED}")
    with pytest.raises(SystemExit):
        cli.main(["evaluate", str(path), "--episodes", "1"])
    assert "env_id is 'evilmod:" in capsys.readouterr().err


def test_a_run(tmp_path, refused):
    config = configure("afterstate", TETRIS, env_kwargs=SMALL, timesteps=64, changed={"n_envs": 2}, episodes=2)
    train(tmp_path, config, progress=False)
    rewritten(tmp_path / "curve.jsonl")
    assert read_curve(tmp_path)  # nothing is made of its id
    rewritten(tmp_path / "config.json")
    refused(read_config, tmp_path, match=rf"config.json, line 1: {REFUSED}")
    refused(train, tmp_path, config, resume=True, progress=False)
    warm = replace(config, hyperparameters={**config.hyperparameters, "warm_start": str(tmp_path)})
    refused(train, tmp_path / "warm", warm, progress=False)


NAMES = {
    "teacher": ("distill", {"hyperparameters": {"teacher": {"player": "evilmod:Env"}}}),
    "shaping": ("maskable-ppo", {"env_kwargs": {"shaping": {"potential": "evilmod:Env"}}}),
}


@pytest.mark.parametrize("name", NAMES)
def test_a_run_names_no_module(tmp_path, refused, capsys, name):
    """Neither resuming its folder nor a learner that begins from it imports what its configuration names."""
    algorithm, changed = NAMES[name]
    written = json.loads(json.dumps(asdict(configure(algorithm))))
    for part, value in changed.items():
        written[part] |= value
    (tmp_path / "config.json").write_text(json.dumps({"format": "mergefall training run", "version": 1, **written}))
    expected = (
        f"config.json, line 1: {next(iter(changed))} names 'evilmod:Env', a module to import; only you may name one"
    )
    refused(read_config, tmp_path, match=expected)
    refused(train, tmp_path, configure(algorithm), resume=True, progress=False, match=expected)
    with pytest.raises(SystemExit):
        cli.main(["train", str(tmp_path), "--resume"])
    assert "repeat the command that began the run, with --out" in capsys.readouterr().err


def test_a_user_may_name_the_module_of_a_run_again(tmp_path):
    (tmp_path / "modules" / "own_teacher.py").write_text(
        "from mergefall_baselines import make\nTeacher = make('2048/greedy')\n"
    )
    changed = {"teacher": "own_teacher:Teacher", "n_envs": 4, "n_steps": 4, "batch_size": 8}
    config = configure("distill", changed=changed, timesteps=16, interval=16, episodes=2)
    for resume in (False, True):
        train(tmp_path / "run", config, resume=resume, progress=False)
    assert read_config(tmp_path / "run", changed) == config


def test_the_heuristic_of_a_model(tmp_path, refused):
    spec, arrays, _ = read_arrays(SHIPPED / "tetris-cross-entropy.npz", models.FORMAT, models.VERSION)
    path, network = tmp_path / "model.npz", spec["network"] | {"heuristic": "evilmod:Env"}
    write_arrays(path, models.FORMAT, models.VERSION, spec | {"network": network}, arrays)
    refused(
        make, str(path), match="names 'evilmod:Env', a module to import; only you may name one: the option heuristic"
    )
    assert make(str(path), heuristic="dt-10")


def test_a_suite(tmp_path, refused):
    path = tmp_path / "own.yaml"
    game = {"name": "one", "env": EVIL, "episodes": 1, "players": [{"train": {"algorithm": "dqn"}}]}
    path.write_text(json.dumps({"games": [game]}))
    refused(load_suite, path, match=rf"game 1: {REFUSED}")


def test_trials(tmp_path, refused):
    climb, path = Climb(games=2, finals=2, passes=1, restarts=0, trials=1), tmp_path / "trials.jsonl"
    arguments = "tetris/greedy", {"heuristic": "dellacherie"}, TETRIS, climb
    options = {"only": ["holes"], "env_kwargs": SMALL, "out": path, "progress": False}
    tune(*arguments, **options)
    rewritten(path)
    refused(tune, *arguments, **options, match="another run: env_id is 'evilmod:")


def test_a_checkpoint_of_the_script(tmp_path, refused):
    small = {"num_envs": 2, "num_steps": 2, "num_minibatches": 1, "total_timesteps": 4}
    ppo.train(ppo.Args(TETRIS, SMALL, **small, out=str(tmp_path)))
    state = torch.load(tmp_path / "checkpoint.pt", weights_only=True)
    state["args"]["env_id"] = EVIL
    torch.save(state, tmp_path / "checkpoint.pt")
    refused(ppo.Player, str(tmp_path / "checkpoint.pt"))
    state["args"] |= {"env_id": TETRIS, "env_kwargs": {"shaping": {"potential": "evilmod:Env"}}}
    torch.save(state, tmp_path / "checkpoint.pt")
    refused(ppo.Player, str(tmp_path / "checkpoint.pt"), match="env_kwargs names 'evilmod:Env'")
