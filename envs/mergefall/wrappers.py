"""Wrappers for learners, for both games, single and batched.

Each function wraps a single environment, a native batch, or a `SyncVectorEnv` of single environments. The observation
of a batch has a row for each game. A wrapped single environment has a `spec` that makes it again.

    planes(env)                float32[channels, rows, cols], for convolutional networks
    flat(env)                  float32[n], for multilayer perceptrons
    features(env, heuristic)   float32[k + …], the k board terms of a Tetris heuristic, and the pieces
    replace_illegal(env)       plays a random legal action in place of an illegal one
    observe_mask(env)          dictionaries of the observation and the action mask

`View2048` and `ViewTetris`, in `views.py` of each game, say what the first three show. For agents that choose among
boards instead, `env.unwrapped.afterstates()` has the board after each action.
"""

from __future__ import annotations

import operator
from contextlib import suppress
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from mergefall.chance import STREAM, coins
from mergefall.checks import mapping
from mergefall.games import batch_of_one
from mergefall.library import recorded
from mergefall.typing import Environment, Info, Observation
from mergefall.vector import GameVectorEnv, resets_itself


def planes(env: Environment) -> Any:
    """Observe float32[channels, rows, cols] of 0 and 1.

    - 2048: rows·cols + 2 channels; channel k marks the cells of rank k, and channel 0 the empty ones.
    - Tetris: the board, then n channels for each shown piece, one of them all ones; n is the number of piece ids.

    Raises ValueError for an environment that is not mergefall's.

    >>> import mergefall
    >>> planes(gym.make("mergefall/Game2048-v0")).reset()[0].shape
    (18, 4, 4)
    >>> planes(gym.make_vec("mergefall/Tetris-v0", num_envs=3)).reset()[0].shape
    (3, 15, 20, 10)
    """
    return _viewed(env, "planes")


def flat(env: Environment) -> Any:
    """Observe vectors float32[n] of 0 and 1.

    - 2048: rows·cols one-hot ranks, cell by cell from the top left; n = rows·cols · (rows·cols + 2).
    - Tetris: the board by rows from the top, then one-hot pieces; n = rows·cols + pieces · (1 + preview).

    Raises ValueError for an environment that is not mergefall's.

    >>> import mergefall
    >>> flat(gym.make("mergefall/Game2048-v0")).reset()[0].shape
    (288,)
    >>> flat(gym.make_vec("mergefall/Tetris-v0", num_envs=3)).reset()[0].shape
    (3, 214)
    """
    return _viewed(env, "flat")


def features(env: Environment, heuristic: Any) -> Any:
    """Observe a Tetris heuristic's board terms, unscaled, then one-hot pieces: float32[k + pieces · (1 + preview)].

    - `heuristic`: a name, a mapping of `name` and weights, a function of a board, or a heuristic.

    The terms are those of `board_terms`, in that order. For the terms of placements, see the environment's
    `afterstate_terms`. Raises ValueError for an environment that is not of Tetris, and for an unknown heuristic.

    >>> import mergefall
    >>> features(gym.make("mergefall/Tetris-v0"), "bcts").reset()[0].shape
    (20,)
    """
    return _viewed(env, "features", heuristic)


def replace_illegal(env: Environment) -> Any:
    """Play a random legal action in place of an illegal one, for policies that cannot use masks.

    Without masks, a deterministic policy that prefers an illegal action repeats it until the episode is truncated. Here
    every action leads on. ``info["replaced"]``, bool, says whether another action was played than the given one. The
    game's random stream determines which, so a seed fixes everything, and game i of a batch plays like a single
    environment.

    Raises ValueError for an environment that is not mergefall's.

    >>> import mergefall
    >>> env = replace_illegal(gym.make("mergefall/Game2048-v0"))
    >>> _ = env.reset(seed=0, options={"board": "2 4 8 16/. . . ./. . . ./. . . ."})
    >>> board, _, _, _, info = env.step(0)  # up changes nothing; down is the one legal action
    >>> board[3].tolist(), info["replaced"]
    ([1, 2, 3, 4], True)
    """
    _game(env, "view_type")  # raises ValueError
    return (VectorReplaceIllegal if _batched(env) else ReplaceIllegal)(env)


def observe_mask(env: Environment, observation: str = "observation", mask: str = "action_mask") -> Any:
    """Observe dictionaries that hold the action mask, for libraries that look for it there.

    - ``observation``: what `env` observes. It may be wrapped by `planes`, `flat` or `features`.
    - ``action_mask``: int8[actions], 1 for each legal action; as in `info`.

    The arguments name the keys: RLlib expects ``"observations"``, Tianshou ``"obs"`` and ``"mask"``, PettingZoo the
    defaults. Raises ValueError for an environment that is not mergefall's, and for two equal keys.

    >>> import mergefall
    >>> seen, _ = observe_mask(flat(gym.make("mergefall/Game2048-v0"))).reset(seed=0)
    >>> seen["observation"].shape, seen["action_mask"]
    ((288,), array([1, 1, 1, 1], dtype=int8))
    """
    _game(env, "view_type")  # raises ValueError
    return (VectorObserveMask if _batched(env) else ObserveMask)(env, observation, mask)


class VectorWrapper(gym.vector.VectorWrapper):
    """A wrapped batched environment with the methods that learners call on the native one."""

    env: Environment

    def action_masks(self) -> NDArray[np.bool_]:
        """The legal actions: bool[n, actions]; all True if a game is over."""
        return self.env.action_masks()

    def clone_state(self) -> Any:
        """The state of all games and of the wrapper."""
        return self.env.clone_state()

    def restore_state(self, state: Any) -> None:
        """Go back to what `clone_state` returned."""
        self.env.restore_state(state)


class ViewObservation(gym.ObservationWrapper[Any, Any, Any], RecordConstructorArgs):
    """One environment whose observations are shown as `kind`: "planes", "flat" or "features"."""

    def __init__(self, env: Environment, kind: str, heuristic: Any = None) -> None:
        RecordConstructorArgs.__init__(self, kind=kind, heuristic=recorded(heuristic))
        gym.ObservationWrapper.__init__(self, env)
        self._view = _view(env, kind, heuristic)
        self.observation_space = self._view.space

    def observation(self, observation: Observation) -> NDArray[np.float32]:
        return self._view(batch_of_one(observation))[0]


class VectorViewObservation(VectorWrapper):
    """`ViewObservation` for batched environments, final observations included."""

    def __init__(self, env: Environment, kind: str, heuristic: Any = None) -> None:
        super().__init__(env)
        self._view = _view(env, kind, heuristic)
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


class ReplaceIllegal(gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """`replace_illegal` for one environment."""

    def __init__(self, env: Environment) -> None:
        RecordConstructorArgs.__init__(self)
        gym.Wrapper.__init__(self, env)
        self._begins = False  # whether the next step is Gymnasium's `Autoreset` beginning an episode

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> tuple[Observation, Info]:
        observation, info = self.env.reset(seed=seed, options=options)
        self._begins = False
        return observation, info | {"replaced": False}

    def step(self, action: Any) -> tuple[Observation, Any, bool, bool, Info]:
        game: Any = self.unwrapped
        replaced = False
        with suppress(TypeError):  # tensors are numbers, too
            action = operator.index(action)
        if not self._begins and self.action_space.contains(action):  # else the environment raises, with the reason
            masks = game.action_masks()[None]
            if replaced := not masks[0, action]:
                action = _drawn(masks, game.clone_state()[None])[0]
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._begins = (terminated or truncated) and resets_itself(self.env)
        return observation, reward, terminated, truncated, info | {"replaced": replaced}


class VectorReplaceIllegal(VectorWrapper):
    """`replace_illegal` for batched environments."""

    def __init__(self, env: Environment) -> None:
        super().__init__(env)
        self._mode = env.metadata["autoreset_mode"]
        self._ended: Any = np.zeros(self.num_envs, np.bool_)  # for Sync batches; native ones know it

    def reset(self, *, seed: Any = None, options: Info | None = None) -> tuple[Observation, Info]:
        mask = mapping("reset options", options or {}).get(
            "reset_mask"
        )  # read first: SyncVectorEnv removes it from options
        observations, infos = self.env.reset(seed=seed, options=options)
        self._ended[slice(None) if mask is None else mask] = False
        return observations, _told(infos, np.zeros(self.num_envs, np.bool_))

    def step(self, actions: Any) -> tuple[Observation, Any, Any, Any, Info]:
        replaced, given = np.zeros(self.num_envs, np.bool_), np.asarray(actions)
        if given.dtype.kind == "u":  # the space contains signed integers only
            given = given.astype(np.int64)
        if self.action_space.contains(given):  # else the environment raises, with the reason
            actions, replaced = self._replaced(given)
        observations, rewards, terminated, truncated, infos = self.env.step(actions)
        self._ended = terminated | truncated
        if self._mode is AutoresetMode.SAME_STEP and self._ended.any():
            infos = infos | {"final_info": _told(infos["final_info"], replaced & self._ended)}
            replaced = replaced & ~self._ended
        return observations, rewards, terminated, truncated, _told(infos, replaced)

    def _replaced(self, actions: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """The actions to play, and which of them are not the given ones."""
        native = isinstance(self.unwrapped, GameVectorEnv)
        games: Any = self.unwrapped
        masks = games.action_masks() if native else np.stack(games.call("action_masks"))
        states = games.clone_state() if native else np.stack(games.call("clone_state"))
        replaced = ~masks[np.arange(self.num_envs), actions]
        if self._mode is AutoresetMode.NEXT_STEP:
            replaced &= ~(games.beginning() if native else self._ended)
        return np.where(replaced, _drawn(masks, states), actions), replaced


class ObserveMask(gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """`observe_mask` for one environment."""

    def __init__(self, env: Environment, observation: str = "observation", mask: str = "action_mask") -> None:
        RecordConstructorArgs.__init__(self, observation=observation, mask=mask)
        gym.Wrapper.__init__(self, env)
        self._keys = (observation, mask)
        self.observation_space = _with_mask(self._keys, env.observation_space, env.action_space)

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> tuple[Observation, Info]:
        observation, info = self.env.reset(seed=seed, options=options)
        return self._seen(observation, info), info

    def step(self, action: Any) -> tuple[Observation, Any, bool, bool, Info]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        return self._seen(observation, info), reward, terminated, truncated, info

    def _seen(self, observation: Observation, info: Info) -> Observation:
        return dict(zip(self._keys, (observation, info["action_mask"].copy()), strict=True))


class VectorObserveMask(VectorWrapper):
    """`observe_mask` for batched environments, final observations included."""

    def __init__(self, env: Environment, observation: str = "observation", mask: str = "action_mask") -> None:
        super().__init__(env)
        self._keys = (observation, mask)
        self.single_observation_space = _with_mask(self._keys, env.single_observation_space, env.single_action_space)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self._masks = np.zeros((self.num_envs, env.single_action_space.n), np.int8)

    def reset(self, *, seed: Any = None, options: Info | None = None) -> tuple[Observation, Info]:
        observations, infos = self.env.reset(seed=seed, options=options)
        return self._seen(observations, infos), infos

    def step(self, actions: Any) -> tuple[Observation, Any, Any, Any, Info]:
        observations, rewards, terminated, truncated, infos = self.env.step(actions)
        if "final_obs" in infos:
            final, masks = infos["final_obs"], infos["final_info"]["action_mask"]
            for i in np.flatnonzero(infos["_final_obs"]):
                final[i] = dict(zip(self._keys, (final[i], masks[i].copy()), strict=True))
        return self._seen(observations, infos), rewards, terminated, truncated, infos

    def restore_state(self, state: Any) -> None:
        super().restore_state(state)
        self._masks = self.action_masks().astype(np.int8)

    def _seen(self, observations: Observation, infos: Info) -> Observation:
        fresh = infos["_action_mask"]  # a reset of some games tells the masks of these only
        self._masks[fresh] = infos["action_mask"][fresh]
        return dict(zip(self._keys, (observations, self._masks.copy()), strict=True))


def _with_mask(keys: tuple[str, str], observations: Any, actions: Any) -> gym.spaces.Dict:
    if keys[0] == keys[1]:
        raise ValueError(f"observation and mask are both {keys[0]!r}; expected two names")
    return gym.spaces.Dict({keys[0]: observations, keys[1]: gym.spaces.Box(0, 1, (actions.n,), np.int8)})


def _told(infos: Info, replaced: NDArray[np.bool_]) -> Info:
    return infos | {"replaced": replaced, "_replaced": infos["_legal"].copy()}


def _drawn(masks: NDArray[np.bool_], states: NDArray[np.uint64]) -> NDArray[np.int64]:
    """A legal action of each game int64[n], drawn uniformly by a coin that the game's random stream determines."""
    # The complement: `coins` of the stream itself is the adversary's.
    nth = (coins(~states[:, STREAM]) * masks.sum(axis=1)).astype(np.int64)
    return (masks.cumsum(axis=1) > nth[:, None]).argmax(axis=1)


def _batched(env: Environment) -> bool:
    return isinstance(env.unwrapped, gym.vector.VectorEnv)


def _game(env: Environment, needed: str) -> Any:
    """The unwrapped environment, of a Sync batch the first one; raises ValueError if it has no attribute `needed`."""
    game: Any = env.unwrapped
    game = game.envs[0].unwrapped if hasattr(game, "envs") else game
    if not hasattr(game, needed):
        raise ValueError(f"env is {env}; expected one of mergefall's, or a native or Sync batch of them")
    return game


def _view(env: Environment, kind: str, heuristic: Any) -> Any:
    game = _game(env, "view_type")
    if kind == "features" and not hasattr(game, "afterstate_terms"):
        raise ValueError(f"env is {env}; expected a Tetris environment, whose heuristics have board terms")
    own, seen = (getattr(one, "single_observation_space", one.observation_space) for one in (env.unwrapped, env))
    if seen != own:
        raise ValueError(f"env observes {seen}; {kind!r} needs the environment's own observations, {own}")
    return game.view_type.read(game.rules, kind, heuristic)


def _viewed(env: Environment, kind: str, heuristic: Any = None) -> Any:
    return (VectorViewObservation if _batched(env) else ViewObservation)(env, kind, heuristic)
