"""n-tuple networks of 2048, compiled: the value of an afterstate as a sum of table entries.

A pattern is a list of cells, in hexadecimal digits of their row-major numbers: ``012456`` on 4×4 is the 2×3 block in a
corner. Each pattern has a table with an entry for every choice of ranks on its cells; the ranks, read in the pattern's
order as the digits of one number, are the entry's index. Its base, the *radix*, is 16, the ranks a packed board has; on
a board of n < 14 cells it is n + 2, for no tile of rank n + 2 can arise there (as it takes two of rank n + 1, while one
of rank n + 1 is made of n tiles and a new 4), and a larger rank is read as n + 1. A table is shared by the symmetric
images of its pattern (eight on a square, four on other rectangles), so a value is the sum of images × patterns
*look-ups*. All tables lie in one float32 array, one after another.

A network may have several *stages*, each with tables of its own: a board belongs to the last stage whose tile it holds
(or holds a larger one). In a later stage an entry of exactly 0 has not been touched, and stands for what the stage
before has there; when it is adjusted, it starts from that (weight promotion).

The index order puts a pattern's last cell into the lowest bits, so what is next to each other in memory differs there:
a cache line holds the sixteen ranks of the last cell. Patterns that begin in a corner and end inside, as the usual
ones do, keep the tiles that move most in one line.

Source: Szubert & Jaśkowski (2014), "Temporal difference learning of N-tuple networks for the game 2048"; stages and
promotion: Jaśkowski (2018), "Mastering 2048 with delayed temporal coherence learning, multistage weight promotion …".
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from mergefall.game2048.packed import U, flip, mirror, top_rank, transpose
from mergefall.kernels import kernel, prefetch

F = np.float32
EVEN = U(0x0101010101010101)  # the lowest bit of every other cell of a packed board
RUNS = 4  # runs of neighbouring cells that one kernel gathers; a longer pattern takes several
LONGEST = 8  # cells of a pattern: on 4×4 its 16⁸ entries would be 16 GiB, on 3×3 11⁸ are 0.8


class Shape(NamedTuple):
    """What a network looks at: cells by pattern, the board's size, and the ranks with which later stages begin."""

    patterns: tuple[tuple[int, ...], ...]
    rows: int = 4
    cols: int = 4
    stages: tuple[int, ...] = ()

    @property
    def radix(self) -> int:
        """The number of ranks that are told apart, that of an empty cell among them."""
        return min(16, self.rows * self.cols + 2)

    @property
    def sizes(self) -> list[int]:
        """The number of entries of each pattern's table."""
        return [self.radix ** len(pattern) for pattern in self.patterns]

    @property
    def size(self) -> int:
        """The number of entries of one stage."""
        return sum(self.sizes)

    @property
    def images(self) -> int:
        """The number of symmetries of the board."""
        return 8 if self.rows == self.cols else 4

    @property
    def lookups(self) -> int:
        """The number of entries that a value is the sum of."""
        return self.images * len(self.patterns)

    def __str__(self) -> str:
        """All of it in one word, which tells kernels apart: ``4x4-0123-0145`` or, with a stage, ``4x4-0123@14``."""
        cells = ["".join(f"{cell:x}" for cell in pattern) for pattern in self.patterns]
        word = "-".join([f"{self.rows}x{self.cols}", *cells]) + "".join(f"@{rank}" for rank in self.stages)
        return word if len(word) < 80 else hashlib.sha256(word.encode()).hexdigest()[:32]  # it goes into file names


def network_shape(patterns: str | Iterable[str], rows: int = 4, cols: int = 4, stages: Iterable[int] = ()) -> Shape:
    """The shape of a network from patterns in text, `stages` in tiles; a ValueError for what makes no network.

    >>> network_shape("0123 0145").sizes
    [65536, 65536]
    >>> network_shape("0129", 3, 3)
    Traceback (most recent call last):
    ValueError: pattern '0129' has no meaning on 3×3; expected 1 to 8 different cells out of 012345678
    """
    if not all(isinstance(side, int) and 2 <= side <= 4 for side in (rows, cols)):
        raise ValueError(f"a network for boards of {rows!r}×{cols!r}; expected 2×2 to 4×4")
    words = patterns.split() if isinstance(patterns, str) else list(patterns)
    known = "0123456789abcdef"[: rows * cols]
    for word in words:
        if not (isinstance(word, str) and 1 <= len(set(word)) == len(word) <= LONGEST and set(word) <= set(known)):
            raise ValueError(
                f"pattern {word!r} has no meaning on {rows}×{cols}; "
                f"expected 1 to {LONGEST} different cells out of {known}"
            )
    if not words:
        raise ValueError("a network without patterns; expected at least one, such as '012345'")
    tiles = list(stages)
    if tiles != sorted(set(tiles) & {1 << rank for rank in range(2, 16)}):
        raise ValueError(f"stages begin with the tiles {tiles}; expected rising powers of two from 4 to 32768")
    shape = Shape(
        tuple(tuple(int(cell, 16) for cell in word) for word in words),
        rows,
        cols,
        tuple(tile.bit_length() - 1 for tile in tiles),
    )
    if shape.size * (1 + len(tiles)) >= 1 << 32:
        raise ValueError(f"a network of {shape.size * (1 + len(tiles))} entries; expected fewer than 2³²")
    return shape


class TupleKernels(NamedTuple):
    """The kernels of one shape. Entries are known by their place in the one array, uint32 where they are kept.

    ``value(board, weights)`` is float32; ``locate(board, weights, places, first)`` writes the places of a board's
    entries to ``places[first:first + lookups]`` (uint32) and begins to fetch them; ``total(weights, places, first)`` is
    then the value; ``adjust(weights, places, first, step)`` adds to each.
    """

    value: Any
    locate: Any
    total: Any
    adjust: Any
    promoted: Any  # (weights, place) the entry at a place, or what it stands for


def _runs(pattern: tuple[int, ...], rows: int, cols: int) -> list[tuple[int, int]]:
    """How to gather a pattern's index from a packed board: (rotate right by, mask) of each run of cells.

    In a packed board cell 0 is lowest, in an index the first cell is highest. So the pattern is taken turned by half a
    circle, one of its images, in which runs of neighbours rise as the index wants them.
    """
    masks: dict[int, int] = {}
    for i, cell in enumerate(pattern):
        row, col = divmod(rows * cols - 1 - cell, cols)
        target = len(pattern) - 1 - i
        turn = 4 * (4 * row + col - target) % 64
        masks[turn] = masks.get(turn, 0) | 15 << 4 * target
    return list(masks.items())


def _gather(name: str, shape: Shape, pattern: tuple[int, ...], offset: int) -> Any:
    """A kernel: the place of a pattern's entry on one image of a board, whose stage begins at `base`."""
    if shape.radix == 16:
        return _gather_runs(name, _runs(pattern, shape.rows, shape.cols), offset)
    turns = tuple(U(4 * (4 * (cell // shape.cols) + cell % shape.cols)) for cell in pattern)
    radix, start = U(shape.radix), U(offset)

    @kernel(variant=name, forceinline=True)
    def gather(image, base):
        index = U(0)
        for turn in turns:
            index = index * radix + (image >> turn & U(15))
        return index + (base + start)

    return gather


def _gather_runs(name: str, runs: list[tuple[int, int]], offset: int) -> Any:
    """The same from runs of cells, where four bits of the board are a digit."""
    taken = runs[:RUNS] + [(0, 0)] * (RUNS - len(runs))
    (t0, m0), (t1, m1), (t2, m2), (t3, m3) = [(U(turn), U(mask)) for turn, mask in taken]
    b0, b1, b2, b3 = [U(-turn % 64) for turn, _ in taken]
    start = U(offset)

    @kernel(variant=name, forceinline=True)
    def gather(image, base):
        index = (image >> t0 | image << b0) & m0 | (image >> t1 | image << b1) & m1
        index |= (image >> t2 | image << b2) & m2 | (image >> t3 | image << b3) & m3
        return index + (base + start)

    if len(runs) <= RUNS:
        return gather
    rest = _gather_runs(name + "+", runs[RUNS:], 0)

    @kernel(variant=name, forceinline=True)
    def gather_long(image, base):
        return gather(image, base) + rest(image, U(0))

    return gather_long


@cache
def tuple_kernels(shape: Shape) -> TupleKernels:
    """The kernels of a network's shape; what differs between shapes is known to the compiler."""
    name, lookups, square = str(shape), shape.lookups, shape.images == 8
    across, down = U(4 * (4 - shape.cols)), U(16 * (4 - shape.rows))  # a smaller board stays in its corner

    base_of, promoted = _stage_kernels(name, shape)
    sum_of, places_of = _over_patterns(shape, promoted)

    above, largest = U(16 - shape.radix) * EVEN, U(shape.radix - 1) * EVEN  # in every other cell

    @kernel(variant=name, forceinline=True)
    def known(board):
        """The board, its ranks from the radix on read as the one below it."""
        if above == U(0):
            return board
        found = U(0)
        for turn in (U(0), U(4)):
            cells = board >> turn & U(15) * EVEN
            larger = (cells + above >> U(4) & EVEN) * U(15)
            found |= (cells & ~larger | largest & larger) << turn
        return found

    @kernel(variant=name, forceinline=True)
    def four(board):
        mirrored = mirror(board) >> across
        return board, mirrored, flip(board) >> down, flip(mirrored) >> down

    @kernel(variant=name)
    def value(board, weights):
        board = known(board)
        base = base_of(board)
        a, b, c, d = four(board)
        found = (sum_of(a, base, weights) + sum_of(b, base, weights)) + (
            sum_of(c, base, weights) + sum_of(d, base, weights)
        )
        if square:
            a, b, c, d = four(transpose(board))
            found += (sum_of(a, base, weights) + sum_of(b, base, weights)) + (
                sum_of(c, base, weights) + sum_of(d, base, weights)
            )
        return found

    @kernel(variant=name)
    def locate(board, weights, places, first):
        board = known(board)
        base = base_of(board)
        places_of(four(board), base, places, first)
        if square:
            places_of(four(transpose(board)), base, places, first + U(4))
        for k in range(lookups):
            prefetch(weights, U(places[first + U(k)]))

    @kernel(variant=name)
    def total(weights, places, first):
        a, b, c, d = F(0), F(0), F(0), F(0)
        for k in range(0, lookups, 4):
            at = first + U(k)
            a += promoted(weights, U(places[at]))
            b += promoted(weights, U(places[at + U(1)]))
            c += promoted(weights, U(places[at + U(2)]))
            d += promoted(weights, U(places[at + U(3)]))
        return (a + b) + (c + d)

    @kernel(variant=name)
    def adjust(weights, places, first, step):
        for k in range(lookups):
            place = U(places[first + U(k)])
            weights[place] = promoted(weights, place) + step

    return TupleKernels(value, locate, total, adjust, promoted)


def _stage_kernels(name: str, shape: Shape) -> tuple[Any, Any]:
    """Two kernels: where the entries of a board's stage begin, and the entry at a place or what it stands for."""
    stages, size = shape.stages, U(shape.size)
    if not stages:

        @kernel(variant=name, forceinline=True)
        def base_of_all(board):
            return U(0)

        @kernel(variant=name, forceinline=True)
        def entry(weights, place):
            return weights[place]

        return base_of_all, entry

    @kernel(variant=name, forceinline=True)
    def base_of(board):
        top, base = top_rank(board), U(0)
        for i in range(len(stages)):
            base += size * U(top >= stages[i])
        return base

    @kernel(variant=name, forceinline=True)
    def promoted(weights, place):
        found = weights[place]
        while found == F(0) and place >= size:
            place -= size
            found = weights[place]
        return found

    return base_of, promoted


def _over_patterns(shape: Shape, promoted: Any) -> tuple[Any, Any]:
    """Two kernels: the sum of all patterns' entries on one image, and the places of all their entries on four."""
    sums: list[Any] = []
    places: list[Any] = []
    offset = 0
    for i, pattern in enumerate(shape.patterns):
        name = f"{shape}-{i}"
        gather = _gather(name, shape, pattern, offset)
        sums.append(_entry(name, gather, promoted))
        places.append(_four_places(name, gather, shape.images * i))
        offset += shape.sizes[i]
    while len(sums) > 1:  # in pairs, so that additions need not wait for each other
        pairs = range(0, len(sums) - 1, 2)
        sums = [_plus(f"{shape}-{len(sums)}.{i}", sums[i], sums[i + 1]) for i in pairs] + sums[len(sums) // 2 * 2 :]
    while len(places) > 1:
        places = [*places[:-2], _both(f"{shape}-{len(places)}", places[-2], places[-1])]
    return sums[0], places[0]


def _entry(name: str, gather: Any, promoted: Any) -> Any:
    @kernel(variant=name, forceinline=True)
    def entry(image, base, weights):
        return promoted(weights, gather(image, base))

    return entry


def _plus(name: str, one: Any, other: Any) -> Any:
    @kernel(variant=name, forceinline=True)
    def plus(image, base, weights):
        return one(image, base, weights) + other(image, base, weights)

    return plus


def _four_places(name: str, gather: Any, begin: int) -> Any:
    ahead = U(begin)

    @kernel(variant=name, forceinline=True)
    def four_places(images, base, places, first):
        a, b, c, d = images
        at = first + ahead
        places[at] = np.uint32(gather(a, base))
        places[at + U(1)] = np.uint32(gather(b, base))
        places[at + U(2)] = np.uint32(gather(c, base))
        places[at + U(3)] = np.uint32(gather(d, base))

    return four_places


def _both(name: str, one: Any, other: Any) -> Any:
    @kernel(variant=name, forceinline=True)
    def both(images, base, places, first):
        one(images, base, places, first)
        other(images, base, places, first)

    return both
