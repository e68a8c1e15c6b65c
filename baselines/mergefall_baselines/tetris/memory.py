"""A Tetris player's memory of the pieces seen in this episode, and the probabilities of the next piece.

A player's memory is uint64[MEMORY] for each game: its own random stream, then how often each piece id has come into
view, and whether a piece was held at the last decision.
From the counts follow the pieces left in a bag and the frequencies of a hidden distribution.

The chances of the next piece are one integer and one array. If `bag` is not 0, its bits are the ids that come next with
equal probability. If it is 0, `weights` float64[IDS] are the probabilities of the ids.
"""

from __future__ import annotations

import numpy as np
from mergefall.kernels import kernel
from mergefall.tetris.game import KINDS, RANDOMIZERS
from mergefall.tetris.rules import Rules
from mergefall.words import below, nth_bit, popcount

U = np.uint64
STREAM, COUNTS, IDS = 0, 1, KINDS
HELD = COUNTS + IDS
MEMORY = HELD + 1
DISTRIBUTIONS = ("uniform", "bag", "counted")  # in the order of `game.RANDOMIZERS`, which make them
UNIFORM, BAG, COUNTED = range(3)


def drawn_by(distribution: str | None, rules: Rules) -> tuple[int, int]:
    """(the ids that a game draws, as bits; the index in `DISTRIBUTIONS` of the option `distribution`)."""
    ids = sum(1 << id for id in rules.piece_set.drawn)
    return ids, DISTRIBUTIONS.index(distribution) if distribution else RANDOMIZERS.index(rules.randomizer)


@kernel
def observe(memory, queue, known, hold):
    """Count the pieces that this decision brings into view.

    - A new game: all `known` ones of the queue, and the held one; `hold` is its id plus one, 0 for none.
    - Later: the last one, or the last two if the move before was the first to hold a piece.
    """
    seen = U(0)
    for i in range(IDS):
        seen |= memory[COUNTS + i]
    begins = hold > 0 and memory[HELD] == 0
    if begins and not seen:
        memory[COUNTS + np.int64(hold) - 1] += U(1)
    for i in range(known - 1 - begins if seen else 0, known):
        memory[COUNTS + (np.int64(queue >> U(4 * i)) & 15)] += U(1)
    memory[HELD] = U(hold > 0)


@kernel
def chances_of(memory, distribution, drawn, weights):
    """Write `weights` and return `bag`, for a game that draws the ids `drawn` (bits).

    A bag holds each id once, so what is left of it are the ids seen least often. Under ``counted``, an id never seen
    has probability 0.
    """
    least, total = ~U(0), 0.0
    for i in range(IDS):
        if drawn >> i & 1:
            least = min(least, memory[COUNTS + i])
            total += np.float64(memory[COUNTS + i])
    bag = 0
    for i in range(IDS):
        weights[i] = 0.0
        if drawn >> i & 1:
            if distribution == COUNTED:
                weights[i] = np.float64(memory[COUNTS + i]) / max(total, 1.0)
            elif distribution == UNIFORM:
                weights[i] = 1.0 / popcount(U(drawn))
            elif memory[COUNTS + i] == least:
                bag |= 1 << i
    return bag


@kernel
def bag_after(id, bag, drawn):
    """The bag after a piece id was drawn from it: a full one if it was the last; 0 if there is no bag."""
    if bag == 0:
        return 0
    left = bag & ~(1 << id)
    return left if left else drawn


@kernel
def piece_from(bits, bag, weights):
    """The piece id that 64 random bits draw from the chances."""
    if bag:
        return nth_bit(bag, below(bits, popcount(U(bag))))
    point = np.float64(bits >> U(11)) / 2.0**53
    last = 0
    for id in range(IDS):
        if weights[id] > 0.0:
            last = id
            point -= weights[id]
            if point < 0.0:
                break
    return last
