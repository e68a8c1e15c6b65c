"""The Tetris Bot Protocol, both ways: our players as bots for its frontends, and its bots as players here.

    python -m mergefall_baselines.tetris.protocol tetris/beam '{"width": 100}'

is a bot, which reads and writes a JSON object on each line. `Bot` is a player that asks a bot's program.

A *move* names a piece, its orientation and the place of its centre, and the kind of spin. Here it is a placement of
``placements="reachable"`` with ``hold=True``; a move of another piece than the current one holds.

Source: https://github.com/tetris-bot-protocol/tbp-spec (MVP, and the extensions randomizer and move info).
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TextIO

import mergefall
import numpy as np
from mergefall.checks import number
from mergefall.tetris.field import columns_of
from mergefall.tetris.keys.routes import best_spin
from mergefall.tetris.pieces import TETROMINOES
from mergefall.tetris.placements import ABOVE
from mergefall.tetris.rules import Rules
from mergefall.typing import Observation

from mergefall_baselines.player import OfPredictor, Player
from mergefall_baselines.registry import make
from mergefall_baselines.tetris.player import FORM

NAMES = tuple(TETROMINOES)
ORIENTATIONS = ("north", "east", "south", "west")
SPINS = ("none", "mini", "full")
CENTRED = {  # cells of the orientation north around the centre, x to the right and y upwards
    "I": ((-1, 0), (0, 0), (1, 0), (2, 0)),
    "O": ((0, 0), (1, 0), (0, 1), (1, 1)),
    "T": ((-1, 0), (0, 0), (1, 0), (0, 1)),
    "S": ((-1, 0), (0, 0), (0, 1), (1, 1)),
    "Z": ((-1, 1), (0, 1), (0, 0), (1, 0)),
    "J": ((-1, 0), (0, 0), (1, 0), (-1, 1)),
    "L": ((-1, 0), (0, 0), (1, 0), (1, 1)),
}
COLS, ROWS, HEIGHT = 10, 20, 40  # of the protocol's games; the last is that of its boards

Cells = frozenset[tuple[int, int]]


class ProtocolError(RuntimeError):
    """A bot that does not answer as the protocol says."""


def cells_of(location: Mapping[str, Any]) -> Cells:
    """The (x, y) cells of a move's location, y upwards from the floor.

    >>> sorted(cells_of({"type": "T", "orientation": "south", "x": 4, "y": 1}))
    [(3, 1), (4, 0), (4, 1), (5, 1)]
    """
    cells = CENTRED[location["type"]]
    for _ in range(ORIENTATIONS.index(location["orientation"])):
        cells = tuple((y, -x) for x, y in cells)
    return frozenset((location["x"] + x, location["y"] + y) for x, y in cells)


def place_of(action: int, pieces: Sequence[str]) -> tuple[str, int, int, int]:
    """(piece, rotation, leftmost column, row of the lowest cell) that an action leads to.

    `pieces`: the current piece, and the one that an action places that holds.
    """
    held, place = divmod(action, 4 * COLS * (ROWS + ABOVE))
    turn, y = divmod(place, ROWS + ABOVE)
    return pieces[held], *divmod(turn, COLS), y


def location_of(piece: str, rotation: int, column: int, y: int) -> dict[str, Any]:
    """The location of a place.

    >>> location_of("T", 2, 3, 0)
    {'type': 'T', 'orientation': 'south', 'x': 4, 'y': 1}
    """
    location = {"type": piece, "orientation": ORIENTATIONS[rotation], "x": 0, "y": 0}
    cells = cells_of(location)
    return location | {"x": column - min(x for x, _ in cells), "y": y - min(row for _, row in cells)}


class Position:
    """A game as the protocol's messages describe it."""

    def __init__(self, start: Mapping[str, Any]) -> None:
        self.board = np.array([[cell is not None for cell in row] for row in start["board"]], np.uint8)  # row 0 lowest
        self.queue, self.hold = list(start["queue"]), start["hold"]

    def play(self, move: Mapping[str, Any]) -> None:
        """Lock a piece, clear full rows, and move the queue on."""
        piece = move["location"]["type"]
        for x, y in cells_of(move["location"]):
            self.board[y, x] = 1
        kept = self.board[~self.board.all(axis=1)]
        self.board = np.concatenate([kept, np.zeros_like(self.board[len(kept) :])])
        current = self.queue.pop(0)
        if piece != current:
            if self.hold is None:
                self.queue.pop(0)
            self.hold = current

    def observation(self, preview: int) -> dict[str, Any]:
        """What our players see: the field, and the pieces."""
        queue = [NAMES.index(piece) for piece in self.queue]
        hold = len(NAMES) if self.hold is None else NAMES.index(self.hold)
        shown = {"board": self.board[ROWS - 1 :: -1].copy(), "piece": queue[0], "hold": hold}
        return shown | {"queue": np.array(queue[1 : 1 + preview], np.int64)}


def serve(player: str, options: Mapping[str, Any], lines: Iterable[str], output: TextIO) -> None:
    """Be a bot: answer the messages of a frontend, one on each line.

    `player` is a player of Tetris, which chooses among ``placements="reachable"`` with ``hold=True``.
    """

    def say(kind: str, **more: Any) -> None:
        print(json.dumps({"type": kind, **more}), file=output, flush=True)

    chooser = make(player, placements="reachable", hold=True, **options)
    say("info", name=player, version=mergefall.__version__, author="mergefall", features=[])
    position: Any = None
    for line in lines:
        match json.loads(line):
            case {"type": "rules"}:
                say("ready")
            case {"type": "start"} as message:
                position = Position(message)
            case {"type": "new_piece", "piece": piece}:
                position.queue.append(piece)
            case {"type": "play", "move": move}:
                position.play(move)
            case {"type": "suggest"}:
                say("suggestion", moves=suggestions(chooser, position))
            case {"type": "quit"}:
                return


def suggestions(player: Player, position: Position) -> list[dict[str, Any]]:
    """The move that a player chooses, none if it is not the protocol's."""
    preview = min(len(position.queue) - 1, 8)
    if preview < 1:
        raise ValueError(f"the queue is {position.queue}; expected a current piece and at least one more")
    action = int(player.act(position.observation(preview)))
    piece, *place = place_of(action, [position.queue[0], position.hold or position.queue[1]])
    location = location_of(piece, *place)
    if any(position.board[y, x] for x, y in cells_of(location)):  # players do not see cells above the field
        return []
    spin = best_spin(columns_of(position.board[::-1]), NAMES.index(piece), *place, ROWS)
    return [{"location": location, "spin": SPINS[spin]}]


class Bot(OfPredictor):
    """A player of Tetris that asks a program which speaks the Tetris Bot Protocol.

    Each decision is a `start` of the bot at the present position, a time to think, and a `suggest`. It plays
    ``placements="reachable"`` with ``hold=True`` on 10×20; by keys as ``make("tetris/keys", of=Bot(command))``.

    Args:
        command: the program and its arguments.
        seconds: float, how long the bot may think before each suggestion. Default: 0.

    `predict` and `act` raise ProtocolError if the bot fails, answers otherwise than by the protocol, or suggests no
    legal move.

    Example:
        >>> import sys
        >>> bot = Bot([sys.executable, "-m", "mergefall_baselines.tetris.protocol", "tetris/bcts"])
        >>> observation = {"board": np.zeros((20, 10), np.uint8), "piece": 1, "hold": 7, "queue": np.array([0])}
        >>> bot.act(observation) == make("tetris/bcts", placements="reachable", hold=True).act(observation)
        np.True_
        >>> bot.close()
    """

    def __init__(self, command: Sequence[str], seconds: float = 0.0) -> None:
        super().__init__(self._asked)
        self.name = "tetris/bot"
        self.command, self.seconds = list(command), number("seconds", seconds, 0)
        self._process: Any = None

    def _say(self, kind: str, **more: Any) -> None:
        if self._process is None:
            self._process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            self._hear("info")
            self._say("rules", randomizer="seven_bag")
            self._hear("ready")
        self._process.stdin.write(json.dumps({"type": kind, **more}) + "\n")
        self._process.stdin.flush()

    def _hear(self, kind: str) -> dict[str, Any]:
        """The bot's next message of a kind; messages of kinds that the protocol does not know are passed over."""
        messages = map(json.loads, self._process.stdout)
        message = next((said for said in messages if said.get("type") in (kind, "error")), {})
        if message.get("type") == kind:
            return message
        process = self._process
        self.close()
        raise ProtocolError(
            f"the bot {self.command} said {message or 'nothing'}, exit status {process.returncode}; expected {kind!r}"
        )

    def _asked(self, observation: Observation) -> int:
        parts, shown, _ = FORM.read(self.name, observation)
        if shown != {"cols": COLS, "rows": ROWS, "preview": shown["preview"], "hold": True}:
            raise ValueError(f"{self.name} got an observation of {shown}; expected 10 columns, 20 rows and hold")
        board = np.array([None, "G"])[np.pad(observation["board"], ((HEIGHT - ROWS, 0), (0, 0)))[::-1]].tolist()
        pieces = [NAMES[int(observation["piece"])], *(NAMES[id] for id in observation["queue"])]
        hold = [*NAMES, None][int(observation["hold"])]
        try:
            self._say("start", board=board, queue=pieces, hold=hold, combo=0, back_to_back=False)
            time.sleep(self.seconds)
            self._say("suggest")
            moves = self._hear("suggestion")["moves"]
            self._say("stop")
        except (OSError, ValueError) as error:  # no such program, a broken pipe, no JSON
            self.close()
            raise ProtocolError(f"the bot {self.command} failed: {error}") from error
        rules = Rules(placements="reachable", hold=True, preview=len(pieces) - 1)
        legal = rules.observed(FORM.states(self.name, parts, rules))[0][0]
        places = {a: place_of(a, [pieces[0], hold or pieces[1]]) for a in np.flatnonzero(legal)[::-1].tolist()}
        actions = {cells_of(location_of(*place)): action for action, place in places.items()}
        for move in moves:
            if (cells := cells_of(move["location"])) in actions:
                return actions[cells]
        raise ProtocolError(f"the bot {self.command} suggests {moves}; expected a legal move")

    def close(self) -> None:
        """Send the bot away."""
        if self._process is not None:
            process, self._process = self._process, None
            process.communicate('{"type": "quit"}\n')  # passes over a broken pipe


if __name__ == "__main__":
    serve(sys.argv[1], json.loads(sys.argv[2]) if len(sys.argv) > 2 else {}, sys.stdin, sys.stdout)
