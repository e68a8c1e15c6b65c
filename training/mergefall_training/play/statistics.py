"""Estimates with intervals: how well a player plays, and how certain that is.

Many are those of Agarwal et al., "Deep Reinforcement Learning at the Edge of the Statistical Precipice" (NeurIPS 2021).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
import scipy
from mergefall.typing import Floats
from numpy.typing import ArrayLike

CONFIDENCE = 0.95
# Resampled values (8 bytes each) in memory at a time; larger resamples are split into chunks.
_CHUNK = 4_000_000
_BEYOND = 10  # resampled values beyond each end of an interval, at least


@dataclass(frozen=True)
class Estimate:
    """A point estimate and the ends of its confidence interval.

    An end is NaN if the data allow no estimate, and infinite if they set no bound.

    >>> print(Estimate(10457.1, 7080.4, 13833.9), wilson(1, 2))
    10.5k [7.08k, 13.8k] 50% [9%, 91%]
    """

    value: float
    low: float
    high: float

    def texts(self) -> tuple[str, str, str]:
        """The three numbers as text."""
        return short(self.value), short(self.low), short(self.high)

    def __str__(self) -> str:
        value, low, high = self.texts()
        if not math.isfinite(self.value):
            return f"above {low}" if self.value > 0 else "unknown"
        return value if math.isnan(self.low) else f"{value} [{low}, {high}]"


class Share(Estimate):
    """An estimate of a probability, in per cent."""

    def texts(self) -> tuple[str, str, str]:
        return percent(self.value), percent(self.low), percent(self.high)


def short(number: float) -> str:
    """A number to three digits.

    >>> [short(x) for x in (0.0656, 7, 66.96, 387.2, 27345, 12345678, float("inf"))]
    ['0.0656', '7.00', '67.0', '387', '27.3k', '12.3M', 'inf']
    """
    units = (("M", 1e6), ("k", 1e3), ("", 1))
    unit, size = next(pair for pair in units if abs(number) >= 0.9995 * pair[1] or pair[1] == 1)
    return f"{number:.3g}" if abs(number) < 1 else f"{number / size:#.3g}".rstrip(".") + unit * math.isfinite(number)


def percent(share: float) -> str:
    """A share in whole per cent.

    >>> percent(0.126)
    '13%'
    """
    return f"{share:.0%}"


def interquartile_mean(samples: ArrayLike, *, axis: int = -1) -> Floats:
    """Mean of the middle half: the mean without the lowest and the highest ``floor(n / 4)`` samples.

    A lucky game moves it far less than the mean, and it is far less noisy than the median (Agarwal et al. 2021).

    >>> float(interquartile_mean([0, 1, 2, 3, 4, 5, 6, 1000]))
    3.5
    """
    ordered = np.sort(np.asarray(samples, dtype=np.float64), axis=axis)
    n = ordered.shape[axis]
    return np.take(ordered, range(n // 4, n - n // 4), axis=axis).mean(axis=axis)


def bootstrap(
    statistic: Callable[..., Any], *samples: ArrayLike, confidence: float = CONFIDENCE, resamples: int = 2000
) -> Estimate:
    """A statistic of one or more samples with its bootstrap percentile interval (Efron 1979).

    `statistic` takes the samples as arrays, and `axis=-1`. Each sample is 1-D, and resampled independently, with
    replacement. There are more `resamples` where fewer than ten would lie beyond an end. With fewer than two values in
    a sample the ends of the interval are NaN. Percentile intervals of few values are too narrow; from about 30 they
    cover as promised.

    >>> bootstrap(np.mean, [3, 3, 3, 3])
    Estimate(value=3.0, low=3.0, high=3.0)
    """
    arrays = [np.asarray(sample, dtype=np.float64) for sample in samples]
    if not arrays or any(array.ndim != 1 or not len(array) for array in arrays):
        raise ValueError(f"expected 1-D, non-empty samples; got shapes {[array.shape for array in arrays]}")
    tail = _tail(confidence)
    value = float(statistic(*arrays, axis=-1))
    if min(map(len, arrays)) < 2:
        return Estimate(value, math.nan, math.nan)
    rng = np.random.default_rng(0)
    resamples = max(resamples, math.ceil(_BEYOND / tail))
    step = max(1, _CHUNK // sum(map(len, arrays)))
    estimates = []
    for start in range(0, resamples, step):
        rows = min(step, resamples - start)
        resampled = [array[rng.integers(len(array), size=(rows, len(array)))] for array in arrays]
        estimates.append(statistic(*resampled, axis=-1))
    low, high = np.quantile(np.concatenate(estimates), [tail, 1 - tail])
    return Estimate(value, float(low), float(high))


def ratio(a: ArrayLike, b: ArrayLike, *, confidence: float = CONFIDENCE) -> Estimate:
    """The mean of samples `a` divided by the mean of `b`, with its bootstrap percentile interval.

    `a` and `b` are not negative. The ratio is infinite if the mean of `b` is 0, and NaN if both means are.

    >>> ratio([6, 6, 6], [2, 2])
    Estimate(value=3.0, low=3.0, high=3.0)
    """

    def share(a: Floats, b: Floats, axis: int) -> Floats:
        # The share, because quantiles between two infinite ratios do not exist, but those between two shares of 1 do.
        mean_a, mean_b = a.mean(axis), b.mean(axis)
        with np.errstate(invalid="ignore"):
            return mean_a / (mean_a + mean_b)

    shares = bootstrap(share, a, b, confidence=confidence)
    return Estimate(*(_quotient(p, 1 - p) for p in (shares.value, shares.low, shares.high)))


def rate(total: ArrayLike, units: ArrayLike) -> Estimate:
    """The sum of `total` divided by that of `units` over games, with its bootstrap interval; games are resampled.

    >>> rate([2, 4, 6], [4, 8, 12])
    Estimate(value=0.5, low=0.5, high=0.5)
    """
    total, units = np.asarray(total, np.float64), np.asarray(units, np.float64)

    def share(games: Floats, axis: int) -> Floats:
        chosen = games.astype(np.int64)
        with np.errstate(invalid="ignore", divide="ignore"):
            return total[chosen].sum(axis) / units[chosen].sum(axis)

    return bootstrap(share, np.arange(len(total)))


def difference(a: ArrayLike, b: ArrayLike, *, confidence: float = CONFIDENCE) -> Estimate:
    """The mean of a − b over pairs, with its bootstrap percentile interval; whole pairs are resampled.

    >>> difference([5, 7, 9], [4, 6, 8])
    Estimate(value=1.0, low=1.0, high=1.0)
    """
    return bootstrap(np.mean, np.subtract(a, b), confidence=confidence)


def superiority(a: ArrayLike, b: ArrayLike, *, confidence: float = CONFIDENCE) -> Share:
    """The probability that a is higher than b in a pair, ties counting half, with Wilson's interval.

    Ties make the interval wider than it need be.

    >>> superiority([5, 7, 9, 2], [4, 6, 9, 3]).value
    0.625
    """
    signs = np.sign(np.subtract(a, b))
    return wilson(float((signs + 1).sum() / 2), len(signs), confidence=confidence)


def improvement(a: ArrayLike, b: ArrayLike) -> Share:
    """The probability that a result of a is higher than one of b, ties counting half: the probability of improvement.

    Unlike in `superiority`, results are no pairs, and their numbers may differ, as with training runs. The estimate is
    the share of all pairs (Mann & Whitney 1947; Agarwal et al. 2021). A bootstrap of three or five runs would be too
    narrow, and without width where all of a are higher. So the ends are those of Newcombe's method 5 (Statistics in
    Medicine 25, 2006, 559-573): the probabilities p whose distance from the estimate is z standard errors at p.

    >>> gain = improvement([5, 6, 7, 8, 9], [1, 2, 3, 4, 5.5])
    >>> print(gain)
    96% [59%, 100%]
    """
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    higher, equal = first[:, None] > second, first[:, None] == second  # results may be infinite
    value = float((higher + equal / 2).mean())
    z = NormalDist().inv_cdf(1 - _tail(CONFIDENCE))

    def beyond(p: float) -> float:
        spread = 1 + ((len(first) + len(second)) / 2 - 1) * ((1 - p) / (2 - p) + p / (1 + p))
        return (p - value) ** 2 - z**2 * p * (1 - p) * spread / (len(first) * len(second))

    # A little beside the estimate, because at 0 and 1 themselves no distance is beyond.
    return Share(
        value,
        *(
            end if value == end else scipy.optimize.brentq(beyond, end, value + (end - value) * 1e-9)
            for end in (0.0, 1.0)
        ),
    )


def _tail(confidence: float) -> float:
    """The probability beyond each end of an interval."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence is {confidence}; expected a share between 0 and 1, such as 0.95")
    return (1 - confidence) / 2


def wilson(successes: float, trials: int, *, confidence: float = CONFIDENCE) -> Share:
    """A rate with Wilson's score interval (1927), which stays inside [0, 1] and is valid at 0 % and 100 %.

    `successes` may hold halves, for ties.

    >>> print(wilson(100, 100))
    100% [96%, 100%]
    """
    if not 0 <= successes <= trials or trials == 0:
        raise ValueError(f"expected 0 <= successes <= trials and trials > 0; got {successes} of {trials}")
    z2 = NormalDist().inv_cdf(1 - _tail(confidence)) ** 2
    rate = successes / trials
    centre = (rate + z2 / (2 * trials)) / (1 + z2 / trials)
    half = math.sqrt(z2 * (rate * (1 - rate) / trials + z2 / (4 * trials**2))) / (1 + z2 / trials)
    # At 0 % and 100 % the bound is the rate itself; rounding must not push it further.
    return Share(rate, min(rate, max(0.0, centre - half)), max(rate, min(1.0, centre + half)))


# -- players that meet in pairs ---------------------------------------------------------------------------------------

ELO = 400 / math.log(10)  # points of the Elo scale for a factor of e in the odds
_SAMPLES = 4000  # of ratings
_CLOSE, _STEPS = 1e-6, 100  # Elo points; steps, of one or two factors of e each where ratings are far apart


def bradley_terry(points: ArrayLike) -> Floats:
    """Ratings in Elo points, with mean 0, that make the results of matches most likely.

    A player rated r points above another one wins with odds of 10^(r/400) (Bradley & Terry, Biometrika 39, 1952).

    Args:
        points: float64[..., n, n], matches that the player of a row won against that of a column, draws counting half.
            Ratings are finite if no group of players won all matches against the others.

    >>> np.round(bradley_terry([[0, 10], [1, 0]]))
    array([ 200., -200.])
    """
    points = np.asarray(points, np.float64)
    n, matches = points.shape[-1], points + points.swapaxes(-1, -2)
    ratings = np.zeros(points.shape[:-1])
    for _ in range(_STEPS):  # Newton's method on a concave function
        wins = matches / (1 + np.exp((ratings[..., None, :] - ratings[..., None]) / ELO))
        slope = (points - wins).sum(-1)
        spread = wins * wins.swapaxes(-1, -2) / np.maximum(matches, 1e-300)
        curve = np.eye(n) * (spread.sum(-1)[..., None] + 1e-12) - spread + 1 / n  # the last terms make it invertible
        step = np.clip(ELO * np.linalg.solve(curve, slope[..., None])[..., 0], -ELO, ELO)
        ratings = ratings + step
        if np.abs(step).max() < _CLOSE:
            break
    return ratings - ratings.mean(-1, keepdims=True)


def elo_ratings(points: ArrayLike, anchor: int | None = None) -> list[Estimate]:
    """The ratings of players in Elo points, with 95 % intervals.

    Each player gets half a win and half a loss more, shared among its pairs. So whoever won or lost all matches has a
    finite rating, and other ratings hardly change. The interval holds the middle 95 % of the ratings that follow if the
    share of wins of each pair is drawn from Beta(wins, losses): a Bayesian bootstrap of matches (Rubin, Annals of
    Statistics 9, 1981), which has a width also where a player won all matches. With draws it is wider than need be.

    Args:
        points: float64[n, n], as for `bradley_terry`.
        anchor: the player whose rating is 0. Default: none, the mean is 0.

    >>> print(elo_ratings([[0, 50], [50, 0]])[0])
    0 [-33.8, 33.6]
    """
    given = np.asarray(points, np.float64)
    n, ones = len(given), np.eye(len(given))
    won = given * (1 - ones) + 0.5 / (n - 1)
    shares = np.triu(np.random.default_rng(0).beta(won, won.T, (_SAMPLES, n, n)), 1)
    drawn = (won + won.T) * (shares + np.tril(1 - shares.swapaxes(1, 2), -1))
    found = [bradley_terry(one) for one in (won * (1 - ones), drawn)]
    if anchor is not None:
        found = [ratings - ratings[..., anchor, None] for ratings in found]
    ends = np.quantile(found[1], [_tail(CONFIDENCE), 1 - _tail(CONFIDENCE)], axis=0)
    return [Estimate(*map(float, three)) for three in zip(found[0], *ends, strict=True)]


# -- a handful of training runs ---------------------------------------------------------------------------------------


def mean_of_runs(results: ArrayLike) -> Estimate:
    """The mean of one result for each training run, with Student's interval (Student, Biometrika 6, 1908).

    Runs differ by their training seeds; more games per agent do not make that difference smaller. A bootstrap of three
    or five runs would be too narrow. For a single run the ends of the interval are NaN.

    >>> print(mean_of_runs([9, 10, 11]))
    10.0 [7.52, 12.5]
    """
    results = np.asarray(results, dtype=np.float64)
    mean, count = float(results.mean()), len(results)
    if count < 2 or not np.isfinite(results).all():  # a mean is infinite if a cap ended all games
        return Estimate(mean, math.nan, math.nan)
    reach = float(results.std(ddof=1) / math.sqrt(count) * scipy.special.stdtrit(count - 1, 1 - _tail(CONFIDENCE)))
    return Estimate(mean, mean - reach, mean + reach)


# -- games that a cap may end -----------------------------------------------------------------------------------------


def exponential_mean(total: float, deaths: int) -> Estimate:
    """The mean length of games, some of which a cap ended: total / deaths.

    `total` is the sum of all lengths, `deaths` the number of games that no cap ended. This is the maximum-likelihood
    estimate for exponential lengths. Its interval is exact (`poisson_mean` of the deaths); without a death there is
    only a lower bound. Games of Tetris are nearly exponential (Thiery & Scherrer, ICGA Journal 32, 2009).

    >>> exponential_mean(1000, 10).value
    100.0
    """
    expected = poisson_mean(deaths)
    if deaths == 0:
        return Estimate(math.inf, total / expected.high, math.inf)
    return Estimate(total / deaths, total / expected.high, total / expected.low)


def exponential_ratio(
    total_a: float, deaths_a: int, total_b: float, deaths_b: int, *, confidence: float = CONFIDENCE
) -> Estimate:
    """The mean length of games a divided by that of games b, with an exact interval.

    Given the total number of deaths, the deaths of a are binomial with p = 1 / (1 + ratio · total_b / total_a)
    (Przyborowski & Wilenski, Biometrika 1940); the interval of p is Clopper and Pearson's.

    >>> exponential_ratio(3000, 10, 100, 10).value
    30.0
    """
    if deaths_a + deaths_b == 0:
        return Estimate(math.nan, 0.0, math.inf)
    share = clopper_pearson(deaths_a, deaths_a + deaths_b, confidence=confidence)
    return Estimate(*(_quotient(total_a * (1 - p), total_b * p) for p in (share.value, share.high, share.low)))


def _quotient(a: float, b: float) -> float:
    return a / b if b else math.inf if a else math.nan


def poisson_mean(count: int, *, confidence: float = CONFIDENCE) -> Estimate:
    """The mean of a Poisson variable that was observed as `count`, with its exact interval (Garwood, Biometrika 1936).

    >>> print(poisson_mean(10))
    10.0 [4.80, 18.4]
    """
    tail = _tail(confidence)
    low = float(scipy.special.gammaincinv(count, tail)) if count else 0.0
    return Estimate(float(count), low, float(scipy.special.gammainccinv(count + 1, tail)))


def clopper_pearson(successes: int, trials: int, *, confidence: float = CONFIDENCE) -> Share:
    """A rate with its exact interval, which covers at least as often as stated (Clopper & Pearson, Biometrika 1934).

    >>> print(clopper_pearson(0, 10))
    0% [0%, 31%]
    """
    tail, others = _tail(confidence), trials - successes
    low = float(scipy.special.betaincinv(successes, others + 1, tail)) if successes else 0.0
    high = float(scipy.special.betaincinv(successes + 1, others, 1 - tail)) if others else 1.0
    return Share(successes / trials, low, high)
