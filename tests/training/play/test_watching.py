"""Watching: games side by side, keys that change the pace, films of two games, games against an adversary."""

from functools import partial

import gymnasium as gym
import pytest
from mergefall_baselines.player import recorded
from mergefall_training import evaluate
from mergefall_training.cli import main
from mergefall_training.play.match import Match
from mergefall_training.play.records import Header
from mergefall_training.play.watching import GAP, Show, Terminal, Window, watch
from rich.console import Console

from ..altered import rewritten
from ..terminals import Script

ENV, SMALL = "mergefall/Game2048-v0", {"rows": 2, "cols": 3}
OPTIONS = ["--env-option", "rows=2", "--env-option", "cols=3"]


def of(player, seed=0):
    return Show.of(player, {}, Match.read(ENV, SMALL), seed)


def test_two_games_go_on_until_both_are_over():
    played = [
        evaluate(name, ENV, 1, 2, SMALL, 1, progress=False).episodes[0] for name in ("2048/greedy", "2048/random")
    ]
    assert played[0].length != played[1].length
    screen = Script([""])
    watch([of("2048/greedy", 2), of("2048/random", 2)], screen, 1e6)
    pictures, lines = screen.shown[-1]
    for picture, line, episode in zip(pictures, lines, played, strict=True):
        assert f"score {episode.score}\n" in picture
        assert f"score {episode.score}, max tile {episode.max_tile}, moves {episode.length}" in line
    assert len(screen.shown) == 2 + max(
        episode.length for episode in played
    )  # the start; the end once more, without keys


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


def test_a_file_beside_a_player_plays_the_same_seed(tmp_path, capsys):
    evaluate("2048/greedy", ENV, 3, 0, SMALL, 1, tmp_path / "games.jsonl", progress=False)
    main(["watch", str(tmp_path / "games.jsonl"), "--worst", "--beside", str(tmp_path / "games.jsonl")])
    first, second = [line for line in capsys.readouterr().out.splitlines() if line.startswith("2048/greedy, seed")]
    assert first == second
    rewritten(tmp_path / "games.jsonl", tmp_path / "wrong.jsonl", {"env_kwargs": {"rowz": 2}})
    with pytest.raises(ValueError, match="has no 'rowz'"):
        Show.recorded(tmp_path / "wrong.jsonl", 0).header.make()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # imageio's reader leaves its pipes open
def test_two_games_are_filmed(tmp_path, capsys):
    import imageio.v2 as imageio

    film = tmp_path / "both.mp4"
    main(["watch", "2048/greedy", *OPTIONS, "--beside", "2048/random", "--video", str(film)])
    moves = [int(line.rpartition("moves ")[2]) for line in capsys.readouterr().out.splitlines() if "moves " in line]
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
