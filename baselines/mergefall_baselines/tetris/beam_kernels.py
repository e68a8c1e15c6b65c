"""The kernels of `tetris/beam`: a beam search over all places that the known pieces can reach, and beyond them.

A node is a board, the held piece, a place in the queue, the chain of clears and the garbage to come. One level of the
search is one placement: all nodes of a level are expanded by their current piece and, through hold, by the other one;
nodes that are equal merge, and the `width` best ones go on. The value of a node is the sum of the rewards of its
placements and of the terms of its board.

Once the pieces are used up, the search goes on from the best nodes with pieces drawn from what is left of the bag,
several times. The value of a first placement is the mean, over these draws, of the best node that it leads to.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from mergefall.kernels import kernel
from mergefall.tetris import reach
from mergefall.tetris.field import clear, copy, full_rows, height_of, put
from mergefall.tetris.game import nibble, nth_bit
from mergefall.tetris.heuristics import MEMO, Attack
from mergefall.tetris.keys.game import ATTACKS, COMBO_ATTACKS, FULL, MINI, NO_SPIN, PERFECT_ATTACK, T
from mergefall.tetris.pieces import HEIGHTS, NAMES, WIDTHS
from mergefall.weighted import dot
from mergefall.words import below, leading_zeros, next_bits, popcount, trailing_zeros
from numpy.typing import NDArray

U = np.uint64
BAR = NAMES.index("I")
NO_HOLD, UNKNOWN = 8, 9  # in HOLD: there is none; a piece that came after the known ones. 0: empty, else an id plus one
HOLD, NEXT, COMBO, CHAINED, PENDING, FIRST, NODE = range(7)  # of a node; FIRST: the number of its first placement
ATTACK, LINES, WASTED, CHAIN, IN_A_ROW, HELD_T, HELD_I = range(len(Attack.board_names), Attack().weight_vector().size)
FACTORS = np.random.default_rng(1).integers(0, 1 << 64, 16, U) | U(1)  # of the columns in a node's key
PROBES = 4
CANDIDATES = 8  # for each node that stays, how many are listed before the worst of them are left out
FALLEN = 1e6  # what a first placement loses that no node of the last level goes back to
NONE = -1
board_value, (prepare, terms_after) = Attack.kernels().board, Attack.memo


class Beam(NamedTuple):
    """What a search works with. There are three sets of nodes: two take turns, and one is kept for all draws."""

    rows: int
    top: int  # rows that a piece at rest may not rise above
    drawn: int  # the ids that the game draws, as bits
    bagged: bool  # whether it draws them from bags
    draws: int  # of the pieces after the known ones, for the mean
    ahead: int  # pieces of a draw
    narrow: int  # the width of the search by drawn pieces
    weights: NDArray[np.float64]  # of `Attack`
    boards: NDArray[np.uint64]  # [3, width, cols]
    nodes: NDArray[np.int64]  # [3, width, NODE]
    paid: NDArray[np.float64]  # [3, width], the rewards on the way to a node
    worth: NDArray[np.float64]  # [width], the values of the last level's nodes, the best one first
    firsts: NDArray[np.int64]  # [width], the first placements by number
    sums: NDArray[np.float64]  # [2, width], their values in one draw and in all
    child: NDArray[np.uint64]  # [cols]
    work: NDArray[np.uint64]  # of `mergefall.tetris.reach`
    memo: NDArray[np.uint64]  # of the heuristic
    values: NDArray[np.float64]  # [candidates]
    keys: NDArray[np.uint64]  # [candidates]
    found: NDArray[np.int64]  # [candidates], the parent shifted by 32 bits, and the placement
    table: NDArray[np.uint64]  # [slots], the keys of this level; the lowest bits say which level
    best: NDArray[np.float64]  # [slots], the highest value of a key
    counts: NDArray[np.int64]  # [2], candidates of this level; the level's number modulo slots


def new_beam(
    cols: int,
    rows: int,
    top: int,
    drawn: int,
    bagged: bool,
    weights: NDArray[np.float64],
    width: int,
    draws: int,
    ahead: int,
    narrow: int,
) -> Beam:
    candidates = CANDIDATES * max(width, 512)
    slots = CANDIDATES << (candidates - 1).bit_length()
    return Beam(
        rows=rows,
        top=top,
        drawn=drawn,
        bagged=bagged,
        draws=draws,
        ahead=ahead,
        narrow=min(narrow, width),
        weights=weights,
        boards=np.zeros((3, width, cols), U),
        nodes=np.zeros((3, width, NODE), np.int64),
        paid=np.zeros((3, width)),
        worth=np.zeros(width),
        firsts=np.zeros(width, np.int64),
        sums=np.zeros((2, width)),
        child=np.zeros(cols, U),
        work=np.zeros((6, reach.ROTATIONS, cols), U),
        memo=np.zeros(MEMO, U),
        values=np.zeros(candidates),
        keys=np.zeros(candidates, U),
        found=np.zeros(candidates, np.int64),
        table=np.zeros(slots, U),
        best=np.zeros(slots),
        counts=np.zeros(2, np.int64),
    )


# -- one placement ---------------------------------------------------------------------------------------------------


@kernel
def spin_at(columns, rotation, column, y, kicked):
    """The kind of spin of a T that a turn brings to this place, by its fifth test if `kicked`."""
    left = column - (rotation == 1)
    bottom = y - (rotation == 0)
    low_left = low_right = top_left = top_right = 1
    if left >= 0:
        low_left = np.int64(columns[left] >> U(bottom) & U(1)) if bottom >= 0 else 1
        top_left = np.int64(columns[left] >> U(bottom + 2) & U(1))
    if left + 2 < columns.size:
        low_right = np.int64(columns[left + 2] >> U(bottom) & U(1)) if bottom >= 0 else 1
        top_right = np.int64(columns[left + 2] >> U(bottom + 2) & U(1))
    if top_left + top_right + low_left + low_right < 3:
        return NO_SPIN
    front = top_left + top_right
    if rotation == 1:
        front = top_right + low_right
    elif rotation == 2:
        front = low_left + low_right
    elif rotation == 3:
        front = top_left + low_left
    return FULL if front == 2 or kicked else MINI


@kernel
def find_rests(columns, piece, rows, work):
    """`reach.search`, faster where all places are open to the sky and no T can spin: one rest per column then."""
    cols, highest = columns.size, U(0)
    for column in columns:
        highest |= column
    search = height_of(highest) + 3 > rows
    free, rests, turned = work[reach.FREE], work[reach.RESTS], work[reach.TURNED]
    if not search:
        reach.write_free(columns, piece, free)
        for rotation in range(reach.ROTATIONS):
            width = WIDTHS[piece, rotation]
            for c in range(cols):
                rests[rotation, c] = turned[rotation, c] = U(0)
                if width and c + width <= cols:
                    y = 64 - leading_zeros(~free[rotation, c])
                    rests[rotation, c] = U(1) << U(y)
                    search |= free[rotation, c] & (rests[rotation, c] - U(1)) != 0
                    if piece == T and not search:
                        search |= spin_at(columns, rotation, c, y, False) != NO_SPIN
    if search:
        reach.search(columns, piece, rows, work)


@kernel
def settle(columns, full, piece, spin, node, weights):
    """Clear the full rows after a piece: (its reward, clears in a row, whether a chain is on, garbage to come).

    If there are none, the garbage to come rises; its hole, which nobody knows, is where the bottom row has one now.
    """
    reward, pending = weights[WASTED] if piece == T else 0.0, node[PENDING]
    if full == 0:
        hole, raised = 0, (U(1) << U(pending)) - U(1)
        while hole < columns.size - 1 and columns[hole] & U(1):
            hole += 1
        for c in range(columns.size if pending else 0):
            columns[c] = columns[c] << U(pending) | (U(0) if c == hole else raised)
        return reward, 0, node[CHAINED], 0
    lines, filled, row = popcount(full), U(0), node[COMBO] + 1
    clear(columns, full)
    for c in range(columns.size):
        filled |= columns[c]
    attack, hard = ATTACKS[spin, lines], spin != NO_SPIN or lines == 4
    if hard and node[CHAINED] and attack:
        attack += 1
    if filled == 0:
        attack = PERFECT_ATTACK
    attack += COMBO_ATTACKS[min(row, COMBO_ATTACKS.size - 1)]
    if spin == FULL and lines > 1:
        reward = 0.0
    reward += weights[ATTACK] * attack + weights[LINES] * lines
    return reward, row, np.int64(hard), max(0, pending - attack)


@kernel
def packed(piece, rotation, column, y, spin, holds):
    return y | column << 8 | rotation << 16 | spin << 20 | holds << 22 | piece << 24


@kernel
def parts_of(placement):
    """(piece, rotation, column, y, kind of spin, whether the piece comes by hold) of a packed placement."""
    piece, rotation, column, y = placement >> 24 & 15, placement >> 16 & 15, placement >> 8 & 255, placement & 255
    return piece, rotation, column, y, placement >> 20 & 3, placement >> 22 & 1


# -- one level -------------------------------------------------------------------------------------------------------


@kernel
def begin_level(beam):
    """Empty the table and the list of candidates."""
    beam.counts[0] = 0
    beam.counts[1] += 1
    if beam.counts[1] == beam.table.size:
        beam.counts[1] = 1
        for i in range(beam.table.size):
            beam.table[i] = U(0)


@kernel
def slot_of(beam, key):
    """(a slot of the table that holds the key now, whether it did before)."""
    low, level = U(beam.table.size - 1), U(beam.counts[1])
    at, entry = key & low, key & ~low | level
    for _ in range(PROBES):
        if beam.table[at] == entry:
            return at, True
        if beam.table[at] & low != level:
            break
        at = at + U(1) & low
    beam.table[at] = entry
    return at, False


@kernel
def shrink(beam):
    """Keep `width` of the best candidates; returns the lowest of their values."""
    count, width, kept = beam.counts[0], beam.worth.size, 0
    least = np.partition(beam.values[:count], count - width)[count - width]
    for i in range(count):
        if beam.values[i] >= least and kept < width:
            beam.values[kept], beam.keys[kept], beam.found[kept] = beam.values[i], beam.keys[i], beam.found[i]
            kept += 1
    beam.counts[0] = kept
    return least


@kernel
def grow(beam, now, parent, piece, hold, following, holds, least):
    """List the children of a node by one piece that are worth more than `least`; returns the new `least`.

    `hold` and `following` are what the children hold and their place in the queue.
    """
    columns, node, weights, work, child = (
        beam.boards[now, parent],
        beam.nodes[now, parent],
        beam.weights,
        beam.work,
        beam.child,
    )
    paid, rows = beam.paid[now, parent], beam.rows
    if hold == T + 1:
        paid += weights[HELD_T]
    elif hold == BAR + 1:
        paid += weights[HELD_I]
    find_rests(columns, piece, rows, work)
    for rotation in range(reach.ROTATIONS):
        for c in range(columns.size):
            rests = work[reach.RESTS, rotation, c]
            turned, kicked = work[reach.TURNED, rotation, c], work[reach.KICKED, rotation, c]
            while rests:
                y, spin = trailing_zeros(rests), NO_SPIN
                rests &= rests - U(1)
                if y >= rows or y + HEIGHTS[piece, rotation] > beam.top:
                    break
                if piece == T and turned >> U(y) & U(1):
                    spin = spin_at(columns, rotation, c, y, kicked >> U(y) & U(1))
                full, terms = terms_after(columns, beam.memo, piece, rotation, c, y, rows, child)
                reward, row, chain, pending = settle(child, full, piece, spin, node, weights)
                value = paid + reward + weights[CHAIN] * chain + weights[IN_A_ROW] * row
                changed = full or pending != node[PENDING]  # by more than the piece
                value += board_value(child, rows, weights) if changed else dot(terms, weights, 0)
                if value <= least:
                    continue
                key = U(hold | following << 4 | row << 8 | pending << 16 | chain << 24)
                for k in range(columns.size):
                    key += child[k] * FACTORS[k]
                key = (key ^ key >> U(32)) * U(0x9E3779B97F4A7C15)
                key ^= key >> U(29)
                at, seen = slot_of(beam, key)
                if seen and beam.best[at] >= value:
                    continue
                beam.best[at] = value
                if beam.counts[0] == beam.values.size:
                    least = shrink(beam)
                    if value <= least:
                        continue
                n = beam.counts[0]
                beam.values[n], beam.keys[n] = value, key
                beam.found[n] = parent << 32 | packed(piece, rotation, c, y, spin, holds)
                beam.counts[0] += 1
    return least


@kernel
def list_children(beam, now, parent, queue, known, least):
    """`grow` by each piece that a node can place."""
    hold, at = beam.nodes[now, parent, HOLD], beam.nodes[now, parent, NEXT]
    prepare(beam.boards[now, parent], beam.rows, beam.memo)
    if at >= known:  # the current piece is not known, but the held one may be
        return grow(beam, now, parent, hold - 1, UNKNOWN, at + 1, 1, least) if 0 < hold < NO_HOLD else least
    piece, other, following = nibble(queue, at), hold - 1, at + 1
    least = grow(beam, now, parent, piece, hold, following, 0, least)
    if hold == 0 and at + 1 < known:
        other, following = nibble(queue, at + 1), at + 2
    if 0 <= other < NO_HOLD - 1 and other != piece:
        least = grow(beam, now, parent, other, piece + 1, following, 1, least)
    return least


@kernel
def write_child(beam, now, then, index, found, queue, known):
    """Write a listed child of a node in set `now` into set `then`."""
    parent, board, node = found >> 32, beam.boards[then, index], beam.nodes[then, index]
    piece, rotation, column, y, spin, holds = parts_of(found)
    before = beam.nodes[now, parent]
    copy(beam.boards[now, parent], board)
    put(board, piece, rotation, column, y)
    settled = settle(board, full_rows(board), piece, spin, before, beam.weights)
    reward, node[COMBO], node[CHAINED], node[PENDING] = settled
    beam.paid[then, index] = beam.paid[now, parent] + reward
    node[HOLD], node[NEXT], node[FIRST] = before[HOLD], before[NEXT] + 1, before[FIRST]
    if holds:
        node[HOLD] = nibble(queue, before[NEXT]) + 1 if before[NEXT] < known else UNKNOWN
        node[NEXT] += before[HOLD] == 0
    if before[FIRST] == NONE:
        node[FIRST], beam.firsts[index] = index, found & 0xFFFFFFFF


@kernel
def expand(beam, now, count, then, width, queue, known):
    """Write the `width` best children of `count` nodes, the best one first; returns their number."""
    least, kept = -np.inf, 0
    begin_level(beam)
    for i in range(count):
        least = list_children(beam, now, i, queue, known, least)
    order = np.argsort(-beam.values[: beam.counts[0]], kind="mergesort")
    begin_level(beam)
    for i in order:
        if kept < width and not slot_of(beam, beam.keys[i])[1]:
            write_child(beam, now, then, kept, beam.found[i], queue, known)
            beam.worth[kept] = beam.values[i]
            kept += 1
    return kept


# -- the search ------------------------------------------------------------------------------------------------------


@kernel
def lead_to(beam, now, count, values):
    """Raise the values of the first placements to those of the nodes that go back to them."""
    for i in range(count):
        first = beam.nodes[now, i, FIRST]
        values[first] = max(values[first], beam.worth[i])


@kernel
def look_ahead(beam, now, count, queue, known, bag):
    """Write the values of the first placements that `count` nodes go back to: means over draws of more pieces."""
    here, total = beam.sums[0], beam.sums[1]
    for i in range(count):
        total[beam.nodes[now, i, FIRST]] = 0.0
    stream = U(0)
    for draw in range(beam.draws):
        line, left, source, n = queue, bag, now, count
        for k in range(beam.ahead):
            stream, bits = next_bits(stream)
            size = popcount(U(left))
            piece = nth_bit(left, below(bits, size) if k else draw % size)
            line |= U(piece) << U(4 * (known + k))
            left = left & ~(1 << piece) if beam.bagged else left
            left = left if left else beam.drawn
        for k in range(beam.ahead):
            then = 1 - now if source != 1 - now else 2
            n = expand(beam, source, n, then, beam.narrow, line, known + k + 1)
            source = then
        # A first placement that no node goes back to counts as the worst node.
        here[:] = beam.worth[n - 1] if n else -FALLEN
        lead_to(beam, source, n, here)
        for i in range(count):
            first = beam.nodes[now, i, FIRST]
            total[first] += here[first] / beam.draws
            here[first] = 0.0  # only once


@kernel
def search(beam, columns, queue, known, bag, hold, combo, chained, pending):
    """Search for the best first placement; returns the number of first placements.

    Afterwards beam.firsts has them, packed, and beam.sums[1] their values.

    - `columns`: uint64[cols], the board.
    - `queue`, `known`: the ids of the known pieces, 4 bits each, the current one lowest, and their number.
    - `bag`: what may come next, ids as bits; 0 for all that are drawn.
    - `hold`: the held piece's id plus one, 0 if none is held, NO_HOLD if none may be.
    - `combo`, `chained`, `pending`: clears in a row, whether a back-to-back chain is on, rows of garbage to come.
    """
    bag = bag if bag else beam.drawn
    if beam.bagged and popcount(U(bag)) == 1:  # the last one of a bag is known
        queue |= U(nth_bit(bag, 0)) << U(4 * known)
        known, bag = known + 1, beam.drawn
    copy(columns, beam.boards[0, 0])
    root, now, count, total = beam.nodes[0, 0], 0, 1, beam.sums[1]
    root[HOLD], root[NEXT], root[FIRST] = hold, 0, NONE
    root[COMBO], root[CHAINED], root[PENDING] = combo, chained, pending
    beam.paid[0, 0] = 0.0
    # A node that holds for the first time uses up two pieces.
    levels, firsts, kept = known - (hold == 0) if beam.draws else known + 1, 0, 0
    for level in range(levels):
        kept = expand(beam, now, count, 1 - now, beam.worth.size, queue, known)
        if kept == 0:
            break
        now, count = 1 - now, kept
        if level == 0:
            firsts = count
            total[:firsts] = beam.worth[:firsts] - FALLEN
    if firsts and kept and beam.draws:
        look_ahead(beam, now, min(count, beam.narrow), queue, known, bag)
    elif firsts:
        lead_to(beam, now, count, total)
    return firsts
