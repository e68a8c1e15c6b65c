"""The transposition table of a search: open addressing, emptied by raising its generation.

Entry 0 is the header: its tag holds the current generation, its key the number of hash bits in use. An entry counts
only if its tag holds the current generation, so no table is cleared between searches. A small search uses a small part
of the table, which the processor's caches hold.
"""

import numpy as np
from mergefall.kernels import kernel
from mergefall.typing import Array

U = np.uint64
PROBES = 16
LAST_GENERATION = 1 << 23


def entry_type(real: type[np.floating]) -> np.dtype[np.void]:
    """One entry: a board, its value, and as tag ``generation << 8 | own moves left``."""
    return np.dtype([("key", np.uint64), ("value", real), ("tag", np.uint32)], align=True)


def new_table(bits: int, real: type[np.floating]) -> Array:
    """A table of 2**bits entries with values of type `real`; with `bits` 0 a table that stores nothing."""
    return np.zeros((1 << bits) + (PROBES if bits else 0), dtype=entry_type(real))


@kernel
def forget(entries, left):
    """Empty the table for a search of `left` own moves.

    On positions late in the game, under a cut-off of 10⁻⁴, a search of 3 moves stores up to 700 afterstates, of 5 moves
    19 000, of 7 and more 180 000. They fill a quarter of the part used here.
    """
    generation = (np.int64(entries[0].tag) >> 8) + 1
    if generation > LAST_GENERATION:
        for i in range(entries.size):
            entries[i].tag = 0
        generation = 1
    entries[0].tag = generation << 8
    bits = min(6 + 2 * left, 62)
    while bits and (1 << bits) + PROBES > entries.size:
        bits -= 1
    entries[0].key = bits


@kernel
def find(entries, key):
    """Index of the entry for `key`, stored or not; 0 if there is no table."""
    if entries.size == 1:
        return 0
    generation = entries[0].tag >> 8
    home = 1 + np.int64(((key ^ (key >> U(32))) * U(0x9E3779B97F4A7C15)) >> (U(64) - entries[0].key))
    for index in range(home, home + PROBES - 1):
        if entries[index].tag >> 8 != generation or entries[index].key == key:
            return index
    return home


@kernel
def holds(entries, index, key):
    """Whether the entry at `index` holds a value for `key`."""
    return index > 0 and entries[index].tag >> 8 == entries[0].tag >> 8 and entries[index].key == key


@kernel
def keep(entries, index, key, value, left):
    """Store a value found with `left` own moves to go."""
    if index > 0:
        entries[index].key = key
        entries[index].value = value
        entries[index].tag = (entries[0].tag >> 8 << 8) | left
