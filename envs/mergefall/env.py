"""`GameEnv`: the single environment that both games fill in. A game gives its rules, its step and its pictures."""

from collections.abc import Sequence
from dataclasses import fields
from inspect import Parameter, Signature
from operator import index
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np

from mergefall.chance import STREAM
from mergefall.checks import integer
from mergefall.draw import Window, pixels
from mergefall.shaping import Shaping
from mergefall.typing import Array, Bools, Bytes, Dict, Floats, Info, Observation, Options, Words
from mergefall.words import stream_from_seed

ARROWS = tuple(1 << 30 | scancode for scancode in (82, 79, 81, 80))  # SDL's key codes: up, right, down, left

FIRST = np.zeros(1, np.int64)  # the games of a single environment, by index


class Games:
    """The part of the single environment that the batch shares. Arrays of a batch begin with an axis for its games."""

    rules: Any
    _states: Words
    _pool: Array

    def _own(self, array: Array) -> Any:
        """The caller's part of an array with a row for each game; a single environment returns its only row."""
        return array

    def set_starts(self, pool: Sequence[Options] | None) -> None:
        """Draw the start of each new episode, autoresets included, from a list of `reset` options.

        Each game draws from its own random stream. An entry `{}` is an ordinary start. None or an empty list restores
        ordinary starts. Options passed to `reset` take precedence.
        """
        self._pool = self.rules.pool(pool)

    def action_masks(self) -> Bools:
        """The legal actions, bool[actions], for sb3-contrib's MaskablePPO; all True in a terminal state."""
        return self._own(self.rules.observed(self._states)[0])

    def afterstates(self) -> tuple[Bytes, Floats, Bools]:
        """The board after each action, before chance: (boards, rewards, legal).

        - `boards`: uint8[actions, rows, cols]; the present board for an illegal action
        - `rewards`: float64[actions], without shaping; 0 for an illegal action
        - `legal`: bool[actions]

        In Tetris a placement that ends the game is legal; `fatal_actions` tells which ones do.
        """
        boards, rewards, legal, *_ = map(self._own, self.rules.afterstates(self._states))
        return boards, rewards, legal

    def clone_state(self) -> Words:
        """The whole state, uint64[words], random stream, score and counts included; it can be pickled.

        A row of a batch's states is a state of a single environment.
        """
        return self._own(self._states).copy()


def mode_of(render_mode: str | None, modes: Sequence[str]) -> str | None:
    """`render_mode`; raises ValueError unless it is None or one of `modes`."""
    if render_mode not in (None, *modes):
        raise ValueError(f"render_mode is {render_mode!r}; expected one of {', '.join(modes)}, or None")
    return render_mode


def frame_of(canvas: Any, state: Words, mode: str) -> Any:
    """A picture of a state: text for "ansi", pixels for "rgb_array", a pygame surface for "human"."""
    picture = canvas.picture(state, mode == "ansi")
    return pixels(picture) if mode == "rgb_array" else picture


class Pictures:
    """Pictures of one game, the first row of `_states`."""

    metadata: ClassVar[Dict] = {"render_modes": ["ansi", "rgb_array", "human"], "render_fps": 8}
    title: ClassVar[str]  # of the window
    canvas_type: ClassVar[
        Any
    ]  # (rules) -> what draws a game: `paint` and `picture`, as `tetris.render.Canvas` has them
    rules: Any
    render_mode: str | None
    _states: Words
    _window: Any = None

    def _begin_pictures(self, render_mode: str | None) -> None:
        self.render_mode = mode_of(render_mode, self.metadata["render_modes"])
        self._canvas = self.canvas_type(self.rules)

    def _paint(self, action: int | None) -> None:
        """Called before an action is played, and with None in a new state."""
        if self.render_mode is not None:
            self._canvas.paint(self._states[0], action)

    def _show(self) -> None:
        """Called after each change."""
        if self.render_mode == "human":
            self.render()

    def render(self) -> Any:
        """The game as text (`"ansi"`) or uint8[height, width, 3] (`"rgb_array"`); `"human"` shows it in a window."""
        if self.render_mode is None:
            gym.logger.warn("render() was called without a render_mode; pass one to gymnasium.make")
            return None
        frame = frame_of(self._canvas, self._states[0], self.render_mode)
        if self.render_mode != "human":
            return frame
        if self._window is None:
            self._window = Window(self.title, self.metadata["render_fps"], frame.get_size())
        return self._window.show(frame)

    def close(self) -> None:
        if self._window is not None:
            self._window.close()
            self._window = None


class GameEnv(Games, Pictures, gym.Env[Any, int]):
    """One game. Its arguments are those of `rules_type`, and `shaping` and `render_mode`.

    A game implements the names below. The state of the game is the one row of `_states` uint64[1, words].
    """

    rules_type: ClassVar[Any]  # the game's `Rules`
    _bind: Any  # () makes what reaches the state fastest: views of it, the compiled step. Copies and pickles call it
    derived: ClassVar[tuple[str, ...]]  # the attributes that `_bind` sets
    _look: Any  # () -> (observation, info) after a reset
    _play: Any  # (action) -> what `step` returns without shaping and pictures

    def __init_subclass__(cls) -> None:
        """Show the arguments where `help` and editors look for them."""
        kind = Parameter.POSITIONAL_OR_KEYWORD
        own = [Parameter(field.name, kind, default=field.default) for field in fields(cls.rules_type)]
        more = [Parameter(name, Parameter.KEYWORD_ONLY, default=None) for name in ("shaping", "render_mode")]
        cls.__signature__ = Signature([*own, *more])

    def __init__(
        self, *values: Any, shaping: Options | None = None, render_mode: str | None = None, **arguments: Any
    ) -> None:
        self.rules = self.rules_type(*values, **arguments)
        self._begin_pictures(render_mode)
        self.shaping = Shaping.read(shaping, self.rules)
        self.observation_space = self.rules.observation_space()
        self.action_space = self.rules.action_space()
        self._actions, self._limit = self.rules.n_actions, self.rules.illegal_limit
        self._plain = self._begun = False
        self._pool = self.rules.pool(None)
        self._states = self.rules.new_states(1)
        self._bind()

    def reset(self, *, seed: int | None = None, options: Options | None = None) -> tuple[Observation, Info]:
        """Begin an episode: (observation, info).

        - `seed`: fixes every random draw from here on; default: the random stream continues.
        - `options`: where to start, see the class; default: an ordinary start, or one from the pool of `set_starts`.
        """
        start = self.rules.start(options)
        if seed is not None:
            seed = integer("seed", seed, 0, None)
            self._states[0, STREAM] = stream_from_seed(seed)
        super().reset(seed=seed)
        starts = self._pool if start is None else start[None]
        self.rules.kernels.begin(self._states, FIRST, starts, start is None)
        self._begin()
        self._show()
        observation, info = self._look()
        if self.shaping is not None:
            info["shaping"] = 0.0
        return observation, info

    def step(self, action: int) -> tuple[Observation, float, bool, bool, Info]:
        """Play one action: (observation, reward, terminated, truncated, info)."""
        try:
            action = index(action)
        except TypeError:
            self.rules.action_index(action)  # raises, with the reason
        if not 0 <= action < self._actions:
            self.rules.action_index(action)
        if self._plain:
            return self._play(action)
        if not self._begun:
            raise gym.error.ResetNeeded("step() was called before reset()")
        self._paint(action)
        before = 0.0 if self.shaping is None else self.shaping.of_states(self._states).item()
        observation, reward, terminated, truncated, info = self._play(action)
        self._show()
        if self.shaping is None:
            return observation, reward, terminated, truncated, info
        info["shaping"] = self.shaping.gamma * self.shaping.of_states(self._states).item() - before
        return observation, reward + info["shaping"], terminated, truncated, info

    def _begin(self) -> None:
        """In a new state."""
        self._begun, self._plain = True, self.shaping is None and self.render_mode is None
        self._paint(None)

    def _own(self, array: Array) -> Any:
        return array[0]

    def restore_state(self, state: Words) -> None:
        """Return to a state from `clone_state`; raises ValueError for a state of other rules, or a damaged one."""
        self._states[0] = self.rules.restored(state, self._states[0])
        self._begin()

    def chance_outcomes(self, action: int) -> tuple[Observation, Floats]:
        """Every observation that chance can make of an action's afterstate, with its probability.

        Returns a batch of observations and probabilities float64[outcomes], which sum to 1; in Tetris one for each
        piece that may be drawn, with `randomizer="hidden"` by the hidden multiset. The game does not change. Raises
        ValueError for an illegal action.

        >>> import gymnasium as gym, mergefall
        >>> env = gym.make("mergefall/Game2048-v0", rows=2, cols=2).unwrapped
        >>> _ = env.reset(options={"board": [[1, 1], [2, 0]]})
        >>> boards, probabilities = env.chance_outcomes(3)  # left: 4 · / 4 ·
        >>> boards[0].tolist(), probabilities.round(3).tolist()
        ([[2, 1], [2, 0]], [0.45, 0.05, 0.45, 0.05])
        """
        _, _, legal = self.afterstates()
        action = self.rules.action_index(action)
        if not legal[action]:
            raise ValueError(f"action {action} is illegal here; legal are {np.flatnonzero(legal).tolist()}")
        outcomes = self.rules.chance_outcomes(self._states[0], action)
        return outcomes.observations, outcomes.probabilities

    def __getstate__(self) -> Dict:
        return {name: value for name, value in self.__dict__.items() if name not in self.derived} | {"_window": None}

    def __setstate__(self, state: Dict) -> None:
        self.__dict__.update(state)
        self._bind()
