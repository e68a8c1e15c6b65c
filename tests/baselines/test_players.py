"""Every registered player keeps the protocol: one observation or a batch, and the same episode in any loop."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar

import gymnasium as gym
import numpy as np
import pytest
from mergefall.game2048 import HEURISTICS, legal_actions
from mergefall.game2048 import board as rules
from mergefall.kernels import kernel
from mergefall.tetris import from_text
from mergefall.tetris.heuristics.linear import linear
from mergefall.weighted import LARGEST
from mergefall.words import stream_from_seed
from mergefall_baselines import make, play_in_env, players, register, registry
from mergefall_baselines.game2048.expectimax import expectimax
from mergefall_baselines.game2048.mcts import mcts
from mergefall_baselines.game2048.minimax import minimax
from mergefall_baselines.game2048.network import TupleNetwork
from mergefall_baselines.game2048.ntuple import SHIPPED, ntuple
from mergefall_baselines.game2048.player import FORM, MAX_RANK, pick
from mergefall_baselines.game2048.simple import Random
from mergefall_baselines.kernel_player import KernelPlayer
from mergefall_baselines.player import NotFiniteError
from mergefall_baselines.registry import factory_of
from mergefall_baselines.tetris.greedy import Greedy

ENV = "mergefall/Game2048-v0"
OPTIONS = {
    "2048/rollout": {"games": 2},
    "2048/expectimax": {"depth": 2, "heuristic": "monotone-smooth"},
    "2048/minimax": {"depth": 2},
    "2048/mixed": {"depth": 2},
    "2048/mcts": {"simulations": 20},
    "2048/lookahead": {"of": "2048/ntuple"},
    "2048/symmetric": {"of": {"player": "2048/greedy", "heuristic": "tile-order"}},
}
SMALL = {"2048/optimal": {"rows": 2, "cols": 3}}
NAMES = [name for name in players() if name.startswith("2048/")]


@pytest.fixture(params=NAMES)
def name(request):
    return request.param


@pytest.fixture
def player(name):
    try:
        return make(name, **OPTIONS.get(name, {}))
    except gym.error.DependencyNotInstalled as missing:  # with `make oldest`, without the extra `train`
        pytest.skip(str(missing))


def observations(name, count=5):
    """Boards that a game can come to, uint8[count, rows, cols]."""
    kwargs = SMALL.get(name, {})
    env = gym.make(ENV, **kwargs)
    found = [env.reset(seed=0)[0]]
    while len(found) < count:
        mask = env.unwrapped.action_masks()
        observation, _, over, _, _ = env.step(int(np.flatnonzero(mask)[len(found) % mask.sum()]))
        assert not over
        found.append(observation)
    return np.stack(found)


def test_one_observation_or_a_batch(name, player):
    batch = observations(name)
    one = player.act(batch[0])
    assert (one.shape, one.dtype) == ((), np.int64)
    many = player.act(batch)
    assert (many.shape, many.dtype) == ((len(batch),), np.int64)
    values = player.values(batch)
    assert (values.shape, values.dtype) == ((len(batch), 4), np.float64)
    assert player.values(batch[0]).shape == (4,)
    if player.start(0) is None:  # what remembers nothing decides the same
        assert [int(player.act(board)) for board in batch] == many.tolist()
        alone = np.stack([player.values(board) for board in batch])
        # A network adds up in another order in another batch: by float32, logits of about 35 differ by about 2e-5, and
        # so do logarithms of probabilities near 0. Nothing else may differ.
        tolerance = {"rtol": 1e-5, "atol": 1e-4} if player.batched else {"rtol": 0, "atol": 0}
        np.testing.assert_allclose(alone, values, **tolerance)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("2048/random", {}),
        ("2048/greedy", {"order": [3, 1, 0, 2]}),
        ("2048/ntuple", {"network": "small"}),
        ("2048/expectimax", {"heuristic": "tile-order", "depth": 1}),
        ("2048/expectimax", {"heuristic": "tile-order", "depth": 1, "time_limit": 60}),
    ],
)
def test_a_large_batch_decides_as_single_boards_do(name, options):
    """A third of the boards holds tiles that fit no packed board."""
    player, random = make(name, **options), np.random.default_rng(0)
    batch = random.integers(0, 5, (200, 4, 4)).astype(np.uint8)
    batch[::3, 0, 0] = 16
    batch[5] = np.arange(1, 17).reshape(4, 4)  # no move is legal
    states = random.integers(0, 2**63, (len(batch), 1)).astype(np.uint64)
    before = states.copy()
    actions, after = player.predict(batch, state=states)
    values = player.values(batch, state=states)
    assert (states == before).all()
    singles = [player.predict(board, state=state) for board, state in zip(batch, states, strict=True)]
    assert actions.tolist() == [int(action) for action, _ in singles]
    alone = [player.values(board, state=state) for board, state in zip(batch, states, strict=True)]
    np.testing.assert_array_equal(values, alone)
    if player.remembers:
        assert after.tolist() == [state.tolist() for _, state in singles]


def test_types_of_observations_make_no_difference(name, player):
    board = observations(name)[-1]
    seen = {int(player.act(kind)) for kind in (board, board.astype(np.int64), board.tolist(), np.asfortranarray(board))}
    assert len(seen) == 1


def test_chosen_moves_are_legal_and_illegal_ones_are_worth_nothing(name, player):
    for board in observations(name):
        legal = legal_actions(board)
        assert legal[int(player.act(board))]
        assert (np.isfinite(player.values(board)) == legal).all()


def test_a_masked_action_is_never_chosen(name, player):
    batch = observations(name)
    legal, everyone = np.stack([legal_actions(board) for board in batch]), np.arange(len(batch))
    chosen = player.act(batch)
    assert player.predict(batch, action_masks=legal)[0].tolist() == chosen.tolist()
    masks = np.ones_like(legal)
    masks[everyone, chosen] = False
    others = player.predict(batch, action_masks=masks)[0]
    assert masks[everyone, others].all()
    if player.start(0) is None:
        assert others.tolist() == np.where(masks, player.values(batch), -np.inf).argmax(axis=1).tolist()
    for action in range(4):  # an illegal one, too, if no other is left
        assert player.predict(batch[0], action_masks=np.arange(4) == action)[0] == action
    with pytest.raises(ValueError, match=r"action_masks has shape \(3,\); expected \(4,\)"):
        player.predict(batch[0], action_masks=[True] * 3)
    with pytest.raises(ValueError, match="masks all actions"):
        player.predict(batch, action_masks=np.zeros_like(legal))


@pytest.mark.parametrize("seed", [0, 11])
def test_the_compiled_episode_is_the_gym_loop(name, player, seed):
    kwargs = SMALL.get(name, {})
    limit = None if kwargs else 150
    ours = player.play(ENV, seed, kwargs, limit)
    slow = play_in_env(player.with_rules(kwargs), ENV, seed, kwargs, limit)
    assert ours.actions.tolist() == slow.actions.tolist()
    assert (ours.figures, ours.terminated) == (slow.figures, slow.terminated)


def test_a_goal_and_other_sizes_in_the_compiled_episode():
    for kwargs in ({"goal": 64}, {"rows": 3, "cols": 5}, {"rows": 2, "cols": 2}):
        player = make("2048/greedy", heuristic="monotone-smooth")
        ours, slow = player.play(ENV, 3, kwargs), play_in_env(player, ENV, 3, kwargs)
        assert ours.actions.tolist() == slow.actions.tolist()
        assert (ours.figures, ours.terminated) == (slow.figures, slow.terminated)


@pytest.mark.parametrize("name", ["2048/random", "2048/rollout"])
def test_boards_beyond_a_word_after_boards_within(name):
    player = make(name, **OPTIONS.get(name, {}))
    for kwargs in ({}, {"rows": 5, "cols": 2}):
        ours, slow = player.play(ENV, 1, kwargs, 20), play_in_env(player, ENV, 1, kwargs, 20)
        assert ours.actions.tolist() == slow.actions.tolist()


def test_a_player_of_ones_own():
    """Registered with the options it has; no other is asked of it."""
    register("2048/mine", lambda depth=1, **others: make("2048/expectimax", depth=depth, **others))
    player = make("2048/mine", depth=1, heuristic="monotone-smooth")
    assert len(player.play(ENV, 0, max_episode_steps=5)) == 5
    assert len(player.with_rules({"rows": 4, "cols": 4}).play(ENV, 0, max_episode_steps=5)) == 5


@kernel
def given(cells, memory, values, settings):
    """Every action is worth what the settings say, an illegal one too if they say so."""
    worth, also_illegal = settings
    mask = rules.legal_mask(cells, 4, 4)
    for action in range(4):
        values[action] = worth[action] if also_illegal or mask >> action & 1 else -np.inf
    return pick(values, np.arange(4))


class Given(KernelPlayer):
    """A player whose actions are worth what it is made with."""

    form, name = FORM, "given"

    def __init__(self, worth, also_illegal=False):
        super().__init__()
        self.worth = np.array(worth, dtype=float), also_illegal

    def _make_decider(self, way, exact):
        return given, self.worth


@pytest.mark.parametrize(
    ("worth", "message"),
    [
        ([np.nan] * 4, r"given values action \d at nan; expected a finite number"),
        ([1, 1, 1, np.nan], "given values action 3 at nan"),  # though another one looks best
        ([1, np.inf, np.inf, 1], r"given values action \d at inf"),
        ([-np.inf] * 4, "given values every legal action at -inf"),
    ],
)
def test_values_that_are_no_numbers_end_the_episode_with_an_error(worth, message):
    player, board = Given(worth), observations("2048/greedy")[0]
    for ask in (player.values, player.act, player.predict):
        with pytest.raises(NotFiniteError, match=message):
            ask(np.stack([board, [[1, 1, 1, 1]] * 4]))
    with pytest.raises(NotFiniteError, match=message):
        player.play(ENV, 0, max_episode_steps=500)  # a cap, lest it play for ever


def test_a_move_that_is_illegal_ends_the_episode_with_an_error():
    player = Given([2, 1, 1, 1], also_illegal=True)
    with pytest.raises(ValueError, match="given chose action 0, which is illegal"):
        player.play(ENV, 0, max_episode_steps=500)


def test_a_board_without_a_legal_move_has_no_best_one():
    lost = np.array([[1, 2, 1, 2], [2, 1, 2, 1]] * 2)
    assert np.isneginf(make("2048/greedy", order=[2, 0, 1, 3]).values(lost)).all()
    assert make("2048/greedy", order=[2, 0, 1, 3]).act(lost) == 2


@pytest.mark.parametrize(
    ("name", "heuristic", "side"),
    [
        ("2048/expectimax", "nneonneo", 4),
        pytest.param("2048/expectimax", "nneonneo", 6, marks=pytest.mark.slow),
        ("2048/mixed", "tile-order", 4),
    ],
)
@pytest.mark.parametrize("sign", [1, pytest.param(-1, marks=pytest.mark.slow)])
def test_the_largest_weights_make_finite_values(name, heuristic, side, sign):
    """In single precision, in single precision on wide boards with the largest tiles, and where weights multiply."""
    known = HEURISTICS[heuristic].to_json()
    largest = {weight: sign * LARGEST[HEURISTICS[heuristic].real] for weight in known if type(known[weight]) is float}
    player = make(name, heuristic=known | largest, depth=2)
    boards = np.random.default_rng(0).integers(0, 16 if side == 4 else 38, (10, side, side))
    legal = np.stack([legal_actions(board) for board in boards])
    np.testing.assert_array_equal(np.isfinite(player.values(boards)), legal)


def test_options_are_what_the_player_was_made_with():
    options = {"name": "nneonneo", "sum": -12}
    player = make("2048/greedy", heuristic=options)
    options["sum"] = 5
    assert player.options["heuristic"]["sum"] == -12


def test_threads_may_share_a_player():
    player = make("2048/expectimax", heuristic="nneonneo", depth=2, table="shared", cutoff=0.001)
    batch = np.repeat(observations("2048/expectimax"), 20, axis=0)
    expected = player.values(batch)
    with ThreadPoolExecutor(4) as pool:
        for values in pool.map(player.values, [batch] * 8):
            np.testing.assert_array_equal(values, expected)


def test_a_game_goes_on_past_what_a_word_holds():
    """Two tiles of 32768 merge in the compiled episode, and the game goes on as move by move."""
    player = make("2048/greedy", heuristic="monotone-smooth")
    state = rules.new_states(1, 4, 4)[0]
    state[rules.STREAM] = stream_from_seed(5)
    rules.cells_of(state, 4, 4)[:] = [[15, 15, 2, 1], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]
    again = state.copy()
    actions, _, over = player._play_from(state, FORM.rules(4, 4), 0, None)
    assert over
    assert rules.cells_of(state, 4, 4).max() == 16
    for action in actions:
        assert int(player.act(rules.cells_of(again, 4, 4))) == action
        rules.step(again, action)
    assert (again == state).all()


def test_pickled_players_decide_the_same(name, player):
    again = pickle.loads(pickle.dumps(player))
    assert (again.name, again.options, again.made_as) == (player.name, player.options, player.made_as)
    board = observations(name)[-1]
    assert int(again.act(board)) == int(player.act(board))


NETWORK = SHIPPED / "small.npz"
BOARD = np.array([[5, 4, 3, 2], [1, 1, 0, 0], [2, 0, 0, 1], [0, 0, 0, 0]])
FIELD = {"board": from_text("...../...../...../##..#"), "piece": 1, "queue": [1]}
DIRECT = {  # players that are made directly, not by name, and what they see
    "expectimax": (lambda: expectimax("monotone-smooth", 2, rows=3, cols=3), BOARD[:3, :3]),
    "expectimax with a cut-off": (lambda: expectimax("nneonneo", 3, cutoff=0.01, table="shared"), BOARD),
    "minimax": (lambda: minimax(depth=2), BOARD),
    "random": (Random, BOARD),
    "tree search": (lambda: mcts({"player": "2048/ntuple"}, simulations=20), BOARD),
    "tree search with leaves from outside": (lambda: mcts({"player": "2048/random"}, simulations=20), BOARD),
    "n-tuple network": (lambda: ntuple(TupleNetwork.load(NETWORK)[0], 2), BOARD),
    "tetris greedy": (lambda: factory_of("tetris/greedy")("bcts"), FIELD),
    "two-tetrad": (lambda: factory_of("tetris/two-tetrad")("bcts"), FIELD),
}


@pytest.mark.parametrize("made", DIRECT)
@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda player: pickle.loads(pickle.dumps(player))])
def test_copies_of_players_that_are_made_directly_decide_the_same(made, again):
    make_player, observation = DIRECT[made]
    player = make_player()
    values = player.values(observation)  # with kernels made, scratch memory in use
    twin = again(player)
    np.testing.assert_array_equal(twin.values(observation), values)
    assert int(twin.act(observation)) == int(player.act(observation))
    np.testing.assert_array_equal(player.values(observation), values)


def test_a_copy_has_scratch_memory_of_its_own():
    player = expectimax("nneonneo", 2)
    player.act(BOARD)
    twin = copy.copy(player)
    twin.act(BOARD)
    addresses = [{place for place, array in one._held.items() if array.flags.writeable} for one in (player, twin)]
    assert not addresses[0] & addresses[1]
    with ThreadPoolExecutor(2) as pool:
        values = list(pool.map(lambda one: one.values(np.stack([BOARD] * 50)), [player, twin]))
    np.testing.assert_array_equal(*values)


class Provider:
    """A module as an installed distribution names it in the entry-point group `mergefall.players`."""

    PLAYERS: ClassVar = {"2048/theirs": Random, "2048/random": minimax}

    @staticmethod
    def player_at(path, depth=1):
        return expectimax(None, depth)


def test_installed_distributions_bring_players(tmp_path, monkeypatch):
    class Entry:
        def load(self):
            return Provider

    monkeypatch.setattr(registry, "entry_points", lambda group: [Entry()] if group == "mergefall.players" else [])
    registry._providers.cache_clear()
    try:
        assert players()["2048/theirs"] == "Random: every legal move is equally likely."
        assert type(make("2048/theirs")) is Random
        assert type(make("2048/random")) is Random  # what is registered comes first
        trained = make(str(tmp_path), depth=2)
        assert (trained.depth, trained.name, trained.options) == (2, str(tmp_path), {"depth": 2})
        with pytest.raises(ValueError, match="has no option 'size'; it has depth"):
            make(str(tmp_path), size=3)
        with pytest.raises(ValueError, match=r"no player 'nowhere'; there are .*2048/theirs.* and paths"):
            make("nowhere")
    finally:
        registry._providers.cache_clear()


def test_random_streams_travel_in_the_state():
    player = make("2048/random")
    board = np.zeros((4, 4), dtype=np.uint8)
    board[1, 1] = board[2, 2] = 1

    def moves(state, count=40):
        found = []
        for _ in range(count):
            action, state = player.predict(board, state, episode_start=np.array([not found]))
            found.append(int(action))
        return found

    assert moves(player.start(1)) == moves(player.start(1)) != moves(player.start(2))
    assert moves(None) == moves(player.start(0))
    start = player.start(1)
    kept = start.copy()
    player.predict(board, start)
    assert (start == kept).all()
    counts = np.bincount(moves(player.start(3), 4000), minlength=4)
    assert (abs(counts - 1000) < 5 * np.sqrt(750)).all()


def test_rules_come_from_the_environment_and_may_not_differ():
    player = make("2048/greedy", rows=3)
    assert player.with_rules({"rows": 3, "cols": 4}) is player
    with pytest.raises(ValueError, match=r"rows=3.*rows=4"):
        player.with_rules({"rows": 4, "cols": 4})
    with pytest.raises(ValueError, match="rows=3"):
        player.act(np.ones((4, 4), dtype=np.uint8))


@pytest.mark.parametrize(
    "observation",
    [
        np.ones((4, 4)),
        np.ones(16, dtype=int),
        [[1, -1], [0, 1]],
        [[1, 99], [0, 1]],
        [[[[1]]]],
        np.ones((2, 7), dtype=int),
        [[1, 1], [1]],
    ],
)
def test_bad_observations_are_refused(observation):
    with pytest.raises(ValueError, match="expected"):
        make("2048/greedy").act(observation)


def test_an_environments_arguments_may_be_numpys_numbers():
    player = make("2048/greedy")
    ours, theirs = ({"rows": kind(3)} for kind in (np.int64, int))
    name = "mergefall/Game2048-v0"
    assert player.play(name, 0, ours).actions.tolist() == player.play(name, 0, theirs).actions.tolist()


def test_registering():
    with pytest.raises(ValueError, match="2048/random"):
        register("2048/random", lambda: None)


@pytest.mark.parametrize(("player", "env_id"), [("2048/random", ENV), ("tetris/random", "mergefall/Tetris-v0")])
@pytest.mark.parametrize("begin", [None, 3])
def test_the_games_of_a_batch_draw_apart(player, env_id, begin):
    random = make(player)
    alone, together = gym.make(env_id).reset(seed=0)[0], gym.make_vec(env_id, num_envs=32)
    same = together.reset(seed=[0] * 32)[0]
    state = None if begin is None else random.start(begin)
    first, _ = random.predict(alone, state)
    chosen = []
    for _ in range(3):
        actions, state = random.predict(same, state)
        chosen.append(actions)
    assert chosen[0][0] == first  # the first game is as if it were alone
    assert all(len(set(actions.tolist())) > 1 for actions in chosen)
    assert (chosen[0] != chosen[1]).any()


def test_heuristics_of_classes_made_on_the_spot_are_pickled():
    one = linear(["holes", "lines"])(holes=-2.0)
    again = pickle.loads(pickle.dumps(one))
    assert type(again) is type(one)
    assert again.weight_vector().tolist() == one.weight_vector().tolist()
    player = pickle.loads(pickle.dumps(Greedy(one)))
    observation, _ = gym.make("mergefall/Tetris-v0", cols=4, rows=4).reset(seed=0)
    assert player.act(observation) == Greedy(one).act(observation)


def test_the_largest_ranks_are_valued_or_refused():
    largest = np.full((6, 6), MAX_RANK)
    assert np.isfinite(make("2048/greedy").values(largest)).all()
    with pytest.raises(ValueError, match=f"expected 0 to {MAX_RANK}"):
        make("2048/greedy").values(largest + 1)
