"""Sets of cells as bits: bit r·cols + c of a 64-bit word is the cell in row r, column c. Boards up to 6×6 fit.

Shifting a set by 1 or by `cols` moves it by a cell; masking with `starts` and `ends`, the first and the last column,
keeps it from running over into the next row.
"""

from __future__ import annotations

import numpy as np

from mergefall.kernels import kernel
from mergefall.words import popcount

U = np.uint64


@kernel
def lowest(bits):
    """The lowest set bit alone."""
    return bits & (~bits + U(1))


@kernel
def column(rows, cols, index):
    """The cells of one column."""
    bits = U(0)
    for r in range(rows):
        bits |= U(1) << U(r * cols + index)
    return bits


@kernel
def grown(group, cols, starts, ends):
    """A set and its neighbours. It may extend below the last row, so intersect it with cells that exist."""
    across = (group & ~ends) << U(1) | (group & ~starts) >> U(1)
    return group | across | group << U(cols) | group >> U(cols)


@kernel
def burnt(fire, fuel, cols, starts, ends):
    """The cells of `fuel` that a fire reaches: the clusters that `fire`, a part of `fuel`, touches."""
    before = U(0)
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


@kernel
def touched(group, fuel, cols, starts, ends):
    """The number of clusters of `fuel` that touch `group`, which lies outside of `fuel`."""
    count = 0
    edge = grown(group, cols, starts, ends) & fuel
    while edge:
        edge &= ~burnt(lowest(edge), fuel, cols, starts, ends)
        count += 1
    return count
