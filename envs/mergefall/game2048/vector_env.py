"""The batched 2048 environment: one kernel call steps n games, each exactly as the single environment does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from mergefall.game2048 import batch, packed
from mergefall.game2048 import board as core
from mergefall.game2048.env import Game2048Env
from mergefall.game2048.render import frame
from mergefall.game2048.rules import Rules
from mergefall.game2048.shaping import Shaping2048
from mergefall.game2048.views import View2048
from mergefall.typing import Array, Options
from mergefall.vector import GameVectorEnv

FEWEST = 2048  # games of a thread: with fewer, waking the thread takes longer than the work


class Game2048VectorEnv(GameVectorEnv):
    """n games of 2048 stepped together; `Game2048Env` describes the game.

    `gymnasium.make_vec("mergefall/Game2048-v0", num_envs=n)` makes one. Game i of a batch that is reset with seed s
    plays exactly as a single environment that is reset with seed s + i. The batch returns what Gymnasium's
    `SyncVectorEnv` of single environments returns, infos and their `_key` masks included. All arrays are fresh.

    Arguments, besides those of the single environment:
    - `num_envs`: the number of games; default: 1.
    - `autoreset_mode`: `"NextStep"` (default), `"SameStep"`, `"Disabled"`, or Gymnasium's enum.
    - `max_episode_steps`: actions after which an episode is truncated; default: None, no cap.
    - `threads`: the threads that share a step; default: one for each core that has at least 2048 games to play. Results
      do not depend on it.
    - `render_mode`: `"ansi"` or `"rgb_array"`; `render` returns one frame per game.

    >>> import gymnasium as gym, mergefall
    >>> envs = gym.make_vec("mergefall/Game2048-v0", num_envs=3, autoreset_mode="SameStep")
    >>> obs, infos = envs.reset(seed=0)
    >>> obs.shape, infos["action_mask"].shape
    ((3, 4, 4), (3, 4))
    >>> obs, rewards, terminated, truncated, infos = envs.step([0, 1, 2])
    >>> rewards.dtype, infos["score"].dtype
    (dtype('float64'), dtype('int64'))
    """

    shaping_type = Shaping2048
    view_type = View2048

    def __init__(
        self,
        num_envs: int = 1,
        rows: int = 4,
        cols: int = 4,
        goal: int | None = None,
        reward: Literal["score", "log2", "goal"] = "score",
        illegal_limit: int = 100,
        shaping: Options | None = None,
        render_mode: str | None = None,
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        max_episode_steps: int | None = None,
        threads: int | None = None,
    ) -> None:
        rules = Rules(rows, cols, goal, reward, illegal_limit)
        self._set_up(
            rules,
            shaping,
            Game2048Env.metadata,
            num_envs,
            render_mode,
            autoreset_mode,
            max_episode_steps,
            threads,
            FEWEST,
        )
        self._episode_rules = batch.EpisodeRules(
            packed.lines_for(rules.rows, rules.cols),
            batch.REWARDS.index(rules.reward),
            rules.illegal_limit,
            self.max_episode_steps or 0,
        )

    def _empty(self) -> batch.Seen:
        return batch.Seen.empty(self._states)

    def _begin(self, which: NDArray[np.int64], start: Any) -> None:
        if start is None:
            batch.begin(self._states, which, self._pool)
        else:
            batch.begin_from(self._states, which, start)

    def _look(self, which: NDArray[np.int64], seen: batch.Seen) -> None:
        batch.look(self._states, which, seen)

    def _step_part(
        self, part: tuple[int, int], actions: NDArray[np.int64], fresh: NDArray[np.bool_], seen: batch.Seen
    ) -> None:
        batch.stepper()(*part, self._states, actions, fresh, self._pool, self._episode_rules, seen)

    def _observations(self, seen: batch.Seen) -> NDArray[np.uint8]:
        return self._ranks(seen.cells)

    def _columns(self, seen: batch.Seen) -> dict[str, Array]:
        return {
            "action_mask": seen.masks.view(np.int8).reshape(-1, 4),
            "score": seen.scores,
            "max_tile": seen.max_tiles,
            "legal": seen.legal,
        }

    def _ranks(self, cells: NDArray[np.uint64]) -> NDArray[np.uint8]:
        """The ranks in the words of cells uint64[k, words] of k games, as a contiguous uint8[k, rows, cols]."""
        rows, cols = self.rules.rows, self.rules.cols
        ranks = cells.view(np.uint8)[:, : rows * cols]
        return np.ascontiguousarray(ranks).reshape(-1, rows, cols)

    def action_masks(self) -> NDArray[np.bool_]:
        """The legal actions, bool[n, 4]; all True where a game is over."""
        return self._observed()[0]

    def _observed(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        masks = np.empty((self.num_envs, 4), dtype=np.bool_)
        over = np.empty(self.num_envs, dtype=np.bool_)
        batch.observe(self._states, masks, over)
        return masks, over

    def restore_state(self, state: NDArray[np.uint64]) -> None:
        """Go back to states of `clone_state`.

        Raises ValueError for another number of states, or for a state that no such game can reach.
        """
        self._states = self.rules.restored(state, self._states)
        self._ended = self._observed()[1] | (self._states[:, core.ILLEGAL] >= self.rules.illegal_limit)
        if self.max_episode_steps:
            self._ended |= self._states[:, core.STEPS] >= self.max_episode_steps
        self._started = True

    def afterstates(self) -> tuple[NDArray[np.uint8], NDArray[np.float64], NDArray[np.bool_]]:
        """The boards after each action in each game, before the new tile.

        Returns boards uint8[n, 4, rows, cols], rewards float64[n, 4], legal bool[n, 4]. For an illegal action the board
        is the current one and the reward 0.
        """
        rows, cols = self.rules.rows, self.rules.cols
        boards = np.empty((self.num_envs, 4, rows * cols), dtype=np.uint8)
        gains = np.empty((self.num_envs, 4), dtype=np.int64)
        batch.afterstates(self._states, boards, gains)
        return boards.reshape(-1, 4, rows, cols), self.rules.rewards(gains, boards), gains >= 0

    def _frames(self, mode: str) -> Iterator[Any]:
        boards = core.cells_of(self._states, self.rules.rows, self.rules.cols)
        scores = self._states[:, core.SCORE].tolist()
        return (frame(board, score, mode) for board, score in zip(boards, scores, strict=True))
