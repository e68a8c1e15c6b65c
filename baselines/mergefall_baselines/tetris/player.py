"""The shell of every Tetris player: observations in, values and actions out, and whole episodes in one compiled loop.

A player brings a decision kernel for the rules it plays by:

    decide(columns, queue, memory, values, settings) -> placement

`columns` uint64[cols] are the board (`mergefall.tetris.field`), `queue` the known pieces' ids, 4 bits each, the current
one lowest; `memory` uint64[8] is what the player remembers (`chances.py`), `settings` whatever the kernel needs. It
fills `values` for all actions, -inf where illegal, and returns the chosen one, packed as in
`mergefall.tetris.placements`.
"""

from __future__ import annotations

import copy
import inspect
import json
import threading
from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import cache, lru_cache
from time import perf_counter
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from mergefall.checks import array
from mergefall.kernels import kernel, unowned
from mergefall.tetris import game
from mergefall.tetris.field import columns_of
from mergefall.tetris.placements import action_of
from mergefall.tetris.rules import Rules
from mergefall.words import stream_from_seed
from numpy.typing import NDArray

from mergefall_baselines.player import Player, Trajectory, check_values, has_nonsense, json_of
from mergefall_baselines.tetris.memory import MEMORY, STREAM, observe

U = np.uint64
RULES = ("cols", "rows", "pieces", "randomizer", "preview", "placements", "overflow")
KEPT = 1 << 24  # actions that a trajectory holds at most
OVER, UNDECIDED = 1, 2
CHUNK, LONGEST_CHUNK, PATIENCE = 256, 1 << 16, 0.05  # pieces played between two looks at the keyboard, and seconds


@cache
def _episode_kernel(decide: Any) -> Any:
    """The compiled episode loop of one decision kernel."""

    @kernel(variant=f"{decide.__module__}.{decide.__name__}-{decide.variant}")
    def play_on(state, actions, memory, values, settings):
        """Play until `actions` is full: pieces placed, shifted by two bits, and 0 or why it ended."""
        columns, known = unowned(game.columns_in(state)), 1 + game.preview_of(state)
        memory, values, settings = unowned(memory), unowned(values), unowned(settings)
        for placed in range(actions.size):
            queue = state[game.QUEUE]
            observe(memory, queue, known)
            placement = decide(columns, queue, memory, values, settings)
            if has_nonsense(values):
                return placed << 2 | UNDECIDED
            actions[placed] = action_of(placement)
            _, over = game.play(state, placement)
            if over:
                return (placed + 1) << 2 | OVER
        return actions.size << 2

    return play_on


@lru_cache
def _game(env_id: str, env_kwargs: str) -> Rules:
    """What the environment makes of its arguments, errors included."""
    settings = getattr(gym.make(env_id, **json.loads(env_kwargs)).unwrapped, "rules", None)
    if not isinstance(settings, Rules):
        raise ValueError(f"env_id is {env_id!r}; expected a Tetris environment")
    return settings


def ranks_of(order: Any, n_actions: int) -> NDArray[np.int64]:
    """The place of each action in an order of ties, int64[n_actions]; None is the order of the actions."""
    if order is None:
        return np.arange(n_actions)
    actions = array("order", order, "a list of actions")
    if actions.dtype.kind not in "iu" or not np.array_equal(np.sort(actions, axis=0), np.arange(n_actions)):
        raise ValueError(f"order={order!r}; expected each action from 0 to {n_actions - 1} once")
    return np.argsort(actions)


class TetrisPlayer(Player):
    """A Tetris player with a decision kernel.

    Its options `rules` are cols, rows, pieces, randomizer, preview, placements and overflow, as the environment has
    them. One left out is the environment's where `evaluate` or `play` knows that, else what the observation shows, else
    the environment's default.
    """

    remembers = False  # whether decisions depend on anything but the observation
    defaults: Mapping[str, Any] = {}  # of rules that no observation shows, where they are not the environment's
    __signature__: ClassVar[inspect.Signature]

    def __init_subclass__(cls) -> None:
        """Name the rules in the signature, which is where `make` and lists of players find a player's options."""
        _, *options = inspect.signature(cls.__init__).parameters.values()
        if options and options[-1].kind is inspect.Parameter.VAR_KEYWORD:
            rules = options.pop()
            options += [rules.replace(name=name, kind=rules.KEYWORD_ONLY, default=None) for name in RULES]
        cls.__signature__ = inspect.Signature(options)

    def __init__(self, **rules: Any) -> None:
        if unknown := sorted(set(rules) - set(RULES)):
            raise ValueError(f"there is no option {unknown[0]!r}; the rules are {', '.join(RULES)}")
        self._rules = {name: value for name, value in rules.items() if value is not None}
        Rules(**self._rules)
        self._lock = threading.RLock()  # scratch memory and tables are the player's own: one decision at a time
        self._made: dict[Any, tuple[Any, Any]] = {}
        self._resolved: dict[Any, Rules] = {}

    def decider(self, rules: Rules, exact: bool) -> tuple[Any, Any]:
        """The decision kernel for these rules, and its settings.

        If not `exact`, only the chosen action's value need be right; others may get a lower value.
        """
        rules = replace(rules, reward="lines", illegal_limit=1)  # neither matters
        if (rules, exact) not in self._made:
            self._made[rules, exact] = self._make_decider(rules, exact)
        return self._made[rules, exact]

    def _make_decider(self, rules: Rules, exact: bool) -> tuple[Any, Any]:
        raise NotImplementedError

    def start(self, seed: int) -> Any:
        """What the player remembers at the start of an episode: uint64[8], or None for nothing."""
        return self._fresh(seed) if self.remembers else None

    @staticmethod
    def _fresh(seed: int) -> NDArray[np.uint64]:
        memory = np.zeros(MEMORY, dtype=np.uint64)
        memory[STREAM] = np.random.SeedSequence([seed, 1]).generate_state(1, np.uint64)[0]  # not the environment's
        return memory

    def with_rules(self, rules: Mapping[str, Any]) -> Player:
        """This player with all of an environment's rules filled in; one that differs is a ValueError."""
        theirs = {name: rules[name] for name in RULES if name in rules}
        self._check(theirs, "the environment has")
        player = copy.copy(self)
        player._rules = self._rules | theirs
        player._resolved = {}
        player.options = dict(self.options) | theirs
        return player

    def _check(self, found: Mapping[str, Any], where: str) -> None:
        for name, ours in self._rules.items():
            if name in found and found[name] != ours:
                raise ValueError(f"{self.name} was made for {name}={ours!r}, but {where} {name}={found[name]!r}")

    def values(self, observation: Any, state: Any = None) -> NDArray[np.float64]:
        """Value of each action, float64[n_actions] (batched: [n, n_actions]); -inf where illegal or fatal."""
        return self._decide_all(observation, state, None, exact=True)[1]

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> tuple[NDArray[np.int64], Any]:
        """The chosen action, as `Player.predict` says."""
        actions, _, memory = self._decide_all(observation, state, episode_start, exact=False)
        return actions, memory if self.remembers else None

    def play(
        self, env_id: str, seed: int, env_kwargs: Mapping[str, Any] | None = None, max_episode_steps: int | None = None
    ) -> Trajectory:
        """One whole episode from ``reset(seed=seed)``, in a compiled loop: the gym loop's trajectory.

        Actions beyond the first `KEPT` are not kept, only counted.
        """
        rules = self.rules_of(env_id, env_kwargs)
        self._check(asdict(rules), "the environment has")
        state = rules.new_states(1)[0]
        state[game.STREAM] = stream_from_seed(seed)
        game.start(state)
        with self._lock:
            actions, length, terminated = self._play_from(state, rules, seed, max_episode_steps)
        figures = {name: int(state[word]) for name, word in _FIGURES.items()}
        return Trajectory(seed, actions, terminated, figures, length)

    @staticmethod
    def rules_of(env_id: str, env_kwargs: Mapping[str, Any] | None) -> Rules:
        """The rules of an environment made with these arguments."""
        return _game(env_id, json_of(env_kwargs))

    def _play_from(
        self, state: NDArray[np.uint64], rules: Rules, seed: int, limit: int | None
    ) -> tuple[NDArray[np.uint8], int, bool]:
        """(actions kept, number of actions, whether the game is over); plays on `state`."""
        decide, settings = self.decider(rules, exact=False)
        loop, memory, values = _episode_kernel(decide), self._fresh(seed), np.empty(rules.n_actions)
        kept, length, end, chunk = [np.empty(0, dtype=np.uint8)], 0, 0, CHUNK
        while end != OVER and length != limit:
            actions = np.empty(chunk if limit is None else min(chunk, limit - length), dtype=np.uint8)
            began = perf_counter()
            count, end = divmod(loop(state, actions, memory, values, settings), 4)
            if end == UNDECIDED:
                check_values(self.name, values)
            if perf_counter() - began < PATIENCE:
                chunk = min(2 * chunk, LONGEST_CHUNK)
            kept.append(actions[: min(count, max(0, KEPT - length))])
            length += count
        return np.concatenate(kept), length, end == OVER

    def _decide_all(
        self, observation: Any, state: Any, episode_start: Any, exact: bool
    ) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.uint64]]:
        """(actions, values, what is remembered then) of one observation or a batch."""
        rules, columns, queues, single = self._positions(observation)
        memory = self._memory(state, len(columns), episode_start)
        values, actions = np.empty((len(columns), rules.n_actions)), np.empty(len(columns), dtype=np.int64)
        with self._lock:
            for i in range(len(columns)):
                observe(memory[i], queues[i], 1 + rules.preview)
                placement = self._decide(rules, exact, columns[i], queues[i], memory[i], values[i])
                actions[i] = action_of.py_func(placement)
        check_values(self.name, values)
        return (actions.reshape(()), values[0], memory[0]) if single else (actions, values, memory)

    def _decide(self, rules: Rules, exact: bool, columns: Any, queue: Any, memory: Any, values: Any) -> int:
        decide, settings = self.decider(rules, exact)
        return decide(columns, queue, memory, values, settings)

    def _positions(self, observation: Any) -> tuple[Rules, NDArray[np.uint64], NDArray[np.uint64], bool]:
        """Observations as rules, columns uint64[n, cols] and queues uint64[n], and whether there was just one."""
        if not isinstance(observation, Mapping) or not {"board", "piece"} <= set(observation) <= set(_PARTS):
            raise ValueError(f"{self.name} got {observation!r}; expected a mapping with board, piece and perhaps next")
        parts = {name: array(f"{self.name}: {name}", observation[name], _PARTS[name]) for name in observation}
        boards, single = parts["board"], parts["board"].ndim == 2
        shape = () if single else boards.shape[:1]
        following = parts.get("next", np.zeros((*shape, 0), dtype=np.int64))
        shapes = {name: part.shape for name, part in parts.items()}
        if boards.ndim not in (2, 3) or parts["piece"].shape != shape or following.shape[:-1] != shape:
            raise ValueError(f"{self.name} got an observation of shapes {shapes}; expected one observation or a batch")
        for name, part in parts.items():
            if part.dtype.kind not in "iub" or (name == "board" and not np.isin(part, (0, 1)).all()):
                held = ", ".join(np.unique(part.astype(str))[:8])
                raise ValueError(f"{self.name} got a {name} of {part.dtype} with {held}; expected {_PARTS[name]}")
        rules = self._rules_for(boards.shape[-1], boards.shape[-2], following.shape[-1])
        ids = np.concatenate([parts["piece"][..., None], following], axis=-1).astype(np.int64)
        if (wrong := ids[~np.isin(ids, rules.piece_set.drawn)]).size:
            raise ValueError(f"{self.name} got piece {wrong[0]}; expected {rules.pieces_text()}")
        queues = (ids << 4 * np.arange(ids.shape[-1])).sum(axis=-1).astype(np.uint64)
        columns = columns_of(boards)
        return (rules, columns[None], queues[None], True) if single else (rules, columns, queues, False)

    def _rules_for(self, cols: int, rows: int, preview: int) -> Rules:
        """The rules to play an observation by."""
        seen: dict[str, Any] = {"cols": cols, "rows": rows, "preview": preview}
        key = cols, rows, preview
        if key not in self._resolved:
            self._check(seen, "the observation shows")
            self._resolved[key] = Rules(**(dict(self.defaults) | self._rules | seen))
        return self._resolved[key]

    def _memory(self, state: Any, count: int, episode_start: Any) -> NDArray[np.uint64]:
        """What a decision starts from, uint64[count, 8]: a copy, so that `state` stays what it was."""
        memory = np.asarray(self._fresh(0) if state is None else state)
        if memory.dtype != np.uint64 or memory.shape not in ((MEMORY,), (1, MEMORY), (count, MEMORY)):
            raise ValueError(
                f"{self.name} got a state of {memory.dtype}{list(memory.shape)}; expected uint64[{count}, {MEMORY}]"
            )
        memory = np.array(np.broadcast_to(memory, (count, MEMORY)))
        if episode_start is not None:
            memory[np.broadcast_to(np.asarray(episode_start, dtype=bool), (count,)), STREAM + 1 :] = 0
        return memory


_PARTS = {"board": "cells of 0 and 1", "piece": "a piece id", "next": "piece ids"}
_FIGURES = {"score": game.SCORE, "lines": game.LINES, "pieces": game.PIECES}
