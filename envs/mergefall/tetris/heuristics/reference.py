"""Every term of every heuristic in plain Python: slow, obvious. The compiled ones are tested against this.

A board is a tuple of rows of 0 and 1, row 0 on top, as in `mergefall.tetris.reference` but without storage rows.
"""

from itertools import pairwise

from mergefall.tetris.reference import Board
from mergefall.tetris.rules import Placement


def columns_of(board: Board) -> Board:
    """The columns from left to right, each from the top down."""
    return tuple(zip(*board, strict=True))


def height(column: tuple[int, ...]) -> int:
    """Rows from the floor to the highest filled cell."""
    return len(column) - column.index(1) if 1 in column else 0


def holes(board: Board) -> set[tuple[int, int]]:
    """(row, column) of the empty cells with a filled cell above in their column."""
    return {
        (r, c)
        for c, column in enumerate(columns_of(board))
        for r in range(len(board))
        if not column[r] and any(column[:r])
    }


def spaces(board: Board) -> set[tuple[int, int]]:
    """(row, column) of the empty cells that are no holes."""
    return {(r, c) for c, column in enumerate(columns_of(board)) for r in range(len(board) - height(column))}


def changes(line: tuple[int, ...]) -> int:
    """The number of changes between filled and empty along a line."""
    return sum(a != b for a, b in pairwise(line))


def wells(board: Board) -> int:
    """Σ over empty cells between two filled cells or walls of the consecutive empty cells from there downwards."""
    walled = [(1, *row, 1) for row in board]
    return sum(
        (*column[r:], 1).index(1)
        for c, column in enumerate(columns_of(board))
        for r in range(len(board))
        if walled[r][c : c + 3] == (1, 0, 1)
    )


def hole_depth(board: Board) -> int:
    """Σ over holes of the filled cells directly above."""
    return sum((*columns_of(board)[c][:r][::-1], 0).index(0) for r, c in holes(board))


def features(board: Board) -> dict[str, float]:
    """The board terms of the one-piece controllers."""
    heights = [height(column) for column in columns_of(board)]
    return {
        "row_transitions": sum(changes((1, *row, 1)) for row in board),
        "column_transitions": sum(changes((0, *column, 1)) for column in columns_of(board)),
        "holes": len(holes(board)),
        "hole_depth": hole_depth(board),
        "wells": wells(board),
        "rows_with_holes": len({r for r, _ in holes(board)}),
        "diversity": len({b - a for a, b in pairwise(heights)} & {-2, -1, 0, 1, 2}),
    }


def cover(board: Board) -> int:
    """Σ over columns with a hole of row of the topmost hole − row of the lowest space (0 without a space)."""
    total = 0
    for c, column in enumerate(columns_of(board)):
        rows_of_holes = [r + 1 for r, at in holes(board) if at == c]
        if rows_of_holes:
            total += min(rows_of_holes) - (len(board) - height(column))
    return total


def beside_holes(board: Board) -> int:
    """Σ over holes of the consecutive spaces on their left and on their right."""
    free, total = spaces(board), 0
    for r, c in holes(board):
        for step in (-1, 1):
            at = c + step
            while (r, at) in free:
                total += 1
                at += step
    return total


def two_tetrad(board: Board) -> dict[str, float]:
    """The board terms of `two-tetrad`."""
    area, heights = len(board) * len(board[0]), [height(column) for column in columns_of(board)]
    between = sum(abs(a - b) for a, b in pairwise(heights[1:-1]))
    return {
        "f4": area - len(holes(board)),
        "f6": area - (heights[1] - heights[0] + between + heights[-2] - heights[-1]),
        "f7": area - cover(board),
        "f8": beside_holes(board),
    }


def open_enclosed(board: Board) -> dict[str, float]:
    """The board terms of `open-enclosed`."""
    first = next((r for r, row in enumerate(board) if any(row)), len(board) - 1)
    return {
        "full_rows": sum(map(all, board)),
        "open": sum(r for r, _ in spaces(board) if r >= first) / len(board),
        "enclosed": sum(r for r, _ in holes(board)) / len(board),
    }


def slot_lines(board: Board) -> int:
    """The most lines that a T clears, pointing down into a slot: under an overhang, but open to the sky; or 0."""
    best, rows, cols = 0, len(board), len(board[0])
    for r in range(rows - 1):
        for c in range(1, cols - 1):
            own = {(r, c - 1), (r, c), (r, c + 1), (r + 1, c)}
            above = [r > 0 and bool(board[r - 1][side]) for side in (c - 1, c + 1)]
            shape = board[r + 1][c - 1] and board[r + 1][c + 1] and sum(above) == 1
            sky = [(row, column) for row in range(r) for column in (c, c + 1 if above[0] else c - 1)]
            if shape and not any(board[row][column] for row, column in own | set(sky)):
                full = [all(cell or (row, at) in own for at, cell in enumerate(board[row])) for row in (r, r + 1)]
                best = max(best, sum(full))
    return best


def attack(board: Board) -> dict[str, float]:
    """The board terms of `attack`."""
    rows, cols = len(board), len(board[0])
    heights = [height(column) for column in columns_of(board)]
    cells, highest, steps = sum(map(sum, board)), max(heights), [abs(a - b) for a, b in pairwise(heights)]
    tops = {c: min(r for r, column in holes(board) if column == c) for _, c in holes(board)}
    lowest, second = sorted(heights)[:2]
    goals = [goal for goal in range(highest, 5) if (goal * cols - cells) % 4 == 0]
    lines = slot_lines(board)
    return {
        "height": highest,
        "high": max(0, highest - rows // 2),
        "holes": len(holes(board)),
        "covered": sum(min(6, sum(column[: tops[c]])) for c, column in enumerate(columns_of(board)) if c in tops),
        "transitions": sum(changes((1, *row, 1)) for row in board[rows - highest :]),
        "bumps": sum(steps),
        "steps": sum(step**2 for step in steps),
        "well": min(4, second - lowest),
        "slot_1": lines == 1,
        "slot_2": lines == 2,
        "perfect": bool(goals),
        "near": (goals[0] * cols - cells) // 4 if goals else 0,
    }


def of_move(placement: Placement) -> dict[str, float]:
    """The terms of a placement other than the board terms, for all heuristics."""
    rows = [row + 1 for row, _ in placement.cells]
    return {
        "landing_height": placement.landing_height,
        "eroded_cells": placement.lines * placement.removed_cells,
        "lines": placement.lines,
        "f1": max(rows),
        "f2": min(rows),
        "f3": sum(rows) / len(rows),
        "f5": placement.lines,
    }
