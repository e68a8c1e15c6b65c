"""Where a game is shown and where keys come from: the terminal, or a window."""

from __future__ import annotations

import os
import re
import select
import sys
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from textwrap import wrap
from typing import Any, Self

import numpy as np
from mergefall.draw import BOARD, PAGE, pygame
from numpy.typing import NDArray
from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from mergefall_training.progress import console

ARROWS = ("up", "down", "right", "left")
GAP = 16  # pixels between two pictures


def side_by_side(pictures: Sequence[NDArray[np.uint8]]) -> NDArray[np.uint8]:
    """Pictures in a row, as one: uint8[height, width, 3]."""
    height = max(len(picture) for picture in pictures)
    parts = []
    for picture in pictures:
        part = np.full((height, picture.shape[1] + GAP * bool(parts), 3), PAGE, np.uint8)
        part[: len(picture), part.shape[1] - picture.shape[1] :] = picture
        parts.append(part)
    return np.concatenate(parts, axis=1)


class Terminal(ExitStack):
    """The terminal. If the output is no terminal, only the last picture is printed, and no keys are read."""

    render_mode = "ansi"

    def __init__(self) -> None:
        super().__init__()
        self._live = Live(console=console(), auto_refresh=False)
        self.interactive = sys.stdin.isatty() and self._live.console.is_terminal

    def __enter__(self) -> Self:
        if not self._live.console.is_terminal:
            self.callback(self._live.console.print)
        if self.interactive and sys.platform != "win32":  # each key comes at once
            import termios
            import tty

            keyboard = sys.stdin.fileno()
            self.callback(termios.tcsetattr, keyboard, termios.TCSADRAIN, termios.tcgetattr(keyboard))
            tty.setcbreak(keyboard, termios.TCSADRAIN)
        self.enter_context(self._live)
        return self

    def show(self, pictures: Sequence[Any], lines: Sequence[str]) -> None:
        """Draw the boards, which are text, and lines below them."""
        row = Table.grid(padding=(0, 4, 0, 0))
        row.add_row(*(Text.from_ansi(picture) for picture in pictures))
        self._live.update(Group(row, *map(Text, lines)), refresh=True)

    def read(self, timeout: float | None = None) -> list[str]:
        """Keys that were pressed: `up`, `right`, `down`, `left`, `space`, or a letter; `q` if the input is closed.

        Waits for a key, but at most `timeout` seconds. Without a keyboard there are none.
        """
        if not self.interactive:
            if self._live.console.is_terminal:
                time.sleep(timeout or 0)
            return []
        return _windows_keys(timeout) if sys.platform == "win32" else _posix_keys(timeout)


def _posix_keys(timeout: float | None) -> list[str]:
    keyboard = sys.stdin.fileno()
    if not select.select([keyboard], [], [], timeout)[0]:
        return []
    pressed = os.read(keyboard, 64).decode(errors="ignore")
    arrows = dict(zip("ABCD", ARROWS, strict=True))
    found = re.findall(r"\x1b\[[0-9;?]*[@-~]|\x1bO.|[^\x1b]", pressed)  # other sequences are keys such as F2
    plain = [key for key in found if len(key) == 1 or (len(key) == 3 and key[-1] in arrows)]
    return [arrows[key[-1]] if len(key) > 1 else _name(key) for key in plain] if pressed else ["q"]


def _windows_keys(timeout: float | None) -> list[str]:
    import msvcrt

    kbhit, getwch = (getattr(msvcrt, name) for name in ("kbhit", "getwch"))
    end = None if timeout is None else time.monotonic() + timeout
    while not kbhit():
        if end is not None and time.monotonic() >= end:
            return []
        time.sleep(0.01)
    key = getwch()
    return [dict(zip("HPMK", ARROWS, strict=True)).get(getwch(), "") if key in "\x00\xe0" else _name(key)]


def _name(key: str) -> str:
    return {" ": "space", "\n": "space", "\r": "space"}.get(key, key.lower())


class Window(AbstractContextManager["Window"]):
    """A window of pygame: the pictures, below them the text. The first picture gives it its size."""

    render_mode, interactive = "rgb_array", True
    LINE, LINES, WIDTH = 24, 6, 520  # pixels of a line's height, lines, and pixels of the text's width at least
    LETTER = 7.2  # pixels of a letter, on average

    def __init__(self) -> None:
        self._surface: Any = None

    def __enter__(self) -> Self:
        pygame().display.init()
        pygame().display.set_caption("mergefall")
        pygame().event.set_blocked(None)
        pygame().event.set_allowed([pygame().QUIT, pygame().KEYDOWN])
        return self

    def __exit__(self, *error: object) -> None:
        pygame().display.quit()

    def show(self, pictures: Sequence[Any], lines: Sequence[str]) -> None:
        picture = pygame().surfarray.make_surface(side_by_side(pictures).swapaxes(0, 1))
        if self._surface is None:
            size = max(picture.get_width(), self.WIDTH), picture.get_height() + self.LINES * self.LINE + 8
            self._surface = pygame().display.set_mode(size)
        self._surface.fill(PAGE)
        self._surface.blit(picture, ((self._surface.get_width() - picture.get_width()) // 2, 0))
        font, width = pygame().font.Font(None, 20), int((self._surface.get_width() - 24) / self.LETTER)
        parts = [part for line in lines for part in wrap(line, width) or [""]]
        for number, part in enumerate(parts[: self.LINES]):
            top = picture.get_height() + 8 + number * self.LINE
            self._surface.blit(font.render(part, True, BOARD), (12, top))
        pygame().display.flip()

    def read(self, timeout: float | None = None) -> list[str]:
        names = {getattr(pygame(), f"K_{name.upper()}"): name for name in (*ARROWS, "space")}
        names[pygame().K_RETURN] = "space"
        event = pygame().event.wait(*[] if timeout is None else [max(1, round(1000 * timeout))])
        if event.type == pygame().KEYDOWN:
            return [names.get(event.key) or _name(event.unicode)]
        return ["q"] if event.type == pygame().QUIT else []


Screen = Terminal | Window
