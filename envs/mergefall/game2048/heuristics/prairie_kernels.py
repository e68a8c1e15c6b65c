"""The terms of `prairie-fire`: on boards of any size, and the fast twin for packed 4×4 boards.

Sets of cells are bits: bit r·cols + c of a 64-bit word is the cell in row r, column c. Shifting a set by 1 or by `cols`
moves it by a cell; masking with `starts` and `ends`, the first and the last column, keeps it from running over into the
next row. Clusters are found as a prairie fire burns: from one cell to all neighbours of the same rank.
"""

import numpy as np

from mergefall.game2048.packed import LOW_BITS, unpack
from mergefall.kernels import kernel
from mergefall.weighted import dot
from mergefall.words import popcount

U = np.uint64
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
BONUS = TERMS.index("bonus")  # the last of the terms that count by default
STAGE = len(TERMS) + 1  # the length of a stage in the weight vector: the rank at which it begins, then its weights
CLIFF = 4  # neighbours this many ranks apart are a cliff, tiles this many below the top are low
BONUSES = np.array([0] * 8 + [10, 20, 50, 100, 200, 400] + [800] * 50, dtype=np.float64)  # by the largest rank
REWARDS = np.cumprod([1.0] + [1.5] * 36)  # by size; exact if the result is exact in binary
PENALTIES = np.cumprod([1.0] + [3.0] * 36)  # by number


# -- clusters ----------------------------------------------------------------------------------------------------------


@kernel
def grown(group, cols, starts, ends):
    """A set and its neighbours. It may extend below the last row, so intersect it with cells that exist."""
    return group | (group & ~ends) << U(1) | (group & ~starts) >> U(1) | group << U(cols) | group >> U(cols)


@kernel
def burnt(fuel, cols, starts, ends):
    """The cells of `fuel` that a fire reaches from its lowest cell: a cluster."""
    fire, before = fuel & (~fuel + U(1)), U(0)
    while fire != before:
        before = fire
        fire = grown(fire, cols, starts, ends) & fuel
    return fire


@kernel
def turns_of(group, cols, starts, ends):
    """The turns of a cluster that is a path: cells whose two neighbours are not opposite; 0 for other clusters."""
    left, right = group & (group & ~ends) << U(1), group & (group & ~starts) >> U(1)
    above, below = group & group << U(cols), group & group >> U(cols)
    block = right & below & right >> U(cols)
    crossing = (left & right & (above | below)) | (above & below & (left | right))
    if block | crossing:
        return 0
    return popcount((left ^ right) & (above ^ below))


# -- terms on any board ------------------------------------------------------------------------------------------------


@kernel
def line_terms(cells, start, stride, length):
    """(cliffs, merges over a gap) of one line of flat cells."""
    cliffs, gaps, last, place = 0, 0, 0, 0
    for i in range(length):
        rank = np.int64(cells[start + i * stride])
        if rank:
            if last and i - place == 1:
                cliffs += abs(rank - last) >= CLIFF
            elif last == rank:
                gaps += 1
            last, place = rank, i
    return cliffs, gaps


@kernel
def terms_of_cells(cells, rows, cols, to_move, weights):
    starts = U(0)
    for r in range(rows):
        starts |= U(1) << U(r * cols)
    ends = starts << U(cols - 1)
    reward, penalty, joined, fragments, turns, neighbours = 0.0, 0.0, 0, 0, 0, 0
    top, large, low, zero_fragments, blocks, cliffs, gaps = 0, 0, 0, 0, 0, 0, 0
    left = (U(1) << U(rows * cols)) - U(1)  # cells of ranks that are not counted yet
    for i in range(rows * cols):
        rank = np.int64(cells[i])
        top = max(top, rank)
        large += rank
        if not left >> U(i) & U(1):
            continue
        fuel, above = U(0), U(0)
        for k in range(rows * cols):
            fuel |= U(cells[k] == rank) << U(k)
            above |= U(cells[k] == rank + 1) << U(k)
        left &= ~fuel
        largest, count = 0, 0
        while fuel:
            group = burnt(fuel, cols, starts, ends)
            fuel ^= group
            size = popcount(group)
            largest, count = max(largest, size), count + 1
            if rank:
                joined += size if size > 1 else 0
                turns += turns_of(group, cols, starts, ends)
                others, edge = above, grown(group, cols, starts, ends)
                while others & edge:
                    cluster = burnt(others, cols, starts, ends)
                    neighbours += cluster & edge != 0
                    others ^= cluster
        reward += REWARDS[largest]
        penalty += PENALTIES[count]
        if rank:
            fragments += count - 1
        else:
            zero_fragments = count - 1
    for i in range(rows * cols):
        low += 0 < cells[i] <= top - CLIFF
        if i % cols < cols - 1 and i < (rows - 1) * cols:
            here, right, below, across = cells[i], cells[i + 1], cells[i + cols], cells[i + cols + 1]
            differ = here != right and here != below and right != across and below != across
            blocks += differ and here > 0 and right > 0 and below > 0 and across > 0
    for line in range(rows + cols):
        c, g = line_terms(cells, line * cols, 1, cols) if line < rows else line_terms(cells, line - rows, cols, rows)
        cliffs, gaps = cliffs + c, gaps + g
    return (
        reward,
        penalty,
        BONUSES[top],
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
def combine(terms, cells, weights):
    return dot(terms, weights, stage_of(weights, cells.max()))


# -- the fast twin -----------------------------------------------------------------------------------------------------
#
# The cells of one rank are a set of 16 bits, which determines their clusters. A table holds `reward` and `penalty` of
# all 65536 sets, fields that can be added up over the ranks of a board: bits 0-27 reward in units of 2⁻¹⁶, which makes
# it whole, and the penalty above them. Where other terms count, a board is valued as one of any size.

PENALTY, UNIT = 28, 65536.0
REWARD_MASK = (1 << PENALTY) - 1
STARTS, ENDS, ALL = U(0x1111), U(0x8888), U(0xFFFF)


@kernel
def fill_table(sets):
    """Fill the table: the entry of a set joins its cluster of the lowest cell and the entry of the other cells."""
    sets[0] = 0
    for i in range(1, 1 << 16):
        group = burnt(U(i), 4, STARTS, ENDS)
        rest = sets[U(i) ^ group]
        reward = max(np.int64(UNIT * REWARDS[popcount(group)]), rest & REWARD_MASK)
        sets[i] = reward | 3 * max(rest >> PENALTY, 1) << PENALTY


@kernel(forceinline=True)
def gather(bits):
    """The lowest bit of each nibble, gathered into 16 bits."""
    bits &= LOW_BITS
    bits = (bits | bits >> U(3)) & U(0x0303030303030303)
    bits = (bits | bits >> U(6)) & U(0x000F000F000F000F)
    bits = (bits | bits >> U(12)) & U(0x000000FF000000FF)
    return (bits | bits >> U(24)) & ALL


@kernel(forceinline=True)
def value_of_packed(board, to_move, tables, weights):
    planes = gather(board), gather(board >> U(1)), gather(board >> U(2)), gather(board >> U(3))
    total, top = np.int64(0), 0
    for rank in range(16):
        cells = ALL  # of this rank
        for i in range(4):
            cells &= planes[i] if rank >> i & 1 else ~planes[i]
        total += tables[0][cells]
        top = rank if cells else top
    first, others = stage_of(weights, top), False
    for i in range(first + BONUS + 1, first + len(TERMS)):
        others |= weights[i] != 0
    if others:
        flat = np.empty(16, np.uint8)
        unpack(board, flat, 4, 4)
        return combine(terms_of_cells(flat, 4, 4, to_move, weights), flat, weights)
    terms = np.float64(total & REWARD_MASK) / UNIT, np.float64(total >> PENALTY), BONUSES[top]
    return dot(terms, weights, first)
