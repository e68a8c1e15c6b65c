"""The terms of `prairie-fire` on boards of any size: the slow twin. It is tested against `clusters`."""

from __future__ import annotations

import numpy as np

from mergefall.game2048.heuristics.base import dot
from mergefall.game2048.heuristics.bits import U, burnt, column, lowest, touched, turns_of
from mergefall.kernels import kernel
from mergefall.words import popcount

TERMS = (
    "reward",
    "penalty",
    "bonus",
    "cluster_size",
    "fragments",
    "large",
    "low",
    "zero_fragments",
    "shape",
    "neighbours",
    "cliffs",
    "checkerboard",
    "gap_merges",
)
LARGE, LOW, NEIGHBOURS, CLIFFS, CHECKERBOARD, GAP_MERGES = (
    TERMS.index(name) for name in ("large", "low", "neighbours", "cliffs", "checkerboard", "gap_merges")
)
STAGE = len(TERMS) + 1  # the length of a stage in the weight vector: the rank at which it begins, then its weights
CLIFF = 4  # neighbours this many ranks apart are a cliff, tiles this many below the top are low


@kernel
def bonus_of(top):
    """The bonus for the largest tile: 256 10, 512 20, 1024 50, 2048 100, and so doubling up to 800."""
    if top < 8:
        return 0.0
    if top < 10:
        return 10.0 if top == 8 else 20.0
    return 50.0 * (1 << min(top - 10, 4))


@kernel
def rank_set(cells, rank):
    """The cells of one rank."""
    bits = U(0)
    for i in range(cells.size):
        if cells[i] == rank:
            bits |= U(1) << U(i)
    return bits


@kernel
def terms_of_rank(fuel, above, cols, starts, ends):
    """(largest cluster, clusters, Σ sizes ≥ 2, Σ turns, clusters of the next rank touched), clusters of one rank."""
    largest, count, joined, turns, neighbours = 0, 0, 0, 0, 0
    while fuel:
        group = burnt(lowest(fuel), fuel, cols, starts, ends)
        fuel ^= group
        size = popcount(group)
        largest = max(largest, size)
        count += 1
        joined += size if size > 1 else 0
        turns += turns_of(group, cols, starts, ends)
        neighbours += touched(group, above, cols, starts, ends)
    return largest, count, joined, turns, neighbours


@kernel
def edge_terms(cells, rows, cols):
    """(cliffs, checkerboard blocks, merges over a gap) of a board."""
    cliffs, blocks, gaps = 0, 0, 0
    for r in range(rows):
        for c in range(cols):
            i = r * cols + c
            here = np.int64(cells[i])
            if here == 0:
                continue
            differ = True  # whether the 2×2 block that begins here has no equal neighbours
            if c + 1 < cols:
                cliffs += is_cliff(here, cells[i + 1])
                gaps += over_gap(cells, i, 1, cols - c)
            if r + 1 < rows:
                cliffs += is_cliff(here, cells[i + cols])
                gaps += over_gap(cells, i, cols, rows - r)
            if c + 1 < cols and r + 1 < rows:
                right, below, across = cells[i + 1], cells[i + cols], cells[i + cols + 1]
                differ = here != right and here != below and right != across and below != across
                blocks += differ and right > 0 and below > 0 and across > 0
    return cliffs, blocks, gaps


@kernel
def is_cliff(here, there):
    return there > 0 and abs(here - np.int64(there)) >= CLIFF


@kernel
def over_gap(cells, start, stride, length):
    """Whether the next tile of a line equals the first, with at least one empty cell between them."""
    for k in range(1, length):
        if cells[start + k * stride]:
            return k > 1 and cells[start + k * stride] == cells[start]
    return False


@kernel
def power(base, exponent):
    """A power by multiplication, which is exact if the result is exact in binary."""
    result = 1.0
    for _ in range(exponent):
        result *= base
    return result


@kernel
def terms_of_cells(cells, rows, cols, to_move, weights):
    """All terms in the order of TERMS; `weights` is ignored."""
    starts, ends = column(rows, cols, 0), column(rows, cols, cols - 1)
    reward, penalty, joined, fragments, turns, neighbours = 0.0, 0.0, 0, 0, 0, 0
    top, large, low, zero_fragments = 0, 0, 0, 0
    left = (U(1) << U(rows * cols)) - U(1)
    for i in range(rows * cols):
        rank = np.int64(cells[i])
        top = max(top, rank)
        large += rank
        if not left >> U(i) & U(1):
            continue
        fuel, above = rank_set(cells, rank), rank_set(cells, rank + 1)
        left &= ~fuel
        largest, count, in_clusters, bends, touching = terms_of_rank(fuel, above, cols, starts, ends)
        reward += power(1.5, largest)
        penalty += power(3.0, count)
        if rank:
            joined, fragments = joined + in_clusters, fragments + count - 1
            turns, neighbours = turns + bends, neighbours + touching
        else:
            zero_fragments = count - 1
    for i in range(rows * cols):
        low += 0 < cells[i] <= top - CLIFF
    cliffs, blocks, gaps = edge_terms(cells, rows, cols)
    return (
        reward,
        penalty,
        bonus_of(top),
        np.float64(joined),
        np.float64(-fragments),
        np.float64(large),
        np.float64(-low),
        np.float64(-zero_fragments),
        np.float64(-turns),
        np.float64(neighbours),
        np.float64(-cliffs),
        np.float64(-blocks),
        np.float64(gaps),
    )


@kernel
def stage_of(weights, top):
    """The index of the first weight of the stage that applies to a top rank: the last that begins at or below it."""
    first = 0
    while first + STAGE < weights.size and weights[first + STAGE] <= top:
        first += STAGE
    return first + 1


@kernel
def value_of_cells(cells, rows, cols, to_move, weights):
    top = 0
    for i in range(rows * cols):
        top = max(top, np.int64(cells[i]))
    return dot(terms_of_cells(cells, rows, cols, to_move, weights), weights, stage_of(weights, top))
