"""`Game`: the one place that knows how 2048 and Tetris differ, for code that handles both.

It names a game's environments, the arguments that make its rules, the figures of an episode, and its heuristics. The
functions below handle observations of both games: an array (2048) or a dict of arrays (Tetris), single or batched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from mergefall.typing import Array, Observation, Options


@dataclass(frozen=True)
class Game:
    """One game.

    - `name`: the first part of its players' names, as in `2048/expectimax`.
    - `homes`: first part of a player's name -> id of the environment that such players play by default.
    - `rules`: the environment's arguments that make the game. The others change rewards, limits or pictures.
    - `shown`: the rules that the shape of an observation shows.
    - `spaces`: the rules that the observation space or the action space depends on.
    - `size`: the two rules that size the board, in the order in which the game's literature writes them.
    - `figures`: the integers in an episode's last `info` that measure it.
    - `headline`: the figure that players are compared by.
    - `turn`: the word for one move.
    - `turns`: the field of an episode that counts moves (`length` counts actions).
    - `memoryless`: whether every move is equally likely to end the game, so that the headline is distributed
      exponentially. Then `exponential_mean` estimates the mean from games that a cap ended.
    - `by_keys`: whether an action is a key, of which a turn takes several. Each takes a 60th of a second.
    - `matches`: whether the headline is 1 for a match won, 0 for a draw, -1 for one lost.
    - `package`: its package, with `env.py`, `vector_env.py` and `heuristics`.
    - `environment`: the class of its single environments; that of batches is named alike, as `TetrisVectorEnv`.
    - `environments`: id -> the arguments that are set for it.
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
    by_keys: bool = False
    matches: bool = False
    package: str = ""
    environment: str = ""
    environments: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def library(self) -> Any:
        """Its `mergefall.library.Library` of heuristics, which finds and registers them."""
        return import_module(self.package).heuristics.LIBRARY  # late: `import mergefall` loads no game

    def rules_of(self, env_kwargs: Options) -> dict[str, Any]:
        """Those of an environment's arguments that are rules.

        >>> GAMES["2048"].rules_of({"rows": 3, "reward": "log2"})
        {'rows': 3}
        """
        return {name: env_kwargs[name] for name in self.rules if name in env_kwargs}

    @property
    def action(self) -> str:
        """The word for one action."""
        return "key" if self.by_keys else self.turn


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
        package="mergefall.game2048",
        environment="Game2048Env",
        environments={"mergefall/Game2048-v0": {}},
    ),
    "tetris": Game(
        name="tetris",
        homes={"tetris": "mergefall/Tetris-v0", "quintris": "mergefall/Quintris-v0"},
        rules=("cols", "rows", "pieces", "randomizer", "preview", "placements", "hold", "overflow"),
        shown=("cols", "rows", "preview", "hold"),
        spaces=("cols", "rows", "pieces", "preview", "placements", "hold"),
        size=("cols", "rows"),
        figures=("score", "lines", "pieces"),
        headline="lines",
        turn="piece",
        turns="pieces",
        memoryless=True,
        package="mergefall.tetris",
        environment="TetrisEnv",
        environments={
            "mergefall/Tetris-v0": {},
            "mergefall/SZTetris-v0": {"pieces": "sz"},
            "mergefall/Quintris-v0": {"cols": 15, "rows": 25, "pieces": "five", "randomizer": "hidden"},
        },
    ),
    "keys": Game(
        name="keys",
        homes={"keys": "mergefall/TetrisKeys-v0"},
        rules=(
            "cols",
            "rows",
            "pieces",
            "randomizer",
            "preview",
            "hold",
            "gravity",
            "lock_delay",
            "lock_resets",
            "rotate_180",
            "levels",
            "garbage",
        ),
        shown=("cols", "rows", "preview", "hold"),
        spaces=("cols", "rows", "pieces", "preview", "hold", "rotate_180"),
        size=("cols", "rows"),
        figures=("score", "lines", "pieces", "attack"),
        headline="lines",
        turn="piece",
        turns="pieces",
        memoryless=False,
        by_keys=True,
        package="mergefall.tetris.keys",
        environment="TetrisKeysEnv",
        environments={"mergefall/TetrisKeys-v0": {}},
    ),
}
GAMES["versus"] = replace(
    GAMES["keys"],
    name="versus",
    homes={"versus": "mergefall/TetrisVersus-v0"},
    rules=(*GAMES["keys"].rules, "opponent"),
    figures=(*GAMES["keys"].figures, "won"),
    headline="won",
    matches=True,
    package="mergefall.tetris.versus",
    environment="TetrisVersusEnv",
    environments={"mergefall/TetrisVersus-v0": {}},
)


ENVIRONMENTS = {env_id: game for game in GAMES.values() for env_id in game.environments}


def register_all() -> None:
    """Register the ids with Gymnasium that are not registered yet."""
    for env_id, game in ENVIRONMENTS.items():
        if env_id not in gym.registry:
            batched = game.environment.removesuffix("Env") + "VectorEnv"
            gym.register(
                id=env_id,
                entry_point=f"{game.package}.env:{game.environment}",
                vector_entry_point=f"{game.package}.vector_env:{batched}",
                kwargs=dict(game.environments[env_id]),
            )


def game_of(env_id: str) -> Game:
    """The game of an environment's id; raises ValueError for an id that is not mergefall's.

    >>> game_of("mergefall/SZTetris-v0").headline
    'lines'
    """
    game = ENVIRONMENTS.get(str(env_id).removeprefix("mergefall:"))
    if game is None:
        raise ValueError(f"env_id is {env_id!r}; expected one of {', '.join(ENVIRONMENTS)}")
    return game


def home_of(player: str) -> str | None:
    """The environment that a player plays by default, from the first part of its name; None if no game has that part.

    >>> home_of("quintris/expectimax")
    'mergefall/Quintris-v0'
    """
    homes = {part: env_id for game in GAMES.values() for part, env_id in game.homes.items()}
    return homes.get(player.partition("/")[0])


# -- observations, single and batched ---------------------------------------------------------------------------------


def map_parts(function: Callable[..., Any], *observations: Observation) -> Any:
    """Apply a function to observations part by part; it receives the same part of each.

    >>> map_parts(np.add, {"piece": 1, "queue": 2}, {"piece": 10, "queue": 20})
    {'piece': np.int64(11), 'queue': np.int64(22)}
    """
    if isinstance(observations[0], Mapping):
        return {name: function(*(one[name] for one in observations)) for name in observations[0]}
    return function(*observations)


def stack(observations: Sequence[Any]) -> Any:
    return map_parts(lambda *parts: np.stack(parts), *observations)


def concatenate(batches: Sequence[Any]) -> Any:
    return map_parts(lambda *parts: np.concatenate(parts), *batches)


def take(batch: Any, index: int | slice | Array | Iterable[int]) -> Any:
    """The observations of a batch at a slice, indices or a mask; a single observation for an integer."""
    return map_parts(lambda part: part[index], batch)


def each(batch: Any) -> Iterator[Any]:
    """The single observations of a batch, in order; faster than `take` for one after the other."""
    if isinstance(batch, Mapping):
        for parts in zip(*batch.values(), strict=True):
            yield dict(zip(batch, parts, strict=True))
    else:
        yield from batch


def batch_of_one(observation: Observation) -> Any:
    return map_parts(lambda part: np.asarray(part)[None], observation)


def board_of(observation: Observation) -> NDArray[np.uint8]:
    return observation["board"] if isinstance(observation, Mapping) else observation
