"""Boards of 2048 as pictures and as coloured text."""

from functools import cache
from typing import Any

from mergefall.draw import BOARD, DARK, EMPTY, LIGHT, PAGE, Colour, ansi, colours, fitting, pixels, pygame, rounded
from mergefall.game2048.board import SCORE, cells_of
from mergefall.game2048.rules import Rules, board_array
from mergefall.typing import Array, Bytes, Words

SIDE, GAP, ROUND = 100, 12, 10  # pixels of a tile, between tiles, and of a tile's rounded corners
PANEL = 64  # pixels of the score panel's height

# From rank 1: sand, amber and red, then violet, blue and green, and into the dark.
TILES = colours(
    """
    f3ead8 f0deb8 f6c378 f6a656 f1844e e46046
    cf424a bd3466 a23282 83389c 6242b0 4254bc
    286cbc 1882aa 10928a 188c62 30763a 3c3e38
    """
)


class Canvas:
    """Draws one game."""

    def __init__(self, rules: Rules) -> None:
        self._size = rules.rows, rules.cols

    def paint(self, state: Words, action: int | None) -> None:
        """Called before an action is played; a board's tiles show all that there is to remember."""

    def picture(self, state: Words, as_text: bool) -> Any:
        """A state as coloured text, or as a pygame surface."""
        return (to_ansi if as_text else board_surface)(cells_of(state, *self._size), int(state[SCORE]))


def tile_colours(rank: int) -> tuple[Colour, Colour]:
    """The colours (background, digits) of a tile; ranks beyond the palette take its last colour."""
    return TILES[min(rank, len(TILES)) - 1], DARK if rank <= 4 else LIGHT


def to_ansi(ranks: Array, score: int | None = None) -> str:
    """A board as coloured text for terminals; the score, if given, is written above it."""
    rows = ranks.tolist()
    width = max(5, len(str(1 << max(map(max, rows))))) + 2
    lines = [] if score is None else [f"score {score}"]
    for row in rows:
        blank, words = "", ""
        for rank in row:
            back, front = tile_colours(rank) if rank else (EMPTY, LIGHT)
            colour = ansi(back, front)
            blank += colour + " " * width
            words += colour + (str(1 << rank) if rank else "·").center(width)
        lines += [f"{blank}\x1b[0m", f"{words}\x1b[0m", f"{blank}\x1b[0m"]
    return "\n".join(lines) + "\n"


def draw(ranks: Any, score: int | None = None) -> Bytes:
    """A picture of one board, uint8[height, width, 3], for notebooks, videos and files.

    Args:
        ranks: a board, as integer ranks (log2 of the tile, 0 for empty) or in its text form.
        score: written above the board; default: no such panel.

    Needs pygame-ce (extra `render`). Raises ValueError for a bad board.
    """
    return pixels(board_surface(board_array(ranks), score))


def board_surface(ranks: Bytes, score: int | None) -> Any:
    rows, cols = ranks.shape
    top = 0 if score is None else PANEL
    width, height = (n * SIDE + (n + 1) * GAP for n in (cols, rows))
    surface = pygame().Surface((width, height + top))
    surface.fill(PAGE)
    if score is not None:
        surface.blit(fitting("SCORE", BOARD, width, 13), (GAP, 10))
        surface.blit(fitting(f"{score}", DARK, width - 2 * GAP, 26), (GAP, 30))
    surface.blit(rounded(width, height, BOARD, ROUND), (0, top))
    for r in range(rows):
        for c in range(cols):
            surface.blit(_tile(int(ranks[r, c])), (GAP + c * (SIDE + GAP), top + GAP + r * (SIDE + GAP)))
    return surface


@cache
def _tile(rank: int) -> Any:
    if not rank:
        return rounded(SIDE, SIDE, EMPTY, ROUND)
    back, front = tile_colours(rank)
    tile = rounded(SIDE, SIDE, back, ROUND).copy()
    word = fitting(str(1 << rank), front, SIDE * 0.82, SIDE * 0.44)
    tile.blit(word, ((SIDE - word.get_width()) / 2, (SIDE - word.get_height()) / 2))
    return tile
