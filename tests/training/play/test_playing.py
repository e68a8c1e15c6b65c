"""Playing by hand: keys reach every placement, moves are taken back, finished games are records."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mergefall.tetris.keys import KEYS
from mergefall.text import action_names
from mergefall_training.cli import main
from mergefall_training.compare.report import report
from mergefall_training.play.evaluation import Evaluation, evaluate
from mergefall_training.play.records import actions_of
from mergefall_training.play.verify import verify
from mergefall_training.play.watching import Session, play

from ..terminals import Clock, Script

ENV, BY_KEYS = "mergefall/Game2048-v0", "mergefall/TetrisKeys-v0"
SMALL = {"cols": 6, "rows": 8, "gravity": 0}


def pressing(monkeypatch, keys, clock=None):
    script = Script([*keys, "q"], clock)
    monkeypatch.setattr("mergefall_training.play.watching.Terminal", lambda: script)
    return script


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr("mergefall_training.play.watching.time.monotonic", clock.monotonic)
    return clock


_SESSIONS = {}


def session_of(env_id, kwargs):
    if env_id not in _SESSIONS:
        _SESSIONS[env_id] = Session(env_id, kwargs, 0, None if env_id == BY_KEYS else "2048/random")
    return _SESSIONS[env_id]


PRESSED = st.lists(st.sampled_from(["up", "right", "down", "left", "space", "e", "h", "w", "x", "", "u"]), max_size=40)


@settings(max_examples=25)
@given(PRESSED, st.sampled_from([(ENV, {"rows": 3, "cols": 3}), (BY_KEYS, SMALL)]))
def test_a_move_taken_back_leaves_the_game_as_it_was(keys, game):
    """Draws that follow are the same, too: the state holds the random stream."""
    session = session_of(*game)
    session.begin(5)
    states = {0: session.env.clone_state().tobytes()}
    for key in keys:
        session.press(key)
        count = len(session.actions)
        now = session.env.clone_state().tobytes()
        assert states.setdefault(count, now) == now or key not in ("u", "h", "x", "")
        states[count] = now
    while session.actions:
        session.press("u")
        assert session.env.clone_state().tobytes() == states[len(session.actions)]
        assert not session.step.terminated


def test_a_hint_names_the_best_actions():
    session = Session(ENV, {"rows": 3}, 1, {"player": "2048/greedy", "heuristic": "nneonneo"})
    best = action_names(session.env.rules)[session._adviser.act(session.step.observation)]
    session.press("h")
    _, advice, *keys = session.lines()
    assert advice.startswith(f"2048/greedy prefers {best}; ")
    assert "takes a move back" in keys[-1]
    session.press(best)
    assert session.lines()[1] == ""


def test_a_game_of_placements_is_played_elsewhere():
    with pytest.raises(ValueError, match=r"has no keys, because an action places a piece; by hand play .*TetrisKeys"):
        play("mergefall/Tetris-v0", {}, 0)


def test_a_finished_game_is_a_record_that_holds(tmp_path, monkeypatch, capsys):
    out = tmp_path / "mine.jsonl"
    for seed in (3, 4):
        script = pressing(
            monkeypatch, ["up", "left", "h", "down", "right", "u"] * 8 + ["up", "left", "down", "right"] * 40
        )
        play(ENV, {"rows": 2, "cols": 2}, seed, adviser="2048/greedy", out=out)
        assert "game over" in script.shown[-1][1][0]
    assert "holds 2 finished games" in capsys.readouterr().out
    assert [(verdict.seed, verdict.problem) for verdict in verify(out, progress=False)] == [(3, ""), (4, "")]
    games = Evaluation.read(out)
    assert games.header.player == "by hand"
    assert f"score {games.episodes[1].score}," in script.shown[-1][1][0]
    with pytest.raises(ValueError, match="holds the game from seed 3 already"):
        play(ENV, {"rows": 2, "cols": 2}, 3, adviser="2048/greedy", out=out)
    assert "render_mode" not in games.header.env_kwargs
    monkeypatch.undo()
    main(["watch", str(out), "--seed", "4"])
    assert str(games.episodes[1].score) in capsys.readouterr().out
    evaluate("2048/greedy", ENV, 5, 0, {"rows": 2, "cols": 2}, 1, other := tmp_path / "greedy.jsonl", progress=False)
    assert games.versus(Evaluation.read(other)).games == 2
    (section,) = report([out, other], tmp_path / "page.html", progress=False)
    assert {row.label for row in section.result.rows} == {"by hand", "2048/greedy"}
    assert section.problems == []
    assert "mergefall evaluate 'by hand'" not in (tmp_path / "page.html").read_text()


def test_a_new_game_after_the_end_keeps_the_one_before(tmp_path, monkeypatch, capsys):
    out, whole = tmp_path / "mine.jsonl", ["up", "left", "down", "right"] * 60
    pressing(monkeypatch, [*whole, "r", *whole, "q", "q"])
    play(ENV, {"rows": 2, "cols": 2}, 3, adviser="2048/greedy", out=out)
    assert "holds 2 finished games" in capsys.readouterr().out
    verdicts = verify(out, progress=False)
    assert [verdict.problem for verdict in verdicts] == ["", ""]
    assert verdicts[0].seed == 3
    assert verdicts[1].seed != 3


def test_a_finished_game_is_kept_if_ctrl_c_ends_the_session(tmp_path, monkeypatch):
    def read(timeout=None):
        if "game over" in script.shown[-1][1][0]:
            raise KeyboardInterrupt
        return Script.read(script)

    out = tmp_path / "mine.jsonl"
    script = pressing(monkeypatch, ["up", "left", "down", "right"] * 60)
    monkeypatch.setattr(script, "read", read)
    with pytest.raises(KeyboardInterrupt):
        play(ENV, {"rows": 2, "cols": 2}, 3, adviser="2048/greedy", out=out)
    assert [verdict.problem for verdict in verify(out, progress=False)] == [""]


def keys_of(session):
    return [KEYS[action] for action in session.actions]


def test_keys_are_played_at_once_and_time_passes_from_the_first_one_on(clock):
    session = Session(BY_KEYS, {"rotate_180": True, "gravity": 0.1}, 0)
    assert session.due() is None
    clock.now += 10
    session.pass_time()
    for key in ("left", "right", "down", "x", "z", "a", "up", "w", "2", "c"):
        assert session.press(key)
    pressed = ["left", "right", "soft drop", "clockwise", "counterclockwise", "half turn", "clockwise", "hold"]
    assert keys_of(session) == pressed
    assert session.due() == pytest.approx(1 / 60)
    clock.now += 3.5 / 60
    assert session.due() == 0
    session.pass_time()
    assert keys_of(session) == pressed + ["wait"] * 3
    assert session.due() == pytest.approx(0.5 / 60)
    clock.now += 100  # the program was stopped
    session.pass_time()
    assert len(session.actions) <= len(pressed) + 3 + 60 // 4 + 1
    count = len(session.actions)
    session.press("p")
    clock.now += 1
    session.pass_time()
    assert session.due() is None
    assert len(session.actions) == count
    session.press("space")
    assert session.due() is not None


def test_without_gravity_time_stands_still():
    session = Session(BY_KEYS, {"gravity": 0}, 0)
    session.press("left")
    assert session.due() is None
    assert "P pauses" not in session.lines()[-1]


def test_a_piece_by_keys_is_taken_back_as_a_whole(clock):
    session = Session(BY_KEYS, {}, 0)
    for key in ("left", "up", "space", "c", "right", "space", "left"):
        session.press(key)
        clock.now += 0.1
        session.pass_time()
    pressed = ["left", "clockwise", "hard drop", "hold", "right", "hard drop"]
    for count in (6, 3, 0):
        session.press("u")
        assert session.due() is None  # there is time to think
        assert [key for key in keys_of(session) if key != "wait"] == pressed[:count]
    fresh = Session(BY_KEYS, {}, 0)
    assert session.actions == []
    assert session.env.clone_state().tobytes() == fresh.env.clone_state().tobytes()


def test_a_hint_names_the_keys_of_a_whole_piece(clock):
    bare = Session(BY_KEYS, {"preview": 0, "hold": False, "levels": True}, 0)
    bare.press("h")
    assert bare.hint.endswith("hard drop")
    session = Session(BY_KEYS, {"rows": 10}, 0, {"player": "tetris/keys", "of": "tetris/bcts"})
    session.press("left")
    session.press("h")
    assert session.due() is None
    hint, before = session.hint.split(", "), list(session.actions)
    assert session.lines()[1] == f"tetris/keys prefers {session.hint}"
    assert hint[-1] == "hard drop"
    picture = session.env.render()
    player = session._adviser
    for key in hint:
        assert KEYS[player.act(session.step.observation)] == key
        session._play(KEYS.index(key))
    assert session.step.info["pieces"] == 1
    assert picture != session.env.render()
    assert session.actions[: len(before)] == before


@pytest.mark.parametrize("env_id", [BY_KEYS, "mergefall/TetrisVersus-v0"])
def test_a_game_by_keys_is_a_record_that_holds(tmp_path, monkeypatch, clock, capsys, env_id):
    out = tmp_path / "keys.jsonl"
    script = pressing(
        monkeypatch, ["h", "left", "", "", "up", "", "space", "c", "", "p", "z"] + ["space", ""] * 60, clock
    )
    play(env_id, {"rows": 10, "levels": True}, 3, out=out)
    assert "game over" in script.shown[-1][1][0]
    assert [verdict.problem for verdict in verify(out, progress=False)] == [""]
    (episode,) = Evaluation.read(out).episodes
    actions = actions_of(episode.actions, episode.length)
    assert (actions == 0).sum() > 10
    assert f"score {episode.score}, lines 0, pieces {episode.pieces}, attack 0" in script.shown[-1][1][0]
    capsys.readouterr()
    monkeypatch.undo()
    main(["watch", str(out), "--seed", "3"])
    assert f"score {episode.score}" in capsys.readouterr().out
