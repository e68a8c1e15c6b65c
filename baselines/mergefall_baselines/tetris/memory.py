"""What a player knows of the pieces to come, and what it remembers for that: the pieces it has seen.

Memory is uint64[8] for each game: the player's own random stream, then how often each piece id came into view. From the
counts follow both what is left of a bag and how frequent the pieces of a hidden distribution are.

Chances are one integer and one array: `bag`, the ids that come next with equal probability, as bits; or 0, and then
`weights` float64[7] are the probabilities of the ids.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from mergefall.checks import choice
from mergefall.kernels import kernel
from mergefall.tetris.game import nth_bit
from mergefall.words import below, next_bits, popcount

U = np.uint64
STREAM, COUNTS, IDS = 0, 1, 7
MEMORY = COUNTS + IDS
DISTRIBUTIONS = ("uniform", "bag", "counted")
UNIFORM, BAG, COUNTED = range(3)
OF_RANDOMIZER = {"uniform": "uniform", "bag7": "bag", "hidden": "counted"}


def distribution_option(distribution: Any) -> str | None:
    """The option `distribution`, checked; None leaves it to the environment's randomizer."""
    return None if distribution is None else choice("distribution", distribution, DISTRIBUTIONS)


@kernel
def observe(memory, queue, known):
    """Count the pieces that came into view with this decision: all `known` ones of a new game, later the last one."""
    seen = U(0)
    for i in range(IDS):
        seen |= memory[COUNTS + i]
    for i in range(known - 1 if seen else 0, known):
        memory[COUNTS + (np.int64(queue >> U(4 * i)) & 15)] += U(1)


@kernel
def chances_of(memory, distribution, drawn, weights):
    """Write `weights` and return `bag` for the ids `drawn` (bits) under a distribution.

    The bag holds what was seen least often, for each bag holds each id once. Ids never seen count nothing.
    """
    least, total = memory[COUNTS], U(0)
    first = True
    for i in range(IDS):
        if drawn >> i & 1:
            least = memory[COUNTS + i] if first else min(least, memory[COUNTS + i])
            total += memory[COUNTS + i]
            first = False
    bag = 0
    for i in range(IDS):
        weights[i] = 0.0
        if drawn >> i & 1:
            if distribution == COUNTED:
                weights[i] = np.float64(memory[COUNTS + i]) / np.float64(total)
            elif distribution == UNIFORM:
                weights[i] = 1.0 / popcount(U(drawn))
            elif memory[COUNTS + i] == least:
                bag |= 1 << i
    return bag


@kernel
def chance_of(piece, bag, weights):
    """The probability that a piece id comes next."""
    if bag:
        return 1.0 / popcount(U(bag)) if bag >> piece & 1 else 0.0
    return weights[piece]


@kernel
def bag_after(piece, bag, drawn):
    """The bag once a piece id has come out of it; 0 where there is none."""
    if bag == 0:
        return 0
    left = bag & ~(1 << piece)
    return left if left else drawn


@kernel
def draw_from(memory, bag, weights):
    """A piece id drawn from the chances with the player's own random stream."""
    memory[STREAM], bits = next_bits(memory[STREAM])
    if bag:
        return nth_bit(bag, below(bits, popcount(U(bag))))
    point = np.float64(bits >> U(11)) / 2.0**53
    last = 0
    for piece in range(IDS):
        if weights[piece] > 0.0:
            last = piece
            point -= weights[piece]
            if point < 0.0:
                break
    return last
