"""The arguments that make a game of Tetris by keys (`Rules`)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any, ClassVar, Literal

import gymnasium as gym
import numpy as np

from mergefall.checks import MOST_COUNTED, integer, known, made_of, number
from mergefall.rules import argument, no_faults
from mergefall.tetris import game
from mergefall.tetris.field import columns_of, is_free
from mergefall.tetris.game import COLUMN, HELD, PENDING, QUEUE, ROTATION, ROW
from mergefall.tetris.keys import batch
from mergefall.tetris.keys import game as by_keys
from mergefall.tetris.keys.game import LEVEL_LINES, MOST_WAITING, ONE, STORAGE, TOP_LEVEL
from mergefall.tetris.pieces import WIDTHS
from mergefall.tetris.rules import FEWEST_COLS, FEWEST_ROWS, MOST, MOST_COLS, MOST_ROWS, PieceRules, Word
from mergefall.tetris.seen import ATTACK, CLEAR
from mergefall.tetris.srs import SHAPES
from mergefall.typing import Array, Bools, Dict, Ints, Options, Words

KEYS = ("wait", "left", "right", "clockwise", "counterclockwise", "soft drop", "hard drop", "hold", "half turn")
STATUS_SCALES = np.array([1, 2, ONE, 1024, 256, MOST_ROWS, 16, 1, 16, TOP_LEVEL])  # for `view`
MOST_PREVIEW, FASTEST, MOST_GARBAGE = 6, 64, 15  # pieces; rows a step; rows a piece
MOST_DELAY, MOST_RESETS = 1022, 255
U = np.uint64


@dataclass(frozen=True)
class Garbage:
    """How garbage rises.

    - `rows`: float from 0 to 15, rows for each piece that locks; default: 0. Fractions add up.
    - `holes`: int from 1 to cols - 1, empty cells side by side in each row; default: 1.
    - `moves`: float from 0 to 1, the probability that the holes of a row are elsewhere than those of the row before;
      default: 0.3.
    """

    rows: float = 0
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
    lock_delay: int = argument(30, "players", 0, MOST_DELAY)
    lock_resets: int = argument(15, "players", 0, MOST_RESETS)
    rotate_180: bool = argument(False, "spaces")
    levels: bool = argument(False, "players")
    garbage: Any = argument(None, "game")  # rises after a decision
    reward: Literal["lines", "score", "attack"] = argument("lines", "training")

    name = "keys"
    figures = ("score", "lines", "pieces", "attack")
    action, by_keys = "key", True
    storage = STORAGE
    kernels = batch.KERNELS
    own_numbers: ClassVar = {"place": slice(batch.PLACE, batch.STATUS), "status": slice(batch.STATUS, batch.QUEUE)}
    own_figures: ClassVar = {"attack": ATTACK, "clear": CLEAR}
    queue_at = batch.QUEUE
    drawn_in_view = ("piece", "hold", "queue")
    illegal_limit = MOST_COUNTED  # no key is illegal; the word stays 0

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "gravity", number("gravity", self.gravity, 0, FASTEST))
        if self.garbage is not None and not isinstance(self.garbage, Garbage):
            given = made_of("garbage", self.garbage, Mapping, "a mapping such as {rows: 0.5}, or None")
            known("garbage", given, ("rows", "holes", "moves"))
            object.__setattr__(self, "garbage", Garbage(**given))
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

    def observation_space(self) -> gym.spaces.Dict:
        place = gym.spaces.MultiDiscrete(self._ranges["place"][1] + 1)
        status = gym.spaces.Box(*self._ranges["status"], dtype=np.int64)
        return gym.spaces.Dict({**super().observation_space().spaces, "place": place, "status": status})

    def _start(self, given: Dict) -> Words:
        start = super()._start(given)
        drawn = [self.piece_id("piece", given["piece"])] if "piece" in given else self.piece_set.drawn
        if not all(is_free(start[1:], piece, 0, (self.cols - WIDTHS[piece, 0]) // 2, self.rows) for piece in drawn):
            raise ValueError("board has filled cells where pieces appear; expected none in the rows above the field")
        return start

    def afterstates(self, states: Words) -> tuple[Array, ...]:
        """What each key leads to in n games, with the time that passes: (boards, rewards, legal, fatal).

        Boards uint8[n, keys, rows + 4, cols], rewards float64[n, keys]; legal (the masks) and fatal bool[n, keys].
        """
        size = len(states), self.n_actions
        seen = self.stepped(states.repeat(size[1], axis=0), np.tile(np.arange(size[1]), size[0]))
        boards = self.shown(seen)[0]["board"].reshape(*size, self.height, self.cols)
        return boards, *(part.reshape(size) for part in (seen.rewards, seen.legal, seen.terminated))

    def _draws(self, state: Any, action: int) -> Any:
        raise ValueError("Tetris by keys lists no chance outcomes; expected a game by placements")

    @cached_property
    def words(self) -> dict[int, Word]:
        """The words of a state. Those from `rotation` on are an observation's `place`, `held` to `pending` `status`."""
        garbage, top = self.garbage or Garbage(), self.height + STORAGE - 1
        fixed = {
            game.BY_KEYS: ("kind of play", 1, "by keys"),
            game.GRAVITY: ("gravity", round(self.gravity * ONE), "65536ths of a row a step"),
            game.LOCK_DELAY: ("lock delay", self.lock_delay, "steps"),
            game.LOCK_RESETS: ("lock resets", self.lock_resets, "for each piece"),
            game.LEVELS: ("levels", int(self.levels), "whether lines raise the level"),
            game.RATE: ("rate", round(garbage.rows * ONE), "65536ths of a row of garbage for each piece"),
            game.HOLES: ("holes", garbage.holes, "empty cells of a row of garbage"),
            game.MOVING: ("moving", round(garbage.moves * ONE), "65536 times the probability that a hole moves"),
        }
        free = {
            game.ROTATION: ("rotation", 3, "quarter turns clockwise"),
            game.COLUMN: ("column", self.cols - 1, "the piece's leftmost"),
            game.ROW: ("row", top, "rows between the floor and its lowest cell"),
            game.HELD: ("held", int(self.hold), "whether it was held"),
            game.SPIN: ("spin", by_keys.KICKED, "whether its last move was a turn (1) by the fifth test (2)"),
            game.PHASE: ("phase", ONE - 1, "65536ths of a row that it has fallen"),
            game.GROUNDED: ("grounded", self.lock_delay, "steps at rest"),
            game.RESETS: ("resets", self.lock_resets, "of the lock delay"),
            game.LOWEST: ("lowest", top, "the lowest row that it has reached"),
            game.COMBO: ("clears", MOST_WAITING, "locks in a row that cleared lines"),
            game.BACK_TO_BACK: ("back_to_back", 1, "whether a back-to-back chain is on"),
            game.PENDING: ("pending", MOST_WAITING, "rows of garbage that will rise"),
            game.ATTACK: ("attack", MOST, "rows that the clears were worth"),
            game.OVER: ("over", 1, "whether the game is over"),
            game.HOLE: ("hole", self.cols - garbage.holes, "the leftmost empty column of the last row of garbage"),
            game.OWED: ("owed", ONE - 1, "65536ths of a row of garbage to come"),
            game.HOLE_STREAM: ("stream of holes", (1 << 64) - 1, "a random stream"),
            game.OPPONENTS_KEY: ("opponent's key", (self.n_actions - 1) * self.matches, "which it presses next"),
        }
        fixed = {at: Word(name, value, value, says) for at, (name, value, says) in fixed.items()}
        return super().words | fixed | {at: Word(name, 0, high, says) for at, (name, high, says) in free.items()}

    @cached_property
    def _ranges(self) -> dict[str, Ints]:
        """The lowest and the highest numbers of `place` and `status` under all rules with these spaces, int64[2, k]."""
        widest = replace(self, lock_delay=MOST_DELAY, lock_resets=MOST_RESETS, hold=True).words
        ranges = [(widest[at].low, widest[at].high) for at in SHOWN]
        place, status = ranges[: HELD - ROTATION], [*ranges[HELD - ROTATION :], (1, TOP_LEVEL)]
        return {"place": np.array(place).T, "status": np.array(status).T}

    @cached_property
    def _parts(self) -> dict[str, tuple[tuple[int, ...], Any, Any]]:
        return super()._parts | {name: (low.shape, low, high) for name, (low, high) in self._ranges.items()}

    def checked(self, observations: Options) -> dict[str, Array]:
        parts = super().checked(observations)
        no_faults("observation", [self._wall(parts["piece"], *parts["place"].T[: ROW - ROTATION])])
        return parts

    def _misread(self, parts: dict[str, Array], states: Words) -> Any:
        level = parts["status"][:, -1]
        return chain([("level", level, (level > 1) & (not self.levels), "1 without levels")], self._faults(states))

    def _read(self, parts: dict[str, Array], states: Words) -> None:
        super()._read(parts, states)
        states[:, SHOWN] = np.concatenate([parts["place"], parts["status"][:, :-1]], axis=1)
        states[:, game.LINES] = (parts["status"][:, -1] - 1) * LEVEL_LINES
        if self.matches:
            states[:, -self.cols :] = columns_of(parts["opponent"])

    def view(self, kind: str, observations: Dict) -> Array:
        parts = self.checked(observations)
        board, falling = parts["board"], np.zeros_like(parts["board"])
        others = [parts["opponent"]] if self.matches else []
        flat = falling.reshape(len(board), self.height * self.cols)
        batch.draw_falling(parts["piece"], parts["place"], flat, self.cols)
        status = np.minimum(parts["status"] / STATUS_SCALES, 1)
        return self.viewed(kind, np.stack([board, falling, *others], axis=1), parts, status)

    def _faults(self, states: Words) -> Iterator[tuple[str, Any, Bools, str]]:
        yield from super()._faults(states)
        columns = states[:, game.COLUMNS :]
        full = np.bitwise_and.reduce(columns, axis=1)
        yield "full rows", full, full > 0, "none"
        piece = states[:, QUEUE] & U(game.NIBBLE)
        yield self._wall(*(part.astype(int) for part in (piece, states[:, ROTATION], states[:, COLUMN])))

    def _wall(self, piece: Array, rotation: Array, column: Array) -> tuple[str, Array, Bools, str]:
        """The fault of pieces beyond the right wall, as `_faults` yields it."""
        wrong = column + np.array(WIDTHS)[piece, SHAPES[piece, rotation]] > self.cols
        return "column", column, wrong, "a place within the walls"


SHOWN = range(ROTATION, PENDING + 1)  # the words that an observation shows
STATUS = (*(Rules().words[at].name for at in SHOWN if at >= HELD), "level")
"""The names of the numbers in an observation's `status`."""
