"""Games of Tetris by keys as pictures: the falling piece, where it would land, hold, and garbage to come."""

from typing import Any

import numpy as np

from mergefall.tetris import render
from mergefall.tetris.field import fall
from mergefall.tetris.game import ATTACK, BACK_TO_BACK, COLUMNS, COMBO, HOLD, LINES, OVER, PENDING, SCORE, queued
from mergefall.tetris.keys import game
from mergefall.tetris.keys.game import CLEARS, STORAGE, place_of
from mergefall.tetris.srs import SHAPES
from mergefall.typing import Words

ABOVE = 2  # rows above the field that are shown: those in which pieces appear


class Canvas(render.Canvas):
    """Draws one game, and remembers the colours of its cells, and what the last lock cleared, from the keys played."""

    def paint(self, state: Words, action: int | None) -> None:
        """Colour the cells that lock when a key is about to be played in `state`; None: `state` is a new one."""
        if action is None:
            return self._forget()
        after = state.copy()
        if state[OVER] or not game.act(after, action)[1]:
            return None
        piece, *place = _place(after)
        self._lock(after, piece, self._cells(piece, *place))
        locked = game.lock(after)
        self._clear = CLEARS[locked.clear]
        if not locked.lines:
            rises = int(state[PENDING])
            self._fills = np.concatenate([self._fills[rises:], np.zeros_like(self._fills[:rises])])

    def scene(self, state: Words) -> render.Scene:
        """The scene of a state; cells without a known colour are grey."""
        rules, top = self._rules, STORAGE - ABOVE
        piece, shape, column, y = _place(state)
        cells, over = self._coloured(state), state[OVER] > 0
        own, lands = self._cells(piece, shape, column, y), fall(state[COLUMNS:], piece, shape, column, y)
        cells[own] = colour = 2 + piece
        aimed = self._cells(piece, shape, column, lands) & (cells == 0) & (not over)
        following, held = self._pieces(state)[1:], int(state[HOLD])
        figures = {"lines": int(state[LINES]), "score": int(state[SCORE]), "attack": int(state[ATTACK])}
        combo = int(state[COMBO]) - 1
        return render.Scene(
            cells=cells[top:],
            aimed=np.where(aimed, np.uint8(colour), np.uint8(0))[top:],
            above=ABOVE,
            panel=[*[("hold", [held - 1] if held else [])] * rules.hold, *[("next", following)] * bool(following)],
            figures=[*figures.items(), *[("level", int(game.level_of(state)))] * rules.levels],
            notes=[
                self._clear,
                f"combo {combo}" if combo > 0 else "",
                "back-to-back" if state[BACK_TO_BACK] else "",
                "game over" if over else "",
            ],
            garbage=int(state[PENDING]) if rules.garbage or rules.matches else None,
        )

    def _forget(self) -> None:
        super()._forget()
        self._clear = ""


def _place(state: Words) -> tuple[Any, Any, Any, Any]:
    """The falling piece: (piece, shape, column, y)."""
    piece, (rotation, column, y) = queued(state, 0), place_of(state)
    return piece, SHAPES[piece, rotation], column, y
