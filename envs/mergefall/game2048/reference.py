"""The rules of 2048 in plain Python: slow, obvious, for any board size. Everything fast is tested against this.

A board is a tuple of rows of ranks (log2 of the tile, 0 for an empty cell), row 0 on top. Its text form writes tile
values, ``.`` for empty, ``/`` between rows: ``2 . . 4/. . . ./. 8 . ./. . . .``.

Source: G. Cirulli, 2048 (2014). Two starting tiles; a 2 with probability 0.9, else a 4, on a uniformly drawn empty
cell after a move that changed the board; a tile merges once per move, those nearest the wall first.
"""

import re

Board = tuple[tuple[int, ...], ...]

UP, RIGHT, DOWN, LEFT = range(4)
ACTIONS = ("up", "right", "down", "left")
TILE_PROBABILITIES = ((1, 0.9), (2, 0.1))  # (rank, probability) of a new tile


def slide_line(line: tuple[int, ...]) -> tuple[tuple[int, ...], int]:
    """Slide one line towards its first cell; returns the line after it and the score of its merges.

    >>> slide_line((1, 1, 1, 0))
    ((2, 1, 0, 0), 4)
    """
    tiles = [rank for rank in line if rank]
    result, score = [], 0
    while tiles:
        rank = tiles.pop(0)
        if tiles and tiles[0] == rank:
            tiles.pop(0)
            rank += 1
            score += 2**rank
        result.append(rank)
    return tuple(result + [0] * (len(line) - len(result))), score


def _turned(board: Board) -> Board:
    return tuple(zip(*board, strict=True))


def _mirrored(board: Board) -> Board:
    return tuple(row[::-1] for row in board)


def move(board: Board, action: int) -> tuple[Board, int, bool]:
    """Slide the whole board: (afterstate, score of the merges, legal). Illegal means that nothing moved."""
    view = _turned(board) if action in (UP, DOWN) else board
    view = _mirrored(view) if action in (RIGHT, DOWN) else view
    slid = [slide_line(line) for line in view]
    after = tuple(line for line, _ in slid)
    after = _mirrored(after) if action in (RIGHT, DOWN) else after
    after = _turned(after) if action in (UP, DOWN) else after
    return after, sum(score for _, score in slid), after != board


def legal_actions(board: Board) -> list[int]:
    """The actions that change the board, in ascending order; none means that the game is over."""
    return [action for action in range(4) if move(board, action)[2]]


def empty_cells(board: Board) -> list[tuple[int, int]]:
    """(row, column) of each empty cell, row-major."""
    return [(r, c) for r, row in enumerate(board) for c, rank in enumerate(row) if not rank]


def spawn(board: Board, cell: tuple[int, int], rank: int) -> Board:
    """Put a tile of the given rank on an empty cell of an afterstate."""
    return tuple(tuple(rank if (r, c) == cell else old for c, old in enumerate(row)) for r, row in enumerate(board))


def outcomes(board: Board) -> list[tuple[Board, float]]:
    """All boards that a spawn can lead to, with their probabilities: cells row-major, the 2 before the 4."""
    cells = empty_cells(board)
    return [(spawn(board, cell, rank), p / len(cells)) for cell in cells for rank, p in TILE_PROBABILITIES]


def to_text(board: Board) -> str:
    """The board's text form.

    >>> to_text(((1, 0), (0, 3)))
    '2 ./. 8'
    """
    return "/".join(" ".join(str(2**rank) if rank else "." for rank in row) for row in board)


def from_text(text: str) -> Board:
    """Read a board from its text form, or as people type it: lines, commas, 0 for an empty cell, a list of lists.

    Raises ValueError for anything else.

    >>> from_text("2 ./. 8"), from_text("[[2, 0], [0, 8]]")
    (((1, 0), (0, 3)), ((1, 0), (0, 3)))
    """
    rows = [re.findall(r"[^\s,[\]]+", row) for row in re.split(r"/|\]\s*,\s*|\n", text.strip())]
    if len({len(row) for row in rows}) != 1 or not rows[0]:
        raise ValueError(f"board text {text!r} has rows of different lengths; expected rows × cols tiles")
    return tuple(tuple(_rank(word, text) for word in row) for row in rows)


def _rank(word: str, text: str) -> int:
    if word in (".", "0"):
        return 0
    if not word.isdecimal() or (value := int(word)) < 2 or value & (value - 1):
        raise ValueError(f"{word!r} in board text {text!r} is no tile; expected '.' or a power of two from 2 up")
    return value.bit_length() - 1
