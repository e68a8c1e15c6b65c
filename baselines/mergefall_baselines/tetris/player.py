"""Tetris for `KernelPlayer`: the entry that calls its decision kernels.

Their choice is a placement, packed as in `mergefall.tetris.placements`; their memory is that of `memory.py`.

With hold, the entry lets a kernel decide twice: once on the queue as it is, and once with the other piece that may be
placed in front. The better value counts; ties go to the queue as it is. So that both look equally far, the kernel is
not shown the last piece of the queue, except where the first piece of the queue is the one to place: its rules have
`preview` − 1. A kernel that sees both choices itself belongs to `STATE_FORM`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from mergefall.kernels import kernel, unowned
from mergefall.tetris import game
from mergefall.tetris.placements import ACTION_SHIFT, action_of, at_rest
from mergefall.tetris.rules import Rules
from mergefall.typing import Kernel
from mergefall.words import draw

from mergefall_baselines.entry import entry_kernel
from mergefall_baselines.kernel_player import (
    GO_ON,
    OVER,
    Form,
    episode_loop,
)
from mergefall_baselines.tetris.memory import COUNTS, MEMORY, observe

U = np.uint64


@kernel
def _turn(state, placement):
    (rotation, column, y), bits = at_rest(placement), draw(state)
    if action_of(placement) >= game.actions_of(state):
        bits = game.exchange(state, bits)
    _, over = game.play(state, rotation, column, y, bits)
    return OVER if over else GO_ON


@cache
def _plain(rules: Rules) -> Rules:
    return replace(rules, reward="lines", illegal_limit=1)  # neither changes a decision


@cache
def _ways(rules: Rules) -> tuple[Rules]:
    way = _plain(rules)
    return (replace(way, hold=False, preview=rules.preview - 1) if rules.hold else way,)


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
    ways=lambda rules: (_plain(rules),),
)
