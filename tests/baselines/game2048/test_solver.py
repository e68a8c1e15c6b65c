"""The exact solver against golden figures and the Bellman equation in plain Python.

3×3 and the 2×4 probabilities take minutes: ``MERGEFALL_SLOW=1 pytest -s tests/baselines/game2048/test_solver.py``.
"""

import os
import random

import numpy as np
import pytest
from mergefall.game2048 import reference
from mergefall_baselines.game2048.solver import Optimal

from ...envs.tools import golden

GOLDEN = golden("exact2048")
SLOW = bool(os.environ.get("MERGEFALL_SLOW"))
# 2×4 is not in the golden file: objective -> value from the random start, to six decimals
WIDE = {"score": 2641.873036} | ({256: 0.869756, 512: 0.024639} if SLOW else {})


def size_id(entry):
    return f"{entry['rows']}x{entry['cols']}"


def is_run(entry):
    return SLOW or entry["rows"] * entry["cols"] < 9


@pytest.fixture(scope="module", params=[game for game in GOLDEN["games"] if is_run(game)], ids=size_id)
def game(request):
    return request.param


def test_golden_start_values(game):
    size = game["rows"], game["cols"]
    tolerance = 1e-6 if game["rows"] * game["cols"] == 9 else 2e-9  # the decimals of the golden figure
    assert Optimal().start_value(*size) == pytest.approx(game["optimal_score"], abs=tolerance)
    for tile, chance in game["reach"].items():
        assert Optimal(objective=int(tile)).start_value(*size) == pytest.approx(chance, abs=tolerance), tile


def test_golden_positions(game):
    size = game["rows"], game["cols"]
    positions = [p for p in GOLDEN["positions"] if (p["rows"], p["cols"]) == size]
    assert positions
    optimal = Optimal()
    for position in positions:
        board = np.reshape(position["board"], size)
        assert optimal.board_values(board) == pytest.approx(position["optimal_value"], abs=1e-6)
        if position["action_values"] is None:  # 3×3
            continue
        values = optimal.values(board)
        expected = [-np.inf if value is None else value for value in position["action_values"]]
        np.testing.assert_allclose(values, expected, rtol=0, atol=1e-6)
        assert np.flatnonzero(values == values.max()).tolist() == position["best_actions"]


def test_2x4():
    for objective, value in WIDE.items():
        assert Optimal(objective=objective).start_value(2, 4) == pytest.approx(value, abs=1e-6)


def visited(rows, cols, games):
    """Boards with the player to move, from random games by the reference rules."""
    draw, boards = random.Random(1), []
    for _ in range(games):
        board = ((0,) * cols,) * rows
        for _ in range(2):
            board = draw.choice(reference.outcomes(board))[0]
        while True:
            boards.append(board)
            if not (legal := reference.legal_actions(board)):
                break
            board = draw.choice(reference.outcomes(reference.move(board, draw.choice(legal))[0]))[0]
    return boards


@pytest.mark.parametrize("size", [(2, 2), (2, 3), (3, 2)])
@pytest.mark.parametrize("objective", ["score", 4, 16])
def test_bellman_equation(size, objective):
    player = Optimal(objective=objective)

    def value(board):
        made = objective != "score" and 2 ** max(map(max, board)) >= objective
        return 1.0 if made else max(player.board_values(board), 0.0)

    for board in visited(*size, games=12):
        values = player.values(board)
        for action in range(4):
            after, gain, legal = reference.move(board, action)
            follow = sum(p * value(state) for state, p in reference.outcomes(after)) if legal else -np.inf
            assert values[action] == pytest.approx(follow + (gain if objective == "score" else 0), abs=1e-9)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Optimal(objective=24), "objective=24; expected"),
        (lambda: Optimal().act(np.eye(4, dtype=int)), "cannot solve 2048 on 4×4"),
        (lambda: Optimal().act([[7, 7], [0, 0]]), "board 128 128/. . is not in the table"),
        (lambda: Optimal().values([[16, 1], [0, 0]]), "board 65536 2/. . is not in the table"),
        (lambda: Optimal().start_value(4, 4), "cannot solve 2048 on 4×4"),
    ],
)
def test_what_cannot_be_solved(call, message):
    with pytest.raises(ValueError, match=message):
        call()
