"""Drawing that both games share: pictures by pygame-ce, figures by matplotlib.

Both come with the extra `render` and are imported only when something is drawn.
"""

import os
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from mergefall.imports import import_extra
from mergefall.typing import Bytes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# -- pictures, by pygame-ce -------------------------------------------------------------------------------------------

FINE = 3  # shapes are drawn this much larger, then scaled down, for smooth edges
TALL = 100  # pixels of the font that text is set in before it is scaled

Colour = tuple[int, int, int]  # bytes of red, green and blue
PAGE, BOARD, EMPTY = (250, 247, 240), (84, 78, 92), (108, 101, 116)
DARK, LIGHT = (70, 62, 74), (255, 252, 245)


def colours(words: str) -> tuple[Colour, ...]:
    """Colours from words of six hexadecimal digits.

    >>> colours("f3ead8 000010")
    ((243, 234, 216), (0, 0, 16))
    """
    return tuple((r, g, b) for r, g, b in map(bytes.fromhex, words.split()))


def ansi(back: Colour, front: Colour) -> str:
    return "\x1b[48;2;{};{};{}m\x1b[38;2;{};{};{}m".format(*back, *front)


def pygame() -> Any:
    """pygame with fonts ready; raises DependencyNotInstalled, which names the extra, where it is missing."""
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    pygame: Any = import_extra("pygame")
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


@lru_cache(maxsize=256)
def fitting(text: str, colour: Colour, width: float, height: float) -> Any:
    """Text in the largest size that fits. The surface is kept for later calls, so callers only copy from it."""
    try:
        word = _font().render(text, True, colour)
    except pygame().error:  # pygame's fonts were closed since, and a font does not outlive that
        _font.cache_clear()
        word = _font().render(text, True, colour)
    word = word.subsurface(word.get_bounding_rect())
    scale = min(width / word.get_width(), height / word.get_height())
    return pygame().transform.smoothscale(word, (round(word.get_width() * scale), round(word.get_height() * scale)))


@cache
def _font() -> Any:
    """The font of all text; it keeps the glyphs that it has drawn, which take far longer than the rest."""
    return pygame().font.Font(None, TALL * FINE)


def pixels(surface: Any) -> Bytes:
    """A surface as uint8[height, width, 3]; several times as fast as pygame's `surfarray.array3d` and a transpose."""
    if surface.get_bytesize() != 4:
        surface = surface.convert(32)
    width, height = surface.get_size()
    memory: Any = surface.get_view("0")
    channels = np.frombuffer(memory, np.uint8).reshape(height, -1, 4)
    picture = np.empty((height, width, 3), np.uint8)
    for channel, shift in enumerate(surface.get_shifts()[:3]):  # a channel's place in a word, in bits
        picture[:, :, channel] = channels[:, :width, shift // 8]  # on little-endian machines, as Numba's all are
    return picture


class Window:
    """A window on the screen, of a size in pixels, that shows at most `fps` pictures a second."""

    def __init__(self, caption: str, fps: int, size: tuple[int, int]) -> None:
        pygame().display.init()
        pygame().display.set_caption(caption)
        self._screen: Any = pygame().display.set_mode(size)
        self._clock, self._fps = pygame().time.Clock(), fps

    def show(self, surface: Any) -> None:
        self._screen.blit(surface, (0, 0))
        pygame().event.pump()
        pygame().display.flip()
        self._clock.tick(self._fps)

    def close(self) -> None:
        pygame().display.quit()


# -- figures, by matplotlib -------------------------------------------------------------------------------------------

GOOD, BAD, NEW, INK = "#2e8b57", "#c4523a", "#2f6fb5", "#333333"


def new_figure(width: float, height: float) -> "Figure":
    """An empty figure of a size in inches; raises DependencyNotInstalled without matplotlib."""
    plt: Any = import_extra("matplotlib.pyplot")
    figure = plt.figure(figsize=(width, height), layout="constrained", facecolor="white")
    plt.close(figure)  # the caller keeps the figure: a notebook shows it once, a script leaks none
    return figure


def short_number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 999.5 else f"{value:.3g}"


def draw_terms(
    height: float, widths: tuple[float, float], rows: Sequence[tuple[Any, ...]], titles: Sequence[str] | None
) -> "Figure":
    """A figure with rows of this height in inches: a drawing, and beside it a named bar for each part of a value.

    `rows`: (what draws into the axes it receives, the parts by name, title of the bars). `titles`: of the drawings.
    """
    figure = new_figure(8, height * len(rows))
    every = [0.0, *(value for _, parts, _ in rows for value in parts.values())]
    room = 0.28 * ((max(every) - min(every)) or 1.0)  # for the numbers at the bars' ends
    all_axes = figure.subplots(len(rows), 2, width_ratios=widths, squeeze=False)
    for (left, right), (draw, parts, about), title in zip(all_axes, rows, titles or [""] * len(rows), strict=True):
        draw(left)
        left.set_title(title, loc="left", fontsize=10, color=INK)
        values, places = list(parts.values()), range(len(parts))
        bars = right.barh(places, values, color=[GOOD if value >= 0 else BAD for value in values], height=0.62)
        right.bar_label(bars, list(map(short_number, values)), padding=4, fontsize=9, color=INK)
        right.set_title(about, loc="left", fontsize=10, color=INK)
        right.set(xlim=(min(every) - room if min(every) < 0 else 0, max(every) + room), ylim=(len(values) - 0.4, -0.6))
        right.axvline(0, color=INK, linewidth=0.8)
        right.set_yticks(places, list(parts), fontsize=9, color=INK)
        right.set_xticks([])
        right.tick_params(which="both", length=0)
        right.spines[:].set_visible(False)
    return figure
