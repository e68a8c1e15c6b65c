"""What a game is, once: its environments, the arguments that make its rules, the figures of an episode, its heuristics.

Whoever needs to know how 2048 and Tetris differ asks a `Game`. The functions below handle what both have in common: an
observation is an array (2048) or a dict of arrays (Tetris), and so is a batch of observations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mergefall.registration import ENVIRONMENTS

PLAIN = ("reward", "shaping", "illegal_limit", "render_mode")  # arguments of every environment that are no rules


@dataclass(frozen=True)
class Game:
    """One game.

    - `name`: first part of its players' names (`2048/expectimax`) and of its folders.
    - `homes`: first part of a player's name -> the environment that such a player plays by default.
    - `rules`: the environment's arguments that make the game; two games with equal rules are the same game.
    - `shown`: the rules that an observation shows by its shape.
    - `spaces`: the rules that the observation or the action space depends on.
    - `size`: the two rules that size the board, in the order in which the game's literature writes them.
    - `figures`: the integers in an episode's last `info` that say how it went.
    - `headline`: the figure that a player is judged by.
    - `turn`, `turns`: what a move is called, and the figure that counts them (`length` counts actions).
    - `memoryless`: whether the headline grows until an accident ends the game, each move as likely as any other; then
      the mean of games that a cap ended can be estimated (`exponential_mean`).
    - `start`: the options of `reset` that an observation answers to, by the observation's parts.
    """

    name: str
    homes: Mapping[str, str]
    rules: tuple[str, ...]
    shown: tuple[str, ...]
    spaces: tuple[str, ...]
    size: tuple[str, str]
    figures: tuple[str, ...]
    headline: str
    turn: str
    turns: str
    memoryless: bool
    start: tuple[str, ...]

    @property
    def env_ids(self) -> list[str]:
        """The ids of its environments."""
        return [env_id for env_id, entry in ENVIRONMENTS.items() if entry.game == self.name]

    @property
    def heuristics(self) -> Mapping[str, Any]:
        """Its heuristics by name, such as `mergefall.tetris.HEURISTICS`."""
        return self._package.HEURISTICS

    def rules_of(self, env_kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The rules among an environment's arguments.

        >>> GAMES["2048"].rules_of({"rows": 3, "reward": "log2"})
        {'rows': 3}
        """
        return {name: env_kwargs[name] for name in self.rules if name in env_kwargs}

    def start_of(self, observation: Any) -> dict[str, Any]:
        """The options of `reset` that begin an episode at an observation."""
        return dict(observation) if isinstance(observation, Mapping) else {self.start[0]: observation}

    @property
    def _package(self) -> Any:
        # Imported when asked for: `import mergefall` loads no game.
        return import_module(ENVIRONMENTS[self.env_ids[0]].single.rpartition(".")[0])


GAMES = {
    "2048": Game(
        name="2048",
        homes={"2048": "mergefall/Game2048-v0"},
        rules=("rows", "cols", "goal"),
        shown=("rows", "cols"),
        spaces=("rows", "cols"),
        size=("rows", "cols"),
        figures=("score", "max_tile"),
        headline="score",
        turn="move",
        turns="length",
        memoryless=False,
        start=("board",),
    ),
    "tetris": Game(
        name="tetris",
        homes={"tetris": "mergefall/Tetris-v0", "quintris": "mergefall/Quintris-v0"},
        rules=("cols", "rows", "pieces", "randomizer", "preview", "placements", "overflow"),
        shown=("cols", "rows", "preview"),
        spaces=("cols", "rows", "pieces", "preview", "placements"),
        size=("cols", "rows"),
        figures=("score", "lines", "pieces"),
        headline="lines",
        turn="piece",
        turns="pieces",
        memoryless=True,
        start=("board", "piece", "next"),
    ),
}


def game_of(env_id: str) -> Game:
    """The game that an environment's id belongs to; raises ValueError for an id that is none of mergefall's.

    >>> game_of("mergefall/SZTetris-v0").headline
    'lines'
    """
    entry = ENVIRONMENTS.get(env_id.removeprefix("mergefall:"))
    if entry is None:
        raise ValueError(f"env_id is {env_id!r}; expected one of {', '.join(ENVIRONMENTS)}")
    return GAMES[entry.game]


def home_of(player: str) -> str | None:
    """The environment that a player plays by default, from the first part of its name; None if there is no such game.

    >>> home_of("quintris/expectimax")
    'mergefall/Quintris-v0'
    """
    homes = {part: env_id for game in GAMES.values() for part, env_id in game.homes.items()}
    return homes.get(player.partition("/")[0])


# -- observations, single and batched ---------------------------------------------------------------------------------


def map_parts(function: Callable[..., Any], *observations: Any) -> Any:
    """Apply a function to the arrays of observations, part by part.

    >>> map_parts(np.add, {"piece": 1, "next": 2}, {"piece": 10, "next": 20})
    {'piece': np.int64(11), 'next': np.int64(22)}
    """
    if isinstance(observations[0], Mapping):
        return {name: function(*(one[name] for one in observations)) for name in observations[0]}
    return function(*observations)


def stack(observations: Sequence[Any]) -> Any:
    """Single observations as one batch."""
    return map_parts(lambda *parts: np.stack(parts), *observations)


def concatenate(batches: Sequence[Any]) -> Any:
    """Batches of observations as one batch."""
    return map_parts(lambda *parts: np.concatenate(parts), *batches)


def take(batch: Any, index: int | slice | NDArray[Any] | Iterable[int]) -> Any:
    """Some observations of a batch, by index, slice or mask; a single one for an integer."""
    return map_parts(lambda part: part[index], batch)


def batch_of_one(observation: Any) -> Any:
    """A single observation as a batch."""
    return map_parts(lambda part: np.asarray(part)[None], observation)
