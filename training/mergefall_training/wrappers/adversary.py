"""The adversary: a searcher draws the new tiles or pieces, so that chance turns against the agent.

With `2048/minimax` it is the minimizer of the minimax document. It sets the game's random stream so that the next draw
is the one wanted; the game itself stays the plain one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector import VectorEnv
from mergefall.chance import STREAM, coins, forced
from mergefall.checks import known, number
from mergefall.games import concatenate
from mergefall.library import recorded
from mergefall.typing import Array, Dict, Environment, Info, Observation, Options, Words
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
    return {"player": given["player"], "rate": given.get("rate", 1.0)}


def turned(player: Player, rules: Any, states: Array, boards: Array, actions: Array) -> Words:
    """Random streams uint64[n] that make the games draw next what leaves `player` least.

    `states` uint64[n, words] are the games before the `actions` int64[n], which leave the afterstates `boards`
    uint8[n, rows, cols].
    """
    possible = [rules.chance_outcomes(*move) for move in zip(boards, states, actions.tolist(), strict=True)]
    values = player.values(concatenate([outcomes.observations for outcomes in possible])).max(axis=1)
    first, streams = 0, states[:, STREAM].copy()
    for i, outcomes in enumerate(possible):
        worst = int(values[first : first + len(outcomes.upper)].argmin())
        streams[i] = forced(streams[i], outcomes.upper[worst], outcomes.lower[worst])
        first += len(outcomes.upper)
    return streams


def _checked(env: Environment, player: Spec, rate: float) -> tuple[Player, float]:
    """The adversary's player and rate; raises ValueError as `adversary` does."""
    rate, game = number("rate", rate, 0, 1), env.unwrapped
    if not hasattr(game, "afterstates"):
        raise ValueError(f"env is {env}; expected one of mergefall's, or a batched one that is native (make_vec)")
    chosen = player_under(game.rules, player)
    if getattr(game.rules, "preview", 0) and not chosen.sees_next:
        raise ValueError(
            f"player is {chosen.name!r}, which looks at the current piece alone; expected one that looks at all shown "
            "pieces, because the last of them is drawn"
        )
    return chosen, rate


class Adversary(gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """`adversary` for a single environment."""

    def __init__(self, env: Environment, player: Spec, rate: float = 1.0) -> None:
        spec = recorded(player)
        if isinstance(player, Player) and player.made_as is not None and not player.functions:
            spec = {"player": player.made_as, **player.options}
        RecordConstructorArgs.__init__(self, player=spec, rate=rate)
        gym.Wrapper.__init__(self, env)
        self._player, self._rate = _checked(env, player, rate)

    def step(self, action: Any) -> tuple[Observation, Any, bool, bool, Info]:
        game: Any = self.unwrapped
        states = game.clone_state()[None]
        if coins(states[:, STREAM])[0] < self._rate and self.action_space.contains(action):
            boards, _, legal = game.afterstates()
            if legal[action]:
                states[:, STREAM] = turned(self._player, game.rules, states, boards[action][None], np.array([action]))
                game.restore_state(states[0])
        return self.env.step(action)


class VectorAdversary(VectorWrapper):
    """`adversary` for each game of a native batched environment."""

    def __init__(self, env: Environment, player: Spec, rate: float = 1.0) -> None:
        super().__init__(env)
        self._player, self._rate = _checked(env, player, rate)

    def step(self, actions: Any) -> tuple[Observation, Any, Any, Any, Info]:
        game: Any = self.unwrapped
        states, actions = game.clone_state(), np.asarray(actions)
        draws = coins(states[:, STREAM]) < self._rate
        if draws.any() and self.action_space.contains(actions):
            boards, _, legal = game.afterstates()
            which = np.flatnonzero(draws & legal[np.arange(self.num_envs), actions] & ~game.beginning())
            if which.size:
                chosen = actions[which]
                after = boards[which, chosen]
                states[which, STREAM] = turned(self._player, game.rules, states[which], after, chosen)
                game.restore_state(states)
        return self.env.step(actions)
