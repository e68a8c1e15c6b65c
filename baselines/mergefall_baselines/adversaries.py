"""Chance turned against the player: what a game may draw next, and how to make it draw what is worst.

An adversary is any player turned round. After a move it looks at all that chance could do (in 2048 both tiles in every
empty cell, in Tetris every piece that can come), values the best answer to each, and picks what leaves the player
least; `2048/minimax` makes it the minimizer of the minimax document. It moves the game's random stream to where the
next draw is the one wanted. So the game itself is the plain one, whatever resets, caps and infos are about it, and the
rest of its randomness goes on from that draw.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from mergefall.game2048.board import FOUR_IN_2_32
from mergefall.game2048.settings import Settings as Settings2048
from mergefall.tetris import game
from mergefall.tetris.settings import Settings as SettingsTetris
from mergefall.words import next_bits, stream_before
from numpy.typing import NDArray

from mergefall_baselines.player import Player

U = np.uint64
STREAM = 0  # the word of a state that is the random stream, in every game
HALF = 1 << 32
_COIN = U(0xD1B54A32D192ED03)  # tells the coin from the draw that the same stream makes next


@dataclass(frozen=True)
class Outcomes:
    """What chance may do after one move.

    ``observations`` are what the player would see then, a batch. A draw's upper half below ``upper[k + 1]`` and from
    ``upper[k]`` on means outcome k, if its lower half lies in ``lower``, int64[outcomes, 2] each.
    """

    observations: Any
    upper: NDArray[np.int64]
    lower: NDArray[np.int64]


def tiles(ranks: NDArray[np.uint8]) -> Outcomes:
    """What may appear on an afterstate uint8[rows, cols] of 2048: in each empty cell a 2, then a 4."""
    cells = np.flatnonzero(ranks.ravel() == 0)
    boards = np.repeat(ranks.reshape(1, -1), 2 * cells.size, axis=0)
    boards[np.arange(2 * cells.size), np.repeat(cells, 2)] = np.tile([1, 2], cells.size)
    shares = np.repeat(_shares(np.arange(cells.size + 1)), 2, axis=0)
    four = int(FOUR_IN_2_32)
    return Outcomes(boards.reshape(-1, *ranks.shape), shares, np.tile([[four, HALF], [0, four]], (cells.size, 1)))


def pieces(board: NDArray[np.uint8], state: NDArray[np.uint64], settings: SettingsTetris) -> Outcomes:
    """What may come after a move of Tetris that leaves ``board``, from the state before it: each piece it can draw.

    Those that are previewed already come first; the drawn one is the last that is shown.
    """
    ids, weights = np.array(settings.piece_set.drawn), np.ones(len(settings.piece_set.drawn), np.int64)
    if settings.randomizer != "uniform" and (bag := int(state[game.BAG])):
        weights = bag >> ids & 1 if settings.randomizer == "bag7" else bag >> 4 * ids & 15
    ids, weights = ids[weights > 0], weights[weights > 0]
    count = len(ids)
    known = np.array([int(state[game.QUEUE]) >> 4 * i & 15 for i in range(1, 1 + settings.preview)], np.int64)
    queues = np.concatenate([np.tile(known, (count, 1)), ids[:, None]], axis=1)
    observations = {"board": np.repeat(board[None], count, axis=0), "piece": queues[:, 0]}
    if settings.preview:
        observations["next"] = queues[:, 1:]
    return Outcomes(observations, _shares(np.append(0, weights.cumsum())), np.tile([0, HALF], (count, 1)))


def _shares(steps: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where `words.below` steps from one part of 0 … steps[-1] to the next, as [parts, 2] of a draw's upper half."""
    edges = -(-steps * HALF // steps[-1])
    return np.stack([edges[:-1], edges[1:]], axis=1)


def coins(streams: NDArray[np.uint64]) -> NDArray[np.float64]:
    """A number from 0 to 1 for each game, which its random stream fixes, and which leaves the stream where it is."""
    return (next_bits.py_func(streams ^ _COIN)[1] >> U(11)) / 2.0**53


def forced(stream: np.uint64, upper: NDArray[np.int64], lower: NDArray[np.int64]) -> np.uint64:
    """A stream whose next draw has its halves within the given bounds, being as random as `stream` within them."""
    bits = int(next_bits.py_func(np.array([stream]))[1][0])
    halves = []
    for half, (low, high) in ((bits >> 32, upper.tolist()), (bits & HALF - 1, lower.tolist())):
        halves.append(low + (half * (high - low) >> 32))
    return stream_before(U(halves[0] << 32 | halves[1]))


def turned(player: Player, settings: Any, states: NDArray[np.uint64], boards: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Streams uint64[n] that make games draw next what leaves `player` least.

    `states` uint64[n, words] are those before moves that leave `boards` uint8[n, rows, cols].
    """
    if isinstance(settings, Settings2048):
        found = [tiles(board) for board in boards]
    else:
        found = [pieces(board, state, settings) for board, state in zip(boards, states, strict=True)]
    values = player.values(_joined([outcomes.observations for outcomes in found])).max(axis=1)
    first, streams = 0, states[:, STREAM].copy()
    for i, outcomes in enumerate(found):
        worst = int(values[first : first + len(outcomes.upper)].argmin())
        streams[i] = forced(streams[i], outcomes.upper[worst], outcomes.lower[worst])
        first += len(outcomes.upper)
    return streams


def _joined(batches: list[Any]) -> Any:
    if isinstance(batches[0], dict):
        return {name: np.concatenate([batch[name] for batch in batches]) for name in batches[0]}
    return np.concatenate(batches)
