"""How often the intervals of evaluations and comparisons cover the truth.

Thousands of real games stand for all games: their mean, median and shares are the truth. Evaluations are samples of
them, drawn with replacement, and the truth should lie in 95 % of the intervals.

    python tests/benchmarks/intervals.py                  print a table
    python tests/benchmarks/intervals.py --samples 2000   evaluations for each line of it
"""

import argparse
from functools import partial
from statistics import NormalDist

import numpy as np
from mergefall_baselines import make
from mergefall_training import evaluate
from mergefall_training.play.statistics import (
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
from mergefall_training.play.tables import markdown

GAMES = 10_000


def games(player, cap=None, **options):
    """The results of many games: int64[3, games], the headline figure, whether it ended by itself, the largest tile."""
    tetris = player.startswith("tetris")
    env, kwargs = ("mergefall/Tetris-v0", {"rows": 6, "preview": 0}) if tetris else ("mergefall/Game2048-v0", {})
    played = evaluate(make(player, **options), env, GAMES, 0, kwargs, max_episode_steps=cap)
    ended = [episode.terminated for episode in played.episodes]
    return np.array([played.results, ended, np.zeros(GAMES) if tetris else played.max_tiles], dtype=np.int64)


def of(function, *arrays):
    """`function` of the same games of each array."""

    def draw(rng, n):
        seeds = rng.integers(GAMES, size=n)
        return function(*(array[..., seeds] for array in arrays))

    return draw


def capped(lines):
    return exponential_mean(*lines[:2].sum(axis=1))


def lines():
    """The lines of the table: (interval, what was measured, each N, the truth, how to draw)."""
    best, other = (games("2048/expectimax", heuristic=name, depth=2) for name in ("nneonneo", "prairie-fire"))
    scores, others, big = best[0].astype(float), other[0].astype(float), best[2] >= 2048
    cut, weak_cut = games("tetris/bcts", cap=150), games("tetris/dellacherie", cap=150)
    mean, weak_mean = (games(f"tetris/{name}")[0].mean() for name in ("bcts", "dellacherie"))

    def worst(rng, n):
        """Of equal players, the one with the lowest mean beside the one with the highest, as a report compares them."""
        alike = scores[rng.integers(GAMES, size=(10, n))]
        order = alike.mean(axis=1).argsort()
        return ratio(alike[order[0]], alike[order[-1]], confidence=1 - 0.05 / 45)

    def capped_ratio(rng, n):
        ours, theirs = (one[:2, rng.integers(GAMES, size=n)].sum(axis=1) for one in (cut, weak_cut))
        return exponential_ratio(*ours, *theirs)

    one, both = "score of nneonneo, expectimax 2", "nneonneo beside prairie-fire, both expectimax 2"
    higher = ((np.sign(scores - others) + 1) / 2).mean()
    averages = [("mean", np.mean, (30, 100, 300)), ("median", np.median, (100,)), ("IQM", interquartile_mean, (100,))]
    return [
        *(
            (f"`bootstrap` of the {name}", one, sizes, function(scores), of(partial(bootstrap, function), scores))
            for name, function, sizes in averages
        ),
        (
            "`wilson`",
            "share of its games with a tile of 2048",
            (30, 100),
            big.mean(),
            of(lambda reached: wilson(int(reached.sum()), len(reached)), big),
        ),
        ("`difference`", both, (100,), (scores - others).mean(), of(difference, scores, others)),
        ("`ratio`", both, (100,), scores.mean() / others.mean(), of(ratio, scores, others)),
        ("`superiority`", both, (100,), higher, of(superiority, scores, others)),
        ("`ratio`, corrected for all 45 pairs", "the worst of ten equal players beside the best", (100,), 1.0, worst),
        (
            "`exponential_mean`",
            f"lines of bcts on 10×6, a cap ends {1 - cut[1].mean():.0%} of the games",
            (100,),
            mean,
            of(capped, cut),
        ),
        (
            "`exponential_ratio`",
            "bcts beside dellacherie on 10×6, with that cap",
            (100,),
            mean / weak_mean,
            capped_ratio,
        ),
        (
            "`mean_of_runs`",
            "lognormal results, σ = 0.3",
            (3, 5),
            np.exp(0.3**2 / 2),
            lambda rng, n: mean_of_runs(rng.lognormal(0, 0.3, n)),
        ),
        (
            "`improvement`",
            "normal results, one standard deviation apart",
            (3, 5),
            NormalDist().cdf(0.5**0.5),
            lambda rng, n: improvement(rng.normal(1, 1, n), rng.normal(0, 1, n)),
        ),
    ]


def main():
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--samples", type=int, default=4000, help="evaluations for each line (default: %(default)s)")
    samples, rows = parser.parse_args().samples, []
    for name, what, sizes, truth, draw in lines():
        for n in sizes:
            rng = np.random.default_rng(0)
            found = [draw(rng, n) for _ in range(samples)]
            above, below = (np.mean([one.low > truth for one in found]), np.mean([one.high < truth for one in found]))
            shares = [f"{100 * share:.1f} %" for share in (1 - above - below, above, below)]
            rows.append([name, what, str(n), *shares])
    print(markdown(["interval", "of", "N", "covers the truth in", "too high", "too low"], rows))


if __name__ == "__main__":
    main()
