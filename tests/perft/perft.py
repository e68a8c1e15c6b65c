"""Count sequences of moves and new tiles, or of Tetris's placements, and compare with the counts in text files.

A line of a file is `position depth count`: a board's text form, and the number of sequences (legal move, cell of the
new tile, a 2 or a 4) of that length from it, equal boards not merged.

In files named `tetris…` the position is a sequence of pieces, which are placed on an empty board of 10 columns, and the
count is of the placements that left, right, turns by SRS and soft drops reach.

    python tests/perft/perft.py [files …]        exit status 1 if a count differs
"""

import sys
import time
from pathlib import Path

import numpy as np
from mergefall.game2048 import board as core
from mergefall.game2048 import reference
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


def check(path):
    """Whether all counts of a file hold; prints each, and the divide of each that differs."""
    good = True
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        text, depth, expected = line.rsplit(maxsplit=2)
        start = time.perf_counter()
        if path.stem.startswith("tetris"):
            pieces = np.array([NAMES.index(name) for name in text])
            found = count_placements(np.zeros(10, np.uint64), pieces, ROW)
        else:
            board = reference.from_text(text)
            found = count(np.array(board, np.uint8).ravel(), len(board), len(board[0]), int(depth))
        seconds = time.perf_counter() - start
        good &= found == int(expected)
        verdict = "ok " if found == int(expected) else f"BAD, expected {int(expected):,}:"
        print(f"{verdict} {path.stem}  {text}  depth {depth}: {found:,}  ({seconds:.2f} s)")
    return good


def main(arguments):
    paths = [Path(argument) for argument in arguments] or sorted(Path(__file__).parent.glob("*.txt"))
    return 0 if all([check(path) for path in paths]) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
