"""What a player is: the protocol that search players, tables and trained agents share.

A player is a policy over observations. ``predict`` is Stable-Baselines3's predictor protocol, so `evaluate_policy`
takes any player; ``play`` plays one whole episode, in the gym loop here and in a compiled loop where a player has one.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import gymnasium as gym
import mergefall  # noqa: F401  (registers the environments)
import numpy as np
from mergefall.kernels import kernel
from numpy.typing import NDArray


class NotFiniteError(ValueError):
    """NaN or infinity among the values of actions, or in the arrays of a file."""


@kernel
def has_nonsense(values):
    """Whether one of the values is NaN or +inf; -inf stands for illegal actions and lost games."""
    found = False
    for value in values:
        found |= not value < np.inf
    return found


def check_values(name: str, values: NDArray[np.float64]) -> None:
    """Raises NotFiniteError if the player `name` values an action at NaN or +inf; `values` is float64[..., actions]."""
    nonsense = ~(values < np.inf)
    if nonsense.any():
        action, value = np.argwhere(nonsense)[0, -1], values[nonsense][0]
        raise NotFiniteError(f"{name} values action {action} at {value}; expected a finite number, or -inf")


class Predictor(Protocol):
    """Anything with Stable-Baselines3's ``predict``: our players and SB3's models alike."""

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> tuple[Any, Any]:
        """(action, state); see `Player.predict`."""
        ...


@dataclass(frozen=True)
class Trajectory:
    """One finished episode: enough to replay it from its seed.

    ``actions`` is uint8[length] (uint16 where the action space is larger), ``figures`` holds the game's true figures
    at the end, as in the environment's ``info`` (2048: ``score``, ``max_tile``; Tetris: ``score``, ``lines``,
    ``pieces``), ``terminated`` is False where a cap ended the episode. Where a game is longer than a player keeps
    actions of (Tetris: `mergefall_baselines.tetris.player.KEPT`), ``actions`` are the first and ``length`` counts all.
    """

    seed: int
    actions: NDArray[Any]
    terminated: bool
    figures: dict[str, int] = field(hash=False)
    length: int | None = None

    def __len__(self) -> int:
        return len(self.actions) if self.length is None else self.length


UNCHANGED = ("shaping", "render_mode")  # arguments of environments that leave the game as it is


def json_of(env_kwargs: Mapping[str, Any] | None) -> str:
    """An environment's arguments as JSON, without those in `UNCHANGED`: what is known of a game is kept under it.

    NumPy's numbers are taken as Python's; a ValueError names what is no JSON type.

    >>> json_of({"cols": np.int64(6), "render_mode": "ansi"})
    '{"cols": 6}'
    """

    def plain(value: Any) -> Any:
        if isinstance(value, np.generic):
            return value.item()
        raise ValueError(f"an argument of the environment is {value!r}; expected JSON types")

    kwargs = {name: value for name, value in (env_kwargs or {}).items() if name not in UNCHANGED}
    return json.dumps(kwargs, default=plain)


class Player:
    """A policy over observations; subclasses say how a decision is made.

    ``name`` is the registered name, ``options`` the JSON-typed options it was made with, ``game`` the first part of
    the name. ``batched`` says that it remembers nothing and decides for many games in little more time than for one,
    so that whole games are best played side by side.
    """

    name: str = "player"
    batched: bool = False
    options: Mapping[str, Any] = {}

    def __reduce__(self) -> Any:
        """Players travel to other processes as what `make` was told."""
        return _remake, (self.name, dict(self.options))

    def start(self, seed: int) -> Any:
        """What the player remembers at the start of an episode; None where it remembers nothing."""
        return None

    def values(self, observation: Any, state: Any = None) -> NDArray[np.float64]:
        """Value of each action, float64[n_actions] (batched: [n, n_actions]); -inf where illegal.

        Raises NotFiniteError, as `act`, `predict` and `play` do, if one of the values is NaN or +inf.
        """
        raise NotImplementedError(f"{self.name} does not value actions; it only chooses one")

    def act(self, observation: Any, state: Any = None) -> NDArray[np.int64]:
        """The chosen action: a 0-d int64 for one observation, int64[n] for a batch."""
        return self.predict(observation, state)[0]

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> tuple[NDArray[np.int64], Any]:
        """The chosen action and the state to hand in next time (Stable-Baselines3's predictor protocol).

        `state` is what `start` or the last call returned; None is ``start(0)``. `episode_start` (bool, one for each
        observation) makes a player forget what it learnt within the episode before; a random stream goes on.
        `deterministic` makes no difference to a search.
        """
        raise NotImplementedError

    def with_rules(self, rules: Mapping[str, Any]) -> Player:
        """This player under an environment's rules: fills in those left out, refuses those that differ."""
        return self

    def play(
        self, env_id: str, seed: int, env_kwargs: Mapping[str, Any] | None = None, max_episode_steps: int | None = None
    ) -> Trajectory:
        """One whole episode from ``reset(seed=seed)``."""
        return play_in_env(self, env_id, seed, env_kwargs, max_episode_steps)


def _remake(name: str, options: dict[str, Any]) -> Player:
    from mergefall_baselines.registry import make

    return make(name, **options)


def play_in_env(
    player: Predictor,
    env_id: str,
    seed: int,
    env_kwargs: Mapping[str, Any] | None = None,
    max_episode_steps: int | None = None,
) -> Trajectory:
    """Play one episode in the gym loop: the slow twin of every compiled whole-episode loop.

    ``player`` is anything with ``predict``; a player with ``start`` is started with the episode's seed. Where
    ``predict`` takes ``action_masks``, as MaskablePPO's does, it is told what is legal.
    """
    env = gym.make(env_id, max_episode_steps=max_episode_steps, **dict(env_kwargs or {}))
    masked = "action_masks" in inspect.signature(player.predict).parameters
    try:
        observation, info = env.reset(seed=seed)
        state = player.start(seed) if isinstance(player, Player) else None
        actions: list[int] = []
        terminated = truncated = False
        while not (terminated or truncated):
            first = np.array([not actions])
            masks = {"action_masks": info["action_mask"].astype(np.bool_)} if masked else {}
            action, state = player.predict(observation, state, episode_start=first, deterministic=True, **masks)
            observation, _, terminated, truncated, info = env.step(int(action))
            actions.append(int(action))
    finally:
        env.close()
    figures = {key: int(info[key]) for key in ("score", "max_tile", "lines", "pieces") if key in info}
    return Trajectory(seed, np.array(actions, dtype=np.uint8 if max(actions) < 256 else np.uint16), terminated, figures)
