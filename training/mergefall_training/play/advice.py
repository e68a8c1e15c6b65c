"""Advice: what a player thinks of each action of a position that is written as text."""

from dataclasses import asdict, dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from mergefall import game2048, tetris
from mergefall.games import game_of
from mergefall.text import action_names, start_of
from mergefall.typing import Array, Observation, Options
from mergefall_baselines import Player


@dataclass(frozen=True)
class Choice:
    """A legal action: its number, its name, and its value to the player."""

    action: int
    name: str
    value: float


def choices_of(player: Player, observation: Observation, mask: Array, rules: Any) -> list[Choice]:
    """The legal actions of an observation, the best first; `mask`: the environment's action mask for it.

    Raises ValueError for a player that only chooses actions.
    """
    values, names = player.values(observation), action_names(rules)
    choices = (Choice(action, names[action], float(values[action])) for action in np.flatnonzero(mask).tolist())
    return sorted(choices, key=lambda choice: -choice.value)


class Adviser:
    """A player that is asked about single positions.

    A position of 2048 is a board such as `2 . . 4/. . . ./. 8 . ./. . . .`. One of Tetris, also by keys, is a field,
    the current piece and the next ones, such as `...../...../##.#./#.### T S`. The top row is first. Size and, in
    Tetris, the number of previewed pieces, are the position's own.

    Args:
        player: with `values`.
        env_id, env_kwargs: the environment, whose other arguments are the rules.

    Example:
        >>> from mergefall_baselines import make
        >>> adviser = Adviser(make("2048/greedy"), "mergefall/Game2048-v0")
        >>> [(choice.name, choice.value) for choice in adviser.choices("2 2 ./. . 8/. . .")]
        [('right', 4.0), ('left', 4.0), ('up', 0.0), ('down', 0.0)]
    """

    def __init__(self, player: Player, env_id: str, env_kwargs: Options | None = None) -> None:
        self._player, self._env_id, self._kwargs = player, env_id, dict(env_kwargs or {})
        self._game = game_of(env_id)
        self._made: dict[tuple[int, ...], tuple[Any, Player]] = {}

    def choices(self, position: str) -> list[Choice]:
        """The legal actions of a position, the best first; none if the game is over. A fatal one is worth −∞.

        Raises ValueError for text that is no position.
        """
        start = start_of(position, self._game)
        if "piece" in start:
            rows, cols = tetris.from_text(start["board"]).shape
            sizes = {"rows": rows, "cols": cols, "preview": len(start["queue"]), "hold": "hold" in start}
        elif any(game2048.legal_actions(position)):
            sizes = dict(zip(("rows", "cols"), game2048.from_text(position).shape, strict=True))
        else:
            return []
        size = tuple(sizes.values())
        if size not in self._made:
            env: Any = gym.make(self._env_id, **(self._kwargs | sizes))
            self._made[size] = env, self._player.with_rules(self._game.rules_of(asdict(env.unwrapped.rules)))
        env, player = self._made[size]
        observation, info = env.reset(seed=0, options=start)
        return choices_of(player, observation, info["action_mask"], env.unwrapped.rules)
