"""The randomizers deal what they say, draw by draw: a second program in plain Python deals the same pieces."""

from mergefall.tetris.env import TetrisEnv
from mergefall.tetris.keys.rules import Rules

from .test_keys import Stream


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
    """The draws of a seed as its documentation has them: SplitMix64, started by NumPy's SeedSequence."""
    stream = Stream(seed, Rules())
    while True:
        yield stream.bits() >> 32


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

        draws, bag, shown = numbers(seed), [], []
        for _ in range(9):
            bag = bag or list(range(7))
            shown.append(bag.pop(next(draws) * len(bag) >> 32))
        observation, _ = TetrisEnv(preview=8, randomizer="bag7").reset(seed=seed)
        assert [int(observation["piece"]), *observation["queue"].tolist()] == shown

        draws = numbers(seed)
        observation, _ = TetrisEnv(preview=8, pieces="sz").reset(seed=seed)
        assert [int(observation["piece"]), *observation["queue"].tolist()] == [
            3 + (next(draws) >> 31) for _ in range(9)
        ]
