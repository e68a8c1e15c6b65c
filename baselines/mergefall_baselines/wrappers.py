"""Environments with a search player in them: as the measure of each action, or as an opponent.

Each function takes a single environment or a batched one and returns it wrapped. `player` is a `Player`, a registered
name, or a mapping with a name and options, such as ``{"name": "2048/expectimax", "depth": 2}``.

    regret(env, player, …)       pays minus what each action falls short of the player's best
    adversary(env, player, …)    lets the player pick new tiles or pieces: those that leave it least
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from numpy.typing import NDArray

from mergefall_baselines.adversaries import STREAM, coins, turned
from mergefall_baselines.player import Player
from mergefall_baselines.registry import make

Spec = str | Mapping[str, Any] | Player


def regret(env: Any, player: Spec, scale: float | str = "spread", cap: float = 1.0, keep: float = 0.0) -> Any:
    """Pay minus the regret of each action: by how much the player values its own choice higher.

    The regret is scale · (highest value − the action's value), at most `cap`; it is 0 for whatever the player values as
    highly as its choice. ``scale="spread"`` measures it in parts of the difference between the highest and the lowest
    finite value, so that it lies between 0 and 1 whatever the player's units. An illegal action, and one that the
    player values at −∞ (a fatal placement) where it knows better, costs `cap`; where all actions are worth −∞, a legal
    one costs 0. The reward is keep · (the environment's own) − regret, and ``info["regret"]`` tells the regret (0 after
    a reset).

    The player's values are those of the observation of the last `reset` or `step`. Regret is of the decision alone, so
    a learner should discount strongly: with γ = 0 this is cost-sensitive imitation, whereas with γ near 1 an agent that
    cannot help regretting learns to lose soon (S. Ross & J. A. Bagnell, arXiv:1406.5979).

    Raises ValueError for numbers out of range, for a player of other rules, and for one that remembers, whose
    values are no function of the observation.

    >>> import gymnasium as gym, mergefall
    >>> env = regret(gym.make("mergefall/Game2048-v0"), "2048/greedy")
    >>> _ = env.reset(options={"board": "2 2 . ./. . . ./. . . ./4 . . ."})
    >>> env.step(0)[1], env.step(3)[1]  # upwards nothing merges; then the two do
    (-1.0, 0.0)
    """
    if scale != "spread":
        scale = _number("scale", scale, "more than 0, or 'spread'", scale != 0)
    measure = _Measure(_player(env, player), scale, _number("cap", cap, "more than 0", cap != 0))
    keep = _number("keep", keep, "a number from 0 up")
    return (_VectorRegret if isinstance(env.unwrapped, VectorEnv) else _Regret)(env, measure, keep)


def adversary(env: Any, player: Spec, rate: float = 1.0) -> Any:
    """Let a player choose new tiles or pieces against the agent, each with probability `rate` instead of chance.

    Of all that chance could draw after a move it picks what leaves the player's highest value lowest, the first of
    equals (in 2048 cells from the top left, 2 before 4; in Tetris lower ids). So ``2048/minimax`` places tiles as the
    minimizer that it searches against, and ``tetris/greedy`` picks the piece whose best placement is worst. In Tetris
    the drawn piece is the last one shown: with a preview the player must look that far (``tetris/two-tetrad``). What
    an episode begins with is left to chance, and so is what a bag no longer holds.

    Whether it picks is read off the game's random stream, which a reset's seed fixes: with rate 0 the environment is
    the plain one, draw by draw, and game i of a batch plays like a single one. In other cases the draws that follow
    differ from the plain environment's.

    Raises ValueError for a rate outside 0 … 1, for a player of other rules or one that remembers, and for
    environments other than ours.

    >>> import gymnasium as gym, mergefall
    >>> env = adversary(gym.make("mergefall/Game2048-v0"), {"name": "2048/minimax", "depth": 1})
    >>> _ = env.reset(options={"board": "8 4 8 4/4 16 4 8/2 4 8 4/4 4 16 32"})
    >>> board, _, terminated, _, _ = env.step(1)
    >>> board[3].tolist(), terminated  # chance would most likely have drawn a 2, which merges with the one above
    ([2, 3, 4, 5], True)
    """
    rate = _number("rate", rate, "a number from 0 to 1", rate == rate and rate <= 1)
    chosen, batched = _player(env, player), isinstance(env.unwrapped, VectorEnv)
    if not hasattr(env.unwrapped, "afterstates"):
        raise ValueError(f"env is {env}; expected one of mergefall's, or a batched one that is native (make_vec)")
    return (_VectorAdversary if batched else _Adversary)(env, chosen, rate)


def _number(name: str, value: Any, expected: str, holds: bool = True) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < np.inf or not holds:
        raise ValueError(f"{name} is {value!r}; expected {expected}")
    return float(value)


def _player(env: Any, spec: Spec) -> Player:
    """The player that is asked for, under the environment's rules."""
    single = env.unwrapped.envs[0] if hasattr(env.unwrapped, "envs") else env  # Gymnasium's SyncVectorEnv
    settings = getattr(single.unwrapped, "settings", None)
    if settings is None:
        raise ValueError(f"env is {env}; expected one of mergefall's")
    player = spec if isinstance(spec, Player) else make(spec) if isinstance(spec, str) else make(**dict(spec))
    player = player.with_rules(asdict(settings))
    if player.start(0) is not None:
        raise ValueError(f"player is {player.name!r}, which remembers; expected one that sees the observation alone")
    return player


class _Measure:
    """What `regret` takes actions by."""

    def __init__(self, player: Player, scale: float | str, cap: float) -> None:
        self._player, self._scale, self._cap = player, scale, cap

    def __call__(self, observations: Any, legal: NDArray[np.bool_], actions: NDArray[np.int64]) -> NDArray[np.float64]:
        """Regrets float64[n] of actions int64[n], with observations and legal bool[n, actions] as they were before."""
        values = self._player.values(observations)
        rows, best = np.arange(len(values)), values.max(axis=1)
        lost = np.isneginf(best)  # nothing to choose from
        gaps = np.where(lost, 0.0, np.where(lost, 0.0, best) - values[rows, actions])
        if self._scale == "spread":
            lowest = np.where(np.isfinite(values), values, np.inf).min(axis=1)
            spreads = np.where(lost | (lowest == best), 1.0, best - lowest)
            gaps = gaps / spreads
        else:
            gaps = gaps * self._scale
        return np.where(legal[rows, actions], np.minimum(gaps, self._cap), self._cap)


class _Regret(gym.Wrapper[Any, Any, Any, Any]):
    """One environment, measured as a batch of one."""

    def __init__(self, env: Any, measure: _Measure, keep: float) -> None:
        super().__init__(env)
        self._measure, self._keep = measure, keep
        self._observation: Any = None
        self._mask: Any = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        observation, info = self.env.reset(seed=seed, options=options)
        self._observation, self._mask = observation, info["action_mask"]
        return observation, info | {"regret": 0.0}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        before, mask = self._observation, self._mask
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._observation, self._mask = observation, info["action_mask"]
        before = _map(lambda part: np.asarray(part)[None], before)
        regret = float(self._measure(before, mask[None] == 1, np.array([action], np.int64))[0])
        return observation, self._keep * float(reward) - regret, terminated, truncated, info | {"regret": regret}


class _Batched(gym.vector.VectorWrapper):
    """A batched environment that learners may ask what they ask the native one."""

    env: Any

    def action_masks(self) -> NDArray[np.bool_]:
        """The legal actions as bool[n, actions] (all True where a game is over)."""
        return self.env.action_masks()

    def clone_state(self) -> Any:
        """All games, and what the wrapper knows of them."""
        return self.env.clone_state()

    def restore_state(self, state: Any) -> None:
        """Go back to what `clone_state` returned."""
        self.env.restore_state(state)


class _VectorRegret(_Batched):
    """A batched environment, native or Gymnasium's, measured in all games that a step plays on."""

    def __init__(self, env: Any, measure: _Measure, keep: float) -> None:
        super().__init__(env)
        self._measure, self._keep = measure, keep
        self._mode = env.metadata["autoreset_mode"]
        self._observations: Any = None
        self._masks: Any = None
        self._ended: Any = None

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        mask = (options or {}).get("reset_mask")  # which SyncVectorEnv takes out of options
        observations, infos = self.env.reset(seed=seed, options=options)
        self._observations, ended = observations, np.zeros(self.num_envs, np.bool_)
        masks = infos["action_mask"]
        if mask is not None:
            masks, ended = np.where(mask[:, None], masks, self._masks), self._ended & ~mask
        self._masks, self._ended = masks, ended
        return observations, _told(infos, np.zeros(self.num_envs))

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        before, masks, ended = self._observations, self._masks, self._ended
        observations, rewards, terminated, truncated, infos = self.env.step(actions)
        self._observations, self._masks, self._ended = observations, infos["action_mask"], terminated | truncated
        played = np.flatnonzero(~ended) if self._mode is AutoresetMode.NEXT_STEP else np.arange(self.num_envs)
        regrets = np.zeros(self.num_envs)
        if played.size:
            before = _map(lambda part: part[played], before)
            regrets[played] = self._measure(before, masks[played] == 1, np.asarray(actions)[played])
        rewards = self._keep * rewards - regrets
        if self._mode is AutoresetMode.SAME_STEP and self._ended.any():
            infos = infos | {"final_info": _told(infos["final_info"], np.where(self._ended, regrets, 0.0))}
            regrets = np.where(self._ended, 0.0, regrets)
        return observations, rewards, terminated, truncated, _told(infos, regrets)

    def clone_state(self) -> dict[str, Any]:
        return {"games": self.env.clone_state(), "seen": (self._observations, self._masks, self._ended)}

    def restore_state(self, state: dict[str, Any]) -> None:
        self.env.restore_state(state["games"])
        self._observations, self._masks, self._ended = state["seen"]


def _told(infos: dict[str, Any], regrets: NDArray[np.float64]) -> dict[str, Any]:
    return infos | {"regret": regrets, "_regret": infos["_legal"].copy()}


def _map(function: Any, observations: Any) -> Any:
    if isinstance(observations, dict):
        return {name: function(part) for name, part in observations.items()}
    return function(observations)


class _Adversary(gym.Wrapper[Any, Any, Any, Any]):
    """One environment, whose next draw is made the worst one where the coin says so."""

    def __init__(self, env: Any, player: Player, rate: float) -> None:
        super().__init__(env)
        self._player, self._rate = player, rate

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        game: Any = self.unwrapped
        states = game.clone_state()[None]
        if coins(states[:, STREAM])[0] < self._rate and self.action_space.contains(action):
            boards, _, legal = game.afterstates()
            if legal[action]:
                states[:, STREAM] = turned(self._player, game.settings, states, boards[action][None])
                game.restore_state(states[0])
        return self.env.step(action)


class _VectorAdversary(_Batched):
    """A native batched environment, in each of whose games that is done."""

    def __init__(self, env: Any, player: Player, rate: float) -> None:
        super().__init__(env)
        self._player, self._rate, self._started = player, rate, False

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        self._started = True
        return self.env.reset(seed=seed, options=options)

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        if self._started and self.action_space.contains(np.asarray(actions)):
            self._turn(np.asarray(actions))
        return self.env.step(actions)

    def restore_state(self, state: Any) -> None:
        self._started = True
        self.env.restore_state(state)

    def _turn(self, actions: NDArray[np.int64]) -> None:
        game: Any = self.unwrapped
        states, games = game.clone_state(), np.arange(self.num_envs)
        chosen = coins(states[:, STREAM]) < self._rate
        if chosen.any():
            boards, _, legal = game.afterstates()
            which = np.flatnonzero(chosen & legal[games, actions] & ~game.beginning())
            if which.size:
                after = boards[which, actions[which]]
                states[which, STREAM] = turned(self._player, game.settings, states[which], after)
                game.restore_state(states)
