"""Observation wrappers for learners: Tetris as an array that a network takes.

Each function wraps a single Tetris environment or a native batch of them; the observation of a batch has a row for each
game. n is the number of piece ids. (Before Gymnasium's own `SyncVectorEnv`, wrap each environment instead.)

    planes(env)                float32[1 + n · (1 + preview), rows, cols]   for convolutional networks
    flat(env)                  float32[rows · cols + n · (1 + preview)]     for multilayer perceptrons
    features(env, heuristic)   float32[k + n · (1 + preview)]               a heuristic's k board terms

For agents that choose among boards instead, `env.unwrapped.afterstates()` has the board after each action.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from mergefall.games import batch_of_one
from mergefall.tetris.heuristics import Heuristic
from mergefall.tetris.heuristics import heuristic as make_heuristic
from mergefall.tetris.rules import Rules
from mergefall.typing import Environment, Info, Observation, Options

Spec = str | Options | Heuristic  # of a heuristic


def planes(env: Environment) -> Any:
    """Observe planes float32[1 + n · (1 + preview), rows, cols]: the board, then n one-hot planes per shown piece.

    >>> import mergefall
    >>> planes(gym.make("mergefall/Tetris-v0")).reset()[0].shape
    (15, 20, 10)
    """
    return _wrapped(env, "planes")


def flat(env: Environment) -> Any:
    """Observe vectors float32[rows · cols + n · (1 + preview)]: the board by rows from the top, then one-hot pieces.

    >>> import mergefall
    >>> flat(gym.make_vec("mergefall/Tetris-v0", num_envs=3)).reset()[0].shape
    (3, 214)
    """
    return _wrapped(env, "flat")


def features(env: Environment, heuristic: Spec) -> Any:
    """Observe vectors float32[k + n · (1 + preview)]: a heuristic's board terms, unscaled, then one-hot pieces.

    The terms are those of `board_terms`, in that order. For the terms of placements, see the environment's
    `afterstate_terms`.

    >>> import mergefall
    >>> features(gym.make("mergefall/Tetris-v0"), "bcts").reset()[0].shape
    (20,)
    """
    return _wrapped(env, "features", heuristic)


def one_hot(observations: dict[str, Any], n: int) -> NDArray[np.float32]:
    """The current piece and the queue, one-hot: float32[batch, n · (1 + preview)].

    >>> one_hot({"piece": np.array([2]), "queue": np.array([[0]])}, 3)
    array([[0., 0., 1., 1., 0., 0.]], dtype=float32)
    """
    pieces = np.asarray(observations["piece"])[:, None]
    if "queue" in observations:
        pieces = np.concatenate([pieces, observations["queue"]], axis=1)
    return np.eye(n, dtype=np.float32)[pieces].reshape(len(pieces), -1)


@dataclass(frozen=True)
class View:
    """A view of observations: `space` of one game's, and a call that converts a batch."""

    rules: Rules
    kind: str  # "planes", "flat" or "features"
    heuristic: Heuristic | None  # of "features"

    def __call__(self, observations: dict[str, Any]) -> NDArray[np.float32]:
        board, pieces = observations["board"], one_hot(observations, self.rules.n_pieces)
        if self.kind == "planes":
            constant = np.broadcast_to(pieces[:, :, None, None], (*pieces.shape, *board.shape[1:]))
            return np.concatenate([board[:, None].astype(np.float32), constant], axis=1)
        if self.heuristic is None:
            return np.concatenate([board.reshape(len(board), -1), pieces], axis=1)
        terms = np.stack(list(self.heuristic.board_terms(board).values()), axis=1, dtype=np.float32)
        return np.concatenate([terms, pieces], axis=1)

    @property
    def space(self) -> gym.spaces.Box:
        """The space of one game's view."""
        rows, cols, pieces = self.rules.rows, self.rules.cols, self.rules.n_pieces * (1 + self.rules.preview)
        if self.kind == "planes":
            return gym.spaces.Box(0, 1, (1 + pieces, rows, cols), np.float32)
        if self.heuristic is None:
            return gym.spaces.Box(0, 1, (rows * cols + pieces,), np.float32)
        terms = len(self.heuristic.board_terms(np.zeros((rows, cols), np.uint8)))
        most = cols * rows * (rows + 1)  # beyond any sum over cells of depths or heights
        low, high = [-most] * terms + [0] * pieces, [most] * terms + [1] * pieces
        return gym.spaces.Box(np.array(low, np.float32), np.array(high, np.float32), dtype=np.float32)


class ViewObservation(gym.ObservationWrapper[Any, Any, Any], RecordConstructorArgs):
    """One environment through a `View`."""

    def __init__(self, env: Environment, kind: str, heuristic: Spec | None = None) -> None:
        RecordConstructorArgs.__init__(self, kind=kind, heuristic=heuristic)
        gym.ObservationWrapper.__init__(self, env)
        self._view = _view_of(env, kind, heuristic)
        self.observation_space = self._view.space

    def observation(self, observation: dict[str, Any]) -> NDArray[np.float32]:
        return self._view(batch_of_one(observation))[0]


class VectorViewObservation(gym.vector.VectorWrapper):
    """A batched environment through a `View`, final observations included."""

    def __init__(self, env: Environment, kind: str, heuristic: Spec | None = None) -> None:
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


def _view_of(env: Environment, kind: str, heuristic: Spec | None) -> View:
    rules = getattr(env.unwrapped, "rules", None)
    if not isinstance(rules, Rules):
        raise ValueError(f"env is {env}; expected a Tetris environment, single or natively batched")
    return View(rules, kind, None if heuristic is None else make_heuristic(heuristic))


def _wrapped(env: Environment, kind: str, heuristic: Spec | None = None) -> Any:
    batched = isinstance(env.unwrapped, gym.vector.VectorEnv)
    return (VectorViewObservation if batched else ViewObservation)(env, kind, heuristic)
