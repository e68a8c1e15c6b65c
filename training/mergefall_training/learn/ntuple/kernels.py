"""Temporal-difference learning on afterstates of 2048, compiled: whole games played and learnt from in one call.

A worker is one thread's part in a run: one row of unsigned 64-bit words (`STREAM` …) that holds all that its next game
depends on besides the weights, and what its games came to. All workers share the weights without locks; a lost addition
now and then does not matter.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from mergefall.game2048 import packed
from mergefall.kernels import borrow, kernel, prefetch
from mergefall.words import below, next_bits
from mergefall_baselines.game2048.tuples import Shape, tuple_kernels

U, F = np.uint64, np.float32

# A worker's words: its random stream; the afterstate that the next game starts from (0: a new game) and the turn of the
# carousel; what games came to: the number of new ones and their score, and the moves of all, those from others too.
STREAM, START, TURN, GAMES, SCORE, MOVES, WORDS = range(7)

NEW, RESTART, CAROUSEL = range(3)  # where games start
POOL = 1000  # afterstates kept for each of the carousel's tiles; word 0 of a pool counts all that came
PATH = 1 << 17  # afterstates of one game that are remembered; a game with a 65536 takes half as many
SHORTEST = 10  # moves; a shorter game is not restarted in its middle
OUTGROWN = 1 << 16  # the score of a merge whose tile has no place in a packed board

# What a call needs, for each worker one record: numbers, and addresses of arrays that the caller keeps alive.
TASK = np.dtype(
    [
        ("worker", np.uint64),  # uint64[WORDS]
        ("weights", np.uint64),  # float32[entries]
        ("entries", np.int64),
        ("coherence", np.uint64),  # float32[2 · entries]: sums of errors and of their sizes, where coherent
        ("row_lines", np.uint64),  # line tables of packed boards
        ("column_lines", np.uint64),
        ("places", np.uint64),  # scratch, uint32[5 · look-ups]
        ("path", np.uint64),  # scratch, uint64[PATH]: the afterstates of a game
        ("gains", np.uint64),  # scratch, float32[PATH]: the scores of the moves to them
        ("pools", np.uint64),  # uint64[tiles · (1 + POOL)]
        ("tiles", np.uint64),  # int64[tile_count]: of the carousel, rising
        ("tile_count", np.int64),
        ("start", np.int64),  # NEW, RESTART or CAROUSEL
        ("coherent", np.int64),  # temporal coherence
        ("expected", np.int64),  # targets in the mean over all tiles that may come, not from the one that came
        ("rate", np.float32),  # the step size of one entry: α / look-ups
        ("trace", np.float32),  # λ
        ("exploration", np.float32),  # ε
    ]
)


@kernel
def with_new_tile(worker, board, free):
    """A board with one more tile, drawn from the worker's stream; `free` marks the cells of the whole board."""
    worker[STREAM], bits = next_bits(worker[STREAM])
    return packed.put_tile(board, packed.empties(board) & free, bits)


@kernel
def first_board(worker, rows, cols):
    """A new game's board with two tiles."""
    if rows == 4 and cols == 4:
        worker[STREAM], board = packed.two_tiles(worker[STREAM])
        return board
    free = packed.area(rows, cols)
    return with_new_tile(worker, with_new_tile(worker, U(0), free), free)


@kernel
def explores(worker, rate):
    """Whether the next move is drawn instead of chosen, which takes a draw of its own where `rate` is not 0."""
    if rate == 0:
        return False
    worker[STREAM], bits = next_bits(worker[STREAM])
    return F(bits >> U(40)) < rate * F(1 << 24)


@kernel
def any_move(worker, board, afters):
    """Which of the four afterstates to go to, drawn from those of legal moves: the others equal the board."""
    while True:
        worker[STREAM], bits = next_bits(worker[STREAM])
        which = below(bits, 4)
        if afters[which] != board:
            return U(which)


@kernel
def next_start(worker, task, path, length):
    """Decide on the afterstate that the next game starts from, 0 for a new game.

    RESTART takes the middle of the game that has just ended, until games are short (Matsuzaki 2017). CAROUSEL takes
    turns between a new game and, for each of its tiles, an afterstate in which that tile was new (Jaśkowski 2018).
    """
    worker[START] = U(0)
    if task.start == RESTART and length >= SHORTEST:
        worker[START] = path[length // 2]
    if task.start == CAROUSEL:
        worker[TURN] = (worker[TURN] + U(1)) % U(task.tile_count + 1)
        if worker[TURN] > 0:
            at = (np.int64(worker[TURN]) - 1) * (1 + POOL)
            pool = borrow(task.pools, U, task.tile_count * (1 + POOL))
            if pool[at] == 0:
                worker[TURN] = U(0)  # games do not come that far yet
            else:
                worker[STREAM], bits = next_bits(worker[STREAM])
                worker[START] = pool[at + 1 + below(bits, min(np.int64(pool[at]), POOL))]


@kernel
def note_tile(task, after, gain):
    """Keep an afterstate for the carousel if the move to it made one of its tiles for the first time in the game."""
    tiles = borrow(task.tiles, np.int64, task.tile_count)
    pool = borrow(task.pools, U, task.tile_count * (1 + POOL))
    top = 1 << packed.top_rank(after)
    for i in range(task.tile_count):
        if top == tiles[i] and gain >= top:
            at = i * (1 + POOL)
            pool[at + 1 + np.int64(pool[at]) % POOL] = after
            pool[at] += U(1)


@cache
def learning_kernel(shape: Shape) -> Any:
    """The kernel that plays and learns, for networks of one shape."""
    name, lookups = str(shape), shape.lookups
    rows, cols = shape.rows, shape.cols
    value_of, locate, total, adjust, promoted = tuple_kernels(shape)
    last = U(4 * lookups)  # where the places of the last afterstate lie, behind those of the four next ones

    @kernel(variant=name)
    def adjust_coherently(weights, coherence, places, first, error, rate):
        """Temporal coherence (Beal & Smith 1999): an entry whose errors cancel out learns slower."""
        for k in range(lookups):
            place = U(places[first + U(k)])
            net, size = coherence[U(2) * place], coherence[U(2) * place + U(1)]
            share = abs(net) / size if size > 0 else F(1)
            weights[place] = promoted(weights, place) + rate * share * error
            coherence[U(2) * place] = net + error
            coherence[U(2) * place + U(1)] = size + abs(error)

    @kernel(variant=name)
    def learn(task, weights, places, first, error):
        """Move the value of the afterstate whose entries are at `places[first:]` by a part of its error."""
        if task.coherent:
            coherence = borrow(task.coherence, F, 2 * task.entries)
            adjust_coherently(weights, coherence, places, first, error, task.rate)
        else:
            adjust(weights, places, first, error * task.rate)

    @kernel(variant=name)
    def keep_places(task, places, which):
        """Make the places of one of the four afterstates those of the last; begin to fetch what learning needs."""
        first = U(lookups) * which
        for k in range(lookups):
            places[last + U(k)] = places[first + U(k)]
        if task.coherent:
            coherence = borrow(task.coherence, F, 2 * task.entries)
            for k in range(lookups):
                prefetch(coherence, U(2) * U(places[last + U(k)]))

    @kernel(variant=name)
    def learn_backwards(task, weights, places, path, gains, length):
        """TD(λ) over a finished game, last afterstate first, towards r + λ·return + (1 − λ)·value of the next."""
        following, value, gain = F(0), F(0), F(0)
        for i in range(length - 1, -1, -1):
            here, before = U(lookups * (i & 1)), U(lookups * (~i & 1))
            if i == length - 1:
                locate(path[i], weights, places, here)
            if i > 0:
                locate(path[i - 1], weights, places, before)
            following = gain + task.trace * following + (F(1) - task.trace) * value
            learn(task, weights, places, here, following - total(weights, places, here))
            value, gain = total(weights, places, here), gains[i]

    @kernel(variant=name)
    def best_worth(board, weights, row_lines, column_lines):
        """What a board's best move is worth, 0 if there is none."""
        up, right, down, left, along, across = packed.moves(board, row_lines, column_lines)
        best = F(-np.inf)
        if up != board:
            best = max(best, F(along) + value_of(up, weights))
        if right != board:
            best = max(best, F(across) + value_of(right, weights))
        if down != board:
            best = max(best, F(along) + value_of(down, weights))
        if left != board:
            best = max(best, F(across) + value_of(left, weights))
        return best if best > -np.inf else F(0)

    @kernel(variant=name)
    def expected_worth(after, weights, row_lines, column_lines):
        """What the best move on an afterstate with one more tile is worth, in the mean over all that may come."""
        cells, count, found = packed.empties(after) & packed.area(rows, cols), F(0), F(0)
        while cells:
            cell = cells & (~cells + U(1))
            cells ^= cell
            count += F(1)
            found += F(0.9) * best_worth(after | cell, weights, row_lines, column_lines)
            found += F(0.1) * best_worth(after | cell << U(1), weights, row_lines, column_lines)
        return found / count

    @kernel(variant=name)
    def play(task, worker, board):
        """Play one game from `board` to its end, learning from it; (score, moves)."""
        weights = borrow(task.weights, F, task.entries)
        row_lines, column_lines = borrow(task.row_lines, U, 1 << 16), borrow(task.column_lines, U, 1 << 16)
        places = borrow(task.places, np.uint32, 5 * lookups)
        path, gains = borrow(task.path, U, PATH), borrow(task.gains, F, PATH)
        free = packed.area(rows, cols)
        at_once, remembers = task.trace == 0, task.trace > 0 or task.start == RESTART
        score, length, last_value, after = 0, 0, F(0), U(0)
        while True:
            up, right, down, left, along, across = packed.moves(board, row_lines, column_lines)
            if up != board:
                locate(up, weights, places, U(0))
            if right != board:
                locate(right, weights, places, U(lookups))
            if down != board:
                locate(down, weights, places, U(2 * lookups))
            if left != board:
                locate(left, weights, places, U(3 * lookups))
            best, its_value, gain, which = F(-np.inf), F(0), 0, U(4)
            a0, a1, a2, a3 = up, right, down, left
            gain0, gain1 = np.int64(along), np.int64(across)
            for i in range(4):
                if a0 != board:
                    value = total(weights, places, U(lookups * i))
                    worth = value + F(gain0)
                    if worth > best:
                        best, its_value, gain, which, after = worth, value, gain0, U(i), a0
                a0, a1, a2, gain0, gain1 = a1, a2, a3, gain1, gain0
            if which != U(4) and explores(worker, task.exploration):  # what is learnt is still what the best is worth
                which = any_move(worker, board, (up, right, down, left))
                after, gain = (up, right, down, left)[which], np.int64((along, across)[which & U(1)])
                its_value = total(weights, places, U(lookups) * which)
            if which == U(4) or gain >= OUTGROWN:
                break
            if at_once:
                if length > 0 and not task.expected:
                    learn(task, weights, places, last, best - last_value)
                keep_places(task, places, which)
                last_value = its_value
                if task.expected:
                    worth = expected_worth(after, weights, row_lines, column_lines)
                    learn(task, weights, places, last, worth - last_value)
            if remembers and length < PATH:
                path[length], gains[length] = after, F(gain)
            if task.start == CAROUSEL:
                note_tile(task, after, gain)
            score += gain
            length += 1
            board = with_new_tile(worker, after, free)
        # A game that outgrows its board is broken off, without an end to learn from; expected targets saw it coming.
        if which == U(4) and length > 0 and not task.expected:
            if at_once:
                learn(task, weights, places, last, -last_value)
            else:
                learn_backwards(task, weights, places, path, gains, min(length, PATH))
        next_start(worker, task, path, min(length, PATH))
        return score, length

    @kernel(variant=name)
    def play_on(tasks, which, limit):
        """Play on with a worker, in whole games, until it has made `limit` moves or more; fewer if values are NaN."""
        task = tasks[which]
        worker = borrow(task.worker, U, WORDS)
        moves = 0
        while moves < limit:
            new = worker[START] == U(0)
            if new:
                board = first_board(worker, rows, cols)
            else:
                board = with_new_tile(worker, worker[START], packed.area(rows, cols))
            score, length = play(task, worker, board)
            moves += length
            if new and length == 0:  # no move is the best of a fresh board: the network's entries are no numbers
                break
            if new:
                worker[GAMES] += U(1)
                worker[SCORE] += U(score)
        worker[MOVES] += U(moves)

    return play_on
