"""n-tuple networks of 2048 as data: the weights of some patterns, and their files."""

from collections.abc import Iterable

import numpy as np
from mergefall.checks import in_place, known, number, typed
from mergefall.game2048.packed import U, pack
from mergefall.typing import Array, Arrays, Bools, Bytes, Dict, FilePath, Floats, Options
from mergefall.weighted import LARGEST
from numpy.typing import ArrayLike

from mergefall_baselines.arrays import read_arrays, write_arrays
from mergefall_baselines.game2048.tuples import Shape, network_shape, tuple_kernels
from mergefall_baselines.player import NotFiniteError

FORMAT, VERSION = "mergefall n-tuple network", 1
MOST = LARGEST[np.float32]  # what an entry may be


class TupleNetwork:
    """The value of afterstates in units of score: the expected score from there to the end of the game.

    Attributes:
        shape: patterns and board size (`tuples.Shape`).
        weights: float32[entries], all tables one after another.
        untouched: the value of entries that no game has reached.
        record: how the network was made, in JSON types.

    Example:
        >>> network = TupleNetwork("01 0", rows=2, cols=2)
        >>> network.weights[6 * 3 + 5] = 2  # ranks 3 and 5 side by side; 2×2 has ranks 0 to 5
        >>> network([[3, 5], [0, 0]]), network([[0, 5], [0, 3]]), network([[3, 0], [5, 3]])
        (2.0, 2.0, 4.0)
    """

    def __init__(
        self,
        patterns: str | Iterable[str],
        rows: int = 4,
        cols: int = 4,
        untouched: float = 0.0,
        record: Options | None = None,
    ) -> None:
        """A network whose entries are all `untouched`."""
        self.shape: Shape = network_shape(patterns, rows, cols)
        self.untouched = float(np.float32(number("untouched", untouched, -MOST, MOST)))
        self.record = dict(record or {})
        self.weights = np.zeros(sum(self.shape.sizes), dtype=np.float32)  # zeros take no memory until they are written
        if untouched:
            self.weights[:] = untouched

    @property
    def patterns(self) -> str:
        """The patterns as text."""
        return " ".join("".join(f"{cell:x}" for cell in pattern) for pattern in self.shape.patterns)

    def __call__(self, ranks: ArrayLike) -> float | Floats:
        """The value of one afterstate, ranks (rows, cols), as a float; of a batch (n, rows, cols) as float64[n]."""
        boards = np.asarray(ranks)
        rows, cols = self.shape.rows, self.shape.cols
        if boards.ndim not in (2, 3) or boards.shape[-2:] != (rows, cols) or boards.dtype.kind not in "iu":
            raise ValueError(f"boards of shape {boards.shape}, {boards.dtype}; expected integer ranks on {rows}×{cols}")
        if boards.size and not 0 <= boards.min() <= boards.max() <= 15:
            raise ValueError(f"ranks from {boards.min()} to {boards.max()}; expected 0 to 15")
        value = tuple_kernels(self.shape).value
        flat = boards.astype(np.uint8).reshape(-1, rows * cols)
        values = np.array([value(U(pack(cells, rows, cols)), self.weights) for cells in flat], dtype=np.float64)
        return float(values[0]) if boards.ndim == 2 else values

    def save(self, path: FilePath, bits: int = 32) -> str:
        """Write the network to a compressed file, without its untouched entries; returns the file's checksum.

        `bits` 2 to 16 rounds the entries of each table to so many bits, in even steps up to its largest entry.
        """
        spec = self.spec | {"record": self.record}
        return write_arrays(path, FORMAT, VERSION, spec, self.packed(bits), compressed=True)

    @property
    def spec(self) -> Dict:
        """The network without its entries, in JSON types."""
        size = {"rows": self.shape.rows, "cols": self.shape.cols}
        return {"patterns": self.patterns, **size, "untouched": self.untouched}

    def packed(self, bits: int = 32) -> dict[str, Array]:
        """The touched entries as arrays, as in a file; `bits` as for `save`."""
        if bits != 32 and not (isinstance(bits, int) and 2 <= bits <= 16):
            raise ValueError(f"bits={bits!r}; expected 32 (as they are), or 2 to 16")
        self.check()
        touched = self.touched()
        arrays = {"touched": np.packbits(touched)}
        if bits == 32:
            return arrays | {"entries": _planes(self.weights[touched])}
        counts, values = self._counts(touched), self.weights[touched]
        parts = np.split(values, np.cumsum(counts)[:-1])
        largest = np.array([np.abs(part).max(initial=0) for part in parts], dtype=np.float32)
        steps = largest / ((1 << (bits - 1)) - 1)
        steps[steps == 0] = 1
        entries = np.round(values / np.repeat(steps, counts)).astype(np.int16)
        return arrays | {"entries": _planes(entries), "steps": steps}

    @classmethod
    def unpacked(cls, spec: Options, arrays: Arrays) -> "TupleNetwork":
        """The network of a `spec` and of arrays from `packed`; raises ValueError if they are no network."""
        with in_place(f"this is no {FORMAT}", (ValueError, KeyError, TypeError)):
            network = cls(spec["patterns"], spec["rows"], spec["cols"], spec["untouched"])
            known("a network", arrays, ("touched", "entries", "steps"))
            touched = touched_entries(arrays["touched"], network.weights.size)
            kind, total = np.dtype(np.int16 if "steps" in arrays else np.float32), int(np.count_nonzero(touched))
            planes = typed("entries", arrays["entries"], np.uint8, kind.itemsize, total)
            entries = np.ascontiguousarray(planes.T).reshape(-1).view(kind.newbyteorder("<")).astype(kind)
            if "steps" in arrays:
                steps = typed("steps", arrays["steps"], np.float32, len(network.shape.sizes))
                with np.errstate(over="ignore"):
                    entries = entries * np.repeat(steps, network._counts(touched))
            network.weights[touched] = entries
            network.check()
            return network

    def touched(self) -> Bools:
        """Which entries differ from `untouched`, bool[entries]."""
        return self.weights != np.float32(self.untouched)

    def _counts(self, touched: Bools) -> list[int]:
        return [int(np.count_nonzero(part)) for part in np.split(touched, np.cumsum(self.shape.sizes)[:-1])]

    @classmethod
    def load(cls, path: FilePath) -> tuple["TupleNetwork", str]:
        """(the network in a file, the file's checksum); raises ValueError if it is damaged or no network."""
        spec, arrays, checksum = read_arrays(path, FORMAT, VERSION)
        with in_place(f"{path} cannot be read"):
            network = cls.unpacked(spec, arrays)
        network.record = dict(spec.get("record") or {})
        return network, checksum

    def check(self) -> None:
        """Raise NotFiniteError if an entry is NaN, or so large that sums may overflow."""
        for extreme in (self.weights.min(), self.weights.max()):
            if not abs(float(extreme)) <= MOST:
                expected = f"numbers from {-MOST:g} to {MOST:g}"
                raise NotFiniteError(f"an entry of the network is {extreme}; expected {expected}")


def touched_entries(packed: Bytes, count: int) -> Bools:
    """Which of `count` entries are touched, bool[count], from the array ``touched`` uint8[count / 8] of a file.

    Raises ValueError if the array has another size or type, or bits beyond `count`.
    """
    found = np.unpackbits(typed("touched", packed, np.uint8, -(-count // 8))).view(np.bool_)
    if found[count:].any():
        raise ValueError(f"touched has bits beyond the network's {count} entries; expected none")
    return found[:count]


def _planes(values: Array) -> Bytes:
    """The first bytes of all numbers, then the second …, uint8[bytes, n]: they compress far better than mixed."""
    little = values.astype(values.dtype.newbyteorder("<"))
    return np.ascontiguousarray(little.view(np.uint8).reshape(values.size, values.itemsize).T)
