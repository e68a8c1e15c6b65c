"""The Tetris environment: a thin shell over the rules of `game.py`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from operator import index
from typing import Any, ClassVar, Literal

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from mergefall.checks import integer
from mergefall.draw import Window
from mergefall.kernels import direct
from mergefall.tetris import batch
from mergefall.tetris.game import ILLEGAL, LINES, LINES_SHIFT, PIECES, QUEUE, SCORE, STREAM
from mergefall.tetris.render import Canvas, draw, frame
from mergefall.tetris.rules import Rules
from mergefall.tetris.shaping import ShapingTetris
from mergefall.tetris.terms import afterstate_terms
from mergefall.words import stream_from_seed

_GAME_0 = np.zeros(1, dtype=np.int64)
_SEEN = tuple((bool(seen & 1), bool(seen >> 1)) for seen in range(4))  # by a step's lowest bits: whether legal, over
_IDS = tuple(np.arange(16))


class TetrisEnv(gym.Env[dict[str, Any], int]):
    """
    ## Description

    Tetris as the literature on controllers plays it: one action places one piece. The piece is dropped straight down
    from above the field in a rotation and column of one's choice; full rows are removed, what lies above them moves
    down, and the next piece is drawn. There is no gravity, no steering and no clock. Rules: C. Thiery & B. Scherrer
    (`mdptetris`); `place` and `reference.py` state them.

    `mergefall/Tetris-v0` is the game of the seven tetrominoes on 10 × 20, `mergefall/SZTetris-v0` the one of S and Z
    only, `mergefall/Quintris-v0` the one of six five-cell pieces on 15 × 25 that come in proportions drawn anew, and
    kept secret, for each game.

    ## Action Space

    `placements="drop"`: `Discrete(4 · cols)`, action = rotation · cols + column. Rotation 0 is the spawn orientation,
    +1 a quarter turn clockwise; `column` is the piece's leftmost column.

    `placements="slide"`: `Discrete(12 · cols)`, action = slide · 4 · cols + rotation · cols + column: drop the piece,
    then leave it (slide 0), or move it one column left (1) or right (2) if the cells there are free, and let it fall to
    rest.

    An action beyond the wall, in a rotation that repeats another, or that ends in the cells of a lower legal action is
    *illegal*: it leaves game and random stream untouched and pays 0. Anything out of the space raises a `ValueError`.

    ## Observation Space

    `Dict` of `board`, `Box(0, 1, (rows, cols), uint8)`, row 0 on top; `piece`, `Discrete(n)`, the piece to place; and
    `next`, `MultiDiscrete([n] · preview)`, the pieces after it, which is absent for `preview=0`. Ids are I O T S Z J L
    = 0 … 6; `pieces="sz"` keeps them and uses 3 and 4; for `pieces="five"` plus, I5, L5, Y5, U, N = 0 … 5.

    ## Starting State

    An empty board. `reset(options={"board": …, "piece": …, "next": …})`, each of them optional, starts from a board
    without full rows (cells of 0 and 1, or a text form as of `to_text`) and with the pieces named (ids or names).
    `set_starts(pool)` draws each new episode's start from a list of such options.

    ## Rewards

    `reward="lines"`: the rows cleared. `reward="score"`: 40, 100, 300, 1200 for one to four rows, as Nintendo's Tetris
    (NES, 1989) pays at level 0; 1240 for five. With `shaping`, each step pays F = γΦ(s′) − Φ(s) besides, Φ being 0 in a
    terminal state.

    ## Episode End

    Above the field lie as many storage rows as the tallest piece needs. `overflow="strict"`: terminated when a piece
    rests with a cell above the field, and nothing is cleared. `overflow="clear_first"`: full rows are cleared first;
    terminated if anything is left above the field. Such a placement is legal. Truncated after `illegal_limit` illegal
    actions in a row. Other caps are Gymnasium's `max_episode_steps`.

    ## Information

    `reset` and `step` return
    - `action_mask`: int8[actions], 1 for each legal action, for the new piece; all ones in a terminal state, where
      samplers need an entry;
    - `lines`, `score`, `pieces`: rows cleared, their score as above, and pieces placed so far, whatever the reward;
    - `legal`: whether the action was legal (True after `reset`);
    - `multiset`, with `randomizer="hidden"` only: int64[n], the copies of each piece in the game's secret multiset, for
      evaluators. Observations never tell;
    - `shaping`, with that argument only: F, 0 after `reset`.

    The unwrapped environment has `action_masks()`, `clone_state()`, `restore_state(state)`, `afterstates()`,
    `afterstate_terms(heuristic)`, `set_starts(pool)`.

    ## Arguments

    - `cols`, `rows`: 4 to 16 columns, 4 to 40 rows; 10 × 20 unless told (columns × rows, as the literature has it).
    - `pieces`: `"tetromino"`, `"sz"` (S and Z only), `"five"` (the six five-cell pieces).
    - `randomizer`: `"uniform"`, each piece as likely and independent; `"bag7"`, each piece once before any comes again;
      `"hidden"`, independent with weights 0 to 10 for each piece, drawn for each game.
    - `preview`: pieces shown beyond the current one, 0 to 8.
    - `placements`: `"drop"` or `"slide"`.
    - `overflow`: `"strict"` or `"clear_first"`.
    - `reward`: `"lines"` or `"score"`.
    - `illegal_limit`: illegal actions in a row after which the episode is truncated.
    - `shaping`: a mapping for potential-based shaping that leaves the optimal policy as it is: `potential`, the name of
      a heuristic, of which the terms of the board count (or a mapping of `name` and weights), and perhaps `gamma`
      (0.99; it must be the learner's), `scale`, `squash`, `offset`, for which `mergefall.shaping` has a value for each
      potential.
    - `render_mode`: `"ansi"`, `"rgb_array"` or `"human"`. Pieces have their colours; cells of unknown origin are grey.

    `gymnasium.make_vec("mergefall/Tetris-v0", num_envs=n)` gives the batched environment, `TetrisVectorEnv`.

    ## Example

    >>> import gymnasium as gym, mergefall
    >>> env = gym.make("mergefall/Tetris-v0", cols=4, rows=4)
    >>> start = {"board": "..../..../..../##..", "piece": "O", "next": ["T"]}
    >>> obs, info = env.reset(seed=0, options=start)
    >>> obs["piece"], obs["next"], info["action_mask"].sum()
    (np.int64(1), array([2]), np.int64(3))
    >>> obs, reward, terminated, truncated, info = env.step(2)
    >>> obs["board"].tolist(), obs["piece"]
    ([[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 1, 1]], np.int64(2))
    >>> reward, info["lines"], info["score"], info["pieces"]
    (1.0, 1, 40, 1)

    ## Version History

    - v0: first version.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi", "rgb_array", "human"], "render_fps": 8}  # pyright: ignore[reportIncompatibleVariableOverride]
    shaping_type: ClassVar[type[ShapingTetris]] = ShapingTetris

    def __init__(
        self,
        cols: int = 10,
        rows: int = 20,
        pieces: Literal["tetromino", "sz", "five"] = "tetromino",
        randomizer: Literal["uniform", "bag7", "hidden"] = "uniform",
        preview: int = 1,
        placements: Literal["drop", "slide"] = "drop",
        overflow: Literal["strict", "clear_first"] = "strict",
        reward: Literal["lines", "score"] = "lines",
        illegal_limit: int = 100,
        shaping: Mapping[str, Any] | None = None,
        render_mode: str | None = None,
    ) -> None:
        self.rules = Rules(cols, rows, pieces, randomizer, preview, placements, overflow, reward, illegal_limit)
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise ValueError(f"render_mode is {render_mode!r}; expected one of {self.metadata['render_modes']} or None")
        self.render_mode = render_mode
        self.shaping = self.shaping_type.read(shaping, self.rules.rows, self.rules.cols)
        self.observation_space = self.rules.observation_space()  # pyright: ignore[reportAttributeAccessIssue]
        self.action_space = self.rules.action_space()  # pyright: ignore[reportAttributeAccessIssue]
        self._actions = self.rules.n_actions
        self._limit = self.rules.illegal_limit
        self._hidden = randomizer == "hidden"
        self._payments = self.rules.payments().tolist()
        self._pool = self.rules.pool(None)
        self._canvas = Canvas(self.rules) if render_mode else None
        self._window: Any = None
        self._hold(self.rules.new_states(1))

    def _hold(self, states: NDArray[np.uint64]) -> None:
        """Take over a game's state uint64[1, words], with views and the compiled step, to reach them fastest."""
        self._states = states
        self._seen = seen = batch.Seen.empty(1, self.rules)
        self._board = seen.boards.reshape(self.rules.rows, self.rules.cols)
        self._next = seen.nexts[0] if self.rules.preview else None
        self._mask = seen.masks[0]
        self._numbers = memoryview(states[0])  # pyright: ignore[reportArgumentType]
        self._kernels = batch.kernels_for(self.rules.placements == "slide")
        self._arrays = seen.boards, seen.nexts, seen.masks
        self._advance = direct(self._kernels.step_one, states, 0, *self._arrays)
        if self.shaping is not None:  # around `step`, which takes no longer without
            self.step = partial(self.shaping.step, lambda: self._states, partial(type(self).step, self))

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Begin an episode. A seed fixes every draw from here on; without one the random stream goes on."""
        start = self.rules.start(options)
        seed = None if seed is None else integer("seed", seed, 0)
        super().reset(seed=seed)
        if seed is not None:
            self._states[0, STREAM] = stream_from_seed(seed)
        if start is None:
            self._kernels.begin(self._states, _GAME_0, self._pool)
        else:
            self._kernels.begin_from(self._states, _GAME_0, start)
        self._look()
        if self._canvas:
            self._canvas.clear()
            if self.render_mode == "human":
                self.render()
        info = self._info(True)
        if self.shaping is not None:
            info["shaping"] = 0.0
        return self._observation(), info

    def step(self, action: int) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Play one action: (observation, reward, terminated, truncated, info)."""
        try:
            action = index(action)
        except TypeError:
            action = self.rules.action_index(action)  # raises, with the reason
        if not 0 <= action < self._actions:
            self.rules.action_index(action)
        if self._canvas:
            self._canvas.paint(self._states[0], action)
        seen = self._advance(self._states, action, *self._arrays)
        if self.render_mode == "human":
            self.render()
        legal, over = _SEEN[seen & 3]
        truncated = not legal and self._numbers[ILLEGAL] >= self._limit
        return self._observation(), self._payments[seen >> LINES_SHIFT], over, truncated, self._info(legal)

    def _look(self) -> None:
        """Write what the game shows into the arrays that observations are copied from."""
        self._kernels.look(self._states, _GAME_0, self._seen)

    def _observation(self) -> dict[str, Any]:
        observation = {"board": self._board.copy(), "piece": _IDS[self._numbers[QUEUE] & 15]}
        if self._next is not None:
            observation["next"] = self._next.copy()
        return observation

    def _info(self, legal: bool) -> dict[str, Any]:
        numbers = self._numbers
        info = {
            "action_mask": self._mask.copy(),
            "lines": numbers[LINES],
            "score": numbers[SCORE],
            "pieces": numbers[PIECES],
            "legal": legal,
        }
        if self._hidden:
            info["multiset"] = self.rules.multiset(self._states[0])
        return info

    def set_starts(self, pool: Sequence[Mapping[str, Any]] | None) -> None:
        """Draw the start of each new episode from a list of `reset` options, by the environment's own random stream.

        An entry `{}` is an ordinary start; None or an empty list ends it. Options given to `reset` go first.
        """
        self._pool = self.rules.pool(pool)

    def action_masks(self) -> NDArray[np.bool_]:
        """The legal actions as bool[actions] (all True in a terminal state), as MaskablePPO asks for them."""
        self._look()
        return self._mask.astype(np.bool_)

    def clone_state(self) -> NDArray[np.uint64]:
        """The whole game, random stream, score and illegal actions in a row included, to be kept or pickled."""
        return self._states[0].copy()

    def restore_state(self, state: NDArray[np.uint64]) -> None:
        """Go back to what `clone_state` returned; a ValueError for a state that no game by these rules comes to.

        Colours are not part of a state: a picture shows the restored cells in grey.
        """
        self._states[0] = self.rules.restored(state, self._states[0])
        if self._canvas:
            self._canvas.clear()

    def afterstates(self) -> tuple[NDArray[np.uint8], NDArray[np.float64], NDArray[np.bool_]]:
        """What each action leads to before the next piece, in one batch.

        Returns boards uint8[actions, rows, cols], rewards float64[actions], legal bool[actions]. An illegal action's
        board is the present one and its reward 0.
        """
        boards, rewards, legal = batch.afterstates(self._states, self.rules)
        return boards[0], rewards[0], legal[0]

    def afterstate_terms(self, heuristic: Any) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_]]:
        """A heuristic's terms for each action, in the order of its `term_names`; which are legal, and end the game.

        `heuristic` is a name, a mapping with weights, or an `Heuristic`. Returns terms float64[actions, k], legal
        bool[actions], over bool[actions]; for an illegal action terms are 0 and over is False.
        """
        terms, legal, over = afterstate_terms(self._states, self.rules, heuristic)
        return terms[0], legal[0], over[0]

    def render(self) -> Any:
        """The game as text (`"ansi"`) or uint8[height, width, 3] (`"rgb_array"`); shown in a window for `"human"`."""
        if self._canvas is None or self.render_mode is None:
            gym.logger.warn("render() was called without a render_mode; pass one to gymnasium.make")
            return None
        scene = self._canvas.scene(self._states[0])
        if self.render_mode != "human":
            return frame(scene, self.render_mode)
        if self._window is None:
            self._window = Window("Tetris · mergefall", self.metadata["render_fps"])
        self._window.show(draw(scene))
        return None

    def close(self) -> None:
        """Close the window, if there is one."""
        if self._window is not None:
            self._window.close()
            self._window = None

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the views and the window, which are made anew."""
        left_out = (
            "_seen",
            "_board",
            "_next",
            "_mask",
            "_numbers",
            "_kernels",
            "_arrays",
            "_advance",
            "_window",
            "step",
        )
        return {name: value for name, value in self.__dict__.items() if name not in left_out}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._window = None
        self._hold(self._states)
