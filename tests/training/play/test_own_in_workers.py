"""A user's heuristics and players in worker processes, and what scripts and files of records do with them."""

import importlib
import subprocess
import sys

import numba
import numpy as np
import pytest
from mergefall.game2048 import register_heuristic
from mergefall.imports import name_of
from mergefall_baselines import Player, make, register, registry
from mergefall_training.play.evaluation import Evaluation, evaluate
from mergefall_training.play.records import code_of
from mergefall_training.play.watching import Show
from mergefall_training.play.workers import process_pool

ENV = "mergefall/Game2048-v0", 3, 0, {"goal": 16}


WEIGHT = np.arange(16).reshape(4, 4)


class Own(Player):
    def predict(self, observation, state=None, episode_start=None, deterministic=True, action_masks=None):
        return np.array(np.flatnonzero(action_masks)[-1]), state


@pytest.fixture
def own(registered, monkeypatch):
    register_heuristic("own", own_board_value)
    monkeypatch.setattr(registry, "_FACTORIES", dict(registry._FACTORIES))
    register("2048/own", Own)


def own_board_value(board):
    return (board * WEIGHT).sum()


def test_workers_get_functions_and_what_was_registered(own):
    functions = "own", lambda board: (board * WEIGHT).sum(), numba.njit(lambda board: (board * WEIGHT).sum())
    players = [make("2048/greedy", heuristic=function) for function in functions]
    with process_pool(2) as pool:
        games = [evaluate(one, *ENV, executor=pool, progress=False).results.tolist() for one in (*players, "2048/own")]
    here = [evaluate(one, *ENV, workers=1, progress=False).results.tolist() for one in (players[0], "2048/own")]
    assert games == [here[0]] * 3 + [here[1]]
    assert here[0] != here[1]


def test_a_file_of_records_names_its_functions(tmp_path, own):
    path = tmp_path / "games.jsonl"
    found = evaluate(make("2048/greedy", heuristic="own"), *ENV, workers=1, out=path, progress=False)
    assert Show.recorded(path, 0).header.options == {"heuristic": "own"}
    assert Evaluation.read(path) == found
    player = make("2048/greedy", heuristic=lambda board: 0)
    with pytest.raises(ValueError, match=r"must name the function .*<lambda>: register it"):
        evaluate(player, *ENV, workers=1, out=tmp_path / "nameless.jsonl", progress=False)


def test_a_script_without_a_guard_says_what_to_write(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from mergefall_training import evaluate\n"
        "from mergefall_training.play import workers\n"
        "workers.WORTH = 0.0  # workers play, however short the games are\n"
        "evaluate('2048/random', 'mergefall/Game2048-v0', 2, env_kwargs={'goal': 16}, workers=2, progress=False)\n"
    )
    found = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert found.returncode == 1
    *_, last = found.stderr.strip().splitlines()
    assert last.startswith("in a script, call this under `if __name__ == '__main__':`")
    assert found.stderr.count("Traceback") == 1


def test_changed_code_does_not_get_the_games_of_the_former(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    out, module = tmp_path / "games.jsonl", tmp_path / "own_code.py"

    def play(count, code, **options):
        monkeypatch.delitem(sys.modules, "own_code", raising=False)
        importlib.invalidate_caches()
        module.write_text(f"def board_value(board):\n    return {code}\n")
        player = make("2048/greedy", heuristic="own_code:board_value")
        return evaluate(player, *ENV[:1], count, *ENV[2:], workers=1, out=out, progress=False, **options)

    three = play(3, "(board == 0).sum()").episodes
    assert play(4, "(board == 0).sum()").episodes[:3] == three
    with pytest.raises(ValueError, match=r"another run: code\.own_code:board_value is '"):
        play(4, "-(board == 0).sum()")


def test_code_and_models_have_digests(tmp_path):
    assert code_of("2048/greedy", {"heuristic": {"name": "nneonneo"}}, make("2048/random"), np.sum) == {}
    assert set(code_of(Own())) == {name_of(Own)}
    assert code_of(own_board_value) == code_of(f"{__name__}:own_board_value")
    (tmp_path / "model.npz").write_bytes(b"one")
    (one,) = code_of({"network": str(tmp_path / "model.npz")}).values()
    (tmp_path / "model.npz").write_bytes(b"other")
    assert code_of({"network": str(tmp_path / "model.npz")}) != {str(tmp_path / "model.npz"): one}
