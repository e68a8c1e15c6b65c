"""The inputs of value networks: numbers that describe an afterstate, for all legal actions of many games.

One compiled pass turns a batch of observations into a table (`Afterstates`) with a row for each legal action: its
reward, whether it ends the game, and the inputs of its afterstate. So a network values all of them in one call, and
learners and players see the same numbers.

- Tetris, 9 · cols inputs: the board terms of the one-piece controllers (row_transitions … diversity), the height of
  each column, the number of holes in each column, and for each pair of neighbouring columns a one-hot of their
  difference in height, −3 to 3 (steeper ones count as that). The differences say which pieces fit where; a network
  learns that much faster from a one-hot than from heights.
- 2048, cells · (cells + 1) inputs: a one for each tile, by cell and rank.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from mergefall import game2048
from mergefall.game2048 import board, packed
from mergefall.game2048.rules import Rules as Rules2048
from mergefall.kernels import kernel, unowned
from mergefall.tetris.field import field_mask, height_of, holes_in, place, read_board
from mergefall.tetris.game import LINE_SCORES
from mergefall.tetris.heuristics import Bcts
from mergefall.tetris.placements import column_of, rest_of, rotation_of, row_of
from mergefall.tetris.rules import Rules as TetrisRules
from mergefall.threads import ranges, share
from mergefall.typing import Arrays
from mergefall.words import popcount
from numpy.typing import NDArray

U = np.uint64
F = np.float32
INPUTS = "terms, heights, holes, steps; tiles"  # of this release; a model file names the inputs of its network
MOST_LINES = LINE_SCORES.size - 1
_SLOTS = len(Bcts.slots)
_FIRST_TERM, _TERMS = Bcts.slots.index(Bcts.board_slots[0]), len(Bcts.board_slots)
SCRATCH = 2 * _SLOTS  # size of the scratch memory of `write_tetris`, float64
_, _terms_of_board = Bcts.term_kernels()
# Inputs are divided by these, about their size in play on ten columns, so that none outweighs the others.
_LARGE = ("row_transitions", "column_transitions", "wells")
_SCALES = np.array([20 if name in _LARGE else 8 for name in Bcts.board_slots], F)
_HEIGHT_SCALE, _HOLES_SCALE = F(5), F(2)
_STEEP = 3
_STEPS = 2 * _STEEP + 1


class Afterstates(NamedTuple):
    """The legal actions of n games as the rows of a table.

    Game i has the rows begins[i] to begins[i + 1] - 1; a game that is over has none.
    """

    begins: NDArray[np.int64]  # [n + 1]
    actions: NDArray[np.int64]  # [m], rising within a game
    rewards: NDArray[np.float32]  # [m]
    over: NDArray[np.bool_]  # [m], whether the action is fatal
    inputs: NDArray[np.float32]  # [m, k]


@kernel
def outcome(columns, piece, action, slides, rows, clear_first, after):
    """Play an action on the copy `after` of the columns: (placement, -1 if illegal; lines; whether the game is over).

    `after` has no cells above the field. An observation may have full rows; the lines count at most as many as one
    piece can complete.
    """
    placement = rest_of(columns, piece, action, slides)
    if placement < 0:
        return placement, 0, False
    for c in range(columns.size):
        after[c] = columns[c]
    y, column, rotation = row_of(placement), column_of(placement), rotation_of(placement)
    lines, _, over = place(after, piece, rotation, column, y, rows, clear_first)
    for c in range(columns.size):
        after[c] &= field_mask(rows)
    return placement, min(lines, MOST_LINES), over


@kernel
def write_tetris(columns, rows, terms, x):
    """Write the inputs of a board to `x` float32[9 · cols]; `terms` float64[SCRATCH] is scratch memory."""
    _terms_of_board(columns, rows, terms, terms[_SLOTS:])
    for k in range(_TERMS):
        x[k] = F(terms[_SLOTS + _FIRST_TERM + k]) / _SCALES[k]
    cols, before = columns.size, 0
    for k in range(_TERMS + 2 * cols, x.size):
        x[k] = F(0)
    for c in range(cols):
        height = height_of(columns[c])
        x[_TERMS + c] = F(height) / _HEIGHT_SCALE
        x[_TERMS + cols + c] = F(popcount(holes_in(columns[c]))) / _HOLES_SCALE
        if c:
            x[_TERMS + 2 * cols + _STEPS * (c - 1) + min(max(height - before, -_STEEP), _STEEP) + _STEEP] = F(1)
        before = height


@kernel
def _count(boards, pieces, lowest, rows, first, slides, count, begin, end, counts):
    """Write the number of legal actions of some boards, among the `count` from `lowest` on."""
    boards, pieces, lowest, counts = unowned((boards, pieces, lowest, counts))
    columns = np.empty(boards.shape[1] // rows, U)
    for i in range(begin, end):
        read_board(boards[i], rows, columns)
        counts[i] = 0
        for action in range(lowest[i], lowest[i] + count):
            if rest_of(columns, first + pieces[i], action, slides) >= 0:
                counts[i] += 1


@kernel
def _tetris(boards, pieces, lowest, rows, first, slides, clear_first, payments, begin, end, table):
    """Fill the rows of some boards, from the action `lowest` on."""
    begins, actions, rewards, over, inputs = table
    boards, pieces, lowest, begins, actions, rewards, over, inputs = unowned(
        (boards, pieces, lowest, begins, actions, rewards, over, inputs)
    )
    cols = boards.shape[1] // rows
    columns, after, terms = np.empty(cols, U), np.empty(cols, U), np.zeros(SCRATCH)
    for i in range(begin, end):
        row, action = begins[i], lowest[i]
        read_board(boards[i], rows, columns)
        while row < begins[i + 1]:
            placement, lines, ends = outcome(columns, first + pieces[i], action, slides, rows, clear_first, after)
            if placement >= 0:
                actions[row], rewards[row], over[row] = action, payments[lines], ends
                write_tetris(after, rows, terms, inputs[row])
                row += 1
            action += 1


@kernel
def write_2048(cells, highest, x):
    """Write the inputs of flat ranks uint8[cells] to `x` float32[cells · highest]; higher ranks count as `highest`."""
    for k in range(x.size):
        x[k] = F(0)
    for c in range(cells.size):
        if cells[c]:
            x[c * highest + min(np.int64(cells[c]), highest) - 1] = F(1)


@kernel
def _2048(boards, rows, cols, log2, begins, actions, rewards, over, inputs):
    after, row = np.empty(rows * cols, np.uint8), 0
    for i in range(len(boards)):
        begins[i] = row
        for action in range(4):
            for c in range(after.size):
                after[c] = boards[i, c]
            gain = board.move_cells(after, rows, cols, action)
            if gain >= 0:
                actions[row], over[row] = action, False
                rewards[row] = F(np.log2(1.0 + gain)) if log2 else F(gain)
                write_2048(after, after.size + 1, inputs[row])
                row += 1
    begins[len(boards)] = row


@kernel
def _moved(boards, rows, cols, row_lines, column_lines, after, gains):
    boards, after, gains = unowned((boards, after, gains))
    for i in range(len(boards)):
        if packed.fits(boards[i], rows, cols, 1):
            before = packed.pack(boards[i], rows, cols)
            up, right, down, left, along, across = packed.moves(before, row_lines, column_lines)
            for action, found, score in ((0, up, along), (1, right, across), (2, down, along), (3, left, across)):
                packed.unpack(found, after[i, action], rows, cols)
                gains[i, action] = F(score) if found != before else F(-1)
            continue
        for action in range(4):
            for c in range(rows * cols):
                after[i, action, c] = boards[i, c]
            gains[i, action] = board.move_cells(after[i, action], rows, cols, action)


def moved(boards: NDArray[np.uint8]) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """(afterstates uint8[n, 4, rows, cols], scores float32[n, 4]) of all four moves, for ranks uint8[n, rows, cols].

    An illegal move has the score -1 and leaves the board as it is.

    >>> after, gains = moved(np.array([[[1, 1], [0, 2]]], np.uint8))
    >>> after[0, 1].tolist(), gains.tolist()
    ([[0, 2], [0, 2]], [[-1.0, 4.0, 0.0, 4.0]])
    """
    n, rows, cols = boards.shape
    after, gains = np.empty((n, 4, rows * cols), np.uint8), np.empty((n, 4), F)
    flat = np.ascontiguousarray(boards).reshape(n, -1)
    lines = [packed.line_table(min(length, 4)) for length in (cols, rows)]
    _moved(flat, rows, cols, *lines, after, gains)
    return after.reshape(n, 4, rows, cols), gains


@kernel
def _canonical(boards, images, found):
    """Write each board as the image of its symmetric ones that reads largest; `images` are their cells in order."""
    boards, images, found = unowned((boards, images, found))
    cells = images.shape[1]
    for i in range(len(boards)):
        best = 0
        for image in range(1, len(images)):
            for k in range(cells):
                ours, other = boards[i, images[best, k]], boards[i, images[image, k]]
                if ours != other:
                    best = image if other > ours else best
                    break
        for k in range(cells):
            found[i, k] = boards[i, images[best, k]]


def canonical(boards: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Boards of ranks uint8[n, rows, cols], each turned and mirrored to the image that reads largest, row by row.

    The images of a board all have the same canonical one. Boards that are not square have four instead of eight.

    >>> canonical(np.array([[[1, 3], [0, 2]]], np.uint8)).tolist()
    [[[3, 2], [1, 0]]]
    """
    n, rows, cols = boards.shape
    found = np.empty((n, rows * cols), np.uint8)
    _canonical(np.ascontiguousarray(boards).reshape(n, -1), _images(rows, cols), found)
    return found.reshape(boards.shape)


@cache
def _images(rows: int, cols: int) -> NDArray[np.int64]:
    """The cells of a flat board in the order of each of its images."""
    return game2048.images(np.arange(rows * cols).reshape(rows, cols))[0].reshape(-1, rows * cols)


@kernel
def _best(begins, over, values, chosen):
    """Write the row of highest value of each game to `chosen` int64[n], the first of equal ones; -1 without any row.

    A fatal action is chosen only if all are fatal; then it is the first.
    """
    for i in range(chosen.size):
        chosen[i] = -1
        for row in range(begins[i], begins[i + 1]):
            best = chosen[i]
            if best < 0 or (not over[row] and (over[best] or values[row] > values[best])):
                chosen[i] = row


def best(table: Afterstates, values: NDArray[np.float32]) -> NDArray[np.int64]:
    """The row of highest value of each game, int64[n], from values float32[m].

    Of equal rows it is the first. A fatal action is chosen only if all are fatal.

    >>> begins, actions = np.array([0, 2, 3]), np.array([4, 9, 1])
    >>> table = Afterstates(begins, actions, np.zeros(3, F), np.zeros(3, np.bool_), np.zeros((3, 0), F))
    >>> best(table, np.array([1, 2, 3], F))
    array([1, 2])
    """
    chosen = np.empty(len(table.begins) - 1, dtype=np.int64)
    _best(table.begins, table.over, values, chosen)
    return chosen


def rows_of(table: Afterstates, actions: NDArray[np.int64]) -> NDArray[np.int64]:
    """The row of one legal action of each game, int64[n], from actions int64[n].

    >>> begins, actions = np.array([0, 2, 3]), np.array([4, 9, 1])
    >>> table = Afterstates(begins, actions, np.zeros(3, F), np.zeros(3, np.bool_), np.zeros((3, 0), F))
    >>> rows_of(table, np.array([9, 1]))
    array([1, 2])
    """
    games = np.repeat(np.arange(len(actions)), np.diff(table.begins))
    return np.flatnonzero(table.actions == actions[games])


def tetris_inputs(cols: int) -> int:
    """The number of inputs of a Tetris board."""
    return _TERMS + 2 * cols + _STEPS * (cols - 1)


def tetris_afterstates(
    observations: Arrays, rules: TetrisRules, threads: int = 1, actions: NDArray[np.int64] | None = None
) -> Afterstates:
    """The table of a batch of Tetris observations, which are not checked; the same from any number of threads.

    `actions`: int64[n], one action of each game. The table then has these alone, and no row where they are illegal.

    >>> import gymnasium as gym, mergefall
    >>> envs = gym.make_vec("mergefall/Tetris-v0", num_envs=2, cols=6, rows=10)
    >>> observations, infos = envs.reset(seed=0, options={"piece": "O"})
    >>> table = tetris_afterstates(observations, envs.rules)
    >>> table.begins, table.inputs.shape
    (array([ 0,  5, 10]), (10, 54))
    """
    boards, pieces = observations["board"], observations["piece"]
    slides, clear_first = rules.placements == "slide", rules.overflow == "clear_first"
    lowest, count = (np.zeros(len(boards), np.int64), rules.n_actions) if actions is None else (actions, 1)
    games = _flat(boards), pieces, lowest, rules.rows, rules.piece_set.first, slides
    parts = ranges(len(boards), threads)
    begins = np.zeros(len(boards) + 1, np.int64)
    share(lambda part: _count(*games, count, *part, begins[1:]), parts, threads)
    np.cumsum(begins, out=begins)
    table = _empty(begins, begins[-1], tetris_inputs(rules.cols))
    share(lambda part: _tetris(*games, clear_first, rules.payments(), *part, table), parts, threads)
    return table


def inputs_2048(rows: int, cols: int) -> int:
    """The number of inputs of a 2048 board."""
    return rows * cols * (rows * cols + 1)


def afterstates_2048(boards: NDArray[np.uint8], rules: Rules2048) -> Afterstates:
    """The table of a batch of 2048 boards, which are not checked."""
    most = 4 * len(boards)
    table = _empty(np.empty(len(boards) + 1, np.int64), most, inputs_2048(rules.rows, rules.cols))
    _2048(_flat(boards), rules.rows, rules.cols, rules.reward == "log2", *table)
    m = table.begins[-1]
    return Afterstates(table.begins, table.actions[:m], table.rewards[:m], table.over[:m], table.inputs[:m])


class Inputs(NamedTuple):
    """How a game turns into inputs."""

    size: Callable[[Any], int]  # number of inputs, from the environment's rules
    afterstates: Callable[[Any, Any], Afterstates]  # the table, from a batch of observations and these rules


INPUTS_OF = {  # by `Game.name`
    "2048": Inputs(lambda rules: inputs_2048(rules.rows, rules.cols), afterstates_2048),
    "tetris": Inputs(lambda rules: tetris_inputs(rules.cols), tetris_afterstates),
}


def _flat(boards: NDArray[np.uint8]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(boards).reshape(len(boards), -1)


def _empty(begins: NDArray[np.int64], rows: int, n_inputs: int) -> Afterstates:
    """A table for the kernels to fill."""
    return Afterstates(
        begins, np.empty(rows, np.int64), np.empty(rows, F), np.empty(rows, np.bool_), np.empty((rows, n_inputs), F)
    )
