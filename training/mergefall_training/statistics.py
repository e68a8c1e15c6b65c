"""Estimates with honest intervals: how well a player plays, and how surely we know it.

Three aggregates with bootstrap intervals (mean, median, interquartile mean), after Agarwal et al., "Deep Reinforcement
Learning at the Edge of the Statistical Precipice" (NeurIPS 2021), and Wilson's interval for rates (JASA 22, 1927).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

CONFIDENCE = 0.95
# Resampled values held in memory at a time (8 bytes each); more are worked through in chunks.
_CHUNK = 4_000_000


@dataclass(frozen=True)
class Interval:
    """A point estimate and the ends of its confidence interval; NaN ends where the data cannot tell."""

    value: float
    low: float
    high: float


class Statistic(Protocol):
    """A function of samples along an axis: ``np.mean``, ``np.median``, `interquartile_mean`."""

    def __call__(self, samples: NDArray[np.float64], /, *, axis: int) -> NDArray[np.float64]: ...


def interquartile_mean(samples: ArrayLike, *, axis: int = -1) -> NDArray[np.float64]:
    """Mean of the middle half: the lowest and the highest ``floor(n / 4)`` samples are left out.

    Far less moved by a lucky game than the mean, and far less noisy than the median (Agarwal et al. 2021).

    >>> float(interquartile_mean([0, 1, 2, 3, 4, 5, 6, 1000]))
    3.5
    """
    ordered = np.sort(np.asarray(samples, dtype=np.float64), axis=axis)
    n = ordered.shape[axis]
    return np.take(ordered, range(n // 4, n - n // 4), axis=axis).mean(axis=axis)


def bootstrap(
    statistic: Statistic, *strata: ArrayLike, confidence: float = CONFIDENCE, resamples: int = 2000, seed: int = 0
) -> Interval:
    """A statistic of all samples with its stratified-bootstrap percentile interval.

    Each stratum (a run or a task: 1-D samples) is resampled with replacement within itself, then all are pooled
    (Agarwal et al. 2021); one stratum gives the plain bootstrap (Efron 1979). Fewer than two samples in a stratum
    say nothing about its spread, so the interval's ends are NaN. Percentile intervals of a handful of samples are
    too narrow; from about 30 on they cover as promised.

    >>> bootstrap(np.mean, [3, 3, 3, 3])
    Interval(value=3.0, low=3.0, high=3.0)
    """
    arrays = [np.asarray(stratum, dtype=np.float64) for stratum in strata]
    if not arrays or any(array.ndim != 1 or not len(array) for array in arrays):
        raise ValueError(f"expected strata of 1-D, non-empty samples; got shapes {[a.shape for a in arrays]}")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence is {confidence}; expected a share between 0 and 1, such as 0.95")
    value = float(statistic(np.concatenate(arrays), axis=-1))
    if min(map(len, arrays)) < 2:
        return Interval(value, math.nan, math.nan)
    rng = np.random.default_rng(seed)
    step = max(1, _CHUNK // sum(map(len, arrays)))
    estimates = []
    for start in range(0, resamples, step):
        rows = min(step, resamples - start)
        resampled = [array[rng.integers(len(array), size=(rows, len(array)))] for array in arrays]
        estimates.append(statistic(np.concatenate(resampled, axis=1), axis=-1))
    tail = (1 - confidence) / 2
    low, high = np.quantile(np.concatenate(estimates), [tail, 1 - tail])
    return Interval(value, float(low), float(high))


def wilson(successes: int, trials: int, *, confidence: float = CONFIDENCE) -> Interval:
    """A rate with Wilson's score interval, which stays inside [0, 1] and is honest at 0 % and 100 % (Wilson 1927).

    >>> rate = wilson(100, 100)
    >>> print(f"{rate.value:.0%} ({rate.low:.1%} to {rate.high:.1%})")
    100% (96.3% to 100.0%)
    """
    if not 0 <= successes <= trials or trials == 0:
        raise ValueError(f"expected 0 <= successes <= trials and trials > 0; got {successes} of {trials}")
    z2 = NormalDist().inv_cdf((1 + confidence) / 2) ** 2
    rate = successes / trials
    centre = (rate + z2 / (2 * trials)) / (1 + z2 / trials)
    half = math.sqrt(z2 * (rate * (1 - rate) / trials + z2 / (4 * trials**2))) / (1 + z2 / trials)
    # At the ends the bound is the rate itself; rounding must not push it past.
    return Interval(rate, min(rate, max(0.0, centre - half)), max(rate, min(1.0, centre + half)))
