"""The randomizers deal what they say: frequencies by chi-square tests at fixed seeds, and what holds for every game.

Limits are the 0.1 % points of the chi-square distribution by degrees of freedom.
"""

import numpy as np
from mergefall.tetris import game
from mergefall.tetris.env import TetrisEnv
from mergefall.tetris.rules import Rules

LIMITS = {1: 10.83, 6: 22.46, 10: 29.59, 41: 74.74, 48: 84.04, 119: 173.6}


def dealt(count, seed=5, **kwargs):
    """The state after a start, and `count` pieces from there on."""
    settings = Rules(preview=0, **kwargs)
    state = settings.new_states(1)[0]
    state[game.STREAM] = seed
    game.begin(state, settings.pool(None), True)
    pieces = np.empty(count, np.int64)
    for i in range(count):
        pieces[i] = state[game.QUEUE]
        game.advance(state)
    return state, pieces


def surprise(observed, expected=None):
    """The chi-square statistic of counts; `expected`: default equal counts."""
    expected = np.full(len(observed), observed.sum() / len(observed)) if expected is None else expected
    return ((observed - expected) ** 2 / expected).sum()


def test_uniform_pieces_are_equally_frequent_and_independent():
    _, pieces = dealt(40_000)
    assert surprise(np.bincount(pieces, minlength=7)) < LIMITS[6]
    pairs = pieces[0::2] * 7 + pieces[1::2]
    assert surprise(np.bincount(pairs, minlength=49)) < LIMITS[48]


def test_every_bag_holds_each_piece_once_in_any_order():
    _, pieces = dealt(7 * 4000, randomizer="bag7")
    bags = pieces.reshape(-1, 7)
    assert (np.sort(bags, axis=1) == np.arange(7)).all()
    firsts = bags[:, 0] * 7 + bags[:, 1]
    counts = np.bincount(firsts, minlength=49).reshape(7, 7)
    assert surprise(counts[~np.eye(7, dtype=bool)]) < LIMITS[41]
    assert surprise(np.bincount(bags[:, 6], minlength=7)) < LIMITS[6]


def test_hidden_pieces_follow_their_multiset():
    state, pieces = dealt(20_000, pieces="five", randomizer="hidden", seed=3)
    copies = Rules(pieces="five").multiset(state)
    assert (copies == 0).any()  # at this seed
    counts = np.bincount(pieces, minlength=6)
    assert (counts[copies == 0] == 0).all()
    there = copies > 0
    expected = len(pieces) * copies[there] / copies.sum()
    assert surprise(counts[there], expected) < LIMITS[6]


def test_multisets_are_uniform_but_never_empty():
    settings = Rules(pieces="sz", randomizer="hidden")
    state, pool = settings.new_states(1)[0], settings.pool(None)
    state[game.STREAM] = 11
    seen = np.zeros((11, 11), np.int64)
    for _ in range(12_000):
        game.begin(state, pool, True)
        copies = settings.multiset(state)
        assert copies[[0, 1, 2, 5, 6]].sum() == 0
        seen[copies[3], copies[4]] += 1
    assert seen[0, 0] == 0
    assert surprise(seen.ravel()[1:]) < LIMITS[119]


def test_given_pieces_leave_the_bag():
    env = TetrisEnv(preview=2, randomizer="bag7", rows=40)
    for seed in range(5):
        observation, _ = env.reset(seed=seed, options={"piece": "T", "queue": ["I", 6]})
        pieces = [int(observation["piece"]), *observation["queue"].tolist()]
        assert pieces == [2, 0, 6]
        for _ in range(4):
            observation, *_ = env.step(0)
            pieces.append(int(observation["queue"][-1]))
        assert sorted(pieces) == list(range(7))


def numbers(seed):
    """The draws of a seed as its documentation has them: SplitMix64, started by NumPy's SeedSequence; plain Python."""
    state, full = int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0]), 2**64 - 1
    while True:
        state = state + 0x9E3779B97F4A7C15 & full
        bits = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & full
        bits = (bits ^ bits >> 27) * 0x94D049BB133111EB & full
        yield (bits ^ bits >> 31) >> 32


def test_the_order_of_a_seeds_draws_is_fixed():
    """Trajectories are part of v0: a change here needs a new version of the environment."""
    for seed in range(5):
        draws = numbers(seed)
        copies = [next(draws) * 11 >> 32 for _ in range(7)]
        hidden = [piece for piece, count in enumerate(copies) for _ in range(count)]
        observation, info = TetrisEnv(preview=8, randomizer="hidden").reset(seed=seed)
        assert info["multiset"].tolist() == copies
        shown = [int(observation["piece"]), *observation["queue"].tolist()]
        assert shown == [hidden[next(draws) * len(hidden) >> 32] for _ in range(9)]

        draws, bag, shown = numbers(seed), list(range(7)), []
        for _ in range(7):
            shown.append(bag.pop(next(draws) * len(bag) >> 32))
        observation, _ = TetrisEnv(preview=6, randomizer="bag7").reset(seed=seed)
        assert [int(observation["piece"]), *observation["queue"].tolist()] == shown

        draws = numbers(seed)
        observation, _ = TetrisEnv(preview=8, pieces="sz").reset(seed=seed)
        assert [int(observation["piece"]), *observation["queue"].tolist()] == [
            3 + (next(draws) >> 31) for _ in range(9)
        ]
