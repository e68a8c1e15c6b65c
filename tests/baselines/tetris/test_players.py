"""Every Tetris player keeps the protocol: one observation or a batch, and the same episode in any loop."""

import itertools
import pickle
from dataclasses import asdict, replace

import gymnasium as gym
import numpy as np
import pytest
from mergefall.tetris import HEURISTICS
from mergefall.weighted import LARGEST
from mergefall_baselines import kernel_player, make, play_in_env, players
from mergefall_baselines.player import NotFiniteError

ENV, QUINTRIS = "mergefall/Tetris-v0", "mergefall/Quintris-v0"
SMALL = {"cols": 6, "rows": 12}
OPTIONS = {
    "tetris/rollout": {"games": 2, "length": 4, "heuristic": "bcts"},
    "tetris/two-tetrad": {"heuristic": "bcts"},
    "tetris/expectimax": {"depth": 2},
    "tetris/mcts": {"simulations": 20},
    "quintris/expectimax": {"depth": 1},
}
LEARNT = {"afterstate", "distill", "dqn", "cross-entropy", "sz-afterstate", "sz-cross-entropy"}
NAMES = [
    name for name in players() if name.startswith(("tetris/", "quintris/")) and name.partition("/")[2] not in LEARNT
]
RULES = [
    {"placements": "drop"},
    {"placements": "slide", "randomizer": "bag7", "preview": 0},
    {"pieces": "sz", "overflow": "clear_first", "preview": 2},
    {"pieces": "five", "randomizer": "hidden", "cols": 7},
]


# Every player by all rules. Slides are slow tests of the trees, of rollouts, and of the controllers that differ from
# bcts in their features alone: each would compile the player once more.
SLOW_SLIDES = {"tetris/mcts", "tetris/rollout", "tetris/dt-10", "tetris/dt-20", "tetris/el-tetris"}
PAIRS = [
    pytest.param(*pair, marks=[pytest.mark.slow] * (pair[0] in SLOW_SLIDES and pair[1] == RULES[1]))
    for pair in itertools.product(NAMES, RULES)
]


@pytest.fixture(params=NAMES)
def name(request):
    return request.param


@pytest.fixture
def player(name):
    return make(name, **OPTIONS.get(name, {}))


def rules_with(**kwargs):
    """All rules of an environment, as `evaluate` hands them over."""
    return asdict(gym.make(ENV, **(SMALL | kwargs)).unwrapped.rules)


def observations(count=5, **kwargs):
    """What random play sees: (a batch of observations, their action masks)."""
    env = gym.make(ENV, **(SMALL | kwargs))
    found = [env.reset(seed=0)]
    while len(found) < count:
        legal = np.flatnonzero(found[-1][1]["action_mask"])
        observation, _, over, _, info = env.step(int(legal[len(found) % legal.size]))
        found.append(env.reset() if over else (observation, info))
    batch = {key: np.stack([observation[key] for observation, _ in found]) for key in found[0][0]}
    return batch, np.stack([info["action_mask"] for _, info in found]).astype(bool)


def one(batch, i):
    return {key: values[i] for key, values in batch.items()}


def test_one_observation_or_a_batch(name, player):
    batch, legal = observations(pieces="five")
    player = player.with_rules(rules_with(pieces="five"))
    action = player.act(one(batch, 0))
    assert (action.shape, action.dtype) == ((), np.int64)
    actions = player.act(batch)
    assert (actions.shape, actions.dtype) == ((len(legal),), np.int64)
    values = player.values(batch)
    assert (values.shape, values.dtype) == (legal.shape, np.float64)
    if name != "tetris/random" and name != "tetris/rollout":  # they draw from one stream in turn
        assert [int(player.act(one(batch, i))) for i in range(len(legal))] == actions.tolist()
        np.testing.assert_array_equal(np.stack([player.values(one(batch, i)) for i in range(len(legal))]), values)


@pytest.mark.parametrize(
    ("name", "options", "rules"),
    [
        ("tetris/random", {}, {}),
        ("tetris/greedy", {"heuristic": "bcts", "order": list(reversed(range(40)))}, {}),
        ("tetris/two-tetrad", {"heuristic": "bcts"}, {}),
        ("tetris/expectimax", {"heuristic": "bcts", "depth": 2}, {"randomizer": "bag7", "preview": 0}),
    ],
)
def test_a_large_batch_decides_as_single_boards_do(name, options, rules):
    """What players remember differs from game to game."""
    n = 100
    envs = gym.make_vec(ENV, n, cols=10, rows=12, **rules)
    player = make(name, **options).with_rules(asdict(envs.rules))
    observations, _ = envs.reset(seed=0)
    state = np.stack([player._fresh(seed) for seed in range(n)])
    for _ in range(9):
        singles = [player.predict(one(observations, i), state=state[i]) for i in range(n)]
        values = [player.values(one(observations, i), state=state[i]) for i in range(n)]
        np.testing.assert_array_equal(player.values(observations, state=state), values)
        actions, after = player.predict(observations, state=state)
        assert actions.tolist() == [int(action) for action, _ in singles]
        if player.remembers:
            assert after.tolist() == [found.tolist() for _, found in singles]
            state = after
        observations, *_ = envs.step(actions)


@pytest.mark.parametrize(("name", "rules"), PAIRS, indirect=["name"])
def test_chosen_actions_are_legal_and_others_are_worth_nothing(name, player, rules):
    batch, legal = observations(**rules)
    player = player.with_rules(rules_with(**rules))
    assert legal[np.arange(len(legal)), player.act(batch)].all()
    values = player.values(batch)
    assert not np.isfinite(values[~legal]).any()
    assert np.isfinite(values).any(axis=1).all()  # these boards are low


def test_a_masked_action_is_never_chosen(name, player):
    batch, legal = observations(pieces="five")
    player = player.with_rules(rules_with(pieces="five"))
    chosen, everyone = player.act(batch), np.arange(len(legal))
    assert player.predict(batch, action_masks=legal)[0].tolist() == chosen.tolist()
    masks = legal.copy()
    masks[everyone, chosen] = False
    others = player.predict(batch, action_masks=masks)[0]
    assert masks[everyone, others].all()
    if name not in ("tetris/random", "tetris/rollout", "tetris/mcts"):  # they draw
        assert others.tolist() == np.where(masks, player.values(batch), -np.inf).argmax(axis=1).tolist()


@pytest.mark.parametrize("name", ["tetris/greedy", "tetris/afterstate", "tetris/cross-entropy"])
def test_copies_for_other_rules_play_by_their_own(player):
    """The observations of both are alike, so what one copy resolves must not reach the other."""
    for placements in ("drop", "slide"):
        kwargs = {"rows": 20, "cols": 10, "placements": placements}
        batch, legal = observations(**kwargs)
        twin = player.with_rules(rules_with(**kwargs))
        assert twin.values(batch).shape == legal.shape
        assert legal[np.arange(len(legal)), twin.act(batch)].all()


@pytest.mark.parametrize(("name", "rules"), PAIRS, indirect=["name"])
def test_the_compiled_episode_is_the_gym_loop(name, player, rules):
    kwargs, limit = SMALL | rules, 60
    for seed in (0, 11):
        ours = player.play(ENV, seed, kwargs, limit)
        slow = play_in_env(player.with_rules(rules_with(**kwargs)), ENV, seed, kwargs, limit)
        assert ours.actions.tolist() == slow.actions.tolist()
        assert (ours.figures, ours.terminated, len(ours)) == (slow.figures, slow.terminated, len(slow))


def test_presets_of_the_environment_in_the_compiled_episode():
    for name, env in (("quintris/expectimax", QUINTRIS), ("tetris/dt-10", "mergefall/SZTetris-v0")):
        player = make(name, **OPTIONS.get(name, {}))
        kwargs = {} if env == QUINTRIS else {"pieces": "sz"}
        ours = player.play(env, 3, None, 25)
        slow = play_in_env(player.with_rules(kwargs), env, 3, None, 25)
        assert ours.actions.tolist() == slow.actions.tolist()
        assert ours.figures == slow.figures


def test_games_longer_than_what_is_kept(monkeypatch):
    player = make("tetris/bcts")
    whole = player.play(ENV, 0, None, 1000)
    monkeypatch.setattr(kernel_player, "KEPT", 300)
    ours = player.play(ENV, 0, None, 1000)
    assert ours.actions.tolist() == whole.actions[:300].tolist()
    assert (len(ours), ours.figures) == (1000, whole.figures)
    assert ours.figures["pieces"] == 1000


def test_pickled_players_decide_the_same_rules_included(name, player):
    batch, _ = observations(pieces="five")
    player = player.with_rules(rules_with(pieces="five"))
    copy = pickle.loads(pickle.dumps(player))
    assert (copy.name, copy.options) == (player.name, player.options)
    np.testing.assert_array_equal(copy.values(batch), player.values(batch))


def test_what_is_counted_travels_in_the_state():
    player = make("tetris/expectimax", depth=2, distribution="counted", preview=0)
    (batch, _), memory, ids = observations(40, preview=0), player.start(0), []
    for i in range(40):
        shown = one(batch, i)
        kept = memory.copy()
        _, after = player.predict(shown, memory, episode_start=np.array([i == 20]))
        assert (memory == kept).all()
        memory = after
        ids = [*([] if i == 20 else ids), int(shown["piece"])]
        assert memory[1:].tolist() == np.bincount(ids, minlength=7).tolist()


def test_previewed_pieces_are_counted_once():
    player = make("tetris/expectimax", depth=1, preview=2, distribution="counted")
    (batch, _), memory = observations(12, preview=2, rows=40), player.start(0)
    for i in range(12):
        _, memory = player.predict(one(batch, i), memory)
    seen = [*batch["piece"], *batch["queue"][-1]]
    assert memory[1:].tolist() == np.bincount(seen, minlength=7).tolist()


def test_random_streams_travel_in_the_state():
    player = make("tetris/random")
    shown = {"board": np.zeros((8, 6), dtype=np.uint8), "piece": np.int64(1)}

    def actions(state, count=40):
        found = []
        for _ in range(count):
            action, state = player.predict(shown, state)
            found.append(int(action))
        return found

    assert actions(player.start(1)) == actions(player.start(1)) != actions(player.start(2))
    assert actions(None) == actions(player.start(0))
    counts = np.bincount(actions(player.start(3), 4000), minlength=5)
    assert (abs(counts - 800) < 5 * np.sqrt(640)).all()


def test_rules_come_from_the_environment_and_may_not_differ():
    player = make("tetris/bcts", rows=12, overflow="clear_first")
    assert player.with_rules({"rows": 12, "cols": 6, "reward": "score"}).options["cols"] == 6
    with pytest.raises(ValueError, match=r"rows=12.*rows=20"):
        player.with_rules({"rows": 20})
    with pytest.raises(ValueError, match=r"overflow='clear_first'.*overflow='strict'"):
        player.play(ENV, 0, SMALL)
    with pytest.raises(ValueError, match=r"rows=12.*rows=8"):
        player.act({"board": np.zeros((8, 6), dtype=int), "piece": 0})
    with pytest.raises(ValueError, match="Game2048"):
        player.play("mergefall/Game2048-v0", 0)


@pytest.mark.parametrize(
    ("observation", "message"),
    [
        (np.zeros((20, 10), dtype=int), "mapping"),
        ({"board": np.zeros((20, 10), dtype=int)}, "mapping"),
        ({"board": np.zeros((20, 10), dtype=int), "piece": 0, "hold": 1}, "mapping"),
        ({"board": np.zeros((20, 10)), "piece": 0}, "got a board of float64 with 0.0; expected cells of 0 and 1"),
        ({"board": np.full((20, 10), 2), "piece": 0}, "got a board of int64 with 2; expected cells of 0 and 1"),
        ({"board": [[0, 1], [0]], "piece": 0}, r"board \[\[0, 1\], \[0\]\] has rows of different lengths"),
        ({"board": np.zeros((20, 10), dtype=int), "piece": "T"}, "got a piece of <U1 with T; expected a piece id"),
        ({"board": np.zeros((20, 10), dtype=int), "piece": [0]}, "shapes"),
        ({"board": np.zeros((2, 20, 10), dtype=int), "piece": [0, 0], "queue": [0, 0]}, "shapes"),
        ({"board": np.zeros((20, 10), dtype=int), "piece": 7}, "piece 7; expected one of 0 I, 1 O"),
        ({"board": np.zeros((20, 10), dtype=int), "piece": -1}, "piece -1; expected one of 0 I, 1 O"),
        ({"board": np.zeros((2, 10), dtype=int), "piece": 0}, "rows is 2"),
    ],
)
def test_bad_observations_are_refused(observation, message):
    with pytest.raises(ValueError, match=message):
        make("tetris/bcts").act(observation)


def test_a_piece_that_the_game_does_not_have_is_refused():
    player = make("tetris/expectimax", pieces="sz", distribution="counted", depth=2)
    with pytest.raises(ValueError, match="got piece 0; expected one of 3 S, 4 Z"):
        player.act({"board": np.zeros((20, 10), dtype=int), "piece": 0, "queue": [4]})


def test_an_environments_arguments_may_be_numpys_numbers():
    player = make("tetris/bcts")
    ours, theirs = ({"cols": kind(6), "rows": kind(12)} for kind in (np.int64, int))
    assert player.play(ENV, 0, ours, 50).actions.tolist() == player.play(ENV, 0, theirs, 50).actions.tolist()


@pytest.mark.parametrize("weight", [np.nan, np.inf])
def test_values_that_are_no_numbers_end_the_episode_with_an_error(weight):
    player = make("tetris/bcts")
    player.heuristic = replace(player.heuristic)
    object.__setattr__(player.heuristic, "landing_height", weight)  # the constructor refuses such a weight
    observation = one(observations()[0], 0)
    for ask in (player.values, player.act, player.predict):
        with pytest.raises(NotFiniteError, match=rf"{player.name} values action \d+ at (nan|inf); expected a finite"):
            ask(observation)
    with pytest.raises(NotFiniteError, match=rf"{player.name} values action \d+ at (nan|inf)"):
        player.play(ENV, 0, SMALL, 500)


@pytest.mark.parametrize("sign", [1, -1])
def test_the_largest_weights_make_finite_values(sign):
    known = HEURISTICS["bcts"].to_json()
    largest = {weight: sign * LARGEST[np.float64] for weight in known if weight != "name"}
    batch, legal = observations()
    values = make("tetris/expectimax", heuristic=known | largest, depth=2, lost=0.0).values(batch)
    assert (np.isfinite(values) <= legal).all()
    assert np.isfinite(values[0]).sum() > 5


def test_bad_states_are_refused():
    with pytest.raises(ValueError, match="state"):
        make("tetris/random").act(one(observations()[0], 0), np.zeros(3, dtype=np.uint64))


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("tetris/greedy", {"heuristic": "low"}, "'low'"),
        ("tetris/greedy", {"width": 10}, "has no option 'width'; it has heuristic, order, cols, rows, pieces"),
        ("tetris/bcts", {"rules": {}}, "has no option 'rules'; it has order, cols, rows, pieces"),
        ("tetris/greedy", {"cols": 3}, "cols is 3"),
        ("tetris/greedy", {"overflow": "none"}, "'none'"),
        ("tetris/rollout", {"games": 0}, "games is 0"),
        ("tetris/rollout", {"length": 1.5}, "length is 1.5"),
        ("tetris/two-tetrad", {"depth": 3}, "depth=3"),
        ("tetris/two-tetrad", {"near_top": -1}, "near_top is -1"),
        ("tetris/expectimax", {"depth": 0}, "depth is 0"),
        ("tetris/expectimax", {"distribution": "even"}, "'even'"),
        ("tetris/expectimax", {"beam": 0}, "beam is 0"),
        ("tetris/expectimax", {"cutoff": 1}, "cutoff=1"),
        ("tetris/expectimax", {"cutoff": "1e-4"}, "cutoff='1e-4'"),
        ("tetris/expectimax", {"table": 1}, "table=1"),
        ("tetris/expectimax", {"lost": float("nan")}, "lost is nan; expected a finite number"),
        ("tetris/expectimax", {"rewards": "no"}, "rewards='no'"),
        ("tetris/expectimax", {"time_limit": 0}, "time_limit=0"),
        ("tetris/expectimax", {"time_limit": True}, "time_limit=True"),
        ("tetris/expectimax", {"leaf": "node"}, "leaf is 'node'; expected one of 'afterstate', 'state'"),
        ("tetris/two-tetrad", {"cutoff": 0.1}, "no option 'cutoff'"),
        ("tetris/two-tetrad", {"rewards": True}, "no option 'rewards'"),
        ("quintris/expectimax", {"beam": 0}, "beam is 0"),
        ("quintris/expectimax", {"leaf": "state"}, "no option 'leaf'"),
        ("quintris/expectimax", {"depth": -1}, "depth is -1"),
        ("quintris/expectimax", {"heuristic": "bcts"}, "'bcts'"),
    ],
)
def test_bad_options_are_named(name, options, message):
    with pytest.raises(ValueError, match=message):
        make(name, **options)


def test_an_order_must_name_each_action_once():
    for name in ("tetris/expectimax", "tetris/greedy"):
        with pytest.raises(ValueError, match=r"order=\[0, 0, 1\]; expected each action from 0 to 23 once"):
            make(name, order=[0, 0, 1]).act(one(observations()[0], 0))
        with pytest.raises(ValueError, match=r"order=5; expected each action from 0 to 23 once"):
            make(name, order=5).act(one(observations()[0], 0))


def test_quintris_takes_an_order_of_all_actions():
    shown = one(observations()[0], 0)
    orders = (list(range(24))[::-1], list(range(72))[::-1])
    found = [int(make("quintris/expectimax", depth=0, placements="slide", order=order).act(shown)) for order in orders]
    assert found[0] == found[1]
