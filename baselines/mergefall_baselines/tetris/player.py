"""Tetris for `KernelPlayer`: how observations become states, and how a decision kernel sees them.

A player brings a decision kernel for the rules that it plays by:

    decide(columns, queue, memory, values, settings) -> placement

- `columns`: uint64[cols], the board (`mergefall.tetris.field`).
- `queue`: uint64, the ids of the known pieces, 4 bits each, the current piece lowest.
- `memory`: uint64[9], what the player remembers (`memory.py`).
- `values`: float64[n_actions], filled by the kernel; -inf where illegal.
- `settings`: whatever the kernel needs: numbers, booleans, contiguous arrays, None, or tuples of them.
- `placement`: the chosen one, packed as in `mergefall.tetris.placements`.

With hold, the kernel decides twice: once on the queue as it is, and once with the other piece that may be placed in
front. The better value counts; ties go to the queue as it is. So that both look equally far, it is not shown the last
piece of the queue, except where the first piece of the queue is the one to place: its rules have `preview` − 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from mergefall.checks import array
from mergefall.games import GAMES
from mergefall.kernels import kernel, unowned
from mergefall.tetris import game
from mergefall.tetris.field import columns_of
from mergefall.tetris.placements import ACTION_SHIFT, action_of, at_rest
from mergefall.tetris.rules import Rules
from mergefall.typing import Array, Kernel, Observation
from mergefall.words import draw
from numba import types  # pyright: ignore[reportPrivateImportUsage]
from numpy.typing import NDArray

from mergefall_baselines.entry import VALUES, WORDS, call, settings_at
from mergefall_baselines.kernel_player import (
    FORMS,
    GO_ON,
    OVER,
    UNDECIDED,
    Form,
    KernelPlayer,
    episode_loop,
    has_nonsense,
)
from mergefall_baselines.player import check_values
from mergefall_baselines.tetris.memory import COUNTS, MEMORY, OF_RANDOMIZER, observe

U = np.uint64
FIGURES = {"score": game.SCORE, "lines": game.LINES, "pieces": game.PIECES}
_HOLDS = {"board": "cells of 0 and 1", "piece": "a piece id", "queue": "piece ids", "hold": "a piece id"}


@kernel
def _turn(state, placement):
    (rotation, column, y), bits = at_rest(placement), draw(state)
    if action_of(placement) >= game.actions_of(state):
        bits = game.exchange(state, bits)
    _, over = game.play(state, rotation, column, y, bits)
    return OVER if over else GO_ON


@cache
def _ways(rules: Rules) -> tuple[Rules]:
    way = replace(rules, reward="lines", illegal_limit=1)  # neither changes a decision
    return (replace(way, hold=False, preview=rules.preview - 1) if rules.hold else way,)


@cache
def _entry(signature: Any) -> Kernel:
    decide_type, settings_type = types.FunctionType(signature), types.Tuple((types.uint64, signature.args[-1]))

    @kernel
    def entry(state, memory, values, settings):
        state, memory, values = unowned((state, memory, values))
        columns, queue, last = game.columns_in(state), state[game.QUEUE], game.settings_of(state)[2]
        observe(memory, queue, 1 + last, np.int64(state[game.HOLD]))
        decide, own = settings_at(settings, settings_type)
        if game.choices_of(state) == 1:
            placement = call(decide, decide_type, (columns, queue, memory, values, own))
            return UNDECIDED if has_nonsense(values) else placement
        n, unseen = values.size // 2, COUNTS + game.queued(state, last)
        others = queue >> U(4)
        memory[unseen] -= U(1)
        if state[game.HOLD]:
            others = (others & U((1 << 4 * (last - 1)) - 1)) << U(4) | state[game.HOLD] - U(1)
        known = queue & U((1 << 4 * last) - 1)
        placement = call(decide, decide_type, (columns, known, memory, values[:n], own))
        if state[game.HOLD] == 0:
            memory[unseen] += U(1)
        other = call(decide, decide_type, (columns, others, memory, values[n:], own))
        if state[game.HOLD]:
            memory[unseen] += U(1)
        if has_nonsense(values):
            return UNDECIDED
        worth, best = values[n + action_of(other)], values[action_of(placement)]
        return other + (n << ACTION_SHIFT) if worth > best else placement

    return entry


def _read(name: str, observation: Observation) -> tuple[dict[str, Array], dict[str, int], bool]:
    """(the parts of an observation, the rules that it shows, whether it is single); raises ValueError for another."""
    if not isinstance(observation, Mapping) or not {"board", "piece"} <= set(observation) <= set(_HOLDS):
        raise ValueError(f"{name} got {observation!r}; expected a mapping with board, piece and perhaps queue, hold")
    parts = {part: array(f"{name}: {part}", value, _HOLDS[part]) for part, value in observation.items()}
    board, single = parts["board"], parts["board"].ndim == 2
    shape = () if single else board.shape[:1]
    following = parts.setdefault("queue", np.zeros((*shape, 0), dtype=np.int64))
    alone = [parts[part].shape for part in ("piece", "hold") if part in parts]
    if board.ndim not in (2, 3) or alone != [shape] * len(alone) or following.shape[:-1] != shape:
        shapes = {part: value.shape for part, value in parts.items()}
        raise ValueError(f"{name} got an observation of shapes {shapes}; expected one observation or a batch")
    for part, value in parts.items():
        if value.dtype.kind not in "iub" or (part == "board" and (value.astype(np.uint64) > 1).any()):
            held = ", ".join(np.unique(value.astype(str))[:8])
            raise ValueError(f"{name} got a {part} of {value.dtype} with {held}; expected {_HOLDS[part]}")
    shown = {"cols": board.shape[-1], "rows": board.shape[-2], "preview": following.shape[-1]}
    shown["hold"] = "hold" in parts
    return parts, shown, single


def _states(name: str, parts: dict[str, Array], rules: Rules) -> NDArray[np.uint64]:
    ids = np.concatenate([parts["piece"][..., None], parts["queue"]], axis=-1).astype(np.int64)
    ids = ids.reshape(-1, 1 + rules.preview)
    if (wrong := ids[(ids[..., None] != rules.piece_set.drawn).all(axis=-1)]).size:
        raise ValueError(f"{name} got piece {wrong[0]}; expected {rules.pieces_text()}")
    states = np.zeros((len(ids), game.COLUMNS + rules.cols), dtype=np.uint64)
    states[:, game.RULES] = rules.rules_word()
    states[:, game.QUEUE] = (ids << game.NIBBLE_BITS * np.arange(ids.shape[1])).sum(axis=1)
    states[:, game.COLUMNS :] = columns_of(parts["board"])
    if rules.hold:
        held = parts["hold"].reshape(-1).astype(np.int64)
        if (wrong := held[~np.isin(held, (*rules.piece_set.drawn, rules.n_pieces))]).size:
            raise ValueError(
                f"{name} got hold {wrong[0]}; expected {rules.n_pieces} for none, or {rules.pieces_text()}"
            )
        states[:, game.HOLD] = np.where(held == rules.n_pieces, 0, held + 1)
    return states


FORM = FORMS["tetris"] = Form(
    game=GAMES["tetris"],
    rules=Rules,
    options=GAMES["tetris"].rules,
    memory_words=MEMORY,
    start=game.start,
    loop=episode_loop(_turn, ACTION_SHIFT),
    shift=ACTION_SHIFT,
    signature=lambda settings: types.int64(WORDS, types.uint64, WORDS, VALUES, settings),
    entry=lambda signature, rules: _entry(signature),
    ways=_ways,
    read=_read,
    states=_states,
    settle=lambda name, values, state: check_values(name, values),
    figures=lambda state: {name: int(state[word]) for name, word in FIGURES.items()},
    counts=lambda player: counts_pieces(player),
)


def counts_pieces(player: KernelPlayer) -> bool:
    """Whether a search with the player's `distribution` needs to know the pieces seen, under the player's rules."""
    return (player.distribution or OF_RANDOMIZER[player.rules.get("randomizer", "uniform")]) != "uniform"
