"""The 2048 environment: a thin shell over the rules of `board.py`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from mergefall.game2048 import square
from mergefall.game2048.board import GAIN_SHIFT, ILLEGAL, RANK_SHIFT, SCORE
from mergefall.game2048.render import board_surface, frame
from mergefall.game2048.rules import ACTION_MASKS, Rules, action_index
from mergefall.game2048.shaping import Shaping2048
from mergefall.kernels import direct
from mergefall.words import stream_from_seed

# What the packed integer of a step says, unpacked beforehand: by its lowest six bits (a maker of fresh mask arrays,
# whether the action was legal, whether the game is over), and by the largest rank the largest tile.
_SEEN = tuple((ACTION_MASKS[seen & 15].copy, bool(seen >> 4 & 1), bool(seen >> 5 & 1)) for seen in range(64))
_TILES = (0, *(1 << rank for rank in range(1, 256)))
_ARROWS = {name: 1 << 30 | scancode for name, scancode in zip("URDL", (82, 79, 81, 80), strict=True)}  # SDL's key codes


class Game2048Env(gym.Env[NDArray[np.uint8], int]):
    """
    ## Description

    2048, by G. Cirulli (2014), exactly: slide all tiles of a rows × cols board in one direction; equal neighbours
    merge, each tile once per move, those nearest the wall first. After a move that changed the board a new tile
    appears on a uniformly drawn empty cell: a 2 with probability 0.9, else a 4. Merges are never capped.

    ## Action Space

    `Discrete(4)`: 0 up, 1 right, 2 down, 3 left. An action that would change nothing is *illegal*: it leaves board
    and random stream untouched and pays 0. Anything else than these four raises a `ValueError`.

    ## Observation Space

    `Box(0, rows·cols + 1, (rows, cols), uint8)` of ranks: log2 of the tile, 0 for an empty cell. No game gets beyond
    the highest rank. (A board handed to `reset` may, if its tiles sum to 2^(rows·cols + 2) or more; no game's do.)

    ## Starting State

    Two tiles, drawn like new ones. `reset(options={"board": ranks})` starts from any board of ranks within the space,
    or from a board's text form (`"2 . . 4/…"`), that is not terminal already. `set_starts(pool)` draws each new
    episode's start from a list of such options.

    ## Rewards

    `reward="score"`: the sum of the merged tiles, as in the game. `reward="log2"`: log2(1 + that sum). With `shaping`,
    each step pays F = γΦ(s′) − Φ(s) besides, Φ being 0 in a terminal state.

    ## Episode End

    Terminated when no move is legal, or when a tile reaches `goal`. Truncated after `illegal_limit` illegal actions
    in a row. Other caps are Gymnasium's `max_episode_steps`.

    ## Information

    `reset` and `step` return
    - `action_mask`: int8[4], 1 for each legal action, after the new tile; all ones in a terminal state, where
      samplers need an entry;
    - `score`: the game's score so far, whatever the reward;
    - `max_tile`: the largest tile;
    - `legal`: whether the action was legal (True after `reset`);
    - `shaping`, with that argument only: F, 0 after `reset`.

    The unwrapped environment has `action_masks()`, `clone_state()`, `restore_state(state)`, `afterstates()`,
    `set_starts(pool)`.

    ## Arguments

    - `rows`, `cols`: 2 to 6 each, 4 unless told.
    - `goal`: the tile that ends the game, a power of two from 8; None to play on.
    - `reward`: `"score"` or `"log2"`.
    - `illegal_limit`: illegal actions in a row after which the episode is truncated.
    - `shaping`: a mapping for potential-based shaping that leaves the optimal policy as it is: `potential`, the name of
      a heuristic (or a mapping of `name` and weights), and perhaps `gamma` (0.99; it must be the learner's), `scale`,
      `squash`, `offset`, for which `mergefall.shaping` has a value for each potential.
    - `render_mode`: `"ansi"`, `"rgb_array"` or `"human"`.

    `gymnasium.make_vec("mergefall/Game2048-v0", num_envs=n)` gives the batched environment, `Game2048VectorEnv`. For
    play by hand: `gymnasium.utils.play.play(env, wait_on_player=True)`, arrow keys or W, A, S, D.

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

    def __init__(
        self,
        rows: int = 4,
        cols: int = 4,
        goal: int | None = None,
        reward: Literal["score", "log2"] = "score",
        illegal_limit: int = 100,
        shaping: Mapping[str, Any] | None = None,
        render_mode: str | None = None,
    ) -> None:
        self.rules = Rules(rows, cols, goal, reward, illegal_limit)
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise ValueError(f"render_mode is {render_mode!r}; expected one of {self.metadata['render_modes']} or None")
        self.render_mode = render_mode
        self.shaping = self.shaping_type.read(shaping, self.rules.rows, self.rules.cols)
        self.observation_space = self.rules.observation_space()  # pyright: ignore[reportAttributeAccessIssue]
        self.action_space = gym.spaces.Discrete(4)  # pyright: ignore[reportAttributeAccessIssue]
        self._log2 = reward == "log2"
        self._limit = self.rules.illegal_limit
        self._pool = self.rules.pool(None)
        self._window: Any = None
        self._lines = square.lines_for(self.rules.rows, self.rules.cols)
        self._hold(self.rules.new_states(1)[0])

    def _hold(self, words: NDArray[np.uint64]) -> None:
        """Take over a game's state, with the views and the compiled step through which it is reached fastest."""
        self._words = words
        self._states = words[None]
        self._cells = core.cells_of(words, self.rules.rows, self.rules.cols)
        self._numbers = memoryview(words)  # pyright: ignore[reportArgumentType]
        self._advance = direct(square.step, self._states, 0, 0, self._lines)
        if self.shaping is not None:  # around `step`, which takes no longer without
            self.step = partial(self.shaping.step, self, partial(type(self).step, self))

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        """Begin an episode. A seed fixes every draw from here on; without one the random stream goes on."""
        start = self.rules.start(options)
        seed = None if seed is None else integer("seed", seed, 0)
        super().reset(seed=seed)
        if seed is not None:
            self._words[core.STREAM] = stream_from_seed(seed)
        seen = core.begin(self._words, self._pool) if start is None else core.start_from(self._words, start)
        if self.render_mode == "human":
            self.render()
        info = {
            "action_mask": ACTION_MASKS[seen & 15].copy(),
            "score": 0,
            "max_tile": _TILES[seen >> RANK_SHIFT & 255],
            "legal": True,
        }
        if self.shaping is not None:
            info["shaping"] = 0.0
        return self._cells.copy(), info

    def step(self, action: int) -> tuple[NDArray[np.uint8], float, bool, bool, dict[str, Any]]:
        """Play one action: (ranks uint8[rows, cols], reward, terminated, truncated, info)."""
        try:
            action = index(action)
        except TypeError:
            action = action_index(action)  # raises, with the reason
        if not 0 <= action < 4:
            action_index(action)
        seen = self._advance(self._states, 0, action, self._lines)
        new_mask, legal, over = _SEEN[seen & 63]
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
        return self._cells.copy(), log2(1 + gain) if self._log2 else float(gain), over, truncated, info

    def set_starts(self, pool: Sequence[Mapping[str, Any]] | None) -> None:
        """Draw the start of each new episode from a list of `reset` options, by the environment's own random stream.

        An entry `{}` is an ordinary start; None or an empty list ends it. Options given to `reset` go first.
        """
        self._pool = self.rules.pool(pool)

    def action_masks(self) -> NDArray[np.bool_]:
        """The legal actions as bool[4] (all True in a terminal state), as sb3-contrib's MaskablePPO asks for them."""
        return ACTION_MASKS[core.observe(self._words) & 15].astype(np.bool_)

    def clone_state(self) -> NDArray[np.uint64]:
        """The whole game, random stream, score and illegal actions in a row included, to be kept or pickled."""
        return self._words.copy()

    def restore_state(self, state: NDArray[np.uint64]) -> None:
        """Go back to what `clone_state` returned; a ValueError for a state that no such game comes to."""
        self._words[:] = self.rules.restored(state, self._words)

    def afterstates(self) -> tuple[NDArray[np.uint8], NDArray[np.float64], NDArray[np.bool_]]:
        """What each action leads to before the new tile, in one batch.

        Returns boards uint8[4, rows, cols], rewards float64[4], legal bool[4]. An illegal action's board is the present
        one and its reward 0.
        """
        boards = np.empty((4, self._cells.size), dtype=np.uint8)
        gains = np.empty(4, dtype=np.int64)
        core.afterstates(self._words, boards, gains)
        return boards.reshape(4, *self._cells.shape), self.rules.rewards(gains), gains >= 0

    def render(self) -> Any:
        """The board as text (`"ansi"`) or uint8[height, width, 3] (`"rgb_array"`); shown in a window for `"human"`."""
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

    def close(self) -> None:
        """Close the window, if there is one."""
        if self._window is not None:
            self._window.close()
            self._window = None

    def get_keys_to_action(self) -> dict[tuple[int, ...], int]:
        """Keys for `gymnasium.utils.play`: the arrows, and W, D, S, A."""
        letters = {(ord(letter),): action for action, letter in enumerate("wdsa")}
        return {(code,): action for action, code in enumerate(_ARROWS.values())} | letters

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the views and the window, which are made anew."""
        left_out = ("_states", "_cells", "_numbers", "_advance", "_window", "step")
        return {name: value for name, value in self.__dict__.items() if name not in left_out}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._window = None
        self._hold(self._words)
