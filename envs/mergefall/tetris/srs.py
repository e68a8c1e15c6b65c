"""SRS, the guideline's rotation system: how a piece turns in its box, and the kicks it tries where it does not fit.

The guideline describes a turn by the piece's bounding box. Here a place is (rotation, column, y): the rotation from 0
to 3, the piece's leftmost column, and the row of its lowest cell above the floor. Rotations 2 and 3 of I, S and Z have
the shapes of 0 and 1, and all rotations of O look alike, but their kicks differ; `SHAPES` names the shape.

Source: the Tetris Guideline's Super Rotation System, written as offsets of each rotation ("true rotation").
"""

import numpy as np

from mergefall.tetris.pieces import TETROMINOES, rotations
from mergefall.typing import Ints

TESTS = 5  # of a turn, in their order: the first place that is free is taken

# By rotation, five (x, y) with y upwards. Test k of a turn moves the box by offset k of the rotation that it leaves
# less offset k of the one that it enters; the first offsets only say where an I lies in its box.
_OTHERS = (
    ((0, 0), (0, 0), (0, 0), (0, 0), (0, 0)),
    ((0, 0), (1, 0), (1, -1), (0, 2), (1, 2)),
    ((0, 0), (0, 0), (0, 0), (0, 0), (0, 0)),
    ((0, 0), (-1, 0), (-1, -1), (0, 2), (-1, 2)),
)
_OF_I = (
    ((0, 0), (-1, 0), (2, 0), (-1, 0), (2, 0)),
    ((-1, 0), (0, 0), (0, 0), (0, 1), (0, -2)),
    ((-1, 1), (1, 1), (-2, 1), (1, 0), (-2, 0)),
    ((0, 1), (0, 1), (0, 1), (0, -1), (0, 2)),
)
_BOXES = {"I": (4, 1), "O": (2, 0)}  # (side of the box, empty rows above rotation 0); the others 3 and 0

Box = tuple[tuple[int, int], ...]


def box(name: str, rotation: int) -> Box:
    """The cells of a tetromino in its bounding box as sorted (row, column), row 0 on top.

    >>> box("T", 1)
    ((0, 1), (1, 1), (1, 2), (2, 1))
    """
    side, above = _BOXES.get(name, (3, 0))
    cells = tuple((row + above, column) for row, column in rotations(name)[0])
    for _ in range(rotation):
        cells = tuple((column, side - 1 - row) for row, column in cells)
    return tuple(sorted(cells))


def kicks(name: str, rotation: int, turn: int) -> tuple[tuple[int, int], ...]:
    """How far the box moves in each test of a turn: (columns to the right, rows up).

    `turn` counts quarter turns clockwise, 1 to 3. O never moves, and a turn by 2 has no kicks.

    >>> kicks("T", 0, 1)
    ((0, 0), (-1, 0), (-1, 1), (0, -2), (-1, -2))
    """
    if name == "O" or turn == 2:
        return ((0, 0),)
    offsets = _OF_I if name == "I" else _OTHERS
    moves = [(a - c, b - d) for (a, b), (c, d) in zip(offsets[rotation], offsets[(rotation + turn) % 4], strict=True)]
    return tuple((x - moves[0][0], y - moves[0][1]) for x, y in moves)


def _tables() -> tuple[Ints, Ints]:
    shapes = np.zeros((len(TETROMINOES), 4), np.int64)
    moves = np.zeros((len(TETROMINOES), 4, 4, TESTS, 2), np.int64)
    for piece, name in enumerate(TETROMINOES):
        shapes[piece] = np.arange(4) % len(rotations(name))
        lowest, leftmost = np.zeros(4, np.int64), np.zeros(4, np.int64)  # in the box
        for rotation in range(4):
            cells = box(name, rotation)
            lowest[rotation] = -max(row for row, _ in cells)
            leftmost[rotation] = min(column for _, column in cells)
        for rotation in range(4):
            for turn in (1, 2, 3):
                after, tests = (rotation + turn) % 4, kicks(name, rotation, turn)
                within = leftmost[after] - leftmost[rotation], lowest[after] - lowest[rotation]
                moves[piece, rotation, turn] = np.add((*tests, *tests[:1] * (TESTS - len(tests))), within)
    return shapes, moves


# SHAPES by piece and rotation: the rotation in the tables of `pieces.py`. MOVES by piece, rotation, quarter turns
# clockwise and test: how (column, y) changes. Turns with one test repeat it.
SHAPES, MOVES = _tables()
