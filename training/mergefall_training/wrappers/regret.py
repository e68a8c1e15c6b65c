"""Regret: the reward is how far each action falls short of a searcher's best action."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector import AutoresetMode, VectorEnv
from mergefall.checks import number
from mergefall.games import batch_of_one, take
from mergefall.typing import Environment, Info, Observation
from mergefall.wrappers import VectorWrapper
from mergefall_baselines import Player
from numpy.typing import NDArray

from mergefall_training.wrappers.searcher import Spec, recorded_player, searcher


def regret(env: Environment, player: Spec, scale: float | str = "spread", cap: float = 1.0, keep: float = 0.0) -> Any:
    """Reward an action with keep · (the environment's reward) − regret.

    regret = scale · (highest value − value of the action), at most `cap`, by the player's values for the observation
    before the action. An illegal action costs `cap`, and so does a fatal one (value −∞) unless all are fatal; then a
    legal action costs 0. ``info["regret"]`` holds the regret, 0 after a reset.

    Args:
        env: a single or batched environment of mergefall.
        player: a `Player`, a registered name, or a mapping such as ``{"name": "2048/expectimax", "depth": 2}``.
        scale: a number above 0, or "spread": 1 / (highest − lowest finite value), so that the regret is from 0 to 1.
        cap: largest regret, above 0.
        keep: share of the environment's own reward to keep, at least 0.

    Regret judges single decisions, so a learner should discount strongly: γ = 0 gives cost-sensitive imitation, whereas
    with γ near 1 an agent learns to lose soon in order to stop regretting (S. Ross & J. A. Bagnell, arXiv:1406.5979).

    Raises ValueError for numbers out of range, for a player of other rules, and for a player that remembers.

    >>> import gymnasium as gym, mergefall
    >>> env = regret(gym.make("mergefall/Game2048-v0"), "2048/greedy")
    >>> _ = env.reset(seed=0, options={"board": "2 2 . ./. . . ./. . . ./4 . . ."})
    >>> env.step(0)[1], env.step(3)[1]  # upwards nothing merges; then the two do
    (-1.0, 0.0)
    """
    return (VectorRegret if isinstance(env.unwrapped, VectorEnv) else Regret)(env, player, scale, cap, keep)


class _Measure:
    """The regret of actions by a player's values."""

    def __init__(self, player: Player, scale: float | str, cap: float) -> None:
        self._player, self._scale = player, scale if scale == "spread" else number("scale", scale, above=0)
        self._cap = number("cap", cap, above=0)

    def __call__(
        self, observations: Observation, legal: NDArray[np.bool_], actions: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """float64[n] for actions int64[n]; `observations` and `legal` bool[n, actions] are those before the step."""
        values = self._player.values(observations)
        rows, best = np.arange(len(values)), values.max(axis=1)
        lost = np.isneginf(best)  # every action loses
        gaps = np.where(lost, 0.0, np.where(lost, 0.0, best) - values[rows, actions])
        if self._scale == "spread":
            lowest = np.where(np.isfinite(values), values, np.inf).min(axis=1)
            spreads = np.where(lost | (lowest == best), 1.0, best - lowest)
            gaps = gaps / spreads
        else:
            gaps = gaps * self._scale
        return np.where(legal[rows, actions], np.minimum(gaps, self._cap), self._cap)


class Regret(gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """`regret` for a single environment, computed as a batch of one."""

    def __init__(
        self, env: Environment, player: Spec, scale: float | str = "spread", cap: float = 1.0, keep: float = 0.0
    ) -> None:
        RecordConstructorArgs.__init__(self, player=recorded_player(player), scale=scale, cap=cap, keep=keep)
        gym.Wrapper.__init__(self, env)
        self._measure, self._keep = _Measure(searcher(env, player), scale, cap), number("keep", keep, 0)
        self._observation: Observation = None
        self._mask: Any = None

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> tuple[Observation, Info]:
        observation, info = self.env.reset(seed=seed, options=options)
        self._observation, self._mask = observation, info["action_mask"]
        return observation, info | {"regret": 0.0}

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, Info]:
        before, mask = self._observation, self._mask
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._observation, self._mask = observation, info["action_mask"]
        regret = float(self._measure(batch_of_one(before), mask[None] == 1, np.array([action], np.int64))[0])
        return observation, self._keep * float(reward) - regret, terminated, truncated, info | {"regret": regret}


class VectorRegret(VectorWrapper):
    """`regret` for a batched environment, in all games that a step does not begin anew."""

    def __init__(
        self, env: Environment, player: Spec, scale: float | str = "spread", cap: float = 1.0, keep: float = 0.0
    ) -> None:
        super().__init__(env)
        self._measure, self._keep = _Measure(searcher(env, player), scale, cap), number("keep", keep, 0)
        self._mode = env.metadata["autoreset_mode"]
        self._observations: Observation = None
        self._masks: Any = None
        self._ended: Any = None

    def reset(self, *, seed: Any = None, options: Info | None = None) -> tuple[Observation, Info]:
        mask = (options or {}).get("reset_mask")  # read first: SyncVectorEnv removes it from options
        observations, infos = self.env.reset(seed=seed, options=options)
        self._observations, ended = observations, np.zeros(self.num_envs, np.bool_)
        masks = infos["action_mask"]
        if mask is not None:
            masks, ended = np.where(mask[:, None], masks, self._masks), self._ended & ~mask
        self._masks, self._ended = masks, ended
        return observations, _told(infos, np.zeros(self.num_envs))

    def step(self, actions: Any) -> tuple[Observation, Any, Any, Any, Info]:
        before, masks, ended = self._observations, self._masks, self._ended
        observations, rewards, terminated, truncated, infos = self.env.step(actions)
        self._observations, self._masks, self._ended = observations, infos["action_mask"], terminated | truncated
        played = np.flatnonzero(~ended) if self._mode is AutoresetMode.NEXT_STEP else np.arange(self.num_envs)
        regrets = np.zeros(self.num_envs)
        if played.size:
            regrets[played] = self._measure(take(before, played), masks[played] == 1, np.asarray(actions)[played])
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
