"""Leaderboards: what counts, what is left out, and how it is said."""

import json
import math
import shutil

import pytest
import yaml
from mergefall_training import evaluate
from mergefall_training.cli import main
from mergefall_training.compare.board import ABOUT, board, enter
from mergefall_training.play import actions as actions_module
from mergefall_training.play import verify as verify_module
from mergefall_training.play.records import checksum, header_from

pytest.importorskip("matplotlib")
ENV, TETRIS, SZ = (f"mergefall/{name}-v0" for name in ("Game2048", "Tetris", "SZTetris"))


def record(path, player="2048/greedy", env_id=ENV, count=4, seed=0, cap=None, **env_kwargs):
    return evaluate(player, env_id, count, seed, env_kwargs, 1, path, max_episode_steps=cap, progress=False)


def entered(tmp_path, name="mine"):
    """The leaderboard's folder, with the files of `tmp_path / name` as an entry."""
    enter([tmp_path / name], tmp_path / "board", name, command=f"play {name}")
    return tmp_path / "board"


def altered(path, line, **changes):
    """Change a record as a forger would who computes its checksum anew."""
    lines = path.read_text().splitlines()
    content = json.loads(lines[line]) | changes
    del content["checksum"]
    content["checksum"] = checksum(header_from(json.loads(lines[0])), content)
    lines[line] = json.dumps(content)
    path.write_text("".join(f"{text}\n" for text in lines))


def test_there_is_a_table_for_each_rule_set(tmp_path):
    """Rewards and ids are no rules: Tetris with S and Z alone is one game under two ids."""
    mine = tmp_path / "mine"
    by_score = record(mine / "a.jsonl", rows=2, cols=2)
    record(mine / "b.jsonl", "2048/random", rows=2, cols=2, reward="log2")
    record(mine / "c.jsonl", rows=2, cols=3)
    record(mine / "d.jsonl", "tetris/random", SZ, rows=6)
    record(mine / "e.jsonl", "tetris/bcts", TETRIS, rows=6, pieces="sz", cap=30)
    sections = board(entered(tmp_path), progress=False)
    found = {section.result.name: {row.contestant.label for row in section.result.rows} for section in sections}
    assert found == {
        "2048 2×2": {"2048/greedy", "2048/random"},
        "2048 2×3": {"2048/greedy"},
        "Tetris 10×6, pieces sz": {"tetris/random", "tetris/bcts"},
    }
    rows = {row.contestant.label: row for section in sections[:1] for row in section.result.rows}
    assert rows["2048/greedy"].summary.mean == by_score.mean()
    assert "cap 30 pieces" in next(s for s in sections if "Tetris" in s.result.name).result.conditions


def test_labels_command_and_versions_are_in_the_page(tmp_path):
    suite = tmp_path / "two.yaml"
    suite.write_text(
        "games:\n  - name: small\n    env: mergefall/Game2048-v0\n    env_kwargs: {rows: 2, cols: 2}\n    episodes: 3\n"
        "    players:\n      - {player: 2048/random, label: chance <b>}\n      - {player: 2048/greedy, label: greed}\n"
    )
    main(["compare", str(suite), "--out", str(tmp_path / "out"), "--workers", "1"])
    folder = tmp_path / "board"
    words = ["--name", "two", "--command", "mergefall compare two.yaml", "--by", "A. N. Other"]
    main(["board", str(folder), "--enter", str(tmp_path / "out"), *words, "--link", "https://example.org/a"])
    page = (folder / "index.html").read_text()
    for text in ("chance &lt;b&gt;", "mergefall compare two.yaml", "A. N. Other", "https://example.org/a", "numpy 2"):
        assert text in page, text
    assert "chance <b>" not in page


def test_a_false_record_is_not_entered(tmp_path):
    file = tmp_path / "mine" / "a.jsonl"
    record(file, rows=2, cols=2)
    altered(file, 2, score=10_000)
    with pytest.raises(ValueError, match=r"a\.jsonl, line 3, does not hold: score is 10000, played again"):
        entered(tmp_path)
    assert not (tmp_path / "board").exists()


def test_a_record_that_was_changed_later_and_all_behind_it_do_not_count(tmp_path):
    played = record(tmp_path / "mine" / "a.jsonl", count=6, rows=2, cols=2)
    record(tmp_path / "mine" / "b.jsonl", "2048/random", count=6, rows=2, cols=2)
    folder = entered(tmp_path)
    altered(folder / "mine" / "a.jsonl", 4, score=10_000)  # seed 3
    (section,) = board(folder, progress=False)
    rows = {row.contestant.label: row for row in section.result.rows}
    kept = [episode.score for episode in rows["2048/greedy"].evaluation.episodes]
    assert kept == [episode.score for episode in played.episodes[:3]]
    assert rows["2048/random"].summary.episodes == 6
    assert any("1 of 6 records do not hold" in problem for problem in section.problems)
    assert any("2 games lie behind a gap in the seeds, the first at 3" in problem for problem in section.problems)
    assert "1 of 6 records do not hold" in (folder / "index.html").read_text()


def test_seeds_cannot_be_chosen(tmp_path):
    record(tmp_path / "mine" / "a.jsonl", seed=7, rows=2, cols=2)
    with pytest.raises(ValueError, match=r"no record that counts; 2048 2×2: 2048/greedy: 4 games lie behind a gap"):
        board(entered(tmp_path), progress=False)
    record(tmp_path / "yours" / "a.jsonl", rows=2, cols=3)
    board(entered(tmp_path, "yours"), progress=False)
    assert "2048 2×2: 2048/greedy: 4 games lie behind a gap" in (tmp_path / "board" / "index.html").read_text()


def test_players_of_other_caps_are_not_called_strangers_to_the_seeds(tmp_path):
    """Under two ids of one game, too."""
    record(tmp_path / "mine" / "a.jsonl", "tetris/bcts", SZ, rows=6)
    record(tmp_path / "mine" / "b.jsonl", "tetris/random", TETRIS, rows=6, pieces="sz")
    record(tmp_path / "mine" / "c.jsonl", "tetris/greedy", TETRIS, rows=6, pieces="sz", cap=1000)
    board(entered(tmp_path), progress=False)
    page = (tmp_path / "board" / "index.html").read_text()
    assert "no seed in common" not in page
    assert page.count("not compared: max_episode_steps is ") == 1
    assert page.count(" of 4 seeds") == 1


def test_games_against_an_adversary_do_not_count(tmp_path):
    record(tmp_path / "mine" / "a.jsonl", rows=2, cols=2)
    one = tmp_path / "mine" / "b.jsonl"
    evaluate(
        "2048/random", ENV, 2, 0, {"rows": 2, "cols": 2}, 1, one, adversary={"player": "2048/greedy"}, progress=False
    )
    (section,) = board(entered(tmp_path), progress=False)
    assert [row.contestant.label for row in section.result.rows] == ["2048/greedy"]
    assert section.problems == ["2048/random: games against an adversary do not count"]


def test_a_capped_mean_is_called_a_lower_bound(tmp_path):
    record(tmp_path / "mine" / "a.jsonl", cap=5, rows=2, cols=2)
    record(tmp_path / "mine" / "b.jsonl", "tetris/bcts", TETRIS, cap=20, count=2, rows=20)
    of_2048, of_tetris = sorted(board(entered(tmp_path), progress=False), key=lambda section: section.result.name)
    assert of_2048.problems == ["2048/greedy: a cap ended 4 games, so its mean is a lower bound"]
    mean = of_tetris.result.rows[0].summary.mean  # lines are nearly exponential: two capped games give a lower end
    assert of_tetris.problems == []
    assert math.isinf(mean.high)


def test_players_of_two_entries_keep_apart(tmp_path):
    record(tmp_path / "mine" / "a.jsonl", rows=2, cols=2)
    shutil.copytree(tmp_path / "mine", tmp_path / "yours")
    entered(tmp_path)
    (section,) = board(entered(tmp_path, "yours"), progress=False)
    assert [row.contestant.label for row in section.result.rows] == ["2048/greedy", "2048/greedy (yours)"]


def test_the_torn_line_of_a_killed_run_is_left_behind(tmp_path):
    file = tmp_path / "mine" / "a.jsonl"
    record(file, rows=2, cols=2)
    whole = file.read_bytes()
    file.write_bytes(whole + b'{"seed": 4, "sco')
    assert (entered(tmp_path) / "mine" / "a.jsonl").read_bytes() == whole


def test_entries_that_make_no_sense_are_named_beside_the_others(tmp_path):
    record(tmp_path / "mine" / "a.jsonl", rows=2, cols=2)
    folder = entered(tmp_path)
    (folder / "empty").mkdir()
    shutil.copytree(folder / "mine", folder / "damaged")
    (folder / "damaged" / "a.jsonl").write_text("no record\n")
    (section,) = board(folder, progress=False)
    assert len(section.result.rows) == 1
    page = (folder / "index.html").read_text()
    assert f"has no {ABOUT}" in page
    assert "damaged/a.jsonl, line 1" in page


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"command": " "}, "command is empty"),
        ({"command": None}, "command is None; expected text"),
        ({"versions": ["numpy"]}, r"versions is \['numpy'\]; expected names with a text each"),
        ({"link": "javascript:alert(1)"}, "expected an address that begins with https://"),
        ({"rank": 1}, "expected command, versions, by, link, labels"),
    ],
)
def test_a_wrong_entry_is_said(tmp_path, change, message):
    record(tmp_path / "mine" / "a.jsonl", rows=2, cols=2)
    folder = entered(tmp_path)
    path = folder / "mine" / ABOUT
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | change))
    with pytest.raises(ValueError, match=message):
        board(folder, progress=False)


def test_wrong_arguments_are_said(tmp_path):
    record(tmp_path / "mine" / "a.jsonl", rows=2, cols=2)
    entered(tmp_path)
    with pytest.raises(ValueError, match="there is an entry"):
        entered(tmp_path)
    with pytest.raises(ValueError, match=r"name is '\.\./x'"):
        enter([tmp_path / "mine"], tmp_path / "board", "../x", command="x")
    with pytest.raises(ValueError, match="there is no folder"):
        board(tmp_path / "nothing")


def test_a_player_of_whom_no_game_ended_stands_by_its_lower_bound(tmp_path):
    """Else a random player with a cap of three pieces would be the best one."""
    record(tmp_path / "mine" / "a.jsonl", "tetris/bcts", TETRIS, count=6, rows=8)
    record(tmp_path / "mine" / "b.jsonl", "tetris/random", TETRIS, count=6, cap=3, rows=8)
    (section,) = board(entered(tmp_path), progress=False)
    assert [row.contestant.label for row in section.result.rows] == ["tetris/bcts", "tetris/random"]
    assert math.isinf(section.result.rows[1].summary.mean.value)


def test_what_lies_behind_the_recorded_actions_does_not_count(tmp_path, monkeypatch):
    for module in (actions_module, verify_module):
        monkeypatch.setattr(module, "RECORDED", 20)
    played = record(tmp_path / "mine" / "a.jsonl", count=3)
    folder = entered(tmp_path)
    (section,) = board(folder, progress=False)
    proven = section.result.rows[0].evaluation.episodes
    assert [(episode.length, episode.terminated) for episode in proven] == [(20, False)] * 3
    assert all(one.score < whole.score for one, whole in zip(proven, played.episodes, strict=True))
    for line in (1, 2, 3):
        altered(folder / "mine" / "a.jsonl", line, score=2**50, length=2**50)
    (again,) = board(folder, progress=False)
    assert [(e.score, e.length) for e in again.result.rows[0].evaluation.episodes] == [(e.score, 20) for e in proven]
    assert "3 games count up to action" in " ".join(again.problems)


def test_a_number_that_no_game_has_is_named(tmp_path):
    record(tmp_path / "mine" / "a.jsonl", count=2, rows=2, cols=2)
    record(tmp_path / "yours" / "a.jsonl", count=2, rows=2, cols=2)
    entered(tmp_path)
    folder = entered(tmp_path, "yours")
    altered(folder / "mine" / "a.jsonl", 1, score=10**30)
    board(folder, progress=False)
    assert "line 2: score is 1000000000000000000000000000000; expected a number up to" in (
        folder / "index.html"
    ).read_text(encoding="utf-8")


def test_players_of_one_name_keep_apart_within_an_entry(tmp_path):
    for name in "abc":
        record(tmp_path / "mine" / f"{name}.jsonl", count=2, rows=2, cols=2)
    (section,) = board(entered(tmp_path), progress=False)
    labels = [row.contestant.label for row in section.result.rows]
    assert labels == ["2048/greedy", "2048/greedy (mine)", "2048/greedy (mine, 2)"]
    assert section.verdicts.keys() == section.sources.keys() == set(labels)
