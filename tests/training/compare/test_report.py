"""The page of recorded games; what only a browser can say is in tests/browser."""

import json
import re
import zlib
from base64 import b64decode

import gymnasium as gym
import numpy as np
import pytest
from mergefall.words import stream_from_seed
from mergefall_baselines import make
from mergefall_training import evaluate
from mergefall_training.compare.comparison import compare
from mergefall_training.compare.report import command as command_of
from mergefall_training.compare.report import report
from mergefall_training.learn.presets import configure
from mergefall_training.learn.run import train
from mergefall_training.play.evaluation import Evaluation

from ..altered import rewritten
from .test_league import LEAGUE

ENV, TETRIS = "mergefall/Game2048-v0", "mergefall/Tetris-v0"


DEEP = f'"options": {{"a": {"[" * 600}{"]" * 600}}}'
RESULTS = {"format": "mergefall comparison", "games": [{"name": "games", "players": 3}]}
RED = {"label": "\x1b[31mred", "player": "2048/greedy", "options": {}}
# By what is wrong: the header's and the games' other values, files beside the games, and what the page says.
WRONG = {
    "long name": ({"player": "x" * 300}, {}, {}, "name too long"),
    "long path": ({"player": "x" * 300, "options": {"checksum": "0" * 16}}, {}, {}, "name too long"),
    "gone": ({"player": "runs/gone"}, {}, {}, "values are missing"),
    "surrogate": ({"player": "\ud800"}, {}, {}, "\ufffd: its values are missing"),
    "length 0": ({}, {"length": 0, "actions": ""}, {}, "records that do not hold"),
    "deep header": ({}, {}, {}, "a.jsonl: maximum recursion"),
    "curve": ({}, {}, {"games/runs/a/curve.jsonl": "nonsense\n"}, "curve.jsonl is not a file of evaluations"),
    "deep results": ({}, {}, {"results.json": "[" * 20_000}, "results.json: its lists are nested too deeply"),
    "other results": ({}, {}, {"results.json": json.dumps(RESULTS)}, "holds no results of a comparison"),
}


def record(path, player="2048/greedy", env_id=ENV, count=4, cap=None, **env_kwargs):
    return evaluate(player, env_id, count, 0, env_kwargs, 1, path, max_episode_steps=cap, progress=False)


def page_of(paths, out, **options):
    sections = report(paths, out, progress=False, **options)
    return sections, json.loads(re.search(r'id="data">(.*?)</script>', out.read_text(), re.DOTALL)[1])


def unpacked(text, kind):
    return np.frombuffer(zlib.decompress(b64decode(text)), kind)


def held(section):
    """By label, (records that hold, all records)."""
    return {label: (sum(not v.problem for v in found), len(found)) for label, found in section.verdicts.items()}


def test_the_page_needs_no_network(tmp_path):
    record(tmp_path / "a.jsonl", rows=2, cols=2)
    page_of([tmp_path / "a.jsonl"], tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    outside = set(re.findall(r'(?:src|href)="(?!#)([^"]*)"', text)) | set(re.findall(r"url\((?!#)([^)]*)\)", text))
    assert outside == set()


def test_without_matplotlib_the_command_names_the_extra(tmp_path, without_matplotlib, command):
    record(tmp_path / "a.jsonl", rows=2, cols=2)
    assert "extra 'render'" in command("report --out", tmp_path / "page.html", tmp_path / "a.jsonl")[1]
    assert not (tmp_path / "page.html").exists()


def test_games_are_those_of_the_shared_seeds_the_best_and_the_worst(tmp_path):
    played = record(tmp_path / "runs" / "a.jsonl", count=30, rows=3)
    record(tmp_path / "runs" / "b.jsonl", "2048/random", count=9, rows=3)
    _, (section,) = page_of([tmp_path / "runs"], tmp_path / "page.html", replays=3)
    games = next(player["replays"] for player in section["players"] if player["label"] == "2048/greedy")
    assert [game["seed"] for game in games[:3]] == [0, 1, 2]
    notes = {game["note"]: game["seed"] for game in games}
    scores = {episode.seed: episode.score for episode in played.episodes}
    assert scores[notes["best"]] == max(scores.values())
    assert scores[notes["worst"]] == min(scores.values())
    assert games[0]["stream"] == str(stream_from_seed(0))
    assert section["rules"].items() >= {"rows": 3, "cols": 4, "goal": 0, "four": 429496730}.items()  # 0.1 · 2³²


@pytest.mark.parametrize(
    ("name", "env_id", "env_kwargs", "kind"),
    [
        ("2048/greedy", ENV, {}, "value"),
        ("tetris/greedy", TETRIS, {"cols": 5, "rows": 6}, "value"),
        ("2048/distill", ENV, {}, "probability"),
    ],
)
def test_values_are_the_players(tmp_path, name, env_id, env_kwargs, kind):
    player, env = make(name), gym.make(env_id, **env_kwargs)
    record(tmp_path / "a.jsonl", player, env_id, 2, 40, **env_kwargs)
    _, (section,) = page_of([tmp_path / "a.jsonl"], tmp_path / "page.html", values=6)
    game = section["players"][0]["replays"][0]
    length, shown = game["length"], game["values"]
    assert (shown["kind"], shown["ranges"]) == (kind, [[0, 3], [length - 3, length]])
    values = iter(unpacked(shown["data"], "<f4").reshape(6, env.action_space.n))
    observation, _ = env.reset(seed=game["seed"])
    for i, action in enumerate(unpacked(game["actions"], "u1").tolist()):
        if not 3 <= i < length - 3:
            np.testing.assert_allclose(next(values), player.values(observation), rtol=1e-5)
        observation, *_ = env.step(action)


def test_the_command_plays_the_same_games(tmp_path, command):
    played = record(tmp_path / "a.jsonl", make("2048/expectimax", depth=1), count=3, cap=50, rows=2, cols=3)
    text = command_of(played)
    assert text.startswith("mergefall evaluate ")
    command(f"{text.removeprefix('mergefall ')} --workers 1 --out", tmp_path / "again.jsonl")
    again = Evaluation.read(tmp_path / "again.jsonl")
    assert again.header == played.header
    assert [episode.actions for episode in again.episodes] == [episode.actions for episode in played.episodes]


def test_a_run_is_shown_beside_the_players_of_its_environment(tmp_path, drawn):
    board = {"rows": 2, "cols": 2}
    config = configure(
        "ntuple", env_kwargs=board, changed={"patterns": "0123 01"}, timesteps=4000, interval=2000, episodes=6
    )
    curve = train(tmp_path / "runs" / "first", config, progress=False).points
    record(tmp_path / "a.jsonl", count=9, **board)
    (section,), (data,) = page_of([tmp_path / "runs" / "first", tmp_path / "a.jsonl"], tmp_path / "page.html", values=4)
    rows = {row.label: row for row in section.result.rows}
    assert set(rows) == {"first", "2048/greedy"}
    assert rows["first"].curve == curve
    assert rows["first"].summary.mean.value == curve[-1].mean  # the games of the last evaluation
    (games,) = [player["replays"] for player in data["players"] if player["label"] == "first"]
    assert games
    assert "values" in games[0]
    text = (tmp_path / "page.html").read_text()
    for words in ("plot-0-learning", "Configuration of first", "patterns", "played for this page"):
        assert words in text
    sections, _ = page_of([tmp_path / "runs"], tmp_path / "page.html", values=0)
    assert [row.label for section in sections for row in section.result.rows] == ["first"]


def test_two_files_of_one_player_stay_apart_and_broken_ones_are_told_of(tmp_path):
    record(tmp_path / "runs" / "a.jsonl", rows=2, cols=2)
    record(tmp_path / "runs" / "b.jsonl", rows=2, cols=2, count=6)
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "c.jsonl").write_text("nonsense\n")
    (section,), _ = page_of([tmp_path / "runs", tmp_path / "more"], tmp_path / "page.html", values=0)
    assert held(section) == {"2048/greedy": (4, 4), "2048/greedy (b.jsonl)": (6, 6)}
    assert any("c.jsonl" in problem for problem in section.problems)


def test_a_league_is_one_section_with_its_ratings(tmp_path, drawn):
    (tmp_path / "small.yaml").write_text(LEAGUE)
    (league,) = compare(tmp_path / "small.yaml", tmp_path / "out", 1, progress=False)
    (section,), (data,) = page_of([tmp_path / "out"], tmp_path / "page.html")
    assert section.result.matches == league.matches
    assert section.result.anchor == "bcts"
    assert held(section) == {label: (4, 4) for label in league.ratings}
    text = (tmp_path / "page.html").read_text()
    for words in ("<th>Elo</th>", "of its matches against", "plot-0-ratings", "All records hold."):
        assert words in text
    assert data["players"] == []  # the page cannot play the opponent's part
    (tmp_path / "out" / "small" / "random_vs_bcts.jsonl").unlink()
    (tmp_path / "out" / "small" / "bcts_vs_random.jsonl").unlink()
    (section,), _ = page_of([tmp_path / "out"], tmp_path / "page.html")
    assert len(section.result.matches) == 4
    (only,), _ = page_of([tmp_path / "out" / "small" / "bcts_vs_dellacherie.jsonl"], tmp_path / "page.html")
    assert [row.label for row in only.result.rows] == ["bcts"]


def test_sections_are_named_by_their_folder_or_environment(tmp_path, monkeypatch):
    record(tmp_path / "own" / "a.jsonl", rows=2, cols=3)
    monkeypatch.chdir(tmp_path / "own")
    for path, name in (
        *((path, "Game2048-v0 2×3") for path in (tmp_path / "own", "a.jsonl", "./a.jsonl", ".")),
        (tmp_path, "own"),
    ):
        (section,), _ = page_of([path], tmp_path / "page.html", values=0)
        assert (section.name, held(section)) == (name, {"2048/greedy": (4, 4)})


@pytest.mark.parametrize("kind", WRONG)
def test_one_bad_thing_is_named_and_the_rest_is_shown(tmp_path, kind):
    header, game, files, problem = WRONG[kind]
    good, wrong = tmp_path / "good" / "a.jsonl", tmp_path / "wrong" / "games" / "a.jsonl"
    record(good, rows=2, cols=2)
    rewritten(good, wrong, header, game)
    if kind == "deep header":
        wrong.write_text(wrong.read_text().replace('"options": {}', DEEP))
    for name, text in files.items():
        (tmp_path / "wrong" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "wrong" / name).write_text(text)
    sections, _ = page_of([tmp_path / "good", tmp_path / "wrong"], tmp_path / "page.html", values=4)
    assert held(sections[0])["2048/greedy"] == (4, 4)
    assert problem in "\n".join(one for section in sections for one in section.problems)


def test_no_values_and_no_games_are_numbers_too(tmp_path):
    record(tmp_path / "a.jsonl", rows=2, cols=2)
    _, (section,) = page_of([tmp_path / "a.jsonl"], tmp_path / "page.html", values=1, replays=0)
    assert all("values" not in game for game in section["players"][0]["replays"])
    for name in ("values", "replays"):
        with pytest.raises(ValueError, match=f"{name} is -1"):
            page_of([tmp_path / "a.jsonl"], tmp_path / "page.html", **{name: -1})


@pytest.mark.parametrize(
    ("results", "label"),
    [
        ([1, 2], "2048/greedy"),  # of another program
        ({"games": [{"score": 3}]}, "2048/greedy"),
        (RESULTS | {"games": [{"name": "games", "players": [RED]}]}, "\ufffd[31mred"),  # no escape sequences
    ],
)
def test_labels_are_those_of_a_comparisons_results(tmp_path, results, label):
    (tmp_path / "results.json").write_text(json.dumps(results))
    record(tmp_path / "games" / "a.jsonl", rows=2, cols=2)
    (section,), _ = page_of([tmp_path / "games"], tmp_path / "page.html")
    assert held(section) == {label: (4, 4)}


def test_paths_without_games_are_errors(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken.jsonl").write_text("nonsense\n")
    for name, message in (("nothing", "there is no"), ("empty", "no recorded game"), ("broken.jsonl", "broken")):
        with pytest.raises(ValueError, match=message):
            page_of([tmp_path / name], tmp_path / "page.html")
    assert not (tmp_path / "page.html").exists()


def test_a_record_that_does_not_hold_does_not_count_and_is_not_shown(tmp_path):
    played = record(path := tmp_path / "runs" / "a.jsonl", rows=2, cols=2)
    header, first, *others = path.read_text().splitlines()
    first = json.dumps(json.loads(first) | {"score": 10**9})
    path.write_text("\n".join([header, first, *others, ""]))
    (section,), (data,) = page_of([tmp_path / "runs"], tmp_path / "page.html", values=0, replays=4)
    assert held(section) == {"2048/greedy": (3, 4)}
    assert section.result.rows[0].summary.mean.value == played.scores[1:].mean()
    assert sorted(game["seed"] for game in data["players"][0]["replays"]) == [1, 2, 3]
    path.write_text(f"{header}\n{first}\n")
    with pytest.raises(ValueError, match=r"records that do not hold: .*checksum"):
        page_of([tmp_path / "runs"], tmp_path / "page.html")


def test_all_pairs_of_players_hold_together(tmp_path):
    """The games that are compared also choose the best, so it is compared with chance's help."""
    for k in range(5):
        record(tmp_path / "runs" / f"{k}.jsonl", rows=2, cols=2)
    page_of([tmp_path / "runs"], page := tmp_path / "page.html", values=0)
    words = "with intervals of 99.5 %, so that those of all pairs hold together"  # 1 - 0.05 / 10
    assert words in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("adversary", "seeds", "labels"),
    [
        ("", 2, {"chance", "pairs, seed 0", "pairs, seed 1"}),
        ("", 1, {"chance", "pairs"}),
        ("    adversary: {player: 2048/greedy, rate: [0, 1]}\n", 1, {"chance", "pairs"}),
    ],
)
def test_labels_and_curves_of_a_suite_are_kept(tmp_path, command, adversary, seeds, labels):
    (tmp_path / "mine.yaml").write_text(
        "games:\n  - name: small\n    env: mergefall/Game2048-v0\n    env_kwargs: {rows: 2, cols: 2}\n    episodes: 5\n"
        f"{adversary}    players:\n      - {{player: 2048/random, label: chance}}\n"
        f"      - train: {{algorithm: ntuple, timesteps: 4000, interval: 2000, seeds: {seeds}, episodes: 5,"
        " hyperparameters: {patterns: 0123 01, threads: 1}}\n        label: pairs\n"
    )
    command("compare --workers 1 --out", tmp_path / "out", tmp_path / "mine.yaml")
    for section in page_of([tmp_path / "out"], tmp_path / "page.html", values=0)[0]:
        assert {row.label for row in section.result.rows} == labels
        (line,) = section.result.trained
        assert (line.label, len(line.rows)) == ("pairs", seeds)
        assert all(len(row.curve) == 3 for row in line.rows)
