"""The Tetris environment: a thin shell over the rules of `game.py`."""

from __future__ import annotations

from collections.abc import Sequence
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
from mergefall.tetris.game import ILLEGAL, LEGAL_BIT, LINES, LINES_SHIFT, NIBBLE, OVER_BIT, PIECES, QUEUE, SCORE, STREAM
from mergefall.tetris.render import Canvas, frame, surface_of, to_html
from mergefall.tetris.rules import Rules
from mergefall.tetris.shaping import ShapingTetris
from mergefall.tetris.terms import afterstate_terms
from mergefall.tetris.views import ViewTetris
from mergefall.typing import Info, Options
from mergefall.words import stream_from_seed

_GAME_0 = np.zeros(1, dtype=np.int64)
# (whether the action was legal, whether the game is over) by a step's result without its lines, and piece ids as NumPy
# integers: looking them up is faster than making them.
_NO_LINES = (1 << LINES_SHIFT) - 1
_FLAGS = tuple((bool(result >> LEGAL_BIT & 1), bool(result >> OVER_BIT & 1)) for result in range(_NO_LINES + 1))
_IDS = tuple(np.arange(NIBBLE + 1))


class TetrisEnv(gym.Env[dict[str, Any], int]):
    """
    ## Description

    Tetris as the literature on controllers plays it: one action places one piece. The piece drops straight down from
    above the field in a rotation and column that the player chooses. Full rows are removed, the rows above them move
    down, and the next piece is drawn. There is no gravity, no steering and no clock. Rules: C. Thiery & B. Scherrer
    (`mdptetris`); `mergefall.tetris.place` plays one placement, and `reference.py` states the rules in plain Python.

    - `mergefall/Tetris-v0`: the seven tetrominoes on 10 columns × 20 rows.
    - `mergefall/SZTetris-v0`: S and Z only.
    - `mergefall/Quintris-v0`: six five-cell pieces on 15 × 25; each game draws their proportions and keeps them secret.

    ## Action Space

    - `placements="drop"`: `Discrete(4 · cols)`, action = rotation · cols + column. Drop the piece.
    - `placements="slide"`: `Discrete(12 · cols)`, action = slide · 4 · cols + rotation · cols + column. Drop the piece;
      then slide 0 leaves it, 1 moves it one column left and 2 one column right, if the cells there are free, and it
      falls to rest.

    Rotation 0 is the spawn orientation, +1 a quarter turn clockwise. `column` is the piece's leftmost column when it is
    dropped.

    An action is *illegal* if it lies beyond the wall, uses a rotation that repeats another, slides where the piece
    cannot move, or ends in the cells of a lower legal action. An illegal action changes neither the game nor the random
    stream and pays 0. An action outside the space raises `ValueError`.

    ## Observation Space

    `Dict` of

    - `board`: uint8[rows, cols], `Box(0, 1)`: 1 for a filled cell, row 0 on top;
    - `piece`: `Discrete(n)`, the id of the piece to place;
    - `queue`: int64[preview], `MultiDiscrete([n] · preview)`, the ids of the following pieces; absent for `preview=0`.

    Ids: I O T S Z J L = 0 … 6. `pieces="sz"` keeps them and uses 3 and 4. `pieces="five"`: plus, I5, L5, Y5, U, N =
    0 … 5.

    ## Starting State

    An empty board. `reset(options=…)` starts elsewhere; each option may be left out:

    - `board`: a board without full rows, as cells of 0 and 1 or as text (see `mergefall.tetris.to_text`);
    - `piece`: an id or a name;
    - `queue`: a list of ids or names, one for each previewed piece.

    `set_starts(pool)` draws each new episode's start from a list of such options.

    ## Rewards

    - `reward="lines"`: the number of rows cleared.
    - `reward="score"`: 40, 100, 300, 1200 for one to four rows, as in Nintendo's Tetris (NES, 1989) at level 0; 1240
      for five.
    - With `shaping`, each step also pays F = γΦ(s′) − Φ(s), where Φ is 0 in a terminal state.

    ## Episode End

    Above the field lie as many storage rows as the tallest piece needs.

    - Terminated with `overflow="strict"`: when a piece rests with a cell above the field; nothing is cleared then.
    - Terminated with `overflow="clear_first"`: when a cell is left above the field after full rows are cleared.
    - Truncated: after `illegal_limit` illegal actions in a row. For other caps use Gymnasium's `max_episode_steps`.

    A placement that ends the game is legal.

    ## Information

    `reset` and `step` return

    - `action_mask`: int8[actions], 1 for each legal action of the new piece; all ones in a terminal state, because
      samplers need an entry;
    - `lines`, `score`, `pieces`: int, rows cleared, their score as above, and pieces placed, whatever the reward;
    - `legal`: bool, whether the action was legal (True after `reset`);
    - `multiset`: int64[n], with `randomizer="hidden"` only: the copies of each piece in the game's secret multiset. It
      is for evaluators; observations never show it;
    - `shaping`: float, with the argument `shaping` only: F; 0 after `reset`.

    The unwrapped environment has `action_masks()`, `clone_state()`, `restore_state(state)`, `afterstates()`,
    `afterstate_terms(heuristic)` and `set_starts(pool)`.

    ## Arguments

    - `cols`: 4 to 16; default: 10.
    - `rows`: 4 to 40; default: 20.
    - `pieces`: `"tetromino"` (default), `"sz"` (S and Z only) or `"five"` (the six five-cell pieces).
    - `randomizer`: `"uniform"` (default): independent, all pieces equally likely. `"bag7"`: each piece once before any
      repeats. `"hidden"`: independent, with weights 0 to 10 that each game draws for each piece.
    - `preview`: the number of pieces shown after the current one, 0 to 8; default: 1.
    - `placements`: `"drop"` (default) or `"slide"`.
    - `overflow`: `"strict"` (default) or `"clear_first"`.
    - `reward`: `"lines"` (default) or `"score"`.
    - `illegal_limit`: illegal actions in a row after which the episode is truncated; default: 100.
    - `shaping`: a mapping for potential-based shaping, which keeps the optimal policy; default: None. `potential` is a
      heuristic's name, or a mapping of `name` and weights; its board terms count. Optional: `gamma` (default: 0.99; it
      must be the learner's), `scale`, `squash` and `offset` (defaults for each potential: `mergefall.shaping`).
    - `render_mode`: `"ansi"`, `"rgb_array"`, `"human"` or None (default). Cells have their pieces' colours; cells that
      were given or restored are grey.

    `gymnasium.make_vec("mergefall/Tetris-v0", num_envs=n)` makes the batched environment, `TetrisVectorEnv`.

    ## Example

    >>> import gymnasium as gym, mergefall
    >>> env = gym.make("mergefall/Tetris-v0", cols=4, rows=4)
    >>> start = {"board": "..../..../..../##..", "piece": "O", "queue": ["T"]}
    >>> obs, info = env.reset(seed=0, options=start)
    >>> obs["piece"], obs["queue"], info["action_mask"].sum()
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
    view_type: ClassVar[type[ViewTetris]] = ViewTetris

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
        shaping: Options | None = None,
        render_mode: str | None = None,
    ) -> None:
        self.rules = Rules(cols, rows, pieces, randomizer, preview, placements, overflow, reward, illegal_limit)
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise ValueError(f"render_mode is {render_mode!r}; expected one of {self.metadata['render_modes']} or None")
        self.render_mode = render_mode
        self.shaping = self.shaping_type.read(shaping, self.rules)
        self.observation_space = self.rules.observation_space()  # pyright: ignore[reportAttributeAccessIssue]
        self.action_space = self.rules.action_space()  # pyright: ignore[reportAttributeAccessIssue]
        self._actions = self.rules.n_actions
        self._limit = self.rules.illegal_limit
        self._hidden = randomizer == "hidden"
        self._payments = self.rules.payments().tolist()
        self._pool = self.rules.pool(None)
        self._canvas = Canvas(self.rules) if render_mode else None
        self._window: Any = None
        self._aim: int | None = None
        self._hold(self.rules.new_states(1))

    def _hold(self, states: NDArray[np.uint64]) -> None:
        """Take over a game's state uint64[1, words]; keep views of it and the compiled step, for speed."""
        self._states = states
        self._seen = seen = batch.Seen.empty(1, self.rules)
        self._board = seen.boards.reshape(self.rules.rows, self.rules.cols)
        self._next = seen.nexts[0] if self.rules.preview else None
        self._mask = seen.masks[0]
        self._numbers = memoryview(states[0])  # pyright: ignore[reportArgumentType]
        self._kernels = batch.kernels_for(self.rules.placements == "slide")
        self._arrays = seen.boards, seen.nexts, seen.masks
        self._advance = direct(self._kernels.step_one, states, 0, *self._arrays)
        if self.shaping is not None:  # wrapped here, so that `step` stays fast without shaping
            self.step = partial(self.shaping.step, lambda: self._states, partial(type(self).step, self))

    def reset(self, *, seed: int | None = None, options: Options | None = None) -> tuple[dict[str, Any], Info]:
        """Begin an episode. A seed fixes all later draws; without a seed the random stream continues."""
        start = self.rules.start(options)
        seed = None if seed is None else integer("seed", seed, 0)
        super().reset(seed=seed)
        if seed is not None:
            self._states[0, STREAM] = stream_from_seed(seed)
        if start is None:
            batch.begin(self._states, _GAME_0, self._pool)
        else:
            batch.begin_from(self._states, _GAME_0, start)
        self._look()
        if self._canvas:
            self._canvas.clear()
            if self.render_mode == "human":
                self.render()
        info = self._info(True)
        if self.shaping is not None:
            info["shaping"] = 0.0
        return self._observation(), info

    def step(self, action: int) -> tuple[dict[str, Any], float, bool, bool, Info]:
        """Play one action: (observation, reward, terminated, truncated, info)."""
        try:
            action = index(action)
        except TypeError:
            action = self.rules.action_index(action)  # raises, with the reason
        if not 0 <= action < self._actions:
            self.rules.action_index(action)
        if self._canvas:
            self._canvas.paint(self._states[0], action)
        result = self._advance(self._states, action, *self._arrays)
        if self.render_mode == "human":
            self.render()
        legal, over = _FLAGS[result & _NO_LINES]
        truncated = not legal and self._numbers[ILLEGAL] >= self._limit
        return self._observation(), self._payments[result >> LINES_SHIFT], over, truncated, self._info(legal)

    def _look(self) -> None:
        """Fill the arrays that observations and masks are copied from."""
        self._kernels.look(self._states, _GAME_0, self._seen)

    def _observation(self) -> dict[str, Any]:
        observation = {"board": self._board.copy(), "piece": _IDS[self._numbers[QUEUE] & NIBBLE]}
        if self._next is not None:
            observation["queue"] = self._next.copy()
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

    def set_starts(self, pool: Sequence[Options] | None) -> None:
        """Draw the start of each new episode from a list of `reset` options, with the environment's random stream.

        The entry `{}` is an ordinary start. None or an empty list restores ordinary starts. Options that are passed to
        `reset` take precedence.
        """
        self._pool = self.rules.pool(pool)

    def action_masks(self) -> NDArray[np.bool_]:
        """The legal actions as bool[actions], for MaskablePPO; all True in a terminal state."""
        self._look()
        return self._mask.astype(np.bool_)

    def clone_state(self) -> NDArray[np.uint64]:
        """The whole game as uint64[words], random stream and counts included, to keep or to pickle."""
        return self._states[0].copy()

    def restore_state(self, state: NDArray[np.uint64]) -> None:
        """Return to a state from `clone_state`. Raises ValueError for a state that no game by these rules can reach.

        Colours are not part of a state: pictures show restored cells in grey.
        """
        self._states[0] = self.rules.restored(state, self._states[0])
        if self._canvas:
            self._canvas.clear()

    def afterstates(self) -> tuple[NDArray[np.uint8], NDArray[np.float64], NDArray[np.bool_]]:
        """The board after each action, before the next piece: (boards, rewards, legal).

        - `boards`: uint8[actions, rows, cols]; the present board for an illegal action
        - `rewards`: float64[actions], without shaping; 0 for an illegal action
        - `legal`: bool[actions]

        A placement that ends the game is legal; `fatal_actions` tells which ones do.
        """
        found = batch.afterstates(self._states, self.rules)
        return found.boards[0], found.rewards[0], found.legal[0]

    def fatal_actions(self) -> NDArray[np.bool_]:
        """Whether each action is legal and ends the game: bool[actions].

        >>> import gymnasium as gym, mergefall
        >>> env = gym.make("mergefall/Tetris-v0", cols=4, rows=4).unwrapped
        >>> _ = env.reset(options={"board": "##../##../##../##..", "piece": "O"})
        >>> env.action_masks().nonzero()[0].tolist(), env.fatal_actions().nonzero()[0].tolist()
        ([0, 1, 2], [0, 1])
        """
        return batch.afterstates(self._states, self.rules).fatal[0]

    def chance_outcomes(self, action: int) -> tuple[dict[str, Any], NDArray[np.float64]]:
        """Every observation that chance can make of an action's afterstate, with its probability.

        Returns a batch of observations, one for each piece that may be drawn, and probabilities float64[outcomes],
        which sum to 1. With `randomizer="hidden"` they are those of the hidden multiset. The game does not change.
        Raises ValueError for an illegal action.

        >>> import gymnasium as gym, mergefall
        >>> env = gym.make("mergefall/Tetris-v0", pieces="sz", preview=0).unwrapped
        >>> _ = env.reset(seed=0)
        >>> observations, probabilities = env.chance_outcomes(0)
        >>> observations["board"].shape, observations["piece"].tolist(), probabilities.tolist()
        ((2, 20, 10), [3, 4], [0.5, 0.5])
        """
        boards, _, legal = self.afterstates()
        action = self.rules.action_index(action)
        if not legal[action]:
            raise ValueError(f"action {action} is illegal here; legal are {np.flatnonzero(legal).tolist()}")
        outcomes = self.rules.chance_outcomes(boards[action], self._states[0])
        return outcomes.observations, outcomes.probabilities

    def afterstate_terms(self, heuristic: Any) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_]]:
        """A heuristic's terms for each action: (terms, legal, over).

        - `terms`: float64[actions, k], in the order of the heuristic's `term_names`; 0 for an illegal action
        - `legal`: bool[actions]
        - `over`: bool[actions], whether the action ends the game; False for an illegal action

        `heuristic` is a name, a mapping of `name` and weights, or a `Heuristic`.
        """
        terms, legal, over = afterstate_terms(self._states, self.rules, heuristic)
        return terms[0], legal[0], over[0]

    def render(self) -> Any:
        """The game as text (`"ansi"`) or uint8[height, width, 3] (`"rgb_array"`); None and a window for `"human"`."""
        if self._canvas is None or self.render_mode is None:
            gym.logger.warn("render() was called without a render_mode; pass one to gymnasium.make")
            return None
        scene = self._canvas.scene(self._states[0], self._aim)
        if self.render_mode != "human":
            return frame(scene, self.render_mode)
        if self._window is None:
            self._window = Window("Tetris · mergefall", self.metadata["render_fps"])
        self._window.show(surface_of(scene))
        return None

    def _repr_html_(self) -> str:
        """The field and the pieces, as a notebook shows them for a cell; in colours if there is a render mode."""
        return to_html((self._canvas or Canvas(self.rules)).scene(self._states[0]))

    def aim(self, action: int | None) -> None:
        """Let `render` outline where an action would bring the current piece to rest, until another call.

        An illegal action outlines nothing, and so does None. For programs in which a person plays.

        Raises ValueError for an action outside the space.
        """
        self._aim = None if action is None else self.rules.action_index(action)

    def close(self) -> None:
        """Close the window, if there is one."""
        if self._window is not None:
            self._window.close()
            self._window = None

    def __getstate__(self) -> dict[str, Any]:
        """The attributes without views, compiled step and window, which `__setstate__` makes anew."""
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
