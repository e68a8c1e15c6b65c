"""The command ``mergefall``, in this process and, where processes matter, in one of its own."""

import importlib.util
import io
import os
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from itertools import islice

import pytest
from mergefall_training.cli import main
from mergefall_training.play.evaluation import evaluate
from mergefall_training.play.records import RecordFile, read_records
from mergefall_training.play.watching import _posix_keys, together
from mergefall_training.progress import progress_bar

from tests.training.terminals import in_terminal

BOMB = "{a0: &a0 [" + "x," * 10 + "], " + "".join(f"a{i}: &a{i} [{f'*a{i - 1}, ' * 10}], " for i in range(1, 9)) + "}"
SMALL = "--env-option rows=2 --env-option cols=3"


def test_evaluate_prints_a_table_and_writes_the_episodes(command, tmp_path):
    options = "--option cutoff=1e-4 --option heuristic=nneonneo --option depth=1 --episodes 5 --seed 3 --workers 1"
    printed, _, status = command(f"evaluate 2048/expectimax {options} {SMALL} --out", out := tmp_path / "games.jsonl")
    assert status == 0
    for text in ("2048/expectimax", "(2×3 ", "N=5", "seeds 3-7", "ms/move"):
        assert text in printed
    assert read_records(out)[0].options == {"cutoff": 0.0001, "heuristic": "nneonneo", "depth": 1}
    assert [episode.seed for episode in read_records(out)[1]] == [3, 4, 5, 6, 7]


REFUSED = {  # by command, a part of what it says
    "evaluate 2048/mixd": "there is no player '2048/mixd'; did you mean '2048/mixed'?",
    "evaluate 2048/expectimax --option dept=2": "did you mean 'depth'?",
    "evaluate 2048/expectimax --option depth=two": "expected a number of own moves, 'distinct'",
    "evaluate 2048/strongest --option depth=3": "it has none, and its settings are fixed",
    "evaluate 2048/greedy --option heuristic=mine.py:corner": "did you mean 'mine:corner'?",
    "evaluate 2048/greedy --env Game2084-v0": "did you mean 'mergefall/Game2048-v0'?",
    "evaluate tetris/keys --env-option garbage=0.5": "such as {rows: 0.5}",
    "watch tetris/beam --env mergefall/TetrisKeys-v0": "'tetris/keys' with the option of=NAME",
    "play mergefall/TetrisKey-v0": "did you mean 'mergefall/TetrisKeys-v0'?",
    "train ntuple --set learning-rate=x": "learning_rate is 'x'",
    "train tests --resume --timesteps 9": "warm_start=tests",
    "advise 2048/greedy '2 2 . 4'": "position '2 2 . 4' is one row",
    "advise 2048/optimal '2 2 2 2/. . . ./. . . ./. . . .'": "games from the position",
    "evaluate 2048/random --option depth": "NAME=VALUE",
    "evaluate 2048/random --option a=1 --option a=2": "twice",
    "evaluate 2048/random --option 'a=[1'": "YAML",
    f"evaluate 2048/random --option 'a={BOMB}'": "its aliases (*name) make 1,234,567,900 parts",
    "evaluate 2048/random --env-option foo=1": "has no 'foo'; it has rows, cols",
    "compare quickest": "no suite 'quickest'; expected one of documented, ",
    "compare quik": "did you mean 'quick'?",
    "evaluate runs/nobody": "runs/nobody",
    "evaluate .": "no trained agent",
    "report": "nothing to report on",
    "train maskable-ppo --env CartPole-v1": "no preset for 'CartPole-v1'",
    "train ntuple --preset quick": "ntuple has no preset 'quick' for mergefall/Game2048-v0; expected small or",
    "train ntuple --preset 2h": "ntuple has no preset '2h', which is 'large' now, for",
    "tune weights 2048/random": "has no weights; expected some to tune",
    "watch 2048/random --video film.avi": ".mp4 or .gif",
    f"watch 2048/random --video {os.devnull}/none/film.mp4": os.devnull,
    "watch 2048/random --fps 0": "--fps",
    "watch 2048/random --worst": "--worst is for a file",
    "evaluate 2048/random --out .": "no regular file",
    "evaluate 2048/random --env mergefall:Nope-v0": "Nope-v0",
    "play --env-option foo=1": "foo",
    "players 2048/nobody": "no player '2048/nobody'",
    "heuristics nobody": "heuristic is 'nobody'; expected one of 'tile-order",
    "heuristics atack": "did you mean 'attack'?",
    "envs Nope-v0": "expected one of mergefall/Game2048-v0",
    "train sarsa --help": "algorithm is 'sarsa'; expected one of",
    "advise 2048/greedy '2 3/4 2'": "argument, line 1: '3' in board text",
    "advise tetris/bcts ..../..../..../....": "names no piece",
    "advise tetris/bcts '..../..../..../.... Q'": "Q",
    "compare a.jsonl": "expected two or more",
    "compare a.jsonl b.jsonl --out out": "without --out, --game and --figure",
    "compare quick league": "2 suites were named",
}


@pytest.mark.parametrize("text", REFUSED)
def test_bad_input_gives_one_line_and_status_2(command, text):
    _, errors, status = command(text)
    assert status == 2
    assert REFUSED[text] in errors
    assert errors.startswith("mergefall: ")
    assert errors.count("\n") == 1


def test_tune_prints_weights_that_the_command_line_takes(command, tmp_path):
    options = "--option heuristic=prairie-fire --weight penalty --games 2 --finals 2 --passes 1"
    printed, _, status = command(f"tune weights 2048/greedy {options} {SMALL} --out", tmp_path / "trials.jsonl")
    assert status == 0
    assert "N=2, seeds 750000-750001 (the start)" in printed
    best = "heuristic=" + printed.splitlines()[-1]
    assert command(f"evaluate 2048/greedy {SMALL} --episodes 1 --workers 1 --option", best)[2] == 0


def test_watch_shows_the_game_of_the_seed(command, tmp_path):
    out = tmp_path / "games.jsonl"
    command(f"evaluate 2048/greedy {SMALL} --episodes 3 --workers 1 --out", out)
    episode = read_records(out)[1][2]
    figures = f"score {episode.score}, max tile {episode.max_tile}, moves {episode.length}"
    assert figures in command(f"watch 2048/greedy {SMALL} --seed 2")[0]
    assert figures in command("watch --seed 2", out)[0]
    _, errors, status = command("watch --seed 3", out)
    assert status == 2
    assert "no game from seed 3" in errors
    out.write_text(out.read_text().replace("2048/greedy", "2048/forgotten"))  # recorded actions need no player
    assert f"2048/forgotten, seed 2: {figures}" in command("watch --seed 2", out)[0]


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_a_film_that_is_broken_off_leaves_no_file(command, tmp_path, monkeypatch, error):
    def broken(*games):
        yield from islice(together(*games), 3)
        raise error

    monkeypatch.setattr("mergefall_training.play.watching.together", broken)
    with suppress(error):
        assert command("watch 2048/random --video", tmp_path / "game.mp4")[2]
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals")
def test_play_in_a_terminal_moves_by_keys_and_ends_by_q():
    other = b"\x1bOQ\x1bOR\x1b[1;5D\x1b[H"  # F2, F3, Ctrl-Left and Home are no Q, R, right and H
    printed, status = in_terminal(["play", "--seed", "0"], [b"\x1b[A\x1b[Dwasdx\x1b[B\x1b[C", other, b"q"])
    assert status == 0
    assert "score" in printed
    assert "prefers" not in printed


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals")
def test_keys_that_are_not_of_the_game_do_nothing(monkeypatch):
    from tty import setcbreak

    ours, theirs = os.openpty()
    with os.fdopen(theirs) as keyboard, os.fdopen(ours, "wb", buffering=0) as fingers:
        monkeypatch.setattr("sys.stdin", keyboard)
        setcbreak(keyboard)
        fingers.write(b"\x1bOQ\x1b[15~\x1b[1;5D\x1b[H\x1b[A\x1bOBu")
        assert _posix_keys(1) == ["up", "down", "u"]


def test_a_module_of_the_folder_is_not_imported_unless_it_is_named(tmp_path):
    """Libraries look for others that are not installed, such as these, and the folder may be a stranger's."""
    evaluate("2048/random", "mergefall/Game2048-v0", 1, workers=1, out=tmp_path / "g.jsonl", progress=False)
    for name in ("scipy", "colorama", "coverage", "cffi"):
        if importlib.util.find_spec(name) is None:
            (tmp_path / f"{name}.py").write_text("print('imported')\n")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONSAFEPATH": "1"}

    command = [sys.executable, "-m", "mergefall_training", "verify", "g.jsonl"]
    found = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert "imported" not in found.stdout
    assert "1 of 1 records hold" in found.stdout


def test_help_does_not_wait_for_players_or_plots():
    code = (
        "import sys\nfrom mergefall_training.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "print(sorted({'numba', 'matplotlib', 'mergefall'} & sys.modules.keys()))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert "evaluate" in printed.stdout
    assert printed.stdout.endswith("[]\n")


def test_an_interrupt_says_how_to_go_on_with_status_130(command, monkeypatch):
    def interrupted(*_, **__):
        interrupt = KeyboardInterrupt()
        interrupt.add_note("3 of 40 episodes are in games.jsonl; the same call plays the rest")
        raise interrupt

    monkeypatch.setattr("mergefall_training.play.evaluation.evaluate", interrupted)
    _, errors, status = command("evaluate 2048/random")
    assert status == 130
    assert errors == "mergefall: 3 of 40 episodes are in games.jsonl; the same call plays the rest\n"


def test_players_and_heuristics_of_a_module_in_the_folder(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own_game.py").write_text(
        "import numpy as np\nfrom mergefall_baselines import Player\n\n\n"
        "class Last(Player):\n"
        "    plays = {'env_id': 'mergefall/Game2048-v0', 'goal': 16}\n\n"
        "    def predict(self, observation, state=None, episode_start=None, deterministic=True, action_masks=None):\n"
        "        return np.array(np.flatnonzero(action_masks)[-1]), state\n\n\n"
        "def empty(board):\n    return (board == 0).sum()\n"
    )
    printed, _, status = command("evaluate own_game:Last --episodes 2 --workers 1")
    assert status == 0
    assert "own_game:Last: mergefall/Game2048-v0 (4×4 goal=16" in printed
    (tmp_path / "own.yaml").write_text(
        "games: [{name: own, env: mergefall/Game2048-v0, env_kwargs: {goal: 16}, episodes: 2, players: "
        "[{player: 'own_game:Last'}, {player: 2048/greedy, heuristic: 'own_game:empty'}]}]"
    )
    printed, _, status = command("compare own.yaml own_game:empty --out out --workers 1")
    assert status == 0
    for name in ("own_game:Last", "greedy heuristic=own_game:empty"):
        assert name in printed
    assert command("watch own_game:Last")[2] == 0


def test_a_reader_that_has_seen_enough_is_no_error():
    lines = subprocess.Popen(
        [sys.executable, "-u", "-m", "mergefall_training", "players"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert lines.stdout is not None
    lines.stdout.close()  # as `| head` does in the end
    _, errors = lines.communicate()
    assert (errors, lines.returncode) == (b"", 1)


@pytest.mark.parametrize("encoding", ["cp1251", "cp437", "cp1252"])
def test_output_replaces_what_an_encoding_lacks(encoding, monkeypatch):
    for text in (f"evaluate 2048/random --episodes 2 {SMALL} --workers 1", "envs Tetris-v0"):
        written = io.TextIOWrapper(io.BytesIO(), encoding)
        with monkeypatch.context() as redirected:
            redirected.setattr(sys, "stdout", written)
            main(text.split())
        written.flush()
        assert b"mergefall/" in written.buffer.getvalue()


def test_names_from_files_do_not_reach_the_terminal_raw(command, tmp_path):
    play = evaluate("2048/random", "mergefall/Game2048-v0", 2, env_kwargs={"rows": 2, "cols": 2}, workers=1)
    files = [tmp_path / directory / "games.jsonl" for directory in ("a", "b")]
    for path in files:
        with RecordFile(path, replace(play.header, player="2048/\x1b]0;mine\x07random")) as file:
            for episode in play.episodes:
                file.append(episode)
    for text, *given in (
        ("verify", files[0]),
        ("watch", files[0]),
        ("report --values 0 --out", tmp_path / "page.html", files[0]),
        ("compare", *files),
    ):
        printed, errors, status = command(text, *given)
        assert status == 0
        assert "\x1b]" not in printed + errors
        assert "\x07" not in printed + errors
    assert "2048/\ufffd]0;mine\ufffdrandom" in printed


def test_progress_without_a_terminal_is_lines(capsys, monkeypatch):
    monkeypatch.setattr("mergefall_training.progress.EVERY", 0)
    with progress_bar("games", 3) as show:
        show(2, "mean 5")
    written = capsys.readouterr().err.splitlines()
    assert [line.rpartition(",")[0] for line in written] == ["games: 0 of 3", *["games: 2 of 3, mean 5"] * 2]


def test_an_unknown_option_is_named(command):
    _, errors, status = command("evaluate 2048/expectimax --depth 2")
    assert status == 2
    assert "Unrecognized options: --depth" in errors
