"""Games as pictures and as coloured text: the field, the current piece, the following pieces, and the figures."""

from __future__ import annotations

from functools import cache
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mergefall.draw import BOARD, DARK, EMPTY, LIGHT, PAGE, Colour, ansi, colours, fitting, pixels, pygame, rounded
from mergefall.tetris import game
from mergefall.tetris.field import boards_of, put
from mergefall.tetris.pieces import NAMES, rotations
from mergefall.tetris.placements import rest
from mergefall.tetris.rules import Rules, board_array

TALLEST, LARGEST = 640, 44  # pixels of a tall field, and of a cell of a small one
GAP, FRAME, MARGIN = 2, 8, 16  # pixels between cells, around them, and around field and panel
PANEL = 152  # pixels of the side panel's width
CURRENT, FOLLOWING = 24, 14  # pixels of a cell of the current piece, and of the following ones

GREY: Colour = (176, 170, 180)  # filled cells of no known piece
# By row of the tables in pieces.py: I O T S Z J L, then plus I5 L5 Y5 U N.
PALETTE = colours("3cb6cc f0c040 a45cc0 62b04e e0524c 4a70d0 ee8c3a e0619e 3cb6cc ee8c3a a45cc0 4a70d0 62b04e")
FILLS = (EMPTY, GREY, *PALETTE)  # by the numbers in `Scene.cells`


class Scene(NamedTuple):
    cells: NDArray[np.uint8]  # [rows, cols]: 0 empty, 1 filled by no known piece, else 2 + a piece's table row
    aimed: NDArray[np.bool_]  # [rows, cols]: where the current piece would come to rest by the action that is aimed at
    pieces: tuple[int, ...]  # the table rows of the current piece and of the following ones
    lines: int
    score: int
    placed: int
    over: bool


class Canvas:
    """Remembers the colours of one game's cells from the placements played."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._first = rules.piece_set.first
        height = rules.rows + rules.piece_set.storage
        self._fills = np.zeros((height, rules.cols), dtype=np.uint8)  # row 0 on top, storage rows included

    def paint(self, state: NDArray[np.uint64], action: int) -> None:
        """Colour the cells of an action that is about to be played in `state`; an illegal action colours nothing."""
        height, own = len(self._fills), self._resting(state, action)
        if not own.any():
            return
        self._fills[own] = 2 + self._piece(state)
        filled = boards_of(state[game.COLUMNS :], height)
        filled[own] = 1
        if self._rules.overflow == "clear_first" or not own[: height - self._rules.rows].any():
            kept = self._fills[~filled.all(axis=1)]
            self._fills = np.concatenate([np.zeros_like(self._fills[len(kept) :]), kept])

    def scene(self, state: NDArray[np.uint64], aim: int | None = None) -> Scene:
        """The scene of a state; cells without a known colour are grey. `aim`: an action that is aimed at."""
        filled = boards_of(state[game.COLUMNS :], len(self._fills))
        top = len(self._fills) - self._rules.rows
        queue = game.nibbles(state[game.QUEUE], 1 + self._rules.preview)
        return Scene(
            cells=np.where(filled == 1, np.maximum(self._fills, 1), 0).astype(np.uint8)[top:],
            aimed=(np.zeros_like(filled, dtype=bool) if aim is None else self._resting(state, aim))[top:],
            pieces=tuple((self._first + queue).tolist()),
            lines=int(state[game.LINES]),
            score=int(state[game.SCORE]),
            placed=int(state[game.PIECES]),
            over=bool(filled[:top].any()),
        )

    def _piece(self, state: NDArray[np.uint64]) -> int:
        return self._first + game.nibbles(state[game.QUEUE], 1).item()

    def _resting(self, state: NDArray[np.uint64], action: int) -> NDArray[np.bool_]:
        """The cells in which an action brings the current piece to rest, storage rows included; none if illegal."""
        columns, piece = state[game.COLUMNS :], self._piece(state)
        rotation, column, y = rest(columns, piece, action, self._rules.placements == "slide")
        after, over = columns.copy(), (columns >> np.uint64(self._rules.rows)).any()
        if y >= 0 and not over:  # else a piece may rest above the picture
            put(after, piece, rotation, column, y)
        return boards_of(after ^ columns, len(self._fills)) == 1


def frame(scene: Scene, mode: str) -> Any:
    if mode == "ansi":
        return to_ansi(scene)
    return surface_of(scene) if mode == "human" else pixels(surface_of(scene))


def to_ansi(scene: Scene) -> str:
    """A game as coloured text for terminals, two characters per cell, with the pieces beside the field."""
    plain = "\x1b[0m"
    lines = [f"lines {scene.lines}  score {scene.score}  pieces {scene.placed}" + "  game over" * scene.over]
    colour = PALETTE[scene.pieces[0]]
    for row in zip(scene.cells.tolist(), scene.aimed.tolist(), strict=True):
        runs = ((kind, len(list(run))) for kind, run in groupby(zip(*row, strict=True)))
        cells = (
            ansi(FILLS[fill], colour if aimed else LIGHT) + ("[]" if fill or aimed else " ·") * length
            for (fill, aimed), length in runs
        )
        lines.append("".join(cells) + plain)
    for label, pieces, line in (("piece", scene.pieces[:1], 1), ("next ", scene.pieces[1:], 2)):
        names = (f"{ansi(PALETTE[piece], LIGHT)} {NAMES[piece]} {plain}" for piece in pieces)
        lines[line] += f"  {label} {' '.join(names)}" if pieces else ""
    return "\n".join(lines) + "\n"


def draw(board: Any) -> NDArray[np.uint8]:
    """A picture of one board, uint8[height, width, 3], for notebooks, videos and files.

    `board` is a field of 0 and 1, or its text form. Needs pygame-ce (extra `render`).
    Raises ValueError for a bad board.
    """
    cells = board_array(board)
    rows, cols = cells.shape
    side = _side(rows)
    surface = _page(cols * side + 2 * FRAME, rows * side + 2 * FRAME)
    _draw_field(surface, cells, side, 0)
    return pixels(surface)


def surface_of(scene: Scene) -> Any:
    """A picture of a game as a pygame surface: the field on the left, the panel on the right."""
    rows, cols = scene.cells.shape
    side, panel = _side(rows), _panel(scene)
    width, height = cols * side + 2 * FRAME, rows * side + 2 * FRAME
    surface = _page(width + PANEL + 3 * MARGIN, max(height, panel.get_height()) + 2 * MARGIN)
    _draw_field(surface, scene.cells, side, MARGIN)
    first = MARGIN + FRAME
    for r, c in np.argwhere(scene.aimed).tolist():
        surface.blit(_outline(PALETTE[scene.pieces[0]], side), (first + c * side, first + r * side))
    surface.blit(panel, (width + 2 * MARGIN, MARGIN))
    return surface


def _side(rows: int) -> int:
    return min(LARGEST, TALLEST // rows)


def _page(width: int, height: int) -> Any:
    surface = pygame().Surface([width + width % 2, height + height % 2])  # video codecs want even sizes
    surface.fill(PAGE)
    return surface


def _draw_field(surface: Any, cells: NDArray[np.uint8], side: int, margin: int) -> None:
    rows, cols = cells.shape
    surface.blit(rounded(cols * side + 2 * FRAME, rows * side + 2 * FRAME, BOARD, FRAME), (margin, margin))
    drawn, first = [_cell(fill, side) for fill in FILLS], margin + FRAME
    surface.fblits(
        (drawn[fill], (first + c * side, first + r * side))
        for r, row in enumerate(cells.tolist())
        for c, fill in enumerate(row)
    )


@cache
def _cell(colour: Colour, side: int) -> Any:
    cell = pygame().Surface((side, side), pygame().SRCALPHA)
    cell.blit(rounded(side - GAP, side - GAP, colour, max(2, side // 8)), (GAP // 2, GAP // 2))
    return cell


@cache
def _outline(colour: Colour, side: int) -> Any:
    cell, edge = _cell(colour, side).copy(), max(1, side // 9)
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
    following = scene.pieces[1:]
    slot = 3 * FOLLOWING + 8
    slots = -(-len(following) // 2)
    figures = (("LINES", scene.lines), ("SCORE", scene.score), ("PIECES", scene.placed))
    panel = pygame().Surface(
        (PANEL, 108 + (32 + slots * slot) * bool(following) + 60 * len(figures)), pygame().SRCALPHA
    )
    top = _label(panel, "PIECE", 0)
    panel.blit(_piece(scene.pieces[0], CURRENT), (0, top))
    top = 108
    if following:
        top = _label(panel, "NEXT", top)
        for i, piece in enumerate(following):
            panel.blit(_piece(piece, FOLLOWING), (i % 2 * PANEL // 2, top + i // 2 * slot))
        top += slots * slot + 8
    for name, value in figures:
        under = _label(panel, name, top)
        panel.blit(fitting(f"{value}", DARK, PANEL, 20), (0, under - 4))
        top += 60
    return panel


def _label(panel: Any, text: str, top: int) -> int:
    """Write a label; returns the top of its content."""
    panel.blit(fitting(text, BOARD, PANEL, 11), (0, top))
    return top + 22
