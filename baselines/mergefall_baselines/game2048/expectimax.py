"""Expectimax for 2048: best move against chance."""

from collections.abc import Sequence
from functools import cache, partial
from typing import Any

import numpy as np
from mergefall.checks import number
from mergefall.interrupt import stopped
from mergefall.kernels import borrow, kernel
from mergefall.typing import Kernel
from mergefall.words import popcount

from mergefall_baselines.game2048.leaves import mean_of_best
from mergefall_baselines.game2048.search import TO_THE_END, Search2048, SearchKind, board_kernels, deciding, evaluator
from mergefall_baselines.table import entry_type, find, forget, holds, keep

U = np.uint64


def _afterstate_kernel(shape: SearchKind) -> Kernel:
    evaluate, scored, by_lines, real = evaluator(shape), shape.scored, shape.by_lines, shape.real
    (free, put, slide), entry = board_kernels(shape), entry_type(real)
    dead, lowest, two, four = real(shape.dead), real(shape.lowest), real(0.9), real(0.1)

    @kernel
    def last_state(state, itself, c):
        """Value of a state by the heuristic alone: of the state `itself`, or of its best afterstate."""
        best, legal = lowest, False
        after, right, second, third, along, across = slide(state, c)
        for i in range(4):
            if after != state:
                legal = True
                if itself:
                    return real(evaluate(state, True, c))
                value = real(evaluate(after, False, c))
                best = max(best, real(value + (along if i < 2 else across)) if scored else value)
            after, second, third = second, third, right
        return best if legal else dead

    @kernel
    def mean_of_last(board, itself, c):
        """`last_state`, averaged over the tile after an afterstate."""
        if by_lines and not itself:
            return mean_of_best(board, c.slid_lines, c.table0, c.sums, lowest, dead)
        cells = free(board, c)
        total, empty = real(0.0), 0
        while cells:
            bit = cells & (~cells + U(1))
            total += last_state(put(board, bit, 1, c), itself, c) * two
            total += last_state(put(board, bit, 2, c), itself, c) * four
            cells ^= bit
            empty += 1
        return total / real(empty)

    @kernel
    def afterstate(board, left, probability, c):
        """Value of an afterstate with `left` own moves left; `probability` is that of the tiles on the way to it."""
        if left == 0:
            return mean_of_last(board, True, c) if c.state_leaves else real(evaluate(board, False, c))
        if probability < c.cutoff:
            return real(evaluate(board, False, c))
        entries = borrow(c.entries, entry, c.entry_count)
        index = find(entries, board)
        if holds(entries, index, board):
            stored = np.int64(entries[index].tag & 255)
            if stored == left or (stored > left and c.cutoff > 0.0):
                return entries[index].value
        if c.stop or stopped():
            return dead
        cells = free(board, c)
        empty = popcount(cells)
        share, value = probability / real(empty), real(0.0)
        plain = left > 1 or c.state_leaves == 0  # a leaf below has no more tile than the afterstate
        if plain and (left == 1 or share * two < c.cutoff):
            value = mean_of_last(board, False, c)
        else:
            below, total = left - (left != TO_THE_END), real(0.0)
            while cells:
                bit = cells & (~cells + U(1))
                cells ^= bit
                for rank in range(1, 3):
                    weight = two if rank == 1 else four
                    state, onward = put(board, bit, rank, c), share * weight
                    if plain and onward < c.cutoff:
                        total += last_state(state, False, c) * weight
                        continue
                    (after, right, second, third, along, across), best, legal = slide(state, c), lowest, False
                    for i in range(4):  # up, down, left, right: taking turns is faster than `result_of`
                        if after != state:
                            legal = True
                            later = afterstate(after, below, onward, c)
                            best = max(best, real(later + (along if i < 2 else across)) if scored else later)
                        after, second, third = second, third, right
                    total += (best if legal else dead) * weight
            value, index = total / real(empty), find(entries, board)
        keep(entries, index, board, value, left)
        return value

    return afterstate


@cache
def expectimax_kernel(shape: SearchKind, greedy: bool) -> Kernel:
    """The decision kernel; that of a `greedy` search, of one own move, compiles in about half the time."""
    scored, real, entry = shape.scored, shape.real, entry_type(shape.real)
    if greedy:
        evaluate = evaluator(shape)

        @kernel
        def worth_of_leaf(after, gain, left, best, c):
            value = real(evaluate(after, False, c))
            return np.float64(real(gain) + value if scored else value)

        return deciding(shape, worth_of_leaf)
    afterstate = _afterstate_kernel(shape)

    @kernel
    def worth(after, gain, left, best, c):
        if c.own_table or best == -np.inf:  # the first move
            forget(borrow(c.entries, entry, c.entry_count), left + 1 - c.own_table)
        value = np.float64(afterstate(after, left, real(1.0), c))
        return value + gain if scored else value

    return deciding(shape, worth)


def expectimax(
    heuristic: Any = "nneonneo",
    depth: Any = 3,
    cutoff: float | None = None,
    table: bool | str = True,
    order: Sequence[int] | None = None,
    time_limit: float | None = None,
    leaf: str = "afterstate",
    rewards: bool | None = None,
    **rules: Any,
) -> Search2048:
    """Expectimax: the best move when each new tile is averaged over.

    A *position* is a board with the player to move, an *afterstate* the board that a move leaves. With `d` own moves
    left, their values are

    - ``position(d)`` = max over legal moves of ``score + afterstate(d − 1)``, or the lost value if no move is legal;
    - ``afterstate(d)`` = mean over empty cells of 0.9 ``position(d)`` with a 2 there + 0.1 ``position(d)`` with a 4;
    - ``afterstate(0)`` = the leaf: the heuristic's value of the board, or of the boards with one more tile, averaged.

    `score` counts only with `rewards`. The lost value is the heuristic's `dead`. Without a cut-off, `table` and `order`
    change no value.

    Args:
        heuristic: a name, a mapping of a name and weights, a function of a board, or None: leaves are worth 0 and the
            score counts. Default: ``nneonneo``. With it a position is worth at least 0, as in its program. Positions
            with negative values would therefore tie; its weight `base` keeps values positive.
        depth: own moves, the root move included. Default: 3. On 5×5 and 6×6 a search of 3 takes more than a hundred
            times as long as one of 2.

            - an int ≥ 1.
            - ``"distinct"``: max(3, distinct tiles − 2) + 1.
            - ``"empties"``: 3 with up to 6 empty cells, 2 with up to 11, else 1.
            - None: to the end of the game, on boards of up to 6 cells and with a table, or with a `time_limit`.
        cutoff: float from 0 to 1. An afterstate that is reached with a lower probability is a leaf. Default: 1e-4 with
            ``"distinct"``, else 0.
        table: transposition tables, which keep the values of boards that are met again. Boards that do not fit into a
            word (see `mergefall.game2048.packed`) have none. Default: True.

            - True: one table for each root move.
            - ``"shared"``: one table for all four, the fastest. With a cut-off, a stored value is used at its own depth
              or nearer the leaves, at any probability, so that this changes about 3 % of the moves.
            - False: none.
        order: the order in which root moves are searched. Ties go to the first. Below the root, moves are searched up,
            down, left, right. Default: 0, 1, 2, 3.
        time_limit: seconds for a decision. The search deepens move by move, and the last complete depth decides.
            Default: None, no limit.
        leaf: ``"afterstate"`` (default), or ``"state"``: one more tile, averaged over.
        rewards: bool, whether the score of the moves counts. Default: only with heuristic None.
        rows, cols: int from 2 to 6, the board's size. Default: the observation's.

    Source: with ``nneonneo`` and ``"distinct"`` this is github.com/nneonneo/2048-ai move by move, in single precision,
    given its order (0, 2, 3, 1). d5 of the evaluation document (Hanoi capstone project, 2021) is ``tile-order`` to
    depth 3.

    Example:
        >>> from mergefall_baselines import make
        >>> make("2048/expectimax", heuristic=None, depth=None).values([[1, 1], [2, 0]]).round(3)
        array([  -inf, 64.908, 57.746, 64.908])
    """
    if not isinstance(table, bool) and table != "shared":
        raise ValueError(f"table is {table!r}; expected True, False or 'shared'")
    if depth is None and table is False and time_limit is None:
        raise ValueError("depth=None with table=False; expected a table, without which no search reaches the end")
    least = (1e-4 if depth == "distinct" else 0.0) if cutoff is None else number("cutoff", cutoff, 0, 1)
    search = partial(expectimax_kernel, greedy=depth == 1 and leaf == "afterstate")
    return Search2048(search, heuristic, depth, leaf, rewards, order, table, least, time_limit, **rules)


def greedy(heuristic: Any = None, order: Sequence[int] | None = None, **rules: Any) -> Search2048:
    """Greedy: the move with the highest score, or with a heuristic the one that leaves the best afterstate.

    Args:
        heuristic: a name, a mapping of a name and weights, a function of a board, or None (default): the score counts.
        order: four actions. Ties go to the first. Default: 0, 1, 2, 3.
        rows, cols: int from 2 to 6, the board's size. Default: the observation's.

    Example:
        >>> from mergefall_baselines import make
        >>> int(make("2048/greedy").act([[1, 1], [0, 2]]))
        1
    """
    return expectimax(heuristic, 1, table=False, order=order, **rules)
