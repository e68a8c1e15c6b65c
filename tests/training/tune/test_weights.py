"""Tuning: climbs reach a known optimum; a run that was stopped ends as an unbroken one; honest files."""

import gzip
import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from mergefall.game2048 import heuristic
from mergefall.tetris.heuristics import TwoTetrad
from mergefall.weighted import with_weights
from mergefall_baselines import make
from mergefall_training.compare.suite import load_suite
from mergefall_training.play.match import Match
from mergefall_training.tune import weights as weights_module
from mergefall_training.tune.climbing import Climb, ends
from mergefall_training.tune.weights import TRIAL_SEED, tune

MATCH = Match.read("mergefall/Game2048-v0", {"rows": 2, "cols": 3})
TUNED = Path(weights_module.__file__).parent / "tuned"
OPTIONS = {"heuristic": "monotone-smooth"}
SMALL = Climb(games=3, finals=5, trials=12, restarts=5)


def run(out=None, climb=SMALL, **changed):
    return tune("2048/greedy", OPTIONS, MATCH, climb, **{"out": out, "progress": False, **changed})


def timeless(trials):
    return [replace(trial, seconds=0.0) for trial in trials]


def test_one_weight_at_a_time_up_then_down():
    tried = []

    def flat(weights):
        tried.append((weights["x"], weights["y"]))
        return 1.0

    assert ends(flat, {"x": 10.0, "y": 0.0}, Climb(step=0.5, unit=2)) == [{"x": 10.0, "y": 0.0}]
    assert tried == [(10, 0), (15, 0), (5, 0), (10, 1), (10, -1)]


@pytest.mark.parametrize(("slack", "end"), [(5, 0), (4.8, 5)])
def test_a_win_by_no_more_than_the_slack_is_not_kept(slack, end):
    how = Climb(step=5, passes=1, slack=slack)
    assert ends(lambda weights: 100 + weights["x"], {"x": 0.0, "y": 0.0}, how) == [{"x": end, "y": 0.0}]


def test_restarts_leave_a_local_optimum():
    def two_hills(weights):
        return max(10 - abs(weights["x"]), 30 - 3 * abs(weights["x"] - 20))

    start = {"x": 0.0}
    assert two_hills(ends(two_hills, start, Climb(slack=0))[0]) == 10
    assert two_hills(ends(two_hills, start, Climb(slack=0, restarts=20, spread=10, passes=100))[0]) > 20


def test_trials_play_their_own_seeds_and_the_finals_fresh_ones():
    tuning = run()
    assert len(tuning.trials) == SMALL.trials
    assert {(trial.seed, trial.games) for trial in tuning.trials} == {(TRIAL_SEED, 3)}
    assert {(trial.seed, trial.games) for trial in tuning.finalists} == {(750_000, 5)}
    assert tuning.finalists[0].mean == max(trial.mean for trial in tuning.finalists)
    assert tuning.heuristic == {"name": "monotone-smooth", **tuning.finalists[0].weights}
    assert tuning.trials[0].weights in [trial.weights for trial in tuning.finalists]


def test_only_some_weights_in_their_order():
    tuning = run(only=["corner", "empty"], climb=replace(SMALL, trials=None, passes=2, restarts=1))
    assert list(tuning.trials[1].weights.items()) == [("corner", 2.25), ("empty", 2.5)]
    assert tuning.heuristic["smoothness"] == 0.1


def test_a_stopped_run_ends_as_an_unbroken_one(tmp_path):
    whole, torn = tmp_path / "whole.jsonl", tmp_path / "torn.jsonl"
    unbroken = run(whole)
    lines = whole.read_bytes().splitlines(keepends=True)
    assert len(lines) == 1 + len(unbroken.trials) + len(unbroken.finalists)
    for kept in (0, 1, 5, len(lines) - 1):
        torn.write_bytes(b"".join(lines[:kept]) + lines[kept][:20])
        resumed = run(torn)
        assert timeless(resumed.trials) == timeless(unbroken.trials)
        assert timeless(resumed.finalists) == timeless(unbroken.finalists)
        assert resumed.trials[: max(kept - 1, 0)] == unbroken.trials[: max(kept - 1, 0)]  # taken from the file
        assert len(torn.read_bytes().splitlines()) == len(lines)


def test_processes_side_by_side_find_the_same():
    assert timeless(run(workers=2, climb=replace(SMALL, trials=3)).trials) == timeless(run().trials[:3])


def test_damage_and_other_runs_are_errors(tmp_path):
    path = tmp_path / "trials.jsonl"
    trial = asdict(run(path).trials[1])
    lines = path.read_text().splitlines(keepends=True)

    def complaint(*changed, **arguments):
        path.write_text("".join(changed))
        with pytest.raises(ValueError, match=r"trials\.jsonl") as error:
            run(path, **arguments)
        assert path.read_text() == "".join(changed)
        return str(error.value)

    assert "line 2: WeightTrial.__init__() missing 5 required" in complaint(lines[0], '{"weights": {}}\n')
    assert "line 2: mean is 'high'; expected float" in complaint(lines[0], json.dumps(trial | {"mean": "high"}) + "\n")
    assert "another run: settings.slack is" in complaint(*lines, climb=replace(SMALL, slack=2))


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"only": ["corner", "corners"]}, "weight is 'corners'; expected one of"),
        ({"workers": 0}, "workers is 0"),
        ({"by": "attack"}, "by is 'attack'; expected one of 'score', 'max_tile'"),
        ({"out": "."}, "no regular file; expected"),
        *(
            ({"climb": Climb(**wrong)}, next(iter(wrong)))
            for wrong in ({"step": -1}, {"unit": -1}, {"passes": 0}, {"games": 0}, {"slack": -1}, {"trials": 0})
        ),
    ],
)
def test_bad_arguments(changed, complaint):
    with pytest.raises(ValueError, match=complaint):
        run(**changed)


def test_the_player_behind_keys_is_tuned_by_any_figure_of_so_many_pieces(capsys):
    match = Match.read("mergefall/TetrisKeys-v0", max_pieces=12)
    options = {"of": {"player": "tetris/greedy", "heuristic": "bcts"}}
    found = tune("tetris/keys", options, match, Climb(games=2, trials=3), by="pieces", only=["holes"])
    with_it = {"of": options["of"] | {"heuristic": found.heuristic}}
    assert [trial.weights["holes"] for trial in found.trials] == [-13.08335, -6.54167, -19.625]
    assert {trial.games for trial in found.finalists} == {20}
    assert make("tetris/keys", **with_it).of.heuristic.holes == found.finalists[0].weights["holes"]
    assert {trial.mean for trial in found.trials} == {12}
    assert "20 of 20 games, best 12.0" in capsys.readouterr().err


def test_a_heuristic_of_ones_own_keeps_the_name_that_make_takes(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "my_corner.py").write_text(
        "from typing import ClassVar\nfrom mergefall.game2048 import HEURISTICS\n\n"
        "class Corner(HEURISTICS['monotone-smooth'].__class__):\n    name: ClassVar[str] = 'corner'\n"
    )
    found = tune("2048/greedy", {"heuristic": "my_corner:Corner"}, MATCH, replace(SMALL, trials=2), progress=False)
    assert found.heuristic["name"] == "my_corner:Corner"
    assert make("2048/greedy", heuristic=found.heuristic).heuristic.corner == found.finalists[0].weights["corner"]


def found_by(record):
    """The first line of a record of `mergefall tune` that the package ships, and the weights that won its finals."""
    packed = (TUNED / f"{record}.jsonl.gz").read_bytes()
    header, *trials = [json.loads(line) for line in gzip.decompress(packed).splitlines()]
    finals = [trial for trial in trials if trial["seed"] == 750_000]
    return header, max(finals, key=lambda trial: trial["mean"])["weights"]


@pytest.mark.parametrize(("name", "label"), [("a2", "default "), ("b2", "b "), ("c3", "c ")])
def test_the_suite_of_prairie_fire_plays_what_its_records_found(name, label):
    header, weights = found_by(f"prairie-fire-{name}")
    found = heuristic(with_weights(header["options"]["heuristic"], weights))
    entries = [entry for entry in load_suite("prairie-fire").contests[0].players if entry.label.startswith(label)]
    assert [entry.options["depth"] for entry in entries] == [2, 3]
    for entry in entries:
        assert heuristic(entry.options["heuristic"]).weight_vector().tolist() == found.weight_vector().tolist()


def test_two_tetrad_plays_with_what_its_record_found():
    header, weights = found_by("two-tetrad")
    start = {name: header["options"]["evaluation"][name] for name in TwoTetrad.term_names}
    assert start == TwoTetrad.vectors["start"]
    assert weights == TwoTetrad.vectors["tuned"]
    assert make("tetris/two-tetrad").heuristic == TwoTetrad(**weights)
