"""The chance outcomes of a game, and random streams that draw a given outcome."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mergefall.typing import Floats, Ints, Observation, Words
from mergefall.words import next_bits, stream_before

U = np.uint64
STREAM = 0  # the word of a state that holds the random stream, in both games
HALF = 1 << 32
_COIN = U(0xD1B54A32D192ED03)  # makes a coin independent of the game's next draw from the same stream


@dataclass(frozen=True)
class Outcomes:
    """The chance outcomes after one move.

    - `observations`: a batch; row k is what the player sees after outcome k.
    - `upper`, `lower: int64[outcomes, 2]`: outcome k is drawn if the upper half of the game's next 64 random bits is in
      `upper[k, 0]` … `upper[k, 1] - 1`, and the lower half in `lower[k, 0]` … `lower[k, 1] - 1`.
    """

    observations: Observation
    upper: Ints
    lower: Ints

    @property
    def probabilities(self) -> Floats:
        """The probability of each outcome, float64[outcomes], to within 2⁻³²."""
        return np.diff(self.upper)[:, 0] / HALF * (np.diff(self.lower)[:, 0] / HALF)


def bounds(steps: Ints) -> Ints:
    """The upper halves for which `words.below(bits, steps[-1])` is in `steps[k]` … `steps[k + 1] - 1`, int64[parts, 2].

    >>> (bounds(np.array([0, 1, 4])) / HALF).tolist()
    [[0.0, 0.25], [0.25, 1.0]]
    """
    edges = -(-steps * HALF // steps[-1])
    return np.stack([edges[:-1], edges[1:]], axis=1)


def coins(streams: Words) -> Floats:
    """A number in [0, 1) for each game, float64[n], which its random stream determines; no stream advances."""
    return (next_bits.py_func(streams ^ _COIN)[1] >> U(11)) / 2.0**53


def forced(stream: np.uint64, upper: Ints, lower: Ints) -> np.uint64:
    """A stream whose next draw has its halves within the bounds `upper` and `lower`, each int64[2].

    Within the bounds, the draw is as random as the next draw of `stream`.
    """
    bits = int(next_bits.py_func(np.array([stream]))[1][0])
    halves = []
    for half, (low, high) in ((bits >> 32, upper.tolist()), (bits & HALF - 1, lower.tolist())):
        halves.append(low + (half * (high - low) >> 32))
    return stream_before(U(halves[0] << 32 | halves[1]))
