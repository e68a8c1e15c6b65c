"""The batched 2048 environment: n games stepped by one kernel call, each as the single environment would step it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from mergefall.checks import integer
from mergefall.game2048 import batch, square
from mergefall.game2048 import board as core
from mergefall.game2048.env import Game2048Env
from mergefall.game2048.render import frame
from mergefall.game2048.settings import Settings
from mergefall.threads import cores, share
from mergefall.words import stream_from_seed

FEWEST = 512  # games for a thread: with fewer, waking it takes longer than the work


class Game2048VectorEnv(gym.vector.VectorEnv[NDArray[np.uint8], NDArray[np.int64], NDArray[Any]]):
    """n games of 2048, stepped together; what each does is described at `Game2048Env`.

    Made by `gymnasium.make_vec("mergefall/Game2048-v0", num_envs=n)`. Game i of a batch that is reset with seed s plays
    exactly as a single environment that is reset with seed s + i, and the batch returns what Gymnasium's
    `SyncVectorEnv` of single environments returns, infos and their `_key` masks included. All arrays are fresh.

    Besides the single environment's arguments it takes `num_envs`, `autoreset_mode` (`"NextStep"`, `"SameStep"`,
    `"Disabled"`, or Gymnasium's enum) and `max_episode_steps`, after which an episode is truncated. `render` returns
    one frame per game (`"ansi"` or `"rgb_array"`).

    A step is shared by `threads` threads, by default one for each core if it has at least 512 games to play; results do
    not depend on them.

    >>> import gymnasium as gym, mergefall
    >>> envs = gym.make_vec("mergefall/Game2048-v0", num_envs=3, autoreset_mode="SameStep")
    >>> obs, infos = envs.reset(seed=0)
    >>> obs.shape, infos["action_mask"].shape
    ((3, 4, 4), (3, 4))
    >>> obs, rewards, terminated, truncated, infos = envs.step([0, 1, 2])
    >>> rewards.dtype, infos["score"].dtype
    (dtype('float64'), dtype('int64'))
    """

    def __init__(
        self,
        num_envs: int = 1,
        rows: int = 4,
        cols: int = 4,
        goal: int | None = None,
        reward: Literal["score", "log2"] = "score",
        illegal_limit: int = 100,
        render_mode: str | None = None,
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        max_episode_steps: int | None = None,
        threads: int | None = None,
    ) -> None:
        self.settings = Settings(rows, cols, goal, reward, illegal_limit)
        if render_mode not in (None, "ansi", "rgb_array"):
            raise ValueError(f"render_mode is {render_mode!r}; expected 'ansi', 'rgb_array' or None")
        modes = [mode.value for mode in AutoresetMode]
        if not isinstance(autoreset_mode, AutoresetMode) and autoreset_mode not in modes:
            raise ValueError(f"autoreset_mode is {autoreset_mode!r}; expected one of {modes}")
        self.num_envs = integer("num_envs", num_envs, 1)
        if max_episode_steps is not None:
            max_episode_steps = integer("max_episode_steps", max_episode_steps, 1)
        self.max_episode_steps = max_episode_steps
        most = cores() if threads is None else integer("threads", threads, 1)
        self.threads = max(1, min(most, self.num_envs // FEWEST))
        self.render_mode = render_mode
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.metadata = {**Game2048Env.metadata, "autoreset_mode": self.autoreset_mode}
        self.single_observation_space = self.settings.observation_space()
        self.single_action_space = gym.spaces.Discrete(4)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._rules = batch.Rules(
            square.lines_for(self.settings.rows, self.settings.cols),
            self.settings.reward == "log2",
            self.settings.illegal_limit,
            self.max_episode_steps or 0,
        )
        self._pool = self.settings.pool(None)
        self._states = self.settings.new_states(self.num_envs)
        self._ended = np.zeros(self.num_envs, dtype=np.bool_)  # episodes that the last step ended
        self._nowhere = np.zeros(self.num_envs, dtype=np.bool_)
        self._started = False
        size = max(FEWEST, -(-self.num_envs // (2 * self.threads)))  # two parts a thread, so that none waits for long
        self._parts = [(first, min(first + size, self.num_envs)) for first in range(0, self.num_envs, size)]

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        """Begin all episodes, or those that `options["reset_mask"]` bool[n] marks; seed s is s + i for game i.

        A list gives each game its seed; where there is none the random stream goes on.
        """
        options = dict(options or {})
        mask = self._checked_mask(options.pop("reset_mask", None))
        start = self.settings.start(options)
        for i, one in enumerate(self._seeds(seed)):
            if one is not None and mask[i]:
                self._states[i, core.STREAM] = stream_from_seed(one)
        seen = batch.Seen.empty(self._states)
        which = np.flatnonzero(mask)
        if start is None:
            batch.begin(self._states, which, self._pool, seen)
        else:
            batch.begin_from(self._states, which, start, seen)
        for column in (seen.masks, seen.scores, seen.max_tiles, seen.legal):
            column[~mask] = 0
        self._ended[mask] = False
        self._started = True
        return core.cells_of(self._states, self.settings.rows, self.settings.cols).copy(), _infos(seen, mask)

    def step(
        self, actions: NDArray[np.int64]
    ) -> tuple[NDArray[np.uint8], NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Play one action in each game: ranks uint8[n, rows, cols], rewards, terminated, truncated, infos."""
        actions = self._checked_actions(actions)
        if not self._started:
            raise gym.error.ResetNeeded("Cannot call env.step() before calling env.reset()")
        if self.autoreset_mode is AutoresetMode.DISABLED and self._ended.any():
            over = np.flatnonzero(self._ended)[:10].tolist()
            raise gym.error.ResetNeeded(f"games {over} have ended; reset them with options={{'reset_mask': …}}")
        fresh = self._ended if self.autoreset_mode is AutoresetMode.NEXT_STEP else self._nowhere
        seen = batch.Seen.empty(self._states)
        everything = (self._states, actions, fresh, self._pool, *self._rules, *seen)
        if self.threads == 1:
            batch.step(0, self.num_envs, *everything)
        else:
            share(lambda part: batch.step(*part, *everything), self._parts, self.threads)
        self._ended = seen.terminated | seen.truncated
        infos = {}
        if self.autoreset_mode is AutoresetMode.SAME_STEP and self._ended.any():
            infos = self._restart(seen)
        infos.update(_infos(seen, np.ones(self.num_envs, dtype=np.bool_)))
        return self._ranks(seen.cells), seen.rewards, seen.terminated, seen.truncated, infos

    def _restart(self, seen: batch.Seen) -> dict[str, Any]:
        """Begin the games that have ended anew; returns what they showed at their ends."""
        which = np.flatnonzero(self._ended)
        final = batch.Seen.empty(self._states)
        for kept, column in zip(final, seen, strict=True):
            kept[:] = 0
            kept[which] = column[which]
        boards = np.full(self.num_envs, None, dtype=object)
        for i, board in zip(which, self._ranks(final.cells[which]), strict=True):
            boards[i] = board
        batch.begin(self._states, which, self._pool, seen)
        infos = {"final_obs": boards, "final_info": _infos(final, self._ended)}
        return infos | {f"_{key}": self._ended.copy() for key in infos}

    def _ranks(self, cells: NDArray[np.uint64]) -> NDArray[np.uint8]:
        """The ranks in the cell words uint64[k, words] of k games, contiguous."""
        rows, cols = self.settings.rows, self.settings.cols
        ranks = cells.view(np.uint8)[:, : rows * cols]
        return np.ascontiguousarray(ranks).reshape(-1, rows, cols)

    def _checked_actions(self, actions: Any) -> NDArray[np.int64]:
        actions = np.asarray(actions)
        if actions.shape != (self.num_envs,) or actions.dtype.kind not in "iu":
            found = f"{actions.dtype}{list(actions.shape)}"
            raise ValueError(f"actions are {found}; expected integers of shape ({self.num_envs},)")
        values = np.ascontiguousarray(actions, dtype=np.int64)
        if values.view(np.uint64).max() > 3:
            i = int(np.argmax(values.view(np.uint64) > 3))
            raise ValueError(f"action of game {i} is {actions[i]}; expected 0 up, 1 right, 2 down or 3 left")
        return values

    def _checked_mask(self, mask: Any) -> NDArray[np.bool_]:
        if mask is None:
            return np.ones(self.num_envs, dtype=np.bool_)
        if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_ or mask.shape != (self.num_envs,):
            raise ValueError(f"reset_mask is {mask!r}; expected a bool array of shape ({self.num_envs},)")
        if not mask.any():
            raise ValueError("reset_mask is False everywhere; expected at least one game to reset")
        if not self._started and not mask.all():
            raise gym.error.ResetNeeded("the first reset must be of all games; expected no reset_mask")
        return mask

    def _seeds(self, seed: Any) -> list[int | None]:
        if seed is None:
            return [None] * self.num_envs
        if np.ndim(seed) == 0:
            first = integer("seed", seed, 0)
            return [first + i for i in range(self.num_envs)]
        if len(seed) != self.num_envs:
            raise ValueError(f"seed is a list of {len(seed)}; expected one for each of {self.num_envs} games")
        return [None if one is None else integer("seed", one, 0) for one in seed]

    def set_starts(self, pool: Sequence[Mapping[str, Any]] | None) -> None:
        """Draw the start of each new episode from a list of `reset` options, by each game's own random stream.

        An entry `{}` is an ordinary start; None or an empty list ends it. Holds through autoreset; options given to
        `reset` go first.
        """
        self._pool = self.settings.pool(pool)

    def action_masks(self) -> NDArray[np.bool_]:
        """The legal actions as bool[n, 4] (all True where a game is over)."""
        return self._observed()[0]

    def _observed(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        masks = np.empty((self.num_envs, 4), dtype=np.bool_)
        over = np.empty(self.num_envs, dtype=np.bool_)
        batch.observe(self._states, masks, over)
        return masks, over

    def clone_state(self) -> NDArray[np.uint64]:
        """All games, random streams and steps of the episodes included; row i suits a single environment too."""
        return self._states.copy()

    def restore_state(self, state: NDArray[np.uint64]) -> None:
        """Go back to what `clone_state` returned; a ValueError if that was of another size, goal or number."""
        self._states = self.settings.restored(state, self._states)
        self._ended = self._observed()[1] | (self._states[:, core.ILLEGAL] >= self.settings.illegal_limit)
        if self.max_episode_steps:
            self._ended |= self._states[:, core.STEPS] >= self.max_episode_steps
        self._started = True

    def afterstates(self) -> tuple[NDArray[np.uint8], NDArray[np.float64], NDArray[np.bool_]]:
        """What each action leads to in each game, before the new tile.

        Returns boards uint8[n, 4, rows, cols], rewards float64[n, 4], legal bool[n, 4]. An illegal action's board is
        the present one and its reward 0.
        """
        rows, cols = self.settings.rows, self.settings.cols
        boards = np.empty((self.num_envs, 4, rows * cols), dtype=np.uint8)
        gains = np.empty((self.num_envs, 4), dtype=np.int64)
        batch.afterstates(self._states, boards, gains)
        return boards.reshape(-1, 4, rows, cols), self.settings.rewards(gains), gains >= 0

    def render(self) -> tuple[Any, ...] | None:
        """One frame per game: text for `"ansi"`, uint8[height, width, 3] for `"rgb_array"`."""
        if self.render_mode is None:
            gym.logger.warn("render() was called without a render_mode; pass one to make_vec")
            return None
        boards = core.cells_of(self._states, self.settings.rows, self.settings.cols)
        scores = self._states[:, core.SCORE].tolist()
        return tuple(frame(board, score, self.render_mode) for board, score in zip(boards, scores, strict=True))


def _infos(seen: batch.Seen, mask: NDArray[np.bool_]) -> dict[str, Any]:
    """Gymnasium's batched infos: each column beside a fresh mask of the games it holds for."""
    columns = {
        "action_mask": seen.masks.view(np.int8).reshape(-1, 4),
        "score": seen.scores,
        "max_tile": seen.max_tiles,
        "legal": seen.legal,
    }
    return columns | {f"_{key}": mask.copy() for key in columns}
