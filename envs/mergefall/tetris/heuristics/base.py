"""What a heuristic of Tetris is: named terms of a placement and of a board, a weight for each, and search kernels.

The value of a placement is a sum of three: terms of the move, which a deeper search adds up over its placements; terms
of the last placement; terms of the board after the last one. A subclass states each sum once, as a kernel over columns
(`field.py`), of any board size. `leaf` gives the value of many placements on one board; a subclass may have a faster
one of its own, which is tested to give the same value to the last bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mergefall import checks
from mergefall.kernels import kernel
from mergefall.tetris.field import clear, full_rows, is_above, own_cells, put, read_board
from mergefall.tetris.pieces import HEIGHTS, NAMES, identify
from mergefall.tetris.rules import FEWEST_COLS, FEWEST_ROWS, MOST_COLS, MOST_ROWS, Placement
from mergefall.weighted import WeightedSum
from mergefall.words import popcount

U = np.uint64
MEMO = 168  # words that `prepare` may fill


class Kernels(NamedTuple):
    """A heuristic as searches inline it; kernels, which all return float64 where they return anything.

    `columns` uint64[cols] is a board (`field.py`), (piece, rotation, column, y) a placement at rest on it, `lines` and
    `own` what it clears and its own cells in that, `rows` the field's, `weights` float64[k] the heuristic's
    `weight_vector()`.

    Attributes:
        move: (piece, rotation, column, y, lines, own, rows, weights), what adds up over all placements of a search.
        last: (piece, rotation, column, y, rows, weights), what only its last placement counts.
        board: (columns, rows, weights), what the board after it counts; of `of_locked` heuristics the one before
            clearing. Cells above the field do not count.
        prepare: (columns, rows, weights, memo uint64[MEMO]) -> None, what the leaves on one board share.
        leaf: (columns, memo, piece, rotation, column, y, rows, clear_first, weights, scratch uint64[cols]), move +
            last + board of one placement on the board that `memo` was prepared for, −inf if it ends the game.
            `columns` stays as it is, `scratch` is overwritten.
    """

    move: Any
    last: Any
    board: Any
    prepare: Any
    leaf: Any


@dataclass(frozen=True)
class Heuristic(WeightedSum):
    """A weighted sum of named terms of a placement and its board; subclasses say which, their fields are the weights.

    Example:
        >>> from mergefall.tetris import HEURISTICS, place
        >>> e = HEURISTICS["bcts"]
        >>> placed = place("..../..../..../##.#", "T", rotation=2, column=1)
        >>> round(e(placed), 3)
        -163.021
        >>> e.terms(placed)["eroded_cells"], e.board_terms(placed.board)["row_transitions"]
        (1.0, 8.0)
    """

    kind: ClassVar[str] = "heuristic"
    slots: ClassVar[tuple[str, ...]]  # the terms in the kernels' order, of which `term_names` may be some
    board_slots: ClassVar[tuple[str, ...]]  # those of a board; the others are of the placement
    of_locked: ClassVar[bool] = False  # the board's terms are of the board before clearing

    @classmethod
    def kernels(cls, clears: bool = True) -> Kernels:
        """The kernels of this class, for its weights are arguments of theirs.

        With `clears` False nothing is ever cleared: `leaf` leaves full rows on the board, as the Quintris search does.
        """
        raise NotImplementedError

    @classmethod
    def term_kernels(cls) -> tuple[Any, Any]:
        """Two kernels that write the terms before weighting into float64[len(slots)], each its own.

        The first takes (piece, rotation, column, y, lines, own, rows, weights, terms), the second (columns, rows,
        weights, terms).
        """
        raise NotImplementedError

    def weight_vector(self) -> NDArray[np.float64]:
        """The weights as the kernels take them, float64[k], first those of `slots`: 0 for what is not counted."""
        return np.array([getattr(self, name, 0.0) for name in self.slots], dtype=np.float64)

    def __call__(self, placement: Placement) -> float:
        """The value of a placement, −inf if it ended the game."""
        if placement.over:
            return -np.inf
        piece, rotation, column, y, rows = _at_rest(placement)
        kernels, weights = self.kernels(), self._weights
        value = kernels.move(
            piece, rotation, column, y, placement.lines, placement.removed_cells, rows, weights
        ) + kernels.last(piece, rotation, column, y, rows, weights)
        return value + self.board(placement.locked if self.of_locked else placement.board)

    def terms(self, placement: Placement) -> dict[str, float]:
        """The named parts before weighting; those of the board are of the one that counts, even if the game is over."""
        terms = np.zeros(len(self.slots))
        piece, rotation, column, y, rows = _at_rest(placement)
        of_move, _ = self.term_kernels()
        of_move(piece, rotation, column, y, placement.lines, placement.removed_cells, rows, self._weights, terms)
        found = dict(zip(self.slots, terms.tolist(), strict=True))
        found |= self.board_terms(placement.locked if self.of_locked else placement.board)
        return {name: found[name] for name in self.term_names}

    def board(self, boards: ArrayLike) -> Any:
        """The weighted sum of the board terms: a float for one board (rows, cols), float64[n] for a batch.

        Args:
            boards: 0 and 1 (or bools), row 0 on top, from 4×4 to 16 columns by 40 rows; full rows are taken as they
                stand.

        Raises:
            ValueError: for anything that is not such a board.
        """
        cells, rows, cols, single = _boards(boards)
        values = np.empty(len(cells))
        _batch_kernels(type(self))[0](cells, rows, self._weights, np.empty(cols, dtype=U), values)
        return float(values[0]) if single else values

    def board_terms(self, boards: ArrayLike) -> dict[str, Any]:
        """The named terms of the board before weighting: a float each for one board, float64[n] each for a batch."""
        cells, rows, cols, single = _boards(boards)
        parts = np.zeros((len(cells), len(self.slots)))
        _batch_kernels(type(self))[1](cells, rows, self._weights, np.empty(cols, dtype=U), parts)
        found = {name: parts[:, self.slots.index(name)] for name in self.term_names if name in self.board_slots}
        return {name: float(part[0]) if single else part.copy() for name, part in found.items()}


def plain_leaf(cls: type[Heuristic], clears: bool, move: Any, last: Any, board: Any) -> Any:
    """A `leaf` for any heuristic that plays each placement on a copy and needs no memo."""
    of_locked = cls.of_locked

    @kernel(variant=f"{cls.name}-{clears}-{move.__name__}")
    def leaf(columns, memo, piece, rotation, column, y, rows, clear_first, weights, scratch):
        above = y + HEIGHTS[piece, rotation] > rows
        if above and not (clears and clear_first):
            return -np.inf
        for i in range(columns.size):
            scratch[i] = columns[i]
        put(scratch, piece, rotation, column, y)
        value, lines, own = 0.0, 0, 0
        if of_locked:
            value = board(scratch, rows, weights)
        if clears:
            full = full_rows(scratch)
            if full:
                lines, own = popcount(full), own_cells(piece, rotation, y, full)
                clear(scratch, full)
            if above and is_above(scratch, rows):
                return -np.inf
        if not of_locked:
            value = board(scratch, rows, weights)
        of_placement = move(piece, rotation, column, y, lines, own, rows, weights)
        return of_placement + last(piece, rotation, column, y, rows, weights) + value

    return leaf


def _at_rest(placement: Placement) -> tuple[int, int, int, int, int]:
    """(piece, rotation, column, y, rows of the field), as kernels take them."""
    name, rotation = identify(placement.cells)
    rows = placement.board.shape[0]
    return (
        NAMES.index(name),
        rotation,
        min(column for _, column in placement.cells),
        rows - 1 - max(row for row, _ in placement.cells),
        rows,
    )


def _boards(boards: ArrayLike) -> tuple[NDArray[np.uint8], int, int, bool]:
    """(cells uint8[n, rows·cols], rows, cols, whether one board was given), checked."""
    array = checks.array("boards", boards, "(rows, cols) or (n, rows, cols)")
    if array.ndim not in (2, 3):
        raise ValueError(f"boards of shape {array.shape}; expected (rows, cols) or (n, rows, cols)")
    rows, cols = array.shape[-2:]
    if not (FEWEST_ROWS <= rows <= MOST_ROWS and FEWEST_COLS <= cols <= MOST_COLS):
        limits = f"{FEWEST_ROWS} to {MOST_ROWS} rows of {FEWEST_COLS} to {MOST_COLS} columns"
        raise ValueError(f"boards of {rows} rows and {cols} columns; expected {limits}")
    if array.dtype.kind not in "iub" or array.max(initial=0) > 1 or array.min(initial=0) < 0:
        raise ValueError(f"boards hold {array.dtype} {np.unique(array)[:8].tolist()}; expected cells of 0 and 1")
    single = array.ndim == 2
    count = 1 if single else len(array)
    return np.ascontiguousarray(array, dtype=np.uint8).reshape(count, rows * cols), rows, cols, single


@cache
def _batch_kernels(cls: type[Heuristic]) -> tuple[Any, Any]:
    """(values, terms) of many boards in one call, for one heuristic."""
    value_of, terms_of = cls.kernels().board, cls.term_kernels()[1]

    @kernel(variant=cls.name)
    def batch_values(cells, rows, weights, columns, values):
        for i in range(len(cells)):
            read_board(cells[i], rows, columns)
            values[i] = value_of(columns, rows, weights)

    @kernel(variant=cls.name)
    def batch_terms(cells, rows, weights, columns, parts):
        for i in range(len(cells)):
            read_board(cells[i], rows, columns)
            terms_of(columns, rows, weights, parts[i])

    return batch_values, batch_terms
