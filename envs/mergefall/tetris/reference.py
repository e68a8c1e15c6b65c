"""The rules of placement Tetris in plain Python: slow, obvious. Everything fast is tested against this.

A board is a tuple of rows of 0 and 1, row 0 on top: `storage` rows above the field, then the field. A piece is dropped
straight down from above everything; or dropped, moved one column, and dropped to rest again.

Source: C. Thiery & B. Scherrer, the rules of `mdptetris`; the slide is the two-tetrad document's.
"""

from __future__ import annotations

from mergefall.tetris.pieces import Cells, rotations

Board = tuple[tuple[int, ...], ...]
SLIDES = (0, -1, 1)  # columns to move by slide 0, 1, 2


def with_storage(field: Board, storage: int) -> Board:
    """The field with empty rows above it."""
    return ((0,) * len(field[0]),) * storage + field


def free(board: Board, cells: Cells) -> bool:
    """Whether all cells lie on empty cells within the walls and above the floor; above the board all is free."""
    return all(0 <= c < len(board[0]) and r < len(board) and (r < 0 or not board[r][c]) for r, c in cells)


def fallen(board: Board, cells: Cells) -> Cells:
    """Where a free piece comes to rest, straight down."""
    while free(board, below := tuple((r + 1, c) for r, c in cells)):
        cells = below
    return cells


def resting(board: Board, piece: str, rotation: int, column: int, slide: int = 0) -> Cells | None:
    """The cells in which a piece comes to rest; None if the placement does not exist."""
    if rotation >= len(rotations(piece)):
        return None
    cells: Cells = tuple((r - 9, c + column) for r, c in rotations(piece)[rotation])
    if not free(board, cells):
        return None
    cells = fallen(board, cells)
    if slide:
        cells = tuple((r, c + SLIDES[slide]) for r, c in cells)
        return fallen(board, cells) if free(board, cells) else None
    return cells


def legal_placements(board: Board, piece: str, slides: bool) -> dict[tuple[int, int, int], Cells]:
    """(slide, rotation, column) -> resting cells, in the order of actions; none ends in the cells of an earlier one."""
    found: dict[tuple[int, int, int], Cells] = {}
    for slide in range(3 if slides else 1):
        for rotation in range(len(rotations(piece))):
            for column in range(len(board[0])):
                cells = resting(board, piece, rotation, column, slide)
                if cells is not None and cells not in found.values():
                    found[slide, rotation, column] = cells
    return found


def locked(board: Board, cells: Cells) -> Board:
    """The board with the piece in it."""
    return tuple(tuple(int(old or (r, c) in cells) for c, old in enumerate(row)) for r, row in enumerate(board))


def cleared(board: Board) -> tuple[Board, int]:
    """(the board without its full rows, everything above moved down, and their number)."""
    rows = tuple(row for row in board if not all(row))
    lines = len(board) - len(rows)
    return ((0,) * len(board[0]),) * lines + rows, lines


def place(board: Board, cells: Cells, storage: int, clear_first: bool) -> tuple[Board, int, int, bool]:
    """(the board after it, lines, the piece's own cells in them, whether the game is over).

    Strict: the game is over if the piece rests with a cell above the field, and nothing is cleared. Clear first: full
    rows go, and it is over if anything is left above the field.
    """
    full = locked(board, cells)
    if not clear_first and min(r for r, _ in cells) < storage:
        return full, 0, 0, True
    after, lines = cleared(full)
    own = sum(all(full[r]) for r, _ in cells)
    return after, lines, own, any(map(any, after[:storage]))
