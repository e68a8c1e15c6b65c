"""Recorded games are played again: whatever is altered in a record or a file is found."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mergefall_training.play import records as actions_module
from mergefall_training.play import verify as verify_module
from mergefall_training.play.evaluation import evaluate
from mergefall_training.play.records import RECORDED, actions_of, read_records, text_of
from mergefall_training.play.verify import verify

from ..altered import rewritten


def by_keys(observation):
    """Keys that depend on all that is seen, and drop a piece now and then."""
    return int(sum(value.sum() * k for k, value in enumerate(observation.values(), start=1))) % 8


GAMES = {
    "2048": ("2048/greedy", "mergefall/Game2048-v0", {"rows": 3, "cols": 3}, None),
    "2048-adversary": ("2048/greedy", "mergefall/Game2048-v0", {"rows": 3, "cols": 3}, None, "foe"),
    "2048-goal": ("2048/greedy", "mergefall/Game2048-v0", {"goal": 64}, None),
    "2048-capped": ("2048/random", "mergefall/Game2048-v0", {}, 60),
    "tetris": ("tetris/bcts", "mergefall/Tetris-v0", {"cols": 5, "rows": 6}, None),
    "tetris-slide": ("tetris/random", "mergefall/Tetris-v0", {"placements": "slide"}, None),
    "keys": (by_keys, "mergefall/TetrisKeys-v0", {"rows": 8, "garbage": {"rows": 0.4}}, None),
    "tetris-capped": ("tetris/dellacherie", "mergefall/SZTetris-v0", {}, 40),
}


FOE = {"player": {"player": "2048/minimax", "depth": 1}, "rate": 0.5}


def record(folder, name, count=5):
    player, env, kwargs, cap, *foe = GAMES[name]
    path = folder / f"{name}.jsonl"
    how = {"max_episode_steps": cap, "adversary": FOE if foe else None}
    evaluate(player, env, count, 3, kwargs, 1, path, progress=False, **how)
    return path


def problems(path):
    return [verdict.problem for verdict in verify(path, progress=False)]


def change(path, line, **changed):
    rewritten(path, path, game=changed, line=line)


@pytest.mark.parametrize("name", GAMES)
def test_games_as_they_were_played_hold(tmp_path, name):
    path = record(tmp_path, name)
    assert problems(path) == [""] * 5


@pytest.mark.parametrize("name", ["2048", "tetris", "keys"])
def test_every_altered_field_is_found(tmp_path, name):
    path = record(tmp_path, name)
    lines = path.read_text().splitlines()
    content = json.loads(lines[3])
    assert content.keys() >= {"seed", "score", "length", "terminated", "seconds", "actions", "checksum"}
    for field, value in content.items():
        other = not value if isinstance(value, bool) else f"{value}A" if isinstance(value, str) else value + 1
        path.write_text("\n".join([*lines[:3], json.dumps(content | {field: other}), *lines[4:], ""]))
        assert [not problem for problem in problems(path)] == [True, True, False, True, True], field


@pytest.mark.parametrize("name", ["2048", "tetris", "keys"])
def test_a_new_checksum_does_not_help(tmp_path, name):
    """All that the game decides is found by playing it again; only its time is taken as told."""
    kept = record(tmp_path, name)
    content = json.loads(kept.read_text().splitlines()[2])
    steps = {"score": [4], "length": [1, -1], "seed": [100], "lines": [1], "attack": [1]}
    altered = [{field: content[field] + by} for field in steps.keys() & content for by in steps[field]]
    for changed in (*altered, {"terminated": False}, {"actions": "!"}, {"actions": ""}, {"seconds": -1.0}):
        path = tmp_path / "altered.jsonl"
        rewritten(kept, path, game=changed, line=2)
        assert problems(path)[1], changed


def test_another_action_is_found(tmp_path):
    """Unless it leads to the same result by chance: then there is such a game."""
    path = record(tmp_path, "2048")
    episode = read_records(path)[1][0]
    played = actions_of(episode.actions, episode.length)
    for k in (0, 12, 24):
        change(path, 1, actions=text_of((played + (np.arange(len(played)) == k)) % 4))
        assert problems(path)[0]
    change(path, 1, actions=text_of(np.full(len(played), 9)))
    assert problems(path)[0] == "it holds the action 9; the highest is 3"


def test_of_long_games_the_first_actions_are_played_again(tmp_path, monkeypatch):
    for module in (actions_module, verify_module):
        monkeypatch.setattr(module, "RECORDED", 20)
    path = record(tmp_path, "2048")
    assert [(verdict.problem, verdict.proven.length) for verdict in verify(path, progress=False)] == [("", 20)] * 5
    whole = read_records(path)[1][0]
    assert len(actions_of(whole.actions, whole.length)) == 20
    change(path, 2, rest="0" * 64)  # a digest of the others, as version 0.1.0 wrote
    assert problems(path) == [""] * 5
    assert len(read_records(path)[1]) == 5
    change(path, 1, length=20)
    assert "goes on" in problems(path)[0]


def test_text_that_is_too_long_is_not_unpacked():
    with pytest.raises(ValueError, match="the actions are 11 bytes; expected one or two for each of 5"):
        actions_of(text_of(np.zeros(RECORDED, np.uint8)), 5)


@given(st.lists(st.integers(0, 400)))
def test_actions_are_read_back(actions):
    assert actions_of(text_of(np.array(actions, np.uint16)), len(actions)).tolist() == actions


def test_a_file_that_is_none_is_refused(tmp_path):
    (path := tmp_path / "empty.jsonl").touch()
    with pytest.raises(ValueError, match=r"line 1: format and version are .*expected .'mergefall episodes', 1"):
        verify(path, progress=False)


def test_the_command_tells_which_records_hold(tmp_path, command):
    good, bad = record(tmp_path, "2048"), record(tmp_path, "tetris")
    assert command("verify", good)[::2] == (f"{good}: 5 of 5 records hold\n", 0)
    change(bad, 2, score=7)
    out, _, status = command("verify", good, bad)
    assert status == 1
    assert f"{bad}: 4 of 5 records hold\n{bad}, line 3, seed 4: score is 7, played again" in out
    assert command("verify", tmp_path / "none.jsonl")[2] == 2


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"env_kwargs": None}, "env_kwargs is None; expected dict"),
        ({"env_kwargs": [1]}, r"env_kwargs is \[1\]; expected dict"),
        ({"env_kwargs": {"max_episode_steps": 3}}, "env_kwargs holds max_episode_steps"),
        ({"adversary": "x"}, "adversary is 'x'; expected dict"),
        ({"adversary": {"player": "2048/minimax"}}, "expected an object with player and rate"),
        ({"player": 5}, "player is 5; expected str"),
        ({"options": 3}, "options is 3; expected dict"),
        ({"max_episode_steps": "9"}, "max_episode_steps is '9'; expected int"),
        ({"env_id": "mergefall/Nope-v0"}, "Nope"),
        ({"version": 99}, "format and version are .'mergefall episodes', 99"),
        ({"env_kwargs": {"rows": 3, "columns": 3}}, "has no 'columns'; it has rows, cols"),
    ],
)
def test_a_header_of_other_types_is_refused_by_name(tmp_path, command, changed, said):
    path = record(tmp_path, "2048", 2)
    header, *lines = path.read_text().splitlines()
    path.write_text("\n".join([json.dumps(json.loads(header) | changed), *lines, ""]))
    with pytest.raises(ValueError, match=rf"2048\.jsonl, line 1: .*{said}"):
        verify(path, progress=False)
    assert "env_id" in changed or command("watch", path)[2] == 2


def test_shaping_has_no_part_in_a_game(tmp_path, monkeypatch):
    path = record(tmp_path, "2048")
    kwargs = json.loads(path.read_text().splitlines()[0])["env_kwargs"]
    rewritten(path, path, {"env_kwargs": kwargs | {"shaping": {"potential": {"player": "runs/gone"}}}})
    assert problems(path) == [""] * 5


def test_bad_lines_are_named(tmp_path):
    path = record(tmp_path, "2048", 2)
    change(path, 1, seed=-1)
    assert ["it is no record" in problem for problem in problems(path)] == [True, False]
    with path.open("a") as file:
        file.write("[" * 200_000 + "\n")
    with pytest.raises(ValueError, match=r"line 4: its lists are nested too deeply"):
        verify(path, progress=False)


def test_a_torn_last_line_is_told(tmp_path, command):
    path = record(tmp_path, "2048", 4)
    path.write_bytes(path.read_bytes()[:-20])
    assert problems(path)[:3] == ["", "", ""]
    printed, _, status = command("verify", path)
    assert status == 1
    assert "3 of 4 records hold" in printed
    assert "line 5: the line is torn" in printed


def test_what_a_file_asks_for_has_a_bound_on_time(tmp_path, monkeypatch):
    path = record(tmp_path, "2048-adversary", 1)
    path.write_text(path.read_text().replace('"depth": 1', '"depth": 40'))
    monkeypatch.setattr(
        verify_module, "checksum", lambda header, content: json.loads(path.read_text().splitlines()[1])["checksum"]
    )
    for name, value in (("MOST_SECONDS", 0.5), ("SECONDS_OF_ACTION", 0)):
        monkeypatch.setattr(verify_module, name, value)
    with pytest.raises(ValueError, match=r"to play its games again, against .*'depth': 40.* takes more than"):
        verify(path, progress=False)


@pytest.mark.parametrize("env_id", ["mergefall/TetrisKeys-v0", "mergefall/TetrisVersus-v0"])
def test_a_cap_in_pieces_ends_games_at_that_piece(tmp_path, env_id):
    """Alone in the gym loop, matches side by side; the games are those without the cap, up to the piece."""
    player, kwargs = {"player": "tetris/keys", "of": "tetris/dellacherie"}, {"cols": 6, "rows": 8}

    def played(cap, name):
        return evaluate(player, env_id, 4, 0, kwargs, 1, tmp_path / name, max_pieces=cap, progress=False)

    free, cut = played(None, "free.jsonl"), played(6, "6.jsonl")
    for whole, part in zip(free.episodes, cut.episodes, strict=True):
        assert (part.pieces, part.terminated) == ((6, False) if whole.pieces >= 6 else (whole.pieces, True))
        actions, first = (actions_of(one.actions, one.length).tolist() for one in (whole, part))
        assert first == actions[: part.length]
    summary = cut.summary()
    assert summary.capped == sum(not episode.terminated for episode in cut.episodes) > 0 == summary.stuck
    assert problems(tmp_path / "6.jsonl") == [""] * 4
    rewritten(tmp_path / "6.jsonl", tmp_path / "7.jsonl", {"max_pieces": 7})
    assert sum(map(bool, problems(tmp_path / "7.jsonl"))) == summary.capped
    with pytest.raises(ValueError, match="max_pieces is 6 there, 5 here"):
        played(5, "6.jsonl")


def test_only_tetris_has_pieces():
    with pytest.raises(
        ValueError, match="max_pieces is 6; expected none in mergefall/Game2048-v0, which has no pieces"
    ):
        evaluate("2048/random", "mergefall/Game2048-v0", 1, max_pieces=6)
