"""Our players as bots of the Tetris Bot Protocol.

    python -m mergefall_baselines.tetris.protocol tetris/beam '{"width": 100}'

is a bot, which reads and writes a JSON object on each line. `mergefall_baselines.tetris.bot` has bots as players.

Source: https://github.com/tetris-bot-protocol/tbp-spec (MVP, and the extension randomizer).
"""

import argparse
import json
import sys
from collections.abc import Iterable
from typing import Any, TextIO

import mergefall
import numpy as np
from mergefall.checks import boolean, integer, made_of
from mergefall.tetris import game
from mergefall.tetris.field import columns_of, field_mask, full_rows
from mergefall.tetris.keys.game import NO_SPIN, T
from mergefall.tetris.keys.routes import best_spin
from mergefall.tetris.placements import action_of
from mergefall.tetris.rules import Rules
from mergefall.typing import Dict, Options

from mergefall_baselines.kernel_player import KernelPlayer
from mergefall_baselines.player import Player
from mergefall_baselines.registry import make, of_game
from mergefall_baselines.tetris.bot import (
    COLS,
    HEIGHT,
    NAMES,
    PER_PIECE,
    ROWS,
    RULES,
    SPINS,
    location_of,
    lock,
    moves_in,
    place_of,
)
from mergefall_baselines.tetris.player import COUNTS, HELD, IDS


def piece_of(name: Any) -> int:
    """The id of a piece; raises ValueError for an unknown name."""
    if name not in NAMES:
        raise ValueError(f"piece is {name!r}; expected one of {', '.join(NAMES)}")
    return NAMES.index(name)


class Position:
    """A game as a frontend's messages describe it. Raises ValueError for a message that describes none."""

    def __init__(self, start: Options) -> None:
        board, hold = np.array(start.get("board"), object), start.get("hold")
        if board.shape != (HEIGHT, COLS):
            raise ValueError(f"board has shape {board.shape}; expected {HEIGHT} rows of {COLS} cells")
        self.columns = columns_of(board[::-1].astype(np.bool_).astype(np.uint8))
        if full_rows(self.columns):
            raise ValueError("a row of the board is full; expected none")
        self.queue = [piece_of(piece) for piece in made_of("pieces of the queue", start.get("queue"), list, "a list")]
        self.hold = [] if hold is None else [piece_of(hold)]
        self.combo = integer("combo", start.get("combo", 0), 0, 10**6)
        self.chained = boolean("back_to_back", start.get("back_to_back", False))
        self.counts = np.bincount(self.queue + self.hold, minlength=IDS)  # how often each piece has been seen
        match start.get("randomizer"):
            case {"type": "seven_bag", "bag_state": list(bag)}:  # what is left in the bag has been seen least often
                self.counts = 2 - np.isin(range(IDS), [piece_of(piece) for piece in bag])

    def add(self, piece: int) -> None:
        """Let a piece come into view."""
        self.queue.append(piece)
        self.counts[piece] += 1

    def play(self, move: Any) -> None:
        """Lock a piece, clear full rows, and move the queue on."""
        place, spin = place_of(move)
        if place not in moves_in(self.columns, self.queue, self.hold):
            raise ValueError(f"{move} is not legal here; expected a placement of the current or the other piece")
        self.combo, self.chained = lock(self.columns, place, spin, self.combo, self.chained)
        current = self.queue.pop(0)
        if place[0] != current:
            if not self.hold:
                self.queue.pop(0)
            self.hold = [current]


def suggestions(player: Player, position: Position) -> list[Dict]:
    """All legal moves, the player's own first, then by value; none if the game is lost."""
    queue, hold, columns = position.queue[: 1 + game.MOST_PREVIEW], position.hold, position.columns
    if not queue:
        raise ValueError("the queue is empty; expected start, with a current piece, before suggest")
    # After a queue of one, a hold brings a piece that nobody knows, or the held one, which is then valued last.
    known = {**getattr(player, "rules", {}), **RULES, "hold": len(queue) > 1, "preview": len(queue) - 1}
    rules = Rules(**known)
    state, values = rules.new_states(1), np.full((1, 2 * PER_PIECE), -np.inf)
    state[0, game.QUEUE], state[0, game.HOLD] = game.word_of(queue), hold[0] + 1 if hold else 0
    state[0, game.COMBO], state[0, game.BACK_TO_BACK] = position.combo, position.chained
    state[0, game.COLUMNS :] = columns & field_mask(ROWS)
    if isinstance(player, KernelPlayer):
        memory = player._fresh(int(position.counts.sum()))[None]
        memory[0, COUNTS : COUNTS + IDS] = position.counts - (np.arange(IDS) == queue[-1])  # which `observe` counts
        memory[0, HELD] = len(hold)
        actions = player._decide(rules, state, memory, values[:, : rules.n_actions], False)
        player._settle(rules, state, values[:, : rules.n_actions])
    else:
        actions = player.act(rules.observations(state))
    values[0, actions[0]] = np.inf
    moves = moves_in(columns, position.queue, hold)
    places = sorted(moves, key=lambda place: -values[0, action_of(moves[place])])
    spins = [best_spin(columns, *place, ROWS) if place[0] == T else NO_SPIN for place in places]
    return [{"location": location_of(*one), "spin": SPINS[spin]} for one, spin in zip(places, spins, strict=True)]


def serve(player: Player, lines: Iterable[str], output: TextIO) -> None:
    """Be a bot: answer the messages of a frontend, one on each line; `error` answers those that make no sense.

    `player` is a player of Tetris that can choose among ``placements="reachable"``.
    """

    def say(kind: str, **more: Any) -> None:
        print(json.dumps({"type": kind, **more}), file=output, flush=True)

    say("info", name=player.name, version=mergefall.__version__, author="mergefall", features=["randomizer"])
    nowhere = {"board": [[None] * COLS] * HEIGHT, "queue": []}
    under, position = player, Position(nowhere)
    for line in filter(str.strip, lines):
        reason = "invalid_message"
        try:
            match json.loads(line):
                case {"type": "quit"}:
                    return
                case {"type": "rules", **others}:
                    reason = "unsupported_rules"
                    drawn = "bag7" if others.get("randomizer") == "seven_bag" else "uniform"
                    under = player.with_rules(RULES | {"randomizer": drawn})
                    say("ready")
                case {"type": "start"} as message:
                    position = Position(message)
                case {"type": "stop"}:
                    position = Position(nowhere)
                case {"type": "play"} as message:
                    position.play(message.get("move"))
                case {"type": "new_piece"} as message:
                    position.add(piece_of(message.get("piece")))
                case {"type": "suggest"}:
                    say("suggestion", moves=suggestions(under, position))
                case {"type": str()}:  # of an extension
                    pass
                case _:
                    raise ValueError(f"{line!r:.200} is no message; expected an object with a type")
        except (ValueError, RecursionError) as error:
            say("error", reason=reason, message=str(error))


def main() -> None:
    """Be a bot on standard input and output."""
    parser = argparse.ArgumentParser("python -m mergefall_baselines.tetris.protocol", description=main.__doc__)
    parser.add_argument("player", help="a player of Tetris by placements, such as tetris/beam")
    parser.add_argument("options", nargs="?", type=json.loads, default={}, help="its options, as a JSON object")
    given = parser.parse_args()
    try:
        player = make(given.player, **made_of("options", given.options, dict, "a JSON object"))
        serve(of_game(player, Rules), sys.stdin, sys.stdout)
    except ValueError as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
