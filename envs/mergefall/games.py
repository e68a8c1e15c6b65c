"""The table of the environments, and functions that handle observations of all of them.

What a game is stands in its `Rules` (`mergefall.rules.GameRules`), which `game_of` finds by an environment's id.
Observations are arrays (2048) or dicts of arrays (Tetris), single or batched.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import load_env_creator

from mergefall.checks import near
from mergefall.typing import Array, Bytes, Observation, Options

if TYPE_CHECKING:
    from mergefall.rules import GameRules


NO_RULES = ("shaping", "render_mode")  # arguments of every environment besides those of its rules


class Environment(NamedTuple):
    """A line of the table: the package of the game, which has `rules.py`, `env.py` and `vector_env.py`.

    - `kind`: the environments are its classes `{kind}Env` and `{kind}VectorEnv`.
    - `players`: the first part of the names of players that play here by default; empty for none.
    """

    package: str
    kind: str
    players: str = ""
    kwargs: Options = MappingProxyType({})


ENVIRONMENTS = {
    "mergefall/Game2048-v0": Environment("mergefall.game2048", "Game2048", "2048"),
    "mergefall/Tetris-v0": Environment("mergefall.tetris", "Tetris", "tetris"),
    "mergefall/SZTetris-v0": Environment("mergefall.tetris", "Tetris", kwargs={"pieces": "sz"}),
    "mergefall/Quintris-v0": Environment(
        "mergefall.tetris", "Tetris", "quintris", {"cols": 15, "rows": 25, "pieces": "five", "randomizer": "hidden"}
    ),
    "mergefall/TetrisKeys-v0": Environment("mergefall.tetris.keys", "TetrisKeys", "keys"),
    "mergefall/TetrisVersus-v0": Environment("mergefall.tetris.versus", "TetrisVersus", "versus"),
}


def register_all() -> None:
    """Register the ids with Gymnasium that are not registered yet."""
    for env_id, (package, kind, _, kwargs) in ENVIRONMENTS.items():
        if env_id not in gym.registry:
            entry = f"{package}.env:{kind}Env", f"{package}.vector_env:{kind}VectorEnv"
            # Gymnasium's two wrappers would take a tenth of a step; `GameEnv` tells itself what they check.
            gym.register(
                env_id,
                entry[0],
                order_enforce=False,
                disable_env_checker=True,
                kwargs=dict(kwargs),
                vector_entry_point=entry[1],
            )


def game_of(env_id: str) -> type["GameRules"]:
    """The game of an environment's id, its class `Rules`; raises ValueError for an id that is not mergefall's.

    >>> game_of("mergefall/SZTetris-v0").headline
    'lines'
    """
    found = ENVIRONMENTS.get(str(env_id).removeprefix("mergefall:"))
    if found is None:
        meant = near(f"mergefall/{str(env_id).rpartition('/')[2]}", ENVIRONMENTS)
        raise ValueError(f"env_id is {env_id!r}; expected one of {', '.join(ENVIRONMENTS)}{meant}")
    return import_module(f"{found.package}.rules").Rules  # late: `import mergefall` loads no game


def rules_in(env_id: str, env_kwargs: Options, game: type["GameRules"]) -> Any:
    """The rules of the environment that ``gymnasium.make(env_id, **env_kwargs)`` makes.

    Raises ValueError if its game is not `game`.

    >>> rules_in("mergefall/SZTetris-v0", {"rows": 10}, game_of("mergefall/Tetris-v0")).pieces
    'sz'
    """
    spec: Any = gym.spec(env_id.rpartition(":")[2])
    kind = getattr(load_env_creator(spec.entry_point), "rules_type", None)
    kwargs = {name: value for name, value in {**spec.kwargs, **env_kwargs}.items() if name not in NO_RULES}
    if kind is None or not issubclass(kind, game):
        theirs, keyed = [one for one in ENVIRONMENTS if game_of(one) is game], getattr(kind, "by_keys", False)
        by_keys = "; 'tetris/keys' with the option of=NAME plays it by keys" if keyed and game.name == "tetris" else ""
        raise ValueError(f"env_id is {env_id!r}; expected the game of {', '.join(theirs)}{by_keys}")
    return kind(**kwargs)


@cache
def games() -> dict[str, type["GameRules"]]:
    """All games by name.

    >>> games()["2048"].headline
    'score'
    """
    return {game.name: game for game in map(game_of, ENVIRONMENTS)}


def home_of(player: str) -> str | None:
    """The environment that a player plays by default, from the first part of its name; None if no game has that part.

    >>> home_of("quintris/expectimax")
    'mergefall/Quintris-v0'
    """
    first = player.partition("/")[0]
    return next((env_id for env_id, one in ENVIRONMENTS.items() if first and one.players == first), None)


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


def board_of(observation: Observation) -> Bytes:
    return observation["board"] if isinstance(observation, Mapping) else observation
