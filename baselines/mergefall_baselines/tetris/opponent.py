"""Players as opponents in matches of Tetris: the argument `opponent` of `mergefall/TetrisVersus-v0`."""

import inspect
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
from mergefall.checks import in_place
from mergefall.tetris.game import STEPS, STREAM
from mergefall.tetris.keys.rules import Rules
from mergefall.typing import Array, Ints, Observation

from mergefall_baselines.registry import of_game


class OpponentPlayer:
    """A player that decides for the opponents of n matches.

    `spec`: a name, a mapping of `player` and options, or what acts as a player. `rules`: those of a side. At the start
    of a match the player's memory begins anew, from a seed that the opponent's random stream gives. An object with
    Stable-Baselines3's ``predict`` gets `episode_start`, ``deterministic=True``, and `action_masks` if it takes them.

    Raises ValueError if there is no such player, or if it plays another game or by other rules.
    """

    def __init__(self, spec: Any, rules: Rules) -> None:
        player = of_game(spec, type(rules), "opponent")
        self._player, self._rules, self._memory = player.with_rules(asdict(rules)), rules, None
        self._predictor = getattr(self._player, "predictor", None)  # our own players know the legal keys
        self._masked = self._predictor and "action_masks" in inspect.signature(self._player.predict).parameters

    def keys(self, states: Array, observations: Observation) -> Ints:
        """The keys int64[n] in states uint64[n, words] that begin with the opponent's side."""
        fresh = states[:, STEPS] == 0
        if fresh.all():
            self._memory = None
        for i in np.flatnonzero(fresh):
            memory = self._player.start(int(states[i, STREAM] >> np.uint64(1)))
            if memory is not None:
                if self._memory is None:
                    self._memory = np.zeros((len(states), memory.size), memory.dtype)
                self._memory[i] = memory
        # A model may be one of the game alone, which does not see the other side.
        if isinstance(space := getattr(self._predictor, "observation_space", None), Mapping):
            observations = {name: observations[name] for name in space}
        masks = {"action_masks": self._rules.observed(states)[0]} if self._masked else {}
        keys, self._memory = self._player.predict(
            observations, self._memory, episode_start=fresh, deterministic=True, **masks
        )
        keys = np.atleast_1d(keys)
        if len(keys) != len(states):
            raise ValueError(f"the opponent chose {keys}; expected {len(states)} keys")
        with in_place("the opponent"):
            return np.array([self._rules.action_index(key) for key in keys], np.int64)
