"""The parts that the searches of 2048 share: context, kernels that value boards, depth rules, options and settings.

A search holds boards of up to 4×4 in a word (`mergefall.game2048.packed`). Boards that do not fit, because they are
larger or have ranks above 15, are rows of a scratch.
"""

import math
import threading
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from mergefall.checks import array, boolean, choice, integer, number
from mergefall.game2048 import packed
from mergefall.game2048.board import board_in, move_cells
from mergefall.game2048.heuristics import heuristic as make_heuristic
from mergefall.game2048.heuristics.base import NO_TABLE
from mergefall.kernels import borrow, kernel
from mergefall.typing import Array, Ints, Kernel
from mergefall.words import popcount, trailing_zeros

from mergefall_baselines.game2048.leaves import LINES, REAL, SUMS, slid_lines
from mergefall_baselines.game2048.player import FORM, MARGIN, Boards, pick
from mergefall_baselines.kernel_player import KernelPlayer
from mergefall_baselines.table import new_table

U = np.uint64
TO_THE_END = 255  # own moves left of a search without a depth limit
UNLIMITED, DISTINCT, EMPTIES = 0, -1, -2  # how kernels know depths that are no number
DEPTH_RULES = {None: UNLIMITED, "distinct": DISTINCT, "empties": EMPTIES}
LARGEST_TABLE = 21  # bits: two million entries
ROWS = 5  # of a level, for boards that fit no word
LINE = 4  # the longest line of a board in a word
INNER = 0b01111000  # the order of the moves below the root, two bits each, from the lowest: up, down, left, right


class SearchKind(NamedTuple):
    """The facts about a search that its kernels are compiled for: code for other searches is left out."""

    kind: str  # how boards are held, see `Boards`
    scored: bool  # whether the score of the moves counts
    value_kernel: Kernel  # see the heuristic's `Kernels`
    packed_kernel: Kernel
    pack_kernel: Kernel = packed.pack  # (cells, rows, cols) -> board in a word
    tables: tuple[Any, ...] = (np.float64, 1) * 2  # types and sizes of the heuristic's tables
    real: Any = np.float64  # the floating-point type of values
    dead: float = 0.0  # the value of a board without a legal move
    lowest: float = -np.inf  # a lower bound of the value of every other board
    by_lines: bool = False  # whether `leaves.py` values the last level: values are nneonneo's, sums over lines


@kernel
def nothing(*arguments):
    return 0.0


# -- boards in a word --------------------------------------------------------------------------------------------------


@kernel
def slide_word(board, c):
    """The four afterstates in the order of the actions, then the scores of a vertical and of a horizontal move."""
    return packed.moves(board, borrow(c.row_lines, np.uint64, LINES), borrow(c.column_lines, np.uint64, LINES))


@kernel(inline="always")
def result_of(slid, action):
    """(afterstate, score) of an action; an afterstate that equals the board is illegal."""
    up, right, down, left, along, across = slid
    after = up if action == 0 else right if action == 1 else down if action == 2 else left
    return after, across if action & 1 else along


@kernel(inline="always")
def free_of_word(board, c):
    return packed.empties(board) & c.area


@kernel(inline="always")
def put_in_word(board, bit, rank, c):
    return board | bit << U(rank - 1)


# -- boards that fit no word: rows of a scratch, named by their numbers ------------------------------------------------
#
# Each level of a search has five: a state with the player to move, and behind it the afterstates of its four moves.


@kernel
def cells_at(row, c):
    """The flat cells of a board, uint8[rows·cols]."""
    size = c.rows * c.cols
    return borrow(c.cells + row * U(size), np.uint8, size)


@kernel
def free_cells(board, c):
    """The empty cells, a bit for each."""
    cells, free = cells_at(board, c), U(0)
    for i in range(cells.size):
        free |= U(cells[i] == 0) << U(i)
    return free


@kernel
def put_in_cells(board, bit, rank, c):
    """The state after a new tile on an afterstate, in the next level."""
    state = (board // U(ROWS) + U(1)) * U(ROWS)
    cells = cells_at(state, c)
    cells[:] = cells_at(board, c)
    cells[trailing_zeros(bit)] = rank
    return state


@kernel
def _moved(state, action, c):
    row = state + U(1 + action)
    cells = cells_at(row, c)
    cells[:] = cells_at(state, c)
    score = move_cells(cells, c.rows, c.cols, action)
    return row if score >= 0 else state, score


@kernel
def slide_cells(state, c):
    """What `slide_word` returns of a board in a word."""
    (up, along), (right, across) = _moved(state, 0, c), _moved(state, 1, c)
    (down, back), (left, off) = _moved(state, 2, c), _moved(state, 3, c)
    return up, right, down, left, max(along, back), max(across, off)


def board_kernels(shape: SearchKind) -> tuple[Kernel, Kernel, Kernel]:
    """How kernels go from board to board, whatever holds them.

    - ``free(board, c)``: the empty cells, a bit for each.
    - ``put(board, bit, rank, c)``: the board with a new tile.
    - ``slide(board, c)``: see `slide_word`.
    """
    if shape.kind == "wide":
        return free_cells, put_in_cells, slide_cells
    return free_of_word, put_in_word, slide_word


@cache
def evaluator(shape: SearchKind) -> Kernel:
    """The kernel ``(board, to_move, c) -> value`` of boards, by a heuristic."""
    of_packed, value_of, wide = shape.packed_kernel, shape.value_kernel, shape.kind == "wide"
    type0, count0, type1, count1 = shape.tables

    @kernel
    def evaluate_by_tables(board, to_move, c):
        tables = borrow(c.table0, type0, count0), borrow(c.table1, type1, count1)
        return of_packed(board, to_move, tables, borrow(c.weights, np.float64, c.weight_count))

    @kernel
    def evaluate_cells(board, to_move, c):
        cells = cells_at(board if wide else U(0), c)
        if not wide:
            packed.unpack(board, cells, c.rows, c.cols)
        return value_of(cells, c.rows, c.cols, to_move, borrow(c.weights, np.float64, c.weight_count))

    return evaluate_by_tables if shape.kind == "packed" else evaluate_cells


def deciding(shape: SearchKind, worth: Kernel) -> Kernel:
    """The decision kernel that values each move by a kernel (afterstate, score, own moves left, best so far, c)."""
    pack, wide, (_, _, slide) = shape.pack_kernel, shape.kind == "wide", board_kernels(shape)

    @kernel
    def decide(state, memory, values, settings):
        contexts, order = settings
        c, cells, best, board = contexts[0], board_in(state)[0], -np.inf, U(0)
        if wide:
            cells_at(board, c)[:] = cells
        else:
            board = pack(cells, c.rows, c.cols)
        left, slid = own_moves(cells, c.depth) - 1, slide(board, c)
        for action in order:
            after, gain = result_of(slid, action)
            values[action] = -np.inf
            if after != board:
                values[action] = worth(after, gain, left, best, c)
                best = max(best, values[action])
        return pick(values, order)

    return decide


# -- depth -------------------------------------------------------------------------------------------------------------


@kernel
def own_moves(cells, rule):
    """The depth of a search in own moves: `rule` itself if above 0, else by one of `DEPTH_RULES`."""
    if rule > 0:
        return rule
    if rule == UNLIMITED:
        return TO_THE_END + 1
    empty, ranks = 0, 0
    for i in range(cells.size):
        empty += cells[i] == 0
        if cells[i]:
            ranks |= 1 << cells[i]
    if rule == EMPTIES:
        return 3 if empty <= 6 else 2 if empty <= 11 else 1
    return max(3, popcount(np.uint64(ranks)) - 2) + 1


# -- players -----------------------------------------------------------------------------------------------------------


class Search2048(KernelPlayer):
    """A search to a depth, with a heuristic at its leaves.

    Args:
        kernel_of: makes the decision kernel of a `SearchKind`; its settings are a context and the order of moves.
        heuristic: a name, a mapping with a name and weights, a `NetworkHeuristic`, or None: every leaf is worth 0.
        depth: own moves, or one of `DEPTH_RULES`.
        leaf, rewards, order, time_limit, table, cutoff, rules: see `2048/expectimax`.
    """

    form = FORM
    time_limit: float | None = None  # seconds for a decision

    def __init__(
        self,
        kernel_of: Callable[[SearchKind], Kernel],
        heuristic: Any,
        depth: Any,
        leaf: str = "afterstate",
        rewards: bool | None = None,
        order: Sequence[int] | None = None,
        table: bool | str = False,
        cutoff: float = 0.0,
        time_limit: float | None = None,
        **rules: Any,
    ) -> None:
        super().__init__(**rules)
        self.kernel_of, self.table, self.cutoff = kernel_of, table, cutoff
        if heuristic is not None:
            self.heuristic = make_heuristic(heuristic)
        if depth is not None and not isinstance(depth, str):
            self.depth = integer("depth", depth, 1, MARGIN)
        elif depth in DEPTH_RULES:
            self.depth = DEPTH_RULES[depth]
        else:
            raise ValueError(f"depth is {depth!r}; expected a number of own moves, 'distinct', 'empties', or None")
        if time_limit is not None:
            self.time_limit = number("time_limit", time_limit, above=0, most=threading.TIMEOUT_MAX)
            self.compiled = False
        self.state_leaves = choice("leaf", leaf, ("afterstate", "state")) == "state"
        self.rewards = heuristic is None if rewards is None else boolean("rewards", rewards)
        actions = array("order", range(4) if order is None else order, "each of 0, 1, 2, 3 once")
        if actions.dtype.kind not in "iu" or actions.ndim != 1 or sorted(actions) != [0, 1, 2, 3]:
            raise ValueError(f"order={order!r} is no order of the actions; expected each of 0, 1, 2, 3 once")
        self._order = actions.astype(np.int64)

    def _make_decider(self, way: Boards, exact: bool) -> tuple[Kernel, Any]:
        (kind, rows, cols), heuristic, scored = way, self.heuristic, bool(self.rewards)
        shape, weights, tables = SearchKind(kind, scored, nothing, nothing), NO_TABLE, (NO_TABLE, NO_TABLE)
        if heuristic:
            heuristic.check_size(rows, cols)
            weights, tables = heuristic.weight_vector(), heuristic.tables()
            value, of_packed, _, pack = heuristic.kernels()
            dead = getattr(heuristic, "dead_scored", heuristic.dead) if scored else heuristic.dead
            shape = SearchKind(
                "packed" if pack else kind,  # a network packs every board
                scored,
                value,
                of_packed,
                pack or packed.pack,
                tuple(fact for table in tables for fact in (table.dtype.type, table.size)),
                heuristic.real,
                float(dead),
                dead if heuristic.by_lines else -np.inf,
                heuristic.by_lines and kind == "packed" and not scored,
            )
        in_word = shape.kind != "wide"
        most = 6 if self.table else 4  # cells of a board whose games can be searched to the end
        if self.depth == UNLIMITED and self.time_limit is None and not (in_word and rows * cols <= most):
            raise ValueError(
                f"depth=None on {rows}×{cols}: {self.name} searches to the end of the game on boards of up to "
                f"{most} cells; expected a number of own moves, such as depth=3"
            )
        # Under a cut-off p, a search stores fewer than 20 / p afterstates, a fifth of the entries. A larger table than
        # needed costs time: the processor's caches do not hold it.
        bits = min(LARGEST_TABLE, max(10, math.ceil(math.log2(100 / max(self.cutoff, 1e-300)))))
        entries = new_table(bits if self.table and in_word else 0, shape.real)
        context = self._context(
            rows=rows,
            cols=cols,
            area=np.uint64(packed.area(rows, cols) if in_word else 0),  # one bit for each cell of a board in a word
            row_lines=packed.line_table(min(cols, LINE)),  # uint64[65536]
            column_lines=packed.line_table(min(rows, LINE)),
            table0=tables[0],  # the heuristic's own
            table1=tables[1],
            weights=weights,  # float64[weight_count]
            weight_count=weights.size,
            cells=np.zeros((1 if in_word else ROWS * (MARGIN + 1), rows * cols), np.uint8),  # scratch
            slid_lines=slid_lines(heuristic) if shape.by_lines else NO_TABLE,  # for `leaves.py`, as the next
            sums=np.zeros(SUMS, REAL),
            entries=entries,  # transposition table, see `mergefall_baselines.table`
            entry_count=entries.size,
            stop=0,  # set from outside: return at once
            depth=self.depth,  # own moves, or one of `DEPTH_RULES`
            own_table=self.table is True,  # whether each root move has the table to itself
            cutoff=float(shape.real(self.cutoff)),  # chance nodes below this cumulative probability are leaves
            state_leaves=self.state_leaves,  # whether a leaf has one more tile than the last afterstate
            bounded=not exact,  # whether only the best root move's value must be exact
        )
        return self.kernel_of(shape), (context, self._order)

    def _decide(self, rules: Any, states: Array, memory: Array, values: Array, exact: bool) -> Ints:
        if self.time_limit is None:
            return super()._decide(rules, states, memory, values, exact)
        contexts = [self.decider(way, exact)[1][0] for way in FORM.ways(rules)]
        actions = np.empty(len(states), np.int64)

        def tell(field: str, value: int) -> None:
            for context in contexts:
                context[field] = value

        for i in range(len(states)):  # search 1, 2, 3 … moves deep; the last complete search decides
            one, timer = slice(i, i + 1), threading.Timer(self.time_limit, tell, ("stop", 1))
            tell("stop", 0)
            try:
                for depth in range(1, (self.depth if self.depth > 0 else MARGIN) + 1):
                    tell("depth", depth)
                    worth = values[one].copy()
                    action = super()._decide(rules, states[one], memory[one], worth, exact)
                    if contexts[0]["stop"][0]:
                        break
                    actions[one], values[one] = action, worth
                    if depth == 1:
                        timer.start()
                    if np.isfinite(worth).sum() < 2:  # no choice
                        break
            finally:
                timer.cancel()
        return actions
