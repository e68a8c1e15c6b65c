"""Which keys bring the falling piece to a resting place in time: a breadth-first search by the rules themselves.

A *goal* is a place at rest, packed by `goal_of`. A route to it ends with a hard drop. Every key on the way takes a
step, so the piece falls by gravity; where it would lock, the route ends.

The search looks at each place once for each value of SPIN, the first time that it comes there. So every route that it
finds is one; with gravity, it may miss one that comes to a place later, when the clock stands elsewhere.
"""

from typing import NamedTuple

import numpy as np

from mergefall.kernels import kernel
from mergefall.tetris.field import copy, fall
from mergefall.tetris.game import LOWEST, OVER, ROTATION, SCORE, SPIN, columns_in, queued
from mergefall.tetris.keys.game import HARD_DROP, HOLD_KEY, SOFT_DROP, act, appear, place_of, spin_of
from mergefall.tetris.reach import KICKED, TURNED, search
from mergefall.tetris.reach import new_work as new_places
from mergefall.tetris.srs import SHAPES
from mergefall.typing import Ints, Words

U = np.uint64
PLACES = 4 * 16 * 64  # rotations, columns, rows
SPUN = PLACES  # added to a goal: the last key before the hard drop has to be a turn, as for a T-spin
LONGEST = 64  # keys of a route
KEY_BITS = 4
ANY = -1  # instead of a goal
FALLING = LOWEST + 1 - ROTATION  # words of a state that describe the falling piece


class Work(NamedTuple):
    """The memory of a search; `new_work` makes one."""

    nodes: Words  # [n, FALLING], the falling piece of each node, in the order of their discovery
    came: Ints  # of each node, 16 · the node before it + the key
    seen: Ints  # by place and spin, the last search that came there
    ends: Ints  # by goal, 2¹⁶ · the last search that reached it + the node it did so from
    searches: Ints  # [1], how many there were


def new_work() -> Work:
    nodes, came = np.empty((3 * PLACES, FALLING), U), np.empty(3 * PLACES, np.int64)
    return Work(nodes, came, np.zeros(3 * PLACES, np.int64), np.zeros(2 * PLACES, np.int64), np.zeros(1, np.int64))


@kernel(inline="always")
def goal_of(shape, column, y):
    return (shape * 16 + column) * 64 + y


@kernel
def explore(state, goal, soft, work):
    """Search from the falling piece: (the node whose hard drop ends in the goal, or -1; the number of nodes).

    `goal` may be `ANY`: then work.ends receives all goals. Without `soft`, the routes have no soft drops. The state
    stays as it is.
    """
    columns, piece, score, falling = columns_in(state), queued(state, 0), state[SCORE], state[ROTATION : LOWEST + 1]
    work.searches[0] += 1
    search, count, at, found = work.searches[0], 1, 0, -1
    copy(falling, work.nodes[0])
    work.came[0] = -1
    while at < count and found < 0:
        copy(work.nodes[at], falling)
        rotation, column, y = place_of(state)
        shape = SHAPES[piece, rotation]
        low = fall(columns, piece, shape, column, y)
        end, spun = goal_of(shape, column, low), low == y and state[SPIN] > 0
        if goal == end or (spun and goal == end + SPUN):
            found = at
        if goal == ANY:
            if work.ends[end] >> 16 != search:
                work.ends[end] = search << 16 | at
            if spun and work.ends[end + SPUN] >> 16 != search:
                work.ends[end + SPUN] = search << 16 | at
        for key in range(SOFT_DROP + 1 if soft else SOFT_DROP):
            copy(work.nodes[at], falling)
            changed, locks = act(state, key)
            rotation, column, y = place_of(state)
            place = goal_of(rotation, column, y) + PLACES * np.int64(state[SPIN])
            if changed and not locks and work.seen[place] != search:
                work.seen[place] = search
                copy(falling, work.nodes[count])
                work.came[count] = 16 * at + key
                count += 1
        at += 1
    copy(work.nodes[0], falling)
    state[SCORE] = score
    return found, count


@kernel
def best_spin(columns, piece, rotation, column, y, rows):
    """The best kind of spin with which a piece can lock at a place, without gravity."""
    places = new_places(columns.size)
    search(columns, piece, rows, places)
    turn = (places[TURNED, rotation, column] >> U(y) & U(1)) + (places[KICKED, rotation, column] >> U(y) & U(1))
    return spin_of(columns, piece, rotation, column, y, np.int64(turn))


@kernel
def write_route(node, first, work, route):
    """Write the keys to a node and the hard drop into `route` uint64[4], four bits each; returns their number.

    `first`: a key that goes before them, or -1. The number is 0 if there are too many.
    """
    count, at = 1, node
    while at > 0:
        count, at = count + 1, work.came[at] // 16
    if first >= 0:
        count += 1
    if count > LONGEST:
        return 0
    for i in range(route.size):
        route[i] = U(0)
    put_key(route, count - 1, HARD_DROP)
    at, i = node, count - 2
    while at > 0:
        put_key(route, i, work.came[at] & 15)
        at, i = work.came[at] // 16, i - 1
    if first >= 0:
        put_key(route, 0, first)
    return count


@kernel
def put_key(route, i, key):
    route[i // 16] |= U(key) << U(KEY_BITS * (i % 16))


@kernel
def key_at(route, i):
    return np.int64(route[i // 16] >> U(KEY_BITS * (i % 16))) & 15


@kernel
def find(state, held, goal, trial, work, route):
    """Write the keys to a goal into `route`; returns their number, 0 if it is not reached in time.

    With `held` the piece is exchanged first. `trial`: a row like `state`, overwritten.
    """
    copy(state, trial)
    if held and (not act(trial, HOLD_KEY)[0] or trial[OVER]):
        return 0
    for soft in range(2):
        node, _ = explore(trial, goal, soft == 1, work)
        if node >= 0:
            return write_route(node, HOLD_KEY if held else -1, work, route)
    return 0


def keys_to(state: Words, held: int, place: tuple[int, int, int]) -> list[int]:
    """The keys to a place at rest (shape, column, y) in a state of the game by placements, without gravity.

    None if there is no way. `held` says whether the piece is exchanged first.
    """
    asked, trial = state.copy(), state.copy()
    appear(asked, 0)
    route = np.empty(LONGEST * KEY_BITS // 64, U)
    count = find(asked, held, goal_of(*place), trial, new_work(), route)
    return [key_at(route, i) for i in range(count)]
