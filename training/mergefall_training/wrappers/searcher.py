"""Shared by the wrappers that hold a searcher: how the searcher is made, and a batched wrapper."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import gymnasium as gym
import numpy as np
from mergefall.typing import Environment, Options
from mergefall_baselines import Player, make
from numpy.typing import NDArray

Spec = str | Options | Player  # a name, a mapping of `name` and options, or a player


def player_of(spec: Spec) -> Player:
    """The player of a `Spec`; raises ValueError for anything else, and for options that the player does not have."""
    if isinstance(spec, Player):
        return spec
    if isinstance(spec, str):
        return make(spec)
    if isinstance(spec, Mapping) and isinstance(spec.get("name"), str):
        return make(**{str(name): value for name, value in spec.items()})
    raise ValueError(f"player is {spec!r}; expected a name, or a mapping of 'name' and options")


def searcher(env: Environment, spec: Spec) -> Player:
    """The player of a `Spec` under the environment's rules.

    Raises ValueError for an environment that is not mergefall's, for a player of other rules, and for one that
    remembers, because its values are no function of the observation.
    """
    single = env.unwrapped.envs[0] if hasattr(env.unwrapped, "envs") else env  # Gymnasium's SyncVectorEnv
    rules = getattr(single.unwrapped, "rules", None)
    if rules is None:
        raise ValueError(f"env is {env}; expected one of mergefall's")
    player = player_of(spec).with_rules(asdict(rules))
    if player.start(0) is not None:
        raise ValueError(f"player is {player.name!r}, which remembers; expected one that needs the observation alone")
    return player


class VectorWrapper(gym.vector.VectorWrapper):
    """A wrapped batched environment with the methods that learners call on the native one."""

    env: Environment

    def action_masks(self) -> NDArray[np.bool_]:
        """The legal actions: bool[n, actions]; all True if a game is over."""
        return self.env.action_masks()

    def clone_state(self) -> Any:
        """The state of all games and of the wrapper."""
        return self.env.clone_state()

    def restore_state(self, state: Any) -> None:
        """Go back to what `clone_state` returned."""
        self.env.restore_state(state)
