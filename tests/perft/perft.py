"""Count sequences of moves and new tiles, and compare with the counts in text files.

A line of a file is `position depth count`: a board's text form, and the number of sequences (legal move, cell of the
new tile, a 2 or a 4) of that length from it, equal boards not merged. Where a count differs, the tool prints the
divide: the count after each first action, by the compiled rules and by the plain Python ones.

    python tests/perft/perft.py [files …]        exit status 1 if a count differs
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from mergefall.game2048 import board as core
from mergefall.game2048 import reference
from mergefall.game2048.rules import move, outcomes
from mergefall.kernels import kernel


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
        fast = divide(text, int(depth))
        seconds = time.perf_counter() - start
        equal = sum(fast) == int(expected)
        good &= equal
        print(f"{'ok ' if equal else 'BAD'} {path.stem}  {text}  depth {depth}: {sum(fast):,}  ({seconds:.2f} s)")
        if not equal:
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
