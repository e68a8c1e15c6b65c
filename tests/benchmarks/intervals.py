"""How often the intervals of evaluations and comparisons cover the truth.

Thousands of real games stand for all games: their mean, median and shares are the truth. Evaluations are samples of
them, drawn with replacement, and the truth should lie in 95 % of the intervals.

    python tests/benchmarks/intervals.py                  print a table
    python tests/benchmarks/intervals.py --samples 2000   evaluations for each line of it
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from statistics import NormalDist

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
    samples_for,
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
    big = best[2] >= 2048

    def picked(rng: np.random.Generator, n: int) -> NDArray[np.int64]:
        return rng.integers(GAMES, size=n)

    def of_scores(statistic: Callable[..., NDArray[np.float64]], n: int) -> Sample:
        truth = float(statistic(scores))
        return lambda rng: (bootstrap(statistic, scores[picked(rng, n)], resamples=RESAMPLES), truth)

    for n in (30, 100, 300):
        yield "`bootstrap` of the mean", "score of nneonneo, expectimax 2", f"{n}", of_scores(np.mean, n)
    yield "`bootstrap` of the median", "score of nneonneo, expectimax 2", "100", of_scores(np.median, 100)
    yield "`bootstrap` of the IQM", "score of nneonneo, expectimax 2", "100", of_scores(interquartile_mean, 100)
    for n in (30, 100):
        what = "share of its games with a tile of 2048"
        yield "`wilson`", what, f"{n}", lambda rng, n=n: (wilson(int(big[picked(rng, n)].sum()), n), big.mean())

    def paired(function: Callable[..., Estimate], truth: float, **options: int) -> Sample:
        def sample(rng: np.random.Generator) -> tuple[Estimate, float]:
            seeds = picked(rng, 100)
            return function(scores[seeds], others[seeds], **options), truth

        return sample

    versus = "nneonneo beside prairie-fire, both expectimax 2"
    yield "`difference`", versus, "100", paired(difference, float((scores - others).mean()), resamples=RESAMPLES)
    yield "`ratio`", versus, "100", paired(ratio, scores.mean() / others.mean(), resamples=RESAMPLES)
    higher = float(((np.sign(scores - others) + 1) / 2).mean())
    yield "`superiority`", versus, "100", paired(superiority, higher)

    def worst(rng: np.random.Generator) -> tuple[Estimate, float]:
        """Of equal players, the one with the lowest mean beside the one with the highest, as a report compares them."""
        alike = scores[picked(rng, 10 * 100)].reshape(10, 100)
        order = alike.mean(axis=1).argsort()
        return ratio(alike[order[0]], alike[order[-1]], confidence=1 - 0.05 / 45), 1.0

    yield "`ratio`, corrected for all 45 pairs", "the worst of ten equal players beside the best", "100", worst

    def until(rng: np.random.Generator) -> tuple[Estimate, float]:
        sample, n = scores[picked(rng, 20_000)], 200
        while True:
            found = bootstrap(np.mean, sample[:n], resamples=RESAMPLES)
            if (wanted := min(samples_for(0.05, found, n), len(sample))) == n:
                return found, float(scores.mean())
            n = wanted

    yield "`bootstrap` of the mean, `until` 5 %", "score of nneonneo, expectimax 2", "200 or more", until

    whole, cut = games("tetris/bcts"), games("tetris/bcts", cap=150)
    weak, weak_cut = games("tetris/dellacherie"), games("tetris/dellacherie", cap=150)
    mean, weak_mean = whole[0].mean(), weak[0].mean()

    def capped(rng: np.random.Generator) -> tuple[Estimate, float]:
        cleared, ended, _ = cut[:, picked(rng, 100)]
        return exponential_mean(cleared.sum(), ended.sum()), mean

    def capped_ratio(rng: np.random.Generator) -> tuple[Estimate, float]:
        (a, ended_a, _), (b, ended_b, _) = cut[:, picked(rng, 100)], weak_cut[:, picked(rng, 100)]
        return exponential_ratio(a.sum(), ended_a.sum(), b.sum(), ended_b.sum()), mean / weak_mean

    share = 1 - cut[1].mean()
    what = f"lines of bcts on 10×6, a cap ends {share:.0%} of the games"
    yield "`exponential_mean`", what, "100", capped
    yield "`exponential_ratio`", "bcts beside dellacherie on 10×6, with that cap", "100", capped_ratio

    for n in (3, 5):

        def runs(rng: np.random.Generator, n: int = n) -> tuple[Estimate, float]:
            return mean_of_runs(rng.lognormal(0, 0.3, n)), float(np.exp(0.3**2 / 2))

        yield "`mean_of_runs`", "lognormal results, σ = 0.3", f"{n}", runs
    for n in (3, 5):

        def better(rng: np.random.Generator, n: int = n) -> tuple[Estimate, float]:
            return improvement(rng.normal(1, 1, n), rng.normal(0, 1, n)), NormalDist().cdf(0.5**0.5)

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
