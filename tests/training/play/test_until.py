"""Games are played until the mean is known well enough; stopping then costs hardly any coverage."""

import numpy as np
import pytest
from mergefall_training.cli import main
from mergefall_training.play.evaluation import FIRST_LOOK, evaluate
from mergefall_training.play.records import read_records
from mergefall_training.play.statistics import Estimate, samples_for

ENV, SMALL = "mergefall/Game2048-v0", {"rows": 2, "cols": 3}


def play(count, **how):
    return evaluate("2048/greedy", ENV, count, 0, **{"env_kwargs": SMALL, "workers": 1, "progress": False, **how})


def narrow(interval, reach):
    return max(interval.high - interval.value, interval.value - interval.low) <= reach * interval.value


def test_it_stops_when_the_mean_is_known_well_enough():
    found = play(20_000, until=0.03)
    assert FIRST_LOOK < len(found.episodes) < 20_000
    assert narrow(found.mean(), 0.03)
    assert [episode.score for episode in found.episodes[:50]] == play(50).scores.tolist()


def test_it_plays_no_more_than_it_may():
    assert len(play(300, until=0.0001).episodes) == 300
    assert len(play(20, until=0.5).episodes) == 20
    assert len(play(1000, until=0.5).episodes) == FIRST_LOOK


def test_a_stopped_run_goes_on_to_the_same_end(tmp_path):
    whole = play(5000, until=0.03, out=tmp_path / "whole.jsonl")
    play(37, out=tmp_path / "part.jsonl")
    again = play(5000, until=0.03, out=tmp_path / "part.jsonl")
    assert again.scores.tolist() == whole.scores.tolist()
    assert len(read_records(tmp_path / "part.jsonl")[1]) == len(whole.episodes)


def test_more_samples_are_asked_for_as_long_as_the_interval_is_wide():
    assert samples_for(0.1, Estimate(100, 95, 105), 50) == 50
    assert samples_for(0.1, Estimate(100, 80, 105), 50) == 200
    assert samples_for(0.1, Estimate(100, 89.9, 110), 50) == 55  # a tenth more at least
    assert samples_for(0.1, Estimate(np.inf, 5, np.inf), 50) == 100
    with pytest.raises(ValueError, match="until is 0; expected a finite number above 0"):
        play(3, until=0)


def test_the_command_takes_a_share(capsys):
    main(["evaluate", "2048/greedy", "--env-option", "rows=2", "--until", "5%", "--workers", "1"])
    assert "N=" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["evaluate", "2048/greedy", "--until", "five"])
    assert "a share is 'five'; expected one such as 2% or 0.02" in capsys.readouterr().err
