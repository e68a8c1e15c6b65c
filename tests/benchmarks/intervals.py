"""How often the intervals of evaluations and comparisons cover the truth.

Thousands of real games stand for all games: their mean, median and shares are the truth. Evaluations are samples of
them, drawn with replacement, and the truth should lie in 95 % of the intervals.

    python tests/benchmarks/intervals.py                  print a table
    python tests/benchmarks/intervals.py --samples 2000   evaluations for each line of it
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from statistics import NormalDist
from typing import Any

import numpy as np
from mergefall_baselines import make
from mergefall_training import evaluate
from mergefall_training.play.statistics import (
    Estimate,
    bootstrap,
    difference,
    exponential_mean,
    exponential_ratio,
    improvement,
    interquartile_mean,
    mean_of_runs,
    ratio,
    superiority,
    wilson,
)
from numpy.typing import NDArray

Sample = Callable[[np.random.Generator], tuple[Estimate, float]]  # an interval, and the truth that it should cover
RESAMPLES = 500
GAMES = 10_000
ENV, TETRIS = "mergefall/Game2048-v0", "mergefall/Tetris-v0"


def games(player: str, cap: int | None = None, **options: object) -> NDArray[np.int64]:
    """The results of many games: int64[3, games], the headline figure, whether it ended by itself, the largest tile."""
    env, kwargs = (ENV, {}) if player.startswith("2048") else (TETRIS, {"rows": 6, "preview": 0})
    played = evaluate(make(player, **options), env, GAMES, 0, kwargs, max_episode_steps=cap)
    ended = [episode.terminated for episode in played.episodes]
    tiles = played.max_tiles if env == ENV else np.zeros(GAMES)
    return np.array([played.results, ended, tiles], dtype=np.int64)


def lines() -> Iterator[tuple[str, str, str, Sample]]:
    """The lines of the table: (interval, what was measured, N, how to draw a sample)."""
    best, other = (games("2048/expectimax", heuristic=name, depth=2) for name in ("nneonneo", "prairie-fire"))
    scores, others = best[0].astype(float), other[0].astype(float)
    big, higher = best[2] >= 2048, ((np.sign(scores - others) + 1) / 2).mean()
    what = "score of nneonneo, expectimax 2"

    def sampled(function: Callable[..., Estimate], truth: float, n: int, *arrays: NDArray[Any]) -> Sample:
        """`function` of the same n games of each array."""

        def sample(rng: np.random.Generator) -> tuple[Estimate, float]:
            seeds = rng.integers(GAMES, size=n)
            return function(*(array[seeds] for array in arrays)), truth

        return sample

    for name, statistic, sizes in (
        ("mean", np.mean, (30, 100, 300)),
        ("median", np.median, (100,)),
        ("IQM", interquartile_mean, (100,)),
    ):
        for n in sizes:
            boot = partial(bootstrap, statistic, resamples=RESAMPLES)
            yield f"`bootstrap` of the {name}", what, f"{n}", sampled(boot, float(statistic(scores)), n, scores)
    for n in (30, 100):
        rate = sampled(lambda reached: wilson(int(reached.sum()), len(reached)), big.mean(), n, big)
        yield "`wilson`", "share of its games with a tile of 2048", f"{n}", rate
    for name, function, truth in (
        ("difference", difference, (scores - others).mean()),
        ("ratio", ratio, scores.mean() / others.mean()),
        ("superiority", superiority, higher),
    ):
        versus = sampled(function, float(truth), 100, scores, others)
        yield f"`{name}`", "nneonneo beside prairie-fire, both expectimax 2", "100", versus

    def worst(alike: NDArray[np.float64]) -> Estimate:
        """Of equal players, the one with the lowest mean beside the one with the highest, as a report compares them."""
        alike = alike.reshape(10, 100)
        order = alike.mean(axis=1).argsort()
        return ratio(alike[order[0]], alike[order[-1]], confidence=1 - 0.05 / 45)

    ten = "the worst of ten equal players beside the best"
    yield "`ratio`, corrected for all 45 pairs", ten, "100", sampled(worst, 1.0, 1000, scores)

    whole, cut = games("tetris/bcts"), games("tetris/bcts", cap=150)
    weak, weak_cut = games("tetris/dellacherie"), games("tetris/dellacherie", cap=150)
    share, mean = 1 - cut[1].mean(), whole[0].mean()
    capped = sampled(lambda lines, ended: exponential_mean(lines.sum(), ended.sum()), mean, 100, *cut[:2])
    yield "`exponential_mean`", f"lines of bcts on 10×6, a cap ends {share:.0%} of the games", "100", capped

    def capped_ratio(rng: np.random.Generator) -> tuple[Estimate, float]:
        (a, ended_a, _), (b, ended_b, _) = (one[:, rng.integers(GAMES, size=100)] for one in (cut, weak_cut))
        return exponential_ratio(a.sum(), ended_a.sum(), b.sum(), ended_b.sum()), mean / weak[0].mean()

    yield "`exponential_ratio`", "bcts beside dellacherie on 10×6, with that cap", "100", capped_ratio
    for n in (3, 5):
        runs = partial(lambda n, rng: (mean_of_runs(rng.lognormal(0, 0.3, n)), float(np.exp(0.3**2 / 2))), n)
        yield "`mean_of_runs`", "lognormal results, σ = 0.3", f"{n}", runs
    apart = NormalDist().cdf(0.5**0.5)
    for n in (3, 5):
        better = partial(lambda n, rng: (improvement(rng.normal(1, 1, n), rng.normal(0, 1, n)), apart), n)
        yield "`improvement`", "normal results, one standard deviation apart", f"{n} and {n}", better


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--samples", type=int, default=4000, help="evaluations for each line (default: %(default)s)")
    samples = parser.parse_args().samples
    print("| interval | of | N | covers the truth in | too high | too low |\n| --- | --- | --- | --- | --- | --- |")
    for name, what, n, sample in lines():
        rng = np.random.default_rng(0)
        found = [sample(rng) for _ in range(samples)]
        above, below = (sum(sign * i.low > sign * t if sign > 0 else i.high < t for i, t in found) for sign in (1, -1))
        shares = [f"{100 * count / samples:.1f} %" for count in (samples - above - below, above, below)]
        print(f"| {name} | {what} | {n} | {' | '.join(shares)} |", flush=True)


if __name__ == "__main__":
    main()
