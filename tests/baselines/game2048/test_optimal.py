"""The player over the exact solver: choices, compiled episodes, kept solutions."""

import numpy as np
import pytest
from mergefall_baselines.game2048.solver import Optimal

ENV = "mergefall/Game2048-v0"
FRESH = [[1, 0], [0, 1]]


def test_ties_go_to_the_lowest_action():
    player = Optimal(rows=2, cols=2)
    assert np.ptp(player.values(FRESH)) == 0
    assert player.act(FRESH) == 0
    assert player.act([[0, 1], [0, 2]]) == 3
    assert player.act([FRESH, [[2, 3], [1, 0]]]).tolist() == [0, 1]


@pytest.mark.parametrize("objective", ["score", 64])
def test_the_mean_of_its_games_is_the_value(objective):
    player = Optimal(rows=2, cols=3, objective=objective)
    games = [player.play(ENV, seed, {"rows": 2, "cols": 3}).figures for seed in range(4000)]
    results = np.array([game["score"] if objective == "score" else game["max_tile"] >= 64 for game in games])
    error = results.std() / np.sqrt(len(results))
    assert abs(results.mean() - player.start_value(2, 3)) < 4 * error
