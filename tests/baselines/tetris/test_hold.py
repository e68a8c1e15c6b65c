"""Players with hold: each decides as for both pieces without hold, and remembers all pieces that came into view."""

import gymnasium as gym
import numpy as np
import pytest
from mergefall_baselines import make
from mergefall_baselines.tetris.player import COUNTS, IDS

TETRIS = "mergefall/Tetris-v0"


def games(kwargs, seeds=4, most=40):
    """(observation, whether it is the first) along random play."""
    env, rng = gym.make(TETRIS, **kwargs), np.random.default_rng(0)
    for seed in range(seeds):
        observation, info = env.reset(seed=seed, options={"hold": "S"} if seed == 1 and kwargs.get("hold") else None)
        over, count = False, 0
        while not over and count < most:
            yield observation, count == 0
            action = int(rng.choice(np.flatnonzero(info["action_mask"])))
            observation, _, over, _, info = env.step(action)
            count += 1


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("tetris/bcts", {}),
        ("tetris/two-tetrad", {"heuristic": "bcts"}),
        ("tetris/expectimax", {"heuristic": "bcts", "depth": 2, "distribution": "counted"}),
    ],
)
@pytest.mark.parametrize("placements", ["drop", "reachable"])
def test_the_better_of_both_pieces(name, options, placements):
    kwargs = {"cols": 6, "rows": 8, "preview": 2, "placements": placements}
    player, plain = (
        make(name, **options, hold=True, placements=placements),
        make(name, **options, placements=placements),
    )
    chosen = set()
    for observation, _ in games(kwargs | {"hold": True}, seeds=2, most=12):
        board, piece, queue, held = (observation[part] for part in ("board", "piece", "queue", "hold"))
        other, after = (queue[0], queue[1:]) if held == 7 else (held, queue[:1])
        expected = [
            plain.values({"board": board, "piece": first, "queue": known})
            for first, known in ((piece, queue[:1]), (other, after))
        ]
        values = player.values(observation)
        np.testing.assert_array_equal(values, np.concatenate(expected))
        action = int(player.act(observation))
        assert values[action] == values.max()
        assert action == values.argmax() or np.isneginf(values.max())
        chosen.add(action >= len(values) // 2)
    assert chosen == {False, True}


@pytest.mark.parametrize("rules", [{"preview": 2, "hold": True}, {"preview": 2}, {"preview": 0}])
def test_all_pieces_that_came_into_view_are_counted_once_and_forgotten_where_an_episode_starts(rules):
    player = make("tetris/expectimax", depth=1, distribution="counted", **rules)
    came, state, before = [], None, None
    for observation, first in games({"cols": 6, "rows": 8, **rules}):
        shown, held = [observation["piece"], *observation.get("queue", ())], observation.get("hold", 7)
        if first:
            came = [*shown, *([held] if held < 7 else [])]
        else:
            came += shown[-1 - (before == 7 and held < 7) :]
        _, state = player.predict(observation, state, episode_start=np.array([first]))
        assert state[COUNTS : COUNTS + IDS].tolist() == np.bincount(came, minlength=7).tolist()
        before = held
