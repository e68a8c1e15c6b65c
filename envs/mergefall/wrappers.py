"""Wrappers for learners, for both games, single and batched.

Each function but `encode` wraps a single environment or a native batch, and raises ValueError for another one. The
observation of a batch has a row for each game. A wrapped single environment has a `spec` that makes it again.

For agents that choose among boards, `env.unwrapped.afterstates()` has the board after each action.
"""

import operator
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Literal

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector.utils import batch_space

from mergefall.chance import STREAM, coins
from mergefall.checks import choice
from mergefall.env import GameEnv
from mergefall.games import batch_of_one, game_of
from mergefall.typing import Array, Bools, Environment, Info, Ints, Observation, Words
from mergefall.vector import GameVectorEnv


def planes(env: Environment) -> Any:
    """Observe float32[channels, rows, cols] from 0 to 1.

    - 2048: rows·cols + 2 channels; channel k marks the cells of rank k, and channel 0 the empty ones.
    - Tetris: the board, then n channels for each shown piece, one of them all ones; n is the number of piece ids. With
      hold n + 1 channels more, the last one for no held piece.
    - Tetris by keys: the board, the cells of the falling piece, in a match the opponent's board, then the pieces as in
      Tetris, and the `status`, whose numbers are divided by 16 (chains, waiting garbage) or by their largest value.

    >>> import mergefall
    >>> planes(gym.make("mergefall/Game2048-v0")).reset()[0].shape
    (18, 4, 4)
    >>> planes(gym.make_vec("mergefall/Tetris-v0", num_envs=3)).reset()[0].shape
    (3, 15, 20, 10)
    """
    return _viewed(env, "planes")


def flat(env: Environment) -> Any:
    """Observe vectors float32[n] from 0 to 1.

    - 2048: rows·cols one-hot ranks, cell by cell from the top left; n = rows·cols · (rows·cols + 2).
    - Tetris: the board by rows from the top, then one-hot pieces; n = rows·cols + pieces · (1 + preview). With hold
      pieces + 1 more, the last one for no held piece.
    - Tetris by keys: the boards of `planes`, then one number for each further channel.

    >>> import mergefall
    >>> flat(gym.make("mergefall/Game2048-v0")).reset()[0].shape
    (288,)
    >>> flat(gym.make_vec("mergefall/Tetris-v0", num_envs=3)).reset()[0].shape
    (3, 214)
    """
    return _viewed(env, "flat")


def encode(kind: Literal["flat", "planes"], observation: Observation, pieces: str = "tetromino") -> Array:
    """Encode an environment's own observation as `flat` or `planes` shows it, for a network that was trained on these.

    Args:
        kind: "flat" or "planes".
        observation: one observation or a batch.
        pieces: the environment's argument; "five" in Quintris.

    Raises ValueError if no environment observes this.

    >>> import mergefall
    >>> observation, _ = gym.make("mergefall/TetrisKeys-v0", preview=1).reset(seed=0)
    >>> encode("planes", observation).shape, encode("flat", observation).shape
    ((34, 24, 10), (512,))
    """
    choice("kind", kind, ("flat", "planes"))
    parts = set(observation) if isinstance(observation, Mapping) else {"ranks"}
    kinds = {"ranks": "Game2048", "opponent": "TetrisVersus", "place": "TetrisKeys"}
    game = game_of(f"mergefall/{next((kinds[part] for part in kinds if part in parts), 'Tetris')}-v0")
    batch, shown, single = game.read(observation)
    view = game(**(shown if "ranks" in parts else shown | {"pieces": pieces})).view(kind, batch)
    return view[0] if single else view


def replace_illegal(env: Environment) -> Any:
    """Play a random legal action in place of an illegal one, for policies that cannot use masks.

    Without masks, a deterministic policy that prefers an illegal action repeats it until the episode is truncated. Here
    every action leads on. ``info["replaced"]``, bool, says whether another action was played than the given one. The
    game's random stream determines which, so a seed fixes everything, and game i of a batch plays like a single
    environment.

    >>> import mergefall
    >>> env = replace_illegal(gym.make("mergefall/Game2048-v0"))
    >>> _ = env.reset(seed=0, options={"board": "2 4 8 16/. . . ./. . . ./. . . ."})
    >>> board, _, _, _, info = env.step(0)  # up changes nothing; down is the one legal action
    >>> board[3].tolist(), info["replaced"]
    ([1, 2, 3, 4], True)
    """
    return _wrapper(env, ReplaceIllegal, VectorReplaceIllegal)(env)


def observe_mask(env: Environment, observation: str = "observation", mask: str = "action_mask") -> Any:
    """Observe dictionaries that hold the action mask, for libraries that look for it there.

    - ``observation``: what `env` observes. It may be wrapped by `planes` or `flat`.
    - ``action_mask``: int8[actions], 1 for each legal action; as in `info`.

    The arguments name the keys: RLlib expects ``"observations"``, Tianshou ``"obs"`` and ``"mask"``, PettingZoo the
    defaults.

    >>> import mergefall
    >>> seen, _ = observe_mask(flat(gym.make("mergefall/Game2048-v0"))).reset(seed=0)
    >>> seen["observation"].shape, seen["action_mask"]
    ((288,), array([1, 1, 1, 1], dtype=int8))
    """
    return _viewed(env, "mask", keys=[observation, mask])


class VectorWrapper(gym.vector.VectorWrapper):
    """A wrapped batch with the methods that learners call on the native one."""

    env: Environment

    def action_masks(self) -> Bools:
        return self.env.action_masks()

    def clone_state(self) -> Any:
        return self.env.clone_state()

    def restore_state(self, state: Any, past: Any = None) -> None:
        self.env.restore_state(state, past)


class ViewObservation(gym.ObservationWrapper[Any, Any, Any], RecordConstructorArgs):
    """One environment whose observations are shown as `kind`: "planes", "flat" or "mask".

    `keys`, for "mask", names the observation and the mask.
    """

    def __init__(self, env: Environment, kind: str, keys: Any = None) -> None:
        RecordConstructorArgs.__init__(self, kind=kind, keys=keys)
        gym.ObservationWrapper.__init__(self, env)
        self._view, self.observation_space = _view(env, kind, keys)

    def observation(self, observation: Observation) -> Observation:
        game: Any = self.unwrapped
        return _shown(self._view, observation, game.action_masks().astype(np.int8))


class VectorViewObservation(VectorWrapper):
    """`ViewObservation` for batches, final observations included."""

    def __init__(self, env: Environment, kind: str, keys: Any = None) -> None:
        super().__init__(env)
        self._view, self.single_observation_space = _view(env, kind, keys)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)

    def reset(self, *, seed: Any = None, options: Info | None = None) -> tuple[Observation, Info]:
        observations, infos = self.env.reset(seed=seed, options=options)
        return self._shown(observations), infos

    def step(self, actions: Any) -> tuple[Observation, Any, Any, Any, Info]:
        observations, rewards, terminated, truncated, infos = self.env.step(actions)
        for i in np.flatnonzero(infos.get("_final_obs", ())):
            mask = infos["final_info"]["action_mask"][i].copy()
            infos["final_obs"][i] = _shown(self._view, infos["final_obs"][i], mask)
        return self._shown(observations), rewards, terminated, truncated, infos

    def _shown(self, observations: Observation) -> Observation:
        if isinstance(self._view, tuple):  # not from the infos: a reset of some games has the infos of these only
            return dict(zip(self._view, (observations, self.action_masks().astype(np.int8)), strict=True))
        return self._view(observations)


class ReplaceIllegal(gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """`replace_illegal` for one environment."""

    def __init__(self, env: Environment) -> None:
        RecordConstructorArgs.__init__(self)
        gym.Wrapper.__init__(self, env)

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> tuple[Observation, Info]:
        observation, info = self.env.reset(seed=seed, options=options)
        return observation, info | {"replaced": False}

    def step(self, action: Any) -> tuple[Observation, Any, bool, bool, Info]:
        game: Any = self.unwrapped
        replaced = False
        with suppress(TypeError):  # tensors are numbers, too
            action = operator.index(action)
        if self.action_space.contains(action):  # else the environment raises, with the reason
            masks = game.action_masks()[None]
            if replaced := not masks[0, action]:
                action = _drawn(masks, game.clone_state()[None])[0]
        observation, reward, terminated, truncated, info = self.env.step(action)
        return observation, reward, terminated, truncated, info | {"replaced": replaced}


class VectorReplaceIllegal(VectorWrapper):
    """`replace_illegal` for batches."""

    def reset(self, *, seed: Any = None, options: Info | None = None) -> tuple[Observation, Info]:
        observations, infos = self.env.reset(seed=seed, options=options)
        return observations, _told(infos, np.zeros(self.num_envs, np.bool_))

    def step(self, actions: Any) -> tuple[Observation, Any, Any, Any, Info]:
        games: Any = self.unwrapped
        replaced, given = np.zeros(self.num_envs, np.bool_), np.asarray(actions)
        if given.dtype.kind == "u":  # the space contains signed integers only
            given = given.astype(np.int64)
        if self.action_space.contains(given):  # else the environment raises, with the reason
            masks = self.action_masks()
            replaced = ~masks[np.arange(self.num_envs), given] & ~games.beginning()
            actions = np.where(replaced, _drawn(masks, games.clone_state()), given)
        observations, rewards, terminated, truncated, infos = self.env.step(actions)
        if "final_info" in infos:
            ended: Any = terminated | truncated
            infos = infos | {"final_info": _told(infos["final_info"], replaced & ended)}
            replaced = replaced & ~ended
        return observations, rewards, terminated, truncated, _told(infos, replaced)


def _told(infos: Info, replaced: Bools) -> Info:
    return infos | {"replaced": replaced, "_replaced": infos["_legal"].copy()}


def _drawn(masks: Bools, states: Words) -> Ints:
    """A legal action of each game int64[n], drawn uniformly by a coin that the game's random stream determines."""
    # The complement: `coins` of the stream itself is the adversary's.
    nth = (coins(~states[:, STREAM]) * masks.sum(axis=1)).astype(np.int64)
    return (masks.cumsum(axis=1) > nth[:, None]).argmax(axis=1)


def _wrapper(env: Environment, single: Any, batched: Any) -> Any:
    """The wrapper that is for an environment; raises ValueError for one that is not mergefall's."""
    if not isinstance(env.unwrapped, GameEnv | GameVectorEnv):
        raise ValueError(f"env is {env}; expected one of mergefall's or a native batch; of a SyncVectorEnv wrap each")
    return single if isinstance(env.unwrapped, GameEnv) else batched


def _view(env: Environment, kind: str, keys: Any) -> tuple[Any, gym.Space[Any]]:
    """(the view of a game's observations, or the keys of a mask, and the space of one game)."""
    game: Any = env.unwrapped
    own, seen = (getattr(one, "single_observation_space", one.observation_space) for one in (game, env))
    if kind == "mask":
        masks = gym.spaces.Box(0, 1, (game.rules.n_actions,), np.int8)
        return tuple(keys), gym.spaces.Dict({keys[0]: seen, keys[1]: masks})
    if seen != own:
        raise ValueError(f"env observes {seen}; {kind!r} needs the environment's own observations, {own}")
    return partial(game.rules.view, kind), game.rules.view_space(kind)


def _shown(view: Any, observation: Observation, mask: Array) -> Observation:
    """One game's observation by a view, or beside its mask."""
    if isinstance(view, tuple):
        return dict(zip(view, (observation, mask), strict=True))
    return view(batch_of_one(observation))[0]


def _viewed(env: Environment, kind: str, keys: Any = None) -> Any:
    return _wrapper(env, ViewObservation, VectorViewObservation)(env, kind, keys)
