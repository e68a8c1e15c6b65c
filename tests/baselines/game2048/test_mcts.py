"""Monte-Carlo tree search in 2048: exact values on small boards, the chances of tiles, leaves of all kinds."""

import copy
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from mergefall.game2048 import legal_actions, outcomes
from mergefall.game2048.rules import move
from mergefall_baselines import Player, make, play_in_env, register, registry, tree
from mergefall_baselines.registry import factory_of

BOARD = np.array([[5, 4, 3, 2], [1, 1, 0, 0], [2, 0, 0, 1], [0, 0, 0, 0]])
LOST = np.array([[1, 2, 1, 2], [2, 1, 2, 1]] * 2)
SMALL = [[[1, 1], [0, 0]], [[2, 3], [1, 0]], [[1, 2], [3, 0]], [[3, 3], [1, 0]], [[1, 4], [2, 0]]]


def tree_of(player):
    """The arrays of a compiled search's last tree."""
    (tree,) = [made for key, made in player._made.items() if key[0] == "tree"]
    return tree


def searched_tree(player, board):
    """(nodes, edges, states) of the compiled search from one board, the unused part left out."""
    player.values(board)
    tree = tree_of(player)
    count = tree.tree["count"][0]
    return tree.nodes[:count], tree.edges[:count], tree.states[:count]


def outside(**options):
    """A player whose leaves are valued outside of the compiled search, which then need not be compiled for them."""
    player = make("2048/mcts", **options)
    player.compiled = False
    return player


def test_with_exact_leaves_the_values_are_exact_but_for_chance():
    """The mean over draws is all that differs; the R2 sequence makes it small."""
    player = outside(heuristic={"player": "2048/optimal"}, simulations=4000)
    optimal = make("2048/optimal")
    for board in SMALL:
        exact, found = optimal.values(board), player.statistics(board)
        often = found.visits > 100
        np.testing.assert_allclose(found.values[often], exact[often], rtol=0.05, atol=0.5)
        assert exact.max() - exact[found.actions] < 0.02 * exact.max()


@pytest.mark.parametrize("compiled", [True, False])
def test_what_memory_held_before_does_not_matter(monkeypatch, compiled):
    """A board of 2×2 fills four of the eight bytes of its word, and draws depend on the whole word."""
    filled = 0

    class Dirty:
        def __getattr__(self, name):
            return getattr(np, name)

        @staticmethod
        def empty(shape, dtype=float):
            array = np.empty(shape, dtype)
            array.view(np.uint8).fill(filled)
            return array

    def values():
        player = make("2048/mcts", heuristic=None, simulations=300)
        player.compiled = compiled
        return [player.values(board).tolist() for board in SMALL]

    found = [values()]  # compiles, too
    monkeypatch.setattr(tree, "np", Dirty())
    for byte in (0x55, 0xAA):
        filled = byte
        found.append(values())
    assert found[0] == found[1] == found[2]


def test_without_a_heuristic_the_values_come_close_to_the_exact_ones():
    """Leaves are worth 0 and the score counts, so all of the value is found by the search."""
    optimal, errors = make("2048/optimal"), {}
    for simulations in (100, 20000):
        player = make("2048/mcts", heuristic=None, simulations=simulations, exploration=0.1)
        exact, values = (np.stack([one.values(board) for board in SMALL]) for one in (optimal, player))
        errors[simulations] = np.mean(1 - values.max(axis=1) / exact.max(axis=1))
        regret = exact.max(axis=1) - exact[np.arange(len(SMALL)), values.argmax(axis=1)]
        assert (regret < 0.05 * exact.max(axis=1)).all()
    assert 0 < errors[20000] < 0.1 < errors[100]


def test_new_tiles_come_with_their_probabilities():
    nodes, edges, states = searched_tree(make("2048/mcts", simulations=3000), BOARD)
    for action in range(4):
        after, _, legal = move(BOARD, action)
        boards, probabilities = outcomes(after)
        children = np.flatnonzero((nodes["parent"] == 0) & (nodes["action"] == action))
        children = children[children > 0]
        visits = {states[i].tobytes(): 1 + edges[i]["visits"].sum() for i in children}
        assert legal
        counts = np.array([visits.pop(board.tobytes(), 0) for board in boards])
        assert not visits
        assert counts.sum() == edges[0, action]["visits"]
        assert abs(counts - counts.sum() * probabilities).max() < 8  # independent draws would differ by about 12


@pytest.mark.parametrize("heuristic", ["nneonneo", "monotone-smooth", "tile-order", "prairie-fire", None])
def test_every_heuristic(heuristic):
    values = outside(heuristic=heuristic, simulations=30).values(BOARD)
    assert np.isfinite(values).all()


@pytest.mark.parametrize("shape", [(2, 3), pytest.param((5, 6), marks=pytest.mark.slow)])
def test_boards_of_any_size(shape):
    board = np.random.default_rng(0).integers(0, 4, shape)
    player = outside(heuristic="monotone-smooth", simulations=50)
    np.testing.assert_array_equal(np.isfinite(player.values(board)), legal_actions(board))


def test_boards_that_outgrow_a_word():
    big = np.array([[16, 15, 15, 3], [14, 15, 0, 2], [0, 0, 1, 1], [16, 2, 0, 1]])
    leaf = {"player": {"player": "2048/ntuple", "downgrade": 16384}}
    assert np.isfinite(outside(heuristic=leaf, simulations=50).values(big)).all()


def test_only_illegal_moves_are_worth_minus_infinity():
    player = make("2048/mcts", simulations=20)
    boards = np.stack([[[1, 2, 3, 4], [2, 3, 4, 5], [3, 4, 5, 6], [4, 5, 6, 6]], LOST, BOARD])
    legal = np.stack([legal_actions(board) for board in boards])
    np.testing.assert_array_equal(np.isfinite(player.values(boards)), legal)
    found = player.statistics(LOST)
    assert found.visits.sum() == found.policy.sum() == found.value == 0
    assert player.act(LOST) == 0


def test_a_lost_game_counts_what_the_option_says():
    """On this board one new tile in ten ends the game."""
    board = np.array([[1, 2, 3, 4], [2, 3, 4, 5], [3, 4, 5, 6], [1, 1, 2, 3]])
    low, high = (
        make("2048/mcts", simulations=200, lost=lost, rewards=False).values(board).max() for lost in (-1e9, 1e6)
    )
    assert low < high


def test_rewards_are_scores():
    board = np.array([[3, 3], [0, 0]])
    leaf = {"player": {"player": "2048/greedy"}}  # values the score of the move
    counted = make("2048/mcts", heuristic=leaf, simulations=1, considered=1).values(board).max()
    plain = make("2048/mcts", heuristic=leaf, simulations=1, considered=1, rewards=False).values(board).max()
    assert counted - plain == pytest.approx(8.0)  # half of the move's 16: the value before the visit counts, too


def test_a_policy_makes_priors_and_its_critic_values_leaves():
    class Policy(Player):
        """Log-probabilities 0.1 to 0.4, and a value of 7 for every board."""

        def values(self, observation, state=None):
            return np.broadcast_to(np.log([0.1, 0.2, 0.3, 0.4]), (len(observation), 4))

        def board_values(self, observation):
            return np.full(len(observation), 7.0)

    if "2048/policy" not in factories():
        register("2048/policy", Policy)
    options = {"heuristic": {"player": "2048/policy"}, "temperature": 1.0}
    found = make("2048/mcts", simulations=40, rewards=False, **options).statistics(BOARD)
    np.testing.assert_allclose(found.priors, [0.1, 0.2, 0.3, 0.4])
    np.testing.assert_allclose(found.values, 7.0)
    np.testing.assert_allclose(found.policy, found.priors, rtol=1e-6)


def test_where_all_positions_are_worth_the_same_the_rewards_decide():
    class Equal(Player):
        """No preferences, and the same value for every board."""

        def values(self, observation, state=None):
            return np.zeros((len(observation), 4))

        def board_values(self, observation):
            return np.full(len(observation), 7.0)

    board = np.array([[3, 1, 0], [3, 2, 4], [0, 4, 2]])  # all moves are legal; up and down merge
    options = {"heuristic": {"player": Equal()}, "gamma": 0.0, "temperature": 1.0, "simulations": 40}
    found = make("2048/mcts", **options).statistics(board)
    assert found.actions in (0, 2)
    assert found.policy[[0, 2]].sum() > 0.8


@pytest.mark.parametrize("rewards", [True, False, "log2"])
def test_values_met_are_scaled_to_0_and_1(rewards):
    player = make("2048/mcts", heuristic={"player": "2048/greedy"}, simulations=60, rewards=rewards)
    nodes, edges, _ = searched_tree(player, BOARD)
    edges = edges[(nodes["seen"] == 1) & (nodes["over"] == 0)]
    visited = edges[edges["visits"] > 0]
    means = [tree.scaled(value, tree_of(player)) for value in visited["total"] / visited["visits"]]
    assert len(means) > 10
    assert 0 <= min(means) < max(means) <= 1


def factories():
    try:
        return {"2048/policy": factory_of("2048/policy")}
    except ValueError:
        return {}


def test_episodes_with_leaves_from_outside_are_the_gym_loop():
    kwargs = {"rows": 2, "cols": 2}
    player = make("2048/mcts", heuristic={"player": {"player": "2048/rollout", "games": 2}}, simulations=5)
    ours = player.play("mergefall/Game2048-v0", 1, kwargs)
    slow = play_in_env(player, "mergefall/Game2048-v0", 1, kwargs)
    assert ours.actions.tolist() == slow.actions.tolist()
    assert player.batched


def test_the_rules_of_the_leaf_are_checked():
    with pytest.raises(ValueError, match=r"2048/ntuple was made for rows=4, but the environment has rows=3"):
        make("2048/mcts", heuristic={"player": "2048/ntuple"}).values([[1, 1, 0]] * 3)


@pytest.mark.parametrize("rewards", [True, "log2"])
def test_without_a_future_every_visit_counts_the_reward_of_the_move_alone(rewards):
    _, edges, _ = searched_tree(make("2048/mcts", simulations=40, rewards=rewards, gamma=0.0), BOARD)
    visits = edges[0]["visits"]
    assert visits.all()
    scores = [move(BOARD, action)[1] for action in range(4)]
    expected = np.log2(1 + np.array(scores)) if rewards == "log2" else np.array(scores)
    assert sorted(scores) == [0, 0, 4, 4]
    np.testing.assert_allclose(edges[0]["total"] / visits, expected)


def test_a_search_without_a_decision_kernel_values_leaves():
    inner = {"player": "2048/lookahead", "of": {"player": "2048/greedy", "heuristic": "nneonneo"}, "depth": 2}
    same = {"player": "2048/expectimax", "heuristic": "nneonneo", "depth": 2}
    player = make("2048/mcts", heuristic={"player": inner}, simulations=20)
    assert player.batched
    np.testing.assert_allclose(player.values(BOARD), outside(heuristic={"player": same}, simulations=20).values(BOARD))


def test_a_copy_has_a_leaf_of_its_own():
    leaf = {"player": {"player": "2048/expectimax", "heuristic": "nneonneo", "depth": 2}}
    player = make("2048/mcts", heuristic=leaf, simulations=60)
    boards = np.stack([np.rot90(BOARD, k) for k in range(4)] * 5)
    alone = player.values(boards)
    with ThreadPoolExecutor(2) as pool:
        for values in pool.map(lambda one: one.values(boards), [player, copy.copy(player)] * 2):
            np.testing.assert_array_equal(values, alone)


def test_what_a_lost_game_is_worth_depends_on_what_the_leaves_predict():
    """Nothing is left to score in a lost game; but a heuristic's values may lie below 0."""
    assert make("2048/mcts", heuristic={"player": "2048/ntuple"}).plan.lost == 0
    assert make("2048/mcts", heuristic=None).plan.lost == 0
    assert np.isnan(make("2048/mcts", heuristic="prairie-fire", rewards=True).plan.lost)
    assert make("2048/lookahead", of={"player": "2048/greedy", "heuristic": "prairie-fire"}, rewards=True).lost == -1e9
    assert make("2048/lookahead", of="2048/ntuple").lost == 0


def test_leaves_whose_values_are_no_numbers_end_the_search_with_an_error():
    shown = np.array([[9, 9], [0, 0]])  # no such board comes up in a game of 2×2
    for player in (
        outside(heuristic={"player": "2048/optimal"}),
        make("2048/mcts", heuristic={"player": "2048/optimal"}),
    ):
        with pytest.raises(ValueError, match=r"not in the table|values action \d at nan"):
            player.values(shown)


def test_a_prior_too_small_for_a_float_is_no_illegal_action():
    found = make("2048/mcts", heuristic="nneonneo", temperature=1.0, simulations=40, value_scale=10).statistics(BOARD)
    assert found.policy.sum() == pytest.approx(1)
    assert found.policy[found.actions] > 0


def test_a_player_may_have_a_heuristic_of_any_kind():
    class Own(Player):
        """Has an attribute that is no heuristic of ours."""

        heuristic = "mine"

        def values(self, observation, state=None):
            return np.zeros((len(observation), 4))

    found = make("2048/mcts", heuristic={"player": Own()}, rewards=True, simulations=20).statistics(BOARD)
    assert found.visits.sum() == 20


def test_only_a_player_of_the_game_that_values_actions_can_be_a_leaf():
    class Chooses:
        """Only chooses."""

        def predict(self, observation, state=None, episode_start=None, deterministic=True):
            return np.zeros((), np.int64), None

    if "2048/chooses" not in factories():
        register("2048/chooses", Chooses)
    for name, option in (("2048/mcts", "heuristic"), ("2048/lookahead", "player")):
        for leaf, message in (("tetris/greedy", "plays another game"), ("2048/chooses", "does not value actions")):
            with pytest.raises(ValueError, match=f"player is '{leaf}', which {message}"):
                make(name, **{option: {"player": leaf} if option == "heuristic" else leaf})


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_board_that_has_no_value_is_an_error(value):
    """NaN would stand for the value of the best action, which of a policy is a log-probability."""

    class Preferring(Player):
        name = "preferring"

        def values(self, observation, state=None):
            return np.array([np.where(legal_actions(board), -1.0, -np.inf) for board in observation])

        def board_values(self, observation):
            return np.full(len(observation), value)

    register("2048/preferring", Preferring)
    try:
        with pytest.raises(ValueError, match=f"values a board at {value}; expected a number"):
            make("2048/mcts", heuristic={"player": "2048/preferring"}, simulations=4).values(BOARD)
    finally:
        del registry._FACTORIES["2048/preferring"]
