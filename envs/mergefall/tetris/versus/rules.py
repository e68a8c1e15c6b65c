"""The arguments that make a match of Tetris by keys (`Rules`)."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal

import numpy as np

from mergefall.rules import argument
from mergefall.tetris.game import OVER
from mergefall.tetris.keys import rules as sides
from mergefall.tetris.seen import WON
from mergefall.typing import Bools, Words


@dataclass(frozen=True)
class Rules(sides.Rules):
    """The arguments that make a match and its rewards; `TetrisVersusEnv` describes them."""

    reward: Literal["lines", "score", "attack", "win"] = argument("win", "training")  # pyright: ignore
    opponent: Any = argument("tetris/keys", "game", hash=False, compare=False)

    name, figures, headline, matches = "versus", (*sides.Rules.figures, "won"), "won", True
    own_figures: ClassVar = sides.Rules.own_figures | {"won": WON}

    @property
    def side(self) -> sides.Rules:
        """The rules of one side."""
        own = {one.name: getattr(self, one.name) for one in fields(sides.Rules) if one.name != "reward"}
        return sides.Rules(**own)

    def _blank_states(self, count: int) -> Words:
        return np.concatenate([super()._blank_states(count)] * 2, axis=1)

    def _faults(self, states: Words) -> Iterator[tuple[str, Any, Bools, str]]:
        half = states.shape[1] // 2
        yield from super()._faults(states[:, :half])
        yield from super()._faults(states[:, half:])

    def shaped(self, states: Words) -> Words:
        own = states[:, : states.shape[1] // 2].copy()
        own[:, OVER] |= self.observed(states)[1]
        return own

    def turned(self, states: Words) -> Words:
        """The matches as the opponents see them."""
        return np.roll(states, states.shape[1] // 2, axis=1)
