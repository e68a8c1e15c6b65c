"""Heuristics of both games: their weights, JSON and pickles; functions and classes of one's own, also as potentials."""

import json
import pickle
from dataclasses import dataclass
from typing import ClassVar

import gymnasium as gym
import numba
import numpy as np
import pytest
from mergefall import game2048, tetris
from mergefall.game2048.heuristics import Nneonneo
from mergefall.game2048.packed import pack
from mergefall.games import games
from mergefall.kernels import kernel
from mergefall.weighted import Terms

BOARDS = np.random.default_rng(0).integers(0, 9, (6, 3, 5), dtype=np.uint8)
FIELDS = np.random.default_rng(0).integers(0, 2, (6, 7, 5), dtype=np.uint8)


def differences(board):
    """Its value is negative where unsigned cells would wrap around."""
    return np.diff(board, axis=1).sum() - 0.5 * board[0, 0]


@numba.njit
def compiled_differences(board):
    total = 0.0
    for r in range(board.shape[0]):
        for c in range(1, board.shape[1]):
            total += board[r, c] - board[r, c - 1]
    return total - 0.5 * board[0, 0]


def test_names_terms_and_published_weights():
    weights = {
        name: list(h.to_json().values())[1:] for library in (game2048, tetris) for name, h in library.HEURISTICS.items()
    }
    assert weights == {
        "tile-order": [1, 30, 40, 2, False, False, 30000],
        "monotone-smooth": [1, 0.1, 2.5, 1, 1.5],
        "prairie-fire": [1, -1, 1, *[0] * 10, []],
        "nneonneo": [200000, 270, 700, -47, -11],
        "two-tetrad": [40, 20, 10, 300, 490, 70, 50, 20],
        "open-enclosed": [1000, -1, -20],
        "dellacherie": [-1, 1, -1, -1, -4, -1],
        "bcts": [-12.62900, 6.601974, -9.215815, -19.77356, -13.08335, -10.48747, -1.611863, -24.04087],
        "dt-10": [-2.18, 2.42, -2.17, -3.31, 0.95, -2.22, -0.81, -9.65, 1.27],
        "dt-20": [-2.68, 1.38, -2.41, -6.32, 2.03, -2.71, -0.43, -9.48, 0.89],
        "el-tetris": pytest.approx([-4.500158825, 3.418126810, -3.217888287, -9.348695305, -7.899265427, -3.385597225]),
        "attack": [
            -0.161,
            -0.5,
            -0.893,
            -0.053,
            -0.293,
            -0.103,
            0.011,
            0.124,
            0.167,
            2.156,
            0.368,
            -0.006,
            1.0,
            -0.493,
            -0.053,
            0.138,
            0.114,
            0.24,
            -0.056,
        ],
    }
    for name, h in game2048.HEURISTICS.items():
        assert h.name == name
        assert tuple(h.terms(np.eye(4, dtype=int))) == h.term_names


@pytest.mark.parametrize(
    ("game", "spec"),
    [
        (game2048, "nneonneo"),
        (game2048, {"name": "tile-order", "order": 3, "strict": True}),
        (game2048, {"name": "prairie-fire", "reward": 2, "stages": [[11, {"penalty": -2}]]}),
        *((tetris, name) for name in tetris.HEURISTICS),
        (tetris, {"name": "two-tetrad", "f8": -3}),
    ],
)
def test_round_trips(game, spec):
    h, board = game.heuristic(spec), np.eye(4, dtype=int)
    assert game.heuristic(h) is h
    for copy in (game.heuristic(json.loads(json.dumps(h.to_json()))), pickle.loads(pickle.dumps(h))):
        assert copy == h
        assert hash(copy) == hash(h)
        assert getattr(copy, "board", copy)(board) == getattr(h, "board", h)(board)


@pytest.mark.parametrize("function", [differences, compiled_differences])
def test_a_function_values_boards(function):
    expected = [differences(board.astype(float)) for board in BOARDS]
    h = game2048.heuristic(function)
    assert h(BOARDS).tolist() == h.terms(BOARDS)["value"].tolist() == expected
    assert h(BOARDS[0]) == expected[0]
    h = tetris.heuristic(function)
    expected = [differences(board.astype(float)) for board in FIELDS]
    assert h.board(FIELDS).tolist() == h.board_terms(FIELDS)["value"].tolist() == expected


def test_the_lines_of_a_placement_count_by_their_weight():
    placed = tetris.place("..../..../..../##.#", "T", rotation=2, column=1)
    assert placed.lines == 1
    h = tetris.heuristic({"name": f"{__name__}:differences", "lines": 10})
    assert h(placed) == 10 + differences(placed.board.astype(int))
    assert h.terms(placed)["lines"] == 1
    assert tetris.heuristic(json.loads(json.dumps(h.to_json()))) == h == pickle.loads(pickle.dumps(h))


def test_what_a_function_raises_and_bad_values_reach_the_caller():
    def fails(board):
        raise KeyError("mine")

    h = game2048.heuristic(fails)
    with pytest.raises(KeyError, match="mine"):
        h(BOARDS)
    for value in (None, np.nan, np.inf, "many", np.zeros(2)):
        with pytest.raises(ValueError, match=r"<lambda> values \[\[.* at .*; expected a finite number"):
            game2048.heuristic(lambda board, value=value: value)(BOARDS[0])

    @numba.njit
    def sometimes(board):
        if board[0, 0] == 9:
            raise IndexError("nine")
        return np.nan if board[0, 0] == 8 else 1.0

    compiled = game2048.heuristic(sometimes)
    bad = BOARDS[0].copy()
    assert compiled(bad) == 1
    for rank, error, message in (
        (9, IndexError, "nine"),
        (8, ValueError, r"sometimes values \[\[8, .* at nan; expected"),
    ):
        bad[0, 0] = rank
        for _ in range(2):
            with pytest.raises(error, match=message):
                compiled(bad)
    bad[0, 0] = 1
    assert compiled(bad) == 1

    @numba.njit
    def text(board):
        return "many"

    with pytest.raises(ValueError, match="text does not compile for a board int64"):
        game2048.heuristic(text)(BOARDS)


def test_registered_names(registered):
    game2048.register_heuristic("steps", differences)
    tetris.register_heuristic("steps", compiled_differences)
    assert game2048.heuristic("steps")(BOARDS[0]) == differences(BOARDS[0].astype(int))
    assert game2048.heuristic("steps").to_json() == {"name": "steps"}
    assert tetris.heuristic({"name": "steps", "lines": 2}).to_json() == {"name": "steps", "lines": 2}
    game2048.register_heuristic("steps", differences)  # as a cell of a notebook that runs again
    for name, message in (("nneonneo", "already"), ("steps", "already"), ("a:b", "without a colon")):
        with pytest.raises(ValueError, match=message):
            game2048.register_heuristic(name, lambda board: 0)
    with pytest.raises(ValueError, match="expected 'nneonneo', the name of the heuristic's class"):
        game2048.register_heuristic("mine", Nneonneo(sum=-12))
    assert list(games()["2048"].library().added()) == ["steps"]
    tetris.register_heuristic("with-lines", tetris.heuristic({"name": "steps", "lines": 3}))
    assert tetris.heuristic("with-lines").to_json() == {"name": "with-lines", "lines": 3}
    tetris.HEURISTICS["direct"] = compiled_differences
    assert tetris.heuristic("direct").to_json() == {"name": "direct", "lines": 0.0}


@kernel
def heaviest(cells, rows, cols, to_move, weights):
    return (np.float64(cells.max()) + 0.5 * to_move,)


def test_terms_of_a_board_are_enough():
    @dataclass(frozen=True)
    class Heaviest(game2048.Heuristic):
        name: ClassVar[str] = "heaviest"
        dead: ClassVar[float] = -1.0
        of_board = Terms(("largest",), heaviest)

        largest: float = 2.0

    h = Heaviest()
    board = np.arange(16, dtype=np.uint8).reshape(4, 4)
    assert h(board, to_move=True) == 31
    packed = np.uint64(pack(board.ravel(), 4, 4))
    assert h.kernels().packed(packed, True, h.tables(), h.weight_vector()) == 31
    assert h.terms(board) == {"largest": 15}


def test_terms_of_another_board_need_another_twin():
    """The packed kernel of a documented heuristic is of its own terms."""

    @dataclass(frozen=True)
    class Other(game2048.HEURISTICS["nneonneo"].__class__):
        of_board = Terms(("base",), heaviest)

    board = np.arange(16, dtype=np.uint8).reshape(4, 4)
    packed = np.uint64(pack(board.ravel(), 4, 4))
    assert Other().kernels().packed(packed, False, Other().tables(), Other().weight_vector()) == Other()(board)


@pytest.mark.parametrize(
    ("env_id", "kwargs", "board_of"),
    [
        ("mergefall/Game2048-v0", {}, lambda observation: observation),
        ("mergefall/Tetris-v0", {"rows": 8, "cols": 5}, lambda observation: observation["board"]),
    ],
)
def test_a_function_is_a_potential(env_id, kwargs, board_of):
    named = {"potential": f"{__name__}:differences", "gamma": 0.5}
    env = gym.make(env_id, shaping=named, **kwargs)
    wrapped = gym.make(env_id, shaping=named | {"potential": compiled_differences}, **kwargs)
    batch = gym.make_vec(env_id, num_envs=1, shaping=named | {"potential": differences}, **kwargs)
    before = board_of(env.reset(seed=3)[0])
    wrapped.reset(seed=3)
    infos = batch.reset(seed=3)[1]
    for _ in range(5):
        action = int(np.flatnonzero(infos["action_mask"][0])[0])
        after, _, terminated, _, info = env.step(action)
        potential = 0.0 if terminated else differences(board_of(after).astype(float))
        assert info["shaping"] == pytest.approx(0.5 * potential - differences(before.astype(float)))
        assert wrapped.step(action)[4]["shaping"] == info["shaping"]
        infos = batch.step([action])[4]
        assert infos["shaping"][0] == info["shaping"]
        before = board_of(after)
        if terminated:
            break
    assert gym.make(gym.envs.registration.EnvSpec.from_json(env.spec.to_json())).spec.kwargs["shaping"] == named
