"""Evaluation: the same episodes whoever plays them and however often the run was stopped; honest files."""

import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from dataclasses import asdict, replace
from time import sleep

import numpy as np
import pytest
from mergefall.game2048 import Game2048Env
from mergefall_baselines import Player, make
from mergefall_baselines.tetris.keys import Keys as KeysPlayer
from mergefall_baselines.tetris.opponent import OpponentPlayer
from mergefall_training.compare.comparison import print_result
from mergefall_training.compare.results import ContestResult, Row
from mergefall_training.play import workers
from mergefall_training.play.evaluation import Evaluation, evaluate
from mergefall_training.play.records import (
    Game2048Episode,
    Header,
    RecordFile,
    TetrisEpisode,
    VersusEpisode,
    actions_of,
    read_records,
)
from mergefall_training.play.statistics import short, wilson
from mergefall_training.play.workers import process_pool

ENV = "mergefall/Game2048-v0"
KEYS = "mergefall/TetrisKeys-v0"
SMALL = {"rows": 2, "cols": 3}


def play(episodes=6, player="2048/random", env_id=ENV, **options):
    return evaluate(player, env_id, episodes, **{"env_kwargs": SMALL, "workers": 1, "progress": False, **options})


def timeless(episodes):
    """Records without what may differ between two runs."""
    return [replace(episode, seconds=0.0) for episode in episodes]


class Nameless:
    def predict(self, observation, state=None, episode_start=None, deterministic=True):
        return np.array(3), None


def test_episode_k_is_the_game_from_seed_plus_k():
    evaluation = play(4, seed=10)
    assert [episode.seed for episode in evaluation.episodes] == [10, 11, 12, 13]
    for episode in evaluation.episodes:
        trajectory = make("2048/random").play(ENV, episode.seed, SMALL)
        assert (episode.score, episode.max_tile) == (trajectory.figures["score"], trajectory.figures["max_tile"])
        assert (episode.length, episode.terminated) == (len(trajectory), True)
        assert episode.seconds > 0


@pytest.fixture
def processes(monkeypatch):
    """Workers play, however short the games are."""
    monkeypatch.setattr(workers, "WORTH", 0.0)


def test_workers_do_not_change_the_episodes(processes):
    assert timeless(play(workers=2).episodes) == timeless(play().episodes)
    with process_pool(2) as pool:
        for player in ("2048/random", "2048/greedy"):
            assert timeless(play(player=player, executor=pool).episodes) == timeless(play(player=player).episodes)


def test_a_player_that_cannot_travel_says_so(processes):
    class Local(Nameless, Player):
        name = "2048/mine"

        def __init__(self):
            self.lock = threading.Lock()

    with pytest.raises(ValueError, match="2048/mine cannot be sent to other processes; workers=1 uses only this one"):
        play(2, Local(), workers=2)
    assert play(2, Local(), max_episode_steps=5).header.player == "2048/mine"


@pytest.mark.parametrize(("cap", "capped", "stuck"), [(None, 0, 3), (5, 3, 0)])
def test_games_that_got_stuck_are_not_called_capped(cap, capped, stuck):
    found = play(3, lambda board: 3, max_episode_steps=cap)  # for ever, legal or not
    summary = found.summary()
    assert not any(episode.terminated for episode in found.episodes)
    assert (summary.capped, summary.stuck, summary.deaths) == (capped, stuck, stuck)


# -- files ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("player", "env_id", "names"),
    [("2048/random", ENV, "max_tile"), ("tetris/bcts", "mergefall/Tetris-v0", "lines pieces")],
)
def test_the_file_holds_the_header_and_the_episodes(tmp_path, player, env_id, names):
    out = tmp_path / "new" / "run.jsonl"
    written = play(3, player, env_id, env_kwargs={"rows": 6}, out=out)
    assert Evaluation.read(out) == written
    assert repr(written).startswith(f"<{player} in {env_id}, 3 games: mean ")
    header, *rest = map(json.loads, out.read_text().splitlines())
    assert (header["player"], header["env_kwargs"]["rows"]) == (player, 6)
    assert " ".join(rest[0]) == f"seed score length terminated seconds {names} actions checksum"
    out.write_text(out.read_text().splitlines()[0] + "\n")
    with pytest.raises(ValueError, match="holds no finished game"):
        Evaluation.read(out)


def test_more_fewer_and_other_episodes_of_the_same_run(tmp_path):
    out = tmp_path / "run.jsonl"
    four = play(4, out=out).episodes
    assert play(2, out=out).episodes == four[:2]  # read, not played: the seconds are equal too
    six = play(6, out=out).episodes
    assert six[:4] == four
    assert timeless(six) == timeless(play(6).episodes)
    assert [e.seed for e in play(3, seed=5, out=out).episodes] == [5, 6, 7]
    assert len(read_records(out)[1]) == 8


def test_two_runs_do_not_write_to_one_file(tmp_path):
    out = tmp_path / "run.jsonl"
    header = play(2, out=out).header
    before = out.read_bytes()
    with RecordFile(out, header), pytest.raises(ValueError, match=r"another run is writing to .*run\.jsonl"):
        play(3, out=out)
    assert out.read_bytes() == before
    assert len(play(3, out=out).episodes) == 3


# Runs an evaluation that stops itself in the given way once three episodes are on file.
STOPPED = """
import os, signal, sys
from mergefall_training.play import workers
from mergefall_training.play.evaluation import evaluate
from mergefall_training.play.records import RecordFile

workers.WORTH = 0.0  # workers play, however short the games are
append = RecordFile.append
def append_and_stop(self, episode):
    append(self, episode)
    if len(self.episodes) == 3:
        exec(sys.argv[3])
RecordFile.append = append_and_stop

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where a shell runs the tests in the background
    evaluate("2048/random", "mergefall/Game2048-v0", 40, env_kwargs={"rows": 2, "cols": 3},
             workers=int(sys.argv[2]), out=sys.argv[1])
"""
KILL = "os.kill(os.getpid(), getattr(signal, 'SIGKILL', signal.SIGTERM))"
INTERRUPT = "os.killpg(0, signal.SIGINT)"  # a Ctrl-C in the terminal goes to the workers too


def run_and_stop(tmp_path, workers, how):
    script = tmp_path / "stopped.py"
    script.write_text(STOPPED)
    # Returns only when nobody holds stderr any more: workers that outlive their parent would show as a timeout.
    return subprocess.run(
        [sys.executable, script, tmp_path / "run.jsonl", str(workers), how],
        stderr=subprocess.PIPE,
        text=True,
        timeout=600,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


@pytest.mark.parametrize("workers", [1, 2])
def test_a_killed_run_resumes_to_the_records_of_an_unbroken_one(tmp_path, workers):
    run = run_and_stop(tmp_path, workers, KILL)
    assert run.returncode == -signal.SIGKILL
    out = tmp_path / "run.jsonl"
    kept = read_records(out)[1]
    assert len(kept) == 3
    resumed = play(40, out=out).episodes
    assert [resumed[e.seed] for e in kept] == kept
    assert timeless(resumed) == timeless(play(40).episodes)


@pytest.mark.skipif(sys.platform == "win32", reason="process groups")
def test_an_interrupt_keeps_what_is_finished_and_says_how_to_go_on(tmp_path):
    run = run_and_stop(tmp_path, 2, INTERRUPT)
    kept = len(read_records(tmp_path / "run.jsonl")[1])
    assert 3 <= kept < 40  # the signal may take until after the next episode to arrive
    assert f"{kept} of 40 episodes are in" in run.stderr
    assert "the same call plays the rest" in run.stderr
    assert run.stderr.count("Traceback") == 1  # the caller's own, none from the workers


def test_a_torn_last_line_is_cut_off(tmp_path):
    out = tmp_path / "run.jsonl"
    whole = play(4, out=out)
    text = out.read_bytes()
    for end in (-1, -20, -len(text.splitlines()[-1]), 30):  # as after a kill in the middle of a write, or of the header
        out.write_bytes(text[:end])
        assert timeless(play(4, out=out).episodes) == timeless(whole.episodes)
        assert out.read_bytes().count(b"\n") == 5


@pytest.mark.skipif(sys.platform == "win32", reason="an open file cannot be removed")
@pytest.mark.parametrize("replaced", [False, True])
def test_games_survive_the_removal_of_their_file(tmp_path, monkeypatch, replaced):
    out = tmp_path / "runs" / "games.jsonl"
    append = RecordFile.append

    def append_and_remove(self, episode):
        if len(self.episodes) == 2:
            shutil.rmtree(out.parent)
            if replaced:
                out.parent.mkdir()
                out.write_text("another file\n")
        append(self, episode)

    monkeypatch.setattr(RecordFile, "append", append_and_remove)
    with pytest.raises(ValueError, match=r"games\.jsonl was removed or replaced"):
        play(5, out=out)
    kept = out.with_name("games.kept.jsonl") if replaced else out
    assert [episode.seed for episode in read_records(kept)[1]] == [0, 1, 2]
    assert not replaced or out.read_text() == "another file\n"


def test_a_script_from_standard_input_plays_in_one_process(tmp_path):
    script = f"""
from mergefall_training import evaluate
found = evaluate("2048/random", "{ENV}", 3, env_kwargs={SMALL}, workers=2, progress=False)
print(len(found.episodes), "games")
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-"], input=script, env=environment, capture_output=True, text=True)
    assert done.stdout == "3 games\n", done.stderr
    assert "this process does all work" in done.stderr


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        ({"player": "2048/greedy"}, "player is '2048/random' there, '2048/greedy' here"),
        (
            {"env_kwargs": {"rows": 3, "cols": 2}},
            "another run: env_kwargs.rows is 2 there, 3 here; env_kwargs.cols is 3 there, 2 here. Choose",
        ),
        ({"max_episode_steps": 7}, "max_episode_steps is None there, 7 here"),
        ({"adversary": {"player": "2048/greedy", "rate": 0.3}}, "adversary is None there, {'player': "),
        ({"player": make("2048/random", rows=2)}, "options.rows is missing there, 2 here"),
    ],
)
def test_another_run_is_refused_and_the_difference_named(tmp_path, change, difference):
    out = tmp_path / "run.jsonl"
    play(2, out=out)
    before = out.read_bytes()
    with pytest.raises(ValueError, match="another run") as error:
        play(3, out=out, **change)
    assert difference in str(error.value)
    assert out.read_bytes() == before


RECORD = '{"seed": 9, "score": 4, "length": 2, "terminated": true, "seconds": 0.5, "max_tile": 4, "actions": ""}'


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ('{"seed": 9, "sco', "Unterminated"),
        ("[1, 2]", "expected an object"),
        (RECORD.replace("9", "0"), "seed 0 is there twice"),
        (RECORD.replace("score", "scores"), "scores"),
        (RECORD.replace("4", "4.5"), "float"),
        ("\udcff", "utf-8"),
    ],
)
def test_other_damage_is_an_error_that_names_file_and_line(tmp_path, line, complaint):
    out = tmp_path / "run.jsonl"
    play(2, out=out)
    lines = out.read_text().splitlines()
    damaged = "\n".join([*lines[:2], line, *lines[2:]]) + "\n"
    out.write_bytes(damaged.encode(errors="surrogateescape"))
    with pytest.raises(ValueError, match=r"run\.jsonl, line 3") as error:
        play(3, out=out)
    assert complaint in str(error.value)
    assert out.read_bytes() == damaged.encode(errors="surrogateescape")


def test_a_file_that_is_not_ours_is_left_alone(tmp_path):
    out = tmp_path / "notes.txt"
    out.write_text("a line without an end")
    with pytest.raises(ValueError, match="not a file of episodes"):
        play(1, out=out)
    assert out.read_text() == "a line without an end"


# -- figures and bad input --------------------------------------------------------------------------------------------


def test_with_a_reward_for_the_goal_players_are_compared_by_wins():
    kwargs = SMALL | {"goal": 16}
    wins, scores = play(30, env_kwargs=kwargs | {"reward": "goal"}), play(30, env_kwargs=kwargs)
    assert (wins.headline, scores.headline) == ("wins", "score")
    np.testing.assert_array_equal(wins.results, scores.max_tiles >= 16)
    assert 0 < wins.results.sum() < 30
    assert wins.summary().mean == scores.tile_rate(16)
    np.testing.assert_array_equal(wins.scores, scores.results)


VERSUS = "mergefall/TetrisVersus-v0"
KEYED = {"player": "tetris/keys", "of": "tetris/bcts", "placements": "drop"}
MATCH = {"cols": 5, "rows": 16, "opponent": {**KEYED, "of": "tetris/random"}, "garbage": {"rows": 0.1}}


@pytest.mark.parametrize("of", ["tetris/bcts", "tetris/random"])
def test_matches_side_by_side_are_those_one_by_one(processes, monkeypatch, of):
    given = {"player": KEYED | {"of": of}, "env_id": VERSUS, "env_kwargs": MATCH, "max_episode_steps": 250}
    together = play(5, **given)
    monkeypatch.setattr(workers, "MATCHES", 2)
    assert timeless(play(5, **given).episodes) == timeless(together.episodes)
    assert timeless(play(5, workers=2, **given).episodes) == timeless(together.episodes)
    player = make("tetris/keys", of=of, placements="drop").with_rules(MATCH | {"hold": True})
    for episode in together.episodes:
        alone = player.play(VERSUS, episode.seed, MATCH, 250)
        assert (len(alone), alone.terminated) == (episode.length, episode.terminated)
        assert alone.figures == {name: getattr(episode, name) for name in alone.figures}
        np.testing.assert_array_equal(alone.actions, actions_of(episode.actions, episode.length))


@pytest.mark.parametrize("slow", [KeysPlayer, OpponentPlayer])
def test_the_time_of_a_match_is_that_of_the_players_own_decisions(monkeypatch, slow):
    name = "predict" if slow is KeysPlayer else "keys"
    quick = getattr(slow, name)
    play(2, KEYED, VERSUS, env_kwargs=MATCH, max_episode_steps=2)  # compiles

    def decide(self, *values, **options):
        sleep(0.1)
        return quick(self, *values, **options)

    monkeypatch.setattr(slow, name, decide)
    found = play(2, KEYED, VERSUS, env_kwargs=MATCH, max_episode_steps=5)
    assert (found.ms_per_move > 45) == (slow is KeysPlayer)


def about(env_id=ENV, cap=None, **kwargs):
    return Header(player="x", options={}, package="0", env_id=env_id, env_kwargs=kwargs, max_episode_steps=cap)


def test_the_mean_of_capped_games_is_all_lines_over_deaths():
    ends = [(90, True)] * 10 + [(550, False)] * 2  # lines, and whether the game ended by itself
    games = [TetrisEpisode(seed, 0, 9, ended, 0.018, lines, 4) for seed, (lines, ended) in enumerate(ends)]
    summary = Evaluation(about("mergefall/Tetris-v0", 9), games).summary()
    assert (summary.deaths, summary.capped, summary.mean.value) == (10, 2, 200)
    # 10 deaths came of 4.795 to 18.390 expected ones (published limits).
    assert (summary.mean.low, summary.mean.high) == pytest.approx((2000 / 18.390, 2000 / 4.795), rel=1e-4)
    assert summary.median is summary.iqm is None


def test_the_summary_of_matches_counts_wins_draws_and_losses():
    figures = [(1, 10, 6, 300), (1, 30, 15, 900), (0, 20, 0, 600), (-1, 20, 3, 600)]  # won, pieces, attack, keys
    episodes = [
        VersusEpisode(i, 0, keys, won != 0, 0.001 * keys, 0, pieces, attack, won)
        for i, (won, pieces, attack, keys) in enumerate(figures)
    ]
    evaluation = Evaluation(about(VERSUS, 20, **MATCH), episodes)
    summary = evaluation.summary()
    assert (evaluation.headline, summary.mean, summary.median, summary.iqm) == ("won", wilson(2.5, 4), None, None)
    assert summary.outcomes == {"wins": wilson(2, 4), "draws": wilson(1, 4), "losses": wilson(1, 4)}
    assert summary.rates["pieces/s"].value == pytest.approx(summary.rates["pieces/s"].low) == 2  # in all games
    attack = summary.rates["attack/piece"]
    assert 0 < attack.low < attack.value == 0.3 < attack.high < 0.6
    assert (summary.moves_per_game, summary.ms_per_move) == (20, pytest.approx(1))


def test_games_by_keys_have_rates_and_keys_are_not_called_pieces(capsys):
    keyed = play(2, KEYED, KEYS, env_kwargs={}, max_episode_steps=60)
    print_result(ContestResult("keys", [Row("bcts", keyed)]))
    printed = capsys.readouterr().out
    assert all(text in printed for text in ("cap 60 keys", "attack/piece", "ms/key"))
    pieces = sum(episode.pieces for episode in keyed.episodes)
    assert keyed.summary().rates["pieces/s"].value == pieces / 2
    assert not play(2).summary().rates
    nothing = play(2, lambda seen: 0, KEYS, env_kwargs={"gravity": 0}, max_episode_steps=3).summary()
    assert math.isnan(nothing.rates["attack/piece"].value)


def test_the_summary_is_what_the_episodes_say():
    figures = [(100, 10, 64), (200, 20, 64), (300, 30, 128), (1000, 40, 256)]  # score, moves, largest tile
    episodes = [Game2048Episode(i, s, n, True, 0.001 * n, t) for i, (s, n, t) in enumerate(figures)]
    summary = Evaluation(about(), episodes).summary()
    assert (summary.mean.value, summary.median.value, summary.iqm.value) == (400, 250, 250)
    assert summary.mean.low < 400 < summary.mean.high
    shares = {tile: rate.value for tile, rate in summary.tiles.items()}
    assert shares == dict.fromkeys((8, 16, 32, 64), 1) | {128: 0.5, 256: 0.25}
    assert (summary.moves_per_game, summary.ms_per_move) == (25, pytest.approx(1))
    assert (summary.episodes, summary.first_seed, summary.last_seed) == (4, 0, 3)
    json.dumps(asdict(summary))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"seed": 999_999}, "from 0 to 999998"),
        ({"workers": 0}, "workers is 0"),
        ({"player": "2048/nobody"}, "2048/nobody"),
        ({"executor": "threads"}, "threads"),
        ({"max_episode_steps": -1}, "max_episode_steps is -1"),
        ({"env_kwargs": {"rowz": 4}}, "rowz"),
        ({"env_id": "mergefall/Chess-v0"}, "mergefall/Chess-v0"),
        ({"env_id": VERSUS, "env_kwargs": {"opponent": Nameless()}}, "opponent is .*Nameless.*; expected JSON types"),
        ({"player": make("2048/random", rows=4, cols=4)}, "rows"),
        ({"player": Nameless()}, "must name its player"),
    ],
)
def test_bad_input_is_named(tmp_path, change, complaint):
    with pytest.raises(ValueError, match=complaint):
        play(**{"episodes": 2, "out": tmp_path / "run.jsonl", **change})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_an_environment_may_be_named_with_its_module(tmp_path, monkeypatch, workers):
    named = evaluate("2048/greedy", f"mergefall:{ENV}", 2, env_kwargs=SMALL, workers=workers, progress=False)
    assert named.header == play(2, "2048/greedy").header
    assert timeless(named.episodes) == timeless(play(2, "2048/greedy").episodes)

    (tmp_path / "own_games.py").write_text(
        "import gymnasium as gym\n"
        f"gym.register('Own-v0', '{Game2048Env.__module__}:Game2048Env', kwargs={SMALL}, max_episode_steps=7)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    for count in (1, 2):
        own = evaluate("2048/random", "own_games:Own-v0", count, workers=workers, out=tmp_path / "own.jsonl")
    assert (own.header.env_id, own.header.max_episode_steps) == ("own_games:Own-v0", 7)
    assert [episode.length for episode in own.episodes] == [7, 7]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # Ray's own
def test_ray_plays_the_same_episodes():
    import ray

    ray.init(num_cpus=1, include_dashboard=False)
    try:
        assert timeless(play(executor="ray").episodes) == timeless(play().episodes)
    finally:
        ray.shutdown()


def test_the_mean_so_far_is_of_the_first_seeds(monkeypatch, capsys):
    """Of all games that are over, the short ones would be too many."""
    games = play(20, env_kwargs={})
    scores, by_length = games.scores, sorted(games.episodes, key=lambda episode: episode.length)
    monkeypatch.setattr("mergefall_training.progress.EVERY", 0)
    monkeypatch.setattr("mergefall_training.play.evaluation.play_all", lambda *_: (one for one in by_length))
    play(20, env_kwargs={}, progress=True)
    shown = re.findall(r": (\d+) of 20(?:, mean ([\d.]+k?)( of the first \d+)?)?", capsys.readouterr().err)
    for count, mean, of in shown[:-1]:
        over = {episode.seed for episode in by_length[: max((n for n in (8, 16, 20) if n <= int(count)), default=0)]}
        first = next(n for n in range(21) if n not in over)
        assert mean == (short(np.mean(scores[:first])) if first else "")
        assert of == (f" of the first {first}" if 0 < first < 20 else "")
    assert shown[-1][1] == short(np.mean(scores))
