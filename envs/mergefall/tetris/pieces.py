"""The pieces, drawn once: every rotation, table and id follows from the pictures.

Rotation 0 is as drawn (for tetrominoes the guideline's spawn orientation), +1 a quarter turn clockwise. Placements in a
rotation that repeats an earlier one are illegal.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np

from mergefall.typing import Array

TETROMINOES = {
    "I": ["####"],
    "O": ["##", "##"],
    "T": [".#.", "###"],
    "S": [".##", "##."],
    "Z": ["##.", ".##"],
    "J": ["#..", "###"],
    "L": ["..#", "###"],
}
FIVE_CELLS = {
    "plus": [".#.", "###", ".#."],
    "I5": ["#####"],
    "L5": ["####", "...#"],
    "Y5": ["####", "..#."],
    "U": ["###", "#.#"],
    "N": ["###.", "..##"],
}
PICTURES = TETROMINOES | FIVE_CELLS
NAMES = tuple(PICTURES)  # the order of `WIDTHS` and the other tables

Cells = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class PieceSet:
    """The pieces of a game.

    - `names`: the pieces' names by id.
    - `drawn`: the ids that appear.
    - `first`: the table row of id 0.
    - `storage`: the number of rows above the field, the height of the tallest piece.
    """

    names: tuple[str, ...]
    drawn: tuple[int, ...]
    first: int
    storage: int


PIECE_SETS = {
    "tetromino": PieceSet(tuple(TETROMINOES), tuple(range(7)), 0, 4),
    "sz": PieceSet(tuple(TETROMINOES), (3, 4), 0, 4),
    "five": PieceSet(tuple(FIVE_CELLS), tuple(range(6)), 7, 5),
}


@cache
def rotations(name: str) -> tuple[Cells, ...]:
    """The distinct rotations of a piece, clockwise: sorted (row, column) cells, the topmost row and leftmost column 0.

    >>> rotations("S")
    (((0, 1), (0, 2), (1, 0), (1, 1)), ((0, 0), (1, 0), (1, 1), (2, 1)))
    """
    picture = PICTURES[name]
    turned: list[Cells] = []
    for _ in range(4):
        cells = tuple((r, c) for r, row in enumerate(picture) for c, cell in enumerate(row) if cell == "#")
        if cells in turned:
            break
        turned.append(cells)
        picture = ["".join(column) for column in zip(*picture[::-1], strict=True)]
    return tuple(turned)


@cache
def mirrored(name: str) -> str | None:
    """The piece that is a piece's mirror image; None if there is none.

    >>> mirrored("S"), mirrored("T"), mirrored("N")
    ('Z', 'T', None)
    """
    cells = rotations(name)[0]
    width = max(column for _, column in cells)
    image = tuple(sorted((row, width - column) for row, column in cells))
    return next((other for other in PICTURES if image in rotations(other)), None)


def identify(cells: object) -> tuple[str, int]:
    """The (piece, rotation) of a set of (row, column) cells anywhere on a board; rows count downwards.

    Raises ValueError if the cells are no known piece.

    >>> identify([(5, 3), (6, 3), (6, 4), (7, 4)])
    ('S', 1)
    """
    array = np.asarray(cells)
    if array.size and array.ndim == 2 and array.shape[1] == 2 and array.dtype.kind in "iu":
        shape = tuple(sorted(map(tuple, (array - array.min(axis=0)).tolist())))
        for name in NAMES:
            if shape in rotations(name):
                return name, rotations(name).index(shape)
    raise ValueError(f"cells {cells!r} are no known piece; expected the (row, column) cells of one of {NAMES}")


def _tables() -> tuple[Array, ...]:
    widths, heights, offsets = (np.zeros((len(NAMES), 4), dtype=np.int64) for _ in range(3))
    masks = np.zeros((len(NAMES), 4, 5), dtype=np.uint64)
    bottoms, sizes = np.zeros((len(NAMES), 4, 5), dtype=np.int64), np.zeros(len(NAMES), dtype=np.int64)
    for piece, name in enumerate(NAMES):
        sizes[piece] = len(rotations(name)[0])
        for rotation, cells in enumerate(rotations(name)):
            height = 1 + max(row for row, _ in cells)
            heights[piece, rotation] = height
            offsets[piece, rotation] = sum(height - 1 - row for row, _ in cells)
            widths[piece, rotation] = 1 + max(column for _, column in cells)
            for row, column in cells:
                masks[piece, rotation, column] |= np.uint64(1 << (height - 1 - row))
            for column in range(widths[piece, rotation]):
                bottoms[piece, rotation, column] = min(height - 1 - r for r, c in cells if c == column)
    return widths, heights, masks, bottoms, sizes, offsets


# WIDTHS (0 for a rotation that repeats another) and HEIGHTS by piece and rotation. MASKS and BOTTOMS by piece, rotation
# and column: the column's cells as bits, bit 0 the piece's bottom row, and the row of its lowest cell. SIZES: number of
# cells by piece. OFFSETS: sum of the cells' heights above the lowest one, by piece and rotation.
WIDTHS, HEIGHTS, MASKS, BOTTOMS, SIZES, OFFSETS = _tables()
