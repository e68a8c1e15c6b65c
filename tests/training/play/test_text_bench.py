"""Functions that answer puzzles: right rewards beside those of players, answers on file, clear words for wrong ones."""

import json

import pytest
from mergefall.imports import imported
from mergefall_training.cli import main
from mergefall_training.play.puzzles import puzzles, reward
from mergefall_training.play.text_bench import bench_text, question

G2048 = "mergefall/Game2048-v0"
SMALL = {"rows": 2, "cols": 3}


def first_tests(count):
    endless = puzzles(G2048, SMALL, split="test")
    return [next(endless) for _ in range(count)]


def bench(function, **options):
    return bench_text(function, G2048, SMALL, **{"count": 6, "progress": False, "references": [], **options})


def up(prompt):
    return "<answer>up</answer>"


def test_a_function_earns_the_rewards_of_its_answers():
    tests, prompts = first_tests(6), []
    table = bench(lambda prompt: prompts.append(prompt) or "up", references=["2048/optimal"])
    assert prompts == [question(puzzle) for puzzle in tests]
    lines = zip(*table.columns.values(), strict=True)
    ours, chance, optimal = (dict(zip(table.columns, line, strict=True)) for line in lines)
    assert ours["mean reward"].value == pytest.approx(sum(reward(one, "up") for one in tests) / 6)
    assert ours["best move"].value == sum(one.rewards[0] == 1 for one in tests) / 6
    assert ours["legal"] == f"{sum(one.mask[0] for one in tests) / 6:.0%}"
    legal = [[r for r, there in zip(one.rewards, one.mask, strict=True) if there] for one in tests]
    assert chance["mean reward"].value == pytest.approx(sum(sum(one) / len(one) for one in legal) / 6)
    assert (optimal["player"], optimal["mean reward"].value) == ("2048/optimal", 1)
    assert "judged by 2048/optimal rows=2 cols=3" in table.about


def test_a_function_may_take_lists():
    sizes = []
    table = bench(lambda prompts: sizes.append(len(prompts)) or ["up"] * len(prompts), batch=4)
    assert sizes == [4, 2]
    assert table.columns["mean reward"] == bench(lambda prompt: "up").columns["mean reward"]
    with pytest.raises(ValueError, match="returned 1 answers to 4 prompts"):
        bench(lambda prompts: ["up"], batch=4)


def test_answers_on_file_are_not_asked_for_again(tmp_path):
    out, asked = tmp_path / "answers.jsonl", []

    def stops(prompt):
        asked.append(prompt)
        if len(asked) == 4:
            raise KeyboardInterrupt
        return up(prompt)

    with pytest.raises(KeyboardInterrupt):
        bench(stops, out=out)
    header, *records = map(json.loads, out.read_text().splitlines())
    assert (header["judge"], header["seed"], len(records)) == ("2048/optimal rows=2 cols=3", 0, 3)
    for record, puzzle in zip(records, first_tests(3), strict=True):
        assert record["reward"] == reward(puzzle, "up")
        assert (record["id"], record["action"], record["answer"]) == (puzzle.id, "up", up(""))
    table = bench(stops, out=out)
    assert (len(asked), len(out.read_text().splitlines())) == (7, 7)
    assert table.columns["mean reward"] == bench(up).columns["mean reward"]
    with pytest.raises(ValueError, match="answers of another run: seed is 0 there, 1 here"):
        bench(stops, out=out, seed=1)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"count": 0}, "count is 0"),
        ({"batch": 0}, "batch is 0"),
        ({"references": ["2048/nobody"]}, "2048/nobody"),
        ({"function": lambda prompt: 3}, "answer is 3; expected text"),
    ],
)
def test_bad_input_is_named(options, complaint):
    with pytest.raises(ValueError, match=complaint):
        bench(**{"function": up, **options})


def test_the_command_takes_a_module_and_a_function(capsys):
    options = ["--puzzles", "3", "--reference", "{name: tetris/greedy, heuristic: bcts}", "--judge", "tetris/bcts"]
    field = ["--env-option", "cols=5", "--env-option", "rows=6"]
    main(["bench-text", "training.text_model:answer", "--env", "mergefall/Tetris-v0", *field, *options])
    printed = capsys.readouterr().out
    for text in (
        "3 test puzzles, seed 0",
        "training.text_model:answer",
        "random (expected)",
        "tetris/greedy heuristic=bcts",
    ):
        assert text in printed
    assert imported("training.text_model:answer")("Legal moves: up, left").endswith("<answer>left</answer>")
