"""Where a player plays: the environment, the caps of its games, and who draws against the player."""

import inspect
import json
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Self

import gymnasium as gym
from gymnasium.envs.registration import load_env_creator
from gymnasium.error import DependencyNotInstalled
from gymnasium.error import Error as GymnasiumError
from mergefall.checks import integer, known, near
from mergefall.games import ENVIRONMENTS, NO_RULES
from mergefall.imports import load
from mergefall.typing import Dict, Environment, Options
from mergefall_baselines import Player
from mergefall_baselines.registry import player_of

from mergefall_training.wrappers.adversary import adversary as with_adversary
from mergefall_training.wrappers.adversary import arguments


@dataclass(frozen=True, kw_only=True)
class Match:
    """Where a player plays; `read` makes it of a user's words, and files hold its fields as they are.

    - `env_id`, `env_kwargs`: the environment, as for ``gymnasium.make``; in a match that was read all arguments.
    - `max_episode_steps`: actions after which a game is cut off. Default: no cap.
    - `adversary`: `player` and `rate` of who draws against the player (`mergefall_training.wrappers.adversary`).
      Default: chance draws alone.
    - `max_pieces`: pieces of Tetris after which a game is cut off. Default: no cap.

    Raises ValueError for a cap below 1 and for another adversary.
    """

    env_id: str
    env_kwargs: Dict = field(default_factory=dict)
    max_episode_steps: int | None = None
    adversary: Dict | None = None
    max_pieces: int | None = None

    def __post_init__(self) -> None:
        for name in ("max_episode_steps", "max_pieces"):
            if getattr(self, name) is not None:
                integer(name, getattr(self, name), 1)
        if "max_episode_steps" in self.env_kwargs:
            raise ValueError("env_kwargs holds max_episode_steps; expected it beside them")
        if self.adversary is not None and self.adversary.keys() != {"player", "rate"}:
            raise ValueError(f"adversary is {self.adversary!r}; expected an object with player and rate, or null")

    @classmethod
    def read(
        cls,
        env_id: str,
        env_kwargs: Options | None = None,
        max_episode_steps: int | None = None,
        adversary: Options | None = None,
        max_pieces: int | None = None,
    ) -> Self:
        """The match of these arguments, with the defaults of the environment and of the adversary filled in.

        An adversary of rate 0 is none. Raises ValueError if there is no such environment, if it does not take the
        arguments, and for an adversary that cannot draw in it.
        """
        given = dict(env_kwargs or {})
        against = None if adversary is None else arguments(adversary)
        asked = cls(env_id=env_id, max_episode_steps=max_episode_steps, adversary=against, max_pieces=max_pieces)
        env = environment(env_id, given, max_episode_steps=asked.max_episode_steps)
        asked.around(env).close()  # raises what games would raise
        parameters = inspect.signature(type(env.unwrapped)).parameters.values()
        values = {p.name: p.default for p in parameters if p.default is not p.empty} | env.spec.kwargs | given
        return cls(
            # Players know ids without "mergefall:". The prefix of another package stays: workers must import it.
            env_id=env.spec.id if env.spec.namespace == "mergefall" else env_id,
            env_kwargs={name: value for name, value in values.items() if name != "render_mode"},
            max_episode_steps=env.spec.max_episode_steps,
            adversary=against if against and against["rate"] else None,
            max_pieces=max_pieces,
        )

    def said(self) -> Dict:
        """The fields of a match by name, for what else has them."""
        return {one.name: getattr(self, one.name) for one in fields(Match)}

    @property
    def game_kwargs(self) -> Dict:
        """The environment's arguments without those that leave the game as it is: shaping, and how it is shown."""
        return {name: value for name, value in self.env_kwargs.items() if name not in NO_RULES}

    @cached_property
    def _drawing(self) -> Player:
        # Made once: a network takes longer to read than a game to play.
        assert self.adversary is not None
        return player_of(self.adversary["player"])

    def around(self, env: Environment) -> Any:
        """A single or batched environment with the match's adversary and its cap in pieces."""
        if self.adversary is not None:
            env = with_adversary(env, self._drawing, self.adversary["rate"])
        if self.max_pieces is not None:
            figures = getattr(getattr(env.unwrapped, "rules", None), "figures", ())
            if "pieces" not in figures:
                raise ValueError(
                    f"max_pieces is {self.max_pieces}; expected none in {self.env_id}, which has no pieces"
                )
            env = _cut(env, self.max_pieces)
        return env

    def make(self, num_envs: int | None = None, **options: Any) -> Any:
        """The environment of the match, or a batch of `num_envs`, unshaped; `options`: such as `render_mode`."""
        options |= {"max_episode_steps": self.max_episode_steps}
        if num_envs is None:
            return self.around(environment(self.env_id, self.game_kwargs, **options))
        return self.around(gym.make_vec(self.env_id, num_envs=num_envs, **options, **self.game_kwargs))

    def capped(self, episode: Any) -> bool:
        """Whether a cap has ended an episode (`records.Episode`)."""
        steps = self.max_episode_steps is not None and episode.length >= self.max_episode_steps
        pieces = self.max_pieces is not None and episode.pieces >= self.max_pieces
        return not episode.terminated and (steps or pieces)


def _cut(env: Any, pieces: int) -> Any:
    """A single or batched environment whose games are truncated after so many pieces; who steps it sees to it."""
    step = env.step

    def cut(action: Any) -> Any:
        *seen, truncated, info = step(action)
        return *seen, truncated | (info["pieces"] >= pieces), info

    env.step = cut
    return env


def environment(env_id: str, kwargs: Options, **options: Any) -> Any:
    """``gym.make`` with Gymnasium's `options`; raises ValueError for bad `kwargs`, also for those of no JSON type."""
    for name, value in kwargs.items():
        try:
            json.dumps(value)
        except TypeError:
            expected = "JSON types, as records hold them; a player is a name or a mapping of `player` and options"
            raise ValueError(f"{name} is {value!r}; expected {expected}") from None
    try:
        if ":" in env_id:  # Gymnasium imports the module, but does not know where else to look
            load(env_id.partition(":")[0])
        return gym.make(env_id, **options, **kwargs)
    except DependencyNotInstalled:
        raise
    except (GymnasiumError, ImportError, TypeError) as error:
        entry: Any = gym.registry.get(env_id.removeprefix("mergefall:"))
        if entry is not None and entry.id in ENVIRONMENTS:
            known(env_id, kwargs, inspect.signature(load_env_creator(entry.entry_point)).parameters)
        meant = near(f"mergefall/{env_id.rpartition('/')[2]}", [one for one in ENVIRONMENTS if one != env_id])
        reason = meant.removeprefix("; ") or error
        raise ValueError(f"no environment {env_id!r} with kwargs {dict(kwargs)}: {reason}") from error
