"""What a Tetris environment is told, checked once: its arguments, and what episodes start from."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from mergefall.checks import choice, integer, states_like
from mergefall.tetris import game
from mergefall.tetris.field import columns_of
from mergefall.tetris.pieces import PIECE_SETS, PieceSet
from mergefall.tetris.placements import ROTATIONS, SLIDES
from mergefall.tetris.rules import (
    FEWEST_COLS,
    FEWEST_ROWS,
    MOST_COLS,
    MOST_ROWS,
    OVERFLOWS,
    board_array,
)
from mergefall.tetris.shaping import ShapingTetris

PLACEMENTS = ("drop", "slide")
REWARDS = ("lines", "score")


@dataclass(frozen=True)
class Settings:
    """The arguments that the single and the batched environment share; see `TetrisEnv` for their meaning."""

    cols: int = 10
    rows: int = 20
    pieces: Literal["tetromino", "sz", "five"] = "tetromino"
    randomizer: Literal["uniform", "bag7", "hidden"] = "uniform"
    preview: int = 1
    placements: Literal["drop", "slide"] = "drop"
    overflow: Literal["strict", "clear_first"] = "strict"
    reward: Literal["lines", "score"] = "lines"
    illegal_limit: int = 100

    def __post_init__(self) -> None:
        for name, low, high in (
            ("cols", FEWEST_COLS, MOST_COLS),
            ("rows", FEWEST_ROWS, MOST_ROWS),
            ("preview", 0, game.MOST_PREVIEW),
            ("illegal_limit", 1, None),
        ):
            object.__setattr__(self, name, integer(name, getattr(self, name), low, high))
        for name, choices in (
            ("pieces", game.SETS),
            ("randomizer", game.RANDOMIZERS),
            ("placements", PLACEMENTS),
            ("overflow", OVERFLOWS),
            ("reward", REWARDS),
        ):
            choice(name, getattr(self, name), choices)

    @property
    def piece_set(self) -> PieceSet:
        """The pieces of the game; ids are places in its `names`."""
        return PIECE_SETS[self.pieces]

    @property
    def n_pieces(self) -> int:
        """The number of piece ids."""
        return len(self.piece_set.names)

    @property
    def n_actions(self) -> int:
        """The number of actions; `placements.py` says what each means."""
        return (SLIDES if self.placements == "slide" else 1) * ROTATIONS * self.cols

    @property
    def words(self) -> int:
        """The length of a game's state."""
        return game.COLUMNS + self.cols

    def observation_space(self) -> gym.spaces.Dict:
        spaces: dict[str, gym.Space[Any]] = {
            "board": gym.spaces.Box(0, 1, (self.rows, self.cols), np.uint8),
            "piece": gym.spaces.Discrete(self.n_pieces),
        }
        if self.preview:
            spaces["next"] = gym.spaces.MultiDiscrete([self.n_pieces] * self.preview)
        return gym.spaces.Dict(spaces)

    def action_space(self) -> gym.spaces.Discrete:
        return gym.spaces.Discrete(self.n_actions)

    def action_index(self, action: Any) -> int:
        """`action` (an int, a NumPy integer, a 0-d array) as an int; a ValueError for anything out of the space."""
        try:
            number = operator.index(action)
        except TypeError:
            number = -1
        if not 0 <= number < self.n_actions:
            raise ValueError(f"action is {action!r}; expected {self.actions_text()}")
        return number

    def actions_text(self) -> str:
        """What actions are, for messages."""
        return f"an integer from 0 to {self.n_actions - 1}"

    def rules_word(self) -> int:
        """The word RULES of the states."""
        return game.rules_word(
            self.cols,
            self.rows,
            self.pieces,
            self.randomizer,
            self.preview,
            self.placements == "slide",
            self.overflow == "clear_first",
        )

    def new_states(self, count: int) -> NDArray[np.uint64]:
        """States uint64[count, words] of no game yet (`game.start` begins one), with streams from fresh entropy.

        They are sound states none the less: pieces are queued, and a hidden multiset has one of each.
        """
        states, drawn = np.zeros((count, self.words), dtype=np.uint64), self.piece_set.drawn
        states[:, game.STREAM] = np.random.SeedSequence().generate_state(count, np.uint64)
        states[:, game.RULES] = self.rules_word()
        states[:, game.QUEUE] = sum(drawn[0] << 4 * i for i in range(1 + self.preview))
        if self.randomizer == "hidden":
            states[:, game.BAG] = sum(1 << 4 * piece for piece in drawn)
        return states

    def payments(self) -> NDArray[np.float64]:
        """What clearing 0, 1, … lines with one piece pays."""
        scores = game.LINE_SCORES if self.reward == "score" else np.arange(game.LINE_SCORES.size)
        return scores.astype(np.float64)

    def rewards(self, lines: NDArray[np.int64]) -> NDArray[np.float64]:
        """What placements that clear the given numbers of lines pay, -1 standing for an illegal action."""
        return self.payments()[np.maximum(lines, 0)]

    def shaping(self, options: Any) -> ShapingTetris | None:
        """The shaping that options ask for (`Shaping.read`); None for none."""
        return None if options is None else ShapingTetris.read(options, self.rows, self.cols)

    def start(self, options: Mapping[str, Any] | None) -> NDArray[np.uint64] | None:
        """What `reset` options ask to start from, for `game.start_from`; None if they ask for nothing.

        `board` is a field as `rules.board_array` takes it, without full rows; `piece` the current piece's id or name;
        `next` the ids or names of all previewed ones. What is left out is an empty board, and pieces that are drawn.
        """
        unknown = sorted(set(options or ()) - {"board", "piece", "next"}, key=repr)
        if unknown:
            raise ValueError(f"reset options hold {unknown[0]!r}; expected some of 'board', 'piece', 'next'")
        asked = {name: value for name, value in (options or {}).items() if value is not None}
        if not asked:
            return None
        start = np.zeros(1 + self.cols, dtype=np.uint64)
        if "board" in asked:
            board = board_array(asked["board"], self.cols, self.rows)
            if (full := board.all(axis=1)).any():
                raise ValueError(f"row {int(full.argmax())} of board is full; expected no full rows")
            start[1:] = columns_of(board)
        pieces = [self.piece_id("piece", asked["piece"]) + 1 if "piece" in asked else 0]
        if "next" in asked:
            following = asked["next"]
            listed = following.tolist() if isinstance(following, np.ndarray) else following
            if not isinstance(listed, list | tuple) or len(listed) != self.preview:
                raise ValueError(f"next is {following!r}; expected a list of {self.preview} pieces, ids or names")
            pieces += [self.piece_id("next", piece) + 1 for piece in listed]
        start[0] = sum(piece << 4 * i for i, piece in enumerate(pieces))
        return start

    def piece_id(self, name: str, piece: Any) -> int:
        """The id of one of the game's pieces, from its name or id; a ValueError names the argument `name` otherwise."""
        names = self.piece_set.names
        named = isinstance(piece, str)
        id = names.index(choice(name, piece, names)) if named else integer(name, piece, 0, len(names) - 1)
        if id not in self.piece_set.drawn:
            raise ValueError(f"{name} is {piece!r}; expected {self.pieces_text()}")
        return id

    def pieces_text(self) -> str:
        """What pieces the game has, for messages."""
        return "one of " + ", ".join(f"{id} {self.piece_set.names[id]}" for id in self.piece_set.drawn)

    def multiset(self, state: NDArray[np.uint64]) -> NDArray[np.int64]:
        """The hidden copies int64[n] of each piece in a state."""
        return (int(state[game.BAG]) >> 4 * np.arange(self.n_pieces)) & 15

    def pool(self, starts: Sequence[Mapping[str, Any]] | None) -> NDArray[np.uint64]:
        """A list of `reset` options as uint64[n, 1 + cols] for `game.begin`; `{}` is an ordinary start."""
        pool = np.zeros((len(starts or ()), 1 + self.cols), dtype=np.uint64)
        for row, options in zip(pool, starts or (), strict=True):
            start = self.start(options)
            if start is not None:
                row[:] = start
        return pool

    def restored(self, state: Any, like: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """A copy of what `clone_state` returned, of the shape and rules of `like`; a ValueError for any other state."""
        copy = states_like(state, like)
        i, word = game.first_wrong(copy.reshape(-1, self.words), like.item(game.RULES))
        if word >= 0:
            whose = "state" if copy.ndim == 1 else f"state of game {i}"
            raise ValueError(self._what_is_wrong(whose, copy.reshape(-1, self.words)[i], word))
        return copy

    def _what_is_wrong(self, whose: str, state: NDArray[np.uint64], word: int) -> str:
        """What to say of a state with this `game.wrong_word`."""
        if word == game.RULES:
            rules, ours = int(state[word]), self.rules_word()
            return f"{whose} is of a game with {game.rules_text(rules)}; expected {game.rules_text(ours)}"
        if word == len(state):
            return f"{whose} has a full row; expected none in a game that goes on"
        found, lines = int(state[word]), int(state[game.LINES])
        if word >= game.COLUMNS:
            rows = self.rows + self.piece_set.storage
            return f"{whose} has {found:#x} in column {word - game.COLUMNS}; expected no cells above row {rows}"
        name, expected = {
            game.LINES: ("lines", f"at most five for each of {int(state[game.PIECES])} pieces"),
            game.SCORE: ("score", f"40 to 300 for each of {lines} lines"),
            game.PIECES: ("pieces", "a number below 2⁵³"),
            game.ILLEGAL: ("illegal actions", f"at most its {int(state[game.STEPS])} steps"),
            game.STEPS: ("steps", "a number below 2⁵³"),
            game.QUEUE: ("queue", f"{1 + self.preview} ids of four bits, each {self.pieces_text()}"),
            game.BAG: ("bag", self._bag_text()),
        }[word]
        return f"{whose} has the {name} {hex(found) if word >= game.BAG else found}; expected {expected}"

    def _bag_text(self) -> str:
        """What the word BAG holds, for messages."""
        if self.randomizer == "uniform":
            return "0, as pieces are uniform"
        if self.randomizer == "bag7":
            return f"a bit for each piece left, {self.pieces_text()}"
        return f"0 to {game.MOST_COPIES} copies in four bits for each piece, {self.pieces_text()}, and not all 0"
