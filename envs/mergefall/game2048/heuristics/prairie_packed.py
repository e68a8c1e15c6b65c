"""The terms of `prairie-fire` on packed 4×4 boards: the fast twin. It skips slow terms whose weight is 0.

The cells of one rank are a set of 16 bits, which determines their clusters. A table holds the terms of all 65536 sets.
Its fields can be added up over the ranks of a board (`reward` is in units of 2⁻¹⁶, which makes it whole):

    bits 0-27 reward, 28-42 penalty, 43-47 cells in clusters of 2 and more, 48-51 clusters less one, 52-56 turns

A second table holds the terms of lines: bits 0-7 cliffs, 8-15 merges over a gap.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from mergefall.game2048.heuristics.base import dot
from mergefall.game2048.heuristics.bits import U, burnt, column, lowest, touched, turns_of
from mergefall.game2048.heuristics.prairie_terms import (
    CHECKERBOARD,
    CLIFF,
    CLIFFS,
    GAP_MERGES,
    LARGE,
    LOW,
    NEIGHBOURS,
    bonus_of,
    is_cliff,
    over_gap,
    power,
    stage_of,
)
from mergefall.game2048.packed import LINE, LOW_BITS, filled, transpose, unpack
from mergefall.kernels import kernel
from mergefall.words import popcount

PENALTY_SHIFT, JOINED_SHIFT, FRAGMENTS_SHIFT, TURNS_SHIFT = 28, 43, 48, 52
UNIT = 65536.0
STARTS, ENDS, ALL = U(0x1111), U(0x8888), U(0xFFFF)
BLOCKS = U(0x0000011101110111)  # the cells at which a 2×2 block begins


@kernel
def fill_sets(sets):
    """Fill the table of sets: an entry joins the cluster of the lowest cell and the entry of the other cells."""
    starts, ends = column(4, 4, 0), column(4, 4, 3)
    sets[0] = 0
    for cells in range(1, 1 << 16):
        fuel = U(cells)
        group = burnt(lowest(fuel), fuel, 4, starts, ends)
        size = popcount(group)
        rest = sets[fuel ^ group]
        reward = max(np.int64(UNIT * power(1.5, size)), rest & ((1 << PENALTY_SHIFT) - 1))
        penalty = 3 * max(rest >> PENALTY_SHIFT & ((1 << JOINED_SHIFT - PENALTY_SHIFT) - 1), 1)
        joined = (rest >> JOINED_SHIFT & 31) + (size if size > 1 else 0)
        fragments = (rest >> FRAGMENTS_SHIFT & 15) + (1 if rest else 0)
        turns = (rest >> TURNS_SHIFT) + turns_of(group, 4, starts, ends)
        sets[cells] = (
            reward
            | penalty << PENALTY_SHIFT
            | joined << JOINED_SHIFT
            | fragments << FRAGMENTS_SHIFT
            | turns << TURNS_SHIFT
        )


@kernel
def fill_lines(lines):
    """Fill the table of lines of four."""
    cells = np.zeros(4, dtype=np.uint8)
    for line in range(1 << 16):
        cliffs, gaps = 0, 0
        unpack(U(line), cells, 1, 4)
        for i in range(3):
            if cells[i]:
                cliffs += is_cliff(np.int64(cells[i]), cells[i + 1])
                gaps += over_gap(cells, i, 1, 4 - i)
        lines[line] = cliffs | gaps << 8


@cache
def packed_tables() -> tuple[NDArray[np.int64], NDArray[np.uint16]]:
    """The tables of sets, int64[65536], and of lines, uint16[65536], read-only."""
    sets, lines = np.empty(1 << 16, dtype=np.int64), np.empty(1 << 16, dtype=np.uint16)
    fill_sets(sets)
    fill_lines(lines)
    sets.flags.writeable = lines.flags.writeable = False
    return sets, lines


@kernel(forceinline=True)
def gather(bits):
    """The lowest bit of each nibble, gathered into 16 bits."""
    bits &= LOW_BITS
    bits = (bits | bits >> U(3)) & U(0x0303030303030303)
    bits = (bits | bits >> U(6)) & U(0x000F000F000F000F)
    bits = (bits | bits >> U(12)) & U(0x000000FF000000FF)
    return (bits | bits >> U(24)) & ALL


@kernel(forceinline=True)
def rank_set(planes, rank):
    """The cells of one rank, from the four bit planes of a board."""
    cells = ALL
    for i in range(4):
        cells &= planes[i] if rank >> i & 1 else ~planes[i]
    return cells


@kernel
def touching_pairs(planes):
    """The number of touching pairs of clusters of tiles one rank apart."""
    count = 0
    for rank in range(1, 15):
        above = rank_set(planes, rank + 1)
        fuel = rank_set(planes, rank) if above else U(0)
        while fuel:
            group = burnt(lowest(fuel), fuel, 4, STARTS, ENDS)
            fuel ^= group
            count += touched(group, above, 4, STARTS, ENDS)
    return count


@kernel
def line_sums(board, lines):
    """(cliffs, merges over a gap) of a board."""
    turned = transpose(board)
    total = 0
    for _ in range(4):
        total += np.int64(lines[board & LINE]) + np.int64(lines[turned & LINE])
        board >>= U(16)
        turned >>= U(16)
    return total & 255, total >> 8


@kernel
def checkerboards(board):
    """The number of 2×2 blocks of tiles without an equal neighbouring pair."""
    tiles, across, along = filled(board), filled(board ^ board >> U(4)), filled(board ^ board >> U(16))
    tiles &= tiles >> U(4)
    return popcount(tiles & tiles >> U(16) & across & across >> U(16) & along & along >> U(4) & BLOCKS)


@kernel
def low_tiles(planes, top):
    """The number of tiles at least CLIFF ranks below the top."""
    cells = U(0)
    for rank in range(1, top - CLIFF + 1):
        cells |= rank_set(planes, rank)
    return popcount(cells)


@kernel(forceinline=True)
def value_of_packed(board, to_move, tables, weights):
    sets, lines = tables
    planes = gather(board), gather(board >> U(1)), gather(board >> U(2)), gather(board >> U(3))
    zeros = sets[rank_set(planes, 0)]
    found, top = np.int64(0), 0
    for rank in range(1, 16):
        cells = rank_set(planes, rank)
        found += sets[cells]
        top = rank if cells else top
    both = found + zeros
    w = stage_of(weights, top)
    large, low, neighbours, cliffs, blocks, gaps = 0, 0, 0, 0, 0, 0
    if weights[w + LARGE]:
        for i in range(4):
            large += popcount(planes[i]) << i
    if weights[w + LOW]:
        low = low_tiles(planes, top)
    if weights[w + NEIGHBOURS]:
        neighbours = touching_pairs(planes)
    if weights[w + CLIFFS] or weights[w + GAP_MERGES]:
        cliffs, gaps = line_sums(board, lines)
    if weights[w + CHECKERBOARD]:
        blocks = checkerboards(board)
    terms = (
        np.float64(both & ((1 << PENALTY_SHIFT) - 1)) / UNIT,
        np.float64(both >> PENALTY_SHIFT & ((1 << JOINED_SHIFT - PENALTY_SHIFT) - 1)),
        bonus_of(top),
        np.float64(found >> JOINED_SHIFT & 31),
        np.float64(-(found >> FRAGMENTS_SHIFT & 15)),
        np.float64(large),
        np.float64(-low),
        np.float64(-(zeros >> FRAGMENTS_SHIFT & 15)),
        np.float64(-(found >> TURNS_SHIFT)),
        np.float64(neighbours),
        np.float64(-cliffs),
        np.float64(-blocks),
        np.float64(gaps),
    )
    return dot(terms, weights, w)
