"""The shell of 2048's players: `KernelPlayer` for boards.

A player brings a decision kernel for each way of holding a board (`Boards`):

    decide(cells, memory, values, settings)

- `cells`: uint8[rows·cols], the board's ranks in row-major order.
- `memory`: uint64[1], the player's random stream.
- `values`: float64[4], filled by the kernel; -inf where illegal.
- `settings`: whatever the kernel needs.

The highest value wins; ties go to the first in `order`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from mergefall.checks import array
from mergefall.game2048 import board
from mergefall.game2048.packed import fits
from mergefall.game2048.rules import LARGEST, SMALLEST, Rules
from mergefall.games import GAMES
from mergefall.interrupt import stopped
from mergefall.kernels import kernel
from mergefall.typing import Array, Kernel, Observation, Options
from numpy.typing import NDArray

from mergefall_baselines.kernel_player import (
    FULL,
    OUTGROWN,
    OVER,
    UNDECIDED,
    KernelPlayer,
    Positions,
    has_nonsense,
    loop_result,
)
from mergefall_baselines.player import NotFiniteError, Trajectory, check_values, play_in_env

MARGIN = 64  # own moves ahead for which a packed board must hold; only exact searches look further, on small boards
MAX_RANK = 57  # the next ones may merge past int64 on 6×6, where a move makes 18 merges


class Boards(NamedTuple):
    """How a kernel holds boards, and their size; `engines.py` has the kernels for each kind."""

    kind: str  # "packed": 4×4 in a word; "small": smaller boards in a word; "wide": any board
    rows: int
    cols: int
    n_actions = 4

    @property
    def bounded(self) -> bool:
        """Whether a game can outgrow them: a word holds no rank above 15."""
        return self.kind != "wide"


def narrowest(rows: int, cols: int) -> Boards:
    """The fastest way to hold boards of this size while their tiles fit."""
    if rows == cols == 4:
        return Boards("packed", rows, cols)
    return Boards("small" if rows <= 4 and cols <= 4 else "wide", rows, cols)


class Position(NamedTuple):
    """One board to decide on."""

    boards: Boards
    cells: NDArray[np.uint8]  # uint8[rows·cols]


class Batch(Sequence[Position]):
    """The positions of the boards `flat` uint8[n, rows·cols].

    `kinds` are the two ways to hold them, and `narrow` bool[n] says which boards fit the first.
    """

    def __init__(self, flat: NDArray[np.uint8], rows: int, cols: int) -> None:
        self.flat, self.kinds = flat, (narrowest(rows, cols), Boards("wide", rows, cols))
        self.narrow = np.empty(len(flat), dtype=np.bool_)
        _fit(flat, rows, cols, self.narrow)

    def __len__(self) -> int:
        return len(self.flat)

    def __getitem__(self, i: Any) -> Any:
        return Position(self.kinds[0 if self.narrow[i] else 1], self.flat[i])


@kernel
def _fit(flat, rows, cols, narrow):
    for i in range(len(flat)):
        narrow[i] = fits(flat[i], rows, cols, MARGIN)


@kernel
def pick(values, order):
    """The action of the highest value; ties, and a board without a legal move, go to the first in `order`."""
    best = order[0]
    for i in range(1, 4):
        if values[order[i]] > values[best]:
            best = order[i]
    return best


@cache
def _loop_kernel(decide: Kernel, bounded: bool) -> Kernel:
    """The compiled episode loop of one decision kernel."""

    @kernel(variant=f"{decide.__module__}.{decide.__name__}-{decide.variant}-{'bounded' if bounded else 'any'}")
    def play_on(state, actions, memory, values, settings):
        order, own = settings
        rows, cols, _ = board.shape_of(state)
        cells = board.flat_cells(state, rows, cols)
        for played in range(actions.size):
            if bounded and not fits(cells, rows, cols, MARGIN):
                return loop_result(played, OUTGROWN)
            if stopped():
                break
            decide(cells, memory, values, own)
            action = pick(values, order)
            if values[action] == -np.inf or has_nonsense(values):
                return loop_result(played, UNDECIDED)
            actions[played] = action
            gain, _, over, _ = board.step(state, action)
            if gain < 0:  # it would be chosen again, for ever
                return loop_result(played, UNDECIDED)
            if over:
                return loop_result(played + 1, OVER)
        return loop_result(actions.size, FULL)

    return play_on


@cache
def _batch_kernel(decide: Kernel) -> Kernel:
    """The compiled loop of one decision kernel over some boards of a batch."""

    @kernel(variant=f"{decide.__module__}.{decide.__name__}-{decide.variant}")
    def decide_all(which, memory, values, actions, cells, order, own):
        for i in which:
            decide(cells[i], memory[i], values[i], own)
            actions[i] = pick(values[i], order)

    return decide_all


def is_count(value: Any) -> bool:
    """Whether an option is an integer of at least 1."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


class Player2048(KernelPlayer):
    """A 2048 player with a decision kernel.

    Args:
        rows, cols: the board's size, 2 to 6. Default: the observation's.
        order: the four actions; ties go to the first of them. Default: 0, 1, 2, 3.
    """

    game = GAMES["2048"]
    rules_type = Rules
    start_game = staticmethod(board.start)
    two_kernels = False

    def __init__(self, rows: int | None = None, cols: int | None = None, order: Sequence[int] | None = None) -> None:
        for name, size in (("rows", rows), ("cols", cols)):
            if size is not None and not (is_count(size) and SMALLEST <= size <= LARGEST):
                raise ValueError(f"{name}={size!r} is no board size; expected an integer from {SMALLEST} to {LARGEST}")
        super().__init__({"rows": rows, "cols": cols})
        actions = np.asarray(range(4) if order is None else order)
        if actions.dtype.kind not in "iu" or actions.ndim != 1 or sorted(actions) != [0, 1, 2, 3]:
            raise ValueError(f"order={order!r} is no order of the actions; expected each of 0, 1, 2, 3 once")
        self._order = actions.astype(np.int64)

    def _make_decider(self, rules: Boards, exact: bool) -> tuple[Kernel, Any]:
        raise NotImplementedError

    def _ranks(self, observation: Observation) -> Array:
        """An observation or a batch as ranks; raises ValueError for anything else."""
        ranks = array(f"{self.name}: observation", observation, "ranks (rows, cols), or a batch (n, rows, cols)")
        if ranks.ndim not in (2, 3) or ranks.dtype.kind not in "iu":
            raise ValueError(
                f"{self.name} got an observation of shape {ranks.shape} and dtype {ranks.dtype}; "
                "expected integer ranks (rows, cols), or a batch (n, rows, cols)"
            )
        rows, cols = ranks.shape[-2:]
        self._check_rules({"rows": rows, "cols": cols}, "the observation has")
        if not (SMALLEST <= rows <= LARGEST and SMALLEST <= cols <= LARGEST):
            raise ValueError(f"{self.name} got an observation of shape {ranks.shape}; expected boards from 2×2 to 6×6")
        if ranks.size and not 0 <= ranks.min() <= ranks.max() <= MAX_RANK:
            raise ValueError(f"{self.name} got ranks from {ranks.min()} to {ranks.max()}; expected 0 to {MAX_RANK}")
        return ranks

    def _positions(self, observation: Observation) -> Positions:
        ranks = self._ranks(observation)
        rows, cols = ranks.shape[-2:]
        flat = np.ascontiguousarray(ranks, dtype=np.uint8).reshape(-1, rows * cols)
        return Positions(Boards.n_actions, Batch(flat, rows, cols), ranks.ndim == 2)

    def _choose(self, position: Position, exact: bool, memory: NDArray[np.uint64], values: NDArray[np.float64]) -> int:
        self._decide(position.boards, exact, position.cells, memory, values)
        return pick(values, self._order)

    def _batches(self, positions: Batch, exact: bool) -> Iterator[tuple[NDArray[np.int64], Kernel, tuple[Any, ...]]]:
        for boards, held in zip(positions.kinds, (positions.narrow, ~positions.narrow), strict=True):
            if held.any():
                decide, settings = self.decider(boards, exact)
                yield np.flatnonzero(held), _batch_kernel(decide), (positions.flat, self._order, settings)

    def _decide(self, boards: Boards, exact: bool, cells: Array, memory: Array, values: NDArray[np.float64]) -> None:
        """Fill the values of one board."""
        decide, settings = self.decider(boards, exact)
        decide(cells, memory, values, settings)

    def _loop(self, rules: Boards) -> tuple[Kernel, Any]:
        decide, settings = self.decider(rules, exact=False)
        return _loop_kernel(decide, rules.bounded), (self._order, settings)

    def _first(self, rules: Rules) -> Boards:
        return narrowest(rules.rows, rules.cols)

    def _wider(self, rules: Boards) -> Boards:
        return rules._replace(kind="wide")  # for good: the sum of the tiles only grows

    def _figures(self, state: NDArray[np.uint64]) -> dict[str, int]:
        rows, cols, _ = board.shape_of(state)
        return {"score": int(state[board.SCORE]), "max_tile": 1 << int(board.cells_of(state, rows, cols).max())}

    def _check_values(self, values: NDArray[np.float64], positions: Sequence[Position]) -> None:
        """Raises NotFiniteError if an action is worth NaN or +inf, or all legal actions -inf."""
        best = values.max(axis=1)  # NaN and +inf among the values show in it
        if np.isfinite(best).all():
            return
        check_values(self.name, values)
        for i in np.flatnonzero(best == -np.inf).tolist():
            boards, cells = positions[i]
            if board.legal_mask(cells, boards.rows, boards.cols):
                raise NotFiniteError(f"{self.name} values every legal action at -inf; expected a finite number")

    def _refuse(self, values: NDArray[np.float64], state: NDArray[np.uint64]) -> None:
        rows, cols, _ = board.shape_of(state)
        cells = board.cells_of(state, rows, cols).reshape(-1)
        self._check_values(values[None], [Position(narrowest(rows, cols), cells)])
        raise ValueError(
            f"{self.name} chose action {pick(values, self._order)}, which is illegal; expected a legal one"
        )


class BatchPlayer2048(Player2048):
    """A 2048 player that remembers nothing and values the boards of a batch together; it has no kernel."""

    batched = True
    compiled = False

    def _values(self, boards: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Values of all moves, float64[n, 4], of boards uint8[n, rows, cols]; -inf where illegal."""
        raise NotImplementedError

    def _decide_all(
        self, observation: Observation, state: Any, episode_start: Any, exact: bool
    ) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.uint64]]:
        ranks = self._ranks(observation)
        boards = np.ascontiguousarray(ranks, np.uint8).reshape(-1, *ranks.shape[-2:])
        values = self._values(boards)
        doubtful = ~np.isfinite(values.max(axis=1))
        if doubtful.any():
            self._check_values(values[doubtful], self._positions(boards[doubtful]).each)
        memory = self._memory(state, len(boards), episode_start)
        actions = values.argmax(axis=1)
        return (actions[0].reshape(()), values[0], memory[0]) if ranks.ndim == 2 else (actions, values, memory)

    def play(
        self, env_id: str, seed: int, env_kwargs: Options | None = None, max_episode_steps: int | None = None
    ) -> Trajectory:
        """One whole episode from ``reset(seed=seed)``, in the gym loop."""
        rules = asdict(self.rules_of(env_id, env_kwargs))
        return play_in_env(self.with_rules(rules), env_id, seed, env_kwargs, max_episode_steps)
