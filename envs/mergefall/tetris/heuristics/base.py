"""The base of Tetris heuristics: named terms of a placement and of a board, and a weight for each.

The value of a placement is the sum of three parts:

- move: terms of the placement that a deeper search adds up over all its placements
- last: terms of the placement that a deeper search counts for the last one only
- board: terms of the board after the last placement

A subclass states the terms, as kernels over columns (`field.py`) of any board size; `kernels_of` makes all others from
them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mergefall import checks
from mergefall.kernels import kernel, unowned
from mergefall.shaping import squashed
from mergefall.tetris import game
from mergefall.tetris.field import copy, place, put, read_board
from mergefall.tetris.pieces import HEIGHTS, NAMES, identify
from mergefall.tetris.rules import Placement, checked_cells
from mergefall.typing import Kernel
from mergefall.weighted import WeightedSum, dot, write_terms

U = np.uint64
MEMO = 176  # words of the memo that `prepare` fills


class Memo(NamedTuple):
    """Kernels that let a search value placements on a board without looking at all of it; the arguments: see `Kernels`.

    - `prepare`: (columns, rows, memo), computes once what placements on the board share.
    - `after`: (columns, memo, piece, rotation, column, y, rows, scratch) -> (full rows as bits, board terms) after a
      placement that rests within the field, before clearing.
    """

    prepare: Kernel
    after: Kernel


class Terms(NamedTuple):
    """What a class's kernels are made from; classes with equal ones share them."""

    placement: Kernel
    last: Kernel
    board: Kernel
    memo: Memo | None
    of_locked: bool
    firsts: tuple[int, int]  # where the weights of `last` and of `board` begin


class Kernels(NamedTuple):
    """The kernels that searches inline. All but `prepare` return the weighted sum of some terms.

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
        board: (columns, rows, weights), the terms of the board after clearing; before clearing for `of_locked`
            heuristics. Cells above the field do not count.
        prepare: (columns, rows, memo) -> None, computes once what the leaves on a board share.
        leaf: (columns, memo, piece, rotation, column, y, rows, clear_first, weights, scratch), the value of a
            placement: all its terms, or −inf if it ends the game. `columns` and `memo` stay as they are.
    """

    move: Kernel
    board: Kernel
    prepare: Kernel
    leaf: Kernel


@dataclass(frozen=True)
class Heuristic(WeightedSum):
    """A weighted sum of named terms of a placement and its board; a subclass names the terms, its fields are weights.

    A subclass sets `name` and

    - `placement_names` and `placement_kernel`: the terms of a placement, and a kernel ``(piece, rotation, column, y,
      lines, own, rows) -> tuple``.
    - `last_names` and `last_kernel`: the same for terms that a deeper search counts for its last placement only,
      ``(piece, rotation, column, y, rows) -> tuple``.
    - `board_names` and `terms_kernel`: the terms of a board, and a kernel ``(columns, rows, weights) -> tuple``.
    - `memo`, optional: makes searches twice as fast.

    Kernels return tuples of numbers; `Kernels` describes their arguments. A class needs terms of the board; those of
    placements are optional. `term_names` are all of these names, unless the class states them in another order. The
    guide "Write a heuristic" has a subclass.

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
    placement_names: ClassVar[tuple[str, ...]] = ()
    last_names: ClassVar[tuple[str, ...]] = ()
    board_names: ClassVar[tuple[str, ...]] = ()
    of_locked: ClassVar[bool] = False  # board terms are of the board before clearing
    placement_kernel: ClassVar[Any] = None
    last_kernel: ClassVar[Any] = None
    terms_kernel: ClassVar[Any] = None
    memo: ClassVar[Memo | None] = None
    parts: ClassVar[Terms]

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        if not hasattr(cls, "term_names"):
            cls.term_names = cls.placement_names + cls.last_names + cls.board_names
        firsts = len(cls.placement_names), len(cls.placement_names + cls.last_names)
        kernels = cls.placement_kernel, cls.last_kernel, cls.terms_kernel
        cls.parts = Terms(*kernels, cls.memo, cls.of_locked, firsts)

    @classmethod
    def kernels(cls, clears: bool = True) -> Kernels:
        """The class's kernels; weights are arguments, so that all instances share them.

        With `clears` False nothing is ever cleared: `leaf` leaves full rows on the board, for the Quintris search.
        """
        return kernels_of(cls.parts, clears)

    def weight_vector(self) -> NDArray[np.float64]:
        """The weights for the kernels: of `placement_names`, `last_names`, `board_names`; 0 if one does not count."""
        names = self.placement_names + self.last_names + self.board_names
        return np.array([getattr(self, name, 0.0) for name in names], dtype=np.float64)

    def potentials(self) -> tuple[Any, tuple[Any, ...]]:
        return _potentials(self.kernels().board), (self.weight_vector(),)

    def of_empty(self, board: NDArray[np.uint8]) -> float:
        return self.board(board)

    def __call__(self, placement: Placement) -> float:
        """The value of a placement; −inf if it ended the game. Raises ValueError for anything but a `Placement`."""
        _check_placement(placement)
        if placement.over:
            return -np.inf
        of_move, of_last = (
            sum((getattr(self, name, 0.0) * term for name, term in terms.items()), 0.0)
            for terms in self._of_placement(placement)
        )
        return of_move + of_last + self.board(placement.locked if self.of_locked else placement.board)

    def terms(self, placement: Placement) -> dict[str, float]:
        """The named terms of a placement before weighting, also if it ended the game."""
        _check_placement(placement)
        of_move, of_last = self._of_placement(placement)
        terms = of_move | of_last | self.board_terms(placement.locked if self.of_locked else placement.board)
        return {name: terms[name] for name in self.term_names}

    def board(self, boards: ArrayLike) -> Any:
        """The weighted sum of the board terms: a float for one board, float64[n] for a batch.

        Args:
            boards: [rows, cols] or [n, rows, cols] of 0 and 1 (or bools), row 0 on top, from 4×4 to 16 columns by 40
                rows. Full rows are not cleared.

        Raises:
            ValueError: if `boards` are no such boards.
        """
        terms = self._of_boards(boards)
        first, *others = (getattr(self, name, 0.0) * terms[..., i] for i, name in enumerate(self.board_names))
        values = sum(others, first)  # in the order of the kernels
        return values if np.ndim(values) else float(values)

    def board_terms(self, boards: ArrayLike) -> dict[str, Any]:
        """The named board terms before weighting: a float each for one board, float64[n] each for a batch."""
        terms, names = self._of_boards(boards), self.board_names
        parts = {name: terms[..., names.index(name)] for name in self.term_names if name in names}
        return {name: part.copy() if part.ndim else float(part) for name, part in parts.items()}

    def _of_placement(self, placement: Placement) -> tuple[dict[str, float], dict[str, float]]:
        """The terms of every placement, and those of the last one."""
        name, rotation = identify(placement.cells)
        column, rows = min(column for _, column in placement.cells), placement.board.shape[0]
        y = rows - 1 - max(row for row, _ in placement.cells)
        lines, own = placement.lines, placement.removed_cells
        at_rest = NAMES.index(name), rotation, column, y
        of_move = self.parts.placement(*at_rest, lines, own, rows) if self.placement_names else ()
        of_last = self.parts.last(*at_rest, rows) if self.last_names else ()
        return _named(self.placement_names, of_move), _named(self.last_names, of_last)

    def _of_boards(self, boards: ArrayLike) -> NDArray[np.float64]:
        """The terms float64[k] of a board, float64[n, k] of a batch."""
        array = checks.array("boards", boards, "(rows, cols) or (n, rows, cols)")
        if array.ndim not in (2, 3):
            raise ValueError(f"boards of shape {array.shape}; expected (rows, cols) or (n, rows, cols)")
        *batch, rows, cols = array.shape
        self.check_size(rows, cols)
        cells = checked_cells("boards", array).reshape(-1, rows * cols)
        terms = np.empty((len(cells), len(self.board_names)))
        _batch_terms(self.parts.board)(cells, rows, cols, self._weights, terms)
        self.check()
        return terms.reshape(*batch, len(self.board_names))


@cache
def kernels_of(parts: Terms, clears: bool) -> Kernels:
    placement_terms, last_terms, board_terms, memo, of_locked, (first_last, first_board) = parts
    with_move, with_last = placement_terms is not None, last_terms is not None

    @kernel(forceinline=True)
    def move(piece, rotation, column, y, lines, own, rows, weights):
        if with_move:
            return dot(placement_terms(piece, rotation, column, y, lines, own, rows), weights, 0)
        return 0.0

    @kernel(forceinline=True)
    def last(piece, rotation, column, y, rows, weights):
        if with_last:
            return dot(last_terms(piece, rotation, column, y, rows), weights, first_last)
        return 0.0

    @kernel
    def board(columns, rows, weights):
        return dot(board_terms(columns, rows, weights), weights, first_board)

    @kernel
    def plain(columns, piece, rotation, column, y, rows, clear_first, weights, scratch):
        """`leaf` by playing the placement on a copy of the board."""
        value, lines, own, over = 0.0, 0, 0, y + HEIGHTS[piece, rotation] > rows
        copy(columns, scratch)
        if of_locked or not clears:
            put(scratch, piece, rotation, column, y)
        if of_locked:
            value = board(scratch, rows, weights)
            copy(columns, scratch)
        if clears:
            lines, own, over = place(scratch, piece, rotation, column, y, rows, clear_first)
        if over:
            return -np.inf
        if not of_locked:
            value = board(scratch, rows, weights)
        of_placement = move(piece, rotation, column, y, lines, own, rows, weights)
        return of_placement + last(piece, rotation, column, y, rows, weights) + value

    if memo is None:

        @kernel
        def nothing(columns, rows, memo):
            pass

        @kernel
        def plain_leaf(columns, memo, piece, rotation, column, y, rows, clear_first, weights, scratch):
            return plain(columns, piece, rotation, column, y, rows, clear_first, weights, scratch)

        return Kernels(move, board, nothing, plain_leaf)
    prepare, terms_after = memo
    of_cleared = clears and (with_move or not of_locked)  # whether a full row changes the terms

    @kernel(forceinline=True)
    def leaf(columns, memo, piece, rotation, column, y, rows, clear_first, weights, scratch):
        shape, turn = U(piece), U(rotation)
        full, terms = terms_after(columns, memo, shape, turn, column, y, rows, scratch)
        if (of_cleared and full != 0) or y + HEIGHTS[shape, turn] > rows:
            return plain(columns, piece, rotation, column, y, rows, clear_first, weights, scratch)
        value = move(piece, rotation, column, y, 0, 0, rows, weights)
        if with_last:
            value += last(piece, rotation, column, y, rows, weights)
        return value + dot(terms, weights, first_board)

    return Kernels(move, board, prepare, leaf)


def _named(names: tuple[str, ...], terms: tuple[float, ...]) -> dict[str, float]:
    return {name: float(term) for name, term in zip(names, terms, strict=True)}


def _check_placement(placement: Any) -> None:
    if not isinstance(placement, Placement):
        given = type(placement).__name__
        raise ValueError(f"placement is of type {given}; expected a Placement from `place`; `board` takes boards")


@cache
def _batch_terms(board_terms: Kernel) -> Kernel:
    @kernel
    def batch_terms(cells, rows, cols, weights, terms):
        columns = np.empty(cols, U)
        for i in range(len(cells)):
            read_board(cells[i], rows, columns)
            write_terms(board_terms(columns, rows, weights), terms[i])

    return batch_terms


@cache
def _potentials(of_board: Kernel) -> Kernel:
    @kernel
    def potentials(states, weights, offset, scale, bends, values):
        """Write Φ of states uint64[n, words] into values float64[n], 0 where the game is over."""
        states, weights, values = unowned((states, weights, values))
        for i in range(len(values)):
            state = states[i]
            values[i] = 0.0
            if not game.is_over(state):
                value = of_board(game.columns_in(state), game.size_of(state)[1], weights)
                values[i] = squashed(value, offset, scale, bends)

    return potentials
