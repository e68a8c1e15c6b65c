"""Leagues: every player against every other one, from either side, and the ratings that follow."""

import io
import json
from contextlib import redirect_stdout
from itertools import permutations

import numpy as np
import pytest
from mergefall_training.compare.comparison import compare
from mergefall_training.compare.suite import load_suite
from mergefall_training.play.evaluation import Evaluation
from mergefall_training.play.statistics import elo_ratings

from ..play.test_verify import problems

LEAGUE = """
description: Three players on a small board.
games:
  - name: small
    env: mergefall/TetrisVersus-v0
    env_kwargs: {cols: 5, rows: 16}
    max_episode_steps: 300
    seed: 3
    episodes: 2
    league: true
    baseline: bcts
    players:
      - {player: tetris/keys, of: tetris/random, placements: drop, label: random}
      - {player: tetris/keys, of: tetris/bcts, placements: drop, label: bcts}
      - {player: tetris/keys, of: tetris/dellacherie, placements: drop, label: dellacherie}
"""


@pytest.fixture
def suite(tmp_path):
    (path := tmp_path / "small.yaml").write_text(LEAGUE)
    return path


def played(suite, out):
    with redirect_stdout(io.StringIO()) as printed:
        (result,) = compare(suite, out, 1, progress=False)
    return result, printed.getvalue()


def timeless(result):
    content = result.content()
    for player in content["players"]:
        del player["ms_per_move"]
    return content


def test_every_player_meets_every_other_one_from_either_side(suite, tmp_path):
    result, printed = played(suite, tmp_path / "out")
    labels = {"random", "bcts", "dellacherie"}
    assert set(result.matches) == set(permutations(labels, 2))
    for (one, other), evaluation in result.matches.items():
        assert evaluation.header.env_kwargs["opponent"]["of"] == f"tetris/{other}"
        assert [episode.seed for episode in evaluation.episodes] == [3, 4]
        for results in (result.results(one, other)[:2], 1 - result.results(other, one)[2:]):
            np.testing.assert_array_equal(results, evaluation.results)
        file = tmp_path / "out" / "small" / f"{one}_vs_{other}.jsonl"
        assert Evaluation.read(file).episodes == evaluation.episodes
        assert problems(file) == ["", ""]
    order = [row.label for row in result.rows]
    points = [[result.results(one, other).sum() for other in order] for one in order]
    assert list(result.ratings.values()) == elo_ratings(points, order.index("bcts"))
    assert result.ratings["bcts"].value == 0 > result.ratings["random"].value
    assert order[-1] == "random"
    assert [row.summary.episodes for row in result.rows] == [4, 4, 4]
    for text in (
        "cap 300 keys, N=4 for each pair",
        "seeds 3-4",
        "bcts is rated 0",
        "attack/piece",
        "ms/key",
        "of its matches against",
    ):
        assert text in printed
    assert "opponent=" not in printed
    assert "Elo" in printed
    assert "Elo" in (tmp_path / "out" / "small" / "table.md").read_text()
    (content,) = json.loads((tmp_path / "out" / "results.json").read_text())["games"]
    assert {player["label"]: player["rating"]["value"] for player in content["players"]}["bcts"] == 0
    assert {(pair["agent"], pair["opponent"]) for pair in content["matches"]} == set(result.matches)


def test_a_stopped_league_goes_on_to_the_same_result(suite, tmp_path):
    whole, _ = played(suite, tmp_path / "out")
    folder = tmp_path / "out" / "small"
    lines = (folder / "bcts_vs_random.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "bcts_vs_random.jsonl").write_bytes(b"".join(lines[:2]) + lines[2][:50])  # torn by a kill
    (folder / "random_vs_bcts.jsonl").unlink()
    again, _ = played(suite, tmp_path / "out")
    assert timeless(again) == timeless(whole)


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        (
            "mergefall/TetrisVersus-v0",
            "mergefall/TetrisKeys-v0",
            "league: the env is mergefall/TetrisKeys-v0; expected",
        ),
        ("league: true", "league: 1", "league is 1; expected bool"),
        ("rows: 16}", "rows: 16, opponent: tetris/keys}", "league: it has an opponent"),
        ("label: random", "label: random, episodes: 3", "league: 'random' has its own 'train' or 'episodes'"),
        ("of: tetris/random", "of: tetris/randon", "tetris/randon"),
    ],
)
def test_a_faulty_league_is_named(suite, old, new, complaint):
    suite.write_text(LEAGUE.replace(old, new))
    with pytest.raises(ValueError, match=r"suite .*small") as error:
        load_suite(suite)
    assert complaint in str(error.value)
