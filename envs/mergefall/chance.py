"""Chance as something to look at: what a game may draw next, and random streams that draw a given outcome."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mergefall.words import next_bits, stream_before

U = np.uint64
STREAM = 0  # the word of a state that is the random stream, in every game
HALF = 1 << 32
_COIN = U(0xD1B54A32D192ED03)  # tells the coin from the draw that the same stream makes next


@dataclass(frozen=True)
class Outcomes:
    """What chance may do after one move.

    ``observations`` are what the player would see then, a batch. A draw's upper half below ``upper[k + 1]`` and from
    ``upper[k]`` on means outcome k, if its lower half lies in ``lower``, int64[outcomes, 2] each.
    """

    observations: Any
    upper: NDArray[np.int64]
    lower: NDArray[np.int64]


def shares(steps: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where `words.below` steps from one part of 0 … steps[-1] to the next, as [parts, 2] of a draw's upper half."""
    edges = -(-steps * HALF // steps[-1])
    return np.stack([edges[:-1], edges[1:]], axis=1)


def coins(streams: NDArray[np.uint64]) -> NDArray[np.float64]:
    """A number from 0 to 1 for each game, which its random stream fixes, and which leaves the stream where it is."""
    return (next_bits.py_func(streams ^ _COIN)[1] >> U(11)) / 2.0**53


def forced(stream: np.uint64, upper: NDArray[np.int64], lower: NDArray[np.int64]) -> np.uint64:
    """A stream whose next draw has its halves within the given bounds, being as random as `stream` within them."""
    bits = int(next_bits.py_func(np.array([stream]))[1][0])
    halves = []
    for half, (low, high) in ((bits >> 32, upper.tolist()), (bits & HALF - 1, lower.tolist())):
        halves.append(low + (half * (high - low) >> 32))
    return stream_before(U(halves[0] << 32 | halves[1]))
