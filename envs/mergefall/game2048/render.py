"""Boards as pictures and as coloured text. Pictures need pygame-ce, the extra `render`, imported only when drawing."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from mergefall.game2048.settings import board_array

SIDE, GAP, ROUND = 100, 12, 10  # pixels of a tile, between tiles, and of a tile's rounded corners
PANEL = 64  # pixels of the score panel's height
FINE = 3  # drawn this much larger, then scaled down, for smooth edges
POWER_FROM = 24  # tiles from this rank on are written as a power, 2²⁴: their digits would not be readable

Colour = tuple[int, int, int]
PAGE, BOARD, EMPTY = (250, 247, 240), (84, 78, 92), (108, 101, 116)
DARK, LIGHT = (70, 62, 74), (255, 252, 245)
# From rank 1: sand, amber and red, then violet, blue and green, and into the dark.
PALETTE = """
f3ead8 f0deb8 f6c378 f6a656 f1844e e46046
cf424a bd3466 a23282 83389c 6242b0 4254bc
286cbc 1882aa 10928a 188c62 30763a 3c3e38
"""
TILES: tuple[Colour, ...] = tuple(tuple(bytes.fromhex(word)) for word in PALETTE.split())  # pyright: ignore[reportAssignmentType]


def tile_colours(rank: int) -> tuple[Colour, Colour]:
    """(background, digits) of a tile; ranks past the palette's end keep its last colour."""
    return TILES[min(rank, len(TILES)) - 1], DARK if rank <= 4 else LIGHT


def to_ansi(ranks: NDArray[np.integer[Any]], score: int | None = None) -> str:
    """A board as coloured text for terminals, with the score above it."""
    rows = ranks.tolist()
    width = max(5, len(str(1 << max(map(max, rows))))) + 2
    lines = [] if score is None else [f"score {score}"]
    for row in rows:
        blank, words = "", ""
        for rank in row:
            back, front = tile_colours(rank) if rank else (EMPTY, LIGHT)
            colour = "\x1b[48;2;{};{};{}m\x1b[38;2;{};{};{}m".format(*back, *front)
            blank += colour + " " * width
            words += colour + (str(1 << rank) if rank else "·").center(width)
        lines += [f"{blank}\x1b[0m", f"{words}\x1b[0m", f"{blank}\x1b[0m"]
    return "\n".join(lines) + "\n"


def draw(ranks: Any, score: int | None = None, tile: int = SIDE) -> NDArray[np.uint8]:
    """A picture of one board, uint8[height, width, 3], for notebooks, videos and files.

    Args:
        ranks: a board: integer ranks (log2 of the tile, 0 for empty) or its text form.
        score: written above the board, with the largest tile; None leaves the panel out.
        tile: side of a tile in pixels, 100 unless told; the rest scales with it.

    Needs pygame-ce (`pip install "mergefall[render]"`); a ValueError names a bad board.
    """
    surface = _board_surface(board_array(ranks), score)
    if tile != SIDE:
        size = [max(2, round(side * tile / SIDE) // 2 * 2) for side in surface.get_size()]  # video codecs want it even
        surface = _pygame().transform.smoothscale(surface, size)
    return np.ascontiguousarray(_pygame().surfarray.array3d(surface).swapaxes(0, 1))


def frame(ranks: NDArray[np.uint8], score: int, mode: str) -> str | NDArray[np.uint8]:
    """What an environment's `render` returns in the modes `"ansi"` and `"rgb_array"`."""
    return to_ansi(ranks, score) if mode == "ansi" else draw(ranks, score)


class Window:
    """A window on the screen that shows a game, at most `fps` boards a second."""

    def __init__(self, fps: int) -> None:
        self._fps = fps
        self._screen: Any = None

    def show(self, ranks: NDArray[np.uint8], score: int) -> None:
        pygame = _pygame()
        picture = _board_surface(ranks, score)
        if self._screen is None:
            pygame.display.init()
            pygame.display.set_caption("2048 · mergefall")
            self._screen = pygame.display.set_mode(picture.get_size())
            self._clock = pygame.time.Clock()
        self._screen.blit(picture, (0, 0))
        pygame.event.pump()
        pygame.display.flip()
        self._clock.tick(self._fps)

    def close(self) -> None:
        if self._screen is not None:
            _pygame().display.quit()
            self._screen = None


def _pygame() -> Any:
    """pygame with fonts ready; an error that names the extra where it is not installed."""
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    try:
        import pygame
    except ImportError as error:
        raise gym.error.DependencyNotInstalled(
            'drawing needs pygame-ce, which is not installed; run `pip install "mergefall[render]"`'
        ) from error
    if not pygame.font.get_init():
        pygame.font.init()
    return pygame


def _board_surface(ranks: NDArray[np.uint8], score: int | None) -> Any:
    rows, cols = ranks.shape
    top = 0 if score is None else PANEL
    width, height = (n * SIDE + (n + 1) * GAP for n in (cols, rows))
    surface = _pygame().Surface((width, height + top))
    surface.fill(PAGE)
    if score is not None:
        surface.blit(_panel(width, score, int(ranks.max())), (0, 0))
    surface.blit(_rounded(width, height, BOARD), (0, top))
    for r in range(rows):
        for c in range(cols):
            surface.blit(_tile(int(ranks[r, c])), (GAP + c * (SIDE + GAP), top + GAP + r * (SIDE + GAP)))
    return surface


@cache
def _rounded(width: int, height: int, colour: Colour) -> Any:
    """A rectangle with smooth rounded corners on a transparent ground."""
    pygame = _pygame()
    large = pygame.Surface((width * FINE, height * FINE), pygame.SRCALPHA)
    large.fill((*colour, 0))
    pygame.draw.rect(large, colour, large.get_rect(), border_radius=ROUND * FINE)
    return pygame.transform.smoothscale(large, (width, height))


@cache
def _tile(rank: int) -> Any:
    if not rank:
        return _rounded(SIDE, SIDE, EMPTY)
    back, front = tile_colours(rank)
    tile = _rounded(SIDE, SIDE, back).copy()
    power = rank >= POWER_FROM
    words = [_fitting("2" if power else str(1 << rank), front, SIDE * 0.82, SIDE * (0.4 if power else 0.44))]
    if power:
        words.append(_fitting(str(rank), front, SIDE * 0.4, SIDE * 0.25))
    left = (SIDE - sum(word.get_width() for word in words)) / 2
    for i, word in enumerate(words):
        tile.blit(word, (left, (SIDE - words[0].get_height()) / 2 - i * SIDE * 0.08))
        left += word.get_width()
    return tile


def _fitting(text: str, colour: Colour, width: float, height: float) -> Any:
    """Text in the largest size that fits, set fine and scaled down."""
    pygame = _pygame()
    word = pygame.font.Font(None, SIDE * FINE).render(text, True, colour)
    word = word.subsurface(word.get_bounding_rect())
    scale = min(width / word.get_width(), height / word.get_height())
    return pygame.transform.smoothscale(word, (round(word.get_width() * scale), round(word.get_height() * scale)))


def _panel(width: int, score: int, rank: int) -> Any:
    """The line above a board: the score on the left, the largest tile on the right if there is room."""
    pygame = _pygame()
    panel = pygame.Surface((width, PANEL), pygame.SRCALPHA)
    label, number = _fitting("SCORE", BOARD, width, 13), _fitting(f"{score}", DARK, width - 2 * GAP, 26)
    panel.blit(label, (GAP, 10))
    panel.blit(number, (GAP, 30))
    largest = _fitting(f"{1 << rank}" if rank else "0", DARK, width, 26)
    if 4 * GAP + number.get_width() + largest.get_width() <= width:
        label = _fitting("LARGEST", BOARD, width, 13)
        panel.blit(label, (width - GAP - label.get_width(), 10))
        panel.blit(largest, (width - GAP - largest.get_width(), 30))
    return panel
