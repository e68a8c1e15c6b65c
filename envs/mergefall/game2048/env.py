"""The single 2048 environment: a thin shell over the rules in `board.py`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import log2
from operator import index
from typing import Any, ClassVar, Literal

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from mergefall.checks import integer
from mergefall.draw import Window
from mergefall.game2048 import board as core
from mergefall.game2048 import packed
from mergefall.game2048.board import GAIN_SHIFT, ILLEGAL, RANK_SHIFT, SCORE
from mergefall.game2048.render import board_surface, frame, to_html
from mergefall.game2048.rules import ACTION_MASKS, Rules, action_index
from mergefall.game2048.shaping import Shaping2048
from mergefall.game2048.views import View2048
from mergefall.kernels import direct
from mergefall.typing import Info, Options
from mergefall.words import stream_from_seed

_mask_of, _top_of = core.mask_of.py_func, core.top_of.py_func  # Python's own arithmetic needs no compiling

# `_FLAGS[seen & _FLAG_BITS]` is (a function that makes a fresh mask array, whether the action was legal, whether the
# game is over), `_TILES[rank]` the tile: two look-ups instead of Python arithmetic in every step.
_FLAG_BITS = (1 << core.OVER_BIT + 1) - 1
_FLAGS = tuple(
    (ACTION_MASKS[_mask_of(seen)].copy, bool(core.is_legal.py_func(seen)), bool(core.is_over.py_func(seen)))
    for seen in range(_FLAG_BITS + 1)
)
_TILES = (0, *(1 << rank for rank in range(1, 256)))
_ARROWS = {name: 1 << 30 | scancode for name, scancode in zip("URDL", (82, 79, 81, 80), strict=True)}  # SDL's key codes


class Game2048Env(gym.Env[NDArray[np.uint8], int]):
    """
    ## Description

    2048, by G. Cirulli (2014), exactly. A move slides all tiles of a rows × cols board in one direction. Equal
    neighbours merge: each tile at most once per move, those nearest the wall first. After a move that changed the
    board, a new tile appears on a uniformly drawn empty cell: a 2 with probability 0.9, else a 4. Merges are never
    capped.

    ## Action Space

    `Discrete(4)`:
    - 0: slide up
    - 1: slide right
    - 2: slide down
    - 3: slide left

    An action that would change nothing is *illegal*: it leaves the board and the random stream untouched and pays 0.
    Any other action raises `ValueError`.

    ## Observation Space

    `Box(0, rows·cols + 1, (rows, cols), uint8)` of ranks: log2 of the tile, 0 for an empty cell. No game that begins
    with two tiles exceeds the highest rank. (One that begins from a board whose tiles sum to 2^(rows·cols + 2) or more
    can.)

    ## Starting State

    Two tiles, drawn like new ones. `reset(options={"board": ranks})` starts from a given board instead: ranks within
    the space, or a text form (`"2 . . 4/…"`), not terminal. `set_starts(pool)` draws each new episode's start from a
    list of such options.

    ## Rewards

    - `reward="score"`: the sum of the tiles that the move made by merging.
    - `reward="log2"`: log2(1 + that sum).
    - `reward="goal"`: 1 for the move that makes the tile `goal`, else 0.

    With `shaping`, each step also pays F = γΦ(s′) − Φ(s), where Φ is 0 in a terminal state.

    ## Episode End

    - Terminated when no move is legal, or when a tile reaches `goal`.
    - Truncated after `illegal_limit` illegal actions in a row, or by Gymnasium's `max_episode_steps`.

    ## Information

    `reset` and `step` return:
    - `action_mask`: int8[4], 1 for each action that is legal after the new tile; all ones in a terminal state, because
      samplers need an entry.
    - `score`: the score of the game so far, whatever the reward.
    - `max_tile`: the largest tile.
    - `legal`: whether the action was legal; True after `reset`.
    - `shaping`: F, 0 after `reset`; only with the argument `shaping`.

    The unwrapped environment also has `action_masks()`, `clone_state()`, `restore_state(state)`, `afterstates()` and
    `set_starts(pool)`.

    ## Arguments

    - `rows`, `cols`: 2 to 6 each; default: 4.
    - `goal`: the tile that ends the game, a power of two from 8; default: None, play until no move is legal.
    - `reward`: `"score"` (default), `"log2"` or `"goal"`, which needs a `goal`.
    - `illegal_limit`: illegal actions in a row that truncate the episode; default: 100.
    - `shaping`: a mapping for potential-based shaping, which leaves the optimal policy unchanged; default: None. Keys:
      `potential`, a heuristic's name or a mapping of `name` and weights; optionally `gamma` (default: 0.99; it must be
      the learner's discount), `scale`, `squash` and `offset` (defaults: see `mergefall.shaping`).
    - `render_mode`: `"ansi"`, `"rgb_array"` or `"human"`; default: None.

    `gymnasium.make_vec("mergefall/Game2048-v0", num_envs=n)` makes the batched environment, `Game2048VectorEnv`. To
    play by hand, call `gymnasium.utils.play.play(env, wait_on_player=True)` and use the arrow keys or W, A, S, D.

    ## Example

    >>> import gymnasium as gym, mergefall
    >>> env = gym.make("mergefall/Game2048-v0")
    >>> obs, info = env.reset(seed=0, options={"board": "2 2 . ./. . . ./. . . ./4 . . ."})
    >>> info["action_mask"]
    array([1, 1, 1, 1], dtype=int8)
    >>> obs, reward, terminated, truncated, info = env.step(3)
    >>> reward, info["score"], info["max_tile"]
    (4.0, 4, 4)
    >>> obs[0, 0], obs[3, 0]
    (np.uint8(2), np.uint8(2))

    ## Version History

    - v0: first version.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi", "rgb_array", "human"], "render_fps": 8}  # pyright: ignore[reportIncompatibleVariableOverride]
    shaping_type: ClassVar[type[Shaping2048]] = Shaping2048
    view_type: ClassVar[type[View2048]] = View2048

    def __init__(
        self,
        rows: int = 4,
        cols: int = 4,
        goal: int | None = None,
        reward: Literal["score", "log2", "goal"] = "score",
        illegal_limit: int = 100,
        shaping: Options | None = None,
        render_mode: str | None = None,
    ) -> None:
        self.rules = Rules(rows, cols, goal, reward, illegal_limit)
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise ValueError(f"render_mode is {render_mode!r}; expected one of {self.metadata['render_modes']} or None")
        self.render_mode = render_mode
        self.shaping = self.shaping_type.read(shaping, self.rules)
        self.observation_space = self.rules.observation_space()  # pyright: ignore[reportAttributeAccessIssue]
        self.action_space = self.rules.action_space()  # pyright: ignore[reportAttributeAccessIssue]
        self._pays_score = reward == "score"
        self._limit = self.rules.illegal_limit
        self._pool = self.rules.pool(None)
        self._window: Any = None
        self._hold(self.rules.new_states(1)[0])

    def _hold(self, words: NDArray[np.uint64]) -> None:
        """Take over a game's state uint64[words], with the views and the compiled step that reach it fastest."""
        self._words = words
        self._states = words[None]
        self._cells = core.cells_of(words, self.rules.rows, self.rules.cols)
        self._numbers = memoryview(words)  # pyright: ignore[reportArgumentType]
        self._lines = packed.lines_for(self.rules.rows, self.rules.cols)
        self._advance = direct(packed.step, self._states, 0, 0, self._lines)
        if self.shaping is not None:  # so that `step` itself need not ask
            self.step = partial(self.shaping.step, lambda: self._states, partial(type(self).step, self))

    def reset(self, *, seed: int | None = None, options: Options | None = None) -> tuple[NDArray[np.uint8], Info]:
        """Begin an episode: (ranks uint8[rows, cols], info).

        - `seed`: fixes every random draw from here on; default: the random stream continues.
        - `options`: `board`, the board to start from; default: two tiles, or a start from the pool of `set_starts`.
        """
        start = self.rules.start(options)
        seed = None if seed is None else integer("seed", seed, 0)
        super().reset(seed=seed)
        if seed is not None:
            self._words[core.STREAM] = stream_from_seed(seed)
        seen = core.begin(self._words, self._pool) if start is None else core.start_from(self._words, start)
        if self.render_mode == "human":
            self.render()
        info = {
            "action_mask": ACTION_MASKS[_mask_of(seen)].copy(),
            "score": 0,
            "max_tile": _TILES[_top_of(seen)],
            "legal": True,
        }
        if self.shaping is not None:
            info["shaping"] = 0.0
        return self._cells.copy(), info

    def step(self, action: int) -> tuple[NDArray[np.uint8], float, bool, bool, Info]:
        """Play one action: (ranks uint8[rows, cols], reward, terminated, truncated, info)."""
        try:
            action = index(action)
        except TypeError:
            action = action_index(action)  # raises, with the reason
        if not 0 <= action < 4:
            action_index(action)
        seen = self._advance(self._states, 0, action, self._lines)
        new_mask, legal, over = _FLAGS[seen & _FLAG_BITS]
        gain = seen >> GAIN_SHIFT
        if self.render_mode == "human":
            self.render()
        info = {
            "action_mask": new_mask(),
            "score": self._numbers[SCORE],
            "max_tile": _TILES[seen >> RANK_SHIFT & 255],
            "legal": legal,
        }
        truncated = not legal and self._numbers[ILLEGAL] >= self._limit
        reward = float(gain) if self._pays_score else self._reward(gain, info["max_tile"])
        return self._cells.copy(), reward, over, truncated, info

    def _reward(self, gain: int, max_tile: int) -> float:
        """The reward "log2" or "goal" of a move."""
        if self.rules.reward == "log2" or self.rules.goal is None:
            return log2(1 + gain)
        return float(max_tile >= self.rules.goal)

    def set_starts(self, pool: Sequence[Options] | None) -> None:
        """Draw the start of each new episode from a list of `reset` options, by the environment's own random stream.

        An entry `{}` is an ordinary start. None or an empty list restores ordinary starts. Options passed to `reset`
        take precedence.
        """
        self._pool = self.rules.pool(pool)

    def action_masks(self) -> NDArray[np.bool_]:
        """The legal actions, bool[4], for sb3-contrib's MaskablePPO; all True in a terminal state."""
        return ACTION_MASKS[_mask_of(core.observe(self._words))].astype(np.bool_)

    def clone_state(self) -> NDArray[np.uint64]:
        """The whole state of the game, uint64[words], random stream, score and counts included; it can be pickled."""
        return self._words.copy()

    def restore_state(self, state: NDArray[np.uint64]) -> None:
        """Go back to a state of `clone_state`; raises ValueError for one that no such game can reach."""
        self._words[:] = self.rules.restored(state, self._words)

    def afterstates(self) -> tuple[NDArray[np.uint8], NDArray[np.float64], NDArray[np.bool_]]:
        """The boards after each action, before the new tile.

        Returns boards uint8[4, rows, cols], rewards float64[4], legal bool[4]. For an illegal action the board is the
        current one and the reward 0.
        """
        boards = np.empty((4, self._cells.size), dtype=np.uint8)
        gains = np.empty(4, dtype=np.int64)
        core.afterstates(self._words, boards, gains)
        return boards.reshape(4, *self._cells.shape), self.rules.rewards(gains, boards), gains >= 0

    def chance_outcomes(self, action: int) -> tuple[NDArray[np.uint8], NDArray[np.float64]]:
        """Every board that chance can make of an action's afterstate, with its probability.

        Returns boards uint8[outcomes, rows, cols] and probabilities float64[outcomes], which sum to 1. The game does
        not change. Raises ValueError for an illegal action.

        >>> import gymnasium as gym, mergefall
        >>> env = gym.make("mergefall/Game2048-v0", rows=2, cols=2).unwrapped
        >>> _ = env.reset(options={"board": [[1, 1], [2, 0]]})
        >>> boards, probabilities = env.chance_outcomes(3)  # left: 4 · / 4 ·
        >>> boards[0].tolist(), probabilities.round(3).tolist()
        ([[2, 1], [2, 0]], [0.45, 0.05, 0.45, 0.05])
        """
        boards, _, legal = self.afterstates()
        action = action_index(action)
        if not legal[action]:
            raise ValueError(f"action {action} is illegal here; legal are {np.flatnonzero(legal).tolist()}")
        outcomes = self.rules.chance_outcomes(boards[action], self._words)
        return outcomes.observations, outcomes.probabilities

    def render(self) -> Any:
        """The board as text (`"ansi"`) or uint8[height, width, 3] (`"rgb_array"`); `"human"` shows it in a window."""
        if self.render_mode is None:
            gym.logger.warn("render() was called without a render_mode; pass one to gymnasium.make")
            return None
        score = int(self._words[core.SCORE])
        if self.render_mode != "human":
            return frame(self._cells, score, self.render_mode)
        if self._window is None:
            self._window = Window("2048 · mergefall", self.metadata["render_fps"])
        self._window.show(board_surface(self._cells, score))
        return None

    def _repr_html_(self) -> str:
        """The board, as a notebook shows it for a cell."""
        return to_html(self._cells, int(self._words[core.SCORE]))

    def close(self) -> None:
        """Close the window if it is open."""
        if self._window is not None:
            self._window.close()
            self._window = None

    def get_keys_to_action(self) -> dict[tuple[int, ...], int]:
        """The keys for `gymnasium.utils.play`: the arrows, and W, A, S, D."""
        letters = {(ord(letter),): action for action, letter in enumerate("wdsa")}
        return {(code,): action for action, code in enumerate(_ARROWS.values())} | letters

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the views, the table of lines and the window, which `__setstate__` makes again."""
        left_out = ("_states", "_cells", "_numbers", "_lines", "_advance", "_window", "step")
        return {name: value for name, value in self.__dict__.items() if name not in left_out}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._window = None
        self._hold(self._words)
