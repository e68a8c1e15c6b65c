"""Every registered player keeps the protocol: one observation or a batch, and the same episode in any loop."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from typing import ClassVar

import gymnasium as gym
import numpy as np
import pytest
from mergefall import game2048, tetris
from mergefall.game2048 import board as rules
from mergefall.game2048.rules import PLAYED_RANK
from mergefall.games import each, home_of, stack, take
from mergefall.kernels import kernel
from mergefall.tetris import from_text
from mergefall.tetris.heuristics.linear import linear
from mergefall.weighted import LARGEST
from mergefall.words import stream_from_seed
from mergefall_baselines import kernel_player, make, play_in_env, players, register, registry
from mergefall_baselines.game2048.expectimax import expectimax
from mergefall_baselines.game2048.mcts import Mcts
from mergefall_baselines.game2048.minimax import minimax
from mergefall_baselines.game2048.network import TupleNetwork
from mergefall_baselines.game2048.ntuple import SHIPPED, ntuple
from mergefall_baselines.game2048.player import FORM, pick
from mergefall_baselines.game2048.simple import Random
from mergefall_baselines.kernel_player import KernelPlayer
from mergefall_baselines.player import NotFiniteError
from mergefall_baselines.registry import environment_of, player_of, signature_of
from mergefall_baselines.tetris.greedy import Greedy

from tests.fuzz import NONSENSE, needed, refused

G2048, TETRIS, KEYS = "mergefall/Game2048-v0", "mergefall/Tetris-v0", "mergefall/TetrisKeys-v0"
COUNTING = {"player": "tetris/expectimax", "depth": 1, "distribution": "counted"}
OPTIONS = {
    "2048/rollout": {"games": 2},
    "2048/expectimax": {"depth": 2, "heuristic": "monotone-smooth"},
    "2048/minimax": {"depth": 2},
    "2048/mixed": {"depth": 2},
    "2048/mcts": {"simulations": 20},
    "2048/lookahead": {"of": "2048/ntuple"},
    "2048/symmetric": {"of": {"player": "2048/greedy", "heuristic": "tile-order"}},
    "tetris/rollout": {"games": 2, "length": 4},
    "tetris/two-tetrad": {"heuristic": "bcts"},
    "tetris/expectimax": {"depth": 2},
    "tetris/mcts": {"simulations": 20},
    "tetris/beam": {"width": 20, "draws": 2},
    "quintris/expectimax": {"depth": 1},
}
SMALL_FIELD = {"cols": 6, "rows": 12}
RULES = [
    {"placements": "drop"},
    {"placements": "slide", "randomizer": "bag7", "preview": 0},
    {"pieces": "sz", "overflow": "clear_first", "preview": 2},
    {"pieces": "five", "randomizer": "hidden", "cols": 7},
    {"placements": "reachable", "hold": True, "randomizer": "bag7", "preview": 2},
]
# The rules, by index, under which players are tested, and those of slow tests: each kind of placement compiles anew.
PLACING = {
    "tetris/random": ((0, 1, 2, 3, 4), ()),
    "tetris/greedy": ((0, 1, 2, 3, 4), ()),
    "tetris/two-tetrad": ((0, 2, 4), (1, 3)),
    "tetris/expectimax": ((0, 3), (1, 2, 4)),
    "tetris/rollout": ((2,), (0, 1, 3, 4)),
    "tetris/mcts": ((2,), (0, 1, 3, 4)),
    "tetris/beam": ((4,), ()),
    "quintris/expectimax": ((3,), (0, 1, 2)),
}
MORE = [  # with other options, of other sizes
    ({"player": "2048/greedy", "heuristic": "monotone-smooth"}, G2048, {"goal": 64}),
    ({"player": "2048/greedy", "heuristic": "monotone-smooth"}, G2048, {"rows": 3, "cols": 5}),
    ({"player": "2048/greedy", "order": [3, 1, 0, 2]}, G2048, {}),
    ({"player": "2048/expectimax", "heuristic": "tile-order", "depth": 1, "time_limit": 60}, G2048, {}),
    ({"player": "2048/mcts", "heuristic": {"player": "2048/random"}, "simulations": 20}, G2048, {}),
    ({"player": "2048/mcts", "heuristic": f"{__name__}:up", "simulations": 8}, G2048, {}),
    ({"player": "2048/optimal", "objective": 64}, G2048, {"rows": 3, "cols": 2}),
    ({"player": "tetris/mcts", "heuristic": {"player": COUNTING}, "simulations": 20}, TETRIS, SMALL_FIELD),
    ({"player": "tetris/bcts"}, TETRIS, {"cols": np.int64(6), "rows": np.int64(12)}),
    *(
        ({"player": "tetris/keys", "of": of}, KEYS, rules)
        for of in ("tetris/bcts", "tetris/two-tetrad", "tetris/random")
        for rules in ({"gravity": 20, "lock_delay": 5}, {"gravity": 0.3, "hold": False, "garbage": {"rows": 0.3}})
    ),
]


def cases():
    """(a player, an environment, its arguments): all registered players, searches of Tetris under several rules."""
    for name in players().keys() - {"tetris/bot", "tetris/keys"}:  # test_protocol.py, MORE
        options = OPTIONS.get(name, {})
        env_id, kwargs = environment_of(name, options)
        quick, slow = PLACING.get(name, ((None,), ()))
        for which in (*quick, *slow):
            if which is not None or not (kwargs or env_id != TETRIS):
                kwargs = SMALL_FIELD | RULES[which or 0]
            marks = [pytest.mark.slow] * (which in slow or name == "2048/strongest")  # to load
            yield pytest.param({"player": name, **options}, env_id, kwargs, marks=marks)
    yield from MORE


every_player = pytest.mark.parametrize(("spec", "env_id", "kwargs"), sorted(cases(), key=str), ids=str)


def made(spec, env_id, kwargs):
    """The player under an environment's rules, as `evaluate` hands them over."""
    try:
        return player_of(spec).with_rules(asdict(gym.make(env_id, **kwargs).unwrapped.rules))
    except gym.error.DependencyNotInstalled as missing:  # with `make oldest`, without the extra `train`
        pytest.skip(str(missing))


def observed(env_id, kwargs, count=5):
    """What play by chance sees, at last tiles that fit no word: (a batch of observations, their action masks)."""
    env = gym.make(env_id, **kwargs)
    shown = [env.reset(seed=0)]
    while len(shown) < count:
        legal = np.flatnonzero(shown[-1][1]["action_mask"])
        observation, _, over, _, info = env.step(int(legal[len(shown) % legal.size]))
        shown.append(env.reset() if over else (observation, info))
    if env_id == G2048 and not kwargs:
        shown[-1] = env.reset(options={"board": "65536 2 4 ./. . . ./2 . . ./. . . ."})
    return stack([one for one, _ in shown]), np.stack([info["action_mask"] for _, info in shown]).astype(bool)


@every_player
def test_one_observation_or_a_batch(spec, env_id, kwargs):
    """Of a batch each is decided as alone, by what was seen of its own game; a masked action is never chosen."""
    player, (batch, legal) = made(spec, env_id, kwargs), observed(env_id, kwargs)
    everyone, singles = np.arange(len(legal)), list(each(batch))
    memory = [player.start(seed) for seed in everyone.tolist()]
    for _ in range(2):
        state = None if memory[0] is None else np.stack(memory)
        (actions, after), values = player.predict(batch, state), player.values(batch, state)
        chosen = [player.predict(*one) for one in zip(singles, memory, strict=True)]
        alone = np.stack([player.values(*one) for one in zip(singles, memory, strict=True)])
        memory = [kept for _, kept in chosen]
        assert (actions.dtype, values.dtype, chosen[0][0].shape) == (np.int64, np.float64, ())
        assert actions.tolist() == [int(action) for action, _ in chosen]
        assert after is None if state is None else after.tolist() == np.stack(memory).tolist()
        # A network adds up in another order in another batch: by float32, logits of about 35 differ by about 2e-5, and
        # so do logarithms of probabilities near 0. Nothing else may differ.
        tolerance = {"rtol": 1e-5, "atol": 1e-4} if player.batched else {"rtol": 0, "atol": 0}
        np.testing.assert_allclose(alone, values, **tolerance)
    assert legal[everyone, actions].all()
    assert values.shape == legal.shape
    assert not np.isfinite(values[~legal]).any()
    assert np.isfinite(values).any(axis=1).all()  # these boards are low
    assert np.isfinite(values[legal]).all() or env_id != G2048
    assert player.act(take(batch, slice(0))).shape == (0,)
    assert player.predict(batch, state, action_masks=legal)[0].tolist() == actions.tolist()
    masks = legal.copy()
    masks[everyone, actions] = masks.sum(axis=1) == 1
    others = player.predict(batch, state, action_masks=masks)[0]
    assert others.tolist() == np.where(masks, values, -np.inf).argmax(axis=1).tolist()


def test_masks_may_leave_an_illegal_action_alone_or_none():
    player, (batch, legal) = make("2048/greedy"), observed(G2048, {})
    for action in range(4):
        assert player.predict(take(batch, 0), action_masks=np.arange(4) == action)[0] == action
    with pytest.raises(ValueError, match=r"action_masks has shape \(3,\); expected \(4,\)"):
        player.predict(take(batch, 0), action_masks=[True] * 3)
    with pytest.raises(ValueError, match="masks all actions"):
        player.predict(batch, action_masks=np.zeros_like(legal))


@every_player
def test_the_compiled_episode_is_the_gym_loop_also_after_pickling(spec, env_id, kwargs):
    player = made(spec, env_id, kwargs)
    again = pickle.loads(pickle.dumps(player))
    assert (again.name, again.options, again.made_as) == (player.name, player.options, player.made_as)
    for seed, one in ((0, player), (11, again)):
        ours, slow = player.play(env_id, seed, kwargs, 100), play_in_env(one, env_id, seed, kwargs, 100)
        assert ours.actions.tolist() == slow.actions.tolist()
        assert (ours.figures, ours.terminated, len(ours)) == (slow.figures, slow.terminated, len(slow))


@pytest.mark.parametrize("name", ["tetris/greedy", "tetris/afterstate"])
def test_copies_for_other_rules_play_by_their_own(name):
    """The observations of both are alike, so what one copy resolves must not reach the other."""
    player = make(name)
    for placements in ("drop", "slide", "reachable"):
        kwargs = {"rows": 20, "cols": 10, "placements": placements}
        batch, legal = observed(TETRIS, kwargs)
        twin = player.with_rules(asdict(gym.make(TETRIS, **kwargs).unwrapped.rules))
        assert twin.values(batch).shape == legal.shape
        assert legal[np.arange(len(legal)), twin.act(batch)].all()


def test_games_longer_than_what_is_kept(monkeypatch):
    whole = make("tetris/bcts").play(TETRIS, 0, None, 400)
    monkeypatch.setattr(kernel_player, "KEPT", 300)
    ours = make("tetris/bcts").play(TETRIS, 0, None, 400)
    assert ours.actions.tolist() == whole.actions[:300].tolist()
    assert (len(ours), ours.figures) == (400, whole.figures)


def test_a_player_of_ones_own():
    """Registered with the options it has; no other is asked of it."""
    register("2048/mine", lambda depth=1, **others: make("2048/expectimax", depth=depth, **others))
    player = make("2048/mine", depth=1, heuristic="monotone-smooth")
    assert len(player.with_rules({"rows": 4, "cols": 4}).play(G2048, 0, max_episode_steps=5)) == 5
    with pytest.raises(ValueError, match="2048/random"):
        register("2048/random", lambda: None)


@kernel
def given(state, memory, values, settings):
    """Every action is worth what the settings say, an illegal one too if they say so."""
    worth, also_illegal = settings
    mask = rules.legal_mask(*rules.board_in(state))
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
    player, board = Given(worth), observed(G2048, {})[0][0]
    for ask in (player.values, player.act, player.predict):
        with pytest.raises(NotFiniteError, match=message):
            ask(np.stack([board, [[1, 1, 1, 1]] * 4]))
    with pytest.raises(NotFiniteError, match=message):
        player.play(G2048, 0, max_episode_steps=500)  # a cap, lest it play for ever


def test_a_move_that_is_illegal_ends_the_episode_with_an_error():
    with pytest.raises(ValueError, match="given chose action 0, which is illegal"):
        Given([2, 1, 1, 1], also_illegal=True).play(G2048, 0, max_episode_steps=500)


def test_a_board_without_a_legal_move_has_no_best_one():
    lost, player = np.array([[1, 2, 1, 2], [2, 1, 2, 1]] * 2), make("2048/greedy", order=[2, 0, 1, 3])
    assert np.isneginf(player.values(lost)).all()
    assert player.act(lost) == 2


@pytest.mark.parametrize(
    ("name", "heuristic", "side"),
    [
        ("2048/expectimax", "nneonneo", 4),
        pytest.param("2048/expectimax", "nneonneo", 6, marks=pytest.mark.slow),
        ("2048/mixed", "tile-order", 4),
        ("tetris/expectimax", "bcts", None),
    ],
)
@pytest.mark.parametrize("sign", [1, pytest.param(-1, marks=pytest.mark.slow)])
def test_the_largest_weights_make_finite_values(name, heuristic, side, sign):
    """In single precision, in single precision on wide boards with the largest tiles, and where weights multiply."""
    h = (game2048 if side else tetris).HEURISTICS[heuristic]
    weights = {w: sign * LARGEST[h.real] if type(value) is float else value for w, value in h.to_json().items()}
    player = make(name, heuristic=weights, depth=2, **{} if side else {"lost": 0.0})
    boards, legal = observed(home_of(name), {} if side else SMALL_FIELD)
    if side:
        boards = np.random.default_rng(0).integers(0, 16 if side == 4 else 38, (10, side, side))
        legal = np.stack([game2048.legal_actions(board) for board in boards])
    np.testing.assert_array_equal(np.isfinite(player.values(boards)), legal)


def test_options_are_what_the_player_was_made_with():
    options = {"name": "nneonneo", "sum": -12}
    player = make("2048/greedy", heuristic=options)
    options["sum"] = 5
    assert player.options["heuristic"]["sum"] == -12


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


BOARD = game2048.from_text("32 16 8 4/2 2 . ./4 . . 2/. . . .")
FIELD = {"board": from_text("...../...../...../##..#"), "piece": 1, "queue": [1]}
SEARCH = {"player": {"player": "2048/expectimax", "heuristic": "nneonneo", "depth": 2}}
DIRECT = {  # players that are made directly, not by name, and what they see
    "expectimax": (lambda: expectimax("monotone-smooth", 2, rows=3, cols=3), BOARD[:3, :3]),
    "expectimax with a cut-off": (lambda: expectimax("nneonneo", 3, cutoff=0.01, table="shared"), BOARD),
    "tree search with leaves from outside": (lambda: Mcts({"player": "2048/random"}, simulations=20), BOARD),
    "tree search over a search": (lambda: Mcts(SEARCH, simulations=60), BOARD),
    "n-tuple network": (lambda: ntuple(TupleNetwork.load(SHIPPED / "small.npz")[0], 2), BOARD),
    "a heuristic's class made on the spot": (lambda: Greedy(linear(["holes", "lines"])(holes=-2.0)), FIELD),
}


@pytest.mark.parametrize("which", DIRECT)
@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda player: pickle.loads(pickle.dumps(player))])
def test_threads_may_share_a_player_and_its_copies_decide_the_same(which, again):
    make_player, observation = DIRECT[which]
    player = make_player()
    values = player.values(observation)  # with kernels made, scratch memory in use
    twin = again(player)
    with ThreadPoolExecutor(4) as pool:
        for one in pool.map(lambda one: [one.values(observation) for _ in range(20)], [player, twin] * 2):
            np.testing.assert_array_equal(one, [values] * 20)
    assert int(twin.act(observation)) == int(player.act(observation))


class Provider:
    """A module as an installed distribution names it in the entry-point group `mergefall.players`."""

    PLAYERS: ClassVar = {"2048/theirs": Random, "2048/random": minimax}

    @staticmethod
    def player_at(path, depth=1):
        return expectimax(None, depth)


def test_installed_distributions_bring_players(tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "_providers", lambda: [Provider])
    assert players()["2048/theirs"] == "Random: every legal move is equally likely."
    assert type(make("2048/theirs")) is type(make("2048/random")) is Random  # what is registered comes first
    trained = make(str(tmp_path), depth=2)
    assert (trained.depth, trained.name, trained.options) == (2, str(tmp_path), {"depth": 2})
    with pytest.raises(ValueError, match=r"no player 'nowhere'; there are .*2048/theirs.* paths"):
        make("nowhere")


@pytest.mark.parametrize(
    ("name", "observation", "legal"),
    [
        ("2048/random", [[0, 0, 0], [0, 1, 0], [0, 0, 1]], 4),
        ("tetris/random", {"board": np.zeros((8, 6), np.uint8), "piece": 1}, 5),
        ("tetris/random", {"board": np.zeros((20, 10), np.uint8), "piece": 0, "queue": [2], "hold": 1}, 17 + 9),
        ("keys/random", gym.make(KEYS).reset(seed=0, options={"piece": "O"})[0], 6),
    ],
)
def test_random_players_draw_legal_actions_from_the_stream_in_their_state(name, observation, legal):
    player, together = make(name), stack([observation] * 32)

    def actions(state, count=40):
        chosen = []
        for _ in range(count):
            action, state = player.predict(observation, state, episode_start=np.array([not chosen]))
            chosen.append(int(action))
        return chosen

    assert actions(player.start(1)) == actions(player.start(1)) != actions(player.start(2))
    assert actions(None) == actions(player.start(0))
    counts = np.bincount(actions(player.start(3), 200 * legal))
    assert (counts > 0).sum() == legal
    assert abs(counts[counts > 0] - 200).max() < 5 * np.sqrt(200)
    start = player.start(3)
    for state in (None, start):  # the games of a batch draw apart, the first as if it were alone
        chosen, after = player.predict(together, state)
        assert chosen[0] == player.act(observation, state)
        assert len(set(chosen.tolist())) > 1
        assert (player.predict(together, after)[0] != chosen).any()
    assert (start == player.start(3)).all()
    with pytest.raises(ValueError, match=r"got a state of uint64\[3\]; expected uint64\[1, "):
        player.act(observation, np.zeros(3, dtype=np.uint64))


@pytest.mark.parametrize(
    ("name", "mine", "theirs", "observation"),
    [
        ("2048/greedy", {"rows": 3}, {"rows": 4, "cols": 4}, np.ones((4, 4), dtype=np.uint8)),
        ("tetris/bcts", {"rows": 12}, {"rows": 20}, {"board": np.zeros((8, 6), dtype=int), "piece": 0}),
    ],
)
def test_rules_come_from_the_environment_and_may_not_differ(name, mine, theirs, observation):
    player, (rule, ours) = make(name, **mine), *mine.items()
    same = player.with_rules(mine | {"cols": 6, "reward": "score"})
    assert same is player if name == "2048/greedy" else same.options["cols"] == 6
    for call in (
        lambda: player.with_rules(theirs),
        lambda: player.act(observation),
        lambda: player.play(home_of(name), 0, theirs),
    ):
        with pytest.raises(ValueError, match=rf"{rule}={ours}.*{rule}="):
            call()
    with pytest.raises(ValueError, match="expected the game of mergefall/"):
        player.play(TETRIS if "2048" in name else G2048, 0)


EMPTY = np.zeros((20, 10), dtype=int)


@pytest.mark.parametrize(
    ("observation", "message"),
    [
        (np.full((6, 6), PLAYED_RANK + 1), f"expected .* 0 to {PLAYED_RANK}"),
        (np.ones((2, 7), dtype=int), r"shape .2, 7.; expected"),
        ({"board": EMPTY}, "observation has board; expected board, piece"),
        ({"board": EMPTY, "piece": 0, "hold": 1}, "hold is True with preview=0"),
        ({"board": EMPTY, "piece": 0, "next": 1}, "observation has board, piece, next; expected"),
        ({"board": [[0, 1], [0]], "piece": 0}, r"board \[\[0, 1\], \[0\]\] has rows of different lengths"),
        ({"board": EMPTY, "piece": "T"}, r"piece is <U1\[1\]; expected integers"),
        ({"board": [EMPTY, EMPTY], "piece": [0, 0], "queue": [0, 0]}, r"queue is int64\[2\]; expected .* \[2, 2\]"),
    ],
)
def test_bad_observations_are_refused(observation, message):
    name = "tetris/bcts" if isinstance(observation, dict) else "2048/greedy"
    with pytest.raises(ValueError, match=message):
        make(name).act(observation)


def test_a_piece_that_the_game_does_not_have_is_refused():
    player = make("tetris/expectimax", pieces="sz", distribution="counted", depth=2)
    with pytest.raises(ValueError, match="piece is 0; expected one of 3 S, 4 Z"):
        player.act({"board": EMPTY, "piece": 0, "queue": [4]})


def up(board):
    """A player that only chooses."""
    return 0


@pytest.mark.parametrize("name", [*filter(home_of, players())])
def test_every_option_is_refused_by_name(name):
    known = signature_of(name).parameters
    for option in known.keys() - {"options"}:
        for value in NONSENSE[1:]:
            try:
                taken = not refused(lambda: make(name, **(needed(name) | {option: value})), option, repr(value))  # noqa: B023
            except gym.error.DependencyNotInstalled as missing:
                pytest.skip(str(missing))
            assert not taken or value == 2.5 or ("float" in str(known[option].annotation) and value in (-1, 10**30)), (
                option
            )


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("tetris/greedy", {"width": 10}, "has no option 'width'; it has heuristic, cols, rows, pieces"),
        ("tetris/bcts", {"rules": {}}, "has no option 'rules'; it has cols, rows, pieces"),
        ("quintris/expectimax", {"heuristic": "bcts"}, "'bcts'"),
        ("2048/mixed", {"heuristic": None}, "heuristic=None"),
        ("2048/ntuple", {"downgrade": 16384.0}, r"downgrade=16384\.0; expected a tile"),
        ("2048/perfect", {}, "no player '2048/perfect'"),
        ("tetris/keys", {"garbage": {"rows": 1}}, "tetris/keys has no option 'garbage'"),
        ("tetris/keys", {"of": "2048/greedy"}, "of is '2048/greedy', which plays another"),
        ("2048/symmetric", {"of": "2048/greedy", "by": "tetris/greedy"}, "by is 'tetris/greedy', which plays another"),
        ("2048/symmetric", {"of": "2048/rollout"}, "of is '2048/rollout', which remembers"),
        ("2048/lookahead", {"of": "tetris/greedy"}, "which plays another game"),
        ("2048/lookahead", {"of": f"{__name__}:up"}, "which does not value actions"),
        ("2048/mcts", {"heuristic": {"player": "tetris/greedy"}}, "which plays another game"),
        ("2048/mcts", {"heuristic": {"player": f"{__name__}:up"}}, "which does not value actions"),
        *((f"{game}/mcts", {"heuristic": {"player": 3}}, "player is 3; expected a P") for game in ("2048", "tetris")),
    ],
)
def test_bad_options_are_named(name, options, message):
    with pytest.raises(ValueError, match=message):
        make(name, **options)


def test_quintris_refuses_placements_that_it_does_not_search():
    player = make("quintris/expectimax", pieces="tetromino", randomizer="uniform", placements="reachable")
    observation, _ = gym.make(TETRIS, placements="reachable").reset(seed=0)
    with pytest.raises(ValueError, match="placements is 'reachable'; quintris/expectimax drops and slides"):
        player.act(observation)
