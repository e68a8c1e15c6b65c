"""The part of `Rules` that both games share: checks of arguments, actions, starts of episodes, states to restore."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from mergefall.chance import STREAM
from mergefall.checks import choice, integer, made_of, typed
from mergefall.typing import Array, Options


class GameRules:
    """The arguments that make a game, which the single and the batched environment share.

    Each game has a frozen dataclass of it, `Rules`. Raises ValueError for an argument of another type or out of its
    range.
    """

    illegal_limit: int
    ranges: ClassVar[Mapping[str, tuple[int, int]]]  # of the integers
    choices: ClassVar[Mapping[str, Sequence[str]]]  # of the texts
    parts: ClassVar[tuple[str, ...]]  # the options of `reset`
    kernels: ClassVar[Any]  # the game's module `batch`
    more: Any = ()  # what the kernels `look` and `observe` take besides; perhaps a property
    illegal_word: ClassVar[int]  # the words of a state that count illegal actions in a row, and all actions
    steps_word: ClassVar[int]
    timed = False  # whether something happens while a player does nothing

    # What a game implements, besides `afterstates`, `chance_outcomes`, `seen`, `shown` and `limits`:
    n_actions: Any  # a property
    observations: Any  # (states uint64[n, words]) -> what players see of them, a batch of observations
    view: Any  # (kind "planes" or "flat", observations) -> float32[n, …] of 0 and 1, for `mergefall.wrappers`
    _blank_states: Any  # (count) -> states of games that have not begun, without random streams
    _start: Any  # (checked `reset` options) -> a start, a row for the kernel `begin`
    _no_start: Any  # () -> the row that stands for an ordinary start
    _faults: Any  # (states) -> what kernels rely on: (name, its value in each, where it is wrong, what is expected), …

    def __post_init__(self) -> None:
        for name, (low, high) in self.ranges.items():
            object.__setattr__(self, name, integer(name, getattr(self, name), low, high))
        for name, choices in self.choices.items():
            choice(name, getattr(self, name), choices)

    def observed(self, states: NDArray[np.uint64]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """(legal actions bool[n, actions], whether the game is over bool[n]) of states; all True where it is over."""
        masks, over = np.empty((len(states), self.n_actions), np.bool_), np.empty(len(states), np.bool_)
        self.kernels.observe(states, masks, over, *self.more)
        return masks, over

    @property
    def side(self) -> Any:
        """The rules of one side of a match; else these rules."""
        return self

    def shaped(self, states: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """The states under the rules `side`, uint64[n, words], whose boards a potential values."""
        return states

    def new_states(self, count: int) -> NDArray[np.uint64]:
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

    def ended(self, states: NDArray[np.uint64], max_steps: int | None) -> NDArray[np.bool_]:
        """Whether the episode of each state has ended, bool[n]: the game is over, or a limit is reached."""
        _, over = self.observed(states)
        over |= states[:, self.illegal_word] >= self.illegal_limit
        return over | (states[:, self.steps_word] >= max_steps) if max_steps else over

    def restored(self, state: Any, like: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """A copy of a state, or of a batch, of the shape and game of `like`. Raises ValueError for any other state.

        What kernels use as an index is checked, so that no state makes them read elsewhere.
        """
        copy = np.array(typed("state", state, np.uint64, *like.shape), order="C")
        for name, values, wrong, expected in self._faults(copy.reshape(-1, copy.shape[-1])):
            if wrong.any():
                i = int(wrong.argmax())
                whose = "state" if copy.ndim == 1 else f"state of game {i}"
                raise ValueError(f"{whose} has the {name} {values[i]:#x}; expected {expected}")
        return copy
