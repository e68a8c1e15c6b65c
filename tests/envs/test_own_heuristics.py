"""Heuristics of both games: their weights, JSON and pickles; functions and classes of one's own, also as potentials."""

import json
import pickle
from dataclasses import dataclass

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


@pytest.mark.parametrize(
    ("game", "spec"),
    [
        (game2048, "nneonneo"),
        (game2048, {"name": "tile-order", "order": 3, "distinct": True}),
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


@pytest.mark.parametrize("h", [*game2048.HEURISTICS.values(), *tetris.HEURISTICS.values()], ids=lambda h: h.name)
def test_a_batch_is_its_boards(h):
    value, terms = (h.board, h.board_terms) if h.name in tetris.HEURISTICS else (h, h.terms)
    boards = np.random.default_rng(0).integers(0, 2, (40, 4, 4)) * (2 if value is h else 1)
    assert value(boards).tolist() == [value(board) for board in boards]
    for name, batch in terms(boards).items():
        assert batch.tolist() == [terms(board)[name] for board in boards]
    assert value(boards[:0]).shape == (0,)


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
        name = "heaviest"
        dead = -1.0
        of_board = Terms(("largest",), heaviest)

        largest: float = 2.0

    h = Heaviest()
    board = np.arange(16, dtype=np.uint8).reshape(4, 4)
    assert h(board, to_move=True) == 31
    packed = np.uint64(pack(board.ravel(), 4, 4))
    assert h.kernels().packed(packed, True, h.tables(), h.weight_vector()) == 31
    assert h.terms(board) == {"largest": 15}


def test_terms_are_as_many_as_their_names_and_of_a_known_kind():
    @dataclass(frozen=True)
    class Two(game2048.Heuristic):
        name = "two"
        of_board = Terms(("largest", "other"), heaviest)

        largest: float = 1.0
        other: float = 1.0

    for use in (Two(), Two().terms):
        with pytest.raises(ValueError, match="expected a tuple of 2, a number for each name"):
            use(BOARDS)
    with pytest.raises(ValueError, match="Locks has the terms 'of_locks'; expected of_placement or of_last"):
        type("Locks", (tetris.Heuristic,), {"of_locks": Terms(("locks",), heaviest)})


def test_terms_of_another_board_need_another_twin():
    """The packed kernel of a documented heuristic is of its own terms."""

    @dataclass(frozen=True)
    class Other(game2048.HEURISTICS["nneonneo"].__class__):
        of_board = Terms(("base",), heaviest)

    board = np.arange(16, dtype=np.uint8).reshape(4, 4)
    packed = np.uint64(pack(board.ravel(), 4, 4))
    assert Other().kernels().packed(packed, False, Other().tables(), Other().weight_vector()) == Other()(board)
