"""One heuristic, several forms: batches, packed boards, other sizes and turned boards must agree."""

from itertools import groupby, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mergefall.game2048 import HEURISTICS, clusters, heuristic
from mergefall.game2048.packed import pack

from ...tools import monotone_smooth_terms

ALL_TERMS = {term: 0.5 + i for i, term in enumerate(HEURISTICS["prairie-fire"].term_names)}
SPECS = [
    *HEURISTICS,
    {"name": "tile-order", "strict": True, "merges": 12.5},
    {"name": "tile-order", "distinct": True, "corner": 40000},
    {"name": "monotone-smooth", "smoothness": 1, "corner": 0},
    {"name": "prairie-fire"} | ALL_TERMS,
    {"name": "prairie-fire", "stages": [[5, {"penalty": -3}], [9, {"cliffs": 2, "low": 0.25}], [12, {"shape": 1}]]},
]
SIZES = [(2, 2), (2, 3), (3, 3), (3, 5), (4, 4), (5, 4), (6, 6)]


def snake(ranks):
    """Sorted ranks laid out from the lower left corner, as tile-order likes them."""
    board = np.array(sorted(ranks), dtype=np.uint8).reshape(4, 4)
    board[3], board[1] = board[3, ::-1].copy(), board[1, ::-1].copy()
    return board


@st.composite
def boards_4x4(draw):
    """Random boards, and snakes with a few cells exchanged."""
    largest = draw(st.integers(1, 15))
    ranks = draw(st.lists(st.integers(0, largest), min_size=16, max_size=16))
    if draw(st.booleans()):
        return np.array(ranks, dtype=np.uint8).reshape(4, 4)
    board = snake(ranks)
    for _ in range(draw(st.integers(0, 2))):
        i, j = draw(st.tuples(st.integers(0, 15), st.integers(0, 15)))
        cells = board.reshape(-1)
        cells[i], cells[j] = cells[j], cells[i]
    return board


@pytest.mark.parametrize("spec", SPECS, ids=str)
@settings(max_examples=300)
@given(board=boards_4x4(), to_move=st.booleans())
def test_packed_is_cells(spec, board, to_move):
    h = heuristic(spec)
    packed = h.kernels().packed(np.uint64(pack(board.ravel(), 4, 4)), to_move, h.tables(), h.weight_vector())
    if h.name == "nneonneo":
        assert packed == pytest.approx(h(board, to_move), rel=1e-6, abs=1)  # single precision, as the original
    else:
        assert packed == h(board, to_move)


def nneonneo_of_line(line):
    """The line's parts in the words of the formula."""
    ranks = line.tolist()
    tiles = [rank for rank in ranks if rank]
    runs = [len(list(run)) for _, run in groupby(tiles)]
    steps = [b**4 - a**4 for a, b in pairwise(ranks)]
    falls, rises = -sum(step for step in steps if step < 0), sum(step for step in steps if step > 0)
    merges = sum(run for run in runs if run > 1)
    return np.array([1, len(ranks) - len(tiles), merges, min(falls, rises), sum(rank**3.5 for rank in ranks)])


@pytest.mark.parametrize(("rows", "cols"), SIZES)
def test_nneonneo_terms_are_sums_over_lines(rows, cols):
    board = np.random.default_rng(1).integers(0, 4, size=(rows, cols))
    parts = sum(nneonneo_of_line(line) for line in (*board, *board.T))
    np.testing.assert_allclose(list(HEURISTICS["nneonneo"].terms(board).values()), parts)


@pytest.mark.parametrize(("rows", "cols"), SIZES)
def test_monotone_smooth_on_any_size(rows, cols):
    for seed in range(20):
        board = np.random.default_rng(seed).integers(0, 8, size=(rows, cols))
        terms = HEURISTICS["monotone-smooth"].terms(board)
        np.testing.assert_allclose(list(terms.values()), monotone_smooth_terms(board))


def prairie_terms(board):
    """All terms of prairie-fire from the clusters in plain Python."""
    found = clusters(board)
    tiles = [c for c in found if c.rank]
    ranks = {c.rank for c in found}
    of_rank = {rank: [c for c in found if c.rank == rank] for rank in ranks}
    top = int(board.max())
    pairs = [(a, b) for line in (*board, *board.T) for a, b in pairwise(line) if a and b]
    blocks = [board[r : r + 2, c : c + 2] for r in range(board.shape[0] - 1) for c in range(board.shape[1] - 1)]
    home = {cell: c for c in tiles for cell in c.cells}
    grid = np.arange(board.size).reshape(board.shape)
    touching = {
        frozenset((home[a].cells, home[b].cells))
        for line in (*grid, *grid.T)
        for a, b in pairwise(line.tolist())
        if a in home and b in home and abs(home[a].rank - home[b].rank) == 1
    }
    gaps = 0
    for line in (*board, *board.T):
        at = np.flatnonzero(line)
        gaps += sum(line[a] == line[b] and b - a > 1 for a, b in pairwise(at))
    bonus = {8: 10, 9: 20, 10: 50, 11: 100, 12: 200, 13: 400}.get(top, 800 if top > 13 else 0)
    return {
        "reward": sum(1.5 ** max(len(c.cells) for c in group) for group in of_rank.values()),
        "penalty": sum(3 ** len(group) for group in of_rank.values()),
        "bonus": bonus,
        "cluster_size": sum(len(c.cells) for c in tiles if len(c.cells) > 1),
        "fragments": -sum(len(group) - 1 for rank, group in of_rank.items() if rank),
        "large": board.sum(),
        "low": -((board > 0) & (board <= top - 4)).sum(),
        "zero_fragments": -max(len(of_rank.get(0, ())) - 1, 0),
        "shape": -sum(c.turns for c in tiles),
        "neighbours": len(touching),
        "cliffs": -sum(abs(int(a) - int(b)) >= 4 for a, b in pairs),
        "checkerboard": -sum(bool(b.all() and np.diff(b).all() and np.diff(b, axis=0).all()) for b in blocks),
        "gap_merges": gaps,
    }


@pytest.mark.parametrize(("rows", "cols"), SIZES)
def test_prairie_fire_terms_are_what_the_clusters_say(rows, cols):
    for seed in range(60):
        random = np.random.default_rng(seed)
        board = random.integers(0, random.integers(2, 13), size=(rows, cols))
        assert HEURISTICS["prairie-fire"].terms(board) == pytest.approx(prairie_terms(board)), board


def test_stages_choose_the_weights_by_the_largest_tile():
    h = heuristic({"name": "prairie-fire", "bonus": 3, "stages": [[9, {"penalty": -2}], [11, {"reward": 5}]]})
    for top, weights in [(8, (1, -1, 3)), (9, (1, -2, 3)), (10, (1, -2, 3)), (11, (5, -1, 3)), (15, (5, -1, 3))]:
        board = np.zeros((4, 4), dtype=np.uint8)
        board[0] = top, 1, 2, 1
        now = h.at(top)
        assert (now.reward, now.penalty, now.bonus) == weights
        assert h(board) == now(board) == sum(getattr(now, term) * part for term, part in h.terms(board).items())
