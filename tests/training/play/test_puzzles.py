"""Puzzles, whose rewards keep the judge's order, and functions that answer them."""

import json
from dataclasses import asdict
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mergefall.game2048 import from_text
from mergefall.imports import imported
from mergefall_training.play.puzzles import move_rewards, puzzles, reward
from mergefall_training.play.text_bench import bench_text, question

ENV, TETRIS, SMALL = "mergefall/Game2048-v0", "mergefall/Tetris-v0", {"rows": 2, "cols": 2}


@given(st.lists(st.floats(-1e9, 1e9) | st.just(-np.inf), min_size=1, max_size=8))
def test_rewards_keep_the_order_of_values(values):
    found = move_rewards(values)
    assert ((found >= 0) & (found <= 1)).all()
    finite = np.isfinite(values)
    assert (found[~finite] == 0).all()
    if finite.any():
        assert found[np.argmax(values)] == 1
        best, worst = max(values), np.min(values, where=finite, initial=np.inf)
        if best - worst > 1e-3 * abs(best):  # else some count as equally good
            np.testing.assert_allclose(found[finite], (np.array(values)[finite] - worst) / (best - worst), atol=1e-5)
        for a in np.flatnonzero(finite):
            for b in np.flatnonzero(finite):
                assert found[a] <= found[b] or values[a] > values[b]


def test_the_same_arguments_give_the_same_puzzles_as_json():
    first, again = (list(islice(puzzles(ENV, SMALL, seed=3), 5)) for _ in range(2))
    assert first == again
    assert json.loads(json.dumps([asdict(puzzle) for puzzle in first])) == [asdict(puzzle) for puzzle in first]
    assert first != list(islice(puzzles(ENV, SMALL, seed=4), 5))


def test_train_and_test_share_no_position_turned_or_mirrored(monkeypatch):
    monkeypatch.setattr("mergefall_training.play.puzzles.LONGEST", 20)
    positions = {}
    for split in ("train", "test"):
        found = puzzles(ENV, {"rows": 2, "cols": 3}, split=split, judge="2048/greedy")
        boards = [from_text(puzzle.position) for puzzle in islice(found, 150)]
        positions[split] = {b[::v, ::h].tobytes() for b in boards for v in (1, -1) for h in (1, -1)}
    assert not positions["train"] & positions["test"]


def test_train_and_test_of_tetris_share_no_position_mirrored(monkeypatch):
    monkeypatch.setattr("mergefall_training.play.puzzles.LONGEST", 3)
    mirror, kwargs = str.maketrans("SZJL", "ZSLJ"), {"cols": 5, "rows": 5}
    positions = {}
    for split in ("train", "test"):
        found = islice(puzzles(TETRIS, kwargs, split=split, judge="tetris/bcts"), 150)
        positions[split] = {puzzle.position for puzzle in found}
    images = set()
    for position in positions["train"]:
        board, *pieces = position.split()
        images.add(" ".join(["/".join(row[::-1] for row in board.split("/")), *pieces]).translate(mirror))
    assert len(images & positions["train"]) > 3
    assert not (images | positions["train"]) & positions["test"]


def test_difficulty_is_the_gap_to_the_second_best_move():
    for low, high in ((0.0, 0.2), (0.6, 1.0)):
        for puzzle in islice(puzzles(ENV, SMALL, gap=(low, high)), 10):
            best, second = sorted((r for r, legal in zip(puzzle.rewards, puzzle.mask, strict=True) if legal))[:-3:-1]
            assert best == 1
            assert low <= 1 - second == puzzle.gap <= high


def test_puzzles_of_tetris(monkeypatch):
    monkeypatch.setattr("mergefall_training.play.puzzles.LONGEST", 30)
    found = puzzles(TETRIS, {"cols": 5, "rows": 8}, judge={"player": "tetris/greedy", "heuristic": "bcts"})
    for puzzle in islice(found, 5):
        best = puzzle.names[puzzle.rewards.index(1.0)]
        assert reward(puzzle, f"<answer>{best}</answer>") == 1
        assert "Piece: " in puzzle.prompt
        assert puzzle.position.split()[0].count("/") == 7


@pytest.mark.parametrize("judge", [None, "tetris/keys"])
def test_games_by_keys_have_no_puzzles(judge):
    with pytest.raises(ValueError, match=", by keys; expected 2048, or Tetris by placements"):
        puzzles("mergefall/TetrisKeys-v0", judge=judge)


def test_a_gap_that_no_position_has_is_said(monkeypatch):
    monkeypatch.setattr("mergefall_training.play.puzzles.PATIENCE", 20)
    with pytest.raises(
        ValueError, match=r"none of 20 positions is of split 'train' and has a gap from 0\.9999 to 0\.99999"
    ):
        next(puzzles(ENV, SMALL, gap=(0.9999, 0.99999)))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"split": "dev"}, "split is 'dev'"),
        ({"gap": 0.5}, "gap is 0.5; expected the smallest and the largest"),
        ({"gap": (1, 0)}, "smaller end first"),
    ],
)
def test_wrong_arguments_are_said(wrong, message):
    with pytest.raises(ValueError, match=message):
        puzzles(ENV, SMALL, **wrong)


# -- functions that answer ---------------------------------------------------------------------------------------------


FIELD = {"rows": 2, "cols": 3}


def first_tests(count):
    endless = puzzles(ENV, FIELD, split="test")
    return [next(endless) for _ in range(count)]


def bench(function, **options):
    return bench_text(function, ENV, FIELD, **{"count": 6, "progress": False, "references": [], **options})


def up(prompt):
    return "<answer>up</answer>"


def test_a_function_earns_the_rewards_of_its_answers():
    tests, prompts = first_tests(6), []
    table = bench(lambda prompt: prompts.append(prompt) or "up", references=["2048/optimal"])
    assert prompts == [question(puzzle) for puzzle in tests]
    lines = zip(*table.columns.values(), strict=True)
    ours, chance, optimal = (dict(zip(table.columns, line, strict=True)) for line in lines)
    assert ours["mean reward"].value == pytest.approx(np.mean([reward(one, "up") for one in tests]))
    assert ours["best move"].value == np.mean([one.rewards[0] == 1 for one in tests])
    assert ours["legal"] == f"{np.mean([one.mask[0] for one in tests]):.0%}"
    by_chance = [np.average(one.rewards, weights=one.mask) for one in tests]
    assert chance["mean reward"].value == pytest.approx(np.mean(by_chance))
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


def test_the_command_takes_a_module_and_a_function(command):
    options = "--puzzles 3 --reference '{name: tetris/greedy, heuristic: bcts}' --judge tetris/bcts"
    field = "--env mergefall/Tetris-v0 --env-option cols=5 --env-option rows=6"
    printed, _, _ = command(f"bench-text training.text_model:answer {field} {options}")
    for text in (
        "3 test puzzles, seed 0",
        "training.text_model:answer",
        "random (expected)",
        "tetris/greedy heuristic",
    ):
        assert text in printed
    assert imported("training.text_model:answer")("Legal moves: up, left").endswith("<answer>left</answer>")
