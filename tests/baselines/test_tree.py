"""Monte-Carlo trees: the schedule of sequential halving, and the options and errors that both games share."""

import numpy as np
import pytest
from mergefall import game2048
from mergefall.tetris import from_text
from mergefall_baselines import make
from mergefall_baselines.tree import CONSIDERED, halving

from .trees import searched_tree

BOARD = game2048.from_text("32 16 8 4/2 2 . ./4 . . 2/. . . .")
FIELD = {"board": from_text("...../...../...../...../##..#"), "piece": 1, "queue": [2]}
SHOWN = {"2048": BOARD, "tetris": FIELD}


@pytest.fixture(params=SHOWN)
def game(request):
    return request.param


@pytest.mark.parametrize("considered", [1, 2, 3, 4, 7, 16])
@pytest.mark.parametrize("simulations", [1, 16, 50, 100, 1000])
def test_halving_visits_the_remaining_actions_equally_often(considered, simulations):
    schedule, visits = halving(considered, simulations), np.zeros(considered, int)
    assert len(schedule) == simulations
    for wanted in schedule:  # whichever of the actions with so many visits is taken, there is one
        visits[np.flatnonzero(visits == wanted)[0]] += 1
    if simulations >= considered * max(1, np.ceil(np.log2(considered))):
        assert visits.min() == max(1, simulations // (considered * max(1, int(np.ceil(np.log2(considered))))))
        assert considered == 1 or np.sort(visits)[-2] >= visits.max() - 1  # two remain in the last phase


def test_visits_are_those_of_sequential_halving(game):
    player = make(f"{game}/mcts", simulations=96)
    _, edges, _ = searched_tree(player, SHOWN[game])
    visits = edges[0]["visits"]
    # 4 actions share the first 48 simulations, 2 the others
    assert sorted(visits[visits > 0].tolist()) == [12, 12, 36, 36]
    assert visits[player.act(SHOWN[game])] == 36


def test_only_so_many_actions_are_considered():
    field = {"board": from_text("........../........../......####/##.####..#"), "piece": 2, "queue": [2]}
    _, edges, _ = searched_tree(make("tetris/mcts", simulations=70), field)
    best = np.argsort(make("tetris/greedy").values(field))[-CONSIDERED:]
    assert sorted(np.flatnonzero(edges[0]["visits"])) == sorted(best)


def test_leaves_valued_inside_and_outside_of_the_kernel_give_the_same_values(game):
    inside = make(f"{game}/mcts", simulations=30)
    outside = make(f"{game}/mcts", simulations=30)
    outside.compiled = False
    values = inside.values(SHOWN[game])
    np.testing.assert_array_equal(outside.values(SHOWN[game])[values > -np.inf], values[values > -np.inf])


def test_one_evaluation_values_the_leaves_of_all_games(monkeypatch):
    player = make("2048/mcts", heuristic={"player": "2048/random"}, simulations=64)
    values, sizes = player.leaf.values, []
    monkeypatch.setattr(player.leaf, "values", lambda shown: (sizes.append(len(shown)), values(shown))[1])
    player.values(np.stack([BOARD] * 3))
    assert len(sizes) == 65
    assert sizes[0] == max(sizes) == 3  # the roots


def test_priors(game):
    values = make(f"{game}/greedy", **{"heuristic": "nneonneo"} if game == "2048" else {}).values(SHOWN[game])
    exact = np.exp((values - values.max()) / 20.0)
    _, edges, _ = searched_tree(make(f"{game}/mcts", simulations=1, temperature=20.0), SHOWN[game])
    np.testing.assert_allclose(edges[0]["prior"], exact / exact.sum(), rtol=1e-9)
