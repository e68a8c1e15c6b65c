"""Estimates against definitions written out differently, and against published values."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mergefall_training.statistics import bootstrap, interquartile_mean, wilson

samples = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40)


@given(samples)
def test_interquartile_mean_is_the_mean_of_what_remains_after_dropping_the_quarters(values):
    kept = sorted(values)
    for _ in range(len(values) // 4):
        kept = kept[1:-1]
    assert interquartile_mean(values) == pytest.approx(math.fsum(kept) / len(kept), abs=1e-6)


def test_interquartile_mean_works_along_an_axis():
    table = np.array([[1.0, 2, 3, 4], [10, 30, 20, 90]])
    np.testing.assert_array_equal(interquartile_mean(table, axis=-1), [2.5, 25.0])
    np.testing.assert_array_equal(interquartile_mean(table.T, axis=0), [2.5, 25.0])


# Newcombe (Statistics in Medicine 17, 1998), Table I, method 3.
@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilson_gives_the_published_intervals(successes, trials, low, high):
    interval = wilson(successes, trials)
    assert (round(interval.low, 4), round(interval.high, 4)) == (low, high)


@given(st.integers(0, 200), st.integers(1, 200))
def test_wilson_bounds_solve_the_score_equation(successes, trials):
    successes = min(successes, trials)
    interval = wilson(successes, trials)
    assert 0 <= interval.low <= interval.value <= interval.high <= 1
    z = 1.959963984540054
    for bound in {interval.low, interval.high} - {0.0, 1.0}:
        assert abs(interval.value - bound) == pytest.approx(z * math.sqrt(bound * (1 - bound) / trials), abs=1e-9)


def test_bootstrap_of_a_mean_agrees_with_the_normal_approximation():
    values = np.random.default_rng(1).exponential(size=2000)
    interval = bootstrap(np.mean, values, resamples=4000)
    error = values.std() / math.sqrt(len(values))
    assert interval.value == pytest.approx(values.mean())
    assert interval.low == pytest.approx(values.mean() - 1.96 * error, abs=0.15 * error)
    assert interval.high == pytest.approx(values.mean() + 1.96 * error, abs=0.15 * error)


def test_bootstrap_covers_the_truth_about_as_often_as_it_says():
    rng = np.random.default_rng(2)
    hits = 0
    for trial in range(400):
        interval = bootstrap(np.mean, rng.exponential(size=60), resamples=400, confidence=0.9, seed=trial)
        hits += interval.low <= 1 <= interval.high
    assert 0.84 <= hits / 400 <= 0.95


def test_strata_are_resampled_within_themselves():
    low, high = np.zeros(10), np.full(10, 100.0)
    stratified = bootstrap(np.mean, low, high)
    pooled = bootstrap(np.mean, np.concatenate([low, high]))
    assert stratified.low == stratified.high == 50
    assert pooled.low < 45 < 55 < pooled.high


def test_bootstrap_is_seeded_and_chunks_do_not_change_its_kind(monkeypatch):
    values = np.random.default_rng(3).normal(size=50)
    assert bootstrap(np.median, values, seed=1) == bootstrap(np.median, values, seed=1)
    assert bootstrap(np.median, values, seed=1) != bootstrap(np.median, values, seed=2)
    whole = bootstrap(np.mean, values)
    monkeypatch.setattr("mergefall_training.statistics._CHUNK", 500)
    assert bootstrap(np.mean, values) == whole  # the same stream, read in pieces


def test_one_sample_gives_no_interval():
    interval = bootstrap(np.mean, [7])
    assert interval.value == 7
    assert math.isnan(interval.low)
    assert math.isnan(interval.high)


@pytest.mark.parametrize("strata", [(), ([],), ([1, 2], []), ([[1, 2]],)])
def test_bootstrap_refuses_what_is_no_sample(strata):
    with pytest.raises(ValueError, match="non-empty"):
        bootstrap(np.mean, *strata)


@pytest.mark.parametrize(("successes", "trials"), [(1, 0), (-1, 5), (6, 5), (0, 0)])
def test_wilson_refuses_impossible_counts(successes, trials):
    with pytest.raises(ValueError, match=f"{successes} of {trials}"):
        wilson(successes, trials)
