"""`tetris/beam`: a beam search over all places that the known pieces can reach, and beyond them.

A node is a board, the held piece, a place in the queue, the chain of clears and the garbage to come. One level of the
search is one placement: all nodes of a level are expanded by their current piece and, through hold, by the other one;
nodes that are equal merge, and the `width` best ones go on. The value of a node is the sum of the heuristic's terms of
its placements and locks, and of the board, the chain and the held piece that they leave.

Once the pieces are used up, the search goes on from the best nodes with pieces drawn from what is left of the bag,
several times. The value of a first placement is the mean, over these draws, of the best node that it leads to.
"""

from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from mergefall.checks import integer
from mergefall.interrupt import stopped
from mergefall.kernels import kernel, unowned
from mergefall.tetris import game, reach
from mergefall.tetris.field import copy, full_rows, highest_in, put
from mergefall.tetris.heuristics import heuristic as make_heuristic
from mergefall.tetris.heuristics.base import Recipe
from mergefall.tetris.keys import game as keys
from mergefall.tetris.pieces import HEIGHTS, MASKS, WIDTHS
from mergefall.tetris.placements import ABOVE, action_of
from mergefall.tetris.rules import Rules
from mergefall.typing import Floats, Ints, Kernel, Words
from mergefall.weighted import dot
from mergefall.words import below, next_bits, nth_bit, popcount, trailing_zeros

from mergefall_baselines.kernel_player import KernelPlayer
from mergefall_baselines.tetris.player import BAG, IDS, STATE_FORM, bag_after, chances_of, observe

U = np.uint64
# In HOLD: there is none; a piece that came after the known ones. 0: empty, else an id plus one.
NO_HOLD, UNKNOWN = game.KINDS + 1, game.KINDS + 2
FACTORS = np.random.default_rng(1).integers(0, 1 << 64, 16, U) | U(1)  # of the columns in a node's key
WIDEST = 200_000
PROBES = 4
CANDIDATES = 8  # for each node that stays, how many are listed before the worst of them are left out
AHEAD = 3  # placements after the known pieces
NARROW = 4  # the search by drawn pieces is so many times narrower
FALLEN = 1e6  # what a first placement loses that no node of the last level goes back to
MOST_IN_A_ROW, MOST_GARBAGE = 99, 63  # of the root; more do not count

# Fields (lowest bit, bits) of a node's last word. FIRST: the action of its first placement plus one, 0 at the root.
HOLD, NEXT, COMBO, PENDING, CHAINED, FIRST = (0, 4), (4, 4), (8, 8), (16, 8), (24, 1), (32, 16)


class Nodes(NamedTuple):
    words: Words  # [n, cols + 1], the board, and the fields above
    paid: Floats  # [n], the terms of the placements and locks on the way to a node
    values: Floats  # [n]


class Beam(NamedTuple):
    """The memory of a search."""

    rows: int
    top: int  # rows that a piece at rest may not rise above
    weights: Floats  # of the heuristic
    draws: int  # of the pieces after the known ones, for the mean
    kept: Nodes  # [width], the best nodes of a level, the best one first
    drawn: Nodes  # [width / NARROW], the same for levels by drawn pieces
    listed: Nodes  # [candidates + 1], the children of a level
    keys: Words  # [candidates]
    table: Words  # [slots], the keys of this level; the lowest bits say which level
    best: Floats  # [slots], the highest value of a key
    counts: Ints  # [2], candidates of this level; the level's number modulo slots
    work: Words  # of `mergefall.tetris.reach`


def new_nodes(count: int, cols: int) -> Nodes:
    return Nodes(np.zeros((count, cols + 1), U), np.zeros(count), np.zeros(count))


# -- one placement ---------------------------------------------------------------------------------------------------


@kernel
def find_rests(columns, piece, rows, work):
    """`reach.search`, faster where all places are open to the sky and no T can spin: one rest per column then."""
    rests, search = work[reach.RESTS], highest_in(columns) + 3 > rows
    reach.write_free(columns, piece, work[reach.FREE])
    for rotation in range(reach.ROTATIONS):
        for c in range(columns.size):
            blocked = ~work[reach.FREE, rotation, c]
            rest = blocked + U(1)
            rests[rotation, c], work[reach.TURNED, rotation, c] = rest, U(0)
            search |= blocked & rest != 0
            if piece == keys.T and rest:
                search |= keys.spin_of(columns, keys.T, rotation, c, trailing_zeros(rest), keys.TURNED) != keys.NO_SPIN
    if search:
        reach.search(columns, piece, rows, work)


@kernel(forceinline=True)
def settle(columns, full, spin, row, chained, pending):
    """Clear the full rows after a piece: (lines, attack, clears in a row, whether a chain is on, garbage to come).

    If there are none, the garbage to come rises; its hole, which nobody knows, is where the bottom row has one now.
    """
    lines, attack, row, chained, _ = keys.clear_full(columns, full, spin, row, chained)
    if lines == 0 and pending:
        hole, raised = 0, (U(1) << U(pending)) - U(1)
        while hole < columns.size - 1 and columns[hole] & U(1):
            hole += 1
        for c in range(columns.size):
            columns[c] = columns[c] << U(pending) | (U(0) if c == hole else raised)
        pending = 0
    return lines, attack, row, chained, max(0, pending - attack)


def judge_kernel(recipe: Recipe) -> Kernel:
    """The kernel that clears full rows after a piece and values the node, by the heuristic of a recipe."""
    of_placement, of_last, of_board, of_lock, of_chain, of_hold = recipe.terms
    first, first_last, first_board, first_lock, first_chain, first_hold = recipe.firsts
    before_clearing = recipe.before_clearing

    @kernel(forceinline=True)
    def judge(board, piece, rotation, column, y, rows, spin, hold, row, chained, pending, paid, weights):
        """(The terms of the placement and the lock, the node's value, and the last three of `settle`)."""
        full, own, on_board = full_rows(board), 0, 0.0
        if before_clearing:
            on_board = dot(of_board(board, rows, weights), weights, first_board)
        for i in range(WIDTHS[piece, rotation]):
            own += popcount(MASKS[piece, rotation, i] << U(y) & full)
        lines, attack, row, chained, pending = settle(board, full, spin, row, chained, pending)
        reward = dot(of_lock(piece, spin, lines, attack), weights, first_lock)
        reward = dot(of_placement(piece, rotation, column, y, lines, own, rows), weights, first, reward)
        value = paid + dot(of_hold(hold), weights, first_hold) + reward
        value = dot(of_chain(chained, row), weights, first_chain, value)
        value = dot(of_last(piece, rotation, column, y, rows), weights, first_last, value)
        if not before_clearing:
            on_board = dot(of_board(board, rows, weights), weights, first_board)
        return reward, value + on_board, row, chained, pending

    return judge


# -- one level -------------------------------------------------------------------------------------------------------


@kernel
def begin_level(beam):
    """Empty the table and the list of candidates."""
    beam.counts[0] = 0
    beam.counts[1] += 1
    if beam.counts[1] == beam.table.size:
        beam.counts[1] = 1
        beam.table[:] = U(0)


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


@kernel(inline="always")
def get(word, field):
    return np.int64(word >> U(field[0])) & ((1 << field[1]) - 1)


@kernel
def fields_of(hold, following, row, pending, chained):
    return U(hold | following << NEXT[0] | row << COMBO[0] | pending << PENDING[0] | chained << CHAINED[0])


@kernel
def write_node(source, i, target, j):
    copy(source.words[i], target.words[j])
    target.paid[j], target.values[j] = source.paid[i], source.values[i]


@kernel
def shrink(beam):
    """Keep `width` of the best candidates; returns the lowest of their values."""
    listed, count, width, kept = beam.listed, beam.counts[0], beam.kept.paid.size, 0
    least = np.partition(listed.values[:count], count - width)[count - width]
    for i in range(count):
        if listed.values[i] >= least and kept < width:
            write_node(listed, i, listed, kept)
            beam.keys[kept] = beam.keys[i]
            kept += 1
    beam.counts[0] = kept
    return least


def grow_kernel(judge: Kernel) -> Kernel:
    @kernel
    def grow(beam, node, paid, piece, hold, following, held, least):
        """List the children of a node by one piece that are worth more than `least`; returns the new `least`.

        - `hold`, `following`: what the children hold, and their place in the queue.
        - `held`: whether the piece comes by hold.
        """
        listed, weights, work, rows = beam.listed, beam.weights, beam.work, beam.rows
        cols, fields = node.size - 1, node[-1]
        find_rests(node[:cols], piece, rows, work)
        for rotation in range(reach.ROTATIONS):
            for c in range(cols):
                rests = work[reach.RESTS, rotation, c]
                turned, kicked = work[reach.TURNED, rotation, c], work[reach.KICKED, rotation, c]
                while rests:
                    y = trailing_zeros(rests)
                    rests &= rests - U(1)
                    if y >= rows or y + HEIGHTS[piece, rotation] > beam.top:
                        break
                    turn = np.int64(turned >> U(y) & U(1)) + np.int64(kicked >> U(y) & U(1))
                    spin = keys.spin_of(node[:cols], piece, rotation, c, y, turn)
                    child = listed.words[beam.counts[0]]
                    copy(node, child)
                    board = child[:cols]
                    put(board, piece, rotation, c, y)
                    row, chained, pending = get(fields, COMBO), get(fields, CHAINED), get(fields, PENDING)
                    reward, value, row, chained, pending = judge(
                        board, piece, rotation, c, y, rows, spin, hold, row, chained, pending, paid, weights
                    )
                    if value <= least:
                        continue
                    key = new = fields_of(hold, following, row, pending, chained)
                    for k in range(cols):
                        key += board[k] * FACTORS[k]
                    key = (key ^ key >> U(32)) * U(0x9E3779B97F4A7C15)
                    key ^= key >> U(29)
                    at, seen = slot_of(beam, key)
                    if seen and beam.best[at] >= value:
                        continue
                    beam.best[at] = value
                    if beam.counts[0] == beam.keys.size:
                        least = shrink(beam)
                        if value <= least:
                            continue
                        copy(child, listed.words[beam.counts[0]])
                    n, first = beam.counts[0], get(fields, FIRST)
                    if first == 0:
                        first = 1 + ((held * reach.ROTATIONS + rotation) * cols + c) * (rows + ABOVE) + y
                    listed.words[n, cols] = new | U(first) << U(FIRST[0])
                    listed.paid[n], listed.values[n], beam.keys[n] = paid + reward, value, key
                    beam.counts[0] += 1
        return least

    return grow


def expand_kernel(grow: Kernel) -> Kernel:
    @kernel
    def expand(beam, source, count, target, queue, known):
        """Write the best children of `count` nodes into `target`, the best one first; returns their number."""
        least, kept = -np.inf, 0
        begin_level(beam)
        for i in range(count):
            if stopped():
                break
            node, paid = source.words[i], source.paid[i]
            hold, at = get(node[-1], HOLD), get(node[-1], NEXT)
            piece = game.nibble(queue, at) if at < known else UNKNOWN - 1
            other, following = hold - 1, at + 1
            if hold == 0 and following < known:
                other, following = game.nibble(queue, following), at + 2
            if piece < NO_HOLD - 1:
                least = grow(beam, node, paid, piece, hold, at + 1, 0, least)
            if 0 <= other < NO_HOLD - 1 and other != piece:
                least = grow(beam, node, paid, other, piece + 1, following, 1, least)
        order = np.argsort(-beam.listed.values[: beam.counts[0]], kind="mergesort")
        begin_level(beam)
        for i in order:
            if kept < target.paid.size and not slot_of(beam, beam.keys[i])[1]:
                write_node(beam.listed, i, target, kept)
                kept += 1
        return kept

    return expand


# -- the search ------------------------------------------------------------------------------------------------------


@kernel
def lead_to(nodes, count, values):
    """Raise the values of the first placements to those of the nodes that go back to them."""
    for i in range(count):
        first = get(nodes.words[i, -1], FIRST) - 1
        values[first] = max(values[first], nodes.values[i])


@cache
def decide_kernel(recipe: Recipe) -> Kernel:
    """The decision kernel of searches by the heuristics of a recipe; its settings are a `Beam` and placements int64[n].

    It writes -inf for placements that end the game.
    """
    expand = expand_kernel(grow_kernel(judge_kernel(recipe)))

    @kernel
    def look_ahead(beam, count, queue, known, bag, drawn, values):
        """Write the values of the first placements that `count` nodes go back to: means over draws of more pieces."""
        sums, here, stream = np.zeros(values.size), np.empty(values.size), U(0)
        for draw in range(beam.draws):
            if stopped():
                break
            line, left, nodes, n = queue, bag if bag else drawn, beam.kept, count
            for k in range(AHEAD):
                stream, bits = next_bits(stream)
                size = popcount(U(left))
                piece = nth_bit(left, below(bits, size) if k else draw % size)
                line |= U(piece) << U(4 * (known + k))
                left = bag_after(piece, left, drawn) if bag else left
                n = expand(beam, nodes, n, beam.drawn, line, known + k + 1)
                nodes = beam.drawn
            # A first placement that no node goes back to counts as the worst node.
            here[:] = nodes.values[n - 1] if n else -FALLEN
            lead_to(nodes, n, here)
            sums += here / beam.draws
        for i in range(count):
            first = get(beam.kept.words[i, -1], FIRST) - 1
            values[first] = sums[first]

    @kernel
    def decide(state, memory, values, settings):
        beam, placements = unowned(settings)
        pieces, randomizer, preview, _, _ = game.settings_of(state)
        queue, known, drawn, nodes = state[game.QUEUE], 1 + preview, game.DRAWN[pieces], beam.kept
        hold, choice, bag = np.int64(state[game.HOLD]), -1, 0  # what may come next, ids as bits; 0: all that are drawn
        observe(memory, queue, known, hold)
        hold = hold if game.choices_of(state) == 2 else NO_HOLD
        if randomizer == game.BAG7:
            bag = chances_of(memory, BAG, drawn, np.empty(IDS))
        if popcount(U(bag)) == 1:  # the last one of a bag is known
            queue |= U(nth_bit(bag, 0)) << U(4 * known)
            known += 1
            bag = drawn
        row = min(np.int64(state[game.COMBO]), MOST_IN_A_ROW)
        pending = min(np.int64(state[game.PENDING]), MOST_GARBAGE)
        copy(game.columns_in(state), nodes.words[0])
        nodes.words[0, -1] = fields_of(hold, 0, row, pending, np.int64(state[game.BACK_TO_BACK]))
        nodes.paid[0] = 0.0
        values[:] = -np.inf
        count = more = expand(beam, nodes, 1, nodes, queue, known)
        lead_to(nodes, count, values)
        values -= FALLEN
        # A node that holds for the first time uses up two pieces.
        for _ in range(known - (hold == 0) - 1 if beam.draws else known):
            more = expand(beam, nodes, count, nodes, queue, known)
            count = more if more else count
        if more and beam.draws:
            look_ahead(beam, min(count, beam.drawn.paid.size), queue, known, bag, drawn, values)
        else:
            lead_to(nodes, count, values)
        for placement in placements[: game.list_legal(state, beam.rows, placements)]:  # the first one if all is lost
            if choice < 0 or values[action_of(placement)] > values[action_of(choice)]:
                choice = placement
        return choice

    return decide


class BeamSearch(KernelPlayer):
    """Beam search: the placement that leads to the best of the boards that the known pieces, and then others, make.

    The search places one piece after the other, the held one too, at all places that can be reached, spins of a T
    included. After each placement it keeps the `width` nodes with the highest values; nodes that are equal count once.
    The value of a node is the sum of the heuristic's terms of its placements and locks (lines sent, lines cleared …),
    and of the board, the chain and the held piece that they leave. After the known pieces the best quarter of the nodes
    goes on with three more pieces, drawn from the bag, `draws` times.

    The value of an action is the mean, over the draws, of the best node that it leads to; without draws, the value of
    that node. An action from which no node of the last level comes has the value of the board right after it, less
    10⁶; a fatal one has −inf. Ties go to the lowest action. If all are fatal, the player takes the first legal one.

    Args:
        heuristic: a name, a mapping of a name and weights, or a function of a board. Default: ``attack``.
        width: int from 1 to 200,000, nodes that stay after each placement. Each takes up to 3 KiB. Default: 400.
        draws: int ≥ 0, draws of the pieces after the known ones. Default: 8.
        rules: the environment's arguments `cols`, `rows`, `pieces`, `randomizer`, `preview`, `placements`, `hold`,
            `overflow`. Default: those of the environment, or what the observation shows. Its games raise ValueError
            unless placements are ``reachable``.

    The draws are the same for every decision, so decisions depend on the observation and on the pieces seen alone.

    Example:
        >>> from mergefall_baselines import make
        >>> player = make("tetris/beam", width=20, draws=0)
        >>> game = {"placements": "reachable", "hold": True, "preview": 5, "randomizer": "bag7"}
        >>> player.play("mergefall/Tetris-v0", seed=0, env_kwargs=game, max_episode_steps=50).figures["pieces"]
        50
    """

    form = STATE_FORM
    defaults = MappingProxyType({"placements": "reachable", "hold": True, "randomizer": "bag7", "preview": 5})
    plays = defaults

    def __init__(self, heuristic: Any = "attack", width: int = 400, draws: int = 8, **rules: Any) -> None:
        super().__init__(**rules)
        self.heuristic = make_heuristic(heuristic)
        self.width, self.draws = integer("width", width, 1, WIDEST), integer("draws", draws, 0)

    remembers = KernelPlayer.counts_pieces  # pyright: ignore[reportAssignmentType]

    def _make_decider(self, way: Rules, exact: bool) -> tuple[Kernel, Any]:
        if not way.reachable:
            raise ValueError(f"placements are {way.placements!r}; tetris/beam plays 'reachable'")
        self.heuristic.check_size(way.rows, way.cols)
        candidates = CANDIDATES * max(self.width, 512)
        slots = CANDIDATES << (candidates - 1).bit_length()
        beam = Beam(
            rows=way.rows,
            top=way.rows if way.overflow == "strict" else way.rows + keys.STORAGE,
            weights=self.heuristic.weight_vector(),
            draws=self.draws,
            kept=new_nodes(self.width, way.cols),
            drawn=new_nodes(max(1, self.width // NARROW), way.cols),
            listed=new_nodes(candidates + 1, way.cols),
            keys=np.zeros(candidates, np.uint64),
            table=np.zeros(slots, np.uint64),
            best=np.zeros(slots),
            counts=np.zeros(2, np.int64),
            work=reach.new_work(way.cols),
        )
        return decide_kernel(self.heuristic.recipe), (beam, np.empty(way.n_actions, np.int64))
