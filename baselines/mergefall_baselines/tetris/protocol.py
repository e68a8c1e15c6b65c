"""Our players as bots of the Tetris Bot Protocol.

    python -m mergefall_baselines.tetris.protocol tetris/beam '{"width": 100}'

is a bot, which reads and writes a JSON object on each line. `mergefall_baselines.tetris.bot` has bots as players.

Source: https://github.com/tetris-bot-protocol/tbp-spec (MVP, and the extension randomizer).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping
from typing import Any, TextIO

import mergefall
import numpy as np
from mergefall.checks import boolean, integer, made_of
from mergefall.games import take
from mergefall.tetris import game
from mergefall.tetris.field import columns_of, field_mask, full_rows, is_free
from mergefall.tetris.keys.game import NO_SPIN, T
from mergefall.tetris.keys.routes import best_spin
from mergefall.tetris.pieces import HEIGHTS, WIDTHS
from mergefall.tetris.placements import action_of, at_rest
from mergefall.tetris.rules import Rules
from mergefall.typing import Array

from mergefall_baselines.kernel_player import KernelPlayer
from mergefall_baselines.player import Player
from mergefall_baselines.registry import make, of_game
from mergefall_baselines.tetris.bot import (
    CHAINED,
    COLS,
    HEIGHT,
    MOST_CLEARS,
    NAMES,
    PER_PIECE,
    RANDOMIZERS,
    ROWS,
    RULES,
    SPINS,
    Place,
    legal,
    location_of,
    lock,
    place_of,
)
from mergefall_baselines.tetris.memory import COUNTS, HELD, IDS


def piece_of(name: Any) -> int:
    """The id of a piece; raises ValueError for an unknown name."""
    if name not in NAMES:
        raise ValueError(f"piece is {name!r}; expected one of {', '.join(NAMES)}")
    return NAMES.index(name)


class Position:
    """A game as a frontend's messages describe it. Raises ValueError for a message that describes none."""

    memory: Any = None  # of the player that suggests moves

    def __init__(self, start: Mapping[str, Any]) -> None:
        board, hold = np.array(start.get("board"), object), start.get("hold")
        if board.shape != (HEIGHT, COLS):
            raise ValueError(f"board has shape {board.shape}; expected {HEIGHT} rows of {COLS} cells")
        self.columns = columns_of(board[::-1].astype(np.bool_).astype(np.uint8))
        if full_rows(self.columns):
            raise ValueError("a row of the board is full; expected none")
        self.queue = [piece_of(piece) for piece in made_of("pieces of the queue", start.get("queue"), list, "a list")]
        self.hold = [] if hold is None else [piece_of(hold)]
        self.chain = integer("combo", start.get("combo", 0), 0, MOST_CLEARS)
        self.chain |= CHAINED * boolean("back_to_back", start.get("back_to_back", False))
        self.bag: set[int] | None = None  # at the end of the queue; None if it is not known
        match start.get("randomizer"):
            case {"type": "seven_bag", "bag_state": list(bag)}:
                self.bag = {piece_of(piece) for piece in bag}

    def add(self, piece: int) -> None:
        """Let a piece come into view."""
        self.queue.append(piece)
        if self.bag is not None:
            self.bag = (self.bag or set(range(IDS))) - {piece}

    def play(self, move: Any) -> None:
        """Lock a piece, clear full rows, and move the queue on."""
        place, spin = place_of(move)
        piece, rotation, column, y = place
        if piece not in (pieces := self.queue[:1] + (self.hold or self.queue[1:2])):
            raise ValueError(f"{NAMES[piece]} is played; expected one of {[NAMES[one] for one in pieces]}")
        integer("leftmost column of a move", column, 0, COLS - WIDTHS[piece, rotation])
        integer("lowest row of a move", y, 0, HEIGHT - HEIGHTS[piece, rotation])
        if not is_free(self.columns, piece, rotation, column, y):
            raise ValueError(f"{move['location']} lies on filled cells; expected empty ones")
        self.chain = lock(self.columns, place, spin, self.chain)
        current = self.queue.pop(0)
        if piece != current:
            if not self.hold:
                self.queue.pop(0)
            self.hold = [current]


def suggestions(player: Player, position: Position) -> list[dict[str, Any]]:
    """All legal moves, the best first; none if the game is lost."""
    queue, hold = position.queue, position.hold
    if not queue:
        raise ValueError("the queue is empty; expected a current piece")
    # Where the queue has one piece, a hold may bring one that nobody knows: the pieces are looked at one by one.
    asked = [(queue, hold)] if len(queue) > 1 else [([piece], []) for piece in queue + hold]
    moves: list[tuple[Any, bool, Place]] = []
    for pieces, held in asked:
        values, chosen = _decided(player, position, pieces[: 1 + game.MOST_PREVIEW], held)
        for first, piece in zip(range(0, len(values), PER_PIECE), [pieces[0], *(held or pieces[1:])], strict=False):
            for placement in legal(position.columns, piece):
                action = first + action_of(placement)
                moves.append((values[action], action == chosen, (piece, *at_rest(placement))))
    return [
        {
            "location": location_of(*place),
            "spin": SPINS[best_spin(position.columns, *place, ROWS) if place[0] == T else NO_SPIN],
        }
        for *_, place in sorted(moves, key=lambda move: move[:2], reverse=True)
    ]


def _decided(player: Player, position: Position, queue: list[int], hold: list[int]) -> tuple[Array, int]:
    """(the values of actions float64[n], the chosen action) of a player that knows these pieces."""
    rules = Rules(placements="reachable", hold=len(queue) > 1, preview=len(queue) - 1)
    state, values = rules.new_states(1), np.zeros((1, rules.n_actions))
    state[0, game.QUEUE], state[0, game.HOLD] = game.word_of(queue), hold[0] + 1 if hold else 0
    state[0, game.COLUMNS :] = position.columns & field_mask(ROWS)
    state[0, game.BACK_TO_BACK], state[0, game.COMBO] = divmod(position.chain, CHAINED)
    if not isinstance(player, KernelPlayer):
        return values[0], int(player.act(take(rules.observations(state), 0)))
    memory = position.memory = player._memory(position.memory, 1, None)
    if position.bag is not None:  # what is left in it has been seen least often, once the last piece is counted
        memory[0, COUNTS : COUNTS + IDS] = [1 + (id not in position.bag) - (id == queue[-1]) for id in range(IDS)]
        memory[0, HELD] = len(hold)
    actions = player._decide(rules, state, memory, values, False)
    player._settle(rules, state, values, actions)
    return values[0], int(actions[0])


def serve(player: Player, lines: Iterable[str], output: TextIO) -> None:
    """Be a bot: answer the messages of a frontend, one on each line; `error` answers those that make no sense.

    `player` is a player of Tetris that can choose among ``placements="reachable"``.
    """

    def say(kind: str, **more: Any) -> None:
        print(json.dumps({"type": kind, **more}), file=output, flush=True)

    say("info", name=player.name, version=mergefall.__version__, author="mergefall", features=["randomizer"])
    under, position, kind = player, None, None
    for line in filter(str.strip, lines):
        try:
            message = json.loads(line)
            kind = message.get("type") if isinstance(message, dict) else None
            if kind == "quit":
                return
            if kind == "rules":
                drawn = next((ours for ours, one in RANDOMIZERS.items() if one == message.get("randomizer")), "uniform")
                under = player.with_rules(RULES | {"pieces": "tetromino", "randomizer": drawn})
                say("ready")
            elif kind in ("start", "stop"):
                position = Position(message) if kind == "start" else None
            elif kind in ("play", "new_piece", "suggest"):
                if position is None:
                    raise ValueError(f"{kind} comes before start; expected a position")
                if kind == "play":
                    position.play(message.get("move"))
                elif kind == "new_piece":
                    position.add(piece_of(message.get("piece")))
                else:
                    say("suggestion", moves=suggestions(under, position))
            elif not isinstance(kind, str):  # other kinds are of extensions
                raise ValueError(f"{line!r:.200} is no message; expected an object with a type")
        except (ValueError, RecursionError) as error:
            reason = "unsupported_rules" if kind == "rules" else "invalid_message"
            say("error", reason=reason, message=str(error))


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m mergefall_baselines.tetris.protocol",
        description="A bot of the Tetris Bot Protocol: reads messages from standard input, answers on standard output.",
    )
    parser.add_argument("player", help="a player of Tetris by placements, such as tetris/beam")
    parser.add_argument("options", nargs="?", type=json.loads, default={}, help="its options, as a JSON object")
    given = parser.parse_args()
    try:
        player = of_game(make(given.player, **made_of("options", given.options, dict, "a JSON object")), Rules)
    except ValueError as error:
        parser.error(str(error))
    serve(player, sys.stdin, sys.stdout)


if __name__ == "__main__":
    main()
