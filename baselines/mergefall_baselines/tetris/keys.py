"""Tetris by keys for `KernelPlayer`, and the player that presses the keys for another one's placements.

The choice of a decision kernel of this game is a key.
"""

from dataclasses import asdict, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from mergefall.checks import choice
from mergefall.games import take
from mergefall.kernels import kernel
from mergefall.tetris import game as words
from mergefall.tetris.field import copy, field_mask, full_rows, put
from mergefall.tetris.keys import game
from mergefall.tetris.keys.routes import ANY, SPUN, best_spin, explore, find, goal_of, key_at, new_work, write_route
from mergefall.tetris.keys.rules import Rules
from mergefall.tetris.placements import ACTION_SHIFT, action_of, at_rest, list_placements, rest_of
from mergefall.tetris.rules import Rules as PlacementRules
from mergefall.typing import Array, Ints, Kernel
from mergefall.words import any_bit

from mergefall_baselines.kernel_player import GO_ON, OVER, KernelPlayer, ask, episode_loop
from mergefall_baselines.registry import of_game, without_memory
from mergefall_baselines.tetris.player import MEMORY, STATE_FORM

U = np.uint64
MARK, PRESSED, ROUTE, KEYS_MEMORY = MEMORY, MEMORY + 1, MEMORY + 2, MEMORY + 6  # after what the other player remembers


@kernel
def _turn(state, key):
    _, over, _, _ = game.step(state, key)
    return OVER if over else GO_ON


FORM = replace(
    STATE_FORM,
    rules=Rules,
    memory_words=KEYS_MEMORY,
    loop=episode_loop(_turn, 0, True),
    shift=0,
)


@kernel
def mark_of(state):
    """A number that tells one falling piece at one place over one board from another; never 0."""
    mark = U(words.queued(state, 0))
    for first, end in ((words.ROTATION, words.LOWEST + 1), (words.COLUMNS, state.size)):
        for i in range(first, end):
            mark = (mark ^ state[i]) * U(0x9E3779B97F4A7C15)
            mark ^= mark >> U(29)
    return mark | U(1)


@kernel
def without_keys(state, rules_word, target):
    """Write the state of the game by placements that shows the same board and pieces; what clears are worth stays."""
    copy(state, target)
    target[words.RULES] = rules_word
    field = field_mask(words.size_of(state)[1])
    for i in range(words.COLUMNS, target.size):
        target[i] &= field


@kernel
def best_in_time(state, values, settings, route):
    """Write the route to the best of the placements that are reached in time; returns its number of keys."""
    slides, reach, _, asked, trial, work = settings
    columns, count, best, per_piece = words.columns_in(asked), 0, -np.inf, words.actions_of(asked)
    placements = np.empty(per_piece, np.int64)
    for held in range(words.choices_of(asked)):
        copy(state, trial)
        if held and (not game.act(trial, game.HOLD_KEY)[0] or trial[words.OVER]):
            continue
        explore(trial, ANY, True, work)
        node, found = -1, count > 0
        listed = list_placements(columns, words.queued(trial, 0), slides, reach, placements)
        for placement in placements[:listed]:
            value = values[held * per_piece + action_of(placement)]
            rotation, column, y = at_rest(placement)
            if value > best or not found:
                end = work.ends[goal_of(rotation, column, y)]
                if end >> 16 == work.searches[0]:
                    best, node, found = value, end & 0xFFFF, True
        if node >= 0:
            count = write_route(node, game.HOLD_KEY if held else -1, work, route)
    return count


@kernel
def plan(state, memory, choice, values, settings):
    """Remember the route to a chosen placement, packed; if it is not reached in time, to the best one that is.

    A T gets there by a turn, if it is a T-spin then and clears lines.
    """
    _, _, _, asked, trial, work = settings
    memory[PRESSED], route, count = U(0), memory[ROUTE:], 0
    held, (rotation, column, y) = action_of(choice) >= words.actions_of(asked), at_rest(choice)
    goal, columns = goal_of(rotation, column, y), words.columns_in(asked)
    if words.placed_by(asked, held) == game.T:
        placed = columns.copy()
        put(placed, game.T, rotation, column, y)
        if full_rows(placed) and best_spin(columns, game.T, rotation, column, y, words.size_of(asked)[1]):
            count = find(state, held, goal + SPUN, trial, work, route)
    if count == 0 and find(state, held, goal, trial, work, route) == 0:
        if best_in_time(state, values, settings, route) == 0:
            route[0] = U(game.HARD_DROP)


@kernel
def next_key(state, memory, values, trial):
    """The next key of the remembered route; its value is 0."""
    last = 16 * (memory.size - ROUTE) - 1  # a memory comes from outside
    key = min(key_at(memory[ROUTE:], np.int64(min(memory[PRESSED], U(last)))), values.size - 1)
    memory[PRESSED] += U(1)
    copy(state, trial)
    _, locks = game.act(trial, key)
    memory[MARK] = U(0) if locks else mark_of(trial)
    values[:] = -np.inf
    values[key] = 0.0
    return key


@kernel
def decide(state, memory, values, settings):
    entry, own, wanted, routes = settings
    _, _, rules_word, asked, trial, _ = routes
    if memory[MARK] != mark_of(state):
        without_keys(state, rules_word, asked)
        choice = ask(entry, asked, memory[:MEMORY], wanted, own)
        if choice < 0:
            values[:] = np.nan
            return np.int64(game.WAIT)
        plan(state, memory, choice, wanted, routes)
    return next_key(state, memory, values, trial)


@kernel
def choose_any(state, memory, values, settings):
    """Choose any key whose mask is 1; each is worth 0."""
    game.write_mask(state, state[words.OVER] > 0, settings)
    mask = 0
    for key in range(settings.size):
        values[key] = 0.0 if settings[key] else -np.inf
        mask |= np.int64(settings[key]) << key
    return any_bit(memory, mask)


class Random(KernelPlayer):
    """Random: a key that changes something, or a wait, each with the same probability.

    The random stream travels in `state`. ``start(seed)`` begins a stream other than the environment's of that seed.

    Args:
        rules: the arguments of `mergefall/TetrisKeys-v0` that make its game. Default: those of the environment, or
            what the observation shows.

    Example:
        >>> from mergefall_baselines import make
        >>> make("keys/random").play("mergefall/TetrisKeys-v0", seed=0).figures["lines"]
        0
    """

    form = FORM
    remembers = True

    def _make_decider(self, way: Rules, exact: bool) -> tuple[Kernel, Any]:
        return choose_any, np.empty(way.n_actions, np.int8)


class Keys(KernelPlayer):
    """Keys: presses the keys that bring each piece to where a player of placements wants it.

    It asks the player once for each piece, as in the game by placements with the same board and pieces, finds the
    shortest keys to the chosen place, or those of a T-spin that clears lines there, and presses them. With hold and a
    preview it may hold. The search knows the clock: if gravity or the lock delay cuts the way off, it takes the
    placement with the highest value of those that are reached in time.

    Args:
        of: the player: a name, a run folder, or a mapping of `player` and options. Default: `tetris/bcts`.
        placements: the placements that the player chooses from, as the environment's argument. Default:
            ``reachable``.
        rules: the arguments of `mergefall/TetrisKeys-v0` that make its game, other than `garbage`. Default: those of
            the environment, or what the observation shows.

    `values` are 0 for the key that it presses, −inf for the others.

    Example:
        >>> from mergefall_baselines import make
        >>> player = make("tetris/keys", of="tetris/bcts", placements="drop")
        >>> player.play("mergefall/TetrisKeys-v0", seed=0, env_kwargs={"hold": False}, max_episode_steps=9).actions
        array([1, 1, 1, 6, 4, 6, 2, 2, 6], dtype=uint8)
    """

    form = FORM
    remembers = caches = True
    plays = MappingProxyType({"env_id": "mergefall/TetrisKeys-v0"})

    def __init__(self, of: Any = "tetris/bcts", placements: str = "reachable", **rules: Any) -> None:
        super().__init__(**rules)
        self.of = of_game(of, PlacementRules, "of")
        self.placements = choice("placements", placements, PlacementRules.choices("placements"))
        self.compiled = isinstance(self.of, KernelPlayer) and self.of.compiled
        if not self.compiled and not hasattr(self.of, "choose"):
            without_memory(self.of, "of")

    def _asks(self, rules: Rules) -> tuple[Any, PlacementRules, tuple[Any, ...]]:
        """(the player, the rules that it plays by, the settings of `plan`)."""

        def make() -> tuple[Any, PlacementRules, tuple[Any, ...]]:
            theirs = PlacementRules(
                **{name: getattr(rules, name) for name in ("cols", "rows", "pieces", "randomizer", "preview")},
                placements=self.placements,
                hold=rules.hold and rules.preview > 0,
            )
            asked, trial = np.zeros((2, words.COLUMNS + rules.cols), U)
            settings = theirs.slides, theirs.reach, U(theirs.words[words.RULES].low), asked, trial, new_work()
            return self.of.with_rules(asdict(theirs)), theirs, settings

        return self._once(("asks", rules), make)

    def _make_decider(self, way: Rules, exact: bool) -> tuple[Kernel, Any]:
        player, theirs, settings = self._asks(way)
        entry, own = player._entry(player.form.ways(theirs)[0], True)
        return decide, (entry, own, np.empty(theirs.n_actions), settings)

    def _decide(self, rules: Any, states: Array, memory: Array, values: Array, exact: bool) -> Ints:
        if self.compiled:
            return super()._decide(rules, states, memory, values, exact)
        player, theirs, settings = self._asks(rules)
        actions = np.empty(len(states), np.int64)
        for i, state in enumerate(states):
            if memory[i, MARK] != mark_of(state):
                slides, reach, rules_word, asked, *_ = settings
                without_keys(state, rules_word, asked)
                if hasattr(player, "choose"):  # it sees the whole state, such as `bot.Bot`
                    placement = player.choose(state, memory[i])
                else:
                    chosen = int(player.act(take(theirs.observations(asked[None]), 0)))
                    held, action = divmod(chosen, words.actions_of(asked))
                    placement = rest_of(words.columns_in(asked), words.placed_by(asked, held), action, slides, reach)
                    placement += chosen - action << ACTION_SHIFT
                plan(state, memory[i], placement, np.zeros(theirs.n_actions), settings)  # all others are as good
            actions[i] = next_key(state, memory[i], values[i], settings[4])
        return actions
