"""The rules of Tetris: the arguments that make a game (`Rules`), boards as text, and single placements (`place`)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple

import gymnasium as gym
import numpy as np

from mergefall import checks
from mergefall.chance import HALF, bounds
from mergefall.checks import MOST_COUNTED, choice, integer
from mergefall.games import batch_of_one
from mergefall.rules import GameRules, argument, no_faults
from mergefall.tetris import batch, field, game
from mergefall.tetris.field import columns_of
from mergefall.tetris.pieces import HEIGHTS, NAMES, PIECE_SETS, TETROMINOES, PieceSet, rotations
from mergefall.tetris.placements import ABOVE, ROTATIONS, SLIDES, rest
from mergefall.tetris.reach import is_reachable
from mergefall.tetris.seen import HOLD, LINES, OWN, PIECE, PIECES, SCORE, Seen
from mergefall.typing import Array, Bools, Bytes, Dict, Floats, Ints, Observation, Options, Words

FEWEST_COLS, MOST_COLS = 4, 16
FEWEST_ROWS, MOST_ROWS = 4, 40
MOST = 1 << 62  # of what is counted
U = np.uint64


class Word(NamedTuple):
    """A number that a state holds: its name, the lowest and the highest value, and what it says."""

    name: str
    low: int
    high: int
    says: str


class PieceRules(GameRules):
    """What the rules of both ways to play share, by placements (`Rules`) and by keys (`keys/rules.py`)."""

    cols: int
    rows: int
    pieces: Any
    randomizer: Any
    preview: int
    hold: bool
    size: ClassVar = ("cols", "rows")
    headline = "lines"
    action, turn, turns = "piece", "piece", "pieces"
    reach: Any = None  # for kernels, see `placements.py`
    storage = 0  # rows above the field that are shown
    own_numbers: ClassVar[dict[str, slice]] = {}  # what else an observation, and `info`, have of `Seen.numbers`
    own_figures: ClassVar[dict[str, int]] = {}
    queue_at = OWN  # where the queue begins there
    drawn_in_view = ("piece", "queue", "hold")  # in the order of a view
    illegal_word, steps_word = game.ILLEGAL, game.STEPS

    @property
    def piece_set(self) -> PieceSet:
        """The pieces of the game; a piece's id is its index in `names`."""
        return PIECE_SETS[self.pieces]

    @property
    def n_pieces(self) -> int:
        return len(self.piece_set.names)

    @property
    def parts(self) -> tuple[str, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return ("board", "piece", "queue", *["hold"] * self.hold)

    @property
    def height(self) -> int:
        """The rows of a board that is shown."""
        return self.rows + self.storage

    @property
    def more(self) -> tuple[int | None]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return (self.reach,)

    def _rules_word(self) -> int:
        return (
            self.cols << game.COLS_SHIFT
            | self.rows << game.ROWS_SHIFT
            | game.SETS.index(self.pieces) << game.SET_SHIFT
            | game.RANDOMIZERS.index(self.randomizer) << game.RANDOMIZER_SHIFT
            | self.preview << game.PREVIEW_SHIFT
            | self.hold << game.HOLD_BIT
        )

    @cached_property
    def words(self) -> dict[int, Word]:
        """The words of a state that are numbers of their own; a blank state has their lowest values."""
        rules, counts = self._rules_word(), ("LINES", "SCORE", "PIECES", "ILLEGAL", "STEPS")
        counted = {getattr(game, name): Word(name.lower(), 0, MOST, "counted") for name in counts}
        return {game.RULES: Word("rules word", rules, rules, str(self)), **counted}

    def observation_space(self) -> gym.spaces.Dict:
        spaces: dict[str, gym.Space[Any]] = {
            "board": gym.spaces.Box(0, 1, (self.height, self.cols), np.uint8),
            "piece": gym.spaces.Discrete(self.n_pieces),
        }
        if self.matches:
            spaces["opponent"] = spaces["board"]
        if self.preview:
            spaces["queue"] = gym.spaces.MultiDiscrete([self.n_pieces] * self.preview)
        if self.hold:
            spaces["hold"] = gym.spaces.Discrete(self.n_pieces + 1)
        return gym.spaces.Dict(spaces)

    @cached_property
    def numbers(self) -> Dict:
        """Where the numbers of an observation stand in `Seen.numbers`, by name."""
        queue = {"queue": slice(self.queue_at, self.queue_at + self.preview)} if self.preview else {}
        return {"piece": PIECE, **self.own_numbers, **({"hold": HOLD} if self.hold else {}), **queue}

    @cached_property
    def info_numbers(self) -> Dict:
        """Where the numbers of `info` stand there."""
        hidden = {"multiset": slice(self.queue_at + self.preview, None)} if self.randomizer == "hidden" else {}
        return {"lines": LINES, "score": SCORE, "pieces": PIECES, **self.own_figures, **hidden}

    def seen(self, count: int) -> Seen:
        cells, copies = self.height * self.cols, self.n_pieces if self.randomizer == "hidden" else 0
        return Seen(
            boards=np.empty((count, (1 + self.matches) * cells), np.uint8),
            numbers=np.empty((count, self.queue_at + self.preview + copies), np.int64),
            masks=np.empty((count, self.n_actions), np.int8),
            rewards=np.empty(count, np.float64),
            terminated=np.empty(count, np.bool_),
            truncated=np.empty(count, np.bool_),
            legal=np.empty(count, np.bool_),
        )

    def limits(self, max_steps: int) -> tuple[Any, ...]:
        return self.reward_index, self.illegal_limit, max_steps, self.reach

    def shown(self, seen: Seen) -> tuple[dict[str, Array], dict[str, Array]]:
        """(the batched observation in what a step has written, the infos by key)."""
        sides = seen.boards.reshape(-1, 1 + self.matches, self.height, self.cols).swapaxes(0, 1)
        numbers = {name: seen.numbers[:, at] for name, at in self.numbers.items()}
        figures = {name: seen.numbers[:, at] for name, at in self.info_numbers.items()}
        observations = {"board": sides[0], **numbers} | ({"opponent": sides[1]} if self.matches else {})
        return observations, {"action_mask": seen.masks, "legal": seen.legal, **figures}

    def observations(self, states: Words) -> dict[str, Array]:
        seen = self.seen(len(states))._replace(masks=np.empty((len(states), 0), np.int8))
        self.kernels.look(states, np.arange(len(states)), seen, self.reach)
        return self.shown(seen)[0]

    @classmethod
    def read(cls, observation: Observation) -> tuple[dict[str, Array], Dict, bool]:
        """See `GameRules`; a game of one side leaves the opponent's board out."""
        if not isinstance(observation, Mapping) or "board" not in observation:
            raise ValueError(f"observation is {observation!r}; expected a mapping with board, piece and more")
        parts = {
            n: checks.array(n, part, "integers") for n, part in observation.items() if cls.matches or n != "opponent"
        }
        board, preview = parts["board"], parts.get("queue", np.empty(0)).shape[-1:]
        if board.ndim not in (2, 3):
            raise ValueError(f"board has shape {board.shape}; expected (rows, cols), or a batch (n, rows, cols)")
        if not preview or not preview[0]:
            parts.pop("queue", None)
        shown = {"cols": board.shape[-1], "rows": board.shape[-2] - cls.storage, "preview": (*preview, 0)[0]}
        single = board.ndim == 2
        return batch_of_one(parts) if single else parts, shown | {"hold": "hold" in parts}, single

    def figures_of(self, state: Words) -> dict[str, int]:
        return {name: int(state[getattr(game, name.upper())]) for name in self.figures}

    @cached_property
    def _parts(self) -> dict[str, tuple[tuple[int, ...], Any, Any]]:
        """The parts of an observation: (shape, lowest values, highest values)."""
        drawn = min(self.piece_set.drawn), max(self.piece_set.drawn)
        limits = {"board": (0, 1), "opponent": (0, 1), "hold": (0, self.n_pieces), "piece": drawn, "queue": drawn}
        spaces = self.observation_space().spaces
        return {name: (space.shape or (), *limits.get(name, (0, 0))) for name, space in spaces.items()}

    def checked(self, observations: Options) -> dict[str, Array]:
        """A batch of observations as arrays; raises ValueError for parts, shapes and numbers that no game shows."""
        if set(observations) != set(self._parts):
            raise ValueError(f"observation has {', '.join(observations)}; expected {', '.join(self._parts)}")
        parts = {name: checks.array(name, observations[name], "integers") for name in self._parts}
        count = len(parts["board"])
        for name, (shape, low, high) in self._parts.items():
            part = parts[name]
            kinds = "iub" if name in ("board", "opponent") else "iu"  # bools as indices are masks
            if part.dtype.kind not in kinds or part.shape != (count, *shape):
                expected = f"integers of shape {[count, *shape]}"
                raise ValueError(f"{name} is {part.dtype}{list(part.shape)}; expected {expected}")
            wrong = (part < low) | (part > high)
            if wrong.any():
                at = tuple(np.argwhere(wrong)[0])
                least, most = (int(np.broadcast_to(limit, part.shape)[at]) for limit in (low, high))
                which = "".join(f"[{i}]" for i in at[1:])
                expected = self.pieces_text() if name in ("piece", "queue") else f"{least} to {most}"
                raise ValueError(f"{name}{which} is {part[at]}; expected {expected}")
        return parts

    def states(self, observations: Options) -> Words:
        """States that show these observations, uint64[n, words]; what none shows is as in a blank state.

        Raises ValueError for what no game shows; by placements, full rows are taken as they stand.
        """
        parts = self.checked(observations)
        states = self._blank_states(len(parts["board"]))
        self._read(parts, states)
        no_faults("observation", self._misread(parts, states))
        return states

    def _misread(self, parts: dict[str, Array], states: Words) -> Any:
        """The faults of states that were read from the parts of observations."""
        return PieceRules._faults(self, states)

    def _read(self, parts: dict[str, Array], states: Words) -> None:
        """Write what the parts of observations show into blank states."""
        shifts = game.NIBBLE_BITS * np.arange(1 + self.preview)
        queue = [parts["queue"]] if self.preview else []
        ids = np.concatenate([parts["piece"][:, None], *queue], axis=1).astype(np.int64)
        states[:, game.QUEUE] = (ids << shifts).sum(axis=1)
        states[:, game.COLUMNS : game.COLUMNS + self.cols] = columns_of(parts["board"])
        if self.hold:
            states[:, game.HOLD] = (parts["hold"].astype(np.int64) + 1) % (self.n_pieces + 1)

    def viewed(self, kind: str, boards: Array, observations: Dict, *numbers: Array) -> Array:
        """A view of boards [n, k, rows, cols], the pieces of observations, and numbers [n, m]."""
        one_hot = [
            np.eye(self.n_pieces + (name == "hold"), dtype=np.float32)[ids]
            for name in self.drawn_in_view
            for ids in (np.atleast_2d(np.transpose(observations[name])) if name in observations else ())
        ]
        shown, boards = np.concatenate([*one_hot, *numbers], axis=1).astype(np.float32), boards.astype(np.float32)
        if kind == "planes":
            constant = np.broadcast_to(shown[:, :, None, None], (*shown.shape, *boards.shape[2:]))
            return np.concatenate([boards, constant], axis=1)
        return np.concatenate([boards.reshape(len(boards), np.prod(boards.shape[1:])), shown], axis=1)

    def _blank_states(self, count: int) -> Words:
        """Valid states: a piece is queued, and a hidden multiset has one of each piece."""
        states, drawn = np.zeros((count, game.COLUMNS + self.cols), dtype=np.uint64), self.piece_set.drawn
        for at, word in self.words.items():
            states[:, at] = word.low
        states[:, game.QUEUE] = game.word_of([drawn[0]] * (1 + self.preview))
        if self.randomizer == "hidden":
            states[:, game.BAG] = game.word_of([int(piece in drawn) for piece in range(self.n_pieces)])
        return states

    def _faults(self, states: Words) -> Iterator[tuple[str, Any, Bools, str]]:
        drawn, known, each = self.piece_set.drawn, 1 + self.preview, self.pieces_text()
        limits = np.array([(word.low, word.high) for word in self.words.values()], U)
        numbers = states[:, list(self.words)]
        wrong = (numbers < limits[:, 0]) | (numbers > limits[:, 1])
        for i in np.flatnonzero(wrong.any(axis=0)):
            name, low, high, says = list(self.words.values())[i]
            expected = f"{low:#x}" if low == high else f"{low:#x} to {high:#x}"
            yield name, numbers[:, i], wrong[:, i], f"{expected}, {says}"
        queue, hold, bag = states[:, game.QUEUE], states[:, game.HOLD], states[:, game.BAG]
        wrong = ~np.isin(game.nibbles(queue, known), drawn).all(axis=1) | (queue >> U(game.NIBBLE_BITS * known) > 0)
        yield "queue", queue, wrong, f"{known} ids of four bits, each {each}"
        expected = f"0, or an id plus one, the id {each}" if self.hold else "0"
        yield "hold", hold, (hold > 0) & ~(np.isin(hold - U(1), drawn) & self.hold), expected
        wrong, expected = bag & ~U(sum(1 << id for id in drawn)) > 0, f"a bit for each piece left, {each}"
        if self.randomizer == "hidden":
            wrong = (bag == 0) | (bag & ~U(game.word_of([15 * (id in drawn) for id in range(self.n_pieces)])) > 0)
            expected = f"copies in four bits for each piece, {each}, and not all 0"
        yield "bag", bag, wrong, expected
        cells, rows = np.bitwise_or.reduce(states[:, game.COLUMNS : game.COLUMNS + self.cols], axis=1), self.rows
        rows += self.piece_set.storage
        yield "highest cells", cells, cells >> U(rows) > 0, f"cells in the {rows} rows of the field and above it"

    def _start(self, given: Dict) -> Words:
        """A start uint64[1 + cols]: the queue's ids plus one, four bits each, 0 to draw; then the board's columns."""
        start = self._no_start()
        if "board" in given:
            board = board_array(given["board"])
            if board.shape not in (shapes := [(rows, self.cols) for rows in dict.fromkeys((self.height, self.rows))]):
                raise ValueError(f"board has shape {board.shape}; expected {' or '.join(map(str, shapes))}")
            if (full := board.all(axis=1)).any():
                raise ValueError(f"row {int(full.argmax())} of board is full; expected no full rows")
            start[1:] = columns_of(board)
        pieces = [self.piece_id("piece", given["piece"]) + 1 if "piece" in given else 0]
        if "queue" in given:
            queue = given["queue"]
            listed = queue.tolist() if isinstance(queue, np.ndarray) else queue
            if not isinstance(listed, list | tuple) or len(listed) != self.preview:
                raise ValueError(f"queue is {queue!r}; expected a list of {self.preview} pieces, ids or names")
            pieces += [self.piece_id("queue", piece) + 1 for piece in listed]
        start[0] = game.word_of(pieces)
        if "hold" in given:
            start[0] |= U(self.piece_id("hold", given["hold"]) + 1 << game.NIBBLE_BITS * game.GIVEN_HOLD)
        return start

    def _no_start(self) -> Words:
        return np.zeros(1 + self.cols, np.uint64)

    def piece_id(self, name: str, piece: Any) -> int:
        """The id of one of the game's pieces from its name or id; raises ValueError, naming the argument, otherwise."""
        names = self.piece_set.names
        if isinstance(piece, str):
            id = names.index(choice(name, piece, names))
        else:
            id = integer(name, piece, 0, len(names) - 1)
        if id not in self.piece_set.drawn:
            raise ValueError(f"{name} is {piece!r}; expected {self.pieces_text()}")
        return id

    def pieces_text(self) -> str:
        return "one of " + ", ".join(f"{id} {self.piece_set.names[id]}" for id in self.piece_set.drawn)


@dataclass(frozen=True)
class Rules(PieceRules):
    """The arguments that make a game and its rewards; `TetrisEnv` describes them."""

    cols: int = argument(10, "observations", FEWEST_COLS, MOST_COLS)
    rows: int = argument(20, "observations", FEWEST_ROWS, MOST_ROWS)
    pieces: Literal["tetromino", "sz", "five"] = argument("tetromino", "spaces")
    randomizer: Literal["uniform", "bag7", "hidden"] = argument("uniform", "players")
    preview: int = argument(1, "observations", 0, game.MOST_PREVIEW)
    placements: Literal["drop", "slide", "reachable"] = argument("drop", "spaces")
    hold: bool = argument(False, "observations")
    overflow: Literal["strict", "clear_first"] = argument("strict", "players")
    reward: Literal["lines", "score"] = argument("lines", "training")
    illegal_limit: int = argument(100, "training", 1, MOST_COUNTED)

    name, figures, memoryless = "tetris", ("score", "lines", "pieces"), True
    kernels = batch.KERNELS

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.pieces == "five" and self.placements == "reachable":
            raise ValueError("placements is 'reachable' with pieces='five'; SRS has no kicks for five-cell pieces")
        if self.hold and not self.preview:
            raise ValueError("hold is True with preview=0; expected a preview of at least 1")

    @property
    def slides(self) -> bool:
        return self.placements == "slide"

    @property
    def reachable(self) -> bool:
        return self.placements == "reachable"

    @property
    def reach(self) -> int | None:
        """For kernels, see `placements.py`."""
        return self.rows if self.reachable else None

    @property
    def n_actions(self) -> int:
        per_turn = self.rows + ABOVE if self.reachable else SLIDES if self.slides else 1
        return (1 + self.hold) * per_turn * ROTATIONS * self.cols

    def _rules_word(self) -> int:
        return (
            super()._rules_word()
            | self.slides << game.SLIDES_BIT
            | (self.overflow == "clear_first") << game.CLEAR_FIRST_BIT
            | self.reachable << game.REACHABLE_BIT
        )

    @cached_property
    def words(self) -> dict[int, Word]:
        unused = Word("word of play by keys", 0, 0, "in a game by placements")
        return super().words | dict.fromkeys(range(game.BY_KEYS, game.COLUMNS), unused)

    def view(self, kind: str, observations: Dict) -> Array:
        parts = self.checked(observations)
        return self.viewed(kind, parts["board"][:, None], parts)

    def resting(self, state: Words, action: int) -> tuple[int, int, tuple[int, int, int]]:
        """(whether an action exchanges pieces, the table row of the piece, where it rests); see `placements.rest`."""
        held, placed = divmod(action, self.n_actions // (1 + self.hold))
        piece = self.piece_set.first + game.placed_by.py_func(state, held)
        return held, piece, rest(game.columns_in(state), piece, placed, self.slides, self.reach)

    def payments(self) -> Floats:
        """The rewards for clearing 0, 1, … lines with one piece."""
        scores = game.LINE_SCORES if self.reward == "score" else np.arange(game.LINE_SCORES.size)
        return scores.astype(np.float64)

    def afterstates(self, states: Words) -> tuple[Array, Array, Array, Array]:
        """What all actions of n games lead to: (boards, rewards, legal, fatal).

        Boards uint8[n, actions, rows, cols], rewards float64[n, actions]; legal and fatal bool[n, actions] say whether
        an action is legal, and whether it ends the game.
        """
        size = len(states), self.n_actions
        boards, lines = np.empty((*size, self.rows * self.cols), np.uint8), np.empty(size, np.int64)
        fatal = np.zeros(size, np.bool_)
        batch.afterstates(states, self.reach, boards, lines, fatal)
        rewards = self.payments()[np.maximum(lines, 0)]
        return boards.reshape(*size, self.rows, self.cols), rewards, lines >= 0, fatal

    def _draws(self, state: Words, action: int) -> tuple[Ints, Ints]:
        """One piece is drawn, or two where the action begins to hold: by the upper and the lower half of the bits."""
        bag, holds = int(state[game.BAG]), self.hold and action >= self.n_actions // 2 and not state[game.HOLD]
        found = [
            (upper, lower)
            for upper, id in self._drawn(bag)
            for lower, _ in (self._drawn(bag, 1 << id) if holds else [([0, HALF], None)])
        ]
        upper, lower = map(np.array, zip(*found, strict=True))
        return upper, lower

    def _drawn(self, bag: int, taken: int = 0) -> Iterator[tuple[Any, int]]:
        """(the bounds of the random bits that draw it, id) for each piece that may be drawn.

        `bag`: the word BAG. `taken`: the id, as a bit, that leaves the bag before.
        """
        ids = np.array(self.piece_set.drawn)
        alike, left = np.ones(len(ids), np.int64), (bag or sum(1 << id for id in self.piece_set.drawn)) & ~taken
        of_bag = left >> ids & 1 if left else alike  # an empty bag is filled before the draw
        copies = game.nibbles(U(bag), self.n_pieces)[ids]
        weights = {"uniform": alike, "bag7": of_bag, "hidden": copies}[self.randomizer]
        ids, weights = ids[weights > 0], weights[weights > 0]
        return zip(bounds(np.append(0, weights.cumsum())), ids.tolist(), strict=True)

    def _faults(self, states: Words) -> Iterator[tuple[str, Any, Bools, str]]:
        yield from super()._faults(states)
        columns = states[:, game.COLUMNS :]  # more full rows than one piece can fill have no score
        full = np.bitwise_and.reduce(columns, axis=1)
        going = np.bitwise_or.reduce(columns, axis=1) >> U(self.rows) == 0
        yield "full rows", full, going & (full > 0), "none in a game that goes on"


def board_array(board: Any) -> Bytes:
    """A field as uint8[rows, cols] of 0 and 1, row 0 on top. Raises ValueError for anything that is no board.

    Args:
        board: an array or nested lists of 0 and 1 (or bools), or text: `.` for empty, `#` for filled, rows separated by
            `/` or line breaks. Any size from 4×4 to 16 columns by 40 rows.

    >>> board_array("..../..../#.../##.#")[3]
    array([1, 1, 0, 1], dtype=uint8)
    """
    if isinstance(board, str):
        lines = board.replace("/", "\n").split()
        if wrong := set("".join(lines)) - {".", "#"}:
            raise ValueError(f"board text holds {sorted(wrong)[0]!r}; expected rows of '.' and '#'")
        board = [[cell == "#" for cell in line] for line in lines]
    array = checks.array("board", board, "rows × columns of 0 and 1")
    if array.ndim != 2:
        raise ValueError(f"board has shape {array.shape}; expected rows × columns")
    return checked_cells("board", array).copy()


from_text = board_array


def checked_cells(name: str, array: Array) -> Bytes:
    """Boards [..., rows, cols] as uint8, row-major; raises ValueError for other values or sizes."""
    rows, cols = array.shape[-2:]
    if not (FEWEST_ROWS <= rows <= MOST_ROWS and FEWEST_COLS <= cols <= MOST_COLS):
        limits = f"{FEWEST_ROWS} to {MOST_ROWS} rows of {FEWEST_COLS} to {MOST_COLS} columns"
        raise ValueError(f"{name} has shape {array.shape}; expected {limits}")
    if array.dtype.kind not in "iub" or array.max(initial=0) > 1 or array.min(initial=0) < 0:
        raise ValueError(f"{name} holds {array.dtype} {np.unique(array)[:8].tolist()}; expected cells of 0 and 1")
    return np.ascontiguousarray(array, dtype=np.uint8)


def to_text(board: Any) -> str:
    """A board as text: `.` empty, `#` filled, `/` between rows, the top row first.

    >>> to_text([[0, 0, 0, 0], [0, 0, 0, 0], [1, 0, 0, 0], [1, 1, 0, 1]])
    '..../..../#.../##.#'
    """
    return "/".join("".join(".#"[cell] for cell in row) for row in board_array(board).tolist())


@dataclass(frozen=True, eq=False)
class Placement:
    """A piece at rest and its consequences.

    - `locked`, `board`: uint8[rows, cols], the field before and after clearing, row 0 on top. With overflow "strict" a
      placement that ends the game clears nothing.
    - `cells`: the piece's (row, column) pairs in `locked`; rows above the field are negative.
    - `lines`: the number of full rows removed.
    - `removed_cells`: the number of the piece's own cells in these rows.
    - `landing_height`: rows beneath the piece's lowest cell + (its height − 1) / 2.
    - `over`: whether the placement ended the game.
    """

    locked: Bytes
    board: Bytes
    cells: tuple[tuple[int, int], ...]
    lines: int
    removed_cells: int
    landing_height: float
    over: bool


def place(
    board: Any,
    piece: str | int,
    rotation: int,
    column: int,
    slide: int = 0,
    overflow: Literal["strict", "clear_first"] = "strict",
    y: int | None = None,
) -> Placement:
    """Bring a piece to rest on a board and clear full rows.

    Args:
        board: the field, as `board_array` takes it. Rows that are already full are cleared too.
        piece: a name, or a tetromino's id (I O T S Z J L = 0 … 6).
        rotation: quarter turns clockwise from the spawn orientation, 0 to 3.
        column: the piece's leftmost column when it is dropped.
        slide: 0 leaves the piece where it lands; 1 and 2 then move it one column left or right and let it fall to rest.
        overflow: "strict" ends the game if the piece rests with a cell above the field, and clears nothing then;
            "clear_first" clears full rows first and ends it if a cell is left above the field.
        y: the row above the floor of the piece's lowest cell in a reachable placement of a tetromino, which may need
            kicks and soft drops. Default: None, straight down.

    Raises ValueError for a placement that does not exist: beyond the wall, in a rotation that repeats another, out of
    reach, or a slide that is blocked or ends in the cells of a lower action.

    >>> placed = place("..../..../..../##.#", "T", rotation=2, column=1)
    >>> placed.lines, placed.removed_cells, placed.landing_height, to_text(placed.board)
    (1, 1, 0.5, '..../..../..../.###')
    """
    cells = board_array(board)
    rows, cols = cells.shape
    index = NAMES.index(choice("piece", piece, NAMES)) if isinstance(piece, str) else integer("piece", piece, 0, 6)
    name, clear_first = NAMES[index], choice("overflow", overflow, Rules.choices("overflow")) == "clear_first"
    rotation, column = integer("rotation", rotation, 0, ROTATIONS - 1), integer("column", column, 0, cols - 1)
    slide = integer("slide", slide, 0, SLIDES - 1)
    columns, leftmost, where = field.columns_of(cells), column, f"slide {slide}"
    if y is None:
        _, leftmost, row = rest(columns, index, (slide * ROTATIONS + rotation) * cols + column, True, None)
    else:
        row, where = integer("y", y, 0, rows), f"y {y}"
        if index >= len(TETROMINOES) or not is_reachable(columns, index, rotation, column, row, rows):
            row = -1
    if row < 0:
        raise ValueError(f"{name} at rotation {rotation}, column {column}, {where}; expected a legal placement")
    locked = columns.copy()
    field.put(locked, index, rotation, leftmost, row)
    lines, removed, over = field.place(columns, index, rotation, leftmost, row, rows, clear_first)
    height = int(HEIGHTS[index, rotation])
    return Placement(
        locked=field.boards_of(locked, rows),
        board=field.boards_of(columns, rows),
        cells=tuple((rows - row - height + r, leftmost + c) for r, c in rotations(name)[rotation]),
        lines=lines,
        removed_cells=removed,
        landing_height=row + (height - 1) / 2,
        over=over,
    )
