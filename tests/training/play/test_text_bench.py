"""Programs that answer puzzles: right rewards, resuming, and clear words for programs that fail."""

import json
import os
import sys
import time
from pathlib import Path

import pytest
from mergefall_training.cli import main
from mergefall_training.play.programs import ask_all, ask_each
from mergefall_training.play.puzzles import reward
from mergefall_training.play.text_bench import Bench, question

ROOT = Path(__file__).parents[3]
MODEL = f'"{sys.executable}" "{ROOT / "training" / "text_model.py"}"'
SMALL = Bench("mergefall/Game2048-v0", {"rows": 2, "cols": 3}, count=6)
WAYS = pytest.mark.parametrize("ask", [ask_each, ask_all])


@pytest.fixture
def program(tmp_path):
    """A function that makes a program of some lines of Python."""

    def made(code):
        file = tmp_path / "program.py"
        file.write_text("import json, os, sys, time\n" + code, encoding="utf-8")
        return f'"{sys.executable}" "{file}"'

    return made


def in_both_ways(answer):
    """Code of a program that answers alone or in a stream, by an expression of `prompt`."""
    return f"""
for line in ([sys.stdin.read()] if len(sys.argv) == 1 else sys.stdin):
    prompt = line if len(sys.argv) == 1 else json.loads(line)["prompt"]
    answer = {answer}
    print(answer if len(sys.argv) == 1 else json.dumps({{"answer": answer}}), flush=True)
"""


@pytest.mark.parametrize("stream", [False, True])
def test_a_program_earns_the_rewards_of_its_answers(program, stream, tmp_path):
    """Each puzzle of its own, with the rules, and each answer on file."""
    out, best = tmp_path / "answers.jsonl", {question(puzzle): puzzle for puzzle in SMALL.puzzles}
    row = SMALL.ask(program(in_both_ways('"<answer>up</answer>"')) + " s" * stream, stream=stream, out=out)
    assert row.rewards == [reward(puzzle, "up") for puzzle in SMALL.puzzles]
    legal = sum(puzzle.mask[0] for puzzle in SMALL.puzzles)
    assert row.kinds == {"legal": legal / 6, "illegal": (6 - legal) / 6, "unreadable": 0}
    assert row.best.value == sum(puzzle.rewards[0] == 1 for puzzle in SMALL.puzzles) / 6
    header, *records = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert (header["judge"], header["seed"], len(records)) == ("2048/optimal rows=2 cols=3", 0, 6)
    for record in records:
        puzzle = best.pop(record["prompt"])
        assert (record["id"], record["reward"]) == (puzzle.id, reward(puzzle, "up"))
        assert record["action"] == "up"


@pytest.mark.parametrize("env", ["mergefall/Game2048-v0", "mergefall/Tetris-v0"])
def test_the_stand_in_answers_legally_in_both_ways(env):
    kwargs = {"rows": 3} if "2048" in env else {"cols": 5, "rows": 6}
    judge = "2048/greedy" if "2048" in env else "tetris/bcts"
    bench = Bench(env, kwargs, count=3, judge=judge)
    one, other = bench.ask(MODEL), bench.ask(f"{MODEL} --stream", stream=True)
    assert one.rewards == other.rewards
    assert one.kinds["legal"] == other.kinds["legal"] == 1


def test_references_play_the_same_puzzles():
    rows = {row.name: row for row in SMALL.references()}
    assert list(rows) == ["random (expected)", "2048/greedy", "2048/expectimax heuristic=nneonneo depth=2"]
    means = []
    for puzzle in SMALL.puzzles:
        legal = [value for value, there in zip(puzzle.rewards, puzzle.mask, strict=True) if there]
        means.append(sum(legal) / len(legal))
    assert rows["random (expected)"].rewards == means
    (optimal,) = SMALL.references(["2048/optimal"])[1:]
    assert optimal.rewards == [1.0] * 6
    assert optimal.best.value == 1


def test_a_stopped_run_asks_for_the_missing_answers(program, tmp_path):
    out, log = tmp_path / "answers.jsonl", tmp_path / "log"
    code = f"""
open({str(log)!r}, "a").write("x")
if os.path.getsize({str(log)!r}) == 4: sys.exit("no memory left")
print("<answer>right</answer>")
"""
    command = program(code)
    with pytest.raises(ValueError, match=r"ended with status 1 when it was asked .* test 0"):
        SMALL.ask(command, out=out)
    with out.open("a", encoding="utf-8") as file:
        file.write('{"id": "torn')
    row = SMALL.ask(command, out=out)
    assert row.rewards == [reward(puzzle, "right") for puzzle in SMALL.puzzles]
    assert log.read_text() == "x" * 7  # three, the one that failed, three
    assert SMALL.ask(command, out=out) == row
    assert log.read_text() == "x" * 7
    other = Bench(SMALL.env_id, SMALL.env_kwargs, count=6, seed=1)
    with pytest.raises(ValueError, match="another bench: seed is 0 there, 1 here"):
        other.ask(command, out=out)
    text = out.read_text(encoding="utf-8")
    out.write_text(text.replace("Legal moves", "Moves", 1), encoding="utf-8")
    with pytest.raises(ValueError, match=r"line 2: .* has another prompt here"):
        SMALL.ask(command, out=out)


@WAYS
def test_a_program_that_ends_is_quoted(program, ask):
    command = program("sys.stdin.readline(); sys.exit('CUDA is out of memory')")
    with pytest.raises(ValueError, match=r"(?s)ended with status 1.*standard error:\nCUDA is out of memory"):
        list(ask(command, {"one": "q", "two": "q"}, 60))


@WAYS
def test_a_program_that_hangs_is_killed_with_what_it_started(program, ask, tmp_path):
    mark = tmp_path / "alive"
    child = f"import time; time.sleep(4); open({str(mark)!r}, 'w')"
    code = f"import subprocess; subprocess.Popen([sys.executable, '-c', {child!r}]); print('soon', file=sys.stderr)"
    start = time.monotonic()
    with pytest.raises(ValueError, match=r"(?s)within 1 s.*soon"):
        list(ask(program(f"{code}; sys.stderr.flush(); time.sleep(60)"), {"one": "q"}, 1))
    assert time.monotonic() - start < 4
    time.sleep(4)
    assert not mark.exists() or os.name == "nt"


def test_endless_output_is_stopped(program):
    with pytest.raises(ValueError, match="more than 1,000,000 bytes"):
        list(ask_each(program("while True: print('up' * 1000)"), {"one": "q"}, 30))
    with pytest.raises(ValueError, match="expected a JSON object"):
        list(ask_all(program("while True: print('up' * 1000, end='')"), {"one": "q"}, 30))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("up", "expected a JSON object"),
        ('{"answer": 3}', "expected a JSON object"),
        ('{"answer": "up", "id": 3}', "expected the id"),
        ('{"answer": "up", "id": "three"}', "expected that of a question without an answer"),
    ],
)
def test_lines_that_are_no_answers_are_quoted(program, line, message):
    with pytest.raises(ValueError, match=message):
        list(ask_all(program(f"print({line!r})"), {"one": "q"}, 30))


def test_answers_in_any_order_after_all_questions(program):
    code = "lines = [json.loads(line) for line in sys.stdin]\n"
    code += 'for one in lines[::-1]: print(json.dumps({"id": one["id"], "answer": one["prompt"] * 2}))'
    questions = {str(k): f"{k}?" * 50_000 for k in range(3)}  # more than a pipe holds
    assert list(ask_all(program(code), questions, 30)) == [(str(k), f"{k}?" * 100_000) for k in (2, 1, 0)]


def test_a_program_need_not_read_its_question(program):
    assert list(ask_each(program("print('up')"), {"one": "q" * 10**6}, 30)) == [("one", "up\n")]
    assert list(ask_each(program("sys.stdout.buffer.write(b'up \\xff')"), {"one": "q"}, 30)) == [("one", "up \ufffd")]


@WAYS
@pytest.mark.parametrize(
    ("command", "message"), [("", "expected a command line"), ("'a", "No closing"), ("no-such-program", "started")]
)
def test_programs_that_cannot_be_started(ask, command, message):
    with pytest.raises(ValueError, match=message):
        list(ask(command, {"one": "q"}, 1))


def test_the_command_prints_a_table(capsys, tmp_path):
    small = ["--env-option", "rows=2", "--env-option", "cols=2", "--puzzles", "4", "--out", str(tmp_path / "a.jsonl")]
    main(["bench-text", MODEL, *small, "--gap", "0.1", "1", "--reference", "{name: 2048/expectimax, depth: 1}"])
    printed = capsys.readouterr().out
    for text in ("4 test puzzles, gap 0.1 to 1, seed 0, judged by 2048/optimal", "random (expected)", "unreadable"):
        assert text in printed
    assert "2048/expectimax depth=1" in printed


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--puzzles", "0"], "the number of puzzles is 0"),
        (["--timeout", "0"], "the time limit in seconds is 0"),
        (["--timeout", "inf"], "the time limit in seconds is inf"),
        (["--judge", "2048/nobody"], "2048/nobody"),
        (["--judge", "{name: 2048/greedy"], "judge: the value is no YAML"),
        (["--reference", "{name: 2048/greedy"], "reference: the value is no YAML"),
        (["--reference", "2048/nobody"], "2048/nobody"),
        (["--gap", "0.5", "0.4"], "smaller end first"),
        (["--env", "Nope-v0"], "Nope-v0"),
    ],
)
def test_bad_arguments_of_the_command(capsys, arguments, complaint):
    small = ["--env-option", "rows=2", "--env-option", "cols=2"]
    with pytest.raises(SystemExit) as end:
        main(["bench-text", MODEL, *small, *arguments])
    assert end.value.code == 2
    printed = capsys.readouterr().err
    assert complaint in printed
    assert "Traceback" not in printed
    assert "asking" not in printed


def test_the_command_says_what_is_kept(capsys, tmp_path, program):
    small = ["--env-option", "rows=2", "--env-option", "cols=2", "--puzzles", "4", "--out", str(tmp_path / "a.jsonl")]
    with pytest.raises(SystemExit):
        main(["bench-text", program("sys.exit('no weights')"), *small])
    printed = capsys.readouterr().err
    assert "no weights" in printed
    assert "0 answers are in" in printed
