"""Games as pictures and as coloured text: the field, the current piece, the following pieces, and the figures."""

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from mergefall.draw import BOARD, DARK, EMPTY, LIGHT, PAGE, Colour, ansi, colours, fitting, pixels, pygame, rounded
from mergefall.tetris import game
from mergefall.tetris.field import boards_of, put
from mergefall.tetris.pieces import NAMES, rotations
from mergefall.tetris.rules import board_array
from mergefall.typing import Bools, Bytes, Words

TALLEST, LARGEST = 640, 44  # pixels of a tall field, and of a cell of a small one
GAP, FRAME, MARGIN = 2, 8, 16  # pixels between cells, around them, and around field and panel
PANEL = 152  # pixels of the side panel's width
BAR = 10  # pixels of the width of the bar that shows garbage
CURRENT, FOLLOWING = 24, 14  # pixels of a cell of a piece that stands alone, and of the following ones
SLOT, NOTE = 108, 24  # pixels of the height of a piece that stands alone with its label, and of a note

GREY: Colour = (176, 170, 180)  # filled cells of no known piece
RED: Colour = (224, 82, 76)
# By row of the tables in pieces.py: I O T S Z J L, then plus I5 L5 Y5 U N.
PALETTE = colours("3cb6cc f0c040 a45cc0 62b04e e0524c 4a70d0 ee8c3a e0619e 3cb6cc ee8c3a a45cc0 4a70d0 62b04e")
FILLS = (EMPTY, GREY, *PALETTE)  # by the numbers in `Scene.cells`


class Scene(NamedTuple):
    cells: Bytes  # [rows, cols]: 0 empty, 1 filled by no known piece, else 2 + a piece's table row
    aimed: Bytes  # the same: where the current piece would come to rest
    above: int  # how many of these rows lie above the field
    panel: Sequence[tuple[str, Sequence[int]]]  # labels, and the table rows of the pieces under them
    figures: Sequence[tuple[str, int]]
    notes: Sequence[str]  # what has happened; "" for each that has not, so that all pictures are of one size
    garbage: int | None = None  # rows that are about to rise; None: there never are any


class Canvas:
    """Draws one game, and remembers the colours of its cells from the actions played."""

    def __init__(self, rules: Any) -> None:
        self._rules = rules
        self._first = rules.piece_set.first
        self._height = rules.rows + rules.piece_set.storage  # rows of the field and above it
        self._forget()

    def paint(self, state: Words, action: int | None) -> None:
        """Colour the cells of an action that is about to be played in `state`; an illegal action colours nothing.

        None: the state is a new one, and the colours of its cells are not known.
        """
        if action is None:
            return self._forget()
        _, piece, (rotation, column, y) = self._rules.resting(state, action)
        own = self._cells(piece, rotation, column, -1 if game.is_over(state) else y)
        if own.any():
            above = own[: self._height - self._rules.rows].any()
            self._lock(state, piece, own, clears=self._rules.overflow == "clear_first" or not above)

    def picture(self, state: Words, as_text: bool) -> Any:
        """A state as coloured text, or as a pygame surface."""
        return (to_ansi if as_text else surface_of)(self.scene(state))

    def scene(self, state: Words) -> Scene:
        """The scene of a state; cells without a known colour are grey."""
        top = self._height - self._rules.rows
        cells, held = self._coloured(state), int(state[game.HOLD])
        current, *following = self._pieces(state)
        hold = [("hold", [self._first + held - 1] if held else [])] * self._rules.hold
        figures = (("lines", game.LINES), ("score", game.SCORE), ("pieces", game.PIECES))
        return Scene(
            cells=cells[top:],
            aimed=np.zeros_like(cells[top:]),
            above=0,
            panel=[("piece", [current]), *hold, *[("next", following)] * bool(following)],
            figures=[(name, int(state[word])) for name, word in figures],
            notes=["game over" if cells[:top].any() else ""],
        )

    def _forget(self) -> None:
        self._fills = np.zeros((self._height, self._rules.cols), dtype=np.uint8)  # row 0 on top

    def _lock(self, state: Words, piece: int, own: Bools, clears: bool = True) -> None:
        """Colour a piece's own cells, then let the colours of full rows go."""
        self._fills[own] = 2 + piece
        if clears:
            filled = boards_of(state[game.COLUMNS :], self._height).astype(bool) | own
            kept = self._fills[~filled.all(axis=1)]
            self._fills = np.concatenate([np.zeros_like(self._fills[len(kept) :]), kept])

    def _coloured(self, state: Words) -> Bytes:
        """All cells of a state's board, as in `Scene.cells`."""
        filled = boards_of(state[game.COLUMNS :], self._height)
        return np.where(filled == 1, np.maximum(self._fills, 1), 0).astype(np.uint8)

    def _pieces(self, state: Words) -> list[int]:
        """The table rows of the current piece and the following ones."""
        return (self._first + game.nibbles(state[game.QUEUE], 1 + self._rules.preview)).tolist()

    def _cells(self, piece: int, shape: int, column: int, y: int) -> Bools:
        """The cells of a piece at a place; none if y is -1."""
        columns = np.zeros(self._rules.cols, np.uint64)
        if y >= 0:
            put(columns, piece, shape, column, y)
        return boards_of(columns, self._height) == 1


def to_ansi(scene: Scene) -> str:
    """A game as coloured text for terminals, two characters per cell, with the pieces beside the field."""
    plain = "\x1b[0m"
    lines = ["  ".join([*(f"{name} {value}" for name, value in scene.figures), *filter(None, scene.notes)])]
    calm = len(scene.cells) - (scene.garbage or 0)
    for r, (row, aims) in enumerate(zip(scene.cells.tolist(), scene.aimed.tolist(), strict=True)):
        line = f"{ansi(RED, RED)} {plain}" if r >= calm else " " * (scene.garbage is not None)
        ground = plain + "  " if r < scene.above else ansi(EMPTY, LIGHT) + " ·"
        for fill, aim in zip(row, aims, strict=True):
            front = FILLS[aim] if aim and not fill else LIGHT
            line += ansi(FILLS[fill], front) + "[]" if fill or aim else ground
        lines.append(line + plain)
    for line, (label, pieces) in enumerate(scene.panel, start=1):
        names = (f"{ansi(PALETTE[piece], LIGHT)} {NAMES[piece]} {plain}" for piece in pieces)
        lines[line] += f"  {label:5} {' '.join(names)}"
    return "\n".join(lines) + "\n"


def draw(board: Any) -> Bytes:
    """A picture of one board, uint8[height, width, 3], for notebooks, videos and files.

    `board` is a field of 0 and 1, or its text form. Needs pygame-ce (extra `render`).
    Raises ValueError for a bad board.
    """
    cells = board_array(board)
    return pixels(surface_of(Scene(cells, np.zeros_like(cells), 0, (), (), ())))


def surface_of(scene: Scene) -> Any:
    """A picture of a game as a pygame surface: the field on the left, the panel, if there is one, on the right."""
    (rows, cols), panel = scene.cells.shape, _panel(scene)
    side, bar = min(LARGEST, TALLEST // (rows - scene.above)), 0 if scene.garbage is None else BAR + GAP
    width, height = bar + cols * side + 2 * FRAME, rows * side + 2 * FRAME
    size = width + 2 * MARGIN + (PANEL + MARGIN) * bool(scene.figures), max(height, panel.get_height()) + 2 * MARGIN
    surface = pygame().Surface([pixel + pixel % 2 for pixel in size])  # video codecs want even sizes
    surface.fill(PAGE)
    hidden = scene.above * side
    surface.blit(rounded(width - bar, height - hidden, BOARD, FRAME), (MARGIN + bar, MARGIN + hidden))
    left, top = MARGIN + bar + FRAME, MARGIN + FRAME
    drawn = [_cell(fill, side) for fill in FILLS]
    surface.fblits(
        (drawn[fill], (left + c * side, top + r * side))
        for r, row in enumerate(scene.cells.tolist())
        for c, fill in enumerate(row)
        if fill or r >= scene.above
    )
    for r, c in np.argwhere((scene.aimed > 0) & (scene.cells == 0)).tolist():
        surface.blit(_outline(FILLS[scene.aimed[r, c]], side), (left + c * side, top + r * side))
    for r in range(rows - min(scene.garbage or 0, rows), rows):
        surface.blit(rounded(BAR, side - GAP, RED, 3), (MARGIN, top + r * side + GAP // 2))
    surface.blit(panel, (width + 2 * MARGIN, MARGIN))
    return surface


@cache
def _cell(colour: Colour, side: int) -> Any:
    cell = pygame().Surface((side, side), pygame().SRCALPHA)
    cell.blit(rounded(side - GAP, side - GAP, colour, max(2, side // 8)), (GAP // 2, GAP // 2))
    return cell


@cache
def _outline(colour: Colour, side: int) -> Any:
    pale = tuple((2 * one + light) // 3 for one, light in zip(colour, LIGHT, strict=True))  # purple is as dark as EMPTY
    cell, edge = _cell(pale, side).copy(), max(1, side // 9)
    inside = side - GAP - 2 * edge
    cell.blit(rounded(inside, inside, EMPTY, max(1, side // 12)), (GAP // 2 + edge, GAP // 2 + edge))
    return cell


@cache
def _piece(piece: int, side: int) -> Any:
    cells = rotations(NAMES[piece])[0]
    wide, tall = (1 + max(cell[axis] for cell in cells) for axis in (1, 0))
    surface = pygame().Surface((wide * side, tall * side), pygame().SRCALPHA)
    for r, c in cells:
        surface.blit(_cell(PALETTE[piece], side), (c * side, r * side))
    return surface


def _panel(scene: Scene) -> Any:
    slot = 3 * FOLLOWING + 8
    heights = [32 + -(-len(pieces) // 2) * slot if label == "next" else SLOT for label, pieces in scene.panel]
    height = sum(heights) + 60 * len(scene.figures) + NOTE * len(scene.notes)
    panel, top = pygame().Surface((PANEL, height), pygame().SRCALPHA), 0
    for (label, pieces), high in zip(scene.panel, heights, strict=True):
        under, side = _label(panel, label.upper(), top), FOLLOWING if label == "next" else CURRENT
        for i, piece in enumerate(pieces):
            panel.blit(_piece(piece, side), (i % 2 * PANEL // 2, under + i // 2 * slot))
        top += high
    for name, value in scene.figures:
        under = _label(panel, name.upper(), top)
        panel.blit(fitting(f"{value}", DARK, PANEL, 20), (0, under - 4))
        top += 60
    for note in filter(None, scene.notes):
        panel.blit(fitting(note.upper(), DARK, PANEL, 13), (0, top))  # capitals, because all are as tall
        top += NOTE
    return panel


def _label(panel: Any, text: str, top: int) -> int:
    """Write a label; returns the top of its content."""
    panel.blit(fitting(text, BOARD, PANEL, 11), (0, top))
    return top + 22
