"""`--figure`: evaluations and comparisons write the records from which the tables of results are rendered."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from mergefall_training.compare.figures import FILE, figure_file, write_figures
from mergefall_training.compare.league import LeagueResult
from mergefall_training.compare.results import ContestResult, Row
from mergefall_training.play.evaluation import Evaluation, evaluate
from mergefall_training.play.records import Header, TetrisEpisode, VersusEpisode
from mergefall_training.play.statistics import exponential_mean, short

from ... import commands
from ...figures import table
from ...test_figures import REQUIRED

SUITE = """
description: Two players, in the plain game and against an adversary.
games:
  - name: small
    env: mergefall/Game2048-v0
    env_kwargs: {rows: 2, cols: 3}
    episodes: 4
    adversary: {player: 2048/minimax, rate: [0, 0.5]}
    players: [{player: 2048/random}, {player: 2048/greedy, label: best reward}]
"""


@pytest.fixture
def clone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    FILE.parent.mkdir()
    FILE.write_text(json.dumps({"id": "other", "question": "sz"}) + "\n")
    return FILE


def read(file):
    other, *records = map(json.loads, file.read_text().splitlines())
    assert other == {"id": "other", "question": "sz"}
    return [{"env_kwargs": {}, "options": {}} | record for record in records]


def test_a_record_says_what_the_evaluation_says_and_is_replaced(clone, command):
    words = "evaluate 2048/expectimax --option heuristic=nneonneo --option depth=2 --workers 1 --figure trees/mine"
    for episodes in (4, 6):
        command(f"{words} --episodes {episodes} --out {episodes}.jsonl")
        (record,) = read(clone)
        summary = Evaluation.read(f"{episodes}.jsonl").summary()
        assert [record[end] for end in ("mean", "low", "high")] == pytest.approx(
            [summary.mean.value, summary.mean.low, summary.mean.high], rel=1e-5
        )
        assert record["rates"]["1024"][0] == round(100 * summary.tiles[1024].value, 1)
        assert (record["episodes"], record["seed"], record["figure"]) == (episodes, 0, "score")
        assert record["options"] == {"heuristic": "nneonneo", "depth": 2}
        required, optional = (set(names.split()) for names in REQUIRED["figure"])
        assert required <= record.keys() <= required | optional | {"id", "question", "options"}
        commands.check(record["command"])
        by_hand = '"note": "by hand", "front": "text", "label": "Mine: '
        clone.write_text(clone.read_text().replace('"label": "', by_hand))
    assert record["label"].startswith("Mine: ")
    assert (record["note"], record["front"]) == ("by hand", "text")
    assert "| Mine: " in table("trees", read(clone))
    assert "trees/mine" not in record["command"]


def test_a_suite_writes_a_record_for_each_player(clone, command):
    Path("pair.yaml").write_text(SUITE)
    command("compare pair.yaml --workers 1 --figure robustness-2048/pair")
    records = {record["id"]: record for record in read(clone)}
    assert records.keys() == {"pair-random", "pair-best-reward"}
    plain, against = (
        Evaluation.read(f"results/pair/small-rate-{rate}/best_reward.jsonl").mean() for rate in ("0", "0.5")
    )
    record = records["pair-best-reward"]
    assert record["mean"] == pytest.approx(plain.value, rel=1e-5)
    assert record["against"]["0.5"][0] == pytest.approx(against.value, rel=1e-5)


def test_agents_that_were_trained_alike_are_one_record(clone):
    games = [evaluate("2048/random", "mergefall/Game2048-v0", 2, seed, workers=1, progress=False) for seed in (0, 2)]
    rows = [Row(f"agent, seed {i}", one, group="agent", training_seed=i) for i, one in enumerate(games)]
    assert write_figures(clone, "trees/mine", [ContestResult("small", rows)], "make test") == ["mine"]
    (record,) = read(clone)
    assert (record["label"], record["training_seed"], record["interval"]) == ("agent", "0–1", "Student, 2 runs")
    assert record["mean"] == pytest.approx(sum(one.mean().value for one in games) / 2)
    assert record["runs"] == [short(one.mean().value) for one in games]


def test_games_capped_in_pieces_are_judged_by_their_attack(clone, command):
    options = "--option 'of={player: tetris/beam, width: 4, draws: 0}' --env-option gravity=0 --workers 1 --out x.jsonl"
    cap = "--max-pieces 7 --episodes 3 --headline attack --figure attack/mine"
    printed, _, _ = command(f"evaluate tetris/keys --env mergefall/TetrisKeys-v0 {options} {cap}")
    assert "cap 7 pieces" in printed
    (record,) = read(clone)
    games = Evaluation.read("x.jsonl").episodes
    assert [one.pieces for one in games] == [7] * 3
    assert record["mean"] == pytest.approx(sum(one.attack for one in games) / 3, rel=1e-5)
    assert (record["figure"], record["cap"]) == ("attack", "7 pieces")
    assert record["ms"] == pytest.approx(sum(one.seconds for one in games) / 21 * 1000, rel=0.05)  # of a piece
    commands.check(record["command"])
    with pytest.raises(ValueError, match="headline is 'attack'; expected one of 'score', 'lines', 'pieces'"):
        Evaluation(header("tetris/bcts", env_id="mergefall/Tetris-v0"), [TETRIS_GAME], "attack")


TETRIS_GAME = TetrisEpisode(0, 40, 100, False, 0.1, lines=40, pieces=100)


def header(player, **match):
    return Header(player=player, options={}, package="0", **match)


def strictly_read(file):
    """The records, of which none holds what JSON lacks."""
    lines = file.read_text().splitlines()
    return [json.loads(line, parse_constant=pytest.fail) for line in lines[1:]]


@pytest.mark.parametrize("end", [False, True])
def test_where_no_game_ended_only_the_lower_end_is_known(clone, end):
    about = header("tetris/bcts", env_id="mergefall/Tetris-v0", env_kwargs={"rows": 20}, max_episode_steps=100)
    games = Evaluation(about, [replace(TETRIS_GAME, seed=seed, terminated=end) for seed in range(4)])
    write_figures(clone, "tetris-controllers/mine", [ContestResult("mine", [Row("mine", games)])], "x")
    (record,) = strictly_read(clone)
    low = exponential_mean(160, 0).low
    assert (record["mean"], record["low"]) == ((40.0, 40.0) if end else (None, pytest.approx(low, rel=1e-5)))
    assert ("high" in record) == end
    text = table("tetris-controllers", read(clone))
    assert ("| 40.0 [40.0, 40.0] |" if end else f"| above {low:.1f} (exact Poisson) |") in text


def test_a_league_is_judged_by_ratings(clone):
    about = header("tetris/keys", env_id="mergefall/TetrisVersus-v0", env_kwargs={"opponent": "x"})
    won, lost = (
        Evaluation(about, [VersusEpisode(s, 1, 9, True, 0.1, lines=1, pieces=1, attack=1, won=won) for s in (0, 1)])
        for won in (1, -1)
    )
    league = LeagueResult.of("both", {("a", "b"): won, ("b", "a"): lost}, "b")
    write_figures(clone, "versus/mine", [league], "x")
    for record in strictly_read(clone):
        rating = league.ratings[record["label"]]
        assert (record["figure"], record["episodes"], record["interval"]) == ("Elo", 4, "Bayesian bootstrap")
        assert record["mean"] == pytest.approx(rating.value, rel=1e-5)


@pytest.mark.parametrize("key", ["mine", "a/b/c", "/mine", "trees/"])
def test_a_key_is_a_question_and_an_id(clone, key):
    with pytest.raises(ValueError, match="expected QUESTION/ID"):
        figure_file(key)


def test_records_of_another_question_stay(clone, command):
    errors = command("evaluate 2048/random --episodes 1 --workers 1 --figure trees/other")[1]
    assert "'other' answers the question 'sz'" in errors
    assert read(clone) == []


def test_outside_a_clone_nothing_is_played(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    assert "--figure is for a clone" in command("evaluate 2048/random --out games.jsonl --figure trees/mine")[1]
    assert not list(tmp_path.iterdir())
