"""Count sequences of moves and new tiles, or of Tetris's placements, and compare with the counts in text files.

A line of a file is `position depth count`: a board's text form, and the number of sequences (legal move, cell of the
new tile, a 2 or a 4) of that length from it, equal boards not merged. Where a count differs, the tool prints the
divide: the count after each first action, by the compiled rules and by the plain Python ones.

In files named `tetris…` the position is a sequence of pieces, which are placed on an empty board of 10 columns, and the
count is of the placements that left, right, turns by SRS and soft drops reach.

    python tests/perft/perft.py [files …]        exit status 1 if a count differs
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
from mergefall.game2048 import board as core
from mergefall.game2048 import reference
from mergefall.game2048.rules import move, outcomes
from mergefall.kernels import kernel
from mergefall.tetris.field import clear, copy, full_rows, is_free, put
from mergefall.tetris.pieces import NAMES, WIDTHS
from mergefall.tetris.placements import at_rest, list_reachable

ROW = 19  # in which pieces appear, counted from 0


@kernel
def count(cells, rows, cols, depth):
    """Sequences of `depth` moves and new tiles from flat cells uint8[rows·cols]; restores the cells."""
    if depth == 0:
        return 1
    total = 0
    before = cells.copy()
    for action in range(4):
        if core.move_cells(cells, rows, cols, action) >= 0:
            for i in range(cells.size):
                if cells[i] == 0:
                    for rank in range(1, 3):
                        cells[i] = rank
                        total += 1 if depth == 1 else count(cells, rows, cols, depth - 1)
                    cells[i] = 0
        cells[:] = before
    return total


@kernel
def count_placements(columns, pieces, row):
    """Sequences of placements of these pieces, int64[n], on a board; pieces appear in a row."""
    if not is_free(columns, pieces[0], 0, (columns.size - WIDTHS[pieces[0], 0]) // 2, row):
        return 0
    placements, after, total = np.empty(2048, np.int64), np.empty_like(columns), 0
    listed = list_reachable(columns, pieces[0], row, placements)
    if pieces.size == 1:
        return listed
    for placement in placements[:listed]:
        copy(columns, after)
        put(after, pieces[0], *at_rest(placement))
        clear(after, full_rows(after))
        total += count_placements(after, pieces[1:], row)
    return total


def slow_count(board: reference.Board, depth: int) -> int:
    """`count` by the plain Python rules."""
    return sum(slow_divide(board, depth)) if depth else 1


def slow_divide(board: reference.Board, depth: int) -> list[int]:
    moves = [reference.move(board, action) for action in range(4)]
    return [
        sum(slow_count(after, depth - 1) for after, _ in reference.outcomes(slid)) if legal else 0
        for slid, _, legal in moves
    ]


def divide(text: str, depth: int) -> list[int]:
    """The count after each of the four actions, by the compiled rules."""
    moves = [move(text, action) for action in range(4)]
    return [
        sum(int(count(board.ravel(), *board.shape, depth - 1)) for board in outcomes(slid)[0]) if legal else 0
        for slid, _, legal in moves
    ]


def check(path: Path) -> bool:
    """Whether all counts of a file hold; prints each, and the divide of each that differs."""
    good = True
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        text, depth, expected = line.rsplit(maxsplit=2)
        start = time.perf_counter()
        if path.stem.startswith("tetris"):
            pieces = np.array([NAMES.index(name) for name in text])
            fast = [int(count_placements(np.zeros(10, np.uint64), pieces, ROW))]
        else:
            fast = divide(text, int(depth))
        seconds = time.perf_counter() - start
        equal = sum(fast) == int(expected)
        good &= equal
        print(f"{'ok ' if equal else 'BAD'} {path.stem}  {text}  depth {depth}: {sum(fast):,}  ({seconds:.2f} s)")
        if not equal and len(fast) > 1:
            slow = slow_divide(reference.from_text(text), int(depth))
            print(f"    expected {int(expected):,}; compiled {sum(fast):,}, plain Python {sum(slow):,}")
            for name, a, b in zip(reference.ACTIONS, fast, slow, strict=True):
                print(f"    {name:6} compiled {a:>12,}  plain Python {b:>12,}{'' if a == b else '   <- differ'}")
    return good


def main(arguments: list[str]) -> int:
    paths = [Path(argument) for argument in arguments] or sorted(Path(__file__).parent.glob("*.txt"))
    return 0 if all([check(path) for path in paths]) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
