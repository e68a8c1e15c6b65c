"""n-tuple networks of 2048, compiled: the value of an afterstate as a sum of table entries.

**Patterns.** A pattern is a list of cells, written as hexadecimal digits of their row-major numbers: ``012456`` on 4×4
is the 2×3 block in a corner. Each pattern has one table. The ranks on its cells, read in the pattern's order as the
digits of one number, are the index of an entry:

    index = Σ rank(cell i) · radix^(length − 1 − i)

**Radix.** It is 16 on boards of 14 cells or more, because a packed board holds ranks below 16. On n < 14 cells it is
n + 2: rank n + 1 takes n tiles and a new 4, so two of it never meet, and rank n + 2 cannot arise. Larger ranks are read
as radix − 1.

**Symmetries.** All images of a pattern (eight on a square, four on other rectangles) share its table. A value is the
sum of images × patterns *look-ups*.

**Memory.** All tables lie in one float32 array, one after another; an entry's index in that array is its *place*. A
pattern's last cell takes the lowest digit, so one cache line holds the sixteen ranks of that cell. Patterns that begin
in a corner and end inside, as the usual ones do, keep the tiles that change most in one line.

Source: Szubert & Jaśkowski (2014), "Temporal difference learning of N-tuple networks for the game 2048".
"""

from collections.abc import Iterable, Sequence
from functools import cache
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from mergefall.game2048.packed import U, flip, mirror, transpose
from mergefall.kernels import kernel, prefetch
from mergefall.typing import Kernel

F = np.float32
EVEN = U(0x0101010101010101)  # the lowest bit of every other cell of a packed board
LONGEST = 8  # cells of a pattern: on 4×4 its 16⁸ entries would be 16 GiB, on 3×3 11⁸ are 0.8


class Shape(NamedTuple):
    """The shape of a network: the cells of each pattern, and the board's size."""

    patterns: tuple[tuple[int, ...], ...]
    rows: int = 4
    cols: int = 4

    @property
    def radix(self) -> int:
        """The number of ranks that a table tells apart, rank 0 (empty) included."""
        return min(16, self.rows * self.cols + 2)

    @property
    def sizes(self) -> list[int]:
        """The number of entries of each pattern's table."""
        return [self.radix ** len(pattern) for pattern in self.patterns]

    @property
    def images(self) -> int:
        """The number of symmetries of the board."""
        return 8 if self.rows == self.cols else 4

    @property
    def lookups(self) -> int:
        """The number of entries that add up to a value."""
        return self.images * len(self.patterns)


def network_shape(patterns: str | Iterable[str], rows: int = 4, cols: int = 4) -> Shape:
    """The shape of a network from its patterns in text; raises ValueError for patterns or a size that do not work.

    >>> network_shape("0123 0145").sizes
    [65536, 65536]
    >>> network_shape("0129", 3, 3)
    Traceback (most recent call last):
    ValueError: pattern '0129' does not fit 3×3; expected 1 to 8 different cells out of 012345678
    """
    if not all(isinstance(side, int) and 2 <= side <= 4 for side in (rows, cols)):
        raise ValueError(f"a network for boards of {rows!r}×{cols!r}; expected 2×2 to 4×4")
    words = patterns.split() if isinstance(patterns, str) else list(patterns)
    known = "0123456789abcdef"[: rows * cols]
    for word in words:
        if not (isinstance(word, str) and 1 <= len(set(word)) == len(word) <= LONGEST and set(word) <= set(known)):
            raise ValueError(
                f"pattern {word!r} does not fit {rows}×{cols}; expected 1 to {LONGEST} different cells out of {known}"
            )
    if not words:
        raise ValueError("a network without patterns; expected at least one, such as '012345'")
    shape = Shape(tuple(tuple(int(cell, 16) for cell in word) for word in words), rows, cols)
    if sum(shape.sizes) >= 1 << 32:
        raise ValueError(f"a network of {sum(shape.sizes)} entries; expected fewer than 2³²")
    return shape


class TupleKernels(NamedTuple):
    """The kernels of one shape."""

    value: Kernel  # (board, weights): the value of a packed board, float32
    # (board, weights, places, first): write the places of the board's entries to places[first:first + lookups], uint32,
    # and begin to fetch the entries.
    locate: Kernel
    total: Kernel  # (weights, places, first): the value of a board from its located places, float32
    adjust: Kernel  # (weights, places, first, step): add `step` to each located entry


@cache
def tuple_kernels(shape: Shape) -> TupleKernels:
    """The kernels of a network's shape; the compiler knows the shape."""
    lookups, four, square = shape.lookups, _four_images(shape), shape.images == 8
    places_of: Any = None
    offsets = accumulate(shape.sizes, initial=0)
    gathers = [_gather(shape, pattern, offset) for pattern, offset in zip(shape.patterns, offsets, strict=False)]
    for i, gather in enumerate(gathers):
        places_of = _four_places(gather, shape.images * i, places_of)
    sum_of = _sum(gathers)

    @kernel(forceinline=True)
    def sum_of_four(board, weights):
        a, b, c, d = four(board)
        return (sum_of(a, weights) + sum_of(b, weights)) + (sum_of(c, weights) + sum_of(d, weights))

    @kernel
    def value(board, weights):
        total = sum_of_four(board, weights)
        if square:
            total += sum_of_four(transpose(board), weights)
        return total

    @kernel
    def locate(board, weights, places, first):
        places_of(four(board), places, first)
        if square:
            places_of(four(transpose(board)), places, first + U(4))
        for k in range(lookups):
            prefetch(weights, U(places[first + U(k)]))

    @kernel
    def total(weights, places, first):
        a, b, c, d = F(0), F(0), F(0), F(0)  # four sums, so that additions need not wait for each other
        for k in range(0, lookups, 4):
            at = first + U(k)
            a += weights[U(places[at])]
            b += weights[U(places[at + U(1)])]
            c += weights[U(places[at + U(2)])]
            d += weights[U(places[at + U(3)])]
        return (a + b) + (c + d)

    @kernel
    def adjust(weights, places, first, step):
        for k in range(lookups):
            weights[U(places[first + U(k)])] += step

    return TupleKernels(value, locate, total, adjust)


def _four_images(shape: Shape) -> Kernel:
    """A kernel: the board, mirrored, flipped, and both; smaller boards stay in their corner of 4×4.

    Ranks from the radix on are lowered to radix − 1.
    """
    across, down = U(4 * (4 - shape.cols)), U(16 * (4 - shape.rows))
    above, largest = U(16 - shape.radix) * EVEN, U(shape.radix - 1) * EVEN  # in every other cell

    @kernel(forceinline=True)
    def four_images(board):
        if above:
            uncapped, board = board, U(0)
            for turn in (U(0), U(4)):
                cells = uncapped >> turn & U(15) * EVEN
                larger = (cells + above >> U(4) & EVEN) * U(15)
                board |= (cells & ~larger | largest & larger) << turn
        mirrored = mirror(board) >> across
        return board, mirrored, flip(board) >> down, flip(mirrored) >> down

    return four_images


# -- from images to entries -------------------------------------------------------------------------------------------


def _gather(shape: Shape, pattern: tuple[int, ...], offset: int) -> Kernel:
    """A kernel: the place of a pattern's entry for one image of a board; its table begins at `offset`.

    With radix 16, a digit is four bits of a packed board, and a run of neighbouring cells moves at once. A packed board
    has cell 0 in its lowest bits, an index has its first cell in the highest. So the pattern is taken turned by half a
    circle, one of its images: there, runs rise as in the index.
    """
    last, binary = shape.rows * shape.cols - 1, shape.radix == 16
    places = [divmod(last - cell if binary else cell, shape.cols) for cell in pattern]
    turns = tuple(U(4 * (4 * row + col)) for row, col in places)
    radix, start = U(shape.radix), U(offset)
    masks: dict[int, int] = {}  # rotate right by -> mask
    for i, turn in enumerate(turns):
        target = 4 * (len(pattern) - 1 - i)
        masks[(int(turn) - target) % 64] = masks.get((int(turn) - target) % 64, 0) | 15 << target
    runs = tuple((U(turn), U(-turn % 64), U(mask)) for turn, mask in masks.items())

    @kernel(forceinline=True)
    def gather_digits(image):
        index = U(0)
        for turn in turns:
            index = index * radix + (image >> turn & U(15))
        return index + start

    @kernel(forceinline=True)
    def gather_runs(image):
        index = start
        for right, left, mask in runs:
            index += (image >> right | image << left) & mask
        return index

    return gather_runs if binary else gather_digits


def _sum(gathers: Sequence[Kernel]) -> Kernel:
    """A kernel: the sum of some patterns' entries on one image, in pairs, so that additions need not wait."""
    if len(gathers) == 1:
        gather = gathers[0]

        @kernel(forceinline=True)
        def entry(image, weights):
            return weights[gather(image)]

        return entry
    half = 1 << (len(gathers) - 1).bit_length() - 1
    one, other = _sum(gathers[:half]), _sum(gathers[half:])

    @kernel(forceinline=True)
    def plus(image, weights):
        return one(image, weights) + other(image, weights)

    return plus


def _four_places(gather: Kernel, begin: int, others: Kernel | None) -> Kernel:
    """A kernel: writes the places of one pattern on four images, and those of the patterns before it."""
    ahead = U(begin)
    before: Any = others or kernel(lambda images, places, first: None, forceinline=True)

    @kernel(forceinline=True)
    def four_places(images, places, first):
        before(images, places, first)
        a, b, c, d = images
        at = first + ahead
        places[at] = np.uint32(gather(a))
        places[at + U(1)] = np.uint32(gather(b))
        places[at + U(2)] = np.uint32(gather(c))
        places[at + U(3)] = np.uint32(gather(d))

    return four_places
