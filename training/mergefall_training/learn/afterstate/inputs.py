"""The inputs of value networks: numbers that describe a Tetris board, for all legal placements of many games.

One compiled pass turns a batch of observations into a table (`Afterstates`) with a row for each legal action: its
reward, whether it ends the game, and the inputs of its afterstate. So a network values all of them in one call, and
learners and players see the same numbers.

A board has 9 · cols inputs: the board terms of the one-piece controllers (row_transitions … diversity), the height of
each column, the number of holes in each column, and for each pair of neighbouring columns a one-hot of their difference
in height, −3 to 3 (steeper ones count as that). The differences say which pieces fit where; a network learns that much
faster from a one-hot than from heights.
"""

from typing import Any, NamedTuple

import numpy as np
from mergefall.kernels import kernel, unowned
from mergefall.tetris.field import columns_of, copy, field_mask, height_of, holes_in, place
from mergefall.tetris.game import LINE_SCORES
from mergefall.tetris.heuristics import Dt10
from mergefall.tetris.placements import action_of, at_rest, list_placements
from mergefall.tetris.rules import Rules
from mergefall.typing import Array, Arrays, Bools, Ints
from mergefall.weighted import write_terms
from mergefall.words import popcount

U = np.uint64
F = np.float32
INPUTS = "terms, heights, holes, steps; tiles"  # of this release; a model file names the inputs of its network
MOST_LINES = LINE_SCORES.size - 1
_NAMES, _board_terms = Dt10.of_board
SCRATCH = len(_NAMES)  # all seven terms
# Inputs are divided by these, about their size in play on ten columns, so that none outweighs the others.
_SCALES = np.array([20 if name in ("row_transitions", "column_transitions", "wells") else 8 for name in _NAMES], F)
_HEIGHT_SCALE, _HOLES_SCALE = F(5), F(2)
_STEEP = 3
_STEPS = 2 * _STEEP + 1


class Afterstates(NamedTuple):
    """The legal actions of n games as the rows of a table.

    Game i has the rows begins[i] to begins[i + 1] - 1; a game that is over has none.
    """

    begins: Ints  # [n + 1]
    actions: Ints  # [m], rising within a game
    rewards: Array  # [m]
    over: Bools  # [m], whether the action is fatal
    inputs: Array  # [m, k]


@kernel
def outcome(columns, piece, placement, rows, clear_first, after):
    """Play a placement on the copy `after` of the columns: (lines, whether the game is over).

    `after` has no cells above the field. An observation may have full rows; the lines count at most as many as one
    piece can complete.
    """
    copy(columns, after)
    rotation, column, y = at_rest(placement)
    lines, _, over = place(after, piece, rotation, column, y, rows, clear_first)
    for c in range(columns.size):
        after[c] &= field_mask(rows)
    return min(lines, MOST_LINES), over


@kernel
def write_tetris(columns, rows, terms, x):
    """Write the inputs of a board to `x` float32[9 · cols]; `terms` float64[SCRATCH] is scratch memory."""
    write_terms(_board_terms(columns, rows, terms), terms)
    for k in range(SCRATCH):
        x[k] = F(terms[k]) / _SCALES[k]
    cols, before = columns.size, 0
    for k in range(SCRATCH + 2 * cols, x.size):
        x[k] = F(0)
    for c in range(cols):
        height = height_of(columns[c])
        x[SCRATCH + c] = F(height) / _HEIGHT_SCALE
        x[SCRATCH + cols + c] = F(popcount(holes_in(columns[c]))) / _HOLES_SCALE
        if c:
            x[SCRATCH + 2 * cols + _STEPS * (c - 1) + min(max(height - before, -_STEEP), _STEEP) + _STEEP] = F(1)
        before = height


@kernel
def _fill(boards, pieces, lowest, count, per_piece, rules, payments, table):
    """Fill a row for each legal action of each board, among the `count` from `lowest` on, and write the `begins`.

    - `boards`: uint64[n, cols], their columns.
    - `pieces`: int64[n, k], the pieces that actions place, each of them `per_piece` actions.
    """
    begins, actions, rewards, over, inputs = table
    rows, first, slides, reach, clear_first = rules
    boards, pieces, lowest, begins, actions, rewards, over, inputs = unowned(
        (boards, pieces, lowest, begins, actions, rewards, over, inputs)
    )
    row, after, terms = 0, np.empty(boards.shape[1], U), np.zeros(SCRATCH)
    placements = np.empty(per_piece, np.int64)
    for i in range(len(boards)):
        columns = boards[i]
        for k in range(pieces.shape[1]):
            piece = first + pieces[i, k]
            for placement in placements[: list_placements(columns, piece, slides, reach, placements)]:
                action = k * per_piece + action_of(placement)
                if lowest[i] <= action < lowest[i] + count:
                    lines, ends = outcome(columns, piece, placement, rows, clear_first, after)
                    actions[row], rewards[row], over[row] = action, payments[lines], ends
                    write_tetris(after, rows, terms, inputs[row])
                    row += 1
        begins[i + 1] = row


def best(table: Afterstates, values: Array) -> Ints:
    """The row of highest value of each game, int64[n], from values float32[m]; no game may be over.

    Of equal rows it is the first. A fatal action is chosen only if all are fatal.
    """
    worth, first = np.where(table.over, -np.inf, values), table.begins[:-1]
    highest = np.flatnonzero(worth == np.repeat(np.maximum.reduceat(worth, first), np.diff(table.begins)))
    return highest[np.searchsorted(highest, first)]


def rules_for(rules: Rules) -> tuple[Any, ...]:
    """What the kernels take of the rules."""
    return rules.rows, rules.piece_set.first, rules.slides, rules.reach, rules.overflow == "clear_first"


def tetris_inputs(cols: int) -> int:
    """The number of inputs of a Tetris board."""
    return SCRATCH + 2 * cols + _STEPS * (cols - 1)


def tetris_afterstates(observations: Arrays, rules: Rules, actions: Ints | None = None) -> Afterstates:
    """The table of a batch of Tetris observations, which are not checked.

    `actions`: int64[n], one action of each game. The table then has these alone, and no row where they are illegal.

    >>> import gymnasium as gym, mergefall
    >>> envs = gym.make_vec("mergefall/Tetris-v0", num_envs=2, cols=6, rows=10)
    >>> observations, infos = envs.reset(seed=0, options={"piece": "O"})
    >>> table = tetris_afterstates(observations, envs.rules)
    >>> table.begins, table.inputs.shape
    (array([ 0,  5, 10]), (10, 54))
    """
    n = len(observations["board"])
    boards, pieces = columns_of(observations["board"]), [observations["piece"]]
    if rules.hold:
        held = observations["hold"]
        pieces.append(np.where(held == rules.n_pieces, observations["queue"][:, 0], held))
    lowest, count = (np.zeros(n, np.int64), rules.n_actions) if actions is None else (actions, 1)
    most = n * count
    table: Any = Afterstates(
        begins=np.zeros(n + 1, np.int64),
        actions=np.empty(most, np.int64),
        rewards=np.empty(most, F),
        over=np.empty(most, np.bool_),
        inputs=np.empty((most, tetris_inputs(rules.cols)), F),
    )
    _fill(
        boards,
        np.stack(pieces, axis=1),
        lowest,
        count,
        rules.n_actions // len(pieces),
        rules_for(rules),
        rules.payments(),
        table,
    )
    return Afterstates(table.begins, *(part[: table.begins[-1]] for part in table[1:]))
