"""Programs that speak the Tetris Bot Protocol, as players.

A *move* of the protocol names a piece, its orientation and the place of its centre, and the kind of spin. Here it is a
placement of ``placements="reachable"`` with ``hold=True``; a move of another piece than the current one holds.

Source: https://github.com/tetris-bot-protocol/tbp-spec (MVP, and the extension randomizer).
"""

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
from mergefall.tetris.field import boards_of, full_rows, is_free, put
from mergefall.tetris.keys.game import clear_full
from mergefall.tetris.pieces import TETROMINOES, WIDTHS, rotations
from mergefall.tetris.placements import ABOVE, ACTION_SHIFT, ROTATIONS, action_of, at_rest, list_reachable
from mergefall.tetris.srs import SHAPES
from mergefall.typing import Array, Dict

from mergefall_baselines.kernel_player import KernelPlayer
from mergefall_baselines.tetris.player import COUNTS, FORM, HELD, IDS, observe

NAMES = tuple(TETROMINOES)
ORIENTATIONS = ("north", "east", "south", "west")
SPINS = ("none", "mini", "full")
RANDOMIZERS = ("uniform", "seven_bag", "unknown")  # in the order of `game.RANDOMIZERS`
COLS, ROWS, HEIGHT = 10, 20, 40  # of the protocol's games; the last is that of its boards
RULES = {"cols": COLS, "rows": ROWS, "pieces": "tetromino", "placements": "reachable"}
PER_PIECE = ROTATIONS * COLS * (ROWS + ABOVE)  # actions
PATIENCE, FAREWELL = 60.0, 1.0  # seconds that a program has for an answer, and to quit
LONGEST = 1 << 20  # characters of a line

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


def location_of(piece: int, rotation: int, column: int, y: int) -> Dict:
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
        expected = "moves, each with a location of type, orientation, x and y, and a spin"
        raise ValueError(f"{move!r:.200}; expected {expected}") from None


def moves_in(columns: Array, queue: list[int], hold: list[int]) -> dict[Place, int]:
    """Where the current piece and the one that a hold brings can come to rest: placements, packed, by their places.

    `hold`: the held piece, if there is one. Filled cells above the field are in the way.
    """
    pieces, moves, found = [*queue[:1], *(hold or queue[1:2])], {}, np.empty(64 * ROTATIONS * COLS, np.int64)
    for held, piece in reversed(list(enumerate(pieces))):  # of equal pieces, the current one
        if is_free(columns, piece, 0, (COLS - WIDTHS[piece, 0]) // 2, ROWS):  # where it appears
            for placement in found[: list_reachable(columns, piece, ROWS, found)].tolist():
                if (rest := at_rest(placement))[2] < ROWS + ABOVE:
                    moves[piece, *rest] = placement + (held * PER_PIECE << ACTION_SHIFT)
    return moves


def lock(columns: Array, place: Place, spin: int, combo: int, chained: int) -> tuple[int, int]:
    """Lock a piece and clear full rows, in place; returns the combo and whether a chain is on after it."""
    put(columns, *place)
    _, _, combo, chained, _ = clear_full(columns, full_rows(columns), spin, combo, int(chained))
    return combo, chained


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

    Raises OSError if it does not start, and ProtocolError, as `ask` does, if it answers otherwise than by the protocol.
    """

    def __init__(self, command: tuple[str, ...], randomizer: str) -> None:
        self.command, self.lock = command, Lock()
        self._process: Any = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, errors="replace", start_new_session=True
        )
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
            while kind and isinstance(said, dict) and said.get("type") not in (kind, "error"):
                said = self._process.stdout.readline(LONGEST)
                with suppress(ValueError, RecursionError):
                    said = json.loads(said)
            if kind and (not isinstance(said, dict) or said["type"] != kind):
                self._end()
                raise ProtocolError(
                    f"the bot {self.command} said {f'{said!r:.200}' if said else 'nothing'}, exit status "
                    f"{self._process.returncode}; expected {kind!r} within {PATIENCE:g} seconds"
                )
        except BaseException:  # an interrupt, too: the answer would come at another time
            programs.cache_clear()
            raise
        finally:
            timer.cancel()
        return said


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
        command: list, the program and its arguments.
        seconds: float, how long the bot may think before each suggestion. Some bots have no move after 0 seconds, and
            so forfeit. Default: 0.1.

    `values` are 0 for the bot's action, −inf for the others.

    Raises ProtocolError if the program fails, is silent for a minute, or does not speak the protocol.

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
        listed = isinstance(command, list | tuple) and len(command) > 0
        if not (listed and all(isinstance(word, str | int | float) for word in command)):
            raise ValueError(f"command is {command!r}; expected a list, a program and its arguments")
        self.command, self.seconds = tuple(map(str, command)), number("seconds", seconds, 0)
        super().__init__(**RULES, hold=True)

    def close(self) -> None:
        """End the programs of all bots; where one is asked again, it starts anew."""
        programs.cache_clear()

    def _decide(self, rules: Any, states: Array, memory: Array, values: Array, exact: bool) -> Array:
        actions = [action_of(self.choose(*one)) for one in zip(states, memory, strict=True)]
        values[:] = -np.inf
        values[range(len(actions)), actions] = 0
        return np.array(actions, np.int64)

    def choose(self, state: Array, memory: Array) -> int:
        """The placement, packed, in a state of the game by placements or by keys; updates the player's memory."""
        columns, (_, randomizer, preview, _, _) = game.columns_in(state), game.settings_of(state)
        queue, hold = game.nibbles(state[game.QUEUE], 1 + preview).tolist(), int(state[game.HOLD])
        # Above the bit that `observe` keeps in HELD: whether the bot has forfeited, whether a chain is on, the combo.
        kept, memory[HELD] = int(memory[HELD]), memory[HELD] & np.uint64(1)
        combo, chained, forfeited = kept >> 3, kept >> 2 & 1, kept >> 1 & 1
        if state[game.BY_KEYS]:
            combo, chained = int(state[game.COMBO]), int(state[game.BACK_TO_BACK])
        observe(memory, state[game.QUEUE], 1 + preview, hold)
        counts, drawn = memory[COUNTS : COUNTS + IDS], RANDOMIZERS[randomizer]
        left = [NAMES[id] for id in np.flatnonzero(counts == counts.min())]  # of a bag, what has been seen least often
        start = {
            "type": "start",
            "board": np.array([None, "G"])[boards_of(columns, HEIGHT)[::-1]].tolist(),
            "queue": [NAMES[id] for id in queue],
            "hold": [None, *NAMES][hold],
            "combo": combo,
            "back_to_back": bool(chained),
            "randomizer": {"type": drawn} | ({"bag_state": left} if drawn == "seven_bag" else {}),
        }
        moves = moves_in(columns, queue, [hold - 1] if hold else [])
        for place, spin in [] if forfeited else self._suggested(start):
            if place in moves:
                combo, chained = lock(columns.copy(), place, spin, combo, chained)
                memory[HELD] |= np.uint64(combo << 3 | chained << 2)
                return moves[place]
        memory[HELD] |= np.uint64(2)
        return max(moves.values(), key=lambda placement: at_rest(placement)[2], default=0)

    def _suggested(self, start: Dict) -> list[tuple[Place, int]]:
        """The places that the bot suggests, with their spins."""
        program = programs(self.command, start["randomizer"]["type"])
        with program.lock:
            program.ask(None, start)
            time.sleep(self.seconds)
            moves = program.ask("suggestion", {"type": "suggest"}).get("moves")
            program.ask(None, {"type": "stop"})
        try:
            return [place_of(move) for move in (moves if isinstance(moves, list) else [moves])]
        except ValueError as error:
            raise ProtocolError(f"the bot {self.command} suggests {error}") from error
