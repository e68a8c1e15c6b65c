"""Temporal-difference learning of 2048's afterstates, compiled: one call plays whole games and learns from them.

A worker is one thread's part of a run: uint64[4], its random stream, then the number of its games, their total score
and their moves. All workers adjust the same weights without locks; now and then an addition is lost, which does no
harm.
"""

from functools import cache
from typing import NamedTuple

import numpy as np
from mergefall.game2048 import packed
from mergefall.kernels import kernel, prefetch, unowned
from mergefall.typing import Array, Kernel, Words
from mergefall.words import next_bits
from mergefall_baselines.game2048.tuples import Shape, tuple_kernels

U, F = np.uint64, np.float32

STREAM, GAMES, SCORE, MOVES = range(4)  # of a worker
OUTGROWN = 1 << 16  # score of a merge whose tile does not fit a packed board
NO_MOVE = U(4)  # instead of an action


class Arrays(NamedTuple):
    """The arrays that a worker learns with."""

    weights: Array  # [entries]
    coherence: Array  # [2 · entries]: each entry's sum of errors and sum of their sizes
    row_lines: Words  # line tables of packed boards
    column_lines: Words
    places: Array  # scratch, [5 · look-ups]: of the four afterstates, and of the last one


@kernel
def with_new_tile(worker, board, free):
    """The board with one more tile, drawn from the worker's stream; `free` marks the cells of the whole board."""
    worker[STREAM], bits = next_bits(worker[STREAM])
    return packed.put_tile(board, packed.empties(board) & free, bits)


@cache
def game_kernel(shape: Shape) -> Kernel:
    """A kernel: play one game from a board to its end and learn after each move; returns (score, moves)."""
    kernels, lookups, rows, cols = tuple_kernels(shape), shape.lookups, shape.rows, shape.cols
    locate, total, adjust, last = kernels.locate, kernels.total, kernels.adjust, U(4 * lookups)

    @kernel(forceinline=True)
    def choose(arrays, board):
        """The best move (NO_MOVE: none is legal), its afterstate, its score, and the afterstate's value.

        It leaves the places of all four afterstates.
        """
        weights, places = arrays.weights, arrays.places
        up, right, down, left, along, across = packed.moves(board, arrays.row_lines, arrays.column_lines)
        afters, gains = (up, right, down, left), (np.int64(along), np.int64(across))
        for action in range(4):
            if afters[action] != board:
                locate(afters[action], weights, places, U(lookups * action))
        best, best_value, gain, chosen, after = F(-np.inf), F(0), np.int64(0), NO_MOVE, U(0)
        for action in range(4):
            if afters[action] != board:
                value = total(weights, places, U(lookups * action))
                worth = value + F(gains[action & 1])
                if worth > best:
                    best, best_value, gain, chosen, after = worth, value, gains[action & 1], U(action), afters[action]
        return chosen, after, gain, best_value

    @kernel(forceinline=True)
    def learn(arrays, error, rate, coherent):
        """Move the value of the last afterstate by a part of its error.

        With temporal coherence (Beal & Smith 1999), an entry whose errors cancel out learns more slowly.
        """
        weights, coherence, places = arrays.weights, arrays.coherence, arrays.places
        if not coherent:
            adjust(weights, places, last, error * rate)
            return
        for k in range(lookups):
            place = U(places[last + U(k)])
            net, size = coherence[U(2) * place], coherence[U(2) * place + U(1)]
            share = abs(net) / size if size > 0 else F(1)
            weights[place] += rate * share * error
            coherence[U(2) * place] = net + error
            coherence[U(2) * place + U(1)] = size + abs(error)

    @kernel
    def play(worker, arrays, board, rate, coherent):
        places, free = arrays.places, packed.area(rows, cols)
        score, length, last_value = 0, 0, F(0)
        while True:
            action, after, gain, value = choose(arrays, board)
            if action == NO_MOVE or gain >= OUTGROWN:
                break
            if length > 0:
                learn(arrays, value + F(gain) - last_value, rate, coherent)
            first = U(lookups) * action
            for k in range(lookups):
                places[last + U(k)] = places[first + U(k)]
            if coherent:
                for k in range(lookups):
                    prefetch(arrays.coherence, U(2) * U(places[last + U(k)]))
            last_value = value
            score += gain
            length += 1
            board = with_new_tile(worker, after, free)
        if action == NO_MOVE and length > 0:  # a game that outgrows packed boards has no end to learn from
            learn(arrays, -last_value, rate, coherent)
        return score, length

    return play


@cache
def learning_kernel(shape: Shape) -> Kernel:
    """The kernel that plays and learns, for networks of one shape.

    `play_on(worker, arrays, rate, coherent, limit)`: a worker plays whole games until it has made `limit` moves or
    more. It makes fewer only if the network's values are NaN. `rate` is the step size of one entry, α / look-ups;
    without `coherent`, `arrays.coherence` may be empty.
    """
    play, rows, cols = game_kernel(shape), shape.rows, shape.cols

    @kernel
    def play_on(worker, arrays, rate, coherent, limit):
        arrays, moves = unowned(arrays), 0
        while moves < limit:
            if rows == 4 and cols == 4:
                worker[STREAM], board = packed.two_tiles(worker[STREAM])
            else:
                free = packed.area(rows, cols)
                board = with_new_tile(worker, with_new_tile(worker, U(0), free), free)
            score, length = play(worker, arrays, board, rate, coherent)
            moves += length
            if length == 0:  # a new board has a legal move, so its value is NaN
                break
            worker[GAMES] += U(1)
            worker[SCORE] += U(score)
        worker[MOVES] += U(moves)

    return play_on
