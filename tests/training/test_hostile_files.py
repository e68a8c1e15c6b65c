"""No file that is read imports or runs anything, wherever in it it says so; its user may name what files name."""

import json
import sys
from copy import deepcopy
from dataclasses import asdict

import pytest
import torch
from mergefall import imports
from mergefall.imports import inert
from mergefall_baselines import make
from mergefall_baselines.arrays import write_arrays
from mergefall_baselines.game2048.network import TupleNetwork
from mergefall_training import evaluate
from mergefall_training.compare.comparison import read_results
from mergefall_training.compare.figures import write_figures
from mergefall_training.compare.suite import load_suite
from mergefall_training.learn import models, run
from mergefall_training.learn.agents import SHIPPED, trained_in
from mergefall_training.learn.models import load_model
from mergefall_training.learn.presets import configure
from mergefall_training.learn.run import Config, read_checkpoint, read_config, train
from mergefall_training.play.evaluation import Evaluation
from mergefall_training.play.match import Match
from mergefall_training.play.records import read_header
from mergefall_training.play.verify import verify
from mergefall_training.play.watching import Show
from mergefall_training.tune.climbing import Climb
from mergefall_training.tune.weights import tune

from .test_ppo import ppo

GAME, TETRIS, VERSUS = "mergefall/Game2048-v0", "mergefall/Tetris-v0", "mergefall/TetrisVersus-v0"
SMALL = {"cols": 4, "rows": 4}
REFUSED = "names .*, a module to import or a program to run; only you may name one"


@pytest.fixture(autouse=True)
def trace(tmp_path, monkeypatch):
    """The file that appears if the module `evilmod` is imported or the program of `hostile` runs."""
    folder, trace = tmp_path / "modules", tmp_path / "trace"
    folder.mkdir()
    (folder / "evilmod.py").write_text(f"open({str(trace)!r}, 'w').close()\nclass Env: pass\n")
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "evilmod", raising=False)
    monkeypatch.setattr(imports, "_typed", set())
    yield trace
    sys.modules.pop("evilmod", None)


@pytest.fixture
def hostile(trace):
    """What must not be in a file, as a name, as an id of an environment, in specs, and as a program."""
    program = [sys.executable, "-c", f"open({str(trace)!r}, 'w')"]
    return [
        "evilmod:Env",
        ["2048/greedy", {"player": "evilmod:Env"}],
        {"player": "2048/mcts", "heuristic": {"player": {"name": "evilmod:Env"}}},
        {"player": "subprocess:getoutput", "cmd": f"touch {trace}"},
        {"env_id": f"evilmod:{TETRIS}"},
        {"player": "tetris/keys", "of": {"player": "tetris/bot", "command": program}},
        {"command": f"touch {trace}"},
        {"command": {sys.executable: 1}},
    ]


def altered(content, values, path=()):
    """(dotted path, copy of nested data with a value in that place), for each place and value, and each mapping."""
    for key in [*content, "more"] if isinstance(content, dict) else range(len(content)):
        part = content.get(key) if isinstance(content, dict) else content[key]
        for value in values if path or isinstance(content, dict) else ():  # a line of a file is always an object
            changed = dict(content) if isinstance(content, dict) else list(content)
            changed[key] = value
            yield (*path, key), changed
        if isinstance(part, dict | list):
            for at, inner in altered(part, values, (*path, key)):
                changed = deepcopy(content)
                changed[key] = inner
                yield at, changed


# -- kinds of files: how the content is written, what reads it, and what of it may name anything because it is only said


def arrays_of(form, version):
    return lambda path, content: write_arrays(path, form, version, content, {})


def lines_of(path, content):
    path.write_text("".join(f"{json.dumps(line)}\n" for line in content))


def json_of(path, content):
    path.write_text(json.dumps(content))


def script_of(path, content):
    torch.save({"args": content, "agent": {}}, path)


OPPONENT = {"opponent": {"player": "tetris/keys", "of": {"player": "tetris/bcts"}}}
HEADER = {"format": "mergefall episodes", "version": 1, "player": "tetris/keys", "options": {}, "env_id": VERSUS}
HEADER |= {"env_kwargs": OPPONENT, "max_episode_steps": 9, "package": "0", "adversary": {"player": "x", "rate": 0.5}}
SPEC = {"algorithm": "cma-es", "env_id": VERSUS, "env_kwargs": OPPONENT, "network": {"heuristic": {"name": "dt-10"}}}
CONFIG = {"format": run.CONFIG, "version": 1, **asdict(configure("distill"))}
GAMES = [
    {"name": "one", "env": VERSUS, "episodes": 1, "env_kwargs": OPPONENT, "players": [{"player": "tetris/keys"}]}
    | {"adversary": {"player": "2048/minimax"}},
    {
        "name": "two",
        "env": GAME,
        "episodes": 1,
        "players": [{"train": {"algorithm": "distill", "hyperparameters": {}}}],
    },
]
KINDS = {
    "model.npz": (
        arrays_of(models.FORMAT, 1),
        [load_model, trained_in, lambda path: make(str(path))],
        SPEC,
        "env_kwargs.shaping",
    ),
    "network.npz": (
        arrays_of("mergefall n-tuple network", 1),
        [TupleNetwork.load, lambda path: make("2048/ntuple", network=str(path))],
        {"shape": {}, "record": {"player": "2048/ntuple"}},
        "",
    ),
    "run/checkpoint.npz": (arrays_of(run.CHECKPOINT, 1), [read_checkpoint], {"step": 1, "state": {"a": [1]}}, ""),
    "run/config.json": (json_of, [read_config], CONFIG, ""),
    "records.jsonl": (lines_of, [read_header, Evaluation.read, verify], [HEADER], "0.player 0.options"),
    "suite.yaml": (json_of, [load_suite], {"games": GAMES}, ""),
    "results.json": (json_of, [read_results], {"format": "mergefall comparison", "games": GAMES}, "games"),
    "figures.jsonl": (
        lines_of,
        [lambda path: write_figures(path, "a/b", [], "")],
        [{"id": "a", "player": "x"}],
        "0.player",
    ),
    "checkpoint.pt": (script_of, [ppo.load, ppo.Player], {"env_id": TETRIS, "env_kwargs": {"preview": 0}}, ""),
}


@pytest.mark.parametrize("name", KINDS)
def test_a_file_imports_and_runs_nothing(name, tmp_path, hostile, trace):
    write, readers, content, said = KINDS[name]
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    for at, changed in altered(content, hostile):
        write(path, changed)
        where = ".".join(map(str, at))
        if any(f"{where}.".startswith(f"{one}.") for one in said.split()):
            continue
        for read in readers:
            with pytest.raises(ValueError, match=REFUSED):
                read(path if path.parent == tmp_path else path.parent)
            assert not trace.exists(), where


def test_what_is_only_said_is_not_made(tmp_path, hostile, trace):
    """A record's player may be the user's own, so figures of it are read; nothing plays it."""
    path = tmp_path / "games.jsonl"
    evaluate("2048/random", GAME, 1, env_kwargs={"goal": 16}, workers=1, out=path, progress=False)
    header, line = map(json.loads, path.read_text().splitlines())
    for changed in ({"player": hostile[0]}, *({"options": {"heuristic": spec}} for spec in hostile)):
        lines_of(path, [header | changed, line])
        assert len(Evaluation.read(path).episodes) == 1
        assert Show.recorded(path, 0).seed == 0
    assert not trace.exists()


def test_shaping_of_a_model_is_left_out(tmp_path):
    write_arrays(tmp_path / "model.npz", models.FORMAT, 1, SPEC | {"env_kwargs": {"shaping": "evilmod:Env"}}, {})
    model = load_model(tmp_path / "model.npz")
    assert (model.spec["env_kwargs"]["shaping"], model.spec["shaped"]) == (None, True)


@pytest.mark.parametrize("words", ["evaluate --episodes 1", "watch", "verify", "report", "compare"])
def test_no_command_imports_what_its_file_names(tmp_path, words, hostile, trace, command):
    name = {"evaluate": "model.npz", "compare": "suite.yaml"}.get(words.split()[0], "records.jsonl")
    write, _, content, _ = KINDS[name]
    opponent = {"opponent": hostile[3]}
    changed = next(one for at, one in altered(content, [opponent]) if at[-1] == "env_kwargs")
    write(tmp_path / name, changed)
    assert "names 'subprocess:getoutput'" in command(words, tmp_path / name)[1]
    assert not trace.exists()


# -- what a user may ------------------------------------------------------------------------------------------------


def test_a_user_may_name_a_module(trace):
    assert evaluate("tetris/random", f"evilmod:{TETRIS}", 1, env_kwargs=SMALL, workers=1, progress=False)
    assert trace.exists()
    assert inert({"opponent": "my_bots:Bot"}, typed=[{"player": "my_bots:Bot"}])
    imports.allow(["compare", "opponent={player: my_bots:Bot, of: tetris/bcts}"])
    assert inert({"opponent": "my_bots:Bot", "env": f"mergefall:{TETRIS}", "path": "C:/runs/first", "device": "cuda:0"})


def test_a_user_may_name_a_program():
    """A file that the user names is none: it may be a program as well."""
    imports.allow(["report", "./model.npz", "command=cold-clear -c x.json", 'of={player: b, command: ["my bot", -v]}'])
    for command in (["./model.npz"], ["report"], "report", ["cold-clear", "./model.npz"]):
        with pytest.raises(ValueError, match=REFUSED):
            inert({"player": "tetris/bot", "command": command})
    assert inert([{"command": ["cold-clear", "-c", "x.json"]}, {"command": ["bot", "-v"]}])


def test_own_players_of_a_suite_are_named_in_the_command(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "modules" / "own_players.py").write_text(
        "from mergefall_baselines import make\ndef own(): return make('2048/greedy')\n"
    )
    game = {"name": "one", "env": GAME, "env_kwargs": {"goal": 16}, "episodes": 1}
    json_of(tmp_path / "own.yaml", {"games": [game | {"players": [{"player": "own_players:own"}]}]})
    assert "names 'own_players:own', a module to import or a program" in command("compare own.yaml")[1]
    assert command("compare own.yaml own_players:own --workers 1")[2] == 0
    assert "its values are missing" not in command("report results own_players:own")[0]


def test_environments_of_the_users_are_learnt(tmp_path):
    (tmp_path / "modules" / "own_tetris.py").write_text(
        "import gymnasium as gym\ngym.register('OwnTetris-v0', 'mergefall.tetris.env:TetrisEnv', kwargs={'cols': 5})\n"
    )
    config = Config("maskable-ppo", "own_tetris:OwnTetris-v0", {}, {"policy": "MultiInputPolicy"}, 10, 10)
    assert (config.env_id, config.env_kwargs["cols"]) == ("OwnTetris-v0", 5)


def test_a_user_may_name_the_module_of_a_run_again(tmp_path):
    (tmp_path / "modules" / "own_teacher.py").write_text(
        "from mergefall_baselines import make\nTeacher = make('2048/greedy')\n"
    )
    changed = {"teacher": "own_teacher:Teacher", "n_envs": 4, "n_steps": 4, "batch_size": 8}
    config = configure("distill", changed=changed, timesteps=16, interval=16, episodes=2)
    for resume in (False, True):
        train(tmp_path / "run", config, resume=resume, progress=False)
    assert read_config(tmp_path / "run", changed) == config
    with pytest.raises(ValueError, match=REFUSED):
        train(tmp_path / "run", configure("distill"), resume=True, progress=False)


def test_the_heuristic_of_a_model(tmp_path):
    spec = load_model(SHIPPED / "tetris-cross-entropy.npz")
    network = spec.spec["network"] | {"heuristic": "evilmod:Env"}
    write_arrays(tmp_path / "model.npz", models.FORMAT, 1, spec.spec | {"network": network}, spec.arrays)
    with pytest.raises(ValueError, match=r"network\.heuristic names 'evilmod:Env'"):
        make(str(tmp_path / "model.npz"), heuristic="dt-10")
    with pytest.raises(ValueError, match="heuristic"):  # it is imported, and no heuristic
        make(str(tmp_path / "model.npz"), heuristic="evilmod:Env")


def test_trials(tmp_path, trace):
    climb, path = Climb(games=2, finals=2, passes=1, restarts=0, trials=1), tmp_path / "trials.jsonl"
    arguments = "tetris/greedy", {"heuristic": "dellacherie"}, Match.read(TETRIS, SMALL), climb
    options = {"only": ["holes"], "out": path, "progress": False}
    tune(*arguments, **options)
    path.write_text(path.read_text().replace(TETRIS, f"evilmod:{TETRIS}"))
    with pytest.raises(ValueError, match="another run: env_id is 'evilmod:"):
        tune(*arguments, **options)
    assert not trace.exists()
