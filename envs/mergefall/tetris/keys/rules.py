"""The arguments that make a game of Tetris by keys (`Rules`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from mergefall.checks import MOST_COUNTED, boolean, integer, known, made_of, number
from mergefall.tetris import game
from mergefall.tetris.keys import batch
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
STATUS = ("held", "spin", "phase", "grounded", "resets", "clears", "back_to_back", "pending", "level")
STATUS_SCALES = np.array([1, 2, ONE, 1 << LOCK_DELAY[1], 1 << LOCK_RESETS[1], 16, 1, 16, TOP_LEVEL])  # for `view`
REWARDS = ("lines", "score", "attack")
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

    cols: int = 10
    rows: int = 20
    pieces: Literal["tetromino", "sz"] = "tetromino"
    randomizer: Literal["uniform", "bag7"] = "bag7"
    preview: int = 5
    hold: bool = True
    gravity: float = 0.02
    lock_delay: int = 30
    lock_resets: int = 15
    rotate_180: bool = False
    levels: bool = False
    garbage: Any = None
    reward: Literal["lines", "score", "attack"] = "lines"

    ranges: ClassVar = {
        "cols": (FEWEST_COLS, MOST_COLS),
        "rows": (FEWEST_ROWS, MOST_ROWS - STORAGE),
        "preview": (0, MOST_PREVIEW),
        "lock_delay": (0, (1 << LOCK_DELAY[1]) - 2),
        "lock_resets": (0, (1 << LOCK_RESETS[1]) - 1),
    }
    choices: ClassVar[dict[str, tuple[str, ...]]] = {  # pyright: ignore[reportIncompatibleVariableOverride]
        "pieces": ("tetromino", "sz"),
        "randomizer": ("uniform", "bag7"),
        "reward": REWARDS,
    }
    parts = ("board", "piece", "queue")
    kernels = batch
    rewards: ClassVar[tuple[str, ...]] = REWARDS
    versus: ClassVar[bool] = False  # whether a second half of a state is the opponent's
    illegal_word, steps_word = game.ILLEGAL, game.STEPS
    illegal_limit = MOST_COUNTED  # no key is illegal; the word stays 0

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("hold", "rotate_180", "levels"):
            boolean(name, getattr(self, name))
        object.__setattr__(self, "gravity", number("gravity", self.gravity, 0, FASTEST))
        if self.garbage is not None and not isinstance(self.garbage, Garbage):
            given = made_of("garbage", self.garbage, Mapping, "a mapping with rows, holes, moves, or None")
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

    @property
    def heights(self) -> tuple[int, ...]:
        return self.height, self.rows

    def observation_space(self) -> gym.spaces.Dict:
        spaces: dict[str, gym.Space[Any]] = {
            "board": gym.spaces.Box(0, 1, (self.height, self.cols), np.uint8),
            "piece": gym.spaces.Discrete(self.n_pieces),
            "place": gym.spaces.MultiDiscrete([4, self.cols, self.height + STORAGE]),
            "status": gym.spaces.Box(0, ONE - 1, (len(STATUS),), np.int64),
        }
        if self.hold:
            spaces["hold"] = gym.spaces.Discrete(self.n_pieces + 1)
        if self.preview:
            spaces["queue"] = gym.spaces.MultiDiscrete([self.n_pieces] * self.preview)
        return gym.spaces.Dict(spaces)

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
        batch.step(0, len(after), after, keys, fresh, self.pool(None), self.limits(0), seen)
        boards = seen.boards.reshape(*size, self.height, self.cols)
        return boards, *(part.reshape(size) for part in (seen.rewards, seen.legal, seen.terminated))

    def chance_outcomes(self, board: Any, state: Any, action: int) -> Any:
        raise ValueError("Tetris by keys lists no chance outcomes; expected a game by placements")

    def keys_words(self) -> tuple[int, int]:
        """The words KEYS and RATES of the game's states."""
        keys = (
            round(self.gravity * ONE) << GRAVITY[0]
            | self.lock_delay << LOCK_DELAY[0]
            | self.lock_resets << LOCK_RESETS[0]
            | self.hold << MAY_HOLD[0]
            | self.levels << LEVELS[0]
            | 1 << BY_KEYS[0]
        )
        if self.garbage is None:
            return keys, 0
        rates = round(self.garbage.rows * ONE) << RATE[0], round(self.garbage.moves * ONE) << MOVING[0]
        return keys, rates[0] | rates[1] | self.garbage.holes << HOLES[0]

    def _blank_states(self, count: int) -> NDArray[np.uint64]:
        states = np.zeros((count, game.COLUMNS + self.cols), dtype=np.uint64)
        states[:, game.RULES] = self.rules_word()
        states[:, game.KEYS], states[:, game.RATES] = self.keys_words()
        states[:, game.QUEUE] = game.word_of([self.piece_set.drawn[0]] * (1 + self.preview))
        return states

    def observations(self, states: NDArray[np.uint64]) -> dict[str, NDArray[Any]]:
        seen = self.seen(len(states))
        batch.look(states, np.arange(len(states)), seen)
        return self.shown(seen)

    def shown(self, seen: batch.Seen) -> dict[str, Array]:
        """The observations in what a step has written."""
        shown = {"board": seen.boards.reshape(-1, self.height, self.cols), "piece": seen.pieces}
        shown |= {"place": seen.places, "status": seen.statuses}
        shown |= {"hold": seen.holds} if self.hold else {}
        shown |= {"opponent": seen.opponents.reshape(shown["board"].shape)} if self.versus else {}
        return shown | ({"queue": seen.nexts} if self.preview else {})

    def seen(self, count: int) -> batch.Seen:
        return batch.Seen(
            boards=np.empty((count, self.height * self.cols), np.uint8),
            pieces=np.empty(count, np.int64),
            places=np.empty((count, 3), np.int64),
            statuses=np.empty((count, len(STATUS)), np.int64),
            holds=np.empty(count, np.int64),
            nexts=np.empty((count, self.preview), np.int64),
            opponents=np.empty((count, self.versus * self.height * self.cols), np.uint8),
            rewards=np.empty(count, np.float64),
            terminated=np.empty(count, np.bool_),
            truncated=np.empty(count, np.bool_),
            masks=np.empty((count, self.n_actions), np.int8),
            lines=np.empty(count, np.int64),
            scores=np.empty(count, np.int64),
            placed=np.empty(count, np.int64),
            attacks=np.empty(count, np.int64),
            clears=np.empty(count, np.int64),
            victories=np.empty(count, np.int64),
            legal=np.empty(count, np.bool_),
        )

    def limits(self, max_steps: int) -> tuple[Any, ...]:
        return self.rewards.index(self.reward), max_steps

    def view(self, kind: str, observations: dict[str, Any]) -> NDArray[np.float32]:
        board, names = observations["board"], len(self.piece_set.names)
        count, height, cols = board.shape
        others, falling = [observations[name] for name in ("opponent",) if name in observations], np.zeros_like(board)
        batch.draw_falling(observations["piece"], observations["place"], falling.reshape(count, -1), cols)
        shown = [np.eye(names)[np.asarray(observations["piece"])]]
        if self.hold:
            shown.append(np.eye(names + 1)[np.asarray(observations["hold"])])
        shown += [np.eye(names)[piece] for piece in observations["queue"].T] if self.preview else []
        status = observations["status"]
        numbers = np.concatenate([*shown, np.minimum(status / STATUS_SCALES, 1)], axis=1).astype(np.float32)
        boards = np.stack([board, falling, *others], axis=1).astype(np.float32)
        if kind == "planes":
            constant = np.broadcast_to(numbers[:, :, None, None], (*numbers.shape, height, cols))
            return np.concatenate([boards, constant], axis=1)
        return np.concatenate([boards.reshape(count, -1), numbers], axis=1)

    def _faults(self, states: NDArray[np.uint64]) -> Iterator[tuple[str, Any, NDArray[np.bool_], str]]:
        drawn, known = self.piece_set.drawn, 1 + self.preview
        words = {game.RULES: self.rules_word(), **dict(zip((game.KEYS, game.RATES), self.keys_words(), strict=True))}
        for word, value in words.items():
            yield "rules word", states[:, word], states[:, word] != value, f"{value:#x}, {self}"
        queue = states[:, game.QUEUE]
        wrong = ~np.isin(game.nibbles(queue, known), drawn).all(axis=1) | (queue >> U(game.NIBBLE_BITS * known) > 0)
        yield "queue", queue, wrong, f"{known} ids of four bits, each {self.pieces_text()}"
        hold = states[:, game.HOLD]
        expected = f"0, or an id plus one, the id {self.pieces_text()}" if self.hold else "0"
        yield "hold", hold, (hold > 0) & ~(np.isin(hold - U(1), drawn) & self.hold), expected
        bag = states[:, game.BAG]
        wrong = bag & ~U(sum(1 << id for id in drawn)) > 0
        yield "bag", bag, wrong, f"a bit for each piece left, {self.pieces_text()}"
        columns = states[:, game.COLUMNS :]
        full = np.bitwise_and.reduce(columns, axis=1)
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
