"""The compiled half of the exact solver: packed boards up to symmetry, and the Bellman equation over them.

The table holds *afterstates* (the board after a slide, before the new tile), one of each set of symmetric forms. They
are fewer than the states, and one look-up values a move. They lie in layers by half the sum of their tiles: a slide
keeps the sum and a new tile adds 2 or 4, so layer k depends on layers k + 1 and k + 2 alone.
"""

from typing import NamedTuple

import numpy as np
from mergefall.game2048.board import board_in
from mergefall.game2048.packed import area, empties, flip, mirror, moves, pack, transpose
from mergefall.kernels import kernel
from mergefall.typing import Floats, Ints, Words

U = np.uint64
ILLEGAL = -np.inf
MISSING = np.nan  # of an afterstate that no game from the random start comes to
ROUNDING = 1e-12  # sums in another order differ by less, relative to their size


class Table(NamedTuple):
    """The value of every stored afterstate, and the rules under which it was computed."""

    keys: Words  # [n], packed afterstates, ascending within a layer
    values: Floats  # [n]
    bounds: Ints  # layer k is bounds[k]:bounds[k + 1]
    row_lines: Words  # see `mergefall.game2048.packed.line_table`
    column_lines: Words
    rows: int
    cols: int
    goal: int  # the rank whose probability is sought, 0 for the score


@kernel
def canonical(board, rows, cols):
    """The least of a board's symmetric forms."""
    least = board
    for turn in range(2 if rows == cols else 1):
        form = transpose(board) if turn else board
        for _ in range(2):
            form = flip(form) >> U(16 * (4 - rows))
            for _ in range(2):
                form = mirror(form) >> U(4 * (4 - cols))
                least = min(least, form)
    return least


@kernel
def half_sum(board):
    """Half the sum of the tiles: the layer of a board."""
    half = 0
    while board:
        half += 1 << np.int64(board & U(15)) >> 1
        board >>= U(4)
    return half


@kernel
def spawned(afterstates, rank, rows, cols):
    """The states, up to symmetry, after a tile of `rank` on each empty cell of each afterstate; with repetitions."""
    states = np.empty(afterstates.size * rows * cols, np.uint64)
    count = 0
    for board in afterstates:
        free = empties(board) & area(rows, cols)
        while free:
            cell = free & (~free + U(1))
            free ^= cell
            states[count] = canonical(board | cell * U(rank), rows, cols)
            count += 1
    return states[:count]


@kernel
def slid(states, row_lines, column_lines, rows, cols):
    """The afterstates, up to symmetry, of all legal moves in different states; with repetitions."""
    afterstates, count = np.empty(states.size * 4, np.uint64), 0
    for board in states:
        up, right, down, left, _, _ = moves(board, row_lines, column_lines)
        for after in (up, right, down, left):
            if after != board:
                afterstates[count] = canonical(after, rows, cols)
                count += 1
    return afterstates[:count]


@kernel(inline="always")  # because a call with these arguments costs as much as the look-up
def worth(board, after, gain, layer, table):
    """Value of the move from `board` to `after`: its score, if that is the objective, and the afterstate's value.

    The afterstate is found by bisection within its layer; MISSING if it is not stored.
    """
    if after == board:
        return ILLEGAL
    keys, low, end = table.keys, 0, 0
    if layer + 1 < table.bounds.size:
        low, end = table.bounds[layer], table.bounds[layer + 1]
    key = canonical(after, table.rows, table.cols)
    high = end
    while low < high:
        middle = (low + high) >> 1
        if keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    if low == end or keys[low] != key:
        return MISSING
    return table.values[low] + (0.0 if table.goal else np.float64(gain))


@kernel
def action_values(board, layer, table):
    """Value of each action in a state of a layer, as four floats: -inf if illegal, NaN if not stored."""
    up, right, down, left, along, across = moves(board, table.row_lines, table.column_lines)
    return (
        worth(board, up, along, layer, table),
        worth(board, right, across, layer, table),
        worth(board, down, along, layer, table),
        worth(board, left, across, layer, table),
    )


@kernel
def state_value(board, layer, table):
    """Value of a state: its best move's; 1 at a goal, 0 at any other end."""
    rest, best = board, ILLEGAL
    while table.goal and rest:
        if rest & U(15) >= table.goal:
            return 1.0
        rest >>= U(4)
    for value in action_values(board, layer, table):
        best = max(best, value)
    return 0.0 if best == ILLEGAL else best


@kernel
def evaluate_layer(layer, table):
    """Fill in the values of a layer's afterstates from the two layers above it."""
    cells = area(table.rows, table.cols)
    for i in range(table.bounds[layer], table.bounds[layer + 1]):
        free = empties(table.keys[i]) & cells
        total, count = 0.0, 0
        while free:
            cell = free & (~free + U(1))
            free ^= cell
            total += 0.9 * state_value(table.keys[i] | cell, layer + 1, table)
            total += 0.1 * state_value(table.keys[i] | cell << U(1), layer + 2, table)
            count += 1
        table.values[i] = total / count


@kernel
def decide(state, memory, values, table):
    """The decision kernel; values that differ only by rounding become equal, and those of unknown boards are NaN."""
    cells, _, _ = board_in(state)
    values[:] = MISSING
    if cells.max() <= 15:  # else it cannot be packed
        board = pack(cells, table.rows, table.cols)
        values[0], values[1], values[2], values[3] = action_values(board, half_sum(board), table)
        best = values.max()
        for action in range(4):
            if values[action] >= best - ROUNDING * best:
                values[action] = best
    return np.argmax(values)
