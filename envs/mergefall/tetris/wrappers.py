"""Observations for learners: Tetris as planes, as heights, as features, and as the batch of boards to choose from.

Each function takes a single Tetris environment or a native batch and returns it wrapped. The observation of a batch has
a row for each game. (For Gymnasium's own vector environments, wrap each environment before it goes in.)

    planes(env)          float32[1 + n · (1 + preview), rows, cols]   for convolutions
    flat(env)            float32[rows · cols + n · (1 + preview)]     for multilayer perceptrons
    heights(env)         float32[cols + n · (1 + preview)]            the surface only
    features(env, name)  float32[k + n · (1 + preview)]               a heuristic's terms of the board
    afterstates(env)     a dict of boards, rewards, legal             to choose the best of
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from mergefall.tetris.heuristics import heuristic as chosen_heuristic
from mergefall.tetris.rules import Rules

Observe = Callable[[dict[str, Any]], Any]  # a batch of observations to what the learner sees of each game


def one_hot(observations: dict[str, Any], n: int) -> NDArray[np.float32]:
    """The current piece and the next ones, one-hot: float32[batch, n · (1 + preview)].

    >>> one_hot({"piece": np.array([2]), "next": np.array([[0]])}, 3)
    array([[0., 0., 1., 1., 0., 0.]], dtype=float32)
    """
    queue = np.asarray(observations["piece"])[:, None]
    if "next" in observations:
        queue = np.concatenate([queue, observations["next"]], axis=1)
    return np.eye(n, dtype=np.float32)[queue].reshape(len(queue), -1)


def column_heights(boards: NDArray[np.uint8]) -> NDArray[np.int64]:
    """The heights int64[..., cols] of boards [..., rows, cols]: rows from the floor to the highest filled cell.

    >>> column_heights(np.array([[0, 0, 1], [1, 0, 0]]))
    array([1, 0, 2])
    """
    rows = boards.shape[-2]
    filled = boards != 0
    return np.where(filled.any(axis=-2), rows - filled.argmax(axis=-2), 0)


def planes(env: Any) -> Any:
    """Planes float32[1 + n · (1 + preview), rows, cols]: the board, then for each piece shown n planes, one all ones.

    >>> import mergefall
    >>> planes(gym.make("mergefall/Tetris-v0")).reset()[0].shape
    (15, 20, 10)
    """
    rules = _rules_of(env)

    def observe(observations: dict[str, Any]) -> NDArray[np.float32]:
        board = observations["board"][:, None].astype(np.float32)
        hot = one_hot(observations, rules.n_pieces)[:, :, None, None]
        return np.concatenate([board, np.broadcast_to(hot, (*hot.shape[:2], *board.shape[2:]))], axis=1)

    shape = (1 + rules.n_pieces * (1 + rules.preview), rules.rows, rules.cols)
    return _wrapped(env, observe, gym.spaces.Box(0, 1, shape, np.float32))


def flat(env: Any) -> Any:
    """Vectors float32[rows · cols + n · (1 + preview)]: the board row by row from the top, then the pieces one-hot.

    >>> import mergefall
    >>> flat(gym.make_vec("mergefall/Tetris-v0", num_envs=3)).reset()[0].shape
    (3, 214)
    """
    rules = _rules_of(env)

    def observe(observations: dict[str, Any]) -> NDArray[np.float32]:
        board = observations["board"]
        return np.concatenate([board.reshape(len(board), -1), one_hot(observations, rules.n_pieces)], axis=1)

    size = rules.rows * rules.cols + rules.n_pieces * (1 + rules.preview)
    return _wrapped(env, observe, gym.spaces.Box(0, 1, (size,), np.float32))


def heights(env: Any) -> Any:
    """Vectors float32[cols + n · (1 + preview)]: column heights as parts of the field's, then the pieces one-hot.

    Holes do not show.

    >>> import mergefall
    >>> heights(gym.make("mergefall/Tetris-v0", cols=6, preview=0)).reset()[0].shape
    (13,)
    """
    rules = _rules_of(env)

    def observe(observations: dict[str, Any]) -> NDArray[np.float32]:
        parts = (column_heights(observations["board"]) / rules.rows).astype(np.float32)
        return np.concatenate([parts, one_hot(observations, rules.n_pieces)], axis=1)

    size = rules.cols + rules.n_pieces * (1 + rules.preview)
    return _wrapped(env, observe, gym.spaces.Box(0, 1, (size,), np.float32))


def features(env: Any, heuristic: Any) -> Any:
    """Vectors float32[k + n · (1 + preview)]: a heuristic's k terms of the board, unscaled, then the pieces one-hot.

    The terms are those of `heuristic(…).board_terms`, in that order; those of a placement are `afterstate_terms` of
    the environment.

    >>> import mergefall
    >>> features(gym.make("mergefall/Tetris-v0"), "bcts").reset()[0].shape
    (20,)
    """
    rules, chosen = _rules_of(env), chosen_heuristic(heuristic)

    def observe(observations: dict[str, Any]) -> NDArray[np.float32]:
        terms = np.stack(list(chosen.board_terms(observations["board"]).values()), axis=1, dtype=np.float32)
        return np.concatenate([terms, one_hot(observations, rules.n_pieces)], axis=1)

    count = len(chosen.board_terms(np.zeros((rules.rows, rules.cols), np.uint8)))
    size = count + rules.n_pieces * (1 + rules.preview)
    most = rules.cols * rules.rows * (rules.rows + 1)  # beyond any sum over cells of depths or heights
    high = np.array([most] * count + [1] * (size - count), np.float32)
    low = np.array([-most] * count + [0] * (size - count), np.float32)
    return _wrapped(env, observe, gym.spaces.Box(low, high, dtype=np.float32))


def afterstates(env: Any) -> Any:
    """What each action leads to: a dict of boards uint8[actions, rows, cols], rewards float64[actions], legal int8.

    For agents that value boards instead of actions: the action's number is the row. Where an action is illegal the
    board is the present one; in a terminal state none is legal. A batched environment must not reset within a step
    (`"SameStep"`): the boards after an episode's last state would be gone.

    >>> import mergefall
    >>> observation, _ = afterstates(gym.make("mergefall/Tetris-v0")).reset(options={"piece": "O"})
    >>> observation["boards"].shape, observation["legal"].sum()
    ((40, 20, 10), np.int64(9))
    """
    rules = _rules_of(env)
    n, highest = rules.n_actions, float(rules.payments().max())
    space = gym.spaces.Dict(
        boards=gym.spaces.Box(0, 1, (n, rules.rows, rules.cols), np.uint8),
        rewards=gym.spaces.Box(0, highest, (n,), np.float64),
        legal=gym.spaces.MultiBinary(n),
    )
    batched = isinstance(env.unwrapped, gym.vector.VectorEnv)
    if batched and env.unwrapped.autoreset_mode is AutoresetMode.SAME_STEP:
        raise ValueError("autoreset_mode is 'SameStep'; expected 'NextStep' or 'Disabled' for afterstates")

    def observe(observations: dict[str, Any]) -> dict[str, Any]:
        boards, rewards, legal = env.unwrapped.afterstates()
        found = {"boards": boards, "rewards": rewards, "legal": legal.astype(np.int8)}
        return found if batched else {name: array[None] for name, array in found.items()}

    return _wrapped(env, observe, space)


def _rules_of(env: Any) -> Rules:
    rules = getattr(env.unwrapped, "rules", None)
    if not isinstance(rules, Rules):
        raise ValueError(f"env is {env}; expected a Tetris environment, single or natively batched")
    return rules


def _wrapped(env: Any, observe: Observe, space: gym.Space[Any]) -> Any:
    if isinstance(env.unwrapped, gym.vector.VectorEnv):
        return _Batched(env, observe, space)
    return _Single(env, observe, space)


class _Single(gym.ObservationWrapper):
    """One environment seen as a batch of one."""

    def __init__(self, env: Any, observe: Observe, space: gym.Space[Any]) -> None:
        super().__init__(env)
        self._observe = observe
        self.observation_space = space

    def observation(self, observation: dict[str, Any]) -> Any:
        seen = self._observe({name: np.asarray(value)[None] for name, value in observation.items()})
        return {name: value[0] for name, value in seen.items()} if isinstance(seen, dict) else seen[0]


class _Batched(gym.vector.VectorWrapper):
    """A batched environment seen through `observe`, the final observations of games that restart included."""

    def __init__(self, env: Any, observe: Observe, space: gym.Space[Any]) -> None:
        super().__init__(env)
        self._observe = observe
        self.single_observation_space = space
        self.observation_space = batch_space(space, self.num_envs)

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        observations, infos = self.env.reset(seed=seed, options=options)
        return self._observe(observations), infos

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        observations, rewards, terminated, truncated, infos = self.env.step(actions)
        if "final_obs" in infos:
            final = infos["final_obs"]
            for i in np.flatnonzero(infos["_final_obs"]):
                final[i] = self._observe({name: np.asarray(value)[None] for name, value in final[i].items()})[0]
        return self._observe(observations), rewards, terminated, truncated, infos
