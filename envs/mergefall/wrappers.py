"""Wrappers for learners: observations as arrays, and a legal action in the place of an illegal one.

Each function wraps a single environment or a native batch of them; the observation of a batch has a row for each game.
(Before Gymnasium's own `SyncVectorEnv`, wrap each environment instead.)

                          2048                                Tetris
    planes(env)           float32[ranks, rows, cols]          float32[1 + n · (1 + preview), rows, cols]
    flat(env)             float32[rows · cols · ranks]        float32[rows · cols + n · (1 + preview)]
    features(env, …)      no                                  float32[k + n · (1 + preview)]

ranks is the number of ranks that a cell can have, 18 on 4×4; n the number of piece ids, k that of a heuristic's terms.

For agents that choose among boards instead, `env.unwrapped.afterstates()` has the board after each action.
"""

from __future__ import annotations

from typing import Any, cast

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from mergefall.game2048.rules import Rules as Rules2048
from mergefall.game2048.views import View as View2048
from mergefall.games import batch_of_one
from mergefall.tetris.rules import Rules as TetrisRules
from mergefall.tetris.views import View as TetrisView
from mergefall.typing import Environment, Info, Observation, Options


def planes(env: Environment) -> Any:
    """Observe planes, for convolutional networks.

    2048: float32[ranks, rows, cols], the cells of each rank, empty ones first. Tetris: float32[1 + n · (1 + preview),
    rows, cols], the board, then n one-hot planes for each shown piece.

    >>> import mergefall
    >>> planes(gym.make("mergefall/Game2048-v0")).reset()[0].shape
    (18, 4, 4)
    >>> planes(gym.make("mergefall/Tetris-v0")).reset()[0].shape
    (15, 20, 10)
    """
    return _viewed(env, "planes")


def flat(env: Environment) -> Any:
    """Observe vectors, for multilayer perceptrons.

    2048: float32[rows · cols · ranks], cell by cell, each one-hot. Tetris: float32[rows · cols + n · (1 + preview)],
    the board by rows from the top, then one-hot pieces.

    >>> import mergefall
    >>> flat(gym.make("mergefall/Game2048-v0")).reset()[0].shape
    (288,)
    >>> flat(gym.make_vec("mergefall/Tetris-v0", num_envs=3)).reset()[0].shape
    (3, 214)
    """
    return _viewed(env, "flat")


def features(env: Environment, heuristic: str | Options) -> Any:
    """Observe a Tetris heuristic's board terms, unscaled, then one-hot pieces: float32[k + n · (1 + preview)].

    The terms are those of `board_terms`, in that order. For the terms of placements, see the environment's
    `afterstate_terms`. `heuristic`: a name, or a mapping of `name` and weights.

    >>> import mergefall
    >>> features(gym.make("mergefall/Tetris-v0"), "bcts").reset()[0].shape
    (20,)
    """
    return _viewed(env, "features", heuristic)


def replace_illegal(env: Environment) -> Any:
    """Play a random legal action in the place of an illegal one, for policies that know no action masks.

    An illegal action changes nothing in mergefall's games, so a deterministic policy without masks repeats it until
    `illegal_limit` ends the game. Drawn from a generator that `reset(seed=…)` seeds; game i of a batch plays like a
    single environment. `info["replaced"]`, bool, says whether the last action was another one (batch: bool[n]).

    >>> import mergefall
    >>> env = replace_illegal(gym.make("mergefall/Game2048-v0"))
    >>> _ = env.reset(seed=0, options={"board": ". . . ./. . . ./. . . ./2 4 8 16"})
    >>> env.step(2)[4]["replaced"]  # nothing can move down
    True
    """
    batched = isinstance(env.unwrapped, gym.vector.VectorEnv)
    return (VectorReplaceIllegal if batched else ReplaceIllegal)(env)


# -- observations -----------------------------------------------------------------------------------------------------


def _viewed(env: Environment, kind: str, heuristic: str | Options | None = None) -> Any:
    batched = isinstance(env.unwrapped, gym.vector.VectorEnv)
    return (VectorViewObservation if batched else ViewObservation)(env, kind, heuristic)


def _view_of(env: Environment, kind: str, heuristic: str | Options | None) -> Any:
    rules = getattr(env.unwrapped, "rules", None)
    if isinstance(rules, TetrisRules):
        return TetrisView(rules, kind, heuristic)
    if isinstance(rules, Rules2048) and kind != "features":
        return View2048(rules, kind)
    expected = "a Tetris environment" if kind == "features" else "an environment of mergefall"
    raise ValueError(f"env is {env}; expected {expected}, single or natively batched")


class ViewObservation(gym.ObservationWrapper[Any, Any, Any], RecordConstructorArgs):
    """One environment through a view; see `planes`, `flat` and `features`."""

    def __init__(self, env: Environment, kind: str, heuristic: str | Options | None = None) -> None:
        RecordConstructorArgs.__init__(self, kind=kind, heuristic=heuristic)
        gym.ObservationWrapper.__init__(self, env)
        self._view = _view_of(env, kind, heuristic)
        self.observation_space = self._view.space

    def observation(self, observation: Observation) -> NDArray[np.float32]:
        return self._view(batch_of_one(observation))[0]


class VectorViewObservation(gym.vector.VectorWrapper):
    """A batched environment through a view, final observations included."""

    def __init__(self, env: Environment, kind: str, heuristic: str | Options | None = None) -> None:
        super().__init__(env)
        self._view = _view_of(env, kind, heuristic)
        self.single_observation_space = self._view.space
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)

    def reset(self, *, seed: Any = None, options: Info | None = None) -> tuple[Observation, Info]:
        observations, infos = self.env.reset(seed=seed, options=options)
        return self._view(observations), infos

    def step(self, actions: Any) -> tuple[Observation, Any, Any, Any, Info]:
        observations, rewards, terminated, truncated, infos = self.env.step(actions)
        if "final_obs" in infos:
            final = infos["final_obs"]
            for i in np.flatnonzero(infos["_final_obs"]):
                final[i] = self._view(batch_of_one(final[i]))[0]
        return self._view(observations), rewards, terminated, truncated, infos


# -- actions ----------------------------------------------------------------------------------------------------------


class ReplaceIllegal(gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """One environment without illegal actions; see `replace_illegal`."""

    def __init__(self, env: Environment) -> None:
        RecordConstructorArgs.__init__(self)
        gym.Wrapper.__init__(self, env)
        self._random = np.random.default_rng()

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> tuple[Observation, Info]:
        if seed is not None:
            self._random = np.random.default_rng(seed)
        observation, info = self.env.reset(seed=seed, options=options)
        return observation, info | {"replaced": False}

    def step(self, action: Any) -> tuple[Observation, Any, bool, bool, Info]:
        played, game = action, cast(Any, self.unwrapped)
        if self.action_space.contains(action):
            played = _legal(action, game.action_masks(), self._random)
        observation, reward, terminated, truncated, info = self.env.step(played)
        return observation, reward, terminated, truncated, info | {"replaced": bool(played != action)}


class VectorReplaceIllegal(gym.vector.VectorWrapper):
    """A native batch of environments without illegal actions; see `replace_illegal`."""

    def __init__(self, env: Environment) -> None:
        super().__init__(env)
        if not hasattr(env.unwrapped, "action_masks"):
            raise ValueError(f"env is {env}; expected a batch that is native (gym.make_vec)")
        self._randoms = [np.random.default_rng() for _ in range(self.num_envs)]

    def reset(self, *, seed: Any = None, options: Info | None = None) -> tuple[Observation, Info]:
        if seed is not None:
            seeds = range(seed, seed + self.num_envs) if isinstance(seed, int) else seed
            for i, one in enumerate(seeds):
                if one is not None:
                    self._randoms[i] = np.random.default_rng(one)
        observations, infos = self.env.reset(seed=seed, options=options)
        return observations, infos | _told(np.zeros(self.num_envs, np.bool_))

    def step(self, actions: Any) -> tuple[Observation, Any, Any, Any, Info]:
        actions, game = np.asarray(actions), cast(Any, self.unwrapped)
        played = actions.copy()
        if self.action_space.contains(actions):
            masks = game.action_masks()
            for i in np.flatnonzero(~masks[np.arange(self.num_envs), actions]):
                played[i] = _legal(actions[i], masks[i], self._randoms[i])
        observations, rewards, terminated, truncated, infos = self.env.step(played)
        return observations, rewards, terminated, truncated, infos | _told(played != actions)


def _legal(action: Any, mask: NDArray[np.bool_], random: np.random.Generator) -> Any:
    """The action, or a random legal one if it is illegal."""
    return action if mask[action] else random.choice(np.flatnonzero(mask))


def _told(replaced: NDArray[np.bool_]) -> Info:
    """The entries of a batch's info."""
    return {"replaced": replaced, "_replaced": np.ones(len(replaced), np.bool_)}
