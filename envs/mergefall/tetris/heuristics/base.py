"""The base of Tetris heuristics: named terms of a placement and of a board, a weight for each, and search kernels.

The value of a placement is the sum of three parts:

- move: terms of the placement that a deeper search adds up over all its placements
- last: terms of the placement that a deeper search counts for the last one only
- board: terms of the board after the last placement

A subclass states each part once, as a kernel over columns (`field.py`) of any board size. `leaf` computes all three for
many placements on one board; a subclass may bring a faster `leaf`, which tests hold to the same value to the last bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mergefall import checks
from mergefall.kernels import kernel
from mergefall.tetris.field import clear, copy, full_rows, is_above, own_cells, put, read_board
from mergefall.tetris.pieces import HEIGHTS, NAMES, identify
from mergefall.tetris.rules import FEWEST_COLS, FEWEST_ROWS, MOST_COLS, MOST_ROWS, Placement
from mergefall.typing import Kernel
from mergefall.weighted import WeightedSum
from mergefall.words import popcount

U = np.uint64
MEMO = 168  # words of the memo that `prepare` fills


class Kernels(NamedTuple):
    """The kernels that searches inline. All but `prepare` return float64.

    Their arguments:

    - `columns`: uint64[cols], a board (`field.py`).
    - `piece, rotation, column, y`: a placement at rest on it.
    - `lines`, `own`: the rows that the placement clears, and its own cells in them.
    - `rows`: the rows of the field.
    - `weights`: float64[k], the heuristic's `weight_vector()`.
    - `memo`: uint64[MEMO], what `prepare` computed for the board.
    - `scratch`: uint64[cols], overwritten.

    Attributes:
        move: (piece, rotation, column, y, lines, own, rows, weights), the terms of every placement.
        last: (piece, rotation, column, y, rows, weights), the terms of the last placement only.
        board: (columns, rows, weights), the terms of the board after clearing; before clearing for `of_locked`
            heuristics. Cells above the field do not count.
        prepare: (columns, rows, weights, memo) -> None, computes once what the leaves on a board share.
        leaf: (columns, memo, piece, rotation, column, y, rows, clear_first, weights, scratch), the value of a
            placement: move + last + board, or −inf if it ends the game. `columns` is not changed.
    """

    move: Kernel
    last: Kernel
    board: Kernel
    prepare: Kernel
    leaf: Kernel


@dataclass(frozen=True)
class Heuristic(WeightedSum):
    """A weighted sum of named terms of a placement and its board; a subclass names the terms, its fields are weights.

    Example:
        >>> from mergefall.tetris import HEURISTICS, place
        >>> h = HEURISTICS["bcts"]
        >>> placed = place("..../..../..../##.#", "T", rotation=2, column=1)
        >>> round(h(placed), 3)
        -163.021
        >>> h.terms(placed)["eroded_cells"], h.board_terms(placed.board)["row_transitions"]
        (1.0, 8.0)
    """

    kind: ClassVar[str] = "heuristic"
    slots: ClassVar[tuple[str, ...]]  # the terms in the kernels' order; `term_names` may be only some of them
    board_slots: ClassVar[tuple[str, ...]]  # the slots of board terms; the others are terms of the placement
    of_locked: ClassVar[bool] = False  # board terms are of the board before clearing

    @classmethod
    def kernels(cls, clears: bool = True) -> Kernels:
        """The class's kernels; weights are arguments, so that all instances share them.

        With `clears` False nothing is ever cleared: `leaf` leaves full rows on the board, for the Quintris search.
        """
        raise NotImplementedError

    @classmethod
    def term_kernels(cls) -> tuple[Kernel, Kernel]:
        """(of_move, of_board), two kernels that write their terms before weighting into `terms` float64[len(slots)].

        of_move: (piece, rotation, column, y, lines, own, rows, weights, terms); of_board: (columns, rows, weights,
        terms).
        """
        raise NotImplementedError

    def weight_vector(self) -> NDArray[np.float64]:
        """The weights as the kernels take them, float64[k]: one for each slot, 0 for a term that does not count."""
        return np.array([getattr(self, name, 0.0) for name in self.slots], dtype=np.float64)

    def check_size(self, rows: int, cols: int) -> None:
        """Raises ValueError for a board size that the heuristic is not defined on."""

    def __call__(self, placement: Placement) -> float:
        """The value of a placement; −inf if it ended the game. Raises ValueError for anything but a `Placement`."""
        _check_placement(placement)
        if placement.over:
            return -np.inf
        piece, rotation, column, y, rows = _at_rest(placement)
        kernels, weights = self.kernels(), self._weights
        lines, own = placement.lines, placement.removed_cells
        of_move = kernels.move(piece, rotation, column, y, lines, own, rows, weights)
        of_last = kernels.last(piece, rotation, column, y, rows, weights)
        return of_move + of_last + self.board(placement.locked if self.of_locked else placement.board)

    def terms(self, placement: Placement) -> dict[str, float]:
        """The named terms of a placement before weighting, also if it ended the game."""
        _check_placement(placement)
        terms = np.zeros(len(self.slots))
        piece, rotation, column, y, rows = _at_rest(placement)
        of_move, _ = self.term_kernels()
        of_move(piece, rotation, column, y, placement.lines, placement.removed_cells, rows, self._weights, terms)
        found = dict(zip(self.slots, terms.tolist(), strict=True))
        found |= self.board_terms(placement.locked if self.of_locked else placement.board)
        return {name: found[name] for name in self.term_names}

    def board(self, boards: ArrayLike) -> Any:
        """The weighted sum of the board terms: a float for one board, float64[n] for a batch.

        Args:
            boards: [rows, cols] or [n, rows, cols] of 0 and 1 (or bools), row 0 on top, from 4×4 to 16 columns by 40
                rows. Full rows are not cleared.

        Raises:
            ValueError: if `boards` are no such boards.
        """
        cells, rows, cols, single = _boards(boards)
        self.check_size(rows, cols)
        values = np.empty(len(cells))
        _batch_kernels(type(self))[0](cells, rows, self._weights, np.empty(cols, dtype=U), values)
        self.check()
        return float(values[0]) if single else values

    def board_terms(self, boards: ArrayLike) -> dict[str, Any]:
        """The named board terms before weighting: a float each for one board, float64[n] each for a batch."""
        cells, rows, cols, single = _boards(boards)
        self.check_size(rows, cols)
        parts = np.zeros((len(cells), len(self.slots)))
        _batch_kernels(type(self))[1](cells, rows, self._weights, np.empty(cols, dtype=U), parts)
        self.check()
        found = {name: parts[:, self.slots.index(name)] for name in self.term_names if name in self.board_slots}
        return {name: float(part[0]) if single else part.copy() for name, part in found.items()}


def plain_leaf(cls: type[Heuristic], clears: bool, move: Kernel, last: Kernel, board: Kernel) -> Kernel:
    """A `leaf` for any heuristic: it plays each placement on a copy of the board and uses no memo."""
    of_locked = cls.of_locked

    @kernel(variant=f"{cls.name}-{clears}-{move.__name__}")
    def leaf(columns, memo, piece, rotation, column, y, rows, clear_first, weights, scratch):
        above = y + HEIGHTS[piece, rotation] > rows
        if above and not (clears and clear_first):
            return -np.inf
        copy(columns, scratch)
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


def _check_placement(placement: Any) -> None:
    if not isinstance(placement, Placement):
        given = f"an array of shape {placement.shape}" if isinstance(placement, np.ndarray) else repr(placement)
        raise ValueError(f"placement is {given}; expected a Placement from `place`; the method `board` takes boards")


def _at_rest(placement: Placement) -> tuple[int, int, int, int, int]:
    """(piece, rotation, column, y, rows) of a placement, as kernels take them."""
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
def _batch_kernels(cls: type[Heuristic]) -> tuple[Kernel, Kernel]:
    """Two kernels over many boards, for the values and for the terms of a heuristic's boards."""
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
