"""The randomizers deal what they say, draw by draw: a second program in plain Python deals the same pieces."""

from mergefall.tetris.env import TetrisEnv
from mergefall.tetris.keys.rules import Rules

from .test_keys import NAMES, Stream


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


def dealt(seed, **rules):
    """(the first nine pieces of a game, what its reset tells)."""
    observation, info = TetrisEnv(preview=8, **rules).reset(seed=seed)
    return [int(observation["piece"]), *observation["queue"].tolist()], info


def test_the_order_of_a_seeds_draws_is_fixed():
    """Trajectories are part of v0: a change here needs a new version of the environment."""
    for seed in range(5):
        of_hidden, of_bags, of_two = (Stream(seed, Rules(randomizer="bag7")) for _ in range(3))
        copies = [of_hidden.below(11) for _ in range(7)]
        hidden = [piece for piece, count in enumerate(copies) for _ in range(count)]
        pieces, info = dealt(seed, randomizer="hidden")
        assert info["multiset"].tolist() == copies
        assert pieces == [hidden[of_hidden.below(len(hidden))] for _ in range(9)]
        assert dealt(seed, randomizer="bag7")[0] == [NAMES.index(of_bags.piece()) for _ in range(9)]
        assert dealt(seed, pieces="sz")[0] == [3 + of_two.below(2) for _ in range(9)]
