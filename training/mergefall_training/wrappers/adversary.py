"""The adversary: a searcher draws the new tiles or pieces, so that chance turns against the agent.

With `2048/minimax` it is the minimizer of the minimax document. It sets the game's random stream so that the next draw
is the one wanted; the game itself stays the plain one.
"""

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector import VectorEnv
from mergefall.chance import STREAM, coins
from mergefall.checks import known, number
from mergefall.games import concatenate
from mergefall.library import recorded
from mergefall.typing import Array, Dict, Environment, Info, Observation, Options
from mergefall.wrappers import VectorWrapper
from mergefall_baselines import Player
from mergefall_baselines.registry import player_under

Spec = str | Options | Player  # a name, a mapping of a player and its options, or a player


def adversary(env: Environment, player: Spec, rate: float = 1.0) -> Any:
    """Let a player draw new tiles or pieces against the agent, each with probability `rate`, otherwise chance.

    Of all draws that can follow a move, the adversary picks the one after which the best action has the lowest value;
    ties go to the first (2048: cells from the top left, 2 before 4; Tetris: the lowest piece id). So ``2048/minimax``
    places tiles like the minimizer of its own search; ``tetris/greedy`` picks the piece whose best placement is worst.
    In Tetris the drawn piece is the last one shown, so with a preview the player must look that far
    (``tetris/two-tetrad``). The start of an episode is left to chance, and a bag deals only what it still holds.

    The environment's random stream decides whether the adversary draws, so a seed fixes everything: rate 0 gives the
    plain environment, draw by draw, and game i of a batch plays like a single one.

    Raises ValueError for a rate outside 0 … 1; for a player of other rules, one that remembers or one that looks at the
    current piece alone where more are shown; and for environments that are not mergefall's.

    >>> import gymnasium as gym, mergefall
    >>> env = adversary(gym.make("mergefall/Game2048-v0"), {"player": "2048/minimax", "depth": 1})
    >>> _ = env.reset(options={"board": "8 4 8 4/4 16 4 8/2 4 8 4/4 4 16 32"})
    >>> board, _, terminated, _, _ = env.step(1)
    >>> board[3].tolist(), terminated  # chance would most likely have drawn a 2, which merges with the one above
    ([2, 3, 4, 5], True)
    """
    return (VectorAdversary if isinstance(env.unwrapped, VectorEnv) else Adversary)(env, player, rate)


def arguments(given: Options) -> Dict:
    """All arguments of `adversary` but `env`: the given ones and the defaults. Raises ValueError for other ones.

    >>> arguments({"player": "2048/minimax"})
    {'player': '2048/minimax', 'rate': 1.0}
    """
    if not isinstance(given, Mapping) or "player" not in given:
        raise ValueError(f"adversary is {given!r}; expected a 'player', perhaps with a 'rate'")
    known("adversary", given, ("player", "rate"))
    return {"player": None, "rate": 1.0, **given}


class _Drawer:
    """A player that turns the draws of games, each with probability `rate`. Raises ValueError as `adversary` does."""

    def __init__(self, env: Environment, player: Spec, rate: float) -> None:
        self._rate, self._game = number("rate", rate, 0, 1), env.unwrapped
        if not hasattr(self._game, "afterstates"):
            raise ValueError(f"env is {env}; expected one of mergefall's, or a batched one that is native (make_vec)")
        self._player = player_under(self._game.rules, player)
        if getattr(self._game.rules, "preview", 0) and not self._player.sees_next:
            raise ValueError(
                f"player is {self._player.name!r}, which looks at the current piece alone; expected one that looks at "
                "all shown pieces, because the last of them is drawn"
            )

    def turn(self, actions: Array, beginning: Any = False) -> None:
        """Set the random streams of the games so that they draw after `actions` int64[n] what leaves the player least.

        `beginning`: bool[n], games whose step only begins them.
        """
        kept = self._game.clone_state()
        states = kept.reshape(len(actions), -1)
        draws = (coins(states[:, STREAM]) < self._rate) & np.logical_not(beginning)
        if not draws.any():
            return
        _, _, legal = self._game.afterstates()
        which = np.flatnonzero(draws & legal.reshape(*draws.shape, -1)[np.arange(len(actions)), actions])
        if not which.size:
            return
        rules = self._game.rules
        possible = [rules.chance_outcomes(states[i], int(actions[i])) for i in which]
        values = self._player.values(concatenate([outcomes.observations for outcomes in possible])).max(axis=1)
        first = 0
        for i, outcomes in zip(which, possible, strict=True):
            end = first + len(outcomes.streams)
            states[i, STREAM] = outcomes.streams[values[first:end].argmin()]
            first = end
        self._game.restore_state(kept)


class Adversary(gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """`adversary` for a single environment."""

    def __init__(self, env: Environment, player: Spec, rate: float = 1.0) -> None:
        spec = recorded(player)
        if isinstance(player, Player) and player.made_as is not None and not player.functions:
            spec = {"player": player.made_as, **player.options}
        RecordConstructorArgs.__init__(self, player=spec, rate=rate)
        gym.Wrapper.__init__(self, env)
        self._drawer = _Drawer(env, player, rate)

    def step(self, action: Any) -> tuple[Observation, Any, bool, bool, Info]:
        if self.action_space.contains(action):
            self._drawer.turn(np.array([action]))
        return self.env.step(action)


class VectorAdversary(VectorWrapper):
    """`adversary` for each game of a native batched environment."""

    def __init__(self, env: Environment, player: Spec, rate: float = 1.0) -> None:
        super().__init__(env)
        self._drawer = _Drawer(env, player, rate)

    def step(self, actions: Any) -> tuple[Observation, Any, Any, Any, Info]:
        if self.action_space.contains(np.asarray(actions)):
            game: Any = self.unwrapped
            self._drawer.turn(np.asarray(actions), game.beginning())
        return self.env.step(actions)
