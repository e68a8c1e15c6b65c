"""The shell of players that decide by a compiled kernel, for both games.

A player makes a decision kernel and its settings for the rules that it meets (`KernelPlayer._make_decider`). The shell
lets the kernel decide on the states that the game's `Rules` make of observations, checks the values, and plays whole
episodes in a compiled loop. A `Form` holds what players of a game need besides its rules.
"""

import copy
import threading
from collections.abc import Callable, Hashable, Sequence
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any

import numba
import numpy as np
from mergefall.chance import STREAM
from mergefall.checks import array, in_place
from mergefall.games import rules_in
from mergefall.interrupt import Caller, stopped
from mergefall.kernels import kernel, unowned
from mergefall.typing import Array, Dict, Floats, Ints, Kernel, Observation, Options, Words
from mergefall.words import split, stream_from_seed

from mergefall_baselines.entry import ENTRY, ENTRY_TYPE, address_of, call, signature_of, words_of
from mergefall_baselines.player import NotFiniteError, Player, Trajectory, check_values, play_in_env

KEPT = 1 << 24  # a trajectory holds at most so many actions
CHUNK, LONGEST_CHUNK = 256, 1 << 16  # moves that a compiled loop plays at once
OUTGROWN, UNDECIDED = -1, -2  # instead of a choice: the kernel cannot hold the board; the values are no decision
GO_ON, OVER, ILLEGAL = range(3)  # what an action makes of a game


@kernel
def ask(entry, state, memory, values, settings):
    """An entry's choice; UNDECIDED if a value is NaN or +inf. -inf stands for illegal actions and lost games."""
    choice, nonsense = call(entry, ENTRY_TYPE, (state, memory, values, settings)), False
    for value in values:
        nonsense |= not value < np.inf
    return UNDECIDED if nonsense and choice >= 0 else choice


@kernel
def decide_all(entry, states, memory, values, actions, settings, shift):
    """Let an entry decide on a batch of states; `shift`: see `Form`."""
    states, memory, values = unowned(states), unowned(memory), unowned(values)
    for i in range(len(states)):
        if stopped():
            break
        choice = ask(entry, states[i], memory[i], values[i], settings)
        actions[i] = choice >> shift if choice >= 0 else choice


def episode_loop(turn: Kernel, shift: int, loses: bool) -> Kernel:
    """The compiled episode loop of a game, for the entries of all players; see `mergefall_baselines.entry`.

    ``turn(state, choice)`` plays a choice and returns GO_ON, OVER or ILLEGAL; `shift`, `loses`: see `Form`.

    The loop returns the number of actions and how it ended: by one of these, or with what an entry returned instead of
    a choice.
    """

    @kernel
    def play_on(entry, state, actions, memory, values, settings):
        state, memory, values = unowned(state), unowned(memory), unowned(values)
        for played in range(actions.size):
            if stopped():
                break
            choice = ask(entry, state, memory, values, settings)
            if choice >= 0 and not loses and values[choice >> shift] == -np.inf and values.max() == -np.inf:
                choice = np.int64(UNDECIDED)
            if choice < 0:
                return played, choice
            actions[played] = choice >> shift
            status = turn(state, choice)
            if status != GO_ON:
                return played + 1, status
        return actions.size, GO_ON

    return play_on


@dataclass(frozen=True)
class Form:
    """The shell's part of a game, besides its rules."""

    rules: type[Any]  # of the environment
    memory_words: int  # of a player's memory: its random stream, then what it remembers
    loop: Kernel  # made by `episode_loop`
    shift: int  # what an entry returns is a choice: an action, shifted by so many bits, with its details below
    entry: Callable[[Any, Any], Kernel]  # (signature of decision kernels, way) -> entry
    # The ways to hold the boards of some rules, the fastest first. A decision kernel is made for one.
    ways: Callable[[Any], tuple[Any, ...]]
    loses: bool = True  # whether a legal action may be worth -inf: one that ends the game


class KernelPlayer(Player):
    """A player that decides by a compiled kernel.

    A player overrides `_make_decider`. One that decides in Python sets `compiled` to False and overrides `_decide`.

    Scratch memory and tables belong to the player, so a lock lets one decision run at a time. Copies and pickles of a
    player hold its options; they make kernels, memory and tables anew.

    Args:
        rules: rules of the game, with the names of the environment's arguments: 2048 `rows` and `cols`; Tetris `cols`,
            `rows`, `pieces`, `randomizer`, `preview`, `placements`, `hold` and `overflow`. Defaults: those of the
            environment where `evaluate` or `play` knows it, else what the observation shows, else `defaults`, else the
            default of the environment. Raises ValueError if they differ from the environment's.
    """

    form: Form
    defaults: Options = MappingProxyType({})  # of rules that no observation shows, where they are not the environment's
    rules_are_options = True  # whether `with_rules` adds to `options`
    remembers = False  # whether a decision depends on anything but the observation
    compiled = True  # whether there is a decision kernel, for loops and for other kernels to call
    distribution: str | None = None  # the option `distribution` of searches that have it

    def __init__(self, **rules: Any) -> None:
        self._rules = {name: value for name, value in rules.items() if value is not None}
        self.form.rules(**self._rules)
        self._renew()

    def _renew(self) -> None:
        """Set the attributes that copies and pickles do not take over."""
        self._lock, self._call = threading.RLock(), Caller()
        self._made: dict[Hashable, Any] = {}
        self._kept: dict[Any, Array] = {}  # arrays that kernels know by address

    def __getstate__(self) -> Dict:
        renewed = object.__new__(type(self))
        renewed._renew()
        return {name: value for name, value in self.__dict__.items() if name not in renewed.__dict__}

    def __setstate__(self, state: Dict) -> None:
        self.__dict__.update(state)
        self._renew()

    # -- kernels ------------------------------------------------------------------------------------------------------

    def _make_decider(self, way: Any, exact: bool) -> tuple[Kernel, Any]:
        """A decision kernel for one of `Form.ways`, and its settings: see `entry.py`.

        If not `exact`, only the chosen action's value must be exact; other values may be lower bounds.
        """
        raise NotImplementedError

    def decider(self, way: Any, exact: bool) -> tuple[Kernel, Any]:
        return self._once((way, exact), lambda: self._make_decider(way, exact))

    def _entry(self, way: Any, exact: bool) -> tuple[np.uint64, np.uint64]:
        """The addresses of a decision kernel's entry and of the entry's settings."""

        def make():
            decide, settings = self.decider(way, exact)
            signature = signature_of(numba.typeof(settings))
            words = np.array([int(address_of(decide, signature)), *words_of(settings)], np.uint64)
            return address_of(self.form.entry(signature, way), ENTRY), self._keep(words)

        return self._once(("entry", way, exact), make)

    def _once(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """The result of `make()`, called once for each key."""
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]

    def _keep(self, array: Array) -> np.uint64:
        """The address of an array, which the player keeps alive."""
        self._kept[array.ctypes.data] = array
        return np.uint64(array.ctypes.data)

    def _context(self, **fields: Any) -> Array:
        """A record of a search's numbers, and of the addresses of its arrays: one word for each."""
        kept = {name: self._keep(one) if isinstance(one, np.ndarray) else one for name, one in fields.items()}
        words = {name: np.asarray(int(one) if isinstance(one, bool) else one) for name, one in kept.items()}
        return np.array([tuple(words.values())], [(name, word.dtype) for name, word in words.items()])

    # -- rules --------------------------------------------------------------------------------------------------------

    def with_rules(self, rules: Options) -> Player:
        """This player under an environment's rules; a copy if observations do not show all of them.

        Raises ValueError if the player was made for others.
        """
        theirs = {name: value for name, value in rules.items() if name in self.form.rules.arguments("players")}
        self._check_rules(theirs, "the environment has")
        if self.form.rules.arguments("players") == self.form.rules.arguments("observations"):
            return self
        player = copy.copy(self)
        player._rules = self._rules | theirs
        if self.rules_are_options:
            player.options = dict(self.options) | theirs
        return player

    @property
    def rules(self) -> Dict:
        """The rules that the player was made for, and its defaults."""
        return dict(self.defaults) | self._rules

    @property
    def counts_pieces(self) -> bool:
        """Whether a search with the player's `distribution` needs to know the pieces seen, under the player's rules."""
        return (self.distribution or self.rules.get("randomizer", "uniform")) != "uniform"

    def _check_rules(self, others: Options, where: str) -> None:
        for name, ours in self._rules.items():
            if name in others and others[name] != ours:
                raise ValueError(
                    f"{self.name} was made for {name}={ours!r}, but {where} {name}={others[name]!r}; "
                    f"give the environment {name}={ours!r}, too, or leave the option out"
                )

    # -- the protocol -------------------------------------------------------------------------------------------------

    def start(self, seed: int) -> Words | None:
        return self._fresh(seed) if self.remembers else None

    def _fresh(self, seed: int) -> Words:
        memory = np.zeros(self.form.memory_words, dtype=np.uint64)
        memory[0] = np.random.SeedSequence([seed, 1]).generate_state(1, np.uint64)[0]  # not the environment's stream
        return memory

    def values(self, observation: Observation, state: Any = None) -> Floats:
        return self._decide_all(observation, state, None, exact=True)[1]

    def play(
        self, env_id: str, seed: int, env_kwargs: Options | None = None, max_episode_steps: int | None = None
    ) -> Trajectory:
        """One whole episode from ``reset(seed=seed)``: the gym loop's trajectory, in a compiled loop where possible.

        It is not for matches, nor for players that decide in Python. The trajectory holds the first `KEPT` actions and
        counts all.
        """
        kwargs = env_kwargs or {}
        rules = self._once((env_id, repr(kwargs)), lambda: rules_in(env_id, kwargs, self.form.rules))
        self._check_rules({name: getattr(rules, name) for name in self._rules}, "the environment has")
        if not self.compiled or type(rules) is not self.form.rules:  # of a match
            return play_in_env(self.with_rules(asdict(rules)), env_id, seed, env_kwargs, max_episode_steps)
        states = rules.new_states(1)
        states[0, STREAM] = stream_from_seed(seed)
        rules.kernels.begin(states, np.zeros(1, np.int64), rules.pool(None), True)
        with self._lock:
            actions, length, terminated = self._play_from(states[0], rules, seed, max_episode_steps)
        return Trajectory(seed, actions, terminated, rules.figures_of(states[0]), length)

    # -- decisions and episodes ---------------------------------------------------------------------------------------

    def _decide_all(
        self, observation: Observation, state: Any, episode_start: Any, exact: bool
    ) -> tuple[Ints, Floats, Words | None]:
        with in_place(self.name):
            batch, shown, single = self.form.rules.read(observation)
            self._check_rules(shown, "the observation shows")
            rules = self._once(("rules", *shown.values()), lambda: self.form.rules(**(self.rules | shown)))
            states = rules.states(batch)
        memory, values = self._memory(state, len(states), episode_start), np.empty((len(states), rules.n_actions))
        with self._lock:
            actions = self._decide(rules, states, memory, values, exact)
        self._settle(rules, states, values)
        if single:
            actions, values, memory = actions[0].reshape(()), values[0], memory[0]
        return actions, values, memory if self.remembers else None

    def _settle(self, rules: Any, states: Array, values: Array) -> None:
        """Raises what a user's function raised, and NotFiniteError if some values are no decision."""
        if self.heuristic is not None:
            self.heuristic.check()
        check_values(self.name, values)
        lost = values.max(axis=1) == -np.inf
        if not self.form.loses and not rules.observed(states[lost])[1].all():
            raise NotFiniteError(f"{self.name} values every legal action at -inf; expected a finite number")

    def _decide(self, rules: Any, states: Words, memory: Words, values: Floats, exact: bool) -> Ints:
        """The actions chosen in states uint64[n, words]; fills `values` and updates `memory`."""
        return self._decide_by_kernel(self.form.ways(rules), states, memory, values, exact)

    def _decide_by_kernel(self, ways: Sequence[Any], states: Words, memory: Words, values: Floats, exact: bool) -> Ints:
        (way, *wider), actions = ways, np.empty(len(states), dtype=np.int64)
        entry, settings = self._entry(way, exact)
        begin, chunk = 0, 1
        while begin < len(states):
            part = slice(begin, begin + chunk)
            results = memory[part], values[part], actions[part]
            self._call(decide_all, entry, states[part], *results, settings, self.form.shift)
            begin, chunk = begin + chunk, 2 * chunk  # `Caller` goes by the time of the last ones
        if (rows := np.flatnonzero(actions == OUTGROWN)).size:
            some = memory[rows], values[rows]
            actions[rows] = self._decide_by_kernel(wider, states[rows], *some, exact)
            memory[rows], values[rows] = some
        return actions

    def _memory(self, state: Any, count: int, episode_start: Any) -> Words:
        """The memory before `count` decisions, uint64[count, memory_words]: a copy, so that `state` stays as it is."""
        words = self.form.memory_words
        if state is None and not self.remembers:
            return np.zeros((count, words), dtype=np.uint64)
        memory = array("state", self._fresh(0) if state is None else state, f"uint64[{count}, {words}]")
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

    def _play_from(self, state: Words, rules: Any, seed: int, limit: int | None) -> tuple[Array, int, bool]:
        """Play on in `state` for at most `limit` moves.

        Returns the first `KEPT` actions, the number of actions, and whether the game is over.
        """
        ways = iter(self.form.ways(rules))
        entry, settings = self._entry(next(ways), exact=False)
        memory, values = self._fresh(seed), np.zeros(rules.n_actions)
        kind = np.uint8 if values.size <= 256 else np.uint16
        kept, length, status, chunk = [np.empty(0, dtype=kind)], 0, GO_ON, CHUNK
        while status != OVER and length != limit:
            actions = np.empty(chunk if limit is None else min(chunk, limit - length), dtype=kind)
            count, status = self._call(self.form.loop, entry, state, actions, memory, values, settings)
            self._settle(rules, state[None], values[None])
            chunk = min(2 * chunk, LONGEST_CHUNK)
            kept.append(actions[: min(count, max(0, KEPT - length))])
            length += count
            if status == ILLEGAL:
                raise ValueError(
                    f"{self.name} chose action {actions[count - 1]}, which is illegal; expected a legal one"
                )
            elif status == OUTGROWN:
                entry, settings = self._entry(next(ways), exact=False)  # for good: boards only grow
        return np.concatenate(kept), length, status == OVER
