"""One player beside another on the same seeds: paired differences, chances, files, and how often intervals hold."""

import re

import numpy as np
import pytest
from mergefall_training.compare.versus import compare_files, verdict
from mergefall_training.play.evaluation import evaluate

ENV, SMALL = "mergefall/Game2048-v0", {"rows": 3, "cols": 3}


def play(player, count=40, seed=0, env=ENV, kwargs=SMALL, **how):
    return evaluate(player, env, count, seed, kwargs, workers=1, progress=False, **how)


def test_players_are_compared_on_the_seeds_of_both():
    greedy, random = play("2048/greedy", 30), play("2048/random", 30, seed=10)
    found = greedy.versus(random)
    ours = {e.seed: e.score for e in greedy.episodes}
    theirs = {e.seed: e.score for e in random.episodes}
    gaps = [ours[seed] - theirs[seed] for seed in range(10, 30)]
    assert found.games == 20
    assert found.difference.value == pytest.approx(np.mean(gaps))
    assert found.higher.value == pytest.approx(np.mean([(gap > 0) + (gap == 0) / 2 for gap in gaps]))
    wider = greedy.versus(random, confidence=0.999)
    assert wider.difference.low < found.difference.low
    assert wider.confidence == 0.999


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"seed": 3}, "2048/greedy and 2048/random have no seed in common"),
        ({"kwargs": {"rows": 2, "cols": 3}}, r"env_kwargs is .*'rows': 3.* for 2048/greedy, .*'rows': 2"),
    ],
)
def test_what_cannot_be_compared_is_refused(other, message):
    with pytest.raises(ValueError, match=message):
        play("2048/greedy", 3).versus(play("2048/random", 3, **other))


def test_capped_games_of_tetris_have_no_difference():
    tetris = {"env": "mergefall/Tetris-v0", "kwargs": {"cols": 6, "rows": 8}, "max_episode_steps": 60}
    found = play("tetris/bcts", 10, **tetris).versus(play("tetris/random", 10, **tetris))
    assert found.difference is None
    assert found.higher.value == 1
    assert found.higher.low < 0.8  # ten games prove little
    assert found.ratio.low > 1


def test_files_are_compared_with_the_first(tmp_path, command):
    names = ["2048/random", "2048/greedy", "2048/expectimax"]
    paths = [str(tmp_path / f"{name.partition('/')[2]}.jsonl") for name in names]
    for name, path in zip(names, paths, strict=True):
        play(name, out=path)
    found = compare_files(paths)
    assert [versus.confidence for versus in found] == [0.975, 0.975]
    assert all(versus.difference.low > 0 for versus in found)
    out, _, _ = command("compare", *paths)
    for words in (*names, "more than", "chance of more", "mean score", "Bonferroni"):
        assert words in out
    assert "mergefall/Game2048-v0 (3×3 reward=score illegal_limit=100)" in out
    assert "2048/expectimax is better than 2048/random.\n" in out
    assert re.search(r"-[\d.k]+ to -[\d.k]+", command("compare", paths[1], paths[0])[0])  # of negative numbers


def test_the_verdict_follows_the_intervals():
    greedy, random = play("2048/greedy", 40), play("2048/random", 40)
    assert verdict("a", "b", greedy.versus(random)) == "a is better than b."
    assert verdict("b", "a", random.versus(greedy)) == "b is worse than a."
    assert verdict("a", "c", greedy.versus(greedy)) == "These games do not tell whether a is better than c."
