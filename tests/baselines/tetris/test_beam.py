"""`tetris/beam`: its placements, rewards and values against the game by keys, and whole games."""

from dataclasses import dataclass

import numpy as np
import pytest
from mergefall.kernels import kernel
from mergefall.tetris import HEURISTICS, from_text, game, place, reach
from mergefall.tetris.field import columns_of, full_rows
from mergefall.tetris.heuristics import Attack
from mergefall.tetris.keys import game as keys
from mergefall.tetris.keys.rules import Rules
from mergefall.tetris.pieces import NAMES
from mergefall.tetris.rules import Rules as PlacementRules
from mergefall.weighted import Terms
from mergefall_baselines import make
from mergefall_baselines.tetris import beam
from mergefall_baselines.tetris.player import MEMORY

ID = "mergefall/Tetris-v0"
MODERN = {"placements": "reachable", "hold": True, "preview": 5, "randomizer": "bag7"}
WEIGHTS = {"combo": 0.125, "held_t": 0.25, "held_i": 0.5, "near": -0.0625, "perfect": 0.5, "chained": 0.375}


def new_state(seed, cols=10, rows=20, preview=5):
    state = Rules(cols, rows, preview=preview, gravity=0.0).new_states(1)[0]
    state[game.STREAM] = seed
    keys.begin(state, np.empty((0, 1), np.uint64), True)
    return state


def rests_of(state):
    """All (rotation, column, y, value of SPIN) in which the current piece can lock, by `reach.search`."""
    columns, piece = game.columns_in(state), game.queued(state, 0)
    cols, rows = game.size_of(state)
    work = reach.new_work(cols)
    reach.search(columns, piece, rows, work)
    for rotation, column, y in np.ndindex(4, cols, rows):
        bits = [int(work[part, rotation, column]) >> y & 1 for part in (reach.RESTS, reach.TURNED, reach.KICKED)]
        if bits[0]:
            yield rotation, column, y, keys.KICKED if bits[2] else keys.TURNED if bits[1] else 0


def locked(state, rotation, column, y, spin):
    """(the state after the current piece locked there, what locking did)."""
    after = state.copy()
    after[[game.ROTATION, game.COLUMN, game.ROW, game.SPIN]] = rotation, column, y, spin
    return after, keys.lock(after)


def chain_of(state):
    return int(state[game.COMBO]), int(state[game.BACK_TO_BACK])


@pytest.mark.parametrize("cols", [4, 5, 10])
def test_rests_spins_and_rewards_are_those_of_the_game(cols):
    random, spins, perfect = np.random.default_rng(cols), 0, 0
    for seed in range(60):
        state = new_state(seed, cols)
        while not state[game.OVER] and state[game.PIECES] < 60:
            columns, piece, rests = game.columns_in(state), game.queued(state, 0), list(rests_of(state))
            work = reach.new_work(cols)
            work[reach.TURNED] = work[reach.KICKED] = 0
            beam.find_rests(columns, piece, 20, work)
            found = {(r, c): int(work[reach.RESTS, r, c]) & (1 << 20) - 1 for r, c in np.ndindex(4, cols)}
            assert found == {
                (r, c): sum(1 << y for rotation, column, y, _ in rests if (rotation, column) == (r, c))
                for r, c in found
            }
            if not rests:
                break
            results = [locked(state, *rest) for rest in rests]
            for (rotation, column, y, spin), (after, lock) in zip(rests, results, strict=True):
                board, turned = columns.copy(), int(work[reach.TURNED, rotation, column]) >> y & 1
                kind = keys.spin_of(columns, piece, rotation, column, y, spin * turned)
                beam.put(board, piece, rotation, column, y)
                _, attack, *chain, _ = beam.settle(board, full_rows(board), kind, *chain_of(state), 0)
                assert attack == lock.attack
                assert tuple(chain) == chain_of(after)
                assert (board == game.columns_in(after)).all()
                spins += kind != keys.NO_SPIN
                perfect += lock.clear >= 15
            heights = [max(int(column).bit_length() for column in game.columns_in(after)) for after, _ in results]
            lowest = np.flatnonzero(np.array(heights) == min(heights))
            state = results[random.choice(lowest)][0]
    assert spins > 100
    assert perfect > 5 or cols > 4


def best_board(state, known, placements, h, earned=0.0, unknown=False):
    """The best value of a board after so many placements of the `known` first pieces, locked in the game by keys.

    `unknown`: whether the held piece is none of them.
    """
    if placements == 0:
        row, chained = chain_of(state)
        held = {keys.T + 1: h.held_t, 1: h.held_i}.get(int(state[game.HOLD]), 0.0) * (not unknown)
        value = h.kernels().board(game.columns_in(state), game.size_of(state)[1], h.weight_vector())
        return earned + value + held + h.chained * chained + h.combo * row
    values = []
    for held in (False, True):
        before, hold = state.copy(), int(state[game.HOLD])
        left = known - (2 if held and not hold else 1)
        if left < 0 and (unknown or not (held and hold)):  # that piece is not known
            continue
        if held:
            game.exchange(before, np.uint64(0))
        piece = game.queued(before, 0)
        for rest in rests_of(before):
            after, lock = locked(before, *rest)
            wasted = h.wasted if piece == keys.T and (lock.clear % 15 < 10 or lock.lines < 2) else 0.0
            reward = h.attack * lock.attack + h.lines * lock.lines + wasted
            values.append(best_board(after, max(left, 0), placements - 1, h, earned + reward, unknown or left < 0))
    return max(values, default=-np.inf)


@pytest.mark.parametrize("holds", [False, True])
@pytest.mark.slow
def test_a_wide_beam_finds_the_best_board(holds):
    h, known = Attack(**WEIGHTS), 2
    rules = PlacementRules(4, 9, placements="reachable", hold=True, overflow="clear_first")
    decide, settings = make("tetris/beam", heuristic=h, width=5000, draws=0).decider(rules, True)
    values = np.empty(rules.n_actions)
    for seed in range(8):
        state = new_state(seed, 4, 9, preview=known - 1)
        if holds:
            game.exchange(state, np.uint64(0))
        for _ in range(seed):
            state, _ = locked(state, *min(rests_of(state), key=lambda rest: rest[2]))
        decide(state, np.zeros(MEMORY, np.uint64), values, settings)
        assert values.max() == pytest.approx(best_board(state, known, known + holds, h))


def test_garbage_to_come_rises_or_is_cancelled():
    def settled(*columns):
        board = np.array(columns, np.uint64)
        *_, left = beam.settle(board, full_rows(board), keys.NO_SPIN, 0, 0, 3)
        return board.tolist(), left

    assert settled(3, 3, 1, 2) == ([31, 31, 15, 16], 0)  # the hole is where the bottom row has one
    assert settled(3, 3, 3, 2) == ([1, 1, 1, 0], 3)
    assert settled(15, 15, 15, 15) == ([0, 0, 0, 0], 0)


@kernel
def of_lock(piece, spin, lines, attack):
    return attack, lines


@dataclass(frozen=True)
class Sender(HEURISTICS["two-tetrad"].__class__):
    """Terms of boards, of placements, of last ones and of locks."""

    name = "sender"
    of_lock = Terms(("sent", "cleared"), of_lock)

    sent: float = 1000.0
    cleared: float = -10.0


@pytest.mark.parametrize("h", [*HEURISTICS.values(), Sender()], ids=lambda h: h.name)
def test_a_node_is_worth_the_terms_of_its_placements_and_its_board(h):
    judge, weights, random = beam.judge_kernel(h.recipe), h.weight_vector(), np.random.default_rng(1)
    cleared = 0
    for _ in range(200):
        board = (random.random((12, 6)) < 0.9).astype(np.uint8) * (np.arange(12)[:, None] > 6)
        rotation, column = int(random.integers(4)), int(random.integers(4))
        placed = place(board, "L", rotation, column)
        columns, y = columns_of(placed.locked), 11 - max(row for row, _ in placed.cells)
        spent = NAMES.index("L"), rotation, column, y, 12, keys.NO_SPIN, beam.UNKNOWN, 0, 0, 0, 7.0, weights
        paid, value, row, chained, _ = judge(columns, *spent)
        _, attack, *_ = beam.settle(columns_of(placed.locked), full_rows(columns_of(placed.locked)), 0, 0, 0, 0)
        lock = getattr(h, "cleared", getattr(h, "lines", 0.0)) * placed.lines if h.of_lock.names else 0.0
        lock += getattr(h, "sent", getattr(h, "attack", 0.0)) * attack
        chain = h.chained * chained + h.combo * row if h.of_chain.names else 0.0
        assert value == pytest.approx(7.0 + h(placed) + lock + chain)
        moves = h.kernels().move(*spent[:4], placed.lines, placed.removed_cells, 12, weights)
        assert paid == pytest.approx(lock + moves)
        assert (columns == columns_of(placed.board)).all()
        cleared += placed.lines
    assert cleared > 20


def test_terms_of_locks_decide():
    """A T points down into a slot, by a T-spin double, if lines sent are worth much, and not if they cost much."""
    field = "/".join([*["....."] * 7, "##...", "#...#", "##.##"])
    shown = {"board": from_text(field), "piece": keys.T}
    for worth in (1000.0, -1000.0):
        heuristic = {"name": "attack", "attack": worth}
        player = make("tetris/beam", heuristic=heuristic, draws=0, hold=False, preview=0, randomizer="uniform")
        assert (player.act(shown) == (2 * 5 + 1) * 14) == (worth > 0)
        assert abs(player.values(shown)[(2 * 5 + 1) * 14] - 4 * worth) < 100


def test_bad_options():
    player = make("tetris/beam", placements="drop")
    with pytest.raises(ValueError, match="plays 'reachable'"):
        player.play(ID, 0, {"placements": "drop"}, 1)
