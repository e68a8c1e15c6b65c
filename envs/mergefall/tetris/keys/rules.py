"""The arguments that make a game of Tetris by keys (`Rules`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from mergefall.checks import MOST_COUNTED, integer, known, made_of, number
from mergefall.rules import argument
from mergefall.tetris import game
from mergefall.tetris.keys import batch
from mergefall.tetris.keys.batch import PLACE, STATE, STATUS
from mergefall.tetris.keys.game import (
    BY_KEYS,
    COLUMN,
    GRAVITY,
    HOLE,
    HOLES,
    LEVELS,
    LOCK_DELAY,
    LOCK_RESETS,
    MAY_HOLD,
    MOVING,
    ONE,
    RATE,
    ROTATION,
    ROW,
    STORAGE,
    TOP_LEVEL,
)
from mergefall.tetris.pieces import WIDTHS
from mergefall.tetris.rules import FEWEST_COLS, FEWEST_ROWS, MOST_COLS, MOST_ROWS, PieceRules
from mergefall.tetris.srs import SHAPES
from mergefall.typing import Array

KEYS = ("wait", "left", "right", "clockwise", "counterclockwise", "soft drop", "hard drop", "hold", "half turn")
STATUS_SCALES = np.array([1, 2, ONE, 1 << LOCK_DELAY[1], 1 << LOCK_RESETS[1], 16, 1, 16, TOP_LEVEL])  # for `view`
MOST_PREVIEW, FASTEST, MOST_GARBAGE = 6, 64, 15  # pieces; rows a step; rows a piece
U = np.uint64


@dataclass(frozen=True)
class Garbage:
    """How garbage rises.

    - `rows`: float from 0 to 15, rows for each piece that locks. Fractions add up.
    - `holes`: int from 1 to cols - 1, empty cells side by side in each row; default: 1.
    - `moves`: float from 0 to 1, the probability that the holes of a row are elsewhere than those of the row before;
      default: 0.3.
    """

    rows: float
    holes: int = 1
    moves: float = 0.3


@dataclass(frozen=True)
class Rules(PieceRules):
    """The arguments that make a game and its rewards; `TetrisKeysEnv` describes them."""

    cols: int = argument(10, "observations", FEWEST_COLS, MOST_COLS)
    rows: int = argument(20, "observations", FEWEST_ROWS, MOST_ROWS - STORAGE)
    pieces: Literal["tetromino", "sz"] = argument("tetromino", "spaces")
    randomizer: Literal["uniform", "bag7"] = argument("bag7", "players")
    preview: int = argument(5, "observations", 0, MOST_PREVIEW)
    hold: bool = argument(True, "observations")
    gravity: float = argument(0.02, "players")
    lock_delay: int = argument(30, "players", 0, (1 << LOCK_DELAY[1]) - 2)
    lock_resets: int = argument(15, "players", 0, (1 << LOCK_RESETS[1]) - 1)
    rotate_180: bool = argument(False, "spaces")
    levels: bool = argument(False, "players")
    garbage: Any = argument(None, "game")  # rises after a decision
    reward: Literal["lines", "score", "attack"] = argument("lines", "training")

    name: ClassVar[str] = "keys"
    figures: ClassVar[tuple[str, ...]] = ("score", "lines", "pieces", "attack")
    action, by_keys = "key", True
    parts = ("board", "piece", "queue")
    kernels = batch.KERNELS
    own_numbers: ClassVar = {"place": slice(PLACE, STATE), "status": slice(STATE, batch.QUEUE)}
    own_figures: ClassVar = {"attack": batch.ATTACK, "clear": batch.CLEAR}
    queue_at = batch.QUEUE
    drawn_in_view = ("piece", "hold", "queue")
    illegal_limit = MOST_COUNTED  # no key is illegal; the word stays 0

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "gravity", number("gravity", self.gravity, 0, FASTEST))
        if self.garbage is not None and not isinstance(self.garbage, Garbage):
            given = made_of("garbage", self.garbage, Mapping, "a mapping such as {rows: 0.5}, or None")
            known("garbage", given, ("rows", "holes", "moves"))
            object.__setattr__(self, "garbage", Garbage(**{"rows": 0, **given}))
        if self.garbage is not None:
            number("rows of garbage", self.garbage.rows, 0, MOST_GARBAGE)
            integer("holes of garbage", self.garbage.holes, 1, self.cols - 1)
            number("moves of garbage", self.garbage.moves, 0, 1)

    @property
    def n_actions(self) -> int:
        return len(KEYS) if self.rotate_180 else len(KEYS) - 1

    @property
    def timed(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.gravity > 0 or self.levels

    @property
    def height(self) -> int:
        """The rows of the field and those above it."""
        return self.rows + STORAGE

    def observation_space(self) -> gym.spaces.Dict:
        place = gym.spaces.MultiDiscrete([4, self.cols, self.height + STORAGE])
        status = gym.spaces.Box(0, ONE - 1, (len(STATUS),), np.int64)
        return gym.spaces.Dict({**super().observation_space().spaces, "place": place, "status": status})

    def _start(self, given: dict[str, Any]) -> NDArray[np.uint64]:
        start, spawn = super()._start(given), slice((self.cols - 4) // 2 + 1, (self.cols + 4) // 2 + 1)
        if (start[spawn] >> U(self.rows)).any():
            raise ValueError("board has filled cells where pieces appear; expected none in the rows above the field")
        return start

    def afterstates(self, states: NDArray[np.uint64]) -> tuple[Array, ...]:
        """What each key leads to in n games, with the time that passes: (boards, rewards, legal, fatal).

        Boards uint8[n, keys, rows + 4, cols], rewards float64[n, keys]; legal (the masks) and fatal bool[n, keys].
        """
        size = len(states), self.n_actions
        after, seen = states.repeat(size[1], axis=0), self.seen(size[0] * size[1])
        keys, fresh = np.tile(np.arange(size[1]), size[0]), np.zeros(len(after), np.bool_)
        self.kernels.step(0, len(after), after, keys, fresh, self.pool(None), self.limits(0), seen)
        boards = self.shown(seen)[0]["board"].reshape(*size, self.height, self.cols)
        return boards, *(part.reshape(size) for part in (seen.rewards, seen.legal, seen.terminated))

    def chance_outcomes(self, board: Any, state: Any, action: int) -> Any:
        raise ValueError("Tetris by keys lists no chance outcomes; expected a game by placements")

    def rules_words(self) -> dict[int, int]:
        keys = (
            round(self.gravity * ONE) << GRAVITY[0]
            | self.lock_delay << LOCK_DELAY[0]
            | self.lock_resets << LOCK_RESETS[0]
            | self.hold << MAY_HOLD[0]
            | self.levels << LEVELS[0]
            | 1 << BY_KEYS[0]
        )
        rates = 0
        if self.garbage is not None:
            rates = round(self.garbage.rows * ONE) << RATE[0] | round(self.garbage.moves * ONE) << MOVING[0]
            rates |= self.garbage.holes << HOLES[0]
        return super().rules_words() | {game.KEYS: keys, game.RATES: rates}

    def view(self, kind: str, observations: dict[str, Any]) -> NDArray[np.float32]:
        board = observations["board"]
        others, falling = [observations[name] for name in ("opponent",) if name in observations], np.zeros_like(board)
        flat = falling.reshape(len(board), self.height * self.cols)
        batch.draw_falling(observations["piece"], observations["place"], flat, self.cols)
        status = np.minimum(observations["status"] / STATUS_SCALES, 1)
        return self.viewed(kind, np.stack([board, falling, *others], axis=1), observations, status)

    def _faults(self, states: NDArray[np.uint64]) -> Iterator[tuple[str, Any, NDArray[np.bool_], str]]:
        yield from super()._faults(states)
        full, queue = np.bitwise_and.reduce(states[:, game.COLUMNS :], axis=1), states[:, game.QUEUE]
        yield "full rows", full, full > 0, "none"
        falling = states[:, game.FALLING]
        piece, rotation, column, row = queue & U(game.NIBBLE), *(_fields(falling, f) for f in (ROTATION, COLUMN, ROW))
        narrow = np.array(WIDTHS, U)[piece.astype(int), SHAPES[piece.astype(int), rotation.astype(int)]]
        wrong = (column + narrow > self.cols) | (row >= self.height + STORAGE)
        yield "falling piece", falling, wrong, "a place within the walls"
        holes = 1 if self.garbage is None else self.garbage.holes
        hole = states[:, game.GARBAGE]
        yield "garbage", hole, _fields(hole, HOLE) + U(holes) > self.cols, f"{holes} holes within the walls"


def _fields(words: NDArray[np.uint64], field: tuple[int, int]) -> NDArray[np.uint64]:
    return words >> U(field[0]) & U((1 << field[1]) - 1)
