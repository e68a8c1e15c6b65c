"""Play a game by hand, in the terminal or in a window, with undo and a searcher's advice.

A game is its seed and its actions. So taking a move back plays the game again without its last action, and a finished
game can be kept as a record, which `mergefall verify` proves and `mergefall report` shows.
"""

from __future__ import annotations

import math
import secrets
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from mergefall import __version__
from mergefall.draw import short_number
from mergefall.games import Game, game_of
from mergefall.tetris.placements import ROTATIONS, SLIDES
from mergefall.text import action_names
from mergefall.typing import Options
from mergefall_baselines import Player, make
from numpy.typing import NDArray

from mergefall_training.play.advice import choices_of
from mergefall_training.play.evaluation import SEEDS
from mergefall_training.play.records import Episode, Header, RecordFile, played
from mergefall_training.play.screens import Screen, Terminal, Window
from mergefall_training.play.steps import steps
from mergefall_training.play.watching import figures_of
from mergefall_training.play.workers import all_kwargs, environment

BY_HAND = "by hand"  # the player's name in records
ADVISERS: dict[str, tuple[str, dict[str, Any]]] = {  # by the environment's id, else by the game's name
    "2048": ("2048/expectimax", {"heuristic": "nneonneo", "depth": 3}),
    "tetris": ("tetris/two-tetrad", {"heuristic": "bcts"}),
    "mergefall/Quintris-v0": ("quintris/expectimax", {}),
}
SAME_AS_ARROWS = {"w": "up", "d": "right", "s": "down", "a": "left"}
HELP = "H asks for a hint, U takes a move back, R restarts, Q quits"


class Cursor:
    """Tetris: keys move and turn the current piece, which the picture outlines where it would come to rest."""

    def __init__(self, env: Any) -> None:
        self._env, self.action = env, 0
        self.help = "left and right move the piece, up turns it, down or space drops it"
        self._slides = SLIDES if env.rules.placements == "slide" else 1
        if self._slides > 1:
            self.help += ", E slides it"

    def start(self, over: bool) -> None:
        """Aim at the middle of the field; `over`: at nothing, because the game is over."""
        if over:
            self._env.aim(None)
            return
        shape = self._slides, ROTATIONS, self._env.rules.cols
        self._legal: NDArray[np.bool_] = self._env.action_masks().reshape(shape)
        rotation = int(self._legal[0].any(axis=1).argmax())  # a narrow field may be too narrow for the first
        self._aim(0, rotation, (int(self._legal[0, rotation].sum()) - 1) // 2)

    def press(self, key: str) -> int | None:
        """The action that a key chooses; None if it only moves the piece, or is none of these keys."""
        cols = self._env.rules.cols
        slide, rotation, column = self.action // (ROTATIONS * cols), self.action // cols % ROTATIONS, self.action % cols
        if key in ("down", "space"):
            return self.action
        if key in ("left", "right"):
            wanted = column + (1 if key == "right" else -1)
            if 0 <= wanted < cols and self._legal[0, rotation, wanted]:
                self._aim(0, rotation, wanted)
        elif key == "up":
            turned = [(rotation + turn) % ROTATIONS for turn in range(1, ROTATIONS + 1)]
            self._aim(0, next(turn for turn in turned if self._legal[0, turn].any()), column)
        elif key == "e":
            others = [(slide + step) % self._slides for step in range(1, self._slides + 1)]
            self._aim(next(other for other in others if self._legal[other, rotation, column]), rotation, column)
        return None

    def point(self, action: int) -> None:
        """Aim at an action."""
        self.action = action
        self._env.aim(action)

    def _aim(self, slide: int, rotation: int, column: int) -> None:
        """Aim at a slide and rotation, as near to a column as the piece fits."""
        columns = np.flatnonzero(self._legal[slide, rotation])
        nearest = int(columns[np.abs(columns - column).argmin()])
        self.point((slide * ROTATIONS + rotation) * self._env.rules.cols + nearest)


class Session:
    """A game in play: the environment, its seed and the actions so far. The arguments are those of `play`."""

    def __init__(
        self,
        env_id: str,
        kwargs: Options,
        seed: int | None,
        render_mode: str,
        adviser: str | None = None,
        options: Options | None = None,
    ) -> None:
        self.game: Game = game_of(env_id)
        wrapped: Any = environment(env_id, kwargs, render_mode=render_mode)
        self.env_id, self.kwargs = wrapped.spec.id, all_kwargs(wrapped, kwargs)
        self.env: Any = wrapped.unwrapped
        name, usual = ADVISERS.get(self.env_id, ADVISERS[self.game.name])
        chosen = make(name, **usual) if adviser is None else make(adviser, **dict(options or {}))
        self._adviser: Player = chosen.with_rules(self.game.rules_of(self.kwargs))
        self.cursor = Cursor(self.env) if self.game.name == "tetris" else None
        self.begin(secrets.randbelow(SEEDS) if seed is None else seed)

    def begin(self, seed: int) -> None:
        """Begin the game from a seed."""
        self.seed, self._began = seed, perf_counter()
        self._replay([])

    def _replay(self, actions: Sequence[int]) -> None:
        self.actions: list[int] = []
        self._game = steps(self.env, self.seed, lambda step: self.actions[-1])
        for action in (None, *actions):
            self._play(action)

    def _play(self, action: int | None) -> None:
        """Play an action; None: show the first position."""
        if action is not None:
            self.actions.append(action)
        self.step, self.hint = next(self._game), ""
        if self.cursor:
            self.cursor.start(self.step.terminated)

    def press(self, key: str) -> bool:
        """Do what a key says; False if it ends the session."""
        key = SAME_AS_ARROWS.get(key, key)
        if key == "u" and self.actions:
            self._replay(self.actions[:-1])
        elif key == "r":
            self.begin(self.seed)
        elif self.step.terminated:
            return key != "q"
        elif key == "h":
            mask = self.step.info["action_mask"]
            best, *others = choices_of(self._adviser, self.step.observation, mask, self.env.rules)
            if self.cursor:
                self.cursor.point(best.action)
            self.hint = "; ".join([best.name, *(f"{one.name} is {_less(best.value, one.value)}" for one in others[:2])])
        else:
            moves = action_names(self.env.rules)
            action = self.cursor.press(key) if self.cursor else moves.index(key) if key in moves else None
            if action is not None and self.step.info["action_mask"][action]:
                self._play(action)
        return key != "q"

    def lines(self) -> list[str]:
        """What is written below the picture: figures, a hint, and the keys."""
        figures = f"{figures_of(self.step.info)}, moves {len(self.actions)}, seed {self.seed}"
        advice = f"{self._adviser.name} prefers {self.hint}" if self.hint else ""
        keys = self.cursor.help if self.cursor else "arrows or W A S D slide the tiles"
        return [figures + ("; game over" if self.step.terminated else ""), advice, keys, HELP]

    def record(self) -> Episode:
        """The finished game as the record of an episode."""
        figures = {name: self.step.info[name] for name in self.game.figures}
        actions, seconds = np.array(self.actions, np.uint16), perf_counter() - self._began
        return played(self.seed, actions, len(actions), True, seconds, figures)


def _less(best: float, value: float) -> str:
    """How much less an action is worth than the best one; −∞ is fatal."""
    return "as good" if value == best else "fatal" if math.isinf(value) else f"{short_number(best - value)} less"


def play(
    env_id: str,
    kwargs: Options,
    seed: int | None,
    *,
    window: bool = False,
    adviser: str | None = None,
    options: Options | None = None,
    out: Path | None = None,
) -> None:
    """Play by hand until Q; the arguments are those of `mergefall play`.

    With `out`, Q, R and Ctrl-C after a game's end keep the game, and R then begins one from another seed.

    Raises ValueError if the file `out` holds other games, or the game of this seed already.
    """
    session = Session(env_id, kwargs, seed, "rgb_array" if window else "ansi", adviser, options)
    if not window and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise ValueError("playing in the terminal needs a keyboard and a screen, but standard input or output is none")
    with ExitStack() as opened:
        header = Header(BY_HAND, {}, session.env_id, session.kwargs, None, __version__)
        file = opened.enter_context(RecordFile(out, header)) if out else None
        if file is not None and session.seed in file.episodes:
            raise ValueError(f"{out} holds the game from seed {session.seed} already; choose another seed")
        screen: Screen = opened.enter_context(Window() if window else Terminal())
        going = True
        try:
            while going:
                screen.show([session.env.render()], session.lines())
                for key in screen.read():
                    if file is not None and session.step.terminated and key == "r":
                        file.append(session.record())
                        while (seed := secrets.randbelow(SEEDS)) in file.episodes:
                            pass
                        session.begin(seed)
                    elif not session.press(key):
                        going = False
                        break
        finally:  # Ctrl-C ends the session, too
            if file is not None and session.step.terminated:
                file.append(session.record())
    if file is not None:
        print(f"{out} holds {len(file.episodes)} finished games")
