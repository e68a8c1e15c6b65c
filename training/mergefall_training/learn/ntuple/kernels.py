"""Temporal-difference learning of 2048's afterstates, compiled: one call plays whole games and learns from them.

A *worker* is one thread's part of a run. Its record `WORKER` holds everything that its next game depends on, apart from
the weights, and the totals of its games. All workers adjust the same weights without locks; now and then an addition is
lost, which does no harm.

The kernels call each other from `learning_kernel` down: `play` plays a game, `choose` chooses a move, `learn` adjusts
the entries of one afterstate, `learn_backwards` those of a whole game.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from mergefall.game2048 import packed
from mergefall.kernels import borrow, kernel, prefetch
from mergefall.typing import Kernel
from mergefall.words import below, next_bits
from mergefall_baselines.game2048.tuples import Shape, tuple_kernels
from numpy.typing import NDArray

U, F = np.uint64, np.float32

PATH = 1 << 17  # afterstates remembered of a game; a game that reaches 65536 takes half as many
SHORTEST = 10  # moves; no game restarts in the middle of a shorter one
OUTGROWN = 1 << 16  # score of a merge whose tile does not fit a packed board
NO_MOVE = U(4)  # instead of an action

WORKER = np.dtype(
    [
        ("stream", np.uint64),  # of random bits
        ("start", np.uint64),  # the afterstate that the next game starts from; 0: a new game
        ("games", np.uint64),  # new games so far
        ("score", np.uint64),  # of new games
        ("moves", np.uint64),  # of all games
    ]
)

# The arguments of a worker's call. Arrays are addresses; the caller keeps the arrays alive.
TASK = np.dtype(
    [
        ("worker", np.uint64),  # WORKER
        ("weights", np.uint64),  # float32[entries]
        ("entries", np.int64),
        ("coherence", np.uint64),  # float32[2 · entries]: each entry's sum of errors and sum of their sizes
        ("row_lines", np.uint64),  # line tables of packed boards
        ("column_lines", np.uint64),
        ("places", np.uint64),  # scratch, uint32[5 · look-ups]: of the four afterstates, and of the last one
        ("path", np.uint64),  # scratch, uint64[PATH]: a game's afterstates
        ("gains", np.uint64),  # scratch, float32[PATH]: the scores of the moves to them
        ("rate", np.float32),  # step size of one entry: α / look-ups
        ("trace", np.float32),  # λ
        ("exploration", np.float32),  # ε
        ("coherent", np.bool_),  # whether to learn with temporal coherence; else `coherence` may be empty
        ("expected", np.bool_),  # whether targets are means over all tiles that may come
        ("restarts", np.bool_),  # whether a game may start in the middle of the one before
    ]
)


class Arrays(NamedTuple):
    """The arrays of a `TASK`."""

    weights: NDArray[np.float32]
    coherence: NDArray[np.float32]
    row_lines: NDArray[np.uint64]
    column_lines: NDArray[np.uint64]
    places: NDArray[np.uint32]
    path: NDArray[np.uint64]
    gains: NDArray[np.float32]


class Choice(NamedTuple):
    """A move that is about to be played."""

    action: np.uint64  # NO_MOVE: there is no legal move
    after: np.uint64  # its afterstate
    gain: np.int64  # its score
    value: np.float32  # of its afterstate
    best: np.float32  # score and afterstate value of the best move, even where another one was drawn


@kernel
def arrays_of(task, lookups):
    """The arrays of a task's addresses, for networks of so many look-ups."""
    return Arrays(
        borrow(task.weights, F, task.entries),
        borrow(task.coherence, F, 2 * task.entries),
        borrow(task.row_lines, U, 1 << 16),
        borrow(task.column_lines, U, 1 << 16),
        borrow(task.places, np.uint32, 5 * lookups),
        borrow(task.path, U, PATH),
        borrow(task.gains, F, PATH),
    )


@kernel
def with_new_tile(worker, board, free):
    """The board with one more tile, drawn from the worker's stream; `free` marks the cells of the whole board."""
    worker.stream, bits = next_bits(worker.stream)
    return packed.put_tile(board, packed.empties(board) & free, bits)


@kernel
def first_board(worker, rows, cols):
    """The board of a new game, with two tiles."""
    if rows == 4 and cols == 4:
        worker.stream, board = packed.two_tiles(worker.stream)
        return board
    free = packed.area(rows, cols)
    return with_new_tile(worker, with_new_tile(worker, U(0), free), free)


@kernel
def explores(worker, rate):
    """Whether to draw the next move at random, with probability `rate`; uses the stream only if `rate` is above 0."""
    if rate == 0:
        return False
    worker.stream, bits = next_bits(worker.stream)
    return F(bits >> U(40)) < rate * F(1 << 24)


@kernel
def any_move(worker, board, afters):
    """A legal action, drawn at random; the afterstate of an illegal one equals the board."""
    while True:
        worker.stream, bits = next_bits(worker.stream)
        action = below(bits, 4)
        if afters[action] != board:
            return U(action)


@kernel
def next_start(worker, task, path, length):
    """Set where the next game starts: in the middle of a game of `length` moves that has just ended, or anew."""
    worker.start = path[length // 2] if task.restarts and length >= SHORTEST else U(0)


class _Learning(NamedTuple):
    """Kernels that adjust entries."""

    learn: Kernel
    learn_backwards: Kernel
    keep_places: Kernel


@cache
def _learning(shape: Shape) -> _Learning:
    name, lookups = str(shape), shape.lookups
    _, locate, total, adjust = tuple_kernels(shape)
    last = U(4 * lookups)

    @kernel(variant=name)
    def adjust_coherently(weights, coherence, places, first, error, rate):
        """Temporal coherence (Beal & Smith 1999): an entry whose errors cancel out learns more slowly."""
        for k in range(lookups):
            place = U(places[first + U(k)])
            net, size = coherence[U(2) * place], coherence[U(2) * place + U(1)]
            share = abs(net) / size if size > 0 else F(1)
            weights[place] += rate * share * error
            coherence[U(2) * place] = net + error
            coherence[U(2) * place + U(1)] = size + abs(error)

    @kernel(variant=name, forceinline=True)
    def learn(task, arrays, first, error):
        """Move the value of the afterstate whose entries are at `places[first:]` by a part of its error."""
        if task.coherent:
            adjust_coherently(arrays.weights, arrays.coherence, arrays.places, first, error, task.rate)
        else:
            adjust(arrays.weights, arrays.places, first, error * task.rate)

    @kernel(variant=name, forceinline=True)
    def keep_places(task, arrays, action):
        """Keep an action's places as those of the last afterstate; begin to fetch the coherence of its entries."""
        places, first = arrays.places, U(lookups) * action
        for k in range(lookups):
            places[last + U(k)] = places[first + U(k)]
        if task.coherent:
            for k in range(lookups):
                prefetch(arrays.coherence, U(2) * U(places[last + U(k)]))

    @kernel(variant=name)
    def learn_backwards(task, arrays, length):
        """TD(λ) over a finished game of `length` moves, last afterstate first.

        Target: r + λ·return + (1 − λ)·value, all of the next afterstate; 0 for the last.
        """
        weights, places, path = arrays.weights, arrays.places, arrays.path
        following, value, gain = F(0), F(0), F(0)
        for i in range(length - 1, -1, -1):
            here, before = U(lookups * (i & 1)), U(lookups * (~i & 1))
            if i == length - 1:
                locate(path[i], weights, places, here)
            if i > 0:
                locate(path[i - 1], weights, places, before)
            following = gain + task.trace * following + (F(1) - task.trace) * value
            learn(task, arrays, here, following - total(weights, places, here))
            value, gain = total(weights, places, here), arrays.gains[i]

    return _Learning(learn, learn_backwards, keep_places)


@cache
def _expectation(shape: Shape) -> Kernel:
    """A kernel: the mean over all new tiles of the best move's score and afterstate value."""
    name, rows, cols = str(shape), shape.rows, shape.cols
    value_of = tuple_kernels(shape).value

    @kernel(variant=name)
    def best_worth(board, arrays):
        """The score and afterstate value of a board's best move; 0 if there is no legal move."""
        up, right, down, left, along, across = packed.moves(board, arrays.row_lines, arrays.column_lines)
        best = F(-np.inf)
        if up != board:
            best = max(best, F(along) + value_of(up, arrays.weights))
        if right != board:
            best = max(best, F(across) + value_of(right, arrays.weights))
        if down != board:
            best = max(best, F(along) + value_of(down, arrays.weights))
        if left != board:
            best = max(best, F(across) + value_of(left, arrays.weights))
        return best if best > -np.inf else F(0)

    @kernel(variant=name)
    def expected_worth(after, arrays):
        cells, count, found = packed.empties(after) & packed.area(rows, cols), F(0), F(0)
        while cells:
            cell = cells & (~cells + U(1))
            cells ^= cell
            count += F(1)
            found += F(0.9) * best_worth(after | cell, arrays)
            found += F(0.1) * best_worth(after | cell << U(1), arrays)
        return found / count

    return expected_worth


@cache
def _choice(shape: Shape) -> Kernel:
    """A kernel: the best move, or with probability ε any legal one; leaves the places of all four afterstates."""
    name, lookups = str(shape), shape.lookups
    _, locate, total, _ = tuple_kernels(shape)

    @kernel(variant=name, forceinline=True)
    def choose(task, worker, arrays, board):
        weights, places = arrays.weights, arrays.places
        up, right, down, left, along, across = packed.moves(board, arrays.row_lines, arrays.column_lines)
        if up != board:
            locate(up, weights, places, U(0))
        if right != board:
            locate(right, weights, places, U(lookups))
        if down != board:
            locate(down, weights, places, U(2 * lookups))
        if left != board:
            locate(left, weights, places, U(3 * lookups))
        best, best_value, gain, chosen, after = F(-np.inf), F(0), np.int64(0), NO_MOVE, U(0)
        after0, after1, after2, after3 = up, right, down, left
        gain0, gain1 = np.int64(along), np.int64(across)
        for action in range(4):
            if after0 != board:
                value = total(weights, places, U(lookups * action))
                worth = value + F(gain0)
                if worth > best:
                    best, best_value, gain, chosen, after = worth, value, gain0, U(action), after0
            after0, after1, after2, gain0, gain1 = after1, after2, after3, gain1, gain0
        if chosen != NO_MOVE and explores(worker, task.exploration):
            chosen = any_move(worker, board, (up, right, down, left))
            after, gain = (up, right, down, left)[chosen], np.int64((along, across)[chosen & U(1)])
            best_value = total(weights, places, U(lookups) * chosen)
        return Choice(chosen, after, gain, best_value, best)

    return choose


@cache
def _game(shape: Shape) -> Kernel:
    """A kernel: play one game from a board to its end and learn from it; returns (score, moves)."""
    lookups, rows, cols = shape.lookups, shape.rows, shape.cols
    learn, learn_backwards, keep_places = _learning(shape)
    choose, expected_worth = _choice(shape), _expectation(shape)
    last = U(4 * lookups)

    @kernel(variant=str(shape))
    def play(task, worker, board):
        arrays, free = arrays_of(task, lookups), packed.area(rows, cols)
        at_once, remembers = task.trace == 0, task.trace > 0 or task.restarts
        score, length, last_value = 0, 0, F(0)
        while True:
            choice = choose(task, worker, arrays, board)
            if choice.action == NO_MOVE or choice.gain >= OUTGROWN:
                break
            if at_once:
                if length > 0 and not task.expected:
                    learn(task, arrays, last, choice.best - last_value)
                keep_places(task, arrays, choice.action)
                last_value = choice.value
                if task.expected:
                    learn(task, arrays, last, expected_worth(choice.after, arrays) - last_value)
            if remembers and length < PATH:
                arrays.path[length], arrays.gains[length] = choice.after, F(choice.gain)
            score += choice.gain
            length += 1
            board = with_new_tile(worker, choice.after, free)
        # A game that outgrows packed boards has no end to learn from; expected targets have learnt the end already.
        if choice.action == NO_MOVE and length > 0 and not task.expected:
            if at_once:
                learn(task, arrays, last, -last_value)
            else:
                learn_backwards(task, arrays, min(length, PATH))
        next_start(worker, task, arrays.path, min(length, PATH))
        return score, length

    return play


@cache
def learning_kernel(shape: Shape) -> Kernel:
    """The kernel that plays and learns, for networks of one shape.

    `play_on(tasks, which, limit)`: a worker plays whole games until it has made `limit` moves or more. It makes fewer
    only if the network's values are NaN. `tasks` are `TASK` records, `which` is the worker's.
    """
    rows, cols = shape.rows, shape.cols
    play = _game(shape)

    @kernel(variant=str(shape))
    def play_on(tasks, which, limit):
        task = tasks[which]
        worker = borrow(task.worker, WORKER, 1)[0]
        moves = 0
        while moves < limit:
            new = worker.start == U(0)
            if new:
                board = first_board(worker, rows, cols)
            else:
                board = with_new_tile(worker, worker.start, packed.area(rows, cols))
            score, length = play(task, worker, board)
            moves += length
            if new and length == 0:  # a new board has a legal move, so its value is NaN
                break
            if new:
                worker.games += U(1)
                worker.score += U(score)
        worker.moves += U(moves)

    return play_on
