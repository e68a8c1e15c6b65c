"""Tetris for `KernelPlayer`: how observations become states, and the entry that calls its decision kernels.

Their choice is a placement, packed as in `mergefall.tetris.placements`; their memory is that of `memory.py`.

With hold, the entry lets a kernel decide twice: once on the queue as it is, and once with the other piece that may be
placed in front. The better value counts; ties go to the queue as it is. So that both look equally far, the kernel is
not shown the last piece of the queue, except where the first piece of the queue is the one to place: its rules have
`preview` − 1. A kernel that sees both choices itself belongs to `STATE_FORM`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from mergefall.checks import array
from mergefall.kernels import kernel, unowned
from mergefall.tetris import game
from mergefall.tetris.field import columns_of
from mergefall.tetris.keys.rules import STATUS
from mergefall.tetris.placements import ACTION_SHIFT, action_of, at_rest
from mergefall.tetris.rules import PieceRules, Rules
from mergefall.typing import Array, Kernel, Observation
from mergefall.words import draw
from numba import types  # pyright: ignore[reportPrivateImportUsage]
from numpy.typing import NDArray

from mergefall_baselines.entry import call, settings_at
from mergefall_baselines.kernel_player import (
    FORMS,
    GO_ON,
    OVER,
    UNDECIDED,
    Form,
    episode_loop,
    has_nonsense,
)
from mergefall_baselines.player import check_values
from mergefall_baselines.tetris.memory import COUNTS, MEMORY, observe

U = np.uint64
FIGURES = {"score": game.SCORE, "lines": game.LINES, "pieces": game.PIECES}
_HOLDS = {
    "board": "cells of 0 and 1",
    "piece": "a piece id",
    "queue": "piece ids",
    "hold": "a piece id",
    "place": "a rotation, a column and a row",
    "status": "integers",
}


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


def reader(needed: tuple[str, ...], above: int = 0) -> Callable[..., tuple[dict[str, Array], dict[str, Any], bool]]:
    """`Form.read` of a game whose observations have the parts `needed`, and `above` rows of the board above the field.

    A `queue` and a `hold` may be there. In a match, players look at their own board alone.
    """

    def read(name: str, observation: Observation) -> tuple[dict[str, Array], dict[str, Any], bool]:
        known = {*needed, "queue", "hold", "opponent"}
        if not isinstance(observation, Mapping) or not set(needed) <= set(observation) <= known:
            expected = f"a mapping with {', '.join(needed)} and perhaps queue, hold"
            raise ValueError(f"{name} got {observation!r}; expected {expected}")
        parts = {n: array(f"{name}: {n}", value, _HOLDS[n]) for n, value in observation.items() if n != "opponent"}
        board, single = parts["board"], parts["board"].ndim == 2
        shape = () if single else board.shape[:1]
        queue = parts.setdefault("queue", np.zeros((*shape, 0), dtype=np.int64))
        lengths = {
            "board": board.shape[-2:],
            "queue": queue.shape[-1:] or (0,),
            "place": (3,),
            "status": (len(STATUS),),
        }
        shapes = {part: value.shape for part, value in parts.items()}
        if board.ndim not in (2, 3) or shapes != {part: (*shape, *lengths.get(part, ())) for part in parts}:
            raise ValueError(f"{name} got an observation of shapes {shapes}; expected one observation or a batch")
        for part, value in parts.items():
            if value.dtype.kind not in "iub" or (part == "board" and (value.astype(np.uint64) > 1).any()):
                held = ", ".join(np.unique(value.astype(str))[:8])
                raise ValueError(f"{name} got a {part} of {value.dtype} with {held}; expected {_HOLDS[part]}")
        shown = {"cols": board.shape[-1], "rows": board.shape[-2] - above, "preview": queue.shape[-1]}
        return parts, shown | {"hold": "hold" in parts}, single

    return read


def states_of(name: str, parts: dict[str, Array], rules: PieceRules) -> NDArray[np.uint64]:
    """States uint64[n, words] that show the boards, the queues and the held pieces of observations; else they are 0."""
    ids = np.concatenate([parts["piece"][..., None], parts["queue"]], axis=-1).astype(np.int64)
    ids = ids.reshape(-1, 1 + rules.preview)
    if (wrong := ids[(ids[..., None] != rules.piece_set.drawn).all(axis=-1)]).size:
        raise ValueError(f"{name} got piece {wrong[0]}; expected {rules.pieces_text()}")
    states = np.zeros((len(ids), game.COLUMNS + rules.cols), dtype=np.uint64)
    for word, value in rules.rules_words().items():
        states[:, word] = value
    states[:, game.QUEUE] = (ids << game.NIBBLE_BITS * np.arange(ids.shape[1])).sum(axis=1)
    states[:, game.COLUMNS :] = columns_of(parts["board"])
    if "hold" in parts:
        held = parts["hold"].reshape(-1).astype(np.int64)
        if (wrong := held[~np.isin(held, (*rules.piece_set.drawn, rules.n_pieces))]).size:
            raise ValueError(
                f"{name} got hold {wrong[0]}; expected {rules.n_pieces} for none, or {rules.pieces_text()}"
            )
        states[:, game.HOLD] = np.where(held == rules.n_pieces, 0, held + 1)
    return states


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


FORM = FORMS["tetris"] = Form(
    rules=Rules,
    memory_words=MEMORY,
    start=game.start,
    loop=episode_loop(_turn, ACTION_SHIFT),
    shift=ACTION_SHIFT,
    entry=lambda signature, rules: _entry(signature),
    ways=_ways,
    read=reader(("board", "piece")),
    states=states_of,
    settle=lambda name, values, state: check_values(name, values),
    figures=lambda state: {name: int(state[word]) for name, word in FIGURES.items()},
)
STATE_FORM = replace(  # without the memory and the two decisions of the entry
    FORM,
    entry=lambda signature, rules: _state_entry(signature),
    ways=lambda rules: (_plain(rules),),
)
