"""Estimates against definitions written out differently, and against published values."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mergefall_training.play.statistics import (
    Estimate,
    bootstrap,
    bradley_terry,
    clopper_pearson,
    elo_ratings,
    exponential_mean,
    exponential_ratio,
    improvement,
    interquartile_mean,
    mean_of_runs,
    poisson_mean,
    ratio,
    superiority,
    wilson,
)

samples = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40)


@given(samples)
def test_interquartile_mean_is_the_mean_of_what_remains_after_dropping_the_quarters(values):
    kept = sorted(values)
    for _ in range(len(values) // 4):
        kept = kept[1:-1]
    assert interquartile_mean(values) == pytest.approx(math.fsum(kept) / len(kept), abs=1e-6)


# Newcombe (Statistics in Medicine 17, 1998), Table I, method 5.
@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [(81, 263, 0.2527, 0.3676), (0, 20, 0.0, 0.1684), (1, 29, 0.0009, 0.1776)],
)
def test_shares_have_the_published_intervals(successes, trials, low, high):
    found, mirrored = clopper_pearson(successes, trials), clopper_pearson(trials - successes, trials)
    assert (round(found.low, 4), round(found.high, 4)) == (low, high)
    assert (1 - mirrored.high, 1 - mirrored.low) == pytest.approx((found.low, found.high), abs=1e-12)


@given(st.integers(0, 200), st.integers(1, 200))
def test_wilson_bounds_solve_the_score_equation(successes, trials):
    successes = min(successes, trials)
    interval = wilson(successes, trials)
    assert 0 <= interval.low <= interval.value <= interval.high <= 1
    z = 1.959963984540054
    for bound in {interval.low, interval.high} - {0.0, 1.0}:
        assert abs(interval.value - bound) == pytest.approx(z * math.sqrt(bound * (1 - bound) / trials), abs=1e-9)


# Three tasks with ten runs each; expected values from rliable 1.2.0 (50,000 resamples).
RUNS = [
    [13.5, 24.8, 15.2, 45.5, 12.4, 8.4, 14.7, 26.5, 24.7, 17.7],
    [10.4, 35.4, 13.6, 23.0, 44.7, 19.3, 15.7, 19.5, 30.4, 12.3],
    [17.7, 21.2, 29.2, 10.8, 22.2, 11.2, 14.1, 15.0, 8.8, 18.4],
]


@pytest.mark.parametrize(
    ("statistic", "value", "low", "high"),
    [(interquartile_mean, 17.84375, 15.01875, 21.28125), (np.mean, 19.87666667, 16.80666667, 23.27666667)],
)
def test_the_bootstrap_of_strata_agrees_with_rliable(statistic, value, low, high):
    found = bootstrap(
        lambda *strata, axis: statistic(np.concatenate(strata, axis=axis), axis=axis), *RUNS, resamples=20_000
    )
    assert found.value == pytest.approx(value)
    assert [found.low, found.high] == pytest.approx([low, high], abs=0.02 * (high - low))


@pytest.mark.parametrize(("chance", "pairs"), [(improvement, itertools.product), (superiority, zip)])
@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), min_size=2, max_size=40))
def test_the_chance_of_more_counts_pairs_and_mirrors(chance, pairs, results):
    a, b = zip(*results, strict=True)
    found, mirrored = chance(a, b), chance(b, a)
    assert found.value == pytest.approx(np.mean([(x > y) + (x == y) / 2 for x, y in pairs(a, b)]))
    assert 0 <= found.low <= found.value <= found.high <= 1
    assert found.low < found.high  # also where all of one are higher
    assert [mirrored.low, mirrored.high] == pytest.approx([1 - found.high, 1 - found.low])


def test_bootstrap_is_seeded_and_chunks_do_not_change_its_kind(monkeypatch):
    values = np.random.default_rng(3).normal(size=50)
    whole = bootstrap(np.mean, values)
    monkeypatch.setattr("mergefall_training.play.statistics._CHUNK", 500)
    assert bootstrap(np.mean, values) == whole  # the same stream, read in pieces


@pytest.mark.parametrize("values", [([1, 2, 3, 4], [2, 2, 5]), ([0, 0, 1], [7, 8])])
def test_a_ratio_of_means_and_its_inverse(values):
    a, b = values
    there = ratio(a, b)
    assert there.value == pytest.approx(np.mean(a) / np.mean(b))
    assert there.low < there.value < there.high
    assert ratio(np.multiply(a, 1000), b).high == pytest.approx(1000 * there.high)


def test_a_ratio_over_nothing_has_no_bound():
    assert ratio([1, 2], [0, 0]).value == math.inf
    assert math.isnan(ratio([0, 0], [0, 0]).value)
    some = ratio([5, 5], [0, 1])
    assert (some.value, some.low, some.high) == pytest.approx((10, 5, math.inf))


# -- games that a cap may end -----------------------------------------------------------------------------------------


@given(st.integers(0, 120), st.floats(0.05, 0.999))
def test_poisson_limits_leave_half_the_rest_on_either_side(count, confidence):
    def at_most(n, mean):
        return math.fsum(math.exp(-mean) * mean**i / math.factorial(i) for i in range(n + 1))

    interval = poisson_mean(count, confidence=confidence)
    tail = (1 - confidence) / 2
    assert at_most(count, interval.high) == pytest.approx(tail, rel=1e-6)
    if count:
        assert 1 - at_most(count - 1, interval.low) == pytest.approx(tail, rel=1e-6)


@pytest.mark.parametrize("count", [1000, 300_000])
def test_poisson_limits_of_large_counts_agree_with_wilson_and_hilferty(count):
    def cubed(n, z):
        return n * (1 - 1 / (9 * n) + z / (3 * math.sqrt(n))) ** 3

    interval = poisson_mean(count)
    assert interval.low == pytest.approx(cubed(count, -1.959964), rel=1e-6)
    assert interval.high == pytest.approx(cubed(count + 1, 1.959964), rel=1e-6)


def test_a_ratio_of_capped_games_and_its_inverse():
    there, back = exponential_ratio(3000, 7, 100, 20), exponential_ratio(100, 20, 3000, 7)
    assert there.value == pytest.approx((3000 / 7) / (100 / 20))
    assert (back.low, back.value, back.high) == pytest.approx((1 / there.high, 1 / there.value, 1 / there.low))
    undying = exponential_ratio(3000, 0, 100, 20)
    assert (undying.value, undying.high) == (math.inf, math.inf)
    assert 0 < undying.low < math.inf
    nothing = exponential_ratio(3000, 0, 100, 0)
    assert math.isnan(nothing.value)
    assert (nothing.low, nothing.high) == (0, math.inf)


@pytest.mark.parametrize(
    ("estimate", "complaint"),
    [
        (lambda: poisson_mean(3, confidence=95), "confidence is 95"),
        (lambda: ratio([1], []), "non-empty"),
        (lambda: bootstrap(np.mean, [[1, 2]]), "non-empty"),
        (lambda: wilson(6, 5), "6 of 5"),
        (lambda: wilson(0, 0), "0 of 0"),
    ],
)
def test_impossible_figures_are_named(estimate, complaint):
    with pytest.raises(ValueError, match=complaint):
        estimate()


# The 97.5 % quantiles of Student's t, as statistical tables print them.
@pytest.mark.parametrize(("runs", "quantile"), [(2, 12.706), (3, 4.303), (5, 2.776), (31, 2.042)])
def test_the_mean_of_runs_has_students_interval(runs, quantile):
    results = np.random.default_rng(runs).normal(100, 20, runs)
    mean, error = results.mean(), results.std(ddof=1) / math.sqrt(runs)
    found = mean_of_runs(results)
    assert found.value == pytest.approx(mean)
    assert (found.high - mean) / error == pytest.approx(quantile, abs=5e-4)
    assert (mean - found.low) / error == pytest.approx(quantile, abs=5e-4)


def test_one_result_says_nothing_of_others():
    for interval in (mean_of_runs([5]), bootstrap(np.mean, [5])):
        assert interval.value == 5
        assert math.isnan(interval.low)
        assert math.isnan(interval.high)
    assert exponential_mean(3689, 0).low == pytest.approx(1000, rel=1e-3)
    assert exponential_mean(3689, 0).value == math.inf


# -- ratings ----------------------------------------------------------------------------------------------------------

TABLES = st.integers(2, 6).flatmap(
    lambda n: st.lists(st.integers(1, 60), min_size=n * n, max_size=n * n).map(lambda w: np.reshape(w, (n, n)) / 2)
)


def hollow(points):
    return points * (1 - np.eye(len(points)))


@given(TABLES)
def test_ratings_expect_the_points_that_were_made(table):
    points = hollow(table)
    ratings = bradley_terry(points)
    expected = (points + points.T) / (1 + 10 ** ((ratings - ratings[:, None]) / 400))
    np.testing.assert_allclose(hollow(expected).sum(axis=1), points.sum(axis=1), rtol=1e-6)
    np.testing.assert_allclose(bradley_terry(np.stack([points, points.T])), [ratings, -ratings], atol=1e-4)


def test_who_lost_all_has_a_rating_with_a_wide_interval():
    lost, drawn = elo_ratings([[0, 0], [40, 0]], anchor=1), elo_ratings([[0, 20], [20, 0]], anchor=1)
    assert lost[1] == Estimate(0, 0, 0) == drawn[1]
    assert lost[0].value == pytest.approx(400 * math.log10(0.5 / 40.5))
    assert lost[0].high < -300  # the share of wins is below 8 %
    assert lost[0].low < -1200
    assert drawn[0].value == 0
    assert drawn[0].high == pytest.approx(-drawn[0].low, abs=10) == pytest.approx(113, abs=10)  # 50 % ± 16 %


def test_intervals_of_ratings_cover():
    true, rng = np.array([300.0, 100, 0, -500]), np.random.default_rng(0)
    chance = 1 / (1 + 10 ** ((true - true[:, None]) / 400))
    covered = []
    for _ in range(60):
        won = np.triu(rng.binomial(30, chance), 1)
        points = won + np.triu(30 - won, 1).T
        ratings = elo_ratings(points, anchor=2)
        covered += [
            one.low <= rating <= one.high for one, rating in zip(ratings, true, strict=True) if one.low < one.high
        ]
    assert len(covered) == 180
    assert 0.9 < np.mean(covered) < 0.99
