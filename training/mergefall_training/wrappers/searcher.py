"""Shared by the wrappers that hold a searcher: how it is made, and how a spec records it."""

from __future__ import annotations

from typing import Any

from mergefall.library import recorded
from mergefall.typing import Environment, Options
from mergefall_baselines import Player
from mergefall_baselines.registry import player_under

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
    return player_under(rules, spec)


def recorded_player(spec: Spec) -> Any:
    """A `Spec` as JSON types, for an environment's spec; a player that `make` did not make stays as it is.

    >>> from mergefall_baselines import make
    >>> recorded_player(make("2048/expectimax", heuristic="nneonneo", depth=2))["depth"]
    2
    """
    if isinstance(spec, Player):
        return spec if spec.made_as is None or spec.functions else {"name": spec.made_as, **spec.options}
    return recorded(spec)
