"""The slow searches themselves: against exact values, and by hand."""

import numpy as np
import pytest
from mergefall.game2048.reference import Board, from_text
from mergefall_baselines.game2048.solver import solve

from .reference_search import ReferenceSearch

BOARD = from_text("2 2 4/. 8 2")


def tiles(board: Board, to_move: bool) -> float:
    """A toy heuristic that tells cells, and who moves, apart."""
    weighted = sum(i * rank for i, rank in enumerate((rank for row in board for rank in row), start=1))
    return weighted + 0.5 * to_move


def test_expectimax_to_the_end_is_the_exact_value():
    search, solution = ReferenceSearch("expectimax", depth=None, rewards=True), solve(2, 2)
    for board in ("2 ./. 2", "4 8/2 .", "2 4/4 2", "4 2/. 16"):
        values = search.action_values(from_text(board))
        np.testing.assert_allclose(values, solution.action_values(from_text(board)), atol=1e-9)


def test_a_dead_end_is_worth_what_it_was_said_to_be():
    right, board = 1, from_text("8 2/4 .")  # moved right, a 2 at the bottom ends the game and a 4 allows merges
    search = ReferenceSearch("expectimax", tiles, depth=2, dead=-1000.0)
    going_on = max(tiles(from_text(text), False) for text in ("8 2/8 .", "8 2/. 8"))
    assert search.action_values(board)[right] == pytest.approx(0.9 * -1000 + 0.1 * going_on)
    assert ReferenceSearch("minimax", tiles, depth=2, dead=-1000.0).action_values(board)[right] == -1000
    floored = ReferenceSearch("minimax", tiles, depth=2, dead=1000.0, floored=True)
    assert floored.action_values(board)[right] == 1000
