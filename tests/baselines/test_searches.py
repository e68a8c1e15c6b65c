"""The compiled searches against the same searches in plain Python, and promises of their docstrings."""

import numpy as np
import pytest
from mergefall.game2048 import HEURISTICS, reference
from mergefall_baselines import make

from .reference_search import ReferenceSearch

ENV = "mergefall/Game2048-v0"
SIZES = {"tile-order": [(4, 4)], "nneonneo": [(4, 4), (2, 3), (3, 5)], "monotone-smooth": [(4, 4), (3, 2), (2, 5)]}
SIZES["prairie-fire"] = [(4, 4), (3, 3)]


def boards(rows, cols, count, seed, high=7):
    """Boards of mixed fullness with a legal move."""
    rng = np.random.default_rng(seed)
    found = []
    while len(found) < count:
        filled = rng.random((rows, cols)) < rng.uniform(0.4, 1.0)
        board = tuple(map(tuple, np.where(filled, rng.integers(1, high, (rows, cols)), 0).tolist()))
        if reference.legal_actions(board):
            found.append(board)
    return found


def in_python(kind, name, rewards=False, **options):
    """The reference search with a heuristic by name; values of single precision where the compiled search has it."""
    h = HEURISTICS[name]
    memo = {}

    def value(board, to_move):
        if (board, to_move) not in memo:
            memo[board, to_move] = h(np.array(board), to_move)
        return memo[board, to_move]

    return ReferenceSearch(kind, value, dead=h.dead, floored=h.floored, rewards=rewards, **options)


def assert_same(player, search, board, exact=True):
    ours = player.values(np.array(board, dtype=np.uint8))
    theirs = np.array(search.action_values(board))
    assert (np.isfinite(ours) == np.isfinite(theirs)).all()
    legal = np.isfinite(ours)
    tolerance = dict(rtol=1e-12, atol=1e-9) if exact else dict(rtol=2e-6, atol=1e-2)
    np.testing.assert_allclose(ours[legal], theirs[legal], **tolerance)


@pytest.mark.parametrize("heuristic", HEURISTICS)
@pytest.mark.parametrize("leaf", ["afterstate", "state"])
@pytest.mark.parametrize("kind", ["expectimax", "minimax", "mixed"])
def test_values_are_those_of_the_search_in_plain_python(kind, leaf, heuristic):
    for rows, cols in SIZES[heuristic]:
        player = make(f"2048/{kind}", heuristic=heuristic, depth=2, leaf=leaf)
        count = 3 if leaf == "state" else 6
        for board in boards(rows, cols, count, seed=rows * cols):
            assert_same(player, in_python(kind, heuristic, depth=2, leaf=leaf), board, heuristic != "nneonneo")
