"""The chance outcomes of a game, and random streams that draw a given outcome."""

from typing import NamedTuple

import numpy as np

from mergefall.typing import Floats, Ints, Observation, Words
from mergefall.words import next_bits, stream_before

U = np.uint64
STREAM = 0  # the word of a state that holds the random stream, in both games
HALF = 1 << 32
_COIN = U(0xD1B54A32D192ED03)  # makes a coin independent of the game's next draw from the same stream


class Outcomes(NamedTuple):
    """The chance outcomes after one move.

    - `observations`: a batch; row k is what the player sees after outcome k.
    - `streams`: uint64[outcomes], random streams in place of the game's, from which it draws each outcome.
    - `probabilities`: float64[outcomes], to within 2⁻³².
    """

    observations: Observation
    streams: Words
    probabilities: Floats


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


def forced(stream: np.uint64, upper: Ints, lower: Ints) -> Words:
    """Streams whose next draw has its halves from `upper[k, 0]` to `upper[k, 1]` - 1, and within `lower[k]` likewise.

    Within the bounds, the draw is as random as the next draw of `stream`.
    """
    bits, halves = next_bits.py_func(np.array([stream]))[1], []
    for half, limits in ((bits >> U(32), upper), (bits & U(HALF - 1), lower)):
        low, high = limits.T.astype(U)
        halves.append(low + (half * (high - low) >> U(32)))
    return stream_before(halves[0] << U(32) | halves[1])
