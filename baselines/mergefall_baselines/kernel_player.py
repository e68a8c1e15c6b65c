"""The shell of players that decide by a compiled kernel, shared by both games.

A player makes a decision kernel and its settings for the rules it plays by. The shell turns observations into
positions, calls the kernel for each position, checks the values, and plays whole episodes in a compiled loop around the
kernel. Another compiled loop decides on large batches. `game2048/player.py` and `tetris/player.py` add what differs:
positions, the loops, and the error of a bad move.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import asdict
from functools import lru_cache
from time import perf_counter
from typing import Any, ClassVar, NamedTuple

import gymnasium as gym
import numpy as np
from mergefall.chance import STREAM
from mergefall.games import Game
from mergefall.interrupt import Caller
from mergefall.kernels import kernel
from mergefall.typing import Array, Kernel, Observation, Options
from mergefall.words import split, stream_from_seed
from numpy.typing import NDArray

from mergefall_baselines.player import Player, Trajectory, check_values, choose_unmasked, play_in_env

KEPT = 1 << 24  # a trajectory holds at most so many actions
CHUNK, LONGEST_CHUNK = 256, 1 << 16  # moves that a compiled loop plays before Python looks at the keyboard
PATIENCE = 0.05  # seconds: a chunk that took less is doubled
FEWEST = 32  # from so many positions of a batch on, a compiled loop decides
FULL, OVER, UNDECIDED, OUTGROWN = range(4)  # why a compiled loop returned; see `loop_result`


@kernel
def loop_result(moves, reason):
    """What a compiled loop returns: the moves it played, and why it stopped.

    - FULL: the array of actions is full.
    - OVER: the game is over.
    - UNDECIDED: the values or the chosen action are no decision; `KernelPlayer._refuse` says why.
    - OUTGROWN: the boards no longer fit the kernel; `KernelPlayer._wider` names the next one.
    """
    return moves << 2 | reason


@kernel
def has_nonsense(values):
    """Whether one of the values is NaN or +inf; -inf stands for illegal actions and lost games."""
    found = False
    for value in values:
        found |= not value < np.inf
    return found


class Positions(NamedTuple):
    """The positions of one observation or of a batch."""

    n_actions: int
    each: Sequence[Any]
    single: bool  # whether there was one observation, not a batch


def json_of(env_kwargs: Options | None) -> str:
    """An environment's arguments as JSON, without `shaping` and `render_mode`, which do not change the game.

    NumPy's numbers become Python's. Raises ValueError for an argument that is no JSON type.

    >>> json_of({"cols": np.int64(6), "render_mode": "ansi"})
    '{"cols": 6}'
    """

    def plain(value: Any) -> int | float | bool:
        if isinstance(value, np.generic):
            return value.item()
        raise ValueError(f"an argument of the environment is {value!r}; expected JSON types")

    kwargs = {name: value for name, value in (env_kwargs or {}).items() if name not in ("shaping", "render_mode")}
    return json.dumps(kwargs, default=plain)


@lru_cache
def _rules_of(env_id: str, env_kwargs: str) -> Any:
    return getattr(gym.make(env_id, **json.loads(env_kwargs)).unwrapped, "rules", None)


class KernelPlayer(Player):
    """A player that decides by a compiled kernel.

    A subclass of a game's shell overrides `_make_decider`; a game's shell overrides the methods below it. Scratch
    memory and tables belong to the player, so a lock lets one decision run at a time. Copies and pickles of a player
    hold its options; they make kernels, memory and tables anew.
    """

    game: ClassVar[Game]
    rules_type: ClassVar[type]  # of the environment's `rules`
    start_game: ClassVar[Callable[[NDArray[np.uint64]], Any]]  # starts an episode in a state whose stream is set
    memory_words: ClassVar[int] = 1  # the player's random stream, then what it remembers
    remembers: ClassVar[bool] = False  # whether a decision depends on anything but the observation
    compiled: bool = True  # whether there is a decision kernel, for other kernels to call
    two_kernels: ClassVar[bool] = True  # whether `_make_decider` uses `exact`
    time_limit: float | None = None  # seconds for a decision; the compiled loop knows no time limit

    def __init__(self, rules: Options) -> None:
        self._rules = {name: value for name, value in rules.items() if value is not None}
        self._renew()

    def _renew(self) -> None:
        """Set the attributes that copies and pickles do not take over."""
        self._lock = threading.RLock()
        self._call = Caller()
        self._made: dict[Hashable, Any] = {}
        self._held: list[Array] = []  # arrays that kernels know by address
        self._records: dict[int, NDArray[np.void]] = {}  # search contexts by address

    def __getstate__(self) -> dict[str, Any]:
        renewed = object.__new__(type(self))
        renewed._renew()
        return {name: value for name, value in self.__dict__.items() if name not in renewed.__dict__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._renew()

    # -- kernels ------------------------------------------------------------------------------------------------------

    def _make_decider(self, rules: Any, exact: bool) -> tuple[Kernel, Any]:
        """A decision kernel for these rules and its settings; see the game's shell for the kernel's signature.

        If not `exact`, only the chosen action's value must be exact; other values may be lower bounds.
        """
        raise NotImplementedError

    def decider(self, rules: Any, exact: bool) -> tuple[Kernel, Any]:
        """The decision kernel and its settings that `_make_decider` made for these rules."""
        exact = exact or not self.two_kernels
        return self._once((rules, exact), lambda: self._make_decider(rules, exact))

    def _once(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """The result of `make()`, called once for each key."""
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]

    def _address(self, array: Array) -> int:
        """The address of an array, which the player keeps alive."""
        self._held.append(array)
        return array.ctypes.data

    # -- a game's shell -----------------------------------------------------------------------------------------------

    def _positions(self, observation: Observation) -> Positions:
        """The positions of one observation or of a batch; raises ValueError for anything else."""
        raise NotImplementedError

    def _choose(self, position: Any, exact: bool, memory: NDArray[np.uint64], values: NDArray[np.float64]) -> int:
        """The action chosen in a position; fills `values` and updates `memory`."""
        raise NotImplementedError

    def _batches(self, positions: Any, exact: bool) -> Iterable[tuple[NDArray[np.int64], Kernel, tuple[Any, ...]]]:
        """A compiled loop ``(which, memory, values, actions, …)`` over a batch, for each way of holding positions.

        Yields (which positions are held so, the loop, its further arguments).
        """
        raise NotImplementedError

    def _decides_by_kernel(self) -> bool:
        """Whether all that a decision takes is one call of the decision kernel.

        A subclass that decides in another way, by overriding what calls the kernel, overrides this, too.
        """
        return self.compiled

    def _loop(self, rules: Any) -> tuple[Kernel, Any]:
        """A compiled loop ``(state, actions, memory, values, settings) -> loop_result`` and its settings."""
        raise NotImplementedError

    def _figures(self, state: NDArray[np.uint64]) -> dict[str, int]:
        """The game's figures in a state, by the names in `game.figures`."""
        raise NotImplementedError

    def _first(self, rules: Any) -> Any:
        """The rules for which `_loop` makes an episode's first loop, from the environment's rules."""
        return rules

    def _wider(self, rules: Any) -> Any:
        """The rules for the next loop once a loop returned OUTGROWN."""
        raise NotImplementedError

    def _check_heuristic(self) -> None:
        """Raises what a user's function raised in the search."""
        self._check_function(getattr(self, "heuristic", None))

    def _check_function(self, heuristic: Any) -> None:
        if heuristic is not None:
            try:
                heuristic.check()
            except BaseException:
                with self._lock:  # tables hold values of the search that failed
                    for kept in (self._made, self._held, self._records):
                        kept.clear()
                raise

    def _check_values(self, values: NDArray[np.float64], positions: Sequence[Any]) -> None:
        """Raises NotFiniteError if float64[n, n_actions] of these positions are no values to decide by."""
        check_values(self.name, values)

    def _refuse(self, values: NDArray[np.float64], state: NDArray[np.uint64]) -> None:
        """Raises the error of a loop that returned UNDECIDED."""
        check_values(self.name, values)

    # -- the protocol -------------------------------------------------------------------------------------------------

    def start(self, seed: int) -> NDArray[np.uint64] | None:
        """The player's memory at the start of an episode, uint64[memory_words]; None if it remembers nothing."""
        return self._fresh(seed) if self.remembers else None

    def _fresh(self, seed: int) -> NDArray[np.uint64]:
        memory = np.zeros(self.memory_words, dtype=np.uint64)
        memory[0] = np.random.SeedSequence([seed, 1]).generate_state(1, np.uint64)[0]  # not the environment's stream
        return memory

    def with_rules(self, rules: Options) -> Player:
        """This player under an environment's rules; raises ValueError if it was made for other rules."""
        self._check_rules(self.game.rules_of(rules), "the environment has")
        return self

    def _check_rules(self, found: Options, where: str) -> None:
        for name, ours in self._rules.items():
            if name in found and found[name] != ours:
                raise ValueError(f"{self.name} was made for {name}={ours!r}, but {where} {name}={found[name]!r}")

    def values(self, observation: Observation, state: Any = None) -> NDArray[np.float64]:
        """Value of each action, float64[n_actions] (batch: [n, n_actions]); -inf where illegal or fatal."""
        return self._decide_all(observation, state, None, exact=True)[1]

    def predict(
        self,
        observation: Observation,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = True,
        action_masks: Any = None,
    ) -> tuple[NDArray[np.int64], Any]:
        """The chosen action and the next state; see `Player.predict`."""
        actions, values, memory = self._decide_all(observation, state, episode_start, exact=False)
        if action_masks is not None:
            actions = choose_unmasked(
                actions,
                action_masks,
                values.shape[-1],
                lambda: self._decide_all(observation, state, episode_start, exact=True)[1],
            )
        return actions, memory if self.remembers else None

    def play(
        self, env_id: str, seed: int, env_kwargs: Options | None = None, max_episode_steps: int | None = None
    ) -> Trajectory:
        """One whole episode from ``reset(seed=seed)``: the gym loop's trajectory, played in a compiled loop.

        A player with a time limit plays in the gym loop. The trajectory holds the first `KEPT` actions and counts all.
        """
        rules = self.rules_of(env_id, env_kwargs)
        self._check_rules({name: getattr(rules, name) for name in self._rules}, "the environment has")
        if self.time_limit is not None:
            return play_in_env(self.with_rules(asdict(rules)), env_id, seed, env_kwargs, max_episode_steps)
        state = rules.new_states(1)[0]
        state[STREAM] = stream_from_seed(seed)
        type(self).start_game(state)
        with self._lock:
            actions, length, terminated = self._play_from(state, self._first(rules), seed, max_episode_steps)
        return Trajectory(seed, actions, terminated, self._figures(state), length)

    @classmethod
    def rules_of(cls, env_id: str, env_kwargs: Options | None) -> Any:
        """The rules of an environment made with these arguments; raises ValueError for another game's environment."""
        rules = _rules_of(env_id, json_of(env_kwargs))
        if not isinstance(rules, cls.rules_type):
            raise ValueError(f"env_id is {env_id!r}; this player plays one of {', '.join(cls.game.env_ids)}")
        return rules

    # -- decisions and episodes ---------------------------------------------------------------------------------------

    def _decide_all(
        self, observation: Observation, state: Any, episode_start: Any, exact: bool
    ) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.uint64]]:
        """(actions, values, next memory) of one observation or a batch."""
        n_actions, positions, single = self._positions(observation)
        memory = self._memory(state, len(positions), episode_start)
        values, actions = np.empty((len(positions), n_actions)), np.empty(len(positions), dtype=np.int64)
        with self._lock:
            if len(positions) < FEWEST or not self._decides_by_kernel():
                for i, position in enumerate(positions):
                    actions[i] = self._call(self._choose, position, exact, memory[i], values[i])
            else:
                for which, loop, further in self._batches(positions, exact):
                    begin, chunk = 0, 1
                    while begin < len(which):
                        began = perf_counter()
                        self._call(loop, which[begin : begin + chunk], memory, values, actions, *further)
                        begin += chunk
                        if perf_counter() - began < PATIENCE:
                            chunk *= 2
        self._check_heuristic()
        self._check_values(values, positions)
        return (actions.reshape(()), values[0], memory[0]) if single else (actions, values, memory)

    def _memory(self, state: Any, count: int, episode_start: Any) -> NDArray[np.uint64]:
        """The memory before `count` decisions, uint64[count, memory_words]: a copy, so that `state` stays as it is."""
        words = self.memory_words
        if state is None and not self.remembers:
            return np.zeros((count, words), dtype=np.uint64)
        memory = np.asarray(self._fresh(0) if state is None else state)
        if memory.dtype != np.uint64 or memory.shape not in ((words,), (1, words), (count, words)):
            shape = list(memory.shape)
            raise ValueError(f"{self.name} got a state of {memory.dtype}{shape}; expected uint64[{count}, {words}]")
        shared = memory.shape != (count, words)
        memory = np.array(np.broadcast_to(memory, (count, words)), order="C")
        if shared and count > 1:  # games draw apart
            memory[:, 0] = split(memory[0, 0], count)
        if episode_start is not None:
            memory[np.broadcast_to(np.asarray(episode_start, dtype=bool), (count,)), 1:] = 0
        return memory

    def _play_from(
        self, state: NDArray[np.uint64], rules: Any, seed: int, limit: int | None
    ) -> tuple[NDArray[np.uint8], int, bool]:
        """Play on in `state` for at most `limit` moves.

        Returns the first `KEPT` actions, the number of actions, and whether the game is over.
        """
        loop, settings = self._loop(rules)
        memory, values = self._fresh(seed), np.empty(rules.n_actions)
        kept, length, reason, chunk = [np.empty(0, dtype=np.uint8)], 0, FULL, CHUNK
        while reason != OVER and length != limit:
            actions = np.empty(chunk if limit is None else min(chunk, limit - length), dtype=np.uint8)
            began = perf_counter()
            count, reason = divmod(self._call(loop, state, actions, memory, values, settings), 4)
            self._check_heuristic()
            if perf_counter() - began < PATIENCE:
                chunk = min(2 * chunk, LONGEST_CHUNK)
            kept.append(actions[: min(count, max(0, KEPT - length))])
            length += count
            if reason == UNDECIDED:
                self._refuse(values, state)
            if reason == OUTGROWN:
                rules = self._wider(rules)
                loop, settings = self._loop(rules)
        return np.concatenate(kept), length, reason == OVER
