"""Playing by hand, whose finished games are records, and watching."""

from functools import cache, partial

import gymnasium as gym
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mergefall.tetris.keys import KEYS
from mergefall.text import action_names
from mergefall_baselines.player import recorded
from mergefall_training.compare.report import report
from mergefall_training.play.evaluation import Evaluation, evaluate
from mergefall_training.play.match import Match
from mergefall_training.play.records import Header, actions_of
from mergefall_training.play.watching import GAP, Session, Show, Terminal, Window, play, watch
from rich.console import Console

from ..altered import rewritten
from ..terminals import Clock, Script
from .test_verify import problems

ENV, BY_KEYS = "mergefall/Game2048-v0", "mergefall/TetrisKeys-v0"
SMALL = {"cols": 6, "rows": 8, "gravity": 0}


WHOLE = ["up", "left", "down", "right"] * 60  # a game on 2×2


def pressing(monkeypatch, keys, clock=None):
    script = Script([*keys, "q"], clock)
    monkeypatch.setattr("mergefall_training.play.watching.Terminal", lambda: script)
    return script


def play_small(seed, out):
    play(ENV, {"rows": 2, "cols": 2}, seed, adviser="2048/greedy", out=out)


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr("mergefall_training.play.watching.time.monotonic", clock.monotonic)
    return clock


@cache
def session_of(env_id):
    keyed = env_id == BY_KEYS
    return Session(env_id, SMALL if keyed else {"rows": 3, "cols": 3}, 0, None if keyed else "2048/random")


PRESSED = st.lists(st.sampled_from(["up", "right", "down", "left", "space", "e", "h", "w", "j", "", "u"]), max_size=40)


@settings(max_examples=25)
@given(PRESSED, st.sampled_from([ENV, BY_KEYS]))
def test_a_move_taken_back_leaves_the_game_as_it_was(keys, env_id):
    """Draws that follow are the same, too: the state holds the random stream."""
    session = session_of(env_id)
    session.begin(5)
    states = {0: session.env.clone_state().tobytes()}
    for key in keys:
        session.press(key)
        count = len(session.actions)
        now = session.env.clone_state().tobytes()
        assert states.setdefault(count, now) == now or key not in ("u", "h", "j", "")
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


def test_a_finished_game_is_a_record_that_holds(tmp_path, monkeypatch, capsys, command):
    out = tmp_path / "mine.jsonl"
    for seed in (3, 4):
        script = pressing(monkeypatch, ["up", "left", "h", "down", "right", "u"] * 8 + WHOLE)
        play_small(seed, out)
        assert "game over" in script.shown[-1][1][0]
    assert "holds 2 finished games" in capsys.readouterr().out
    assert problems(out) == ["", ""]
    games = Evaluation.read(out)
    assert (games.header.player, [episode.seed for episode in games.episodes]) == ("by hand", [3, 4])
    assert f"score {games.episodes[1].score}," in script.shown[-1][1][0]
    with pytest.raises(ValueError, match="holds the game from seed 3 already"):
        play_small(3, out)
    assert "render_mode" not in games.header.env_kwargs
    monkeypatch.undo()
    assert str(games.episodes[1].score) in command("watch --seed 4", out)[0]
    evaluate("2048/greedy", ENV, 5, 0, {"rows": 2, "cols": 2}, 1, other := tmp_path / "greedy.jsonl", progress=False)
    assert games.versus(Evaluation.read(other)).games == 2
    (section,) = report([out, other], tmp_path / "page.html", progress=False)
    assert {row.label for row in section.result.rows} == {"by hand", "2048/greedy"}
    assert section.problems == []
    assert "mergefall evaluate 'by hand'" not in (tmp_path / "page.html").read_text()


def test_a_new_game_after_the_end_keeps_the_one_before(tmp_path, monkeypatch):
    out = tmp_path / "mine.jsonl"
    pressing(monkeypatch, [*WHOLE, "r", *WHOLE, "q", "q"])
    play_small(3, out)
    assert problems(out) == ["", ""]
    first, second = Evaluation.read(out).episodes
    assert first.seed == 3 != second.seed


def test_a_finished_game_is_kept_if_ctrl_c_ends_the_session(tmp_path, monkeypatch):
    def read(timeout=None):
        if "game over" in script.shown[-1][1][0]:
            raise KeyboardInterrupt
        return Script.read(script)

    out = tmp_path / "mine.jsonl"
    script = pressing(monkeypatch, WHOLE)
    monkeypatch.setattr(script, "read", read)
    with pytest.raises(KeyboardInterrupt):
        play_small(3, out)
    assert problems(out) == [""]


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
def test_a_game_by_keys_is_a_record_that_holds(tmp_path, monkeypatch, clock, command, env_id):
    out = tmp_path / "keys.jsonl"
    script = pressing(
        monkeypatch, ["h", "left", "", "", "up", "", "space", "c", "", "p", "z"] + ["space", ""] * 60, clock
    )
    play(env_id, {"rows": 10, "levels": True}, 3, out=out)
    assert "game over" in script.shown[-1][1][0]
    assert problems(out) == [""]
    (episode,) = Evaluation.read(out).episodes
    actions = actions_of(episode.actions, episode.length)
    assert (actions == 0).sum() > 10
    assert f"score {episode.score}, lines 0, pieces {episode.pieces}, attack 0" in script.shown[-1][1][0]
    monkeypatch.undo()
    assert f"score {episode.score}" in command("watch --seed 3", out)[0]


# -- watching ----------------------------------------------------------------------------------------------------------


BOARD = {"rows": 2, "cols": 3}
OPTIONS = "--env-option rows=2 --env-option cols=3"


def of(player, seed=0):
    return Show.of(player, {}, Match.read(ENV, BOARD), seed)


def test_two_games_go_on_until_both_are_over():
    names, screen = ("2048/greedy", "2048/random"), Script([""])
    played = [evaluate(name, ENV, 1, 2, BOARD, 1, progress=False).episodes[0] for name in names]
    assert played[0].length != played[1].length
    watch([of(name, 2) for name in names], screen, 1e6)
    for picture, line, episode in zip(*screen.shown[-1], played, strict=True):
        assert f"score {episode.score}\n" in picture
        assert f"score {episode.score}, max tile {episode.max_tile}, moves {episode.length}" in line
    longest = max(episode.length for episode in played)
    assert len(screen.shown) == 2 + longest  # the start; the end once more, without keys


def test_keys_pause_step_and_quit():
    screen = Script(["space", "x", "right", "", "right", "q"])
    watch([of("2048/random")], screen, 1e-3)
    assert [line.rpartition("moves ")[2] for _, (line, _) in screen.shown] == ["0", "1", "2"]
    assert screen.waited[0] > 900  # a thousand seconds for each position
    assert screen.waited[1:] == [None] * 5  # paused: until a key is pressed


def test_plus_and_minus_change_the_speed():
    screen = Script(["+", "", "-", "", "q"])
    watch([of("2048/random")], screen, 0.01)
    first, _, faster, _, slower = screen.waited
    assert [first, faster, slower] == pytest.approx([100, 100 / 1.5, 100], abs=1)


def test_games_by_keys_are_shown_as_fast_as_they_are_played():
    screen, env_id = Script(["", "q"]), "mergefall/TetrisKeys-v0"
    header = Header(player="by hand", options={}, package="0", env_id=env_id)
    watch([Show(header, 0, recorded([2, 0, 6]))], screen, None)
    assert screen.waited[0] == pytest.approx(1 / 60, abs=1e-3)
    assert screen.shown[0][0][0].startswith("lines 0  score 0  attack 0\n")


def test_a_file_beside_a_player_plays_the_same_seed(tmp_path, command):
    evaluate("2048/greedy", ENV, 3, 0, BOARD, 1, path := tmp_path / "games.jsonl", progress=False)
    printed, _, _ = command("watch --worst --beside", path, path)
    first, second = [line for line in printed.splitlines() if line.startswith("2048/greedy, seed")]
    assert first == second
    rewritten(path, tmp_path / "wrong.jsonl", {"env_kwargs": {"rowz": 2}})
    with pytest.raises(ValueError, match="has no 'rowz'"):
        Show.recorded(tmp_path / "wrong.jsonl", 0).header.make()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # imageio's reader leaves its pipes open
def test_two_games_are_filmed(tmp_path, command):
    import imageio.v2 as imageio

    film = tmp_path / "both.mp4"
    printed, _, _ = command(f"watch 2048/greedy {OPTIONS} --beside 2048/random --video", film)
    moves = [int(line.rpartition("moves ")[2]) for line in printed.splitlines() if "moves " in line]
    frames = imageio.mimread(film, memtest=False)
    assert len(frames) == 1 + max(moves)
    alone = of("2048/greedy").header.make(render_mode="rgb_array")
    alone.reset(seed=0)
    assert frames[0].shape[1] == 2 * alone.render().shape[1] + GAP


def test_a_terminal_shows_matches_side_by_side_and_text_where_there_is_room(monkeypatch, capsys):
    env = gym.make("mergefall/TetrisVersus-v0", render_mode="ansi")
    env.reset(seed=0)
    for width, height, beside in ((160, 24, True), (160, 40, False), (100, 24, False)):
        made = partial(Console, width=width, height=height)
        monkeypatch.setattr("mergefall_training.play.watching.console", made)
        with Terminal() as terminal:
            terminal.show([env.render()], ["the figures", "the keys"])
        shown = capsys.readouterr().out.rstrip().splitlines()
        assert shown[0].count("lines 0") == 2
        assert shown[2].count(" next ") == 2 or width == 100  # what is left is cropped
        assert len(shown) == 23 + 2 * (not beside)
        assert ("the keys" in shown[-1]) != beside
        assert beside == any("the keys" in line[100:] for line in shown)


def test_a_window_draws_and_the_terminal_has_the_text(monkeypatch, capsys):
    import pygame

    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    env = of("2048/random").header.make(render_mode="rgb_array")
    env.reset(seed=0)
    with Window() as window:
        window.show([env.render(), env.render()], ["below"])
        shown = pygame.surfarray.array3d(pygame.display.get_surface())
        assert shown.shape[0] == 2 * env.render().shape[1] + GAP
        assert shown.std() > 0
        assert window.read(0.01) == []
        pygame.event.post(pygame.event.Event(pygame.QUIT))
        assert window.read() == ["q"]
    assert "below" in capsys.readouterr().out
    watch([of("2048/random")], Window(), 1e6)
    assert "2048/random, seed 0: score" in capsys.readouterr().out


def test_the_terminal_needs_no_keyboard(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin.isatty", lambda: False)
    with Terminal() as terminal:
        assert terminal.read(0) == []
        terminal.show(["one\n", "two\n"], ["below"])
    assert "one" in (shown := capsys.readouterr().out)
    assert "below" in shown


def test_q_asks_before_a_game_that_is_not_over_is_lost(tmp_path, monkeypatch, clock):
    out = tmp_path / "mine.jsonl"
    script = pressing(monkeypatch, ["left", "q", "", "right", "q"], clock)
    play(BY_KEYS, {}, 3, out=out)
    lines = [lines for _, lines in script.shown]
    asked = ["not over" in shown[-1] for shown in lines]
    assert asked == [False, False, True, True, False, True]
    assert "paused" in lines[2][0]
    assert "paused" not in lines[1][0]
    assert len(lines[3]) == len(lines[2])  # no time passes while it asks
    assert len(out.read_text().splitlines()) == 1  # the header alone
