"""Tuple networks of Tetris: the value of a board as a sum of table entries, one for each block of its cells.

The block ``3x4`` is 3 rows high and 4 columns wide. It lies wherever it fits into the field, and each place has a table
of its own with an entry for every pattern of empty and filled cells (a *systematic* network: W. Jaśkowski, M. Szubert,
P. Liskowski & K. Krawiec, High-dimensional function approximation for knowledge-free reinforcement learning: a case
study in SZ-Tetris, 2015). Where the game is the same seen in a mirror, places that are mirror images share a table. An
empty block counts nothing, so that what lies above the stack need not be looked at; one bias stands for all of these.
Beside blocks a network may count features of `linear.py`, those of the placement included; one without blocks is a
linear controller.

A network is a heuristic like the others, for every player and search that takes one. Its entries are multiples of
2⁻²⁰, so that sums of them are exact in whatever order they are added up.
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
from mergefall.words import popcount, trailing_zeros
from numpy.typing import NDArray

U = np.uint64
BIAS = len(FEATURES)  # the weights: those of the features, by their slots, the bias, the tables
FIRST = BIAS + 1
LARGEST = 20  # cells of a block
MOST = 1 << 27  # weights
STEP = 2.0**-20


class Shape(NamedTuple):
    """What a network looks at: features and blocks (rows, columns), on a field of `cols` columns and `rows` rows."""

    cols: int
    rows: int
    blocks: tuple[tuple[int, int], ...]
    features: tuple[str, ...]
    mirrored: bool  # whether places that are mirror images share a table

    @property
    def tables(self) -> list[tuple[int, int, int, int]]:
        """(rows of the block, columns of it, number of columns in which tables begin, index of the first weight)."""
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
        """The most weights that a value is the sum of."""
        return FIRST + sum((self.cols - wide + 1) * (self.rows - high + 1) for high, wide in self.blocks)

    @property
    def text(self) -> str:
        """The blocks as text."""
        return " ".join(f"{high}x{wide}" for high, wide in self.blocks)


def network_shape(blocks: str, cols: int, rows: int, features: Iterable[str] = (), mirrored: bool = True) -> Shape:
    """The shape of a network from blocks in text; a ValueError for what makes no network.

    >>> network_shape("3x3 4x2", 10, 20).size
    58635
    >>> network_shape("5x5", 10, 20)
    Traceback (most recent call last):
    ValueError: block '5x5' has no meaning on 10 columns and 20 rows; expected ROWSxCOLUMNS of at most 20 cells
    """
    if not isinstance(blocks, str):
        raise ValueError(f"blocks is {blocks!r}; expected text, such as '3x3 4x2'")
    found = []
    for word in blocks.split():
        high, _, wide = word.partition("x")
        size = (int(high), int(wide)) if high.isdecimal() and wide.isdecimal() else (0, 0)
        if not (1 <= size[0] <= rows and 1 <= size[1] <= cols and size[0] * size[1] <= LARGEST):
            raise ValueError(
                f"block {word!r} has no meaning on {cols} columns and {rows} rows; "
                f"expected ROWSxCOLUMNS of at most {LARGEST} cells"
            )
        found.append(size)
    if len(set(found)) < len(found):
        raise ValueError(f"blocks is {blocks!r}; expected each once")
    shape = Shape(cols, rows, tuple(found), tuple(features), bool(mirrored))
    if not shape.blocks and not shape.features:
        raise ValueError("a network without blocks and features; expected some, such as '3x3'")
    if shape.size > MOST:
        raise ValueError(f"blocks {blocks!r} make {shape.size} weights on {cols}×{rows}; expected at most {MOST}")
    return shape


class _Blocks(NamedTuple):
    """The kernels of some block sizes.

    ``of_rows(columns, first, end, weights)`` is float64, what the blocks count whose lowest rows are first … end − 1;
    ``locate(columns, end, places, count)`` writes where the entries are of those below row `end` that are not empty,
    uint32, to places[count:], and returns the new count.
    """

    of_rows: Any
    locate: Any


@kernel
def _no_rows(columns, first, end, weights):
    return 0.0


@kernel
def _no_places(columns, end, places, count):
    return count


def _block(shape: Shape, high: int, wide: int, begin: int, beneath: _Blocks) -> _Blocks:
    """The kernels of one block size and of those `beneath`, in one."""
    name = f"{shape.cols}x{shape.rows}-{high}x{wide}-{begin}-{shape.mirrored}-{beneath.of_rows.variant}"
    mirrored, across, up, offset = shape.mirrored, shape.cols - wide + 1, shape.rows - high + 1, U(begin)
    cells, last, row, column = U(high * wide), U(high * (wide - 1)), U((1 << high) - 1), U(high)
    everything = U((1 << high * wide) - 1)
    of_others, locate_others = beneath

    @kernel(variant=name, forceinline=True)
    def entry(c, y, seen, mirror):
        """Where the entry of the block at a column and row is, its cells seen from the left and in a mirror."""
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
def _of_blocks(shape: Shape) -> _Blocks:
    found = _Blocks(_no_rows, _no_places)
    for high, wide, _, begin in shape.tables:
        found = _block(shape, high, wide, begin, found)
    return found


@cache
def _kernels(cls: type[Network], clears: bool) -> Kernels:
    shape, variant = cls.shape, f"{cls.name}-{clears}"
    of_rows, has_blocks, has_features = _of_blocks(shape).of_rows, bool(shape.blocks), bool(shape.features)
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

    # `memo` holds what the blocks count whose lowest rows lie beneath each row, and at last all of them.
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
            lowest = min(y, trailing_zeros(full))  # a row that was full before, too
            lines, own = popcount(full), own_cells(piece, rotation, y, full)
            clear(scratch, full)
        if above and is_above(scratch, rows):
            return -np.inf
        value = move(piece, rotation, column, y, lines, own, rows, weights) + np.float64(weights[BIAS])
        if has_features:
            value += board_features(scratch, rows, weights)
        if has_blocks:  # only those that lie in the piece's rows have changed, or in what came down
            sums, first = memo.view(np.float64), max(0, lowest - tallest + 1)
            value += sums[U(first)]
            if lines:
                value += of_rows(scratch, first, stack_height(scratch), weights)
            else:
                value += of_rows(scratch, first, end, weights) + (sums[total] - sums[U(end)])
        return value

    return Kernels(move, last, board, prepare, leaf)


@dataclass(frozen=True, eq=False)
class Network(Heuristic):
    """The value of a placement by a network of one shape; `network_class` makes the classes.

    `weights` float64[shape.size], by place; they are rounded to multiples of 2⁻²⁰. Anything else is a ValueError.

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

    weights: NDArray[Any]

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

    def weight_vector(self) -> NDArray[np.float64]:
        return self.weights

    def to_json(self) -> dict[str, Any]:
        raise ValueError(f"a network of {self.shape.size} weights has no name; it is played from a model file")

    @classmethod
    def kernels(cls, clears: bool = True) -> Kernels:
        return _kernels(cls, clears)

    @classmethod
    def term_kernels(cls) -> tuple[Any, Any]:
        return _term_kernels(cls)


@cache
def network_class(shape: Shape) -> type[Network]:
    """The class of networks of a shape."""
    of = "".join(str(FEATURES.index(name)) for name in shape.features)
    name = f"network-{shape.cols}x{shape.rows}-{'-'.join(shape.text.split())}-{of}-{'mirrored' * shape.mirrored}"
    names = (*shape.features, "bias", *["blocks"] * bool(shape.blocks))
    return type("Network", (Network,), {"name": name, "shape": shape, "term_names": names, "__module__": __name__})


@cache
def _term_kernels(cls: type[Network]) -> tuple[Any, Any]:
    of_move, of_board = Linear.term_kernels()
    of_rows = _of_blocks(cls.shape).of_rows

    @kernel(variant=cls.name)
    def terms_of_board(columns, rows, weights, terms):
        of_board(columns, rows, weights, terms)
        terms[BIAS] = weights[BIAS]
        terms[FIRST] = of_rows(columns, 0, stack_height(columns), weights)

    return of_move, terms_of_board


@cache
def locating_kernel(shape: Shape) -> Any:
    """A kernel that tells what a placement's value is the sum of.

    (columns after clearing, piece, rotation, column, y, lines, own, places uint32[shape.lookups], factors
    float64[BIAS]) -> count: the value is that of the weights at places[:count], those of features times their factors.
    """
    find, has_features = _of_blocks(shape).locate, bool(shape.features)
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
