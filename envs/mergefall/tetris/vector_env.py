"""The batched Tetris environment: n games stepped by one kernel call, each as the single environment would step it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from mergefall.tetris import batch, game
from mergefall.tetris.env import TetrisEnv
from mergefall.tetris.render import Canvas, frame
from mergefall.tetris.rules import Rules
from mergefall.tetris.shaping import ShapingTetris
from mergefall.tetris.terms import afterstate_terms
from mergefall.tetris.views import ViewTetris
from mergefall.typing import Array, Options
from mergefall.vector import GameVectorEnv

FEWEST = 1024  # games for a thread: with fewer, waking it takes longer than the work


class TetrisVectorEnv(GameVectorEnv):
    """n games of Tetris, stepped together; `TetrisEnv` describes the game.

    `gymnasium.make_vec("mergefall/Tetris-v0", num_envs=n)` makes it. If a batch is reset with seed s, game i plays
    exactly as a single environment that is reset with seed s + i. The batch returns what Gymnasium's `SyncVectorEnv` of
    single environments returns, infos and their `_key` masks included. Every returned array is new.

    Arguments besides those of `TetrisEnv`:

    - `num_envs`: the number of games; default: 1.
    - `autoreset_mode`: `"NextStep"` (default), `"SameStep"` or `"Disabled"`, or Gymnasium's enum.
    - `max_episode_steps`: steps after which an episode is truncated; default: None.
    - `threads`: threads that share a step; default: one for each core, each with at least 1024 games. Results do not
      depend on it.
    - `render_mode`: `"ansi"` or `"rgb_array"`; `render` returns one frame per game. Default: None.

    >>> import gymnasium as gym, mergefall
    >>> envs = gym.make_vec("mergefall/Tetris-v0", num_envs=3, preview=2)
    >>> obs, infos = envs.reset(seed=0)
    >>> obs["board"].shape, obs["piece"].shape, obs["queue"].shape, infos["action_mask"].shape
    ((3, 20, 10), (3,), (3, 2), (3, 40))
    >>> obs, rewards, terminated, truncated, infos = envs.step([0, 1, 2])
    >>> rewards.dtype, infos["pieces"]
    (dtype('float64'), array([1, 1, 1]))
    """

    shaping_type = ShapingTetris
    view_type = ViewTetris

    def __init__(
        self,
        num_envs: int = 1,
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
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        max_episode_steps: int | None = None,
        threads: int | None = None,
    ) -> None:
        rules = Rules(cols, rows, pieces, randomizer, preview, placements, overflow, reward, illegal_limit)
        self._set_up(
            rules,
            shaping,
            TetrisEnv.metadata,
            num_envs,
            render_mode,
            autoreset_mode,
            max_episode_steps,
            threads,
            FEWEST,
        )
        self._episode_rules = batch.EpisodeRules(
            rules.payments(), rules.illegal_limit, max_steps=self.max_episode_steps or 0
        )
        self._slides = rules.placements == "slide"
        self._canvases = [Canvas(rules) for _ in range(self.num_envs)] if render_mode else []

    def _empty(self) -> batch.Seen:
        return batch.Seen.empty(self.num_envs, self.rules)

    def _begin(self, which: NDArray[np.int64], start: Any) -> None:
        if start is None:
            batch.begin(self._states, which, self._pool)
        else:
            batch.begin_from(self._states, which, start)
        if self._canvases:
            for i in which:
                self._canvases[i].clear()

    def _look(self, which: NDArray[np.int64], seen: batch.Seen) -> None:
        batch.kernels_for(self._slides).look(self._states, which, seen)

    def _step_part(
        self, part: tuple[int, int], actions: NDArray[np.int64], fresh: NDArray[np.bool_], seen: batch.Seen
    ) -> None:
        for i in range(*part) if self._canvases else ():
            if fresh[i]:
                self._canvases[i].clear()
            else:
                self._canvases[i].paint(self._states[i], int(actions[i]))
        step = batch.compiled_step(self._slides)
        step(*part, self._states, actions, fresh, self._pool, self._episode_rules, seen)

    def _observations(self, seen: batch.Seen) -> dict[str, Array]:
        board = seen.boards.reshape(-1, self.rules.rows, self.rules.cols)
        observations: dict[str, Array] = {"board": board, "piece": seen.pieces}
        return observations | {"queue": seen.nexts} if self.rules.preview else observations

    def _columns(self, seen: batch.Seen) -> dict[str, Array]:
        columns = {
            "action_mask": seen.masks,
            "lines": seen.lines,
            "score": seen.scores,
            "pieces": seen.placed,
            "legal": seen.legal,
        }
        return columns | {"multiset": seen.multisets} if self.rules.randomizer == "hidden" else columns

    def action_masks(self) -> NDArray[np.bool_]:
        """The legal actions as bool[n, actions]; all True where a game is over."""
        seen = self._empty()
        self._look(self._everyone, seen)
        return seen.masks.astype(np.bool_)

    def restore_state(self, state: NDArray[np.uint64]) -> None:
        """Return to states from `clone_state`.

        Raises ValueError for another number of states, or for a state that no game by these rules can reach.
        """
        self._states = self.rules.restored(state, self._states)
        self._ended = self.rules.over(self._states) | (self._states[:, game.ILLEGAL] >= self.rules.illegal_limit)
        if self.max_episode_steps:
            self._ended |= self._states[:, game.STEPS] >= self.max_episode_steps
        self._started = True
        for canvas in self._canvases:
            canvas.clear()

    def afterstates(self) -> tuple[NDArray[np.uint8], NDArray[np.float64], NDArray[np.bool_]]:
        """The board after each action in each game, before the next piece: (boards, rewards, legal).

        - `boards`: uint8[n, actions, rows, cols]; the present board for an illegal action
        - `rewards`: float64[n, actions], without shaping; 0 for an illegal action
        - `legal`: bool[n, actions]

        A placement that ends the game is legal; `fatal_actions` tells which ones do.
        """
        return batch.afterstates(self._states, self.rules)[:3]

    def fatal_actions(self) -> NDArray[np.bool_]:
        """Whether each action is legal and ends its game: bool[n, actions]."""
        return batch.afterstates(self._states, self.rules).fatal

    def afterstate_terms(self, heuristic: Any) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_]]:
        """Like `TetrisEnv.afterstate_terms`: terms float64[n, actions, k], legal and over bool[n, actions]."""
        return afterstate_terms(self._states, self.rules, heuristic)

    def _frames(self, mode: str) -> Iterator[Any]:
        scenes = (canvas.scene(state) for canvas, state in zip(self._canvases, self._states, strict=True))
        return (frame(scene, mode) for scene in scenes)
