"""The shell of Tetris's players: `KernelPlayer` for fields and queues of pieces.

A player brings a decision kernel for the rules it plays by:

    decide(columns, queue, memory, values, settings) -> placement

- `columns`: uint64[cols], the board (`mergefall.tetris.field`).
- `queue`: uint64, the ids of the known pieces, 4 bits each, the current piece lowest.
- `memory`: uint64[8], what the player remembers (`memory.py`).
- `values`: float64[n_actions], filled by the kernel; -inf where illegal.
- `settings`: whatever the kernel needs.
- `placement`: the chosen one, packed as in `mergefall.tetris.placements`.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, ClassVar, NamedTuple

import numpy as np
from mergefall.checks import array
from mergefall.games import GAMES
from mergefall.interrupt import stopped
from mergefall.kernels import kernel, unowned
from mergefall.tetris import game as states
from mergefall.tetris.field import columns_of
from mergefall.tetris.placements import action_of, column_of, rotation_of, row_of
from mergefall.tetris.rules import Rules
from mergefall.typing import Array
from numpy.typing import NDArray

from mergefall_baselines.kernel_player import (
    FULL,
    OVER,
    UNDECIDED,
    KernelPlayer,
    Positions,
    has_nonsense,
    loop_result,
)
from mergefall_baselines.player import Player
from mergefall_baselines.tetris.memory import MEMORY, OF_RANDOMIZER, observe

RULES = GAMES["tetris"].rules


@cache
def _loop_kernel(decide: Any) -> Any:
    """The compiled episode loop of one decision kernel."""

    @kernel(variant=f"{decide.__module__}.{decide.__name__}-{decide.variant}")
    def play_on(state, actions, memory, values, settings):
        columns, known = unowned(states.columns_in(state)), 1 + states.settings_of(state)[2]
        memory, values, settings = unowned(memory), unowned(values), unowned(settings)
        for placed in range(actions.size):
            if stopped():
                break
            queue = state[states.QUEUE]
            observe(memory, queue, known)
            placement = decide(columns, queue, memory, values, settings)
            if has_nonsense(values):
                return loop_result(placed, UNDECIDED)
            actions[placed] = action_of(placement)
            _, over = states.play(state, rotation_of(placement), column_of(placement), row_of(placement))
            if over:
                return loop_result(placed + 1, OVER)
        return loop_result(actions.size, FULL)

    return play_on


@cache
def _batch_kernel(decide: Any) -> Any:
    """The compiled loop of one decision kernel over positions of a batch."""

    @kernel(variant=f"{decide.__module__}.{decide.__name__}-{decide.variant}")
    def decide_all(which, memory, values, actions, columns, queues, known, settings):
        for i in which:
            observe(memory[i], queues[i], known)
            actions[i] = action_of(decide(columns[i], queues[i], memory[i], values[i], settings))

    return decide_all


def ranks_of(order: Sequence[int] | None, n_actions: int) -> NDArray[np.int64]:
    """The place of each action in an order of ties, int64[n_actions]; None is the order of the actions."""
    if order is None:
        return np.arange(n_actions)
    actions = array("order", order, "a list of actions")
    wrong = actions.dtype.kind not in "iu" or actions.shape != (n_actions,)
    if wrong or not np.array_equal(np.sort(actions), np.arange(n_actions)):
        raise ValueError(f"order={order!r}; expected each action from 0 to {n_actions - 1} once")
    return np.argsort(actions)


class Position(NamedTuple):
    """One board and the known pieces to decide on."""

    rules: Rules
    columns: NDArray[np.uint64]
    queue: np.uint64


class Batch(Sequence[Position]):
    """The positions of the boards `columns` uint64[n, cols] and the known pieces `queues` uint64[n]."""

    def __init__(self, rules: Rules, columns: NDArray[np.uint64], queues: Any) -> None:
        self.rules, self.columns, self.queues = rules, columns, queues

    def __len__(self) -> int:
        return len(self.queues)

    def __getitem__(self, i: Any) -> Any:
        return Position(self.rules, self.columns[i], self.queues[i])


class TetrisPlayer(KernelPlayer):
    """A Tetris player with a decision kernel.

    Args:
        rules: cols, rows, pieces, randomizer, preview, placements and overflow, as the environment has them. Defaults:
            the environment's where `evaluate` or `play` knows it, else what the observation shows, else `defaults`,
            else the default of the environment.
    """

    game = GAMES["tetris"]
    rules_type = Rules
    start_game = staticmethod(states.start)
    memory_words = MEMORY
    sees_next: Any = True  # whether values may depend on the pieces after the current one
    defaults: Mapping[str, Any] = {}  # of rules that no observation shows, where they are not the environment's
    __signature__: ClassVar[inspect.Signature]

    def __init_subclass__(cls) -> None:
        """Name the rules in the signature, where `make` and lists of players look up a player's options."""
        _, *options = inspect.signature(cls.__init__).parameters.values()
        if options and options[-1].kind is inspect.Parameter.VAR_KEYWORD:
            rules = options.pop()
            options += [rules.replace(name=name, kind=rules.KEYWORD_ONLY, default=None) for name in RULES]
        cls.__signature__ = inspect.Signature(options)

    def __init__(self, **rules: Any) -> None:
        if unknown := sorted(set(rules) - set(RULES)):
            raise ValueError(f"there is no option {unknown[0]!r}; the rules are {', '.join(RULES)}")
        super().__init__(rules)
        Rules(**self._rules)

    def _renew(self) -> None:
        super()._renew()
        self._resolved: dict[tuple[int, int, int], Rules] = {}  # by what an observation shows

    def _make_decider(self, rules: Rules, exact: bool) -> tuple[Any, Any]:
        raise NotImplementedError

    def _counts_pieces(self, distribution: str | None) -> bool:
        """Whether a search with this option `distribution` needs to know the pieces seen, under the player's rules."""
        rules = {"randomizer": Rules().randomizer} | dict(self.defaults) | self._rules
        return (distribution or OF_RANDOMIZER[rules["randomizer"]]) != "uniform"

    def decider(self, rules: Rules, exact: bool) -> tuple[Any, Any]:
        return super().decider(replace(rules, reward="lines", illegal_limit=1), exact)  # neither changes a decision

    def with_rules(self, rules: Mapping[str, Any]) -> Player:
        """A copy of this player under an environment's rules; raises ValueError if it was made for other rules."""
        super().with_rules(rules)
        theirs = self.game.rules_of(rules)
        player = copy.copy(self)
        player._rules = self._rules | theirs
        player.options = dict(self.options) | theirs
        return player

    def _positions(self, observation: Any) -> Positions:
        names = set(self.game.start)
        if not isinstance(observation, Mapping) or not {"board", "piece"} <= set(observation) <= names:
            raise ValueError(f"{self.name} got {observation!r}; expected a mapping with board, piece and perhaps queue")
        parts = {name: array(f"{self.name}: {name}", observation[name], _HOLDS[name]) for name in observation}
        boards, single = parts["board"], parts["board"].ndim == 2
        shape = () if single else boards.shape[:1]
        following = parts.get("queue", np.zeros((*shape, 0), dtype=np.int64))
        if boards.ndim not in (2, 3) or parts["piece"].shape != shape or following.shape[:-1] != shape:
            shapes = {name: part.shape for name, part in parts.items()}
            raise ValueError(f"{self.name} got an observation of shapes {shapes}; expected one observation or a batch")
        for name, part in parts.items():
            if part.dtype.kind not in "iub" or (name == "board" and not np.isin(part, (0, 1)).all()):
                held = ", ".join(np.unique(part.astype(str))[:8])
                raise ValueError(f"{self.name} got a {name} of {part.dtype} with {held}; expected {_HOLDS[name]}")
        rules = self._rules_for(boards.shape[-1], boards.shape[-2], following.shape[-1])
        ids = np.concatenate([parts["piece"][..., None], following], axis=-1).astype(np.int64)
        if (wrong := ids[~np.isin(ids, rules.piece_set.drawn)]).size:
            raise ValueError(f"{self.name} got piece {wrong[0]}; expected {rules.pieces_text()}")
        queues = (ids << 4 * np.arange(ids.shape[-1])).sum(axis=-1).astype(np.uint64)
        columns = np.ascontiguousarray(columns_of(boards))
        batch = Batch(rules, columns.reshape(-1, columns.shape[-1]), np.reshape(queues, -1))
        return Positions(rules.n_actions, batch, single)

    def _rules_for(self, cols: int, rows: int, preview: int) -> Rules:
        """The rules to play an observation by."""
        key = cols, rows, preview
        if key not in self._resolved:
            shown: dict[str, Any] = {"cols": cols, "rows": rows, "preview": preview}
            self._check_rules(shown, "the observation shows")
            self._resolved[key] = Rules(**(dict(self.defaults) | self._rules | shown))
        return self._resolved[key]

    def _choose(self, position: Position, exact: bool, memory: NDArray[np.uint64], values: NDArray[np.float64]) -> int:
        rules, columns, queue = position
        observe(memory, queue, 1 + rules.preview)
        return action_of.py_func(self._decide(rules, exact, columns, queue, memory, values))

    def _batches(self, positions: Batch, exact: bool) -> list[tuple[NDArray[np.int64], Any, tuple[Any, ...]]]:
        decide, settings = self.decider(positions.rules, exact)
        further = positions.columns, positions.queues, 1 + positions.rules.preview, settings
        return [(np.arange(len(positions)), _batch_kernel(decide), further)]

    def _decide(self, rules: Rules, exact: bool, columns: Array, queue: np.uint64, memory: Array, values: Any) -> int:
        """The placement chosen in one position; fills `values`."""
        decide, settings = self.decider(rules, exact)
        return decide(columns, queue, memory, values, settings)

    def _loop(self, rules: Rules) -> tuple[Any, Any]:
        decide, settings = self.decider(rules, exact=False)
        return _loop_kernel(decide), settings

    def _figures(self, state: NDArray[np.uint64]) -> dict[str, int]:
        words = {"score": states.SCORE, "lines": states.LINES, "pieces": states.PIECES}
        return {name: int(state[words[name]]) for name in self.game.figures}


_HOLDS = {"board": "cells of 0 and 1", "piece": "a piece id", "queue": "piece ids"}
