"""n-tuple networks of TDL2048+, from its `.w` files.

A file is little-endian::

    u8   'w'                    in newer files alone
    u8   0
    u32  number of tables
    of each table:
        u8   4
        u32  its name, a hexadecimal number; u16 digits of the name, 0 for as many as the table has ranks; u16 0
        u16  bytes of a number, 4 or 8; u64 entries; the entries
        further fields, such as the sums of temporal coherence: u16 bytes of a number; u64 numbers; the numbers
        u16  0

A name such as 012456 lists the cells of a pattern. The rank on its first cell is the lowest digit of an index, so that
the pattern read backwards is one of ours. As TDL2048+ does without a network option, all images of a pattern share its
table.

Source: H. Guei, TDL2048+ (https://github.com/moporgic/TDL2048), the classes `weight` and `feature` of 2048.cpp.
"""

import hashlib
from pathlib import Path

import numpy as np
from mergefall.checks import in_place
from mergefall.typing import Array, FilePath

from mergefall_baselines.game2048.network import TupleNetwork

SUFFIX = ".w"


def read_tdl2048(path: FilePath) -> tuple[TupleNetwork, str]:
    """(the network in a `.w` file of TDL2048+, the file's checksum).

    Raises ValueError if the file is damaged, or holds tables that are not patterns of 1 to 8 cells: those of stages, of
    counts of tiles and of monotonicity.
    """
    content = Path(path).read_bytes()
    with in_place(f"{path} cannot be read as a network of TDL2048+"):
        tables = _tables(content)
        network = TupleNetwork([name[::-1] for name, _ in tables], record={"source": "TDL2048+"})
        with np.errstate(over="ignore"):
            np.concatenate([entries for _, entries in tables], out=network.weights, casting="same_kind")
        network.check()
    return network, hashlib.sha256(content).hexdigest()


def _tables(content: bytes) -> list[tuple[str, Array]]:
    at = 0

    def take(kind: str, count: int) -> Array:
        """The next numbers of a type. Raises ValueError if the file ends before."""
        nonlocal at
        begin, at = at, at + np.dtype(kind).itemsize * count
        if at > len(content):
            raise ValueError(f"it ends after {len(content)} bytes; expected {at - len(content)} more")
        return np.frombuffer(memoryview(content)[begin:at], kind)

    def number(kind: str) -> int:
        return int(take(kind, 1)[0])

    first = number("u1")
    if first == ord("w"):
        first = number("u1")
    if first:
        raise ValueError(f"it begins with the byte {first}; expected 0, or a w and 0")
    tables = []
    for _ in range(number("<u4")):
        if (form := number("u1")) != 4:
            raise ValueError(f"a table has the form {form}; expected 4")
        sign, digits, text, size, count = (number(kind) for kind in ("<u4", "<u2", "<u2", "<u2", "<u8"))
        if text:
            raise ValueError("a table has a name in letters; expected the cells of a pattern")
        cells = max(0, count.bit_length() - 1) // 4
        name = f"{sign:0{digits or cells}x}"
        if size not in (4, 8) or count != 16**cells or len(name) != cells:
            expected = "the 16ⁿ entries of a pattern of n cells, in 4 or 8 bytes each"
            raise ValueError(f"the table {name} has {count} entries of {size} bytes; expected {expected}")
        tables.append((name, take(f"<f{size}", count)))
        while size := number("<u2"):
            take("u1", size * number("<u8"))
    if at < len(content):
        raise ValueError(f"{len(content) - at} bytes follow its {len(tables)} tables; expected none")
    names = [name for name, _ in tables]
    if len(set(names)) < len(names):
        raise ValueError(f"its tables are {', '.join(names)}; expected different names")
    return tables
