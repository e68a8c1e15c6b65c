"""The transposition table of a search: open addressing, emptied by raising a number.

Entry 0 is the header: its tag holds the current generation. An entry counts only if it bears that generation, so a
table need not be cleared between searches.
"""

from __future__ import annotations

import numpy as np
from mergefall.kernels import kernel
from numpy.typing import NDArray

U = np.uint64
PROBES = 16
LAST_GENERATION = 1 << 23


def new_table(bits: int, real: type[np.floating]) -> NDArray[np.void]:
    """A table of 2**bits entries whose values have the type `real`; `bits` 0 makes one that stores nothing."""
    dtype = np.dtype([("key", np.uint64), ("value", real), ("tag", np.uint32)], align=True)
    return np.zeros((1 << bits) + (PROBES if bits else 0), dtype=dtype)


@kernel
def forget(entries):
    """Empty the table."""
    generation = (np.int64(entries[0].tag) >> 8) + 1
    if generation > LAST_GENERATION:
        for i in range(entries.size):
            entries[i].tag = 0
        generation = 1
    entries[0].tag = generation << 8


@kernel
def find(entries, key):
    """Index of the entry that holds `key`, or that `key` would go to; 0 if there is no table."""
    if entries.size == 1:
        return 0
    generation = np.int64(entries[0].tag) >> 8
    mixed = key * U(0x9E3779B97F4A7C15)
    home = 1 + np.int64((mixed ^ (mixed >> U(32))) & U(entries.size - PROBES - 1))
    for index in range(home, home + PROBES - 1):
        if np.int64(entries[index].tag) >> 8 != generation or entries[index].key == key:
            return index
    return home


@kernel
def holds(entries, index, key):
    """Whether an entry holds a value for `key`."""
    return index > 0 and entries[index].tag >> 8 == entries[0].tag >> 8 and entries[index].key == key


@kernel
def keep(entries, index, key, value, left):
    """Store a value found with `left` moves to go."""
    if index > 0:
        entries[index].key = key
        entries[index].value = value
        entries[index].tag = (np.int64(entries[0].tag) >> 8 << 8) | left
