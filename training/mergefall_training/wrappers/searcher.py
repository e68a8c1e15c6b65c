"""Shared by the wrappers that hold a searcher: how the searcher is made, and a batched wrapper."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import gymnasium as gym
import numpy as np
from mergefall.typing import Environment, Options
from mergefall_baselines import Player
from mergefall_baselines.registry import player_of
from numpy.typing import NDArray

Spec = str | Options | Player  # a name, a mapping of `name` and options, or a player


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
