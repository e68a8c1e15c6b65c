"""Tetris by keys: the compiled rules against those in plain Python, kicks against the golden data, spins by hand."""

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mergefall.tetris import game as words
from mergefall.tetris.field import columns_of
from mergefall.tetris.keys import CLEARS, KEYS, STATUS, game
from mergefall.tetris.keys.reference import TURNS, Game
from mergefall.tetris.keys.rules import Rules
from mergefall.tetris.pieces import TETROMINOES
from mergefall.words import stream_from_seed

from ..tools import golden

NAMES = list(TETROMINOES)
ID = "mergefall/TetrisKeys-v0"
CHANCES = (0.1, 0.17, 0.17, 0.14, 0.14, 0.1, 0.1, 0.04, 0.04)  # of the keys in random play


class Stream:
    """The random streams in plain Python, SplitMix64 started by NumPy's SeedSequence: pieces, and holes of garbage."""

    def __init__(self, seed, rules, chair=0):
        self.state, self.rules, self.bag, self.hole = int(stream_from_seed(seed)), rules, [], 0
        self.of_holes = self.state ^ int(game.HOLE_STREAMS[chair])
        holes = rules.garbage.holes if rules.garbage else 1
        self.hole = (self.drawn_for_holes() >> 32) * (rules.cols - holes + 1) >> 32

    def drawn_for_holes(self):
        self.state, self.of_holes = self.of_holes, self.state
        bits = self.bits()
        self.state, self.of_holes = self.of_holes, self.state
        return bits

    def bits(self):
        whole = (1 << 64) - 1
        self.state = (self.state + 0x9E3779B97F4A7C15) & whole
        z = (self.state ^ self.state >> 30) * 0xBF58476D1CE4E5B9 & whole
        z = (z ^ z >> 27) * 0x94D049BB133111EB & whole
        return z ^ z >> 31

    def below(self, count):
        return (self.bits() >> 32) * count >> 32

    def piece(self):
        if self.rules.randomizer == "uniform":
            return NAMES[self.below(7)]
        self.bag = self.bag or NAMES.copy()
        return self.bag.pop(self.below(len(self.bag)))

    def holes(self):
        bits, garbage = self.drawn_for_holes(), self.rules.garbage
        if (bits & 0xFFFF) < round(garbage.moves * 65536):
            to = (bits >> 32) * (self.rules.cols - garbage.holes) >> 32
            self.hole = to + (to >= self.hole)
        return set(range(self.hole, self.hole + garbage.holes))


def reference_of(seed, rules, kind=Game, chair=0):
    """(the game from a seed by the reference, its random stream)."""
    stream = Stream(seed, rules, chair)
    queue = [stream.piece() for _ in range(1 + rules.preview)]
    slow = kind(
        stream.piece,
        stream.holes,
        queue,
        cols=rules.cols,
        rows=rules.rows,
        gravity=round(rules.gravity * 65536),
        lock_delay=rules.lock_delay,
        lock_resets=rules.lock_resets,
        garbage=round(rules.garbage.rows * 65536) if rules.garbage else 0,
    )
    slow.appear()
    return slow, stream


def set_level(slow):
    """Levels as the guideline has them: of ten lines each, a piece falls faster in each."""
    slow.level = min(1 + slow.lines // 10, 20)
    slow.gravity = int(65536 / 60 / (0.8 - 0.007 * (slow.level - 1)) ** (slow.level - 1))


def words_of(slow):
    """The field of the reference as columns of bits, up to the rows that are kept."""
    columns = [0] * slow.cols
    for row, column in slow.board:
        columns[column] |= (row < slow.rows + 4) << row
    return columns


def played_alike(seed, rules, count):
    """Play random keys through both; returns the number of keys played."""
    state = rules.new_states(1)[0]
    state[words.STREAM] = stream_from_seed(seed)
    game.begin(state, rules.pool(None), True)
    slow, stream = reference_of(seed, rules)
    rng, mask, field = np.random.default_rng(seed), np.zeros(len(KEYS), np.int8), (1 << rules.rows + 4) - 1
    for played in range(count):
        if rules.levels:
            set_level(slow)
        game.write_mask(state, bool(state[words.OVER]), mask)
        movable = [key for key in KEYS if key in TURNS or key in ("left", "right", "soft drop")]
        changes = {key for key in movable if slow.moved(key)} | {"wait", "hard drop"}
        changes |= {"hold"} if rules.hold and not slow.falling.held else set()
        assert [key for key, one in zip(KEYS, mask, strict=True) if one] == [key for key in KEYS if key in changes]
        key, score, attack, sent, lines = rng.choice(9, p=CHANCES), slow.score, slow.attack, slow.sent, slow.lines
        legal, over, points, locked = game.step(state, key)
        slow.step(KEYS[key], rules.hold)
        assert (legal, over) == (KEYS[key] in changes, slow.over)
        gained = slow.score - score, slow.attack - attack, slow.sent - sent, slow.lines - lines
        assert gained == (points, locked.attack, locked.sent, locked.lines)
        assert state[[words.STREAM, words.HOLE_STREAM]].tolist() == [stream.state, stream.of_holes]
        assert (state[words.COLUMNS :] & np.uint64(field)).tolist() == words_of(slow)
        if over:
            return played + 1
        piece = slow.falling
        place = piece.rotation, min(c for _, c in piece.cells()), min(r for r, _ in piece.cells())
        spin = ["", "turned", "kicked"].index(piece.spin)
        status = piece.held, spin, piece.phase, piece.grounded, piece.resets, piece.lowest
        shown = rules.observations(state[None])
        assert tuple(shown["place"][0]) == place
        assert dict(zip(STATUS, shown["status"][0].tolist(), strict=True)) == dict(
            zip(STATUS, (*status, slow.row, slow.chain, slow.pending, slow.level), strict=True)
        )
        assert [NAMES[shown["piece"][0]], *(NAMES[id] for id in shown.get("queue", [[]])[0])] == slow.queue
        if rules.hold:
            assert shown["hold"][0] == (NAMES.index(slow.hold) if slow.hold else 7)
    return count


GARBAGE = st.none() | st.fixed_dictionaries(
    {"rows": st.floats(0, 3), "holes": st.integers(1, 3), "moves": st.floats(0, 1)}
)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_the_engine_is_the_reference(data):
    numbers = {
        "cols": st.sampled_from([4, 5, 6, 10, 16]),
        "rows": st.sampled_from([4, 8, 20, 36]),
        "preview": st.integers(0, 6),
        "gravity": st.sampled_from([0.0, 0.02, 0.4, 1.7, 30.0]),
        "lock_delay": st.integers(0, 30),
        "lock_resets": st.integers(0, 15),
    }
    others = {"hold": st.booleans(), "levels": st.booleans(), "garbage": GARBAGE}
    others["randomizer"] = st.sampled_from(["bag7", "uniform"])
    rules = Rules(**data.draw(st.fixed_dictionaries(numbers | others)), rotate_180=True)
    assert played_alike(data.draw(st.integers(0, 1 << 60)), rules, 300)


@pytest.mark.parametrize("piece", NAMES)
@pytest.mark.parametrize(("gravity", "pattern"), [(1.0, [3]), (0.02, [3, 3, 3, 3, 0, 4, 4, 4, 4, 0])])
@pytest.mark.parametrize("resets", [0, 1, 15])
def test_every_piece_locks(piece, gravity, pattern, resets):
    """Turns may keep a piece off the floor, but it cannot stall: falling gives them back only below its lowest row."""
    env = gym.make(ID, gravity=gravity, lock_resets=resets)
    env.reset(seed=0, options={"piece": piece})
    steps, locked = 0, False
    while not locked:
        locked, steps = env.step(pattern[steps % len(pattern)])[-1]["pieces"], steps + 1
    if gravity == 1 and resets == 15:  # an O rests from step 20 on, for 31 steps; others land in step 19
        assert steps == (50 if piece == "O" else 19 + 15)
    assert steps <= 20 / gravity + 3 * 31 * (1 + resets)


@pytest.mark.parametrize("kind", ["JLSTZ", "I"])
def test_every_kick(kind):
    """For each turn and test there is a board on which only that test finds room; the boxes and kicks are golden."""
    srs, found = golden("tetris")["srs"], 0
    for name in kind:
        for turn, moves in srs["kicks"][kind].items():
            before, after = map("0R2L".index, turn.split(">"))

            def cells(rotation, x, y, name=name):
                boxed = srs["boxes"][name][rotation]
                return {(y + (3 if name == "I" else 2) - row, x + column) for row, column in boxed}

            start, targets = cells(before, 4, 8), [cells(after, 4 + dx, 8 + dy) for dx, dy in moves]
            for test, target in enumerate(targets):
                room = start | target
                if any(earlier <= room for earlier in targets[:test]):
                    continue
                columns = np.array(
                    [sum(1 << row for row in range(20) if (row, c) not in room) for c in range(10)], np.uint64
                )
                place = before, min(c for _, c in start), min(r for r, _ in start)
                turned = game.turned(columns, NAMES.index(name), *place, (after - before) % 4)
                assert turned == (after, min(c for _, c in target), min(r for r, _ in target), test)
                found += 1
    assert found == {"JLSTZ": 5 * 8 * 5 - 4, "I": 8 * 5}[kind]  # wherever four tests of T have room, earlier ones do


DOWN = ["soft drop"] * 9
CLEARED = [  # a field's lowest rows, the piece, keys before the hard drop, the clear and its attack
    ("##..../#...##/##.###", "T", ["clockwise", *DOWN, "clockwise"], "T-spin double", 4),
    ("..####/...###", "T", ["clockwise", "left", "left", *DOWN, "counterclockwise"], "mini T-spin single", 0),
    ("..####/...###", "I", [], "", 0),
    ("##.###/##.###/##.###/##.###", "I", ["clockwise", *["left"] * 9, *["right"] * 2], "perfect clear tetris", 10),
    ("#...../##.###/##.###/##.###/##.###", "I", ["clockwise", *["left"] * 9, *["right"] * 2], "tetris", 4),
    ("#....#", "I", [], "perfect clear single", 10),
]


@pytest.mark.parametrize(("rows", "piece", "keys", "name", "attack"), CLEARED)
def test_clears_by_hand(rows, piece, keys, name, attack):
    board = "/".join(["......"] * (7 - rows.count("/")) + [rows])
    env = gym.make(ID, gravity=0, cols=6, rows=8, reward="attack")
    env.reset(seed=0, options={"board": board, "piece": piece})
    for key in [*keys, "hard drop"]:
        _, reward, _, _, info = env.step(KEYS.index(key))
    assert (CLEARS[info["clear"]], reward, info["attack"]) == (name, attack, attack)


def test_a_game_that_ends_high_up_is_restored():
    """Pieces that are kicked up over a crowded spawn may lock above the rows that are kept."""
    env, rng, kept, lost = gym.make(ID, cols=6, rows=6, gravity=0).unwrapped, np.random.default_rng(0), 0, 0
    env.reset(seed=0)
    sound = env.clone_state()
    for _ in range(3000):
        state, cells = sound.copy(), rng.random((10, 6)) < rng.choice([0.3, 0.6])
        cells[:, rng.integers(6)] = False
        state[words.COLUMNS :], state[words.QUEUE] = columns_of(cells), sound[words.QUEUE] ^ np.uint64(rng.integers(8))
        if state[words.QUEUE] & 15 == 7:
            continue
        env.restore_state(state)
        for key in rng.choice([3, 4], 4):
            env.step(key)
        *_, y = env.step(0)[0]["place"]
        lost += y + 3 >= 10
        env.step(6)
        env.restore_state(env.clone_state())
        kept += env.clone_state()[words.OVER] == 0
    assert min(kept, lost) > 10


def test_shaping_is_of_the_settled_board():
    env = gym.make(ID, shaping={"potential": "bcts", "gamma": 1.0})
    env.reset(seed=0)
    assert [env.step(key)[4]["shaping"] != 0 for key in (1, 6)] == [False, True]
