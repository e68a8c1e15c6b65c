"""The rules of placement Tetris in plain Python: slow, obvious. Everything fast is tested against this.

A board is a tuple of rows of 0 and 1, row 0 on top: `storage` rows above the field, then the field. A piece is dropped
straight down from above everything; or dropped, moved one column, and dropped to rest again; or moved and turned as
with keys.

Source: C. Thiery & B. Scherrer, the rules of `mdptetris`; the slide is the two-tetrad document's, turns are SRS.
"""

from mergefall.tetris.pieces import Cells, identify, rotations
from mergefall.tetris.srs import box, kicks

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


def reachable(board: Board, piece: str, storage: int) -> dict[int, Cells]:
    """Action -> cells in which the piece comes to rest, by moves, turns with kicks and soft drops.

    It begins in rotation 0 in the middle, with its lowest cells in the first row above the field.
    """
    cols, rows = len(board[0]), len(board) - storage
    start = box(piece, 0)
    left, right = min(c for _, c in start), max(c for _, c in start)
    todo = [(0, storage - 1 - max(r for r, _ in start), (cols - (right - left + 1)) // 2 - left)]
    seen, found = set(), {}
    while todo:
        place = rotation, row, column = todo.pop()
        cells = at(piece, *place)
        if place in seen or not free(board, cells):
            continue
        seen.add(place)
        todo += [(rotation, row, column - 1), (rotation, row, column + 1), (rotation, row + 1, column)]
        for turn in (1, 3):
            after = (rotation + turn) % 4
            tests = [(after, row - up, column + right) for right, up in kicks(piece, rotation, turn)]
            todo += [test for test in tests if free(board, at(piece, *test))][:1]
        if not free(board, at(piece, rotation, row + 1, column)):
            _, shape = identify(cells)
            y, leftmost = len(board) - 1 - max(r for r, _ in cells), min(c for _, c in cells)
            found[(shape * cols + leftmost) * (rows + 4) + y] = cells
    return dict(sorted(found.items()))


def at(piece: str, rotation: int, row: int, column: int) -> Cells:
    """The cells of a piece whose box has its upper left corner there."""
    return tuple((r + row, c + column) for r, c in box(piece, rotation))


def exchanged(queue: tuple[str, ...], held: str | None) -> tuple[tuple[str, ...], str]:
    """(the queue, the current piece first, and the held piece) after the current piece goes into the hold."""
    return (queue[1:] if held is None else (held, *queue[1:])), queue[0]


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
