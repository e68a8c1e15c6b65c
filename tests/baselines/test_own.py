"""Players with functions as heuristics, and players by `module:name`, in this process."""

import gymnasium as gym
import numba
import numpy as np
import pytest
from mergefall.tetris import from_text, place
from mergefall_baselines import Player, make
from mergefall_baselines.registry import environment_of, player_of

from ..envs.tools import monotone_smooth_terms

BOARDS = np.random.default_rng(1).integers(0, 6, (8, 4, 4))


def monotone_smooth(board):
    return sum(weight * term for weight, term in zip((1, 0.1, 2.5, 1, 1.5), monotone_smooth_terms(board), strict=True))


@numba.njit
def weighted(board):
    total = 0.0
    for r in range(board.shape[0]):
        for c in range(board.shape[1]):
            total += board[r, c] * (r + 2 * c)
    return total


def test_a_search_with_a_python_function_is_that_with_the_compiled_heuristic():
    own, ours = (make("2048/expectimax", heuristic=h, depth=2) for h in (monotone_smooth, "monotone-smooth"))
    np.testing.assert_allclose(own.values(BOARDS), ours.values(BOARDS), rtol=1e-12)
    assert own.options["heuristic"] == {"name": f"{__name__}:monotone_smooth"}
    games = [player.play("mergefall/Game2048-v0", 5, max_episode_steps=25) for player in (own, ours)]
    np.testing.assert_array_equal(games[0].actions, games[1].actions)


def test_greedy_takes_the_afterstate_that_a_function_values_highest():
    env = gym.make("mergefall/Game2048-v0")
    env.reset(options={"board": BOARDS[0]})
    boards, _, legal = env.unwrapped.afterstates()
    expected = [weighted.py_func(board.astype(int)) if fine else -np.inf for board, fine in zip(boards, legal)]  # noqa: B905
    for function in (weighted, weighted.py_func, f"{__name__}:weighted"):
        assert make("2048/greedy", heuristic=function).values(BOARDS[0]).tolist() == expected


def low(board):
    return -float(np.argwhere(board[::-1]).sum())


def test_greedy_tetris_takes_the_board_that_a_function_values_highest():
    board, player = from_text("...../...../...../...../##..#/###.#"), make("tetris/greedy", heuristic=low)
    for piece, name in ((1, "O"), (2, "T"), (0, "I")):
        values = player.values({"board": board, "piece": piece})
        for action in np.flatnonzero(np.isfinite(values)):
            rotation, column = divmod(int(action), 5)
            assert values[action] == low(place(board, name, rotation, column).board)


def test_what_a_function_raises_ends_the_search_and_the_game():
    calls = []

    def fails(board):
        calls.append(board)
        raise KeyError("mine")

    player = make("2048/greedy", heuristic=fails)
    with pytest.raises(KeyError, match="mine"):
        player.act(BOARDS)
    with pytest.raises(KeyError, match="mine"):
        player.play("mergefall/Game2048-v0", 0)
    assert len(calls) == 2  # the searches ended without another call


class First(Player):
    """The first legal action."""

    plays = {"env_id": "mergefall/SZTetris-v0", "rows": 6}  # noqa: RUF012

    def __init__(self, skip: int = 0) -> None:
        self.skip = skip

    def predict(self, observation, state=None, episode_start=None, deterministic=True, action_masks=None):
        return np.array(np.flatnonzero(action_masks)[self.skip]), state


class Model:
    """A model with Stable-Baselines3's `predict`, and no player."""

    def predict(self, observation, state=None, episode_start=None, deterministic=True):
        return np.array(0), None


model = Model()


def load_model():
    return model


def test_players_by_module_and_name():
    player = make(f"{__name__}:First", skip=0)
    assert type(player) is First
    assert (player.name, player.made_as, player.options) == (f"{__name__}:First",) * 2 + ({"skip": 0},)
    assert player.play("mergefall/Tetris-v0", 0, {"rows": 4}).terminated
    for name in ("load_model", "model", "Model"):
        played = make(f"{__name__}:{name}").play("mergefall/Tetris-v0", 0, {"rows": 4, "cols": 4, "illegal_limit": 1})
        assert set(played.actions) == {0}
    for name, options, message in (
        (f"{__name__}:First", {"depth": 1}, "has no option 'depth'; it has skip"),
        (f"{__name__}:Second", {}, "there is no 'Second'"),
        ("json:dumps", {}, "json:dumps needs the option 'obj'"),
        ("json:loads", {"s": "1"}, "what json:loads makes is 1; expected a Player"),
    ):
        with pytest.raises(ValueError, match=message):
            make(name, **options)


def always_up(board):
    return 0


def test_a_function_of_an_observation_is_a_player():
    player = make(f"{__name__}:always_up")
    assert player.act(BOARDS).tolist() == [0] * len(BOARDS)
    assert player_of(always_up).act(BOARDS[0]) == 0
    assert set(player.play("mergefall/Game2048-v0", 0, {"illegal_limit": 2}).actions) == {0}


@pytest.mark.parametrize("action", [1.7, "left", np.zeros(4), np.array([[1]]), True, None])
def test_an_action_that_is_no_integer_is_named(action):
    player = player_of(lambda board: action)
    for call in (lambda: player.act(BOARDS[0]), lambda: player.play("mergefall/Game2048-v0", 0)):
        with pytest.raises(ValueError, match=r"<lambda> chose the action .*; expected an integer"):
            call()


def test_what_predict_must_return_is_said():
    short = type("Short", (), {"predict": lambda self, observation, state=None, *_, **__: 3})
    with pytest.raises(ValueError, match=r"Short: predict returns 3; expected \(action, state\)"):
        player_of(short()).play("mergefall/Game2048-v0", 0)


def test_players_of_players_are_spelt_flat():
    """`name`, and `player` as an option, are how version 0.1.0 wrote it into files."""
    for spec in (
        {"player": "2048/lookahead", "of": {"player": "2048/greedy", "heuristic": "nneonneo"}, "depth": 3},
        {"name": "2048/lookahead", "player": {"name": "2048/greedy", "heuristic": "nneonneo"}, "depth": 3},
    ):
        player = player_of(spec)
        assert (player.depth, player.leaf.options) == (3, {"heuristic": "nneonneo"})
    with pytest.raises(
        ValueError, match="player is 3; expected a Player, a player's name, a mapping of player and options"
    ):
        player_of(3)


def test_players_name_the_environment_that_they_play():
    assert environment_of(f"{__name__}:First", {}) == ("mergefall/SZTetris-v0", {"rows": 6})
    assert environment_of(f"{__name__}:load_model", {}) == (None, {})
    assert environment_of("2048/optimal", {"rows": 3, "objective": 8}) == (
        "mergefall/Game2048-v0",
        {"rows": 3, "cols": 3},
    )
    env_id, kwargs = environment_of("tetris/dqn", {})
    assert (env_id, kwargs["rows"], kwargs["cols"]) == ("mergefall/Tetris-v0", 10, 10)
    make("tetris/cross-entropy").with_rules(environment_of("tetris/cross-entropy", {})[1])
