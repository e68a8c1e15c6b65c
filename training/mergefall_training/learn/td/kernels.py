"""TD(λ) on afterstates of Tetris, compiled: one call places pieces and learns from them.

A worker is one thread's game. It remembers its last placements in a `Path`; when the path is full or the game ends, it
learns from them, last one first.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from mergefall.kernels import kernel, unowned
from mergefall.tetris import game
from mergefall.tetris.field import place
from mergefall.tetris.placements import column_of, rotation_of, row_of
from mergefall.typing import Kernel
from mergefall_baselines.tetris.greedy import best_kernel
from mergefall_baselines.tetris.network import locating_kernel
from numpy.typing import NDArray

U, F = np.uint64, np.float32
GAMES, LINES, HELD, WORDS = range(4)  # of a worker: games over, lines cleared, placements in its path
# For learning, features are multiplied by these, about 1 / their size in play, so that none outweighs the others.
SCALES = np.array([0.1, 0.5, 1, 0.03, 0.05, 0.1, 0.1, 0.05, 0.2, 0.3])


class Path(NamedTuple):
    """Placements that a worker has not learnt from yet, by what their values are sums of.

    The value of placement t is Σ weights[places[t, k]] · factor, for k below counts[t]. The factor is factors[t, k] of
    a feature's weight, and 1 of any other.
    """

    places: NDArray[np.uint32]  # [steps, lookups]
    factors: NDArray[np.float64]  # [steps, features]
    counts: NDArray[np.int64]  # [steps]


class Scratch(NamedTuple):
    """Memory that the kernels overwrite; `none` and `ranks` are empty."""

    memo: NDArray[np.uint64]
    columns: NDArray[np.uint64]
    found: NDArray[np.float64]
    none: NDArray[np.float64]
    ranks: NDArray[np.int64]


class Numbers(NamedTuple):
    """The numbers that a run learns by."""

    rate: float  # α
    gamma: float
    trace: float  # λ
    clear_first: bool  # whether the rules' overflow is `clear_first`
    cap: np.uint64  # pieces after which a game is cut off; 0: never


@cache
def _learning(cls: Any) -> Kernel:
    """A kernel: learn from the first `count` placements of a path; returns nothing."""
    features, name = len(cls.shape.features), cls.name

    @kernel(variant=name)
    def factor(factors, k):
        return factors[k] if k < features else 1.0

    @kernel(variant=name)
    def value_of(weights, places, factors, count):
        value = 0.0
        for k in range(count):
            value += np.float64(weights[places[k]]) * factor(factors, k)
        return value

    @kernel(variant=name)
    def learn(weights, coherence, places, factors, count, error, rate):
        """Move the value of a placement by a part of its error; returns the new value."""
        for k in range(count):
            at, change = U(places[k]), error
            if k < features:
                change *= factors[k] * SCALES[at] ** 2
            step = rate / count
            if coherence.size:
                net, size = np.float64(coherence[U(2) * at]), np.float64(coherence[U(2) * at + U(1)])
                coherence[U(2) * at], coherence[U(2) * at + U(1)] = F(net + change), F(size + abs(change))
                if size > 0:
                    step *= abs(net) / size
            weights[at] = F(np.float64(weights[at]) + step * change)
        return value_of(weights, places, factors, count)

    @kernel(variant=name)
    def learn_backwards(weights, coherence, path, count, over, numbers):
        """Learn, last placement first. If the game is not over, the last one is only the target of the one before."""
        places, factors, counts = path
        target, last = 0.0, count - 1
        if not over:
            target = value_of(weights, places[last], factors[last], counts[last])
            last -= 1
        value, paid = target, 0.0 if over else 1.0
        for t in range(last, -1, -1):
            target = paid + numbers.gamma * (numbers.trace * target + (1 - numbers.trace) * value)
            error = target - value_of(weights, places[t], factors[t], counts[t])
            value = learn(weights, coherence, places[t], factors[t], counts[t], error, numbers.rate)
            paid = 1.0

    return learn_backwards


@cache
def _placing(cls: Any, slides: bool) -> Kernel:
    """A kernel: place one piece where the network's value is highest and add it to the path.

    Returns whether the game is over: all placements are fatal, and none is played.
    """
    of_network, features = cls.kernels(), len(cls.shape.features)
    prepare, locate = of_network.prepare, locating_kernel(cls.shape)
    best = best_kernel(of_network.leaf, slides, "lowest", False, cls.name)

    @kernel(variant=f"{cls.name}-{slides}", forceinline=True)
    def place_best(state, worker, weights, path, scratch, numbers):
        columns, (_, rows) = game.columns_in(state), game.size_of(state)
        memo, copy, found, none, ranks = scratch
        piece = game.table_row(state, game.queued(state, 0))
        prepare(columns, rows, weights, memo)
        placement, worth = best(columns, piece, rows, numbers.clear_first, weights, memo, copy, ranks, none)
        if worth == -np.inf:
            return True
        y, rotation, column, k = row_of(placement), rotation_of(placement), column_of(placement), worker[HELD]
        lines, own, _ = place(columns, piece, rotation, column, y, rows, numbers.clear_first)
        path.counts[k] = locate(columns, piece, rotation, column, y, lines, own, path.places[k], found)
        for i in range(features):
            path.factors[k, i] = found[path.places[k, i]]
        worker[HELD] += 1
        worker[LINES] += lines
        state[game.PIECES] += U(1)
        game.advance(state)
        return False

    return place_best


@kernel
def keep_last(path, count):
    """Make the last of `count` placements the only one of a path."""
    places, factors, counts = path
    counts[0] = counts[count - 1]
    for i in range(counts[0]):
        places[0, i] = places[count - 1, i]
    for i in range(factors.shape[1]):
        factors[0, i] = factors[count - 1, i]


@cache
def learning_kernel(cls: Any, slides: bool) -> Kernel:
    """The kernel that plays and learns, for networks of one class.

    `play_on(state, worker, weights, coherence, path, scratch, numbers, limit)`: place `limit` pieces and learn from
    them; the start of a new game counts as one. `coherence` float32[2 · weights] is empty without temporal coherence.
    """
    place_best, learn_backwards = _placing(cls, slides), _learning(cls)

    @kernel(variant=f"{cls.name}-{slides}")
    def play_on(state, worker, weights, coherence, path, scratch, numbers, limit):
        state, worker, weights, coherence = unowned((state, worker, weights, coherence))
        path, scratch = unowned(path), unowned(scratch)
        for _ in range(limit):
            over = place_best(state, worker, weights, path, scratch, numbers)
            ended = over or state[game.PIECES] == numbers.cap
            count = worker[HELD]
            if not ended and count < len(path.counts):
                continue
            if count:
                learn_backwards(weights, coherence, path, count, over, numbers)
            if ended:
                worker[GAMES] += 1
                worker[HELD] = 0
                game.start(state, U(0))
            else:
                keep_last(path, count)
                worker[HELD] = 1

    return play_on
