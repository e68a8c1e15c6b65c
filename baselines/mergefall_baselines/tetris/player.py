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
from numba import types  # pyright: ignore[reportPrivateImportUsage]

from mergefall_baselines.entry import call, settings_at
from mergefall_baselines.kernel_player import (
    GO_ON,
    OVER,
    UNDECIDED,
    Form,
    episode_loop,
    has_nonsense,
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
    decide_type, settings_type = types.FunctionType(signature), types.Tuple((types.uint64, signature.args[-1]))

    @kernel
    def entry(state, memory, values, settings):
        state, memory, values = unowned((state, memory, values))
        queue, last = state[game.QUEUE], game.settings_of(state)[2]
        observe(memory, queue, 1 + last, np.int64(state[game.HOLD]))
        decide, own = settings_at(settings, settings_type)
        if game.choices_of(state) == 1:
            placement = call(decide, decide_type, (state, memory, values, own))
            return UNDECIDED if has_nonsense(values) else placement
        n, unseen = values.size // 2, COUNTS + game.queued(state, last)
        others = queue >> U(4)
        memory[unseen] -= U(1)
        if state[game.HOLD]:
            others = (others & U((1 << 4 * (last - 1)) - 1)) << U(4) | state[game.HOLD] - U(1)
        state[game.QUEUE] = queue & U((1 << 4 * last) - 1)
        placement = call(decide, decide_type, (state, memory, values[:n], own))
        if state[game.HOLD] == 0:
            memory[unseen] += U(1)
        state[game.QUEUE] = others
        other = call(decide, decide_type, (state, memory, values[n:], own))
        state[game.QUEUE] = queue
        if state[game.HOLD]:
            memory[unseen] += U(1)
        if has_nonsense(values):
            return UNDECIDED
        worth, best = values[n + action_of(other)], values[action_of(placement)]
        return other + (n << ACTION_SHIFT) if worth > best else placement

    return entry


@cache
def _state_entry(signature: Any) -> Kernel:
    decide_type, settings_type = types.FunctionType(signature), types.Tuple((types.uint64, signature.args[-1]))

    @kernel
    def entry(state, memory, values, settings):
        state, memory, values = unowned((state, memory, values))
        decide, own = settings_at(settings, settings_type)
        action = call(decide, decide_type, (state, memory, values, own))
        return UNDECIDED - action if has_nonsense(values) else action

    return entry


FORM = Form(
    rules=Rules,
    memory_words=MEMORY,
    loop=episode_loop(_turn, ACTION_SHIFT),
    shift=ACTION_SHIFT,
    entry=lambda signature, rules: _entry(signature),
    ways=_ways,
)
STATE_FORM = replace(  # without the memory and the two decisions of the entry
    FORM,
    entry=lambda signature, rules: _state_entry(signature),
    ways=lambda rules: (_plain(rules),),
)
