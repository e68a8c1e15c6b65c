"""The rules of 2048: the arguments that make a game (`Rules`), and its moves as checked functions of one board.

A board is an integer array or nested lists of ranks (log2 of the tile, 0 for empty), or its text form.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import gymnasium as gym
import numpy as np

from mergefall import checks
from mergefall.chance import HALF, bounds
from mergefall.checks import MOST_COUNTED, integer
from mergefall.game2048 import batch, packed, reference
from mergefall.game2048 import board as core
from mergefall.game2048.reference import ACTIONS, DOWN, LEFT, RIGHT, UP
from mergefall.rules import GameRules, argument
from mergefall.typing import Array, Bools, Bytes, Dict, Floats, Ints, Observation, Words

SMALLEST, LARGEST = 2, 6  # rows and columns of a board
PLAYED_RANK = 57  # of boards that players see: the next ones may merge past int64 on 6×6, where a move makes 18 merges
MAX_RANK = 62  # of any board that is looked at: 2^62 is the largest tile that an int64 holds


def board_array(ranks: Any, rows: int | None = None, cols: int | None = None, highest: int | None = None) -> Bytes:
    """One board as a new uint8[rows, cols].

    - `ranks`: an integer array or nested lists of ranks, or the text form of a board.
    - `rows`, `cols`: the expected shape; default: any from 2×2 to 6×6.
    - `highest`: the highest rank; default: what a board full of rank rows·cols + 1, from which a game may start, merges
      to.

    Raises ValueError for anything else.

    >>> board_array("2 ./. 8")
    array([[1, 0],
           [0, 3]], dtype=uint8)
    """
    if isinstance(ranks, str):
        ranks = reference.from_text(ranks)
    array = checks.array("board", ranks, "rows × cols ranks")
    if array.ndim != 2 or (rows and array.shape != (rows, cols)):
        raise ValueError(f"board has shape {array.shape}; expected {(rows, cols) if rows else 'rows × cols'}")
    most = array.size + array.size.bit_length() if highest is None else highest
    return checked_ranks("board", array, most).copy()


from_text = board_array


def checked_ranks(name: str, array: Array, highest: int) -> Bytes:
    """Boards [..., rows, cols] as uint8, row-major; raises ValueError unless they hold ranks and are 2×2 to 6×6."""
    if not all(SMALLEST <= n <= LARGEST for n in array.shape[-2:]):
        raise ValueError(f"{name} has shape {array.shape}; expected rows × cols with {SMALLEST} to {LARGEST} each")
    if array.dtype.kind not in "iu":
        raise ValueError(f"{name} has dtype {array.dtype}; expected integer ranks (log2 of the tile, 0 for empty)")
    lowest = 0 if array.dtype.kind == "u" else array.min(initial=0)  # `min` takes 2 µs
    if lowest < 0 or array.max(initial=0) > highest:
        wrong = array[(array < 0) | (array > highest)][0]
        raise ValueError(f"{name} holds the rank {wrong}; expected ranks (log2 of the tile) 0 to {highest}")
    return np.ascontiguousarray(array, dtype=np.uint8)


@dataclass(frozen=True)
class Rules(GameRules):
    """The arguments that make a game and its rewards; `Game2048Env` describes them."""

    rows: int = argument(4, "observations", SMALLEST, LARGEST)
    cols: int = argument(4, "observations", SMALLEST, LARGEST)
    goal: int | None = argument(None, "game")
    reward: Literal["score", "log2", "goal", "survival"] = argument("score", "training")
    illegal_limit: int = argument(100, "training", 1, MOST_COUNTED)

    name, size, figures, headline = "2048", ("rows", "cols"), ("score", "max_tile"), "score"
    action, turn, turns = "move", "move", "length"
    parts = ("board",)
    kernels = batch
    illegal_word, steps_word = core.ILLEGAL, core.STEPS

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.goal is not None:
            highest = 1 << self.max_rank
            goal = integer("goal", self.goal, 8, highest)
            if goal & (goal - 1):
                raise ValueError(f"goal is {goal}; expected a tile, a power of two from 8 to {highest}")
            object.__setattr__(self, "goal", goal)
        elif self.reward == "goal":
            raise ValueError("reward is 'goal', but goal is None; expected a tile to reach")

    @property
    def n_actions(self) -> int:
        return 4

    @property
    def max_rank(self) -> int:
        """The highest rank that a game can reach; the next would need two such tiles on rows·cols cells."""
        return self.rows * self.cols + 1

    @property
    def goal_rank(self) -> int:
        return 0 if self.goal is None else self.goal.bit_length() - 1

    def observation_space(self) -> gym.spaces.Box:
        return gym.spaces.Box(0, self.max_rank, (self.rows, self.cols), np.uint8)

    def actions_text(self) -> str:
        return "one of " + ", ".join(f"{i} {name}" for i, name in enumerate(ACTIONS))

    def _blank_states(self, count: int) -> Words:
        return core.new_states(count, self.rows, self.cols, self.goal_rank)

    def observations(self, states: Words) -> Bytes:
        return core.cells_of(states, self.rows, self.cols).copy()

    @classmethod
    def read(cls, observation: Observation) -> tuple[Bytes, Dict, bool]:
        ranks = checks.array("observation", observation, "ranks (rows, cols), or a batch (n, rows, cols)")
        if ranks.ndim not in (2, 3):
            raise ValueError(f"observation has shape {ranks.shape}; expected (rows, cols), or a batch (n, rows, cols)")
        batch = checked_ranks("observation", ranks, PLAYED_RANK).reshape(-1, *ranks.shape[-2:])
        return batch, {"rows": ranks.shape[-2], "cols": ranks.shape[-1]}, ranks.ndim == 2

    def states(self, observations: Bytes) -> Words:
        states = core.new_states(len(observations), self.rows, self.cols)
        core.cells_of(states, self.rows, self.cols)[:] = observations
        return states

    def figures_of(self, state: Words) -> dict[str, int]:
        return {"score": int(state[core.SCORE]), "max_tile": 1 << int(self.observations(state).max())}

    def view(self, kind: str, observations: Bytes) -> Array:
        highest = self.max_rank  # higher ranks count as the highest
        cells = np.eye(highest + 1, dtype=np.float32)[np.minimum(observations, highest)]  # [n, rows, cols, ranks]
        if kind == "planes":
            return np.ascontiguousarray(np.moveaxis(cells, -1, 1))
        return cells.reshape(len(cells), self.rows * self.cols * (highest + 1))

    def seen(self, count: int) -> batch.Seen:
        return batch.Seen(
            cells=np.empty((count, -(-self.rows * self.cols // 8)), np.uint64),
            rewards=np.empty(count, np.float64),
            terminated=np.empty(count, np.bool_),
            truncated=np.empty(count, np.bool_),
            masks=np.empty(count, np.uint32),
            scores=np.empty(count, np.int64),
            max_tiles=np.empty(count, np.int64),
            legal=np.empty(count, np.bool_),
        )

    def shown(self, seen: batch.Seen) -> tuple[Bytes, dict[str, Array]]:
        ranks = np.ascontiguousarray(seen.cells.view(np.uint8)[:, : self.rows * self.cols])
        infos = {
            "action_mask": seen.masks.view(np.int8).reshape(-1, 4),
            "score": seen.scores,
            "max_tile": seen.max_tiles,
            "legal": seen.legal,
        }
        return ranks.reshape(-1, self.rows, self.cols), infos

    def limits(self, max_steps: int) -> tuple[Any, ...]:
        lines = packed.lines_for(self.rows, self.cols)
        return lines, self.reward_index, self.illegal_limit, max_steps

    def afterstates(self, states: Words) -> tuple[Array, Array, Array]:
        """Boards uint8[n, 4, rows, cols], rewards float64[n, 4] and legality bool[n, 4] of all actions."""
        boards = np.empty((len(states), 4, self.rows * self.cols), np.uint8)
        rewards, legal = np.empty((len(states), 4)), np.empty((len(states), 4), np.bool_)
        batch.afterstates(states, self.reward_index, boards, rewards, legal)
        return boards.reshape(-1, 4, self.rows, self.cols), rewards, legal

    def _start(self, given: Dict) -> Bytes:
        """The cells uint8[rows·cols] of a board; raises ValueError for one that is invalid or terminal."""
        cells = board_array(given["board"], self.rows, self.cols, self.max_rank).ravel()
        _, over, top = core.status(cells, self.rows, self.cols, self.goal_rank)
        if over:
            why = f"a tile reaches the goal {self.goal}" if self.goal and top >= self.goal_rank else "no move"
            board = cells.reshape(self.rows, self.cols).tolist()
            raise ValueError(f"board {board} is terminal ({why}); expected a board that is not")
        return cells

    def _no_start(self) -> Bytes:
        return np.zeros(self.rows * self.cols, np.uint8)

    def _draws(self, state: Words, action: int) -> tuple[Ints, Ints]:
        """The bounds in each empty cell for a 2, then for a 4."""
        cells, four = self.observations(state).ravel(), int(core.FOUR_IN_2_32)
        core.move_cells(cells, self.rows, self.cols, action)
        empty = int(np.count_nonzero(cells == 0))
        return np.repeat(bounds(np.arange(empty + 1)), 2, axis=0), np.tile([[four, HALF], [0, four]], (empty, 1))

    def _faults(self, states: Words) -> Iterator[tuple[str, Any, Bools, str]]:
        shape = core.shape_word(self.rows, self.cols, self.goal_rank)
        game = f"{self.rows}×{self.cols}, goal rank {self.goal_rank}"
        yield "rules word", states[:, core.SHAPE], states[:, core.SHAPE] != shape, f"{shape:#x}, {game}"
        top = core.cells_of(states, self.rows, self.cols).max(axis=(1, 2))
        most = self.max_rank + (self.rows * self.cols).bit_length()  # a board full of the highest rank merges to it
        yield "highest rank", top, top > most, f"at most {most:#x}"


_USUAL = Rules()


def move(ranks: Any, action: int) -> tuple[Bytes, int, bool]:
    """Slide a board: (ranks uint8[rows, cols] before the new tile, score of the merges, whether the move was legal).

    An illegal action returns the board unchanged and 0. Raises ValueError for a bad board or action.

    >>> move([[1, 1], [0, 2]], 3)
    (array([[2, 0],
           [2, 0]], dtype=uint8), 4, True)
    """
    board = board_array(ranks)
    score = core.move_cells(board.reshape(-1), *board.shape, _USUAL.action_index(action))
    return board, max(score, 0), score >= 0


def legal_actions(ranks: Any) -> Bools:
    """The actions that change the board, bool[4]; none when the game is over.

    >>> legal_actions("2 4/4 .").tolist()
    [False, True, True, False]
    """
    board = board_array(ranks)
    mask = core.legal_mask(board.reshape(-1), *board.shape)
    return (mask >> np.arange(4) & 1).astype(np.bool_)


def outcomes(ranks: Any) -> tuple[Bytes, Floats]:
    """All boards that a new tile can lead to, uint8[n, rows, cols], and their probabilities float64[n].

    Cells in row-major order, the 2 before the 4; none from a full board.

    >>> boards, probabilities = outcomes("2 4/. 2")
    >>> boards.tolist(), probabilities.tolist()
    ([[[1, 2], [1, 1]], [[1, 2], [2, 1]]], [0.9, 0.1])
    """
    board = board_array(ranks)
    pairs = reference.outcomes(tuple(map(tuple, board.tolist())))
    boards = np.array([after for after, _ in pairs], np.uint8).reshape(-1, *board.shape)
    return boards, np.array([probability for _, probability in pairs])


def images(boards: Any) -> tuple[Array, Ints]:
    """All images of boards, turned and mirrored: (images [..., k, rows, cols], actions int64[k, 4]).

    A square board has k = 8 images, others have 4, because an image keeps the board's size. Image 0 is the board
    itself. To play action `a` on image `i` is to play `actions[i, a]` on the board.

    Args:
        boards: an array [..., rows, cols]: one board or a batch.

    >>> found, actions = images(np.array([[1, 1, 0], [0, 2, 3]]))
    >>> found[1].tolist(), actions[1].tolist()  # mirrored: left and right change places
    ([[0, 1, 1], [3, 2, 0]], [0, 3, 2, 1])
    """
    boards = checks.array("boards", boards, "ranks [..., rows, cols]")
    if boards.ndim < 2:
        raise ValueError(f"boards has shape {boards.shape}; expected [..., rows, cols]")
    square = boards.shape[-2] == boards.shape[-1]
    found: list[Array] = []
    actions: list[Ints] = []
    for sides in (boards, boards.swapaxes(-1, -2)) if square else (boards,):
        up, right, down, left = (UP, RIGHT, DOWN, LEFT) if sides is boards else (LEFT, DOWN, RIGHT, UP)
        for flipped, top, bottom in ((sides, up, down), (sides[..., ::-1, :], down, up)):
            found += [flipped, flipped[..., ::-1]]
            actions += [np.array([top, right, bottom, left]), np.array([top, left, bottom, right])]
    return np.stack(found, axis=-3), np.stack(actions)


def to_text(ranks: Any) -> str:
    """A board's text form: tiles by value, `.` for empty, `/` between rows.

    >>> to_text([[1, 0], [0, 3]])
    '2 ./. 8'
    """
    return reference.to_text(tuple(map(tuple, board_array(ranks).tolist())))
