"""Players as potentials of reward shaping: ``shaping={"potential": {"player": "2048/ntuple"}}``."""

from typing import Any

import numpy as np
from mergefall.typing import Bools, Floats, Words

from mergefall_baselines.registry import player_under


class PlayerValues:
    """A player's `board_values` as a potential of `mergefall.shaping`.

    `spec` is a mapping of `player` and options; `rules` are the environment's. A board on which every
    action loses at once has the value 0, as the end of the game has.

    Raises ValueError if there is no such player, if it plays another game or by other rules, or if it remembers.

    >>> import gymnasium as gym, mergefall
    >>> env = gym.make("mergefall/Game2048-v0", shaping={"potential": {"player": "2048/ntuple"}, "gamma": 1.0})
    >>> _ = env.reset(seed=0)
    >>> _, reward, _, _, info = env.step(0)
    >>> reward == info["shaping"] + info["score"]
    True
    """

    name = "player"

    def __init__(self, spec: Any, rules: Any) -> None:
        self._spec, self._rules = spec, rules
        self._player = player_under(rules, spec, "potential")

    def __reduce__(self) -> Any:
        return type(self), (self._spec, self._rules)

    def of_states(self, states: Words) -> tuple[Floats, Bools]:
        over = self._rules.observed(states)[1]
        values, going = np.zeros(len(states)), np.flatnonzero(~over)
        if going.size:
            found = self._player.board_values(self._rules.observations(states[going]))
            values[going] = np.where(np.isfinite(found), found, 0.0)
        return values, over
