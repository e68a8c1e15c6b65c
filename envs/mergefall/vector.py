"""The part of batched environments that both games share: checks, seeds, autoreset, infos with their `_key` masks."""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from mergefall.chance import STREAM, coins
from mergefall.checks import array, choice, integer, made_of, number, typed
from mergefall.env import GameEnv, Games, frame_of, mode_of
from mergefall.games import each
from mergefall.rules import stepper
from mergefall.shaping import Shaping
from mergefall.threads import cores, share
from mergefall.typing import Array, Bools, Dict, Floats, Info, Ints, Observation, Options, Words
from mergefall.words import stream_from_seed

MOST_GAMES = 1 << 24  # of a batch
RENDER_MODES = ("ansi", "rgb_array")
LEAST_BACK, MOST_BACK = 10, 120  # steps that `restarts` go back


class GameVectorEnv(Games, gym.vector.VectorEnv[Any, Ints, Array]):
    """n games stepped together; returns what Gymnasium's `SyncVectorEnv` of single environments returns.

    If a batch is reset with seed s, game i plays exactly as a single environment that is reset with seed s + i. All
    returned arrays are new. Infos are arrays with Gymnasium's `_key` masks; with `"SameStep"`, `final_obs` and
    `final_info` hold the end of an episode. `reset(options={"reset_mask": mask})` resets some of the games.

    The arguments are those of the single environment, and:

    - `num_envs`: int ≥ 1, the number of games; default: 1.
    - `autoreset_mode`: `"NextStep"` (default), `"SameStep"` or `"Disabled"`, with Gymnasium's meaning, or its enum.
    - `max_episode_steps`: int ≥ 1, actions after which an episode is truncated; default: None, no cap.
    - `restarts`: from 0 to 1, with `"SameStep"`: the share of lost games that go on from where they were 10 to 120
      steps before, with other luck, instead of anew. So learners see more of what decides long games. Default: 0.
    - `threads`: int ≥ 1, threads that share a step; results do not depend on it. Default: one for every 2048 games of
      2048 or 1024 of Tetris, at most one for each core.
    - `render_mode`: `"ansi"` or `"rgb_array"`; `render` returns one frame per game. Default: None.
    """

    # Each game is a row of `_states` uint64[n, words]. A step writes what the games show to `seen`, a NamedTuple of
    # fresh arrays with a row for each game, `rewards`, `terminated` and `truncated` among them.

    single_type: ClassVar[type[GameEnv]]
    fewest: ClassVar[int]  # games of a thread: with fewer, waking the thread takes longer than the work

    def __init__(
        self,
        num_envs: int = 1,
        *values: Any,
        shaping: Options | None = None,
        render_mode: str | None = None,
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        max_episode_steps: int | None = None,
        restarts: float = 0.0,
        threads: int | None = None,
        **arguments: Any,
    ) -> None:
        if not isinstance(autoreset_mode, AutoresetMode):
            choice("autoreset_mode", autoreset_mode, [mode.value for mode in AutoresetMode])
        self.rules = rules = self.single_type.rules_type(*values, **arguments)
        self.shaping = Shaping.read(shaping, rules)
        self.num_envs = integer("num_envs", num_envs, 1, MOST_GAMES)
        cap = max_episode_steps
        self.max_episode_steps = None if cap is None else integer("max_episode_steps", cap, 1)
        if threads is None:
            threads = max(1, min(cores(), self.num_envs // self.fewest))
        self.threads = min(integer("threads", threads, 1), self.num_envs)
        self.render_mode = mode_of(render_mode, RENDER_MODES)
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.metadata = self.single_type.metadata | {
            "render_modes": list(RENDER_MODES),
            "autoreset_mode": self.autoreset_mode,
        }
        self.single_observation_space = rules.observation_space()
        self.single_action_space = rules.action_space()
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._pool = rules.pool(None)
        self._states = rules.new_states(self.num_envs)
        self.restarts = number("restarts", restarts, 0, 1)
        if restarts and self.autoreset_mode is not AutoresetMode.SAME_STEP:
            raise ValueError(f"restarts is {restarts}; expected 0, or autoreset_mode='SameStep'")
        self.past: deque[Words] = deque(maxlen=MOST_BACK if restarts else 0)  # the states before the last steps
        self._ended = np.zeros(self.num_envs, dtype=np.bool_)  # games whose episode the last step ended
        self._everyone = np.arange(self.num_envs)
        self._nowhere, self._started = np.zeros(self.num_envs, dtype=np.bool_), False
        self._given_seeds = [-1] * self.num_envs
        size = -(-self.num_envs // (2 * self.threads))  # two parts a thread, so that none waits for long
        self._parts = [(first, min(first + size, self.num_envs)) for first in range(0, self.num_envs, size)]
        pictured = self.num_envs if render_mode else 0
        self._canvases: list[Any] = [self.single_type.canvas_type(rules) for _ in range(pictured)]
        self._limits = rules.limits(self.max_episode_steps or 0)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: Options | None = None
    ) -> tuple[Observation, Info]:
        """Begin an episode in every game, or in those marked by `options["reset_mask"]`: (observations, infos).

        - `seed`: s seeds game i with s + i; a list holds a seed for each game. A game whose seed is None continues its
          random stream.
        - `options`: `reset_mask: bool[n]`, and the options of the single environment, which hold for all these games.
        """
        options = dict(made_of("reset options", options or {}, Mapping, "a mapping"))
        mask = self._checked_mask(options.pop("reset_mask", None))
        start = self.rules.start(options)
        for i, one in enumerate(self._seeds(seed)):
            if one is not None and mask[i]:
                self._states[i, STREAM] = stream_from_seed(one)
                self._given_seeds[i] = one
        seen, starts = self.rules.seen(self.num_envs), self._pool if start is None else start[None]
        self.rules.kernels.begin(self._states, np.flatnonzero(mask), starts, start is None)
        self.rules.kernels.look(self._states, self._everyone, seen, *self.rules.more)
        self._paint_all(np.flatnonzero(mask))
        observations, columns = self.rules.shown(seen)
        for column in columns.values():
            column[~mask] = 0
        self._ended[mask] = False
        self._started = True
        if self.shaping is not None:
            columns["shaping"] = np.zeros(self.num_envs)
        return observations, _infos(columns, mask)

    @property
    def np_random_seed(self) -> tuple[int, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The seed that `reset` last gave to each game; -1 for a game that was given none."""
        return tuple(self._given_seeds)

    def step(self, actions: Ints) -> tuple[Any, Floats, Bools, Bools, Info]:
        """Play one action in each game: (observations, rewards, terminated, truncated, infos).

        Raises ValueError for an action outside the space, and Gymnasium's ResetNeeded before the first reset or, with
        autoreset mode `"Disabled"`, if a game has ended.
        """
        actions = self._checked_actions(actions)
        if not self._started:
            raise gym.error.ResetNeeded("Cannot call env.step() before calling env.reset()")
        if self.autoreset_mode is AutoresetMode.DISABLED and self._ended.any():
            over = np.flatnonzero(self._ended)[:10].tolist()
            raise gym.error.ResetNeeded(f"games {over} have ended; reset them with options={{'reset_mask': …}}")
        if self.restarts:
            self.past.append(self._states.copy())
        self._answer()
        fresh = self.beginning()
        if self.render_mode is not None:
            self._paint_all(np.flatnonzero(~fresh), actions)
            self._paint_all(np.flatnonzero(fresh))
        seen, paid = self.rules.seen(self.num_envs), None
        before = 0.0 if self.shaping is None else self.shaping.of_states(self._states)
        if self.threads == 1:
            self._step_part((0, self.num_envs), actions, fresh, seen)
        else:
            share(lambda part: self._step_part(part, actions, fresh, seen), self._parts, self.threads)
        if self.shaping is not None:
            paid = np.where(fresh, 0.0, self.shaping.gamma * self.shaping.of_states(self._states) - before)
            seen.rewards[:] += paid
        self._ended = seen.terminated | seen.truncated
        infos = {}
        if self.autoreset_mode is AutoresetMode.SAME_STEP and self._ended.any():
            infos = self._restart(seen, paid)
        observations, columns = self.rules.shown(seen)
        if paid is not None:
            columns["shaping"] = paid
        infos.update(_infos(columns, np.ones(self.num_envs, dtype=np.bool_)))
        return observations, seen.rewards, seen.terminated, seen.truncated, infos

    def _answer(self) -> None:
        """Called before each step: an opponent decides here."""

    def _paint_all(self, which: Ints, actions: Ints | None = None) -> None:
        for i in which.tolist() if self.render_mode else ():
            self._canvases[i].paint(self._states[i], None if actions is None else int(actions[i]))

    def _step_part(self, part: tuple[int, int], actions: Any, fresh: Bools, seen: Any) -> None:
        """Step games `part[0]` to `part[1]` - 1, or begin anew those marked in `fresh`; write what they show."""
        stepper(self.rules)(*part, self._states, actions, fresh, self._pool, self._limits, seen)

    def render(self) -> tuple[Any, ...] | None:
        """One frame for each game: text in the mode `"ansi"`, uint8[height, width, 3] in `"rgb_array"`."""
        if self.render_mode is None:
            gym.logger.warn("render() was called without a render_mode; pass one to make_vec")
            return None
        return tuple(
            frame_of(canvas, state, self.render_mode)
            for canvas, state in zip(self._canvases, self._states, strict=True)
        )

    def _restart(self, seen: Any, paid: Floats | None) -> Dict:
        """Begin anew the games that have ended; returns the infos `final_obs` and `final_info` of their ends."""
        which = np.flatnonzero(self._ended)
        last, columns = self.rules.shown(type(seen)(*(column[which] for column in seen)))
        observations = np.full(self.num_envs, None, dtype=object)
        for i, observation in zip(which, each(last), strict=True):
            observations[i] = observation
        final = {}
        for key, column in columns.items():
            final[key] = np.zeros((self.num_envs, *column.shape[1:]), dtype=column.dtype)
            final[key][which] = column
        if paid is not None:
            final["shaping"] = np.where(self._ended, paid, 0.0)
            paid[which] = 0.0
        self.rules.kernels.begin(self._states, which, self._pool, True)
        if self.restarts:
            self._go_back(np.flatnonzero(seen.terminated))
        self._paint_all(which)
        self.rules.kernels.look(self._states, which, seen, *self.rules.more)
        infos = {"final_obs": observations, "final_info": _infos(final, self._ended)}
        return infos | {f"_{key}": self._ended.copy() for key in infos}

    def _go_back(self, lost: Ints) -> None:
        """Return a share of the games that were `lost` to an earlier state, with the random stream that they have."""
        luck = coins(self._states[lost, STREAM]) / self.restarts
        steps = LEAST_BACK + (luck * (MOST_BACK - LEAST_BACK + 1)).astype(np.int64)
        for i, back in zip(lost[luck < 1], steps[luck < 1], strict=True):
            self._states[i, STREAM + 1 :] = self.past[-min(back, len(self.past))][i, STREAM + 1 :]

    def _checked_actions(self, actions: Any) -> Ints:
        actions = array("actions", actions, f"integers of shape ({self.num_envs},)")
        if actions.shape != (self.num_envs,) or actions.dtype.kind not in "iu":
            shape = list(actions.shape)
            raise ValueError(f"actions are {actions.dtype}{shape}; expected integers of shape ({self.num_envs},)")
        values = np.ascontiguousarray(actions, dtype=np.int64)
        unsigned = values.view(np.uint64)  # where a negative action is above all others
        if unsigned.max() >= self.rules.n_actions:
            i = int(np.argmax(unsigned >= self.rules.n_actions))
            raise ValueError(f"action of game {i} is {actions[i]}; expected {self.rules.actions_text()}")
        return values

    def _checked_mask(self, mask: Any) -> Bools:
        if mask is None:
            return np.ones(self.num_envs, dtype=np.bool_)
        mask = typed("reset_mask", mask, np.bool_, self.num_envs)
        if not self._started and not mask.all():
            raise gym.error.ResetNeeded("the first reset must be of all games; expected no reset_mask")
        return np.ascontiguousarray(mask)  # kernels do not look at strides

    def _seeds(self, seed: Any) -> list[int | None]:
        if seed is None:
            return [None] * self.num_envs
        if not isinstance(seed, list | tuple | np.ndarray) or getattr(seed, "ndim", 1) == 0:
            first = integer("seed", seed, 0, None)
            return [first + i for i in range(self.num_envs)]
        if len(seed) != self.num_envs:
            raise ValueError(f"seed is a list of {len(seed)}; expected one for each of {self.num_envs} games")
        return [None if one is None else integer("seed", one, 0, None) for one in seed]

    def beginning(self) -> Bools:
        """Which games the next step begins anew, bool[n]: in `"NextStep"` mode those that have ended, else none.

        The array belongs to the batch: it is to be left as it is.
        """
        return self._ended if self.autoreset_mode is AutoresetMode.NEXT_STEP else self._nowhere

    def observations(self) -> Any:
        """The batched observation of all games now, as the last reset or step returned it."""
        return self.rules.observations(self._states)

    def restore_state(self, state: Words, past: Iterable[Words] | None = None) -> None:
        """Return to states from `clone_state`; `past`: to what `restarts` go back, as in the attribute `past`.

        Raises ValueError for another number of states, and for states of other rules or damaged ones.
        """
        before = self.past if past is None else [self.rules.restored(one, self._states) for one in past]
        self._states = self.rules.restored(state, self._states)
        self.past = deque(before, self.past.maxlen)
        self._ended = self.rules.ended(self._states, self.max_episode_steps)
        self._started = True
        self._paint_all(self._everyone)


def _infos(columns: Dict, mask: Bools) -> Dict:
    """Gymnasium's batched infos: each column beside a fresh mask of the games that it is valid for."""
    return columns | {f"_{key}": mask.copy() for key in columns}
