"""What the published originals choose, from a reference program that shares no code."""

import numpy as np
import pytest
from mergefall.tetris import place
from mergefall.tetris.pieces import PIECE_SETS
from mergefall_baselines import make

from ...envs.tetris.tools import CONTROLLERS, cells, golden

NAMES, FIVE = PIECE_SETS["tetromino"].names, PIECE_SETS["five"].names


def board_of(key):
    return cells(golden()["boards"][key]["rows"])


def shown(board, *pieces, names=NAMES):
    """An observation."""
    ids = [names.index(piece) for piece in pieces]
    return {"board": board, "piece": np.int64(ids[0])} | ({"queue": np.array(ids[1:])} if ids[1:] else {})


def best_of(values):
    """The actions of highest value, [] if all are lost."""
    return [] if values.max() == -np.inf else np.flatnonzero(values > values.max() - 1e-9).tolist()


@pytest.mark.parametrize("overflow", ["strict", "clear_first"])
def test_controllers_choose_what_the_originals_do(overflow):
    for theirs, ours in CONTROLLERS.items():
        player = make(f"tetris/{ours}", overflow=overflow)
        for case in golden()["best_placements"]:
            observation = shown(board_of(case["board"]), case["piece"])
            expected = case[overflow]["controllers"][theirs]
            values = player.values(observation)
            assert best_of(values) == [10 * rotation + column for rotation, column in expected["best"]]
            assert np.isfinite(values).sum() == case[overflow]["non_terminal_placements"]
            if expected["best"]:
                assert values.max() == pytest.approx(expected["value"], rel=1e-9)
                assert int(player.act(observation)) in best_of(values)


def test_dellacherie_breaks_ties_by_its_priority():
    """Empty board, one O: all columns but those by the walls are worse, and the far side is the left one, by 10."""
    board = np.zeros((20, 10), dtype=np.uint8)
    values = make("tetris/dellacherie").values(shown(board, "O"))
    assert best_of(values) == [0, 8]
    assert int(make("tetris/dellacherie").act(shown(board, "O"))) == 0
    board[18:, :2] = 1  # now the spawn column 4 and the wall are as good: |2 - 4| < |8 - 4|
    values = make("tetris/dellacherie").values(shown(board, "O"))
    assert best_of(values) == [2, 8]
    assert int(make("tetris/dellacherie").act(shown(board, "O"))) == 8
    assert int(make("tetris/greedy", heuristic="dellacherie").act(shown(board, "O"))) == 2


def test_two_tetrad_searches_as_its_document():
    players = {}
    for case in golden()["seed004_search"]:
        depth = 1 if case["next"] is None else 2
        key = case["weights"], depth
        if key not in players:
            weights = golden()["seed004_weights"][case["weights"]]
            heuristic = {"name": "two-tetrad"} | {f"f{i + 1}": weight for i, weight in enumerate(weights)}
            players[key] = make("tetris/two-tetrad", heuristic=heuristic, depth=depth, placements="slide")
        board = board_of(case["board"])
        pieces = [case["current"]] if depth == 1 else [case["current"], case["next"]]
        values = players[key].values(shown(board, *pieces))
        assert np.isfinite(values).sum() == case["positions"]
        assert values.max() == pytest.approx(case["value"], rel=1e-9)
        ends = []
        for action in best_of(values):
            slide, rotation, column = action // 40, action // 10 % 4, action % 10
            ends.append([list(cell) for cell in place(board, case["current"], rotation, column, slide).cells])
        assert sorted(ends) == sorted(sorted(end) for end in case["best"])
    assert {depth for _, depth in players} == {1, 2}


def test_quintris_with_the_next_piece_known():
    player = make("quintris/expectimax", depth=1)
    for case in golden()["seed002_max_node"]:
        values = player.values(shown(cells(case["rows"]), case["current"], case["next"], names=FIVE))
        assert best_of(values) == [15 * rotation + column for rotation, column in case["best"]]
        if case["value"] is not None:
            assert values.max() == pytest.approx(case["value"], rel=1e-9)
