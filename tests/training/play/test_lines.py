"""Games of Tetris, which are judged by lines and may be capped."""

import io
import json
import math
from contextlib import redirect_stdout
from dataclasses import replace

import pytest
from mergefall_training.compare.comparison import compare
from mergefall_training.play.evaluation import Evaluation, evaluate
from mergefall_training.play.records import TetrisEpisode

ENV, SMALL = "mergefall/Tetris-v0", {"cols": 5, "rows": 6}


def play(episodes=8, **options):
    return evaluate("tetris/bcts", ENV, episodes, env_kwargs=SMALL, workers=1, progress=False, **options)


def games(*lines_and_ends):
    """An evaluation of games that ended after so many lines by themselves (True) or by a cap."""
    header = replace(play(1).header, max_episode_steps=9)
    episodes = [TetrisEpisode(s, 0, 9, ended, 0.018, n, 4) for s, (n, ended) in enumerate(lines_and_ends)]
    return Evaluation(header, episodes)


# -- episodes and summaries -------------------------------------------------------------------------------------------


def test_the_mean_of_capped_games_is_all_lines_over_deaths():
    summary = games(*[(90, True)] * 10, *[(550, False)] * 2).summary()
    assert (summary.deaths, summary.capped, summary.mean.value) == (10, 2, 200)
    # 10 deaths came of 4.795 to 18.390 expected ones (published limits).
    assert (summary.mean.low, summary.mean.high) == pytest.approx((2000 / 18.390, 2000 / 4.795), rel=1e-4)
    assert summary.median is summary.iqm is None


def test_a_ratio_fits_both_evaluations():
    short, long = games((1, True), (3, True), (2, True)), games((60, True), (40, True), (50, True))
    assert long.ratio(short).value == pytest.approx(25)
    assert long.ratio(short).high <= 60
    capped = games((60, True), (40, False), (50, True))
    assert capped.ratio(short).value == pytest.approx(75 / 2)
    assert capped.ratio(short).high > 100  # two deaths say little


# -- comparison -------------------------------------------------------------------------------------------------------

SUITE = """
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


def run(folder, out=None):
    path = folder / "lines.yaml"
    path.write_text(SUITE)
    with redirect_stdout(io.StringIO()) as printed:
        results = compare(path, out, workers=1, progress=False)
    return results, printed.getvalue()


def test_tables_say_under_what_rules_and_how_the_mean_was_told(tmp_path):
    (uncapped, capped), printed = run(tmp_path)
    first, second = printed.split("capped: ")
    for text in ("(5×6 ", "no cap, N=30, seeds 0-29", "mean lines", "IQM"):
        assert text in first
    for text in ("pieces", "ms/piece", "ratio to risky"):
        assert text in first
    assert not {"capped", "deaths"} & set(first.split())
    for text in ("6×12", "cap 40 pieces, N=20", "deaths", "all lines / deaths", "exact Poisson"):
        assert text in second
    assert [row.label for row in uncapped.rows] == ["careful", "risky"]
    assert uncapped.beside["careful"].ratio == uncapped.rows[0].evaluation.ratio(uncapped.rows[1].evaluation)
    assert [row.label for row in capped.rows] == ["immortal", "careful", "risky"]
    assert capped.rows[0].summary.mean.value == math.inf


def test_files_and_plots_of_games_without_an_end(tmp_path, drawn):
    from matplotlib import image

    out = tmp_path / "out"
    (_, capped), _ = run(tmp_path, out)
    _, game = json.loads((out / "results.json").read_text())["games"]
    immortal, careful, risky = game["players"]
    assert game["baseline"] == "risky"
    assert (immortal["mean"]["value"], immortal["mean"]["high"], immortal["median"]) == (None, None, None)
    assert immortal["mean"]["low"] == capped.rows[0].summary.mean.low > 0
    assert careful["beside"]["ratio"]["low"] == capped.beside["careful"].ratio.low
    assert "beside" not in risky
    for name in ("open", "capped"):
        assert sorted(path.stem for path in (out / name).glob("*.png")) == ["lines", "speed"]
        for path in (out / name).glob("*.png"):
            assert image.imread(path).std() > 0.02  # something is drawn
