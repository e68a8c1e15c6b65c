"""`attack`: the stack, slots for T-spins and perfect clears, for players that send lines (`tetris/beam`)."""

from dataclasses import dataclass

import numpy as np

from mergefall.kernels import kernel
from mergefall.tetris.field import field_mask, height_of, holes_in
from mergefall.tetris.heuristics.base import Heuristic
from mergefall.tetris.pieces import NAMES
from mergefall.weighted import Terms
from mergefall.words import popcount, trailing_zeros

U = np.uint64
T, BAR = NAMES.index("T"), NAMES.index("I")
FULL = 2  # a full spin, as in `mergefall.tetris.keys.game`, which is imported later
DEEPEST_COVER, DEEPEST_WELL, PERFECT_ROWS = 6, 4, 4


@kernel
def slot_at(columns, center):
    """The row of the middle of a T that points down into a slot, 0 if there is no slot around this column.

    The T's cells are free, both corners beside its stub are filled and one of those above; over the other one the sky
    is open.
    """
    left, column, right = columns[center - 1], columns[center], columns[center + 1]
    slots = ~(left | column | right | column << U(1)) & left << U(1) & right << U(1) & (left >> U(1) ^ right >> U(1))
    if slots == 0:
        return 0
    slots &= ~field_mask(max(height_of(column), min(height_of(left), height_of(right))))
    return trailing_zeros(slots) & 63


@kernel
def slot_lines(columns, center, y):
    """The lines that a T in a slot clears."""
    upright = U(3) << U(y - 1)
    full = upright
    for c in range(columns.size):
        own = upright if c == center else U(1) << U(y) if abs(c - center) == 1 else U(0)
        full &= columns[c] | own
    return popcount(full)


@kernel(forceinline=True)
def board_terms(columns, rows, weights):
    cols, highest, lowest, second, cells, lines, height = columns.size, 0, 64, 64, 0, 0, 0
    holes = covered = transitions = bumps = steps = 0
    for c in range(cols):
        column, gaps, before = columns[c], holes_in(columns[c]), height
        height = height_of(column)
        highest = max(highest, height)
        second = min(second, max(lowest, height))
        lowest = min(lowest, height)
        cells += popcount(column)
        holes += popcount(gaps)
        covered += min(height - height_of(gaps), DEEPEST_COVER) if gaps else 0
        if c:
            transitions += popcount(columns[c - 1] ^ column)
            bumps += abs(height - before)
            steps += (height - before) ** 2
    transitions += 2 * highest - popcount(columns[0]) - popcount(columns[cols - 1])
    for c in range(1, cols - 1):
        y = slot_at(columns, c)
        if y:
            lines = max(lines, slot_lines(columns, c, y))
    # A perfect clear leaves no cell, so its rows hold all cells and a number of pieces of four cells each.
    goal = highest
    while goal <= PERFECT_ROWS and cols * goal - cells & 3:
        goal += 1
    perfect = goal <= PERFECT_ROWS
    return (
        highest,
        max(0, highest - rows // 2),
        holes,
        covered,
        transitions,
        bumps,
        steps,
        min(second - lowest, DEEPEST_WELL),
        np.int64(lines == 1),
        np.int64(lines == 2),
        np.int64(perfect),
        cols * goal - cells >> 2 if perfect else 0,
    )


@kernel
def lock_terms(piece, spin, lines, attack):
    return attack, lines, np.int64(piece == T and (spin != FULL or lines < 2))


@kernel
def chain_terms(chained, row):
    return chained, row


@kernel
def hold_terms(hold):
    return np.int64(hold == T + 1), np.int64(hold == BAR + 1)


@dataclass(frozen=True)
class Attack(Heuristic):
    """The stack, slots for T-spins, perfect clears in reach, and what clears are worth: all that `tetris/beam` weighs.

    Terms of the board:

    - `height`: the rows up to the highest cell; `high`: how many of them lie in the field's upper half.
    - `holes`: empty cells below the top of their column.
    - `covered`: cells above the topmost hole of each column, up to 6 per column.
    - `transitions`: changes between filled and empty along the rows, up to the highest cell; the walls are filled.
    - `bumps`, `steps`: the sums of the height differences between neighbouring columns, and of their squares.
    - `well`: how far the lowest column lies below the second lowest, up to 4.
    - `slot_1`, `slot_2`: 1 if the best slot for a T, pointing down, below an overhang and open to the sky, clears one
      line, or two.
    - `perfect`: 1 if at most four rows can be cleared to an empty board by the number of cells; `near`: the pieces that
      this takes.

    Terms of locks, of the chain and of the held piece, which only `tetris/beam` counts:

    - `attack`: lines sent; `lines`: lines cleared; `wasted`: 1 for a T that is no full T-spin of two lines or more.
    - `chained`: 1 if a back-to-back chain is on; `combo`: clears in a row.
    - `held_t`, `held_i`: 1 if a T or an I is held.

    The weights are by CMA-ES, for the attack of 50 placements from an empty board; `attack` and `high` stayed fixed.
    From weights set by hand: 3 generations of 12 candidates and 24 games (seeds from 1,000,000; 150 nodes, 4 draws of 2
    pieces, 30 nodes in a draw), then 17 of 10 candidates and 16 games (seeds from 2,000,000; 100 nodes, 25 in a draw).
    Weights for survival under garbage exist, too: they survive a fifth longer at 1.3 rows a piece, attack a tenth less,
    and win no more matches (`python tests/figures.py trials-search` has them).
    """

    name = "attack"
    of_board = Terms(
        (
            *("height", "high", "holes", "covered", "transitions", "bumps", "steps", "well"),
            *("slot_1", "slot_2", "perfect", "near"),
        ),
        board_terms,
    )
    of_lock = Terms(("attack", "lines", "wasted"), lock_terms)
    of_chain = Terms(("chained", "combo"), chain_terms)
    of_hold = Terms(("held_t", "held_i"), hold_terms)

    height: float = -0.161
    high: float = -0.5
    holes: float = -0.893
    covered: float = -0.053
    transitions: float = -0.293
    bumps: float = -0.103
    steps: float = 0.011
    well: float = 0.124
    slot_1: float = 0.167
    slot_2: float = 2.156
    perfect: float = 0.368
    near: float = -0.006
    attack: float = 1.0
    lines: float = -0.493
    wasted: float = -0.053
    chained: float = 0.138
    combo: float = 0.114
    held_t: float = 0.24
    held_i: float = -0.056
