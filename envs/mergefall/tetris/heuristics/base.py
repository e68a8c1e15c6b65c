"""The base of Tetris heuristics: named terms of a board, of placements and of locks, and a weight for each.

A subclass states the terms, as kernels over columns (`field.py`) of any board size; `kernels_of` makes all others from
them.
"""

from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mergefall.kernels import kernel, unowned
from mergefall.tetris import game
from mergefall.tetris.field import columns_of, copy, place, put
from mergefall.tetris.pieces import HEIGHTS, NAMES, identify
from mergefall.tetris.rules import Placement, checked_cells
from mergefall.typing import Bools, Bytes, Dict, Floats, Kernel, Words
from mergefall.weighted import Terms, WeightedSum, dot, no_terms, plain, write_terms

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


class Recipe(NamedTuple):
    """The sources of a class's kernels; classes with equal ones share the kernels.

    For each of `Heuristic.KINDS` the kernel of its terms, and where its weights begin.
    """

    terms: tuple[Any, ...]
    firsts: tuple[int, ...]
    memo: Memo | None
    before_clearing: bool


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
        board: (columns, rows, weights), the terms of the board after clearing, or before it if the class says
            `before_clearing`. Cells above the field do not count.
        prepare: (columns, rows, memo) -> None, computes once what the leaves on a board share.
        leaf: (columns, memo, piece, rotation, column, y, rows, clear_first, weights, scratch), the value of a
            placement: all its terms, or −inf if it ends the game. `columns` and `memo` stay as they are.
        terms: (columns uint64[n, cols], rows, weights, terms), writes the board terms, float64[n, k].
        states: (states uint64[n, words], weights, values, over), writes the values of their boards, float64[n], and
            whether the game is over, bool[n].
    """

    move: Kernel
    board: Kernel
    prepare: Kernel
    leaf: Kernel
    terms: Kernel
    states: Kernel


@kernel
def lines_cleared(piece, rotation, column, y, lines, own, rows):
    """A term of a placement."""
    return (lines,)


@dataclass(frozen=True)
class Heuristic(WeightedSum):
    """A weighted sum of named terms of a placement and its board; a subclass names the terms, its fields are weights.

    A subclass sets `name` and some of these, each the names of terms and a kernel that returns a tuple of numbers:

    - `of_placement`: terms of a placement, which a search adds up over its placements. Kernel: (piece, rotation,
      column, y, lines, own, rows).
    - `of_last`: terms of a search's last placement. Kernel: (piece, rotation, column, y, rows).
    - `of_board`, required: terms of the board after the last placement. Kernel: (columns, rows, weights).
    - `of_lock`: terms of a lock in the game of today, which `tetris/beam` adds up over its placements. Kernel: (piece,
      spin, lines, attack): the row of the piece in `pieces.py`, the spin (0 none, 1 mini, 2 full), the lines cleared
      and sent.
    - `of_chain`: terms of the chain after the last lock. Kernel: (chained, row): whether a back-to-back chain is on,
      and the clears in a row.
    - `of_hold`: terms of the held piece. Kernel: (hold), its id plus one, another number without one.

    Only `tetris/beam` counts the last three. `Kernels` describes the other arguments. Optional:

    - `before_clearing`: True for terms of the board before full rows are cleared.
    - `memo`: makes searches twice as fast.

    The guide "Write a heuristic" has a subclass.

    Example:
        >>> from mergefall.tetris import HEURISTICS, place
        >>> h = HEURISTICS["bcts"]
        >>> placed = place("..../..../..../##.#", "T", rotation=2, column=1)
        >>> round(h(placed), 3)
        -163.021
        >>> h.terms(placed)["eroded_cells"], h.board_terms(placed.board)["row_transitions"]
        (1.0, 8.0)
    """

    KINDS = "of_placement", "of_last", "of_board", "of_lock", "of_chain", "of_hold"

    of_placement = Terms()
    of_last = Terms()
    of_lock = Terms()
    of_chain = Terms()
    of_hold = Terms()
    before_clearing = False
    memo: ClassVar[Memo | None] = None
    recipe: ClassVar[Recipe]

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        kinds = [getattr(cls, kind) for kind in cls.KINDS]
        firsts = tuple(accumulate((len(terms.names) for terms in kinds), initial=0))[:-1]
        cls.recipe = Recipe(tuple(terms.named for terms in kinds), firsts, cls.memo, cls.before_clearing)

    @classmethod
    def kernels(cls, clears: bool = True) -> Kernels:
        """The class's kernels; weights are arguments, so that all instances share them.

        With `clears` False nothing is ever cleared: `leaf` leaves full rows on the board, for the Quintris search.
        """
        return kernels_of(cls.recipe, clears)

    def value_states(self, states: Words, values: Floats, over: Bools) -> None:
        self.kernels().states(states, self._weights, values, over)

    def of_empty(self, board: Bytes) -> float:
        return self.board(board)

    def __call__(self, placement: Placement) -> float:
        """The value of a placement; −inf if it ended the game. Raises ValueError for anything but a `Placement`."""
        kinds = self._by_kind(placement)
        if placement.over:
            return -np.inf
        return sum(sum((getattr(self, n, 0.0) * term for n, term in terms.items()), 0.0) for terms in kinds)

    def terms(self, placement: Placement) -> dict[str, float]:
        """The named terms of a placement before weighting, also if it ended the game."""
        terms = {name: term for kind in self._by_kind(placement) for name, term in kind.items()}
        return {name: terms[name] for name in self.term_names if name in terms}

    def board(self, boards: ArrayLike) -> Any:
        """The weighted sum of the board terms: a float for one board, float64[n] for a batch.

        Args:
            boards: [rows, cols] or [n, rows, cols] of 0 and 1 (or bools), row 0 on top, from 4×4 to 16 columns by 40
                rows. Full rows are not cleared.

        Raises:
            ValueError: if `boards` are no such boards.
        """
        parts = zip(self.of_board.names, self._of_boards(boards), strict=True)
        return plain(sum(getattr(self, name, 0.0) * term for name, term in parts))  # in the order of the kernels

    def board_terms(self, boards: ArrayLike) -> Dict:
        """The named board terms before weighting: a float each for one board, float64[n] each for a batch."""
        terms = dict(zip(self.of_board.names, self._of_boards(boards), strict=True))
        return {name: plain(terms[name]) for name in self.term_names if name in terms}

    def _by_kind(self, placement: Any) -> list[dict[str, float]]:
        """The terms of a placement: of itself, of a last one, of its board."""
        if not isinstance(placement, Placement):
            given = type(placement).__name__
            raise ValueError(f"placement is of type {given}; expected a Placement from `place`; `board` takes boards")
        name, rotation = identify(placement.cells)
        column, rows = min(column for _, column in placement.cells), placement.board.shape[0]
        at_rest = NAMES.index(name), rotation, column, rows - 1 - max(row for row, _ in placement.cells)
        of_all, of_last = (*at_rest, placement.lines, placement.removed_cells, rows), (*at_rest, rows)
        kinds = (self.of_placement, of_all), (self.of_last, of_last)
        found = [(kind.names, kind.kernel(*seen)) for kind, seen in kinds if kind.names]
        board = placement.locked if self.before_clearing else placement.board
        found.append((self.of_board.names, self._of_boards(board)))
        return [dict(zip(names, map(float, terms), strict=True)) for names, terms in found]

    def _of_boards(self, boards: ArrayLike) -> Floats:
        """The terms float64[k] of a board, float64[k, n] of a batch."""
        *batch, rows, cols = (array := self.sized("boards", boards)).shape
        columns = columns_of(checked_cells("boards", array).reshape(-1, rows, cols))
        terms = np.empty((len(columns), len(self.of_board.names)))
        self.kernels().terms(columns, rows, self._weights, terms)
        self.check()
        return terms.T.reshape(terms.shape[1], *batch)


@cache
def kernels_of(recipe: Recipe, clears: bool) -> Kernels:
    (placement_terms, last_terms, board_terms, *_), (_, first_last, first_board, *_), memo, before_clearing = recipe

    @kernel(forceinline=True)
    def move(piece, rotation, column, y, lines, own, rows, weights):
        return dot(placement_terms(piece, rotation, column, y, lines, own, rows), weights, 0)

    @kernel
    def board(columns, rows, weights):
        return dot(board_terms(columns, rows, weights), weights, first_board)

    @kernel
    def played(columns, memo, piece, rotation, column, y, rows, clear_first, weights, scratch):
        """`leaf` by playing the placement on a copy of the board."""
        value, lines, own, over = 0.0, 0, 0, y + HEIGHTS[piece, rotation] > rows
        copy(columns, scratch)
        if before_clearing or not clears:
            put(scratch, piece, rotation, column, y)
        if before_clearing:
            value = board(scratch, rows, weights)
            copy(columns, scratch)
        if clears:
            lines, own, over = place(scratch, piece, rotation, column, y, rows, clear_first)
        if over:
            return -np.inf
        if not before_clearing:
            value = board(scratch, rows, weights)
        of_placement = move(piece, rotation, column, y, lines, own, rows, weights)
        return of_placement + dot(last_terms(piece, rotation, column, y, rows), weights, first_last) + value

    @kernel
    def write_all(columns, rows, weights, terms):
        for i in range(len(columns)):
            write_terms(board_terms(columns[i], rows, weights), terms[i])

    @kernel
    def of_states(states, weights, values, over):
        states, weights, values, over = unowned((states, weights, values, over))
        for i in range(len(values)):
            state = states[i]
            values[i], over[i] = 0.0, game.is_over(state)
            if not over[i]:
                values[i] = board(game.columns_in(state), game.size_of(state)[1], weights)

    if memo is None:
        return Kernels(move, board, no_terms, played, write_all, of_states)
    prepare, terms_after = memo
    full_rows_count = clears and (placement_terms is not no_terms or not before_clearing)

    @kernel(forceinline=True)
    def leaf(columns, memo, piece, rotation, column, y, rows, clear_first, weights, scratch):
        shape, turn = U(piece), U(rotation)
        full, terms = terms_after(columns, memo, shape, turn, column, y, rows, scratch)
        if (full_rows_count and full != 0) or y + HEIGHTS[shape, turn] > rows:
            return played(columns, memo, piece, rotation, column, y, rows, clear_first, weights, scratch)
        value = move(piece, rotation, column, y, 0, 0, rows, weights)
        value += dot(last_terms(piece, rotation, column, y, rows), weights, first_last)
        return value + dot(terms, weights, first_board)

    return Kernels(move, board, prepare, leaf, write_all, of_states)
