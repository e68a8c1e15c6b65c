"""Tuple networks of Tetris: the value of a board is a sum of table entries, one for each block of its cells.

The block ``3x4`` is 3 rows high and 4 columns wide. It is read at every place of the field where it fits. Each place
has its own table, with an entry for every pattern of empty and filled cells (a *systematic* network). If the game is
the same in a mirror, places that are mirror images share a table. An empty block counts 0, so nothing above the stack
need be read; one bias stands for all empty blocks. Besides blocks a network may count features of `linear.py`, of the
board and of the placement. A network without blocks is a linear controller.

A network is a heuristic for every player and search that takes one. Its entries are multiples of 2⁻²⁰, so that their
sums are exact in any order.

Source: W. Jaśkowski, M. Szubert, P. Liskowski & K. Krawiec, High-dimensional function approximation for knowledge-free
reinforcement learning: a case study in SZ-Tetris (2015).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, NamedTuple

import numpy as np
from mergefall import weighted
from mergefall.kernels import kernel
from mergefall.tetris.field import clear, full_rows, height_of, is_above, own_cells, put
from mergefall.tetris.heuristics.base import Heuristic, Kernels
from mergefall.tetris.heuristics.linear import FEATURES, Linear, linear
from mergefall.tetris.pieces import HEIGHTS
from mergefall.typing import Array, Kernel
from mergefall.words import popcount, trailing_zeros
from numpy.typing import NDArray

U = np.uint64
BIAS = len(FEATURES)  # weights are ordered: features by their slots, bias, tables
FIRST = BIAS + 1  # index of the first table's first weight
LARGEST = 20  # cells of a block, at most
MOST = 1 << 27  # weights, at most
STEP = 2.0**-20  # all weights are multiples of it


class Shape(NamedTuple):
    """What a network reads: blocks (rows, columns) and features, on a field of `cols` columns and `rows` rows."""

    cols: int
    rows: int
    blocks: tuple[tuple[int, int], ...]
    features: tuple[str, ...]
    mirrored: bool  # whether places that are mirror images share a table

    @property
    def tables(self) -> list[tuple[int, int, int, int]]:
        """For each block (its rows, its columns, number of columns with tables, index of its first weight)."""
        found, begin = [], FIRST
        for high, wide in self.blocks:
            across = self.cols - wide + 1
            across = (across + 1) // 2 if self.mirrored else across
            found.append((high, wide, across, begin))
            begin += across * (self.rows - high + 1) << high * wide
        return found

    @property
    def size(self) -> int:
        """The number of weights."""
        return FIRST + sum(across * (self.rows - high + 1) << high * wide for high, wide, across, _ in self.tables)

    @property
    def lookups(self) -> int:
        """How many weights a value is the sum of, at most."""
        return FIRST + sum((self.cols - wide + 1) * (self.rows - high + 1) for high, wide in self.blocks)

    @property
    def text(self) -> str:
        """The blocks as text."""
        return " ".join(f"{high}x{wide}" for high, wide in self.blocks)


def network_shape(blocks: str, cols: int, rows: int, features: Iterable[str] = (), mirrored: bool = True) -> Shape:
    """The shape of a network with the blocks that a text names.

    Raises ValueError if a block does not fit the field, has more than 20 cells or repeats; if there is neither a block
    nor a feature; or if the network has more than 2²⁷ weights.

    >>> network_shape("3x3 4x2", 10, 20).size
    58635
    >>> network_shape("5x5", 10, 20)
    Traceback (most recent call last):
    ValueError: block '5x5' does not fit 10 columns and 20 rows; expected ROWSxCOLUMNS of at most 20 cells
    """
    if not isinstance(blocks, str):
        raise ValueError(f"blocks is {blocks!r}; expected text, such as '3x3 4x2'")
    found = []
    for word in blocks.split():
        high, _, wide = word.partition("x")
        size = (int(high), int(wide)) if high.isdecimal() and wide.isdecimal() else (0, 0)
        if not (1 <= size[0] <= rows and 1 <= size[1] <= cols and size[0] * size[1] <= LARGEST):
            raise ValueError(
                f"block {word!r} does not fit {cols} columns and {rows} rows; "
                f"expected ROWSxCOLUMNS of at most {LARGEST} cells"
            )
        found.append(size)
    if len(set(found)) < len(found):
        raise ValueError(f"blocks is {blocks!r}; expected each block once")
    shape = Shape(cols, rows, tuple(found), tuple(features), bool(mirrored))
    if not shape.blocks and not shape.features:
        raise ValueError("a network without blocks and features; expected at least one, such as '3x3'")
    if shape.size > MOST:
        raise ValueError(f"blocks {blocks!r} make {shape.size} weights on {cols}×{rows}; expected at most {MOST}")
    return shape


class _Blocks(NamedTuple):
    """Two kernels for all blocks of some sizes.

    Attributes:
        of_rows: (columns, first, end, weights) -> float64, the sum over blocks whose lowest row is first … end − 1.
        locate: (columns, end, places, count) -> new count. Writes to places[count:], uint32, the index of the entry of
            each block that is not empty and whose lowest row is below `end`.
    """

    of_rows: Kernel
    locate: Kernel


@kernel
def _no_rows(columns, first, end, weights):
    return 0.0


@kernel
def _no_places(columns, end, places, count):
    return count


def _with_block(shape: Shape, high: int, wide: int, begin: int, others: _Blocks) -> _Blocks:
    """The kernels of one block size and of the sizes in `others`, in one."""
    name = f"{shape.cols}x{shape.rows}-{high}x{wide}-{begin}-{shape.mirrored}-{others.of_rows.variant}"
    mirrored, across, up, offset = shape.mirrored, shape.cols - wide + 1, shape.rows - high + 1, U(begin)
    cells, last, row, column = U(high * wide), U(high * (wide - 1)), U((1 << high) - 1), U(high)
    everything = U((1 << high * wide) - 1)
    of_others, locate_others = others

    @kernel(variant=name, forceinline=True)
    def entry(c, y, seen, mirror):
        """The index of the entry of the block at column `c` and row `y`; `seen` and `mirror` are its pattern's bits."""
        if mirrored:
            if 2 * c + 1 > across:
                c, seen = across - 1 - c, mirror
            elif 2 * c + 1 == across:
                seen = min(seen, mirror)
        return offset + (U(c * up + y) << cells) + seen

    @kernel(variant=name)
    def of_rows(columns, first, end, weights):
        value = 0.0
        for y in range(first, min(end, up)):
            seen, mirror = U(0), U(0)
            for c in range(1 - wide, across):
                new = columns[U(c + wide - 1)] >> U(y) & row
                seen, mirror = seen >> column | new << last, (mirror << column | new) & everything
                if c >= 0 and seen:
                    value += weights[entry(c, y, seen, mirror)]
        return value + of_others(columns, first, end, weights)

    @kernel(variant=name)
    def locate(columns, end, places, count):
        for y in range(min(end, up)):
            seen, mirror = U(0), U(0)
            for c in range(1 - wide, across):
                new = columns[U(c + wide - 1)] >> U(y) & row
                seen, mirror = seen >> column | new << last, (mirror << column | new) & everything
                if c >= 0 and seen:
                    places[count] = np.uint32(entry(c, y, seen, mirror))
                    count += 1
        return locate_others(columns, end, places, count)

    return _Blocks(of_rows, locate)


@kernel
def stack_height(columns):
    """The height of the highest column."""
    cells = U(0)
    for c in range(columns.size):
        cells |= columns[c]
    return height_of(cells)


@cache
def _block_kernels(shape: Shape) -> _Blocks:
    """The kernels of all blocks of a shape."""
    found = _Blocks(_no_rows, _no_places)
    for high, wide, _, begin in shape.tables:
        found = _with_block(shape, high, wide, begin, found)
    return found


@cache
def _kernels(cls: type[BlockNetwork], clears: bool) -> Kernels:
    shape, variant = cls.shape, f"{cls.name}-{clears}"
    of_rows, has_blocks, has_features = _block_kernels(shape).of_rows, bool(shape.blocks), bool(shape.features)
    of_features = linear(shape.features or FEATURES[:1]).kernels(clears)
    move_features, board_features = of_features.move, of_features.board
    tallest, total = max([high for high, _ in shape.blocks], default=1), U(shape.rows)

    @kernel(variant=variant)
    def move(piece, rotation, column, y, lines, own, rows, weights):
        return move_features(piece, rotation, column, y, lines, own, rows, weights) if has_features else 0.0

    @kernel(variant=variant)
    def last(piece, rotation, column, y, rows, weights):
        return 0.0

    @kernel(variant=variant)
    def board(columns, rows, weights):
        value = np.float64(weights[BIAS])
        if has_features:
            value += board_features(columns, rows, weights)
        if has_blocks:
            value += of_rows(columns, 0, stack_height(columns), weights)
        return value

    # memo[y], as float64, is the sum over blocks whose lowest row is below y; memo[rows] is the sum over all blocks.
    @kernel(variant=variant)
    def prepare(columns, rows, weights, memo):
        if has_blocks:
            sums, value = memo.view(np.float64), 0.0
            for y in range(shape.rows):
                sums[y] = value
                value += of_rows(columns, y, y + 1, weights)
            sums[total] = value

    @kernel(variant=variant)
    def leaf(columns, memo, piece, rotation, column, y, rows, clear_first, weights, scratch):
        end = y + HEIGHTS[piece, rotation]
        above = end > rows
        if above and not (clears and clear_first):
            return -np.inf
        for i in range(columns.size):
            scratch[i] = columns[i]
        put(scratch, piece, rotation, column, y)
        full, lines, own, lowest = full_rows(scratch), 0, 0, y
        if clears and full:
            lowest = min(y, trailing_zeros(full))  # a row may have been full before this placement
            lines, own = popcount(full), own_cells(piece, rotation, y, full)
            clear(scratch, full)
        if above and is_above(scratch, rows):
            return -np.inf
        value = move(piece, rotation, column, y, lines, own, rows, weights) + np.float64(weights[BIAS])
        if has_features:
            value += board_features(scratch, rows, weights)
        if has_blocks:  # only blocks that reach into the piece's rows have changed, or into the rows that came down
            sums, first = memo.view(np.float64), max(0, lowest - tallest + 1)
            value += sums[U(first)]
            if lines:
                value += of_rows(scratch, first, stack_height(scratch), weights)
            else:
                value += of_rows(scratch, first, end, weights) + (sums[total] - sums[U(end)])
        return value

    return Kernels(move, last, board, prepare, leaf)


@dataclass(frozen=True, eq=False)
class BlockNetwork(Heuristic):
    """A heuristic by a tuple network of one shape; `network_class` makes a class for each shape.

    Args:
        weights: float[shape.size]; they are rounded to multiples of 2⁻²⁰. Raises ValueError if the shape differs, or a
            weight is not finite or too large.

    Example:
        >>> from mergefall.tetris import place
        >>> shape = network_shape("1x2", 4, 4, mirrored=False)
        >>> weights = np.zeros(shape.size)
        >>> weights[FIRST + 3] = 0.5  # both cells in the left corner
        >>> network = network_class(shape)(weights)
        >>> [network(place("..../..../..../....", "O", rotation=0, column=c)) for c in range(3)]
        [0.5, 0.0, 0.0]
    """

    shape: ClassVar[Shape]
    slots: ClassVar[tuple[str, ...]] = (*FEATURES, "bias", "blocks")
    board_slots: ClassVar[tuple[str, ...]] = (*Linear.board_slots, "bias", "blocks")

    weights: Array

    def __post_init__(self) -> None:
        most = weighted.LARGEST[self.real]
        if np.shape(self.weights) != (self.shape.size,) or not np.float64(np.abs(self.weights).max()) <= most:
            found = f"{getattr(self.weights, 'dtype', None)}{list(np.shape(self.weights))}"
            expected = f"{self.shape.size} finite numbers from {-most:g} to {most:g}"
            raise ValueError(f"weights are {found}; expected {expected}")
        rounded = np.round(np.asarray(self.weights, dtype=np.float64) / STEP) * STEP
        object.__setattr__(self, "weights", rounded)
        for name in self.term_names:
            slot = self.slots.index(name)
            object.__setattr__(self, name, float(rounded[slot]) if slot < BIAS else 1.0)

    def __reduce__(self) -> Any:
        """Copies and pickles name the class by its shape."""
        return _network_of, (self.shape, self.weights)

    def weight_vector(self) -> NDArray[np.float64]:
        return self.weights

    def check_size(self, rows: int, cols: int) -> None:
        if self.shape.blocks and (rows, cols) != (self.shape.rows, self.shape.cols):
            expected = f"{self.shape.rows} rows and {self.shape.cols} columns"
            raise ValueError(f"board of {rows} rows and {cols} columns; the network is for {expected}")

    def to_json(self) -> dict[str, Any]:
        raise ValueError(f"a network of {self.shape.size} weights has no name; it is played from a model file")

    @classmethod
    def kernels(cls, clears: bool = True) -> Kernels:
        return _kernels(cls, clears)

    @classmethod
    def term_kernels(cls) -> tuple[Kernel, Kernel]:
        return _term_kernels(cls)


@cache
def network_class(shape: Shape) -> type[BlockNetwork]:
    """The `BlockNetwork` class of a shape."""
    of = "".join(str(FEATURES.index(name)) for name in shape.features)
    name = f"network-{shape.cols}x{shape.rows}-{'-'.join(shape.text.split())}-{of}-{'mirrored' * shape.mirrored}"
    names = (*shape.features, "bias", *["blocks"] * bool(shape.blocks))
    attributes = {"name": name, "shape": shape, "term_names": names, "__module__": __name__}
    return type("BlockNetwork", (BlockNetwork,), attributes)


def _network_of(shape: Shape, weights: Array) -> BlockNetwork:
    return network_class(shape)(weights)


@cache
def _term_kernels(cls: type[BlockNetwork]) -> tuple[Kernel, Kernel]:
    of_move, of_board = Linear.term_kernels()
    of_rows = _block_kernels(cls.shape).of_rows

    @kernel(variant=cls.name)
    def terms_of_board(columns, rows, weights, terms):
        of_board(columns, rows, weights, terms)
        terms[BIAS] = weights[BIAS]
        terms[FIRST] = of_rows(columns, 0, stack_height(columns), weights)

    return of_move, terms_of_board


@cache
def locating_kernel(shape: Shape) -> Kernel:
    """A kernel that lists the weights whose sum is a placement's value, for learning.

    It takes (columns after clearing, piece, rotation, column, y, lines, own, places, factors) and returns a count.

    - `places`: uint32[shape.lookups]; the kernel writes the weights' indices to places[:count].
    - `factors`: float64[BIAS]; the kernel writes each feature's term.

    The value is the sum of the weights at places[:count], those of features multiplied by their factors.
    """
    find, has_features = _block_kernels(shape).locate, bool(shape.features)
    used = np.array([FEATURES.index(name) for name in shape.features], dtype=np.int64)
    of_move, of_board = Linear.term_kernels()
    name, rows = network_class(shape).name, shape.rows

    @kernel(variant=name)
    def locate(columns, piece, rotation, column, y, lines, own, places, factors):
        count = 0
        if has_features:
            of_move(piece, rotation, column, y, lines, own, rows, factors, factors)
            of_board(columns, rows, factors, factors)
            for slot in used:
                places[count] = slot
                count += 1
        places[count] = BIAS
        count += 1
        return find(columns, stack_height(columns), places, count)

    return locate
