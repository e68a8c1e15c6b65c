"""Monte-Carlo trees: the schedule of sequential halving, and the options and errors that both games share."""

import numpy as np
import pytest
from mergefall.tetris import from_text
from mergefall_baselines import make
from mergefall_baselines.tree import halving

BOARD = np.array([[5, 4, 3, 2], [1, 1, 0, 0], [2, 0, 0, 1], [0, 0, 0, 0]])
FIELD = {"board": from_text("...../...../...../...../##..#"), "piece": 1, "queue": [2]}
SHOWN = {"2048": BOARD, "tetris": FIELD}
COUNTING = {"player": "tetris/expectimax", "depth": 1, "distribution": "counted"}
OUTSIDE = {"2048": "2048/random", "tetris": COUNTING}  # valued outside of the kernel


@pytest.fixture(params=SHOWN)
def game(request):
    return request.param


def batch_of(game, count):
    shown = SHOWN[game]
    if game == "2048":
        return np.stack([np.rot90(shown, k) for k in range(count)])
    pieces = np.arange(count)
    return {"board": np.stack([shown["board"]] * count), "piece": pieces, "queue": np.stack([pieces[::-1]]).T}


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
    found = make(f"{game}/mcts", simulations=96, considered=4).statistics(SHOWN[game])
    # 4 actions share the first 48 simulations, 2 the others
    assert sorted(found.visits[found.visits > 0].tolist()) == [12, 12, 36, 36]
    assert found.visits[found.actions] == 36


def test_only_so_many_actions_are_considered():
    found = make("tetris/mcts", simulations=40, considered=2).statistics(FIELD)
    best = np.argsort(make("tetris/greedy").values(FIELD))[-2:]
    assert sorted(np.flatnonzero(found.visits)) == sorted(best)


@pytest.mark.parametrize("outside", [False, True])
def test_one_observation_or_a_batch_and_again(game, outside):
    options = {"heuristic": {"player": OUTSIDE[game]}} if outside else {}
    player, batch = make(f"{game}/mcts", simulations=20, seed=3, **options), batch_of(game, 3)
    assert player.compiled == (not outside)
    found = player.statistics(batch)
    values = player.values(batch)
    np.testing.assert_array_equal(found.values, values)
    np.testing.assert_array_equal(found.actions, player.act(batch))
    np.testing.assert_array_equal(values.argmax(axis=1), found.actions)
    for i in range(3):
        alone = {key: part[i] for key, part in batch.items()} if game == "tetris" else batch[i]
        np.testing.assert_array_equal(player.values(alone), values[i])
        for part, whole in zip(player.statistics(alone), found, strict=True):
            np.testing.assert_array_equal(part, whole[i])
    again = make(f"{game}/mcts", simulations=20, seed=3, **options)
    np.testing.assert_array_equal(again.values(batch), values)
    other = make(f"{game}/mcts", simulations=20, seed=4, **options)
    assert (other.values(batch) != values).any()


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
    player.values(batch_of("2048", 3))
    assert len(sizes) == 65
    assert sizes[0] == max(sizes) == 3  # the roots


def test_statistics(game):
    found = make(f"{game}/mcts", simulations=50).statistics(SHOWN[game])
    legal = np.isfinite(found.values)
    assert found.visits.sum() == 50
    assert found.priors.sum() == pytest.approx(1)
    assert found.policy.sum() == pytest.approx(1)
    assert (found.priors[~legal] == 0).all()
    assert (found.policy[~legal] == 0).all()
    assert found.values[legal].min() <= found.value <= found.values.max()


def test_the_value_under_the_policy_is_not_capped_at_that_of_an_action_chosen_by_noise():
    above = 0
    for seed in range(10):
        found = make("2048/mcts", simulations=16, gumbel_scale=100.0, seed=seed).statistics(BOARD)
        assert found.values.max() == found.values[found.actions]
        above += found.value > found.values.max()
    assert above > 0


def test_priors(game):
    values = make(f"{game}/greedy", **{"heuristic": "nneonneo"} if game == "2048" else {}).values(SHOWN[game])
    exact = np.exp((values - values.max()) / 20.0)
    tempered = make(f"{game}/mcts", simulations=1, temperature=20.0).statistics(SHOWN[game]).priors
    np.testing.assert_allclose(tempered, exact / exact.sum(), rtol=1e-9)


def test_gumbel_noise_draws_actions_by_their_priors():
    """With one action considered, the noise alone chooses it; its prior is the probability."""
    options = {"simulations": 1, "considered": 1, "gumbel_scale": 1.0, "temperature": 500.0, "value_scale": 1e-9}
    priors, counts = None, np.zeros(4)
    for seed in range(400):
        found = make("2048/mcts", seed=seed, **options).statistics(BOARD)
        priors, counts = found.priors, counts + found.visits
    assert (abs(counts - 400 * priors) < 4 * np.sqrt(400 * priors * (1 - priors)) + 1).all()
