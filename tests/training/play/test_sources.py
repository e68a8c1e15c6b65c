"""Digests of a user's own code and models: what changes them, and what files of an earlier version say."""

import importlib
import sys
from textwrap import dedent

import pytest
from mergefall.game2048 import HEURISTICS, register_heuristic
from mergefall_baselines import make, register, registry
from mergefall_training.learn.agents import SHIPPED
from mergefall_training.learn.models import load_model, save_model
from mergefall_training.learn.presets import configure
from mergefall_training.learn.run import open_run
from mergefall_training.play.evaluation import Evaluation, evaluate
from mergefall_training.play.records import read_header
from mergefall_training.play.sources import code_of

ENV = "mergefall/Game2048-v0", 2, 0, {"goal": 16}

MODULE = """
import math
from own_parts import scaled
import own_whole

WEIGHT = 3.0
PLACES = [0.0]
PLACES[0] = 1.0
PLACES.append(1.0)

def corner(board):
    # the lowest row
    return WEIGHT * scaled(board[3][0]) + own_whole.VALUE + PLACES[1] + Boards.far

def other(board):
    return 0.0

class Boards:
    weight = WEIGHT

Boards.far = 1.0

if __name__ == "__main__":
    print(100)
"""
PARTS = "def scaled(x):\n    return math_of(x)\n\ndef math_of(x):\n    return 2.0 * x\n\ndef unused():\n    pass\n"


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A function that writes the user's modules, imports them anew, and returns the folder."""
    monkeypatch.syspath_prepend(tmp_path)
    names = ("own_code", "own_parts", "own_whole")

    def write(change=lambda text: text, parts=PARTS, whole="VALUE = 1.0\n"):
        for name, text in zip(names, (change(MODULE), parts, whole), strict=True):
            tmp_path.joinpath(f"{name}.py").write_text(dedent(text))
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
        monkeypatch.setattr(sys, "dont_write_bytecode", True)
        importlib.import_module("own_code")
        return tmp_path

    yield write
    for name in names:
        sys.modules.pop(name, None)


@pytest.mark.parametrize(
    "changes",
    [
        {"change": lambda text: text.replace("WEIGHT = 3.0", "WEIGHT = 4.0")},
        {"change": lambda text: text.replace("board[3][0]", "board[3][1]")},
        {"change": lambda text: text.replace("PLACES[0] = 1.0", "PLACES[0] = 2.0")},
        {"change": lambda text: text.replace("PLACES.append(1.0)", "PLACES.append(2.0)")},
        {"change": lambda text: text.replace("Boards.far = 1.0", "Boards.far = 2.0")},
        {"parts": PARTS.replace("2.0", "3.0")},
        {"whole": "VALUE = 2.0\n"},
    ],
)
def test_what_a_function_refers_to_changes_its_digest(own, changes):
    own()
    before = code_of({"heuristic": {"name": "own_code:corner"}})
    assert before.keys() == {"own_code:corner"}
    own(**changes)
    assert code_of({"heuristic": {"name": "own_code:corner"}}) != before


@pytest.mark.parametrize(
    "changes",
    [
        {"change": lambda text: text.replace("# the lowest row", "# the lowest row, first cell")},
        {"change": lambda text: text.replace("    # the lowest row\n", "\n")},
        {"change": lambda text: text.replace("return 0.0", "return 1.0")},
        {"change": lambda text: text.replace("print(100)", "print(200)")},
        {"parts": PARTS.replace("    pass", "    return 1")},
    ],
)
def test_comments_layout_and_other_functions_do_not_count(own, changes):
    own()
    before = code_of({"heuristic": "own_code:corner"})
    own(**changes)
    assert code_of({"heuristic": "own_code:corner"}) == before


def test_a_method_stands_for_its_class(own):
    own()
    before = code_of("own_code:Boards.weight")
    own(lambda text: text.replace("WEIGHT = 3.0", "WEIGHT = 4.0"))
    assert before
    assert code_of("own_code:Boards.weight") != before


def test_relative_imports_are_followed(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    package = tmp_path / "own_package"
    package.mkdir()
    for name, text in {
        "__init__": "from .boards import corner\n",
        "boards": "from . import parts\n\ndef corner(board):\n    return parts.value(board)\n",
        "parts": "def value(board):\n    return 1.0\n",
    }.items():
        package.joinpath(f"{name}.py").write_text(text)
    importlib.import_module("own_package")
    before = code_of("own_package:corner")
    for name in [name for name in sys.modules if name.startswith("own_package")]:
        del sys.modules[name]
    package.joinpath("parts.py").write_text("def value(board):\n    return 2.0\n")
    importlib.invalidate_caches()
    importlib.import_module("own_package")
    assert before
    assert code_of("own_package:corner") != before
    for name in [name for name in sys.modules if name.startswith("own_package")]:
        del sys.modules[name]


@pytest.mark.parametrize(
    ("main", "edited", "other"),
    [
        ("from own_parts import *\ndef corner(board):\n    return scaled(1.0)\n", "own_parts", PARTS),
        ("if True:\n    import own_parts\ndef corner(board):\n    return own_parts.scaled(1.0)\n", "own_parts", PARTS),
        ("def corner(board):\n    from own_parts import scaled\n    return scaled(1.0)\n", "own_parts", PARTS),
        ("def corner(board):\n    import own_parts as parts\n    return parts.scaled(1.0)\n", "own_parts", PARTS),
        ("T = []\nfor i in (2.0, 3.0):\n    T.append(i)\ndef corner(board):\n    return T[0]\n", "own_code", PARTS),
        ("T = {}\nif True:\n    T.update(a=2.0)\ndef corner(board):\n    return T['a']\n", "own_code", PARTS),
    ],
)
def test_code_in_branches_and_functions_counts(own, main, edited, other):
    folder = own(lambda _: main, parts=other)
    sys.modules.pop("own_parts", None)  # as before a function that imports it has run
    before = code_of("own_code:corner")
    importlib.import_module("own_parts")
    assert code_of("own_code:corner") == before != {}
    file = folder / f"{edited}.py"
    file.write_text(file.read_text().replace("2.0", "4.0"))
    assert code_of("own_code:corner") != before


def test_what_others_wrote_has_no_digest():
    import gymnasium

    assert code_of("2048/greedy", {"heuristic": {"name": "nneonneo"}}, make("2048/greedy")) == {}
    assert code_of("gymnasium:make", gymnasium.Env(), "json:loads", "nowhere:at_all", lambda: 0) == {}


def test_a_module_that_nothing_has_imported_has_the_same_digest(own):
    own()
    before = code_of({"teacher": "own_code:corner"})
    del sys.modules["own_code"]
    assert code_of({"teacher": "own_code:corner"}) == before != {}


def test_a_file_that_is_gone_has_no_digest(own):
    folder = own()
    (folder / "own_code.py").unlink()
    assert code_of("own_code:corner") == {}


def test_names_that_were_registered_are_followed(own):
    own()
    module = sys.modules["own_code"]
    register("2048/own-boards", module.Boards)
    register_heuristic("own-corner", module.corner)
    try:
        assert code_of("2048/own-boards", {"heuristic": {"name": "own-corner"}}).keys() == {
            "own_code:Boards",
            "own_code:corner",
        }
    finally:
        del registry._FACTORIES["2048/own-boards"], HEURISTICS["own-corner"]


def test_games_of_an_earlier_version_are_refused(own):
    folder = own()
    path = folder / "games.jsonl"

    def play(out=path):
        return evaluate(make("2048/greedy", heuristic="own_code:corner"), *ENV, workers=1, out=out, progress=False)

    played = play()
    assert play().results.tolist() == played.results.tolist()
    own(lambda text: text.replace("board[3][0]", "board[0][0]"))
    with pytest.raises(ValueError, match=r"games\.jsonl holds results of an earlier version of own_code:corner"):
        play()
    assert Evaluation.read(path).results.tolist() == played.results.tolist()
    assert read_header(path)[0].code != play(folder / "new.jsonl").header.code


def test_training_with_an_earlier_version_is_not_resumed(own):
    folder = own() / "run"
    shaping = {"potential": {"name": "own_code:corner"}}
    config = configure(
        "maskable-ppo", "mergefall/Game2048-v0", env_kwargs={"shaping": shaping}, timesteps=1, interval=1, episodes=1
    )
    with open_run(folder, config, resume=True, progress=False):
        pass
    with open_run(folder, config, resume=True, progress=False):
        pass
    own(lambda text: text.replace("WEIGHT = 3.0", "WEIGHT = 4.0"))
    again = open_run(folder, config, resume=True, progress=False)
    with pytest.raises(ValueError, match="an earlier version of own_code:corner"):
        again.__enter__()


@pytest.fixture
def agent(tmp_path):
    """A run folder of a trained agent, and a function that changes one of its models."""
    shipped = load_model(SHIPPED / "2048-distill.npz")

    def change(name, step):
        save_model(tmp_path / "agent" / name, {**shipped.spec, "step": step}, shipped.arrays)

    tmp_path.joinpath("agent").mkdir()
    change("best.npz", 1)
    change("model.npz", 1)
    return (tmp_path / "agent").as_posix(), change


def test_a_model_has_the_digest_of_its_file(agent):
    path, change = agent
    best, last = ({"player": {"name": path, "model": model}} for model in ("best", "last"))
    before = code_of(best), code_of(last)
    assert before == (code_of({"player": path}), code_of({"network": f"{path}/model.npz"}) and before[1])
    assert before[0].keys() == {path}
    change("best.npz", 2)
    assert code_of(best) != before[0]
    assert code_of(last) == before[1]
    assert code_of({"player": f"{path}-2"}, {"name": "2048/greedy", "model": 3}, ["a" * 5000, "\0"]) == {}


def test_games_of_a_search_over_an_earlier_model_are_refused(agent, tmp_path):
    path, change = agent

    def play(player):
        return evaluate(player, *ENV, workers=1, out=tmp_path / "games.jsonl", progress=False)

    search = {"name": "2048/mcts", "heuristic": {"player": path}, "simulations": 2, "temperature": 1}
    played = play(make(**search))
    change("model.npz", 2)  # the search has the other one
    assert play(make(**search)).results.tolist() == played.results.tolist()
    change("best.npz", 2)
    with pytest.raises(ValueError, match=f"an earlier version of {path}. Delete it"):
        play(make(**search))


def test_a_trained_agent_is_known_by_its_checksum_wherever_it_is(agent, tmp_path):
    path, _ = agent
    out = tmp_path / "games.jsonl"
    played = evaluate(make(path), *ENV, workers=1, out=out, progress=False)
    moved = tmp_path.joinpath("agent").rename(tmp_path / "moved").as_posix()
    assert evaluate(make(moved), *ENV, workers=1, out=out, progress=False).episodes == played.episodes


def test_training_goes_on_with_the_same_teacher_alone(agent, tmp_path):
    path, change = agent
    network = {"policy_kwargs": load_model(f"{path}/best.npz").spec["network"]["policy_kwargs"]}

    def begin_or_go_on(folder, **changed):
        config = configure("distill", changed=network | changed, timesteps=1, interval=1, episodes=1)
        with open_run(tmp_path / folder, config, resume=True, progress=False):
            pass

    for change_of in ({"teacher": path}, {"teacher": "2048/greedy", "warm_start": path}):
        begin_or_go_on("-".join(change_of), **change_of)
    change("best.npz", 2)
    with pytest.raises(ValueError, match=f"an earlier version of {path}"):
        begin_or_go_on("teacher", teacher=path)
    begin_or_go_on("teacher-warm_start", teacher="2048/greedy", warm_start=path)
