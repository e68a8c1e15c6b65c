"""The shell of every compiled 2048 player: observations in, values and actions out, and whole episodes in one loop.

A player brings a decision kernel for each way of holding a board (`engines.py`):

    decide(cells, memory, values, settings)    fills values[4], -inf where illegal

`cells` are flat ranks uint8[rows·cols], `memory` uint64[1] is the player's own random stream, `settings` whatever the
kernel needs. The highest value wins, ties go to the first in `order`.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any

import numpy as np
from mergefall.checks import array
from mergefall.game2048 import Game2048Env, board
from mergefall.game2048.packed import fits
from mergefall.game2048.rules import Rules
from mergefall.kernels import kernel
from mergefall.words import stream_from_seed
from numpy.typing import NDArray

from mergefall_baselines.player import NotFiniteError, Player, Trajectory, check_values, has_nonsense, json_of

MARGIN = 64  # own moves ahead for which a packed board must hold; only exact searches look further, on small boards
CHUNK = 256  # moves played between two looks at the keyboard
OVER, OUTGROWN, UNDECIDED = 1, 2, 3
MAX_RANK = 61  # two of the next would merge past int64
ENV_ID = "mergefall/Game2048-v0"


@kernel
def pick(values, order):
    """The action of the highest value; ties, and a board without a legal move, go to the first in `order`."""
    best = order[0]
    for i in range(1, 4):
        if values[order[i]] > values[best]:
            best = order[i]
    return best


@cache
def _episode_kernel(decide: Any, bounded: bool) -> Any:
    """The compiled episode loop of one decision kernel."""

    @kernel(variant=f"{decide.__module__}.{decide.__name__}-{decide.variant}-{'bounded' if bounded else 'any'}")
    def play_on(state, actions, memory, values, order, settings):
        """Play until `actions` is full: moves played, shifted by two bits, and 0 or why it ended."""
        rows, cols, _ = board.shape_of(state)
        cells = board.flat_cells(state, rows, cols)
        for played in range(actions.size):
            if bounded and not fits(cells, rows, cols, MARGIN):
                return played << 2 | OUTGROWN
            decide(cells, memory, values, settings)
            action = pick(values, order)
            if values[action] == -np.inf or has_nonsense(values):
                return played << 2 | UNDECIDED
            actions[played] = action
            result = board.step(state, action)
            if not result >> board.LEGAL_BIT & 1:  # it would be chosen again, for ever
                return played << 2 | UNDECIDED
            if result >> board.OVER_BIT & 1:
                return (played + 1) << 2 | OVER
        return actions.size << 2

    return play_on


def is_count(value: Any) -> bool:
    """Whether an option is an integer from 1 up."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


@lru_cache
def _game(env_kwargs: str) -> Rules:
    """What the environment makes of its arguments, errors included."""
    return Game2048Env(**json.loads(env_kwargs)).rules


class Player2048(Player):
    """A 2048 player with a decision kernel. Options: rows, cols (the environment's, if left out), order (of ties)."""

    def __init__(self, rows: int | None = None, cols: int | None = None, order: Any = None) -> None:
        for name, size in (("rows", rows), ("cols", cols)):
            if size is not None and not (is_count(size) and 2 <= size <= 6):
                raise ValueError(f"{name}={size!r} is no board size; expected an integer from 2 to 6")
        self.rows, self.cols = rows, cols
        actions = np.asarray(range(4) if order is None else order)
        if actions.dtype.kind not in "iu" or actions.ndim != 1 or sorted(actions) != [0, 1, 2, 3]:
            raise ValueError(f"order={order!r} is no order of the actions; expected each of 0, 1, 2, 3 once")
        self._order = actions.astype(np.int64)
        self._lock = threading.RLock()  # scratch memory and tables are the player's own: one decision at a time
        self._held: list[NDArray[Any]] = []  # what kernels know by address
        self._made: dict[Any, tuple[Any, Any]] = {}

    def decider(self, kind: str, rows: int, cols: int) -> tuple[Any, Any]:
        """The kernel that values all moves on boards held as ``packed``, ``small`` or ``wide``, and its settings."""
        return self._once(self._make_decider, kind, rows, cols)

    def chooser(self, kind: str, rows: int, cols: int) -> tuple[Any, Any]:
        """The same for a kernel that need value only the move to choose right; others get a lower value."""
        return self._once(self._make_chooser, kind, rows, cols)

    def _once(self, maker: Any, *key: Any) -> Any:
        if (maker.__name__, key) not in self._made:
            self._made[maker.__name__, key] = maker(*key)
        return self._made[maker.__name__, key]

    def _make_decider(self, kind: str, rows: int, cols: int) -> tuple[Any, Any]:
        raise NotImplementedError

    def _make_chooser(self, kind: str, rows: int, cols: int) -> tuple[Any, Any]:
        return self.decider(kind, rows, cols)

    def with_rules(self, rules: Mapping[str, Any]) -> Player:
        """This player: sizes left out come from each observation; one that differs from `rules` is a ValueError."""
        for name in ("rows", "cols"):
            theirs, ours = rules.get(name), getattr(self, name)
            if theirs is not None and ours is not None and theirs != ours:
                raise ValueError(f"{self.name} was made for {name}={ours}, but the environment has {name}={theirs}")
        return self

    def values(self, observation: Any, state: Any = None) -> NDArray[np.float64]:
        """Value of each action, float64[4] for ranks (rows, cols), [n, 4] for a batch; -inf where illegal."""
        boards, single = self._boards(observation)
        values = self._values(self.decider, boards, self._memory(state, len(boards)))
        return values[0] if single else values

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> tuple[NDArray[np.int64], Any]:
        """The action of the highest value, as `Player.predict` says."""
        boards, single = self._boards(observation)
        memory = self._memory(state, len(boards))
        values = self._values(self.chooser, boards, memory)
        actions = np.array([pick(row, self._order) for row in values], dtype=np.int64)
        remembered = None if self.start(0) is None else memory
        return (actions.reshape(()) if single else actions), remembered

    def play(
        self, env_id: str, seed: int, env_kwargs: Mapping[str, Any] | None = None, max_episode_steps: int | None = None
    ) -> Trajectory:
        """One whole episode from ``reset(seed=seed)``, in a compiled loop: the gym loop's trajectory."""
        if env_id != ENV_ID:
            raise ValueError(f"{self.name} plays {ENV_ID}; got {env_id!r}")
        game = _game(json_of(env_kwargs))
        self.with_rules({"rows": game.rows, "cols": game.cols})
        state = game.new_states(1)[0]
        state[board.STREAM] = stream_from_seed(seed)
        board.start(state)
        with self._lock:
            actions, terminated = self._play_from(state, seed, max_episode_steps)
        top = int(board.cells_of(state, game.rows, game.cols).max())
        figures = {"score": int(state[board.SCORE]), "max_tile": 1 << top}
        return Trajectory(seed, actions, terminated, figures)

    def _play_from(self, state: Any, seed: int, limit: int | None) -> tuple[NDArray[np.uint8], bool]:
        rows, cols, _ = board.shape_of(state)
        memory, values = self._memory(self.start(seed), 1), np.empty(4)
        kinds = [self._narrow_kind(rows, cols), "wide"]
        played: list[NDArray[np.uint8]] = []
        while limit is None or limit > 0:
            decide, settings = self.chooser(kinds[0], rows, cols)
            actions = np.empty(CHUNK if limit is None else min(CHUNK, limit), dtype=np.uint8)
            loop = _episode_kernel(decide, kinds[0] != "wide")
            count, end = divmod(loop(state, actions, memory, values, self._order, settings), 4)
            played.append(actions[:count])
            limit = None if limit is None else limit - count
            if end == OVER:
                return np.concatenate(played), True
            if end == UNDECIDED:
                self._check_values(values[None], board.cells_of(state, rows, cols)[None])
                chosen = pick(values, self._order)
                raise ValueError(f"{self.name} chose action {chosen}, which is illegal; expected a legal one")
            if end == OUTGROWN:
                kinds.pop(0)  # the sum of the tiles only grows: a game that left the packed boards never returns
        return np.concatenate(played), False

    def _values(self, decider: Any, boards: NDArray[np.uint8], memory: NDArray[np.uint64]) -> NDArray[np.float64]:
        """float64[n, 4] for boards uint8[n, rows, cols]; moves the streams in `memory` on."""
        values = np.empty((len(boards), 4))
        rows, cols = boards.shape[1:]
        with self._lock:
            for i, ranks in enumerate(boards):
                kind = self._narrow_kind(rows, cols) if fits(ranks.reshape(-1), rows, cols, MARGIN) else "wide"
                self._decide(decider, kind, ranks, memory[i : i + 1], values[i])
        self._check_values(values, boards)
        return values

    def _check_values(self, values: NDArray[np.float64], boards: NDArray[np.uint8]) -> None:
        """Raises NotFiniteError if there is no best move on boards uint8[n, rows, cols] with legal ones."""
        check_values(self.name, values)
        for ranks in boards[values.max(axis=1) == -np.inf]:
            if board.legal_mask(ranks.reshape(-1), *ranks.shape):
                raise NotFiniteError(f"{self.name} values every legal action at -inf; expected a finite number")

    def _decide(
        self,
        decider: Any,
        kind: str,
        ranks: NDArray[np.uint8],
        memory: NDArray[np.uint64],
        values: NDArray[np.float64],
    ) -> None:
        decide, settings = decider(kind, *ranks.shape)
        decide(ranks.reshape(-1), memory, values, settings)

    @staticmethod
    def _narrow_kind(rows: int, cols: int) -> str:
        if rows == cols == 4:
            return "packed"
        return "small" if rows <= 4 and cols <= 4 else "wide"

    def _boards(self, observation: Any) -> tuple[NDArray[np.uint8], bool]:
        """Observations as uint8[n, rows, cols], and whether there was just one."""
        ranks = array(f"{self.name}: observation", observation, "ranks (rows, cols), or a batch (n, rows, cols)")
        single = ranks.ndim == 2
        if ranks.ndim not in (2, 3) or ranks.dtype.kind not in "iu":
            raise ValueError(
                f"{self.name} got an observation of shape {ranks.shape} and dtype {ranks.dtype}; "
                "expected integer ranks (rows, cols), or a batch (n, rows, cols)"
            )
        for name, size, axis in (("rows", self.rows, -2), ("cols", self.cols, -1)):
            if size is not None and ranks.shape[axis] != size:
                raise ValueError(f"{self.name} plays {name}={size}; got an observation with {ranks.shape[axis]}")
        if not (2 <= ranks.shape[-2] <= 6 and 2 <= ranks.shape[-1] <= 6):
            raise ValueError(f"{self.name} got an observation of shape {ranks.shape}; expected boards from 2×2 to 6×6")
        if ranks.size and not 0 <= ranks.min() <= ranks.max() <= MAX_RANK:
            raise ValueError(f"{self.name} got ranks from {ranks.min()} to {ranks.max()}; expected 0 to {MAX_RANK}")
        boards = np.ascontiguousarray(ranks, dtype=np.uint8)
        return (boards[None] if single else boards), single

    def _memory(self, state: Any, count: int) -> NDArray[np.uint64]:
        """The random streams a decision draws from, uint64[count]: copies, so that `state` stays what it was."""
        if state is None:
            state = self.start(0)
        if state is None:
            return np.zeros(count, dtype=np.uint64)
        memory = np.asarray(state, dtype=np.uint64).reshape(-1)
        if memory.size not in (1, count):
            raise ValueError(f"{self.name} got a state for {memory.size} observations; expected {count}")
        return np.resize(memory, count)
