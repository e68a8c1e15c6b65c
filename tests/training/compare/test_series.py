"""Contests at several rates of the adversary: one table and one plot, and the same files as other contests."""

import csv
import io
import json

import numpy as np
import pytest
from mergefall_training.cli import main
from mergefall_training.compare.comparison import compare
from mergefall_training.compare.results import series_table
from mergefall_training.compare.suite import load_suite
from mergefall_training.play.evaluation import evaluate
from mergefall_training.play.records import read_records
from mergefall_training.play.tables import short
from rich.console import Console

SUITE = """
description: Two players at three rates, and a contest at one rate.
games:
  - name: small
    env: mergefall/Game2048-v0
    env_kwargs: {rows: 3, cols: 3}
    adversary: {player: {player: 2048/minimax, depth: 1}, rate: [0, 0.5, 1]}
    episodes: 10
    players:
      - {player: 2048/random, label: "chance [b]"}
      - {player: 2048/greedy, episodes: 6}
  - name: tetris
    env: mergefall/Tetris-v0
    env_kwargs: {cols: 5, rows: 5, preview: 0}
    adversary: {player: tetris/bcts}
    episodes: 3
    players: [{player: tetris/random}]
"""


def write_suite(folder, old="", new=""):
    assert old in SUITE
    path = folder / "mine.yaml"
    path.write_text(SUITE.replace(old, new, 1))
    return path


def run(path, out):
    screen = Console(file=io.StringIO(), width=140)
    results = compare(path, out, workers=1, progress=False, screen=screen)
    return results, screen.file.getvalue()


def test_a_contest_with_several_rates_is_a_contest_for_each(tmp_path):
    *small, tetris = load_suite(write_suite(tmp_path)).contests
    assert [(one.name, one.series) for one in small] == [(f"small-rate-{rate}", "small") for rate in ("0", "0.5", "1")]
    assert [one.adversary["rate"] for one in small] == [0, 0.5, 1]
    assert all(one.players == small[0].players for one in small)
    assert (tetris.name, tetris.series) == ("tetris", "")


def test_one_table_shows_every_player_at_every_rate(tmp_path):
    results, printed = run(write_suite(tmp_path), None)
    table = series_table(results[:3])
    assert (table.title, list(table.columns)) == ("small", ["player", "N", "rate 0", "rate 0.5", "rate 1"])
    assert printed.count("chance [b]") == 1
    for text in ("small: ", "(3×3 ", "adversary 2048/minimax depth=1 at rate [0, 0.5, 1]", "N=6-10, seeds 0-9"):
        assert text in printed
    assert table.columns["player"] == ["greedy", "chance [b]"]
    for result, rate in zip(results, ("0", "0.5", "1"), strict=False):
        means = {row.label: row.summary.mean for row in result.rows}
        assert [mean for mean, _ in table.columns[f"rate {rate}"]] == [means["greedy"], means["chance [b]"]]
        assert all(short(mean.value) in printed for mean in means.values())
    assert "adversary tetris/bcts at rate 1.0" in printed
    assert "ms/piece include the adversary's time" in printed


def test_each_rate_holds_the_games_of_an_evaluation(tmp_path):
    results, _ = run(write_suite(tmp_path), tmp_path / "out")
    given = {"env_kwargs": {"rows": 3, "cols": 3}, "workers": 1, "progress": False}
    for result in results[:3]:
        (played,) = [row.evaluation for row in result.rows if row.label == "greedy"]
        alone = evaluate("2048/greedy", "mergefall/Game2048-v0", 6, adversary=result.adversary, **given)
        assert played.results.tolist() == alone.results.tolist()
        assert read_records(tmp_path / "out" / result.name / "greedy.jsonl") == (played.header, played.episodes)


def test_the_files_name_the_rates(tmp_path):
    out = tmp_path / "out"
    results, _ = run(write_suite(tmp_path), out)
    rates = [result.adversary["rate"] for result in results]
    assert rates == [0, 0.5, 1, 1]
    games = json.loads((out / "results.json").read_text())["games"]
    assert [game["adversary"]["rate"] for game in games] == rates
    lines = list(csv.DictReader((out / "results.csv").read_text().splitlines()))
    assert [json.loads(line["adversary"])["rate"] for line in lines] == [0, 0, 0.5, 0.5, 1, 1, 1]
    assert {path.stem for path in out.glob("*/*.png")} <= {"lines", "speed"}  # those of Tetris


TRAINED = """
      - train: {algorithm: ntuple, timesteps: 2000, interval: 1000, hyperparameters: {patterns: "0123 01", threads: 1}}
        label: agent
"""


def test_agents_of_several_training_seeds_share_a_line(tmp_path):
    two = TRAINED.replace("timesteps", "seeds: 2, timesteps").removeprefix("\n")
    path = write_suite(tmp_path, "      - {player: 2048/greedy, episodes: 6}\n", two)
    results, printed = run(path, tmp_path / "out")
    table = series_table(results[:3])
    place = table.columns["player"].index("agent")
    for result, rate in zip(results, ("0", "0.5", "1"), strict=False):
        mean = table.columns[f"rate {rate}"][place][0]
        scores = [row.evaluation.results.mean() for row in result.rows if row.group]
        assert mean.value == pytest.approx(np.mean(scores))
        assert mean.low < min(scores) < max(scores) < mean.high
    configs = [path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("config.json")]
    assert sorted(configs) == [f"small/runs/agent_seed_{seed}/config.json" for seed in (0, 1)]  # once for all rates
    assert "2×10" in printed
    assert "Student's over training seeds" in printed


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("rate: [0, 0.5, 1]", "rate: []", "game 1: adversary: rates: expected at least one"),
        ("rate: [0, 0.5, 1]", "rate: [0, 1, 1.0]", "all different"),
        ("rate: [0, 0.5, 1]", "rate: [0, 2]", "rate is 2"),
        ("rate: [0, 0.5, 1]", "rate: often", "rate is 'often'"),
        ("rate: [0, 0.5, 1]", "rates: [0, 0.5, 1]", "rates"),
        ("{player: 2048/minimax", "{player: 2048/maximin", "2048/maximin"),
        ("{player: 2048/minimax, depth: 1}", "7", "player is 7"),
        ("adversary: {player: tetris/bcts}", "adversary: tetris/bcts", "adversary is 'tetris/bcts'; expected dict"),
        ("name: tetris", "name: small-rate-1", "games, presets and rates"),
    ],
)
def test_a_faulty_adversary_says_where_and_what(tmp_path, old, new, complaint):
    with pytest.raises(ValueError, match=r"suite .*mine\.yaml") as error:
        load_suite(write_suite(tmp_path, old, new))
    assert complaint in str(error.value)


def test_the_command_takes_an_adversary(tmp_path, capsys):
    out = tmp_path / "games.jsonl"
    given = ["--adversary", "player={player: 2048/minimax, depth: 1}", "--adversary", "rate=0.5"]
    small = ["--env-option", "rows=2", "--env-option", "cols=3", "--episodes", "3", "--workers", "1"]
    main(["evaluate", "2048/greedy", *small, *given, "--out", str(out)])
    printed = capsys.readouterr().out
    assert "adversary 2048/minimax depth=1 at rate 0.5" in printed
    assert "ms/move include the adversary's time" in printed
    assert read_records(out)[0].adversary == {"player": {"player": "2048/minimax", "depth": 1}, "rate": 0.5}
    with pytest.raises(SystemExit):
        main(["evaluate", "2048/greedy", *small, "--adversary", "rate=2"])
    assert "expected a 'player'" in capsys.readouterr().err
