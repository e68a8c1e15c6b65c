"""What pictures of both games share. They need pygame-ce, the extra `render`, imported only when drawing."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

FINE = 3  # drawn this much larger, then scaled down, for smooth edges
TALL = 100  # pixels of the font that text is set in before it is scaled

Colour = tuple[int, int, int]
PAGE, BOARD, EMPTY = (250, 247, 240), (84, 78, 92), (108, 101, 116)
DARK, LIGHT = (70, 62, 74), (255, 252, 245)


def colours(words: str) -> tuple[Colour, ...]:
    """The colours of a text of six hexadecimal digits each.

    >>> colours("f3ead8 000010")
    ((243, 234, 216), (0, 0, 16))
    """
    return tuple((r, g, b) for r, g, b in map(bytes.fromhex, words.split()))


def ansi(back: Colour, front: Colour) -> str:
    """The escape sequence that sets a terminal's colours."""
    return "\x1b[48;2;{};{};{}m\x1b[38;2;{};{};{}m".format(*back, *front)


def pygame() -> Any:
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


@cache
def rounded(width: int, height: int, colour: Colour, radius: int) -> Any:
    """A rectangle with smooth rounded corners on a transparent ground."""
    large = pygame().Surface((width * FINE, height * FINE), pygame().SRCALPHA)
    large.fill((*colour, 0))
    pygame().draw.rect(large, colour, large.get_rect(), border_radius=radius * FINE)
    return pygame().transform.smoothscale(large, (width, height))


def fitting(text: str, colour: Colour, width: float, height: float) -> Any:
    """Text in the largest size that fits, set fine and scaled down."""
    word = pygame().font.Font(None, TALL * FINE).render(text, True, colour)
    word = word.subsurface(word.get_bounding_rect())
    scale = min(width / word.get_width(), height / word.get_height())
    return pygame().transform.smoothscale(word, (round(word.get_width() * scale), round(word.get_height() * scale)))


def pixels(surface: Any) -> NDArray[np.uint8]:
    """A surface as uint8[height, width, 3]."""
    return np.ascontiguousarray(pygame().surfarray.array3d(surface).swapaxes(0, 1))


class Window:
    """A window on the screen, with at most `fps` pictures a second."""

    def __init__(self, caption: str, fps: int) -> None:
        self._caption, self._fps = caption, fps
        self._screen: Any = None

    def show(self, surface: Any) -> None:
        if self._screen is None:
            pygame().display.init()
            pygame().display.set_caption(self._caption)
            self._screen = pygame().display.set_mode(surface.get_size())
            self._clock = pygame().time.Clock()
        self._screen.blit(surface, (0, 0))
        pygame().event.pump()
        pygame().display.flip()
        self._clock.tick(self._fps)

    def close(self) -> None:
        if self._screen is not None:
            pygame().display.quit()
            self._screen = None
