"""Tetris for `KernelPlayer`: what players remember of the pieces, and the entry that calls their decision kernels.

Their choice is a placement, packed as in `mergefall.tetris.placements`. Their memory is uint64[MEMORY] for each game:
the player's own random stream, then how often each piece id has come into view in this episode, and whether a piece was
held at the last decision. From the counts follow the pieces left in a bag and the frequencies of a hidden distribution.

The chances of the next piece are one integer and one array. If `bag` is not 0, its bits are the ids that come next with
equal probability. If it is 0, `weights` float64[IDS] are the probabilities of the ids.

With hold, the entry lets a kernel decide twice: once on the queue as it is, and once with the other piece that may be
placed in front. The better value counts; ties go to the queue as it is. So that both look equally far, the kernel is
not shown the last piece of the queue, except where the first piece of the queue is the one to place: its rules have
`preview` − 1. A kernel that sees both choices itself belongs to `STATE_FORM`.
"""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from mergefall.kernels import kernel, unowned
from mergefall.tetris import game
from mergefall.tetris.placements import ACTION_SHIFT, action_of, at_rest
from mergefall.tetris.rules import Rules
from mergefall.typing import Kernel
from mergefall.words import below, draw, nth_bit, popcount

from mergefall_baselines.entry import entry_kernel
from mergefall_baselines.kernel_player import GO_ON, OVER, Form, episode_loop

U = np.uint64
COUNTS, IDS = 1, game.KINDS
HELD = COUNTS + IDS
MEMORY = HELD + 1
OF_RANDOMIZER = {"uniform": "uniform", "bag7": "bag", "hidden": "counted"}
DISTRIBUTIONS = tuple(OF_RANDOMIZER.values())
UNIFORM, BAG, COUNTED = range(3)


def drawn_by(distribution: str | None, rules: Rules) -> tuple[int, int]:
    """(the ids that a game draws, as bits; the index in `DISTRIBUTIONS` of the option `distribution`)."""
    ids = sum(1 << id for id in rules.piece_set.drawn)
    return ids, DISTRIBUTIONS.index(distribution or OF_RANDOMIZER[rules.randomizer])


@kernel
def observe(memory, queue, known, hold):
    """Count the pieces that this decision brings into view.

    - A new game: all `known` ones of the queue, and the held one; `hold` is its id plus one, 0 for none.
    - Later: the last one, or the last two if the move before was the first to hold a piece.
    """
    seen = U(0)
    for i in range(IDS):
        seen |= memory[COUNTS + i]
    begins = hold > 0 and memory[HELD] == 0
    if begins and not seen:
        memory[COUNTS + np.int64(hold) - 1] += U(1)
    for i in range(known - 1 - begins if seen else 0, known):
        memory[COUNTS + (np.int64(queue >> U(4 * i)) & 15)] += U(1)
    memory[HELD] = U(hold > 0)


@kernel
def chances_of(memory, distribution, drawn, weights):
    """Write `weights` and return `bag`, for a game that draws the ids `drawn` (bits).

    A bag holds each id once, so what is left of it are the ids seen least often. Under ``counted``, an id never seen
    has probability 0.
    """
    least, total = ~U(0), 0.0
    for i in range(IDS):
        if drawn >> i & 1:
            least = min(least, memory[COUNTS + i])
            total += np.float64(memory[COUNTS + i])
    bag = 0
    for i in range(IDS):
        weights[i] = 0.0
        if drawn >> i & 1:
            if distribution == COUNTED:
                weights[i] = np.float64(memory[COUNTS + i]) / max(total, 1.0)
            elif distribution == UNIFORM:
                weights[i] = 1.0 / popcount(U(drawn))
            elif memory[COUNTS + i] == least:
                bag |= 1 << i
    return bag


@kernel
def bag_after(id, bag, drawn):
    """The bag after a piece id was drawn from it: a full one if it was the last; 0 if there is no bag."""
    if bag == 0:
        return 0
    left = bag & ~(1 << id)
    return left if left else drawn


@kernel
def piece_from(bits, bag, weights):
    """The piece id that 64 random bits draw from the chances."""
    if bag:
        return nth_bit(bag, below(bits, popcount(U(bag))))
    point = np.float64(bits >> U(11)) / 2.0**53
    last = 0
    for id in range(IDS):
        if weights[id] > 0.0:
            last = id
            point -= weights[id]
            if point < 0.0:
                break
    return last


# -- the form ----------------------------------------------------------------------------------------------------------


@kernel
def _turn(state, placement):
    (rotation, column, y), bits = at_rest(placement), draw(state)
    if action_of(placement) >= game.actions_of(state):
        bits = game.exchange(state, bits)
    _, over = game.play(state, rotation, column, y, bits)
    return OVER if over else GO_ON


@cache
def _ways(rules: Rules) -> tuple[Rules]:
    return (replace(rules, hold=False, preview=rules.preview - 1) if rules.hold else rules,)


@cache
def _entry(signature: Any) -> Kernel:
    decide = entry_kernel(signature)

    @kernel
    def entry(state, memory, values, settings):
        state, memory, values = unowned((state, memory, values))
        queue, last, hold = state[game.QUEUE], game.settings_of(state)[2], state[game.HOLD]
        observe(memory, queue, 1 + last, np.int64(hold))
        if game.choices_of(state) == 1:
            return decide(state, memory, values, settings)
        n, unseen, others = values.size // 2, COUNTS + game.queued(state, last), queue >> U(4)
        if hold:
            others = (others & U((1 << 4 * (last - 1)) - 1)) << U(4) | hold - U(1)
        memory[unseen] -= U(1)
        state[game.QUEUE] = queue & U((1 << 4 * last) - 1)
        placement = decide(state, memory, values[:n], settings)
        memory[unseen] += U(hold == 0)
        state[game.QUEUE] = others
        other = decide(state, memory, values[n:], settings)
        memory[unseen] += U(hold > 0)
        state[game.QUEUE] = queue
        worth, best = values[n + action_of(other)], values[action_of(placement)]
        return other + (n << ACTION_SHIFT) if worth > best else placement

    return entry


FORM = Form(
    rules=Rules,
    memory_words=MEMORY,
    loop=episode_loop(_turn, ACTION_SHIFT, True),
    shift=ACTION_SHIFT,
    entry=lambda signature, rules: _entry(signature),
    ways=_ways,
)
STATE_FORM = replace(  # without the memory and the two decisions of the entry
    FORM,
    entry=lambda signature, rules: entry_kernel(signature),
    ways=lambda rules: (rules,),
)
