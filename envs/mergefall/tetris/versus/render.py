"""Matches as pictures: the own side on the left, the opponent on the right."""

from typing import Any

from mergefall.draw import pygame
from mergefall.tetris.game import OPPONENTS_KEY
from mergefall.tetris.keys.match import sides
from mergefall.tetris.keys.render import Canvas as SideCanvas
from mergefall.typing import Words


class Canvas:
    """Draws one match, and remembers the colours of the cells of both sides."""

    def __init__(self, rules: Any) -> None:
        self._sides = SideCanvas(rules), SideCanvas(rules)

    def paint(self, state: Words, action: int | None) -> None:
        own, other = sides(state)
        for canvas, side, key in zip(self._sides, (own, other), (action, int(other[OPPONENTS_KEY])), strict=True):
            canvas.paint(side, None if action is None else key)

    def picture(self, state: Words, as_text: bool) -> Any:
        left, right = (canvas.picture(side, as_text) for canvas, side in zip(self._sides, sides(state), strict=True))
        if as_text:
            return f"{left}\nopponent\n{right}"
        both = pygame().Surface((left.get_width() + right.get_width(), left.get_height()))
        both.blit(left, (0, 0))
        both.blit(right, (left.get_width(), 0))
        return both
