"""Suites, comparisons and what they write."""

import io
import json
import math
import re
from contextlib import redirect_stdout
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib import image
from mergefall_training.compare.comparison import compare
from mergefall_training.compare.results import series_table
from mergefall_training.compare.suite import load_suite, suite_names
from mergefall_training.learn.presets import load_preset
from mergefall_training.learn.run import read_config, read_curve
from mergefall_training.play.evaluation import Evaluation, evaluate
from mergefall_training.play.records import read_records
from mergefall_training.play.statistics import short
from mergefall_training.play.tables import to_terminal
from mergefall_training.play.verify import verify

SUITE = """
description: Two players on two small boards.
games:
  - name: small
    env: mergefall/Game2048-v0
    env_kwargs: {rows: 2, cols: 3}
    seed: 5
    episodes: 12
    players:
      - player: 2048/random
      - {player: 2048/greedy, label: "greedy (reward)", episodes: 8}
  - name: capped
    env: mergefall/Game2048-v0
    env_kwargs: {rows: 2, cols: 2}
    max_episode_steps: 4
    episodes: 1
    players: [{player: 2048/random}]
"""


def write_suite(folder, old="", new="", text=SUITE):
    assert old in text
    path = folder / "pair.yaml"
    path.write_text(text.replace(old, new, 1))
    return path


def run(path, out, workers=1, games=None):
    with redirect_stdout(io.StringIO()) as printed:
        results = compare(path, out, workers, games=games, progress=False)
    return results, printed.getvalue()


def played(text):
    """A fixture of a suite: (results, printed text, folder of its output)."""

    @pytest.fixture(scope="module")
    def once(tmp_path_factory):
        folder = tmp_path_factory.mktemp("suite")
        return *run(write_suite(folder, text=text), folder / "out"), folder / "out"

    return once


pair = played(SUITE)


def test_every_player_plays_the_same_seeds_and_the_best_comes_first(pair):
    (small, capped), printed, _ = pair
    assert {(row.label, row.summary.episodes) for row in small.rows} == {("greedy (reward)", 8), ("random", 12)}
    assert small.rows[0].summary.mean.value >= small.rows[1].summary.mean.value
    assert [row.evaluation.episodes[0].seed for row in small.rows] == [5, 5]
    for text in ("small", "(2×3 ", "no cap", "N=8-12", "seeds 5-16", "greedy (reward)", "ms/move", "cap 4 moves"):
        assert text in printed
    assert capped.rows[0].summary.capped == 1


def test_a_narrow_screen_shows_whole_names_and_what_says_most(tmp_path, monkeypatch, capsys):
    text = SUITE.split("  - name: capped")[0].replace("{rows: 2, cols: 3}", "{rows: 3, cols: 4}")
    (result,), _ = run(write_suite(tmp_path, "greedy (reward)", "greedy by the score alon", text), None)
    for width in (80, 100, 120, 140):
        monkeypatch.setattr("mergefall_training.progress.WIDTH", width)
        to_terminal(result.table())
        printed = capsys.readouterr().out
        lines = printed[printed.index("player") : printed.index("Below")].splitlines()
        assert max(map(len, lines)) <= width
        assert sum("greedy by the score alon" in line for line in lines) == 1
        for name in ("N", "mean score", f"{result.telling_tiles[-1]}+", "ms/move"):
            assert re.search(rf" {re.escape(name)}( |$)", lines[0])
        left_out = printed.partition("Left out, as there is no room")[2]
        assert all((name in left_out) != (name in lines[0]) for name in ("median", "IQM", "moves"))
        assert not left_out or width < 140
        assert "…" not in printed


def test_the_files_hold_the_same_figures(pair):
    results, _, out = pair
    content = json.loads((out / "results.json").read_text())
    assert (content["format"], content["version"], content["suite"]) == ("mergefall comparison", 1, "pair")
    assert [game["name"] for game in content["games"]] == ["small", "capped"]
    for game, result in zip(content["games"], results, strict=True):
        for player, row in zip(game["players"], result.rows, strict=True):
            assert (player["label"], player["episodes"]) == (row.label, len(row.evaluation.episodes))
            assert player["mean"]["value"] == row.summary.mean.value
            assert game["env_kwargs"] == row.evaluation.header.env_kwargs
    small, capped = results
    best = content["games"][0]["players"][0]
    assert f"| {best['label']} | {best['episodes']} | " in (out / "small" / "table.md").read_text()
    assert best["tiles"]["16"]["value"] == small.rows[0].evaluation.tile_rate(16).value
    assert math.isnan(capped.rows[0].summary.mean.low)  # one episode gives no interval
    assert content["games"][1]["players"][0]["mean"]["low"] is None
    assert repr(small).startswith("<small: 2 players")
    table = ElementTree.fromstring(f"<div>{small._repr_html_()}</div>")
    assert [line[0].text for line in table.findall(".//tr")[1:]] == [row.label for row in small.rows]


def test_labels_are_printed_as_they_are_and_nothing_is_written_unless_asked(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = write_suite(tmp_path, "greedy (reward)", "a [/b] c [red]:smile:")
    (small, _), printed = run(path, None)
    assert "a [/b] c [red]:smile:" in {row.label for row in small.rows}
    assert "a [/b] c [red]:smile:" in printed
    assert list(tmp_path.iterdir()) == [path]


def test_without_matplotlib_the_rest_is_written_and_the_lack_said(tmp_path, without_matplotlib):
    _, printed = run(write_suite(tmp_path), tmp_path / "out")
    assert "extra 'render'" in printed
    assert (tmp_path / "out" / "results.json").exists()
    assert not list((tmp_path / "out").rglob("*.png"))


# -- agents that are trained for a comparison --------------------------------------------------------------------------

CAPPED = """
games:
  - name: small
    env: mergefall/Tetris-v0
    env_kwargs: {cols: 6, rows: 8}
    max_episode_steps: 3
    episodes: 4
    players:
      - player: tetris/bcts
      - train: {algorithm: cma-es, timesteps: 200, seeds: 2, max_episode_steps: 3, episodes: 2}
"""
TRAINED = """
games:
  - name: small
    env: mergefall/Game2048-v0
    env_kwargs: {rows: 2, cols: 2}
    episodes: 5
    baseline: far
    players:
      - player: 2048/greedy
      - train: &run
          algorithm: ntuple
          timesteps: 2000
          interval: 1000
          seeds: 2
          episodes: 5
          hyperparameters: &small {patterns: "0123 01", threads: 1}
        label: far
      - {train: {<<: *run, hyperparameters: {patterns: "01", threads: 1}}, label: near}
"""


agents = played(TRAINED)


def written(folder):
    """When each model was written."""
    return {file.relative_to(folder): file.stat().st_mtime_ns for file in folder.rglob("*.npz")}


def scores_of(result):
    return {row.label: row.evaluation.scores.tolist() for row in result.rows}


def test_agents_are_trained_then_play_the_same_games(agents):
    (first,), printed, out = agents
    agents = [f"{name}, seed {seed}" for name in ("far", "near") for seed in (0, 1)]
    assert {row.label for row in first.rows} == {"greedy", *agents}
    assert "more than far" in printed
    lines = {line.label: line for line in first.trained}
    for label, line in lines.items():
        assert [row.label for row in line.rows] == [f"{label}, seed 0", f"{label}, seed 1"]
        assert line.mean.value == sum(row.summary.mean.value for row in line.rows) / 2
        for seed, row in enumerate(line.rows):
            agent = out / "small" / "runs" / f"{label}_seed_{seed}"
            assert row.curve == read_curve(agent)
            assert read_config(agent).seed == seed
            assert row.evaluation.header.options["model"] == "last"
            assert [episode.seed for episode in row.evaluation.episodes] == list(range(5))
    gain, better = first.beside["near"].difference, first.beside["near"].higher
    assert gain.value == pytest.approx(lines["near"].mean.value - lines["far"].mean.value)
    assert 0 <= better.value <= 1
    assert first.beside.keys() == {"near"}
    content = json.loads((out / "results.json").read_text())
    assert {line["label"]: line["mean"]["value"] for line in content["games"][0]["trained"]} == {
        label: line.mean.value for label, line in lines.items()
    }
    models = written(out)
    (again,), _ = run(out.parent / "pair.yaml", out)  # nothing is trained or played anew
    assert [row.evaluation for row in again.rows] == [row.evaluation for row in first.rows]
    assert models == written(out)
    assert image.imread(out / "small" / "learning.png").std() > 0.02


def test_agents_trained_side_by_side_are_those_trained_one_by_one(agents, tmp_path):
    (alone,), _, _ = agents
    (together,), _ = run(write_suite(tmp_path, text=TRAINED), tmp_path / "out", workers=2)
    assert scores_of(together) == scores_of(alone)
    for ours, theirs in zip(together.rows, alone.rows, strict=True):
        assert [point.mean for point in ours.curve] == [point.mean for point in theirs.curve]


def test_agents_train_on_the_contests_board_and_not_on_the_presets(tmp_path):
    train = "train: {algorithm: dqn, env_kwargs: {reward: score}}"
    text = f"games: [{{name: usual, env: mergefall/Tetris-v0, episodes: 1, players: [{{{train}}}]}}]"
    (contest,) = load_suite(write_suite(tmp_path, text=text)).contests
    assert load_preset("dqn", contest.env_id)["env_kwargs"]["rows"] == 10
    kwargs = contest.players[0].training.config(contest, seed=0).env_kwargs
    assert (kwargs["rows"], kwargs["reward"]) == (20, "score")


def test_a_contest_is_played_with_each_preset(tmp_path):
    players = "players: [{train: {algorithm: ntuple}}, {train: {algorithm: ntuple, preset: four-tuples}, label: few}]"
    text = "games: [{name: small, env: mergefall/Game2048-v0, episodes: 5, presets: [small, large], " + players + "}]"
    suite = load_suite(write_suite(tmp_path, text=text))
    assert [contest.name for contest in suite.contests] == ["small-small", "small-large"]
    for contest, steps in zip(suite.contests, (120_000_000, 7_200_000_000), strict=True):
        assert contest.players[0].training.config(contest, seed=0).timesteps == steps
        assert contest.players[1].training.preset == "four-tuples"


def test_games_that_are_played_apart_end_in_one_file(pair, tmp_path):
    path, out = write_suite(tmp_path), tmp_path / "out"
    for game in ("small", "capped", "small"):
        results, printed = run(path, out, games=[game])
        assert [result.name for result in results] == [game]
        assert ("capped" in printed) == (game == "capped")
    whole, apart = (
        {
            game["name"]: [player["mean"] for player in game["players"]]
            for game in json.loads((folder / "results.json").read_text())["games"]
        }
        for folder in (pair[2], out)
    )
    assert whole == apart
    with pytest.raises(ValueError, match="game is 'large'; expected one of 'small', 'capped'"):
        run(path, None, games=["large"])


def test_plots_show_labels_as_they_are(tmp_path, drawn):
    label = r"costs $5 and $6 and $\foo$" + "a" * 160
    run(write_suite(tmp_path, '"greedy (reward)"', json.dumps(label)), tmp_path / "out")
    for game in ("small", "capped"):
        assert_plots(tmp_path / "out" / game, "scores")


def test_a_run_that_its_learner_refuses_is_found_before_any_is_trained(tmp_path):
    wrong = "algorithm: ntuple, timesteps: 200, interval: 100, hyperparameters: {batch: 7}}"
    path = write_suite(tmp_path, 'hyperparameters: {patterns: "01", threads: 1}}', wrong, TRAINED)
    with pytest.raises(ValueError, match="small: near: ntuple has no 'batch'"):
        run(path, tmp_path / "out")
    assert not list(tmp_path.rglob("config.json"))
    with pytest.raises(ValueError, match="'far' is trained for the comparison; name a folder"):
        run(path, None)


def test_a_moved_folder_goes_on_where_it_stopped(agents, tmp_path):
    """Agents are known by their checksum: no run and no game is made again, and all records still hold."""
    (before,), _, out = agents
    out.rename(moved := tmp_path / "moved")  # no other test below takes them
    file = moved / "small" / "near_seed_0.jsonl"
    kept = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(kept[:3]))  # two of five games
    models = written(moved)
    (after,), _ = run(out.parent / "pair.yaml", moved)
    assert models == written(moved)
    assert file.read_bytes().splitlines()[0] == kept[0].rstrip()
    assert scores_of(after) == scores_of(before)
    assert not any(verdict.problem for verdict in verify(file, progress=False))
    assert Evaluation.read(file).header.player == (moved / "small" / "runs" / "near_seed_0").as_posix()
    other = json.loads(kept[0]) | {"options": {"model": "last", "checksum": "0" * 16}}
    file.write_bytes(json.dumps(other).encode() + b"\n")
    with pytest.raises(ValueError, match=r"another run: player is .*; options\.checksum is '0000000000000000' there"):
        run(out.parent / "pair.yaml", moved)


def test_runs_whose_games_a_cap_ended_are_drawn(tmp_path, drawn):
    """Their mean is infinite; the plots show what is known of their games."""
    (result,), _ = run(write_suite(tmp_path, text=CAPPED), tmp_path / "out")
    assert math.isinf(result.trained[0].mean.value)
    assert (tmp_path / "out" / "small" / "speed.png").exists()


# -- games of Tetris, which are judged by lines, and may have no end ---------------------------------------------------

LINES = """
games:
  - name: open
    env: mergefall/Tetris-v0
    env_kwargs: {cols: 5, rows: 6}
    episodes: 30
    baseline: risky
    players:
      - {player: tetris/bcts, label: careful}
      - &risky {player: tetris/greedy, heuristic: {name: dellacherie, landing_height: 0, wells: 0}, label: risky}
  - name: capped
    env: mergefall/Tetris-v0
    env_kwargs: {cols: 6, rows: 12}
    max_episode_steps: 40
    episodes: 20
    baseline: risky
    players:
      - {player: tetris/greedy, heuristic: {name: bcts, holes: 0, hole_depth: 0, rows_with_holes: 0}, label: careful}
      - {player: tetris/bcts, label: immortal}
      - *risky
"""


lines = played(LINES)


def test_tables_say_under_what_rules_and_how_the_mean_was_told(lines):
    (uncapped, capped), printed, _ = lines
    first, second = printed.split("capped: ")
    for text in ("(5×6 ", "no cap, N=30, seeds 0-29", "mean lines", "IQM", "pieces", "ms/piece", "ratio to risky"):
        assert text in first
    assert not {"capped", "deaths"} & set(first.split())
    for text in ("6×12", "cap 40 pieces, N=20", "deaths", "all lines / deaths", "exact Poisson"):
        assert text in second
    assert [row.label for row in uncapped.rows] == ["careful", "risky"]
    assert uncapped.beside["careful"].ratio == uncapped.rows[0].evaluation.ratio(uncapped.rows[1].evaluation)
    assert [row.label for row in capped.rows] == ["immortal", "careful", "risky"]
    assert capped.rows[0].summary.mean.value == math.inf


def test_files_and_plots_of_games_without_an_end(lines):
    (_, capped), _, out = lines
    _, game = json.loads((out / "results.json").read_text())["games"]
    immortal, careful, risky = game["players"]
    assert game["baseline"] == "risky"
    assert (immortal["mean"]["value"], immortal["mean"]["high"], immortal["median"]) == (None, None, None)
    assert immortal["mean"]["low"] == capped.rows[0].summary.mean.low > 0
    assert careful["beside"]["ratio"]["low"] == capped.beside["careful"].ratio.low
    assert "beside" not in risky
    for name in ("open", "capped"):
        assert_plots(out / name, "lines")


def assert_plots(folder, headline):
    """Something is drawn in each."""
    assert {path.stem for path in folder.glob("*.png")} == {headline, "speed"}
    assert all(image.imread(path).std() > 0.02 for path in folder.glob("*.png"))


# -- suites -----------------------------------------------------------------------------------------------------------


def test_defaults_of_a_suite(tmp_path):
    suite = load_suite(write_suite(tmp_path, "capped\n", 'capped # "quoted"\n'))
    assert suite.name == "pair"
    small, capped = suite.contests
    assert [(e.label, e.file_name, e.episodes) for e in small.players] == [
        ("random", "random", 12),
        ("greedy (reward)", "greedy_reward", 8),
    ]
    assert (capped.seed, capped.max_episode_steps, capped.players[0].options) == (0, 4, {})


@pytest.mark.parametrize("name", suite_names())
def test_the_suites_that_come_with_the_package_are_sound(name):
    suite = load_suite(name)
    assert suite.description
    assert sum(entry.episodes for game in suite.contests for entry in game.players) > 0


# -- contests at several rates of the adversary ----------------------------------------------------------------------

SERIES = """
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

AGENT = """
      - train: {algorithm: ntuple, timesteps: 2000, interval: 1000, hyperparameters: {patterns: "0123 01", threads: 1}}
        label: agent
"""


series = played(SERIES)


def test_one_table_shows_every_player_at_every_rate(series):
    results, printed, _ = series
    names = ["small-rate-0", "small-rate-0.5", "small-rate-1", "tetris"]
    assert [(one.name, one.series) for one in results] == list(zip(names, ["small"] * 3 + [""], strict=True))
    table = series_table(results[:3])
    assert (table.title, list(table.columns)) == ("small", ["player", "N", "rate 0", "rate 0.5", "rate 1"])
    assert printed.count("chance [b]") == 1
    assert table.columns["player"] == ["greedy", "chance [b]"]
    for result, rate in zip(results, ("0", "0.5", "1"), strict=False):
        means = {row.label: row.summary.mean for row in result.rows}
        assert table.columns[f"rate {rate}"] == [means["greedy"], means["chance [b]"]]
        assert all(short(mean.value) in printed for mean in means.values())
    for text in (
        *("small: ", "(3×3 ", "adversary 2048/minimax depth=1 at rate [0, 0.5, 1]", "N=6-10, seeds 0-9"),
        *("adversary tetris/bcts at rate 1.0", "ms/piece include the adversary's time"),
    ):
        assert text in printed


def test_each_rate_holds_the_games_of_an_evaluation(series):
    results, _, out = series
    given = {"env_kwargs": {"rows": 3, "cols": 3}, "workers": 1, "progress": False}
    for result in results[:3]:
        (played,) = [row.evaluation for row in result.rows if row.label == "greedy"]
        alone = evaluate("2048/greedy", "mergefall/Game2048-v0", 6, adversary=result.adversary, **given)
        assert played.results.tolist() == alone.results.tolist()
        assert read_records(out / result.name / "greedy.jsonl") == (played.header, played.episodes)
    games = json.loads((out / "results.json").read_text())["games"]
    assert [game["adversary"]["rate"] for game in games] == [0, 0.5, 1, 1]


def test_agents_of_several_training_seeds_share_a_line(tmp_path):
    two = AGENT.replace("timesteps", "seeds: 2, timesteps").removeprefix("\n")
    path = write_suite(tmp_path, "      - {player: 2048/greedy, episodes: 6}\n", two, SERIES)
    results, printed = run(path, tmp_path / "out")
    table = series_table(results[:3])
    place = table.columns["player"].index("agent")
    for result, rate in zip(results, ("0", "0.5", "1"), strict=False):
        mean = table.columns[f"rate {rate}"][place]
        scores = [row.evaluation.results.mean() for row in result.rows if row.group]
        assert mean.value == pytest.approx(np.mean(scores))
        assert mean.low < min(scores) < max(scores) < mean.high
    configs = [path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("config.json")]
    assert sorted(configs) == [f"small/runs/agent_seed_{seed}/config.json" for seed in (0, 1)]  # once for all rates
    assert "2×10" in printed
    assert "Student's over training seeds" in printed


@pytest.mark.parametrize(
    ("text", "old", "new", "complaint"),
    [
        (SUITE, "seed: 5", "sead: 5", "game 1: it has no 'sead'; it has name, env"),
        (SUITE, "seed: 5", "seed: five", "game 1: seed is 'five'; expected int"),
        (
            SUITE,
            "seed: 5",
            "baseline: greedy",
            "baseline is 'greedy'; expected one of 'random', 'greedy (r",
        ),
        (SUITE, "episodes: 12", "", "missing 1 required keyword-only argument: 'episodes'"),
        (SUITE, "2048/greedy,", "2048/greedy, cols: 9,", "game small, greedy (reward): cols"),
        (
            SUITE,
            "2048/greedy,",
            "2048/greedy, heuristic: tile-order,",
            "board of 2×3; tile-order is defined on 4×4 only",
        ),
        (SUITE, "2048/greedy,", "tetris/bcts,", "game small, greedy (reward): env_id is 'mergefall/Game2048-v0'"),
        (SUITE, "players: [{player: 2048/random}]", "players: []", "at least one"),
        (SUITE, '"greedy (reward)"', "random", "all different"),
        (SUITE, "name: small", "name: ../small", "names a folder"),
        (SUITE, "player: 2048/random", "player: 2048/random\n        train: {algorithm: distill}", "with 'train'"),
        (SUITE, "player: 2048/random", "train: {algorithm: distill, seeds: 0}", "player 1: train: seeds is 0"),
        (SUITE, "games:", "games: [", "while parsing"),
        (SUITE, "games:", "games: none\nmore:", "it has no 'more'"),
        (SERIES, "rate: [0, 0.5, 1]", "rate: []", "game small: adversary: rates: expected at least one"),
        (SERIES, "rate: [0, 0.5, 1]", "rate: [0, 1, 1.0]", "all different"),
        (SERIES, "rate: [0, 0.5, 1]", "rate: [0, 2]", "rate is 2"),
        (SERIES, "{player: 2048/minimax, depth: 1}", "7", "player is 7"),
        (
            SERIES,
            "adversary: {player: tetris/bcts}",
            "adversary: tetris/bcts",
            "adversary is 'tetris/bcts'; expected",
        ),
        (SERIES, "name: tetris", "name: small-rate-1", "games, presets and rates"),
    ],
)
def test_a_faulty_suite_says_where_and_what(tmp_path, text, old, new, complaint):
    with pytest.raises(ValueError, match=r"suite .*pair\.yaml") as error:
        load_suite(write_suite(tmp_path, old, new, text))
    assert complaint in str(error.value)
