"""The part of `Rules` that the games share: arguments, actions, starts of episodes, states to restore."""

import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, fields
from functools import cache
from importlib import import_module
from typing import Any, ClassVar, get_args, get_type_hints

import gymnasium as gym
import numpy as np

from mergefall.chance import HALF, STREAM, Outcomes, forced
from mergefall.checks import boolean, choice, integer, made_of, typed
from mergefall.kernels import direct
from mergefall.typing import Array, Bools, Dict, Ints, Options, Words

# What an argument is for. Each use from "game" on is one of "game", too, and each later one of all before it.
USES = (
    "training",  # it says what is paid, or when an episode is cut off
    "game",  # it makes the game
    "players",  # players need to know it
    "spaces",  # the spaces of observations or actions depend on it
    "observations",  # the shapes of observations show it
)


def argument(default: Any, use: str, low: int | None = None, high: int | None = None, **options: Any) -> Any:
    """A field of a game's `Rules`: its default, one of `USES`, for an integer its range, and options of the field."""
    limits = None if low is None else (low, high)
    return field(default=default, metadata={"use": USES.index(use), "range": limits}, **options)


class GameRules:
    """A game: the arguments that make it, which the single and the batched environment share, and what it is called.

    Each game has a frozen dataclass of it, `Rules`, whose fields are arguments of the environment (`argument`). Raises
    ValueError for an argument of another type or out of its range.
    """

    name: ClassVar[str]  # the first part of its players' names, as in `2048/expectimax`
    size: ClassVar[tuple[str, str]]  # the arguments that size the board, in the order in which its literature says them
    figures: ClassVar[tuple[str, ...]]  # the integers in an episode's last `info` that measure it
    headline: ClassVar[str]  # the figure that players are compared by
    action: ClassVar[str]  # the word for one action
    turn: ClassVar[str]  # and for one move, which may take several
    turns: ClassVar[str]  # the figure that counts moves; `length` counts actions
    # Whether every move is equally likely to end the game, so that the headline is distributed exponentially. Then
    # `exponential_mean` estimates the mean from games that a cap ended.
    memoryless = False
    by_keys = False  # whether an action is a key, of which a turn takes several, each a 60th of a second
    matches = False  # whether the headline is 1 for a match won, 0 for a draw, -1 for one lost; states have two halves

    reward: Any
    illegal_limit: int
    parts: ClassVar[tuple[str, ...]]  # the options of `reset`
    kernels: ClassVar[Any]  # the game's module `batch`
    more: Any = ()  # what the kernels `look` and `observe` take besides; perhaps a property
    illegal_word: ClassVar[int]  # the words of a state that count illegal actions in a row, and all actions
    steps_word: ClassVar[int]
    timed = False  # whether something happens while a player does nothing

    # What a game implements, besides `afterstates`:
    n_actions: Any  # a property
    seen: Any  # (count) -> arrays for what the kernel `step` writes of so many games
    shown: Any  # (these) -> (observations, infos by key)
    limits: Any  # (max_steps, 0 for none) -> what the kernel `step` takes besides
    observations: Any  # (states uint64[n, words]) -> what players see of them, a batch of observations
    states: Any  # its inverse: (observations) -> states that show them; raises ValueError for what no game shows
    # A class method: (one observation or a batch) -> (a batch, the arguments that its shape shows, whether it was one).
    read: Any
    figures_of: Any  # (state) -> the numbers named in `figures`
    view: Any  # (kind "planes" or "flat", observations) -> float32[n, …] of 0 and 1, for `mergefall.wrappers`
    _blank_states: Any  # (count) -> states of games that have not begun, without random streams
    _start: Any  # (checked `reset` options) -> a start, a row for the kernel `begin`
    _no_start: Any  # () -> the row that stands for an ordinary start
    _draws: Any  # (state, legal action) -> the bounds of the random bits for each chance outcome, as `forced` has them
    _faults: Any  # (states) -> what kernels rely on: (name, its value in each, where it is wrong, what is expected), …

    def __post_init__(self) -> None:
        for one in fields(self):  # pyright: ignore[reportArgumentType]
            value, kind = getattr(self, one.name), self._kinds()[one.name]
            if one.metadata["range"]:
                object.__setattr__(self, one.name, integer(one.name, value, *one.metadata["range"]))
            elif kind is bool:
                boolean(one.name, value)
            elif get_args(kind) and isinstance(one.default, str):
                choice(one.name, value, get_args(kind))

    @classmethod
    @cache
    def _kinds(cls) -> Dict:
        return get_type_hints(cls)

    @classmethod
    def choices(cls, name: str) -> tuple[str, ...]:
        """The texts that an argument may be."""
        return get_args(cls._kinds()[name])

    @classmethod
    def arguments(cls, use: str) -> tuple[str, ...]:
        """The arguments that are for a use, one of `USES`.

        >>> from mergefall.games import game_of
        >>> game_of("mergefall/Game2048-v0").arguments("game")
        ('rows', 'cols', 'goal')
        """
        return tuple(one.name for one in fields(cls) if one.metadata["use"] >= USES.index(use))  # pyright: ignore

    @classmethod
    def rules_of(cls, env_kwargs: Options) -> Dict:
        """Those of an environment's arguments that make its game.

        >>> from mergefall.games import game_of
        >>> game_of("mergefall/Game2048-v0").rules_of({"rows": 3, "reward": "log2"})
        {'rows': 3}
        """
        return {name: env_kwargs[name] for name in cls.arguments("game") if name in env_kwargs}

    @classmethod
    def library(cls) -> Any:
        """The game's `mergefall.library.Library` of heuristics, which finds and registers them."""
        return import_module(cls.__module__.rpartition(".")[0]).heuristics.LIBRARY  # late, for heuristics import rules

    @property
    def reward_index(self) -> int:
        """The number by which kernels know the reward."""
        return self.choices("reward").index(self.reward)

    def observed(self, states: Words) -> tuple[Bools, Bools]:
        """(legal actions bool[n, actions], whether the game is over bool[n]) of states; all True where it is over."""
        masks, over = np.empty((len(states), self.n_actions), np.bool_), np.empty(len(states), np.bool_)
        self.kernels.observe(states, masks, over, *self.more)
        return masks, over

    @property
    def side(self) -> Any:
        """The rules of one side of a match; else these rules."""
        return self

    def shaped(self, states: Words) -> Words:
        """The states under the rules `side`, uint64[n, words], whose boards a potential values."""
        return states

    def new_states(self, count: int) -> Words:
        """`count` states uint64[count, words] before a start, with random streams from fresh entropy."""
        states = self._blank_states(count)
        states[:, STREAM] = np.random.SeedSequence().generate_state(count, np.uint64)
        return states

    def view_space(self, kind: str) -> gym.spaces.Box:
        """The space of one game's view."""
        return gym.spaces.Box(0, 1, self.view(kind, self.observations(self.new_states(1)))[0].shape, np.float32)

    def action_space(self) -> gym.spaces.Discrete:
        return gym.spaces.Discrete(self.n_actions)

    def actions_text(self) -> str:
        return f"an integer from 0 to {self.n_actions - 1}"

    def action_index(self, action: Any) -> int:
        """`action` (an int, a NumPy integer or a 0-d array) as an int; raises ValueError if it is outside the space."""
        try:
            number = operator.index(action)
        except TypeError:
            number = -1
        if not 0 <= number < self.n_actions:
            raise ValueError(f"action is {action!r}; expected {self.actions_text()}")
        return number

    def start(self, options: Options | None) -> Array | None:
        """The start that `reset` options describe, a row for the kernel `begin`; None for an ordinary start.

        Raises ValueError for an unknown option or a bad value; None as a value means the default.
        """
        given = made_of("reset options", options or {}, Mapping, "a mapping")
        if unknown := sorted(set(given) - set(self.parts), key=repr):
            raise ValueError(f"reset options hold {unknown[0]!r}; expected {' or '.join(map(repr, self.parts))}")
        given = {name: value for name, value in given.items() if value is not None}
        return self._start(given) if given else None

    def pool(self, starts: Sequence[Options] | None) -> Array:
        """A list of `reset` options as rows for the kernel `begin`; the entry `{}` is an ordinary start."""
        listed, blank = made_of("starts", starts or [], list | tuple, "a list"), self._no_start()
        pool = np.zeros((len(listed), blank.size), blank.dtype)
        for row, options in zip(pool, listed, strict=True):
            start = self.start(options)
            row[:] = blank if start is None else start
        return pool

    def stepped(self, states: Words, actions: Ints, max_steps: int = 0) -> Any:
        """Play an action in each state, in place; returns what the games show then, in the arrays of `seen`."""
        seen, fresh = self.seen(len(states)), np.zeros(len(states), np.bool_)
        stepper(self)(0, len(states), states, actions, fresh, self.pool(None), self.limits(max_steps), seen)
        return seen

    def chance_outcomes(self, state: Words, action: int) -> Outcomes:
        """What chance may make of a legal action in `state` uint64[words]."""
        upper, lower = self._draws(state, action)
        states, streams = np.repeat(state[None], len(upper), axis=0), forced(state[STREAM], upper, lower)
        states[:, STREAM] = streams
        observations, _ = self.shown(self.stepped(states, np.full(len(states), action)))
        return Outcomes(observations, streams, np.diff(upper)[:, 0] / HALF * (np.diff(lower)[:, 0] / HALF))

    def ended(self, states: Words, max_steps: int | None) -> Bools:
        """Whether the episode of each state has ended, bool[n]: the game is over, or a limit is reached."""
        _, over = self.observed(states)
        over |= states[:, self.illegal_word] >= self.illegal_limit
        return over | (states[:, self.steps_word] >= max_steps) if max_steps else over

    def restored(self, state: Any, like: Words) -> Words:
        """A copy of a state, or of a batch, of the shape and game of `like`. Raises ValueError for any other state.

        What kernels use as an index is checked, so that no state makes them read elsewhere.
        """
        copy = np.array(typed("state", state, np.uint64, *like.shape), order="C")
        no_faults("state", self._faults(copy.reshape(-1, copy.shape[-1])))
        return copy


@cache
def stepper(rules: Any) -> Any:
    """A game's kernel `step`, to be called without Numba's look at each argument's type.

    Numba takes as long to recognise two records as 64 games of 2048 take to play.
    """
    one = np.zeros(1, np.int64)
    state, pool, limits, seen = rules.new_states(1), rules.pool(None), rules.limits(0), rules.seen(1)
    return direct(rules.kernels.step, 0, 1, state, one, one > 0, pool, limits, seen)


def no_faults(what: str, faults: Iterable[tuple[str, Any, Bools, str]]) -> None:
    """Raises ValueError for the first of `GameRules._faults` that a state or observation has; `what` names it."""
    for name, values, wrong, expected in faults:
        if wrong.any():
            i = int(wrong.argmax())
            whose = what if len(wrong) == 1 else f"{what} of game {i}"
            raise ValueError(f"{whose} has the {name} {values[i]:#x}; expected {expected}")
