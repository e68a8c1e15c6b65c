"""`chance_outcomes` of both environments, against what their own random streams draw."""

import gymnasium as gym
import numpy as np
import pytest
from mergefall.game2048.rules import outcomes
from mergefall.games import each

DRAWS = 3000
VARIANTS = [
    ("Game2048-v0", {}),
    ("Game2048-v0", {"rows": 2, "cols": 3, "goal": 64}),
    ("Tetris-v0", {"cols": 6, "rows": 8}),
    ("Tetris-v0", {"cols": 6, "rows": 8, "preview": 0, "placements": "slide"}),
    ("Tetris-v0", {"cols": 6, "rows": 8, "preview": 2, "randomizer": "bag7"}),
    ("Tetris-v0", {"cols": 6, "rows": 8, "randomizer": "hidden"}),
    ("Tetris-v0", {"cols": 7, "rows": 9, "pieces": "five", "preview": 0}),
    ("Tetris-v0", {"cols": 6, "rows": 8, "placements": "reachable", "hold": True, "randomizer": "bag7"}),
    ("Tetris-v0", {"cols": 6, "rows": 8, "hold": True, "randomizer": "hidden"}),
]
each_variant = pytest.mark.parametrize(("name", "kwargs"), VARIANTS, ids=str)


def key(observation):
    """An observation as bytes."""
    if isinstance(observation, dict):
        return b"".join(np.asarray(observation[name]).astype(np.int64).tobytes() for name in sorted(observation))
    return observation.tobytes()


@each_variant
def test_outcomes_are_what_the_game_draws_as_often_as_it_draws_them(name, kwargs):
    env = gym.make(f"mergefall/{name}", **kwargs).unwrapped
    _, info = env.reset(seed=5)
    rng = np.random.default_rng(5)
    for _ in range(6):  # a few moves on, so that a bag is not full
        _, _, over, _, info = env.step(int(rng.choice(np.flatnonzero(info["action_mask"]))))
        if over:
            _, info = env.reset()
    action = int(rng.choice(np.flatnonzero(info["action_mask"])))
    state = env.clone_state()
    observations, probabilities = env.chance_outcomes(action)
    np.testing.assert_array_equal(env.clone_state(), state)
    assert probabilities.sum() == pytest.approx(1, abs=1e-9)
    expected = dict(zip(map(key, each(observations)), probabilities, strict=True))
    assert len(expected) == len(probabilities)  # all different
    drawn = dict.fromkeys(expected, 0)
    for stream in rng.integers(0, 1 << 63, DRAWS, dtype=np.uint64):
        state[0] = stream
        env.restore_state(state)
        drawn[key(env.step(action)[0])] += 1  # KeyError: an outcome that was not listed
    for outcome, probability in expected.items():
        spread = np.sqrt(DRAWS * probability * (1 - probability))
        assert abs(drawn[outcome] - DRAWS * probability) < 5 * spread + 1


def test_tiles_are_those_of_the_rules():
    env = gym.make("mergefall/Game2048-v0").unwrapped
    env.reset(seed=1)
    boards, _, legal = env.afterstates()
    for action in np.flatnonzero(legal):
        mine, chances = env.chance_outcomes(action)
        theirs, known = outcomes(boards[action])
        np.testing.assert_array_equal(mine, theirs)
        np.testing.assert_allclose(chances, known, atol=1e-8)
