"""The protocol that search players, tables and trained agents share.

A player is a policy over observations. ``predict`` is Stable-Baselines3's predictor protocol, so `evaluate_policy`
takes any player. ``play`` plays one whole episode: in the gym loop here, in a compiled loop where a player has one.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import gymnasium as gym
import mergefall  # noqa: F401  (registers the environments)
import numpy as np
from mergefall.checks import array
from mergefall.games import board_of, each, games
from mergefall.imports import name_of
from mergefall.typing import Array, Dict, Floats, Ints, Options


class NotFiniteError(ValueError):
    """NaN or infinity among the values of actions, or in the arrays of a file."""


def check_values(name: str, values: Floats) -> None:
    """Raises NotFiniteError if the player `name` values an action at NaN or +inf; `values` is float64[..., actions]."""
    nonsense = ~(values < np.inf)
    if nonsense.any():
        action, value = np.argwhere(nonsense)[0, -1], values[nonsense][0]
        raise NotFiniteError(f"{name} values action {action} at {value}; expected a finite number, or -inf")


def choose_unmasked(actions: Ints, masks: Any, n_actions: int, values: Callable[[], Floats]) -> Ints:
    """Choices int64[...], each masked one replaced by the unmasked action with the highest value (ties: the lowest).

    `masks` bool[..., n_actions] are False for masked actions; `values` returns float64[..., n_actions].
    Raises ValueError for masks of another shape, and if all actions are masked.

    >>> choose_unmasked(np.array([2, 0]), [[1, 1, 1], [0, 1, 1]], 3, lambda: np.array([[0, 0, 1], [3, 2, 1]]))
    array([2, 1])
    """
    allowed = array("action_masks", masks, f"{n_actions} truth values").astype(np.bool_)
    if allowed.size != actions.size * n_actions:
        raise ValueError(f"action_masks has shape {allowed.shape}; expected {(*actions.shape, n_actions)}")
    allowed = allowed.reshape(*actions.shape, n_actions)
    if not allowed.any(axis=-1).all():
        raise ValueError("action_masks masks all actions; expected at least one to choose from")
    masked = ~np.take_along_axis(allowed, actions[..., None], axis=-1)[..., 0]
    if not masked.any():
        return actions
    lowest = np.finfo(np.float64).min  # unlike -inf, above what is masked
    return np.where(masked, np.where(allowed, np.maximum(values(), lowest), -np.inf).argmax(axis=-1), actions)


Predictor: TypeAlias = Any  # an object with Stable-Baselines3's `predict`: our players and its models alike


@dataclass(frozen=True)
class Trajectory:
    """One finished episode: enough to replay it from its seed.

    - `actions`: uint8[length], uint16 where the action space is larger. A compiled loop keeps the first
      `mergefall_baselines.kernel_player.KEPT` actions; `length` counts all.
    - `terminated`: False if a cap ended the episode.
    - `figures`: the game's figures in the last ``info`` (2048: `score`, `max_tile`; Tetris: `score`, `lines`,
      `pieces`).
    - `length`: the number of actions. Default: ``len(actions)``.
    """

    seed: int
    actions: Array
    terminated: bool
    figures: dict[str, int] = field(hash=False)
    length: int | None = None

    def __len__(self) -> int:
        return len(self.actions) if self.length is None else self.length


class Player:
    """A policy over observations; subclasses say how a decision is made.

    - `name`: the registered name.
    - `options`: the options that the player was made with, JSON types.
    - `made_as`: ``make(made_as, **options)`` makes the same player; None if `make` did not make it.
    - `functions`: those of its options that hold functions, which `options` only names.
    - `plays`: arguments of the environment that the player plays by default; a class or a factory may have them.
    - `batched`: whether the player remembers nothing and decides for many games in little more time than for one, so
      that whole games are best played side by side.
    - `caches`: whether it remembers only to save time: asked about any observation alone, it decides as well.

    For searches over the player's values:

    - `rewards`: which rewards the values count, so that a search over them adds the same ones on the way to a leaf:
      True for the score (in Tetris lines), False for none, ``"log2"`` for log2(1 + score), None for others.
    - `gamma`: discount of each further move.
    - `heuristic`: the heuristic that the values come from; None: none.
    - `form`: its game, and what players need of it (`kernel_player.Form`); None: any game.
    - `sees_next`: whether the values may depend on more pieces than the current one.
    """

    name = "player"
    options: Mapping[str, Any] = {}
    made_as: str | None = None
    functions: Mapping[str, Any] = {}
    plays: Mapping[str, Any] = {}
    batched = False
    rewards: bool | str | None = True
    gamma: float = 1.0
    heuristic: Any = None
    form: Any = None
    sees_next = True
    caches = False

    def __repr__(self) -> str:
        return f"<{title(name_of_player(self), self.options)}>"

    def start(self, seed: int) -> Any:
        """The player's memory at the start of an episode; None if it remembers nothing."""
        return None

    def values(self, observation: Any, state: Any = None) -> Floats:
        """Value of each action, float64[n_actions] (batch: [n, n_actions]); -inf where illegal.

        Raises NotFiniteError, as `act`, `predict` and `play` do, if one of the values is NaN or +inf.
        """
        raise ValueError(f"{self.name} does not value actions; it only chooses one")

    def board_values(self, observation: Any) -> Floats:
        """Value of a board for the player to move, 0-d float64 (batch: float64[n]): that of its best action."""
        return self.values(observation).max(axis=-1)

    def search_values(self, observation: Any) -> tuple[Floats, Floats | None]:
        """The values of a batch of leaves, for a search: (`values`, `board_values`).

        The second is None if a board is worth as much as its best action.
        """
        own = type(self).board_values is not Player.board_values
        return self.values(observation), self.board_values(observation) if own else None

    def act(self, observation: Any, state: Any = None) -> Ints:
        """The chosen action: a 0-d int64 for one observation, int64[n] for a batch."""
        return self.predict(observation, state)[0]

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = True,
        action_masks: Any = None,
    ) -> tuple[Ints, Any]:
        """The chosen action and the next state (the predictor protocol of Stable-Baselines3 and sb3-contrib).

        Args:
            observation: one observation, or a batch.
            state: returned by `start` or by the last call. Default: ``start(0)``.
            episode_start: bool[n], where an episode begins; there the player forgets what it saw before. Its random
                stream continues.
            deterministic: ignored.
            action_masks: bool[n_actions] (batch: [n, n_actions]), the actions to choose from. Default: the legal ones.
                In place of a masked choice comes the action with the highest value (ties: the lowest) of the others.
                Raises ValueError for another shape, and if all actions are masked.

        By default it chooses the action with the highest value (ties: the lowest).
        """
        actions, values, after = self._decide_all(observation, state, episode_start, False)
        if action_masks is not None:
            actions = choose_unmasked(
                actions,
                action_masks,
                values.shape[-1],
                lambda: self._decide_all(observation, state, episode_start, True)[1],
            )
        return actions, after

    def _decide_all(self, observation: Any, state: Any, episode_start: Any, exact: bool) -> tuple[Ints, Floats, Any]:
        """(The chosen actions, the values of all, the next state); if not `exact`, other values may be bounds."""
        values = self.values(observation, state)
        return np.asarray(values.argmax(axis=-1)), values, state

    def with_rules(self, rules: Options) -> "Player":
        """This player under an environment's rules: fills in missing rules.

        Raises ValueError if the player was made for other rules.
        """
        return self

    def play(
        self, env_id: str, seed: int, env_kwargs: Options | None = None, max_episode_steps: int | None = None
    ) -> Trajectory:
        """One whole episode from ``reset(seed=seed)``."""
        return play_in_env(self, env_id, seed, env_kwargs, max_episode_steps)


class OfPredictor(Player):
    """A player of an object with Stable-Baselines3's ``predict``, or of a function (`predictor`) of an observation."""

    def __init__(self, predictor: Any) -> None:
        self.predictor, self.name = predictor, getattr(predictor, "name", Player.name)
        if hasattr(predictor, "predict"):
            self.predict = predictor.predict  # with its own arguments, `action_masks` perhaps among them
        else:
            self.name = name_of(predictor)

    def predict(  # of a function, which gets no `action_masks`  # pyright: ignore[reportIncompatibleMethodOverride]
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> tuple[Any, Any]:
        if np.ndim(board_of(observation)) == 2:
            return np.array(checked(self, self.predictor(observation))), None
        return np.array([checked(self, self.predictor(one)) for one in each(observation)], dtype=np.int64), None


def title(player: str, options: Options) -> str:
    """A player and its options in one line, without the checksum of a model.

    >>> title("2048/minimax", {"depth": 1})
    '2048/minimax depth=1'
    >>> title("2048/greedy", {"heuristic": {"name": "mine:board"}})
    '2048/greedy heuristic=mine:board'
    >>> title("tetris/keys", {"of": {"player": "tetris/beam", "width": 25}})
    'tetris/keys of=(tetris/beam width=25)'
    """
    shown = (f"{name}={_shown(value)}" for name, value in options.items() if name != "checksum")
    return " ".join([player, *shown])


def _shown(value: Any) -> Any:
    match value:
        case {"name": name} if len(value) == 1:
            return name
        case {"player": str(), **more}:
            return f"({title_of(value)})" if more else value["player"]
    return value


def title_of(spec: Any) -> str:
    """A player that is given by its name, or by a mapping of `player` and options, in one line.

    >>> title_of({"player": "2048/minimax", "depth": 1})
    '2048/minimax depth=1'
    """
    name, options = parts_of(spec) if isinstance(spec, Mapping) else (spec, {})
    return title(str(name), options)


def parts_of(spec: Options) -> tuple[Any, Dict]:
    """(The player that a mapping names, None if it names none; its options)."""
    options = dict(spec)
    return options.pop("name" if "name" in options else "player", None), options  # `name` in files of version 0.1.0


def name_of_player(player: Predictor) -> str:
    """A player's name; if it has none, that of its class.

    >>> name_of_player(OfPredictor(Player()))
    'Player'
    """
    name = getattr(player, "name", Player.name)
    return name if name != Player.name else type(getattr(player, "predictor", player)).__name__


def checked(player: Predictor, action: Any) -> int:
    """The action that a player chose for one observation, as an int.

    Raises ValueError unless it is an integer, or an array of one integer with at most one axis.
    """
    array = np.asarray(action)
    if array.dtype.kind not in "iu" or array.size != 1 or array.ndim > 1:
        raise ValueError(f"{name_of_player(player)} chose the action {action!r}; expected an integer")
    return int(array.item())


# -- games step by step -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Step:
    """A position of a game, or of each game of a batch, as the environment returned it, and what led to it."""

    observation: Any
    info: Dict
    action: Any = None  # at the start
    reward: Any = 0.0
    terminated: Any = False
    truncated: Any = False


Choose: TypeAlias = Callable[[Step], Any]  # the action at a step; None: the game is not played on


def steps(env: Any, seed: Any, choose: Choose) -> Iterator[Step]:
    """The steps of a game from ``reset(seed=seed)`` to its end, or until `choose` returns None.

    `env` may be a batch of environments; `seed` is then a list, and actions are arrays.

    >>> import gymnasium as gym, mergefall
    >>> env = gym.make("mergefall/Game2048-v0", rows=2, cols=2)
    >>> [step.action for step in steps(env, 0, recorded([0, 1]))]
    [None, 0, 1]
    """
    step = Step(*env.reset(seed=seed))
    yield step
    while not np.all(np.logical_or(step.terminated, step.truncated)):
        action = choose(step)
        if action is None:
            return
        observation, reward, terminated, truncated, info = env.step(action)
        step = Step(observation, info, action, reward, terminated, truncated)
        yield step


def recorded(actions: Iterable[Any]) -> Choose:
    """The actions in their order, then None."""
    left = iter(actions)
    return lambda step: next(left, None)


def chosen_by(player: Predictor, seed: int) -> Choose:
    """The actions of a player in a game from a seed.

    `player` is anything with ``predict``. A `Player` is started with the seed. A ``predict`` that takes `action_masks`,
    as MaskablePPO's does, gets the legal actions.
    """
    state = player.start(seed) if isinstance(player, Player) else None
    masked = "action_masks" in inspect.signature(player.predict).parameters

    def choose(step: Step) -> int:
        nonlocal state
        first = np.array([step.action is None])
        masks = {"action_masks": step.info["action_mask"].astype(np.bool_)} if masked else {}
        made: Any = player.predict(step.observation, state, episode_start=first, deterministic=True, **masks)
        if not isinstance(made, tuple) or len(made) != 2:
            raise ValueError(f"{name_of_player(player)}: predict returns {made!r}; expected (action, state)")
        state = made[1]
        return checked(player, made[0])

    return choose


def play_in_env(
    player: Predictor,
    env_id: str,
    seed: int,
    env_kwargs: Options | None = None,
    max_episode_steps: int | None = None,
    wrap: Callable[[Any], Any] = lambda env: env,
) -> Trajectory:
    """Play one episode in the gym loop: the slow twin of every compiled whole-episode loop.

    `player` is anything with ``predict`` (`chosen_by`). `wrap` is applied to the environment before play.
    """
    env = wrap(gym.make(env_id, max_episode_steps=max_episode_steps, **dict(env_kwargs or {})))
    game = steps(env, seed, chosen_by(player, seed))
    actions: list[int] = []
    try:
        step = next(game)
        for step in game:
            actions.append(step.action)
    finally:
        env.close()
    figures = {name: int(step.info[name]) for game in games().values() for name in game.figures if name in step.info}
    kind = np.uint8 if max(actions) < 256 else np.uint16
    return Trajectory(seed, np.array(actions, dtype=kind), step.terminated, figures)
