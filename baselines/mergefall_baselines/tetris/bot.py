"""Programs that speak the Tetris Bot Protocol, as players.

A *move* of the protocol names a piece, its orientation and the place of its centre, and the kind of spin. Here it is a
placement of ``placements="reachable"`` with ``hold=True``; a move of another piece than the current one holds.

Source: https://github.com/tetris-bot-protocol/tbp-spec (MVP, and the extension randomizer).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
import weakref
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from threading import Lock, Timer
from types import MappingProxyType
from typing import Any

import numpy as np
from mergefall.checks import number
from mergefall.tetris import game
from mergefall.tetris.field import boards_of, clear, full_rows, is_free, put
from mergefall.tetris.keys.game import MOST_WAITING
from mergefall.tetris.pieces import TETROMINOES, WIDTHS, rotations
from mergefall.tetris.placements import ABOVE, ACTION_SHIFT, ROTATIONS, action_of, at_rest, list_reachable
from mergefall.tetris.srs import SHAPES
from mergefall.typing import Array
from numpy.typing import NDArray

from mergefall_baselines.kernel_player import KernelPlayer
from mergefall_baselines.tetris.memory import COUNTS, HELD, IDS, observe
from mergefall_baselines.tetris.player import FORM

NAMES = tuple(TETROMINOES)
ORIENTATIONS = ("north", "east", "south", "west")
SPINS = ("none", "mini", "full")
COLS, ROWS, HEIGHT = 10, 20, 40  # of the protocol's games; the last is that of its boards
RULES = {"cols": COLS, "rows": ROWS, "placements": "reachable"}
RANDOMIZERS = {"uniform": "uniform", "bag7": "seven_bag"}  # of all seven pieces; any other is "unknown"
PER_PIECE = ROTATIONS * COLS * (ROWS + ABOVE)  # actions
PATIENCE, FAREWELL = 60.0, 1.0  # seconds that a program has for an answer, and to quit
LONGEST = 1 << 20  # characters of a line
MOST_CLEARS, CHAINED = MOST_WAITING, MOST_WAITING + 1  # a chain: clears in a row, and a flag for back-to-back
FORFEIT = CHAINED << 1  # a flag beside them in a player's memory

Place = tuple[int, int, int, int]  # piece id, rotation, leftmost column, row of the lowest cell


class ProtocolError(RuntimeError):
    """A program that does not answer as the protocol says."""


# -- moves ------------------------------------------------------------------------------------------------------------


def corner(piece: int, orientation: int) -> tuple[int, int]:
    """(leftmost, lowest) of a piece's cells, counted from its centre.

    >>> corner(NAMES.index("T"), ORIENTATIONS.index("east"))
    (0, -1)
    """
    drawn = rotations(NAMES[piece])[0]
    bottom, left = max(row for row, _ in drawn), int(NAMES[piece] != "O")
    cells = [(column - left, bottom - row) for row, column in drawn]
    for _ in range(orientation):
        cells = [(y, -x) for x, y in cells]
    return min(x for x, _ in cells), min(y for _, y in cells)


def location_of(piece: int, rotation: int, column: int, y: int) -> dict[str, Any]:
    """The location of a place.

    >>> location_of(NAMES.index("T"), 2, 3, 0)
    {'type': 'T', 'orientation': 'south', 'x': 4, 'y': 1}
    """
    left, lowest = corner(piece, rotation)
    return {"type": NAMES[piece], "orientation": ORIENTATIONS[rotation], "x": column - left, "y": y - lowest}


def place_of(move: Any) -> tuple[Place, int]:
    """(the place of a move, its kind of spin). Raises ValueError for anything that is no move."""
    try:
        location, spin = move["location"], SPINS.index(move["spin"])
        piece, turn = NAMES.index(location["type"]), ORIENTATIONS.index(location["orientation"])
        left, lowest = corner(piece, turn)
        return (piece, int(SHAPES[piece, turn]), location["x"] + left, location["y"] + lowest), spin
    except (KeyError, TypeError, ValueError):
        expected = "a move: a location of type, orientation, x and y, and a spin"
        raise ValueError(f"{move!r:.200}; expected {expected}") from None


def legal(columns: NDArray[np.uint64], piece: int) -> list[int]:
    """The placements of a piece, packed; filled cells above the field are in its way."""
    if not is_free(columns, piece, 0, (COLS - WIDTHS[piece, 0]) // 2, ROWS):  # where it appears
        return []
    found = np.empty(64 * ROTATIONS * COLS, np.int64)
    count = list_reachable(columns, piece, ROWS, found)
    return [placement for placement in found[:count].tolist() if at_rest(placement)[2] < ROWS + ABOVE]


def lock(columns: NDArray[np.uint64], place: Place, spin: int, chain: int) -> int:
    """Lock a piece and clear full rows, in place; returns the chain after it."""
    put(columns, *place)
    full = full_rows(columns)
    if not full:
        return chain & CHAINED
    clear(columns, full)
    return min((chain & MOST_CLEARS) + 1, MOST_CLEARS) | CHAINED * (spin > 0 or int(full).bit_count() == 4)


# -- programs ---------------------------------------------------------------------------------------------------------


def _kill(process: Any) -> None:
    """Kill a program, and where the system can, those that it started."""
    with suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL) if hasattr(os, "killpg") else process.kill()


def _end(process: Any) -> None:
    """Ask a program to quit; one that does not is killed."""
    try:
        process.communicate('{"type": "quit"}\n', timeout=FAREWELL)
    except subprocess.TimeoutExpired:
        _kill(process)
        process.communicate()


class Program:
    """A bot's program, for as long as this object is in use.

    Raises ProtocolError, as `ask` does, if it does not start or answers otherwise than by the protocol.
    """

    def __init__(self, command: tuple[str, ...], randomizer: str) -> None:
        self.command, self.lock = command, Lock()
        pipes = dict.fromkeys(("stdin", "stdout"), subprocess.PIPE)
        try:
            self._process: Any = subprocess.Popen(command, **pipes, text=True, start_new_session=True)
        except (OSError, ValueError) as error:  # ValueError for a null character
            raise ProtocolError(f"the bot {command} does not start: {error}") from error
        self._end = weakref.finalize(self, _end, self._process)
        self.ask("info")
        self.ask("ready", {"type": "rules", "randomizer": randomizer})

    def ask(self, kind: str | None, *messages: Any) -> Any:
        """Say messages, and return the first answer of a kind; for None there is none."""
        said: Any = {}
        timer = Timer(PATIENCE, _kill, [self._process])
        timer.start()
        try:
            with suppress(OSError):  # what a program said before it went can still be heard
                self._process.stdin.write("".join(json.dumps(message) + "\n" for message in messages))
                self._process.stdin.flush()
            while kind is not None and isinstance(said, dict) and said.get("type") not in (kind, "error"):
                said = self._process.stdout.readline(LONGEST)
                with suppress(ValueError, RecursionError):
                    said = json.loads(said)
        finally:
            timer.cancel()
        if kind is None or (isinstance(said, dict) and said.get("type") == kind):
            return said
        self._end()
        raise ProtocolError(
            f"the bot {self.command} said {f'{said!r:.200}' if said else 'nothing'}, exit status "
            f"{self._process.returncode}; expected {kind!r} within {PATIENCE:g} seconds"
        )


programs = cache(Program)  # so that copies of a player ask the same one


class Bot(KernelPlayer):
    """Bot: a program that speaks the Tetris Bot Protocol, such as Cold Clear 2.

    Each decision is a `start` of the bot at the present position, a time to think, a `suggest` and a `stop`; the
    program runs on between decisions. It plays ``placements="reachable"`` with ``hold=True`` on 10×20. By keys, as
    ``{"player": "tetris/keys", "of": {"player": "tetris/bot", "command": …}}``, it also sees what lies above the field.

    The bot is told how many locks in a row cleared lines, whether the last clear was a tetris or a spin, and in games
    of ``randomizer="bag7"`` what is left of the bag. The first of its moves that is legal is played. If none is, it
    forfeits: it is not asked again in this game, and its pieces are piled up until the game is over.

    Args:
        command: list of strings, the program and its arguments.
        seconds: float, how long the bot may think before each suggestion. Some bots have no move after 0 seconds, and
            so forfeit. Default: 0.1.

    `values` are 0 for the bot's action, −inf for the others.

    Raises ProtocolError if the program does not start, fails, is silent for a minute, or does not speak the protocol.

    Example:
        >>> import sys
        >>> from mergefall_baselines import make
        >>> command = [sys.executable, "-m", "mergefall_baselines.tetris.protocol", "tetris/bcts"]
        >>> bot = make("tetris/bot", command=command)
        >>> observation = {"board": np.zeros((20, 10), np.uint8), "piece": 1, "hold": 7, "queue": np.array([0])}
        >>> bot.act(observation) == make("tetris/bcts", placements="reachable", hold=True).act(observation)
        np.True_
        >>> bot.close()
    """

    form, name = FORM, "tetris/bot"
    remembers, compiled, rules_are_options = True, False, False
    plays = MappingProxyType(
        {"placements": "reachable", "hold": True, "randomizer": "bag7", "preview": 5, "overflow": "clear_first"}
    )

    def __init__(self, command: Sequence[str], seconds: float = 0.1) -> None:
        if not isinstance(command, list | tuple) or not command or not all(isinstance(one, str) for one in command):
            raise ValueError(f"command is {command!r}; expected a list of strings, a program and its arguments")
        self.command, self.seconds = tuple(command), number("seconds", seconds, 0)
        super().__init__(**RULES, hold=True)

    def close(self) -> None:
        """End the programs of all bots; where one is asked again, it starts anew."""
        programs.cache_clear()

    def _decide(self, rules: Any, states: Array, memory: Array, values: Array, exact: bool) -> NDArray[np.int64]:
        actions = [action_of(self.choose(*one)) for one in zip(states, memory, strict=True)]
        values[:] = -np.inf
        values[range(len(actions)), actions] = 0
        return np.array(actions, np.int64)

    def choose(self, state: NDArray[np.uint64], memory: NDArray[np.uint64]) -> int:
        """The placement, packed, in a state of the game by placements or by keys; updates the player's memory."""
        columns, known, hold = game.columns_in(state), 1 + game.settings_of(state)[2], int(state[game.HOLD])
        queue = game.nibbles(state[game.QUEUE], known).tolist()
        chain, memory[HELD] = int(memory[HELD]) >> 1, memory[HELD] & np.uint64(1)  # `observe` uses the lowest bit
        observe(memory, state[game.QUEUE], known, hold)
        if state[game.BY_KEYS]:
            chain = chain & FORFEIT | CHAINED * int(state[game.BACK_TO_BACK]) | int(state[game.COMBO])
        found = {
            (piece, *at_rest(placement)): (held * PER_PIECE << ACTION_SHIFT) + placement
            for held, piece in ((1, hold - 1 if hold else queue[1]), (0, queue[0]))
            for placement in legal(columns, piece)
        }
        moves = [] if chain & FORFEIT else self._moves(state, queue, chain, memory[COUNTS : COUNTS + IDS])
        place, spin = next((move for move in moves if move[0] in found), (None, 0))
        if place is None:
            memory[HELD] |= np.uint64(FORFEIT << 1)
            return max(found.values(), key=lambda placement: at_rest(placement)[2], default=0)
        memory[HELD] |= np.uint64(lock(columns.copy(), place, spin, chain) << 1)
        return found[place]

    def _moves(
        self, state: NDArray[np.uint64], queue: list[int], chain: int, counts: NDArray[np.uint64]
    ) -> list[tuple[Place, int]]:
        """The places that the bot suggests, with their spins; `counts`: how often each piece has been seen."""
        pieces, randomizer, _, _, _ = game.settings_of(state)
        drawn = RANDOMIZERS.get(game.RANDOMIZERS[randomizer] if game.SETS[pieces] == "tetromino" else "", "unknown")
        start = {
            "type": "start",
            "board": np.array([None, "G"])[boards_of(game.columns_in(state), HEIGHT)[::-1]].tolist(),
            "queue": [NAMES[id] for id in queue],
            "hold": [None, *NAMES][int(state[game.HOLD])],
            "combo": chain & MOST_CLEARS,
            "back_to_back": chain & CHAINED > 0,
            "randomizer": {"type": drawn},
        }
        if drawn == "seven_bag":  # what is left of a bag has been seen least often
            start["randomizer"]["bag_state"] = [NAMES[id] for id in np.flatnonzero(counts == counts.min())]
        try:
            program = programs(self.command, drawn)
            with program.lock:
                program.ask(None, start)
                time.sleep(self.seconds)
                moves = program.ask("suggestion", {"type": "suggest"}).get("moves")
                program.ask(None, {"type": "stop"})
            if not isinstance(moves, list):
                raise ValueError(f"{moves!r:.200}; expected a list of moves")
            return [place_of(move) for move in moves]
        except BaseException as error:
            programs.cache_clear()  # what this one says next may belong to another question
            if isinstance(error, ValueError):
                raise ProtocolError(f"the bot {self.command} suggests {error}") from error
            raise
