"""Heuristics: what their forms agree on, and how they are made."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mergefall.tetris import HEURISTICS, heuristic, place
from mergefall.tetris.field import columns_of
from mergefall.tetris.heuristics import MEMO, priority, reference
from mergefall.tetris.pieces import NAMES, WIDTHS, rotations
from mergefall.tetris.placements import action_of, at_rest, list_placements

from ..tools import golden

SPECS = [*HEURISTICS, {"name": "two-tetrad", "f8": -3}, {"name": "dt-10", "holes": 0}]
CONTROLLERS = ["dellacherie", "bcts", "dt-10", "dt-20", "el-tetris"]


def random_board(seed, full_rows=True):
    """A board of any size, floating rows among them: a few rows of some density, perhaps some of them full."""
    random = np.random.default_rng(seed)
    rows, cols = random.integers(4, 41), random.integers(4, 17)
    board = np.zeros((rows, cols), dtype=np.uint8)
    low = rows - random.integers(0, rows + 1)
    board[low:] = random.random((rows - low, cols)) < random.choice([0.2, 0.6, 0.9])
    board[random.random(rows) < 0.1] = 0
    if full_rows:
        board[random.random(rows) < 0.1] = 1
    return board


@cache
def played_board(seed, rows=20, cols=10):
    """A board on which a weak player has put some pieces: each where its cells lie lowest, at times anywhere."""
    random = np.random.default_rng(seed)
    board = np.zeros((rows, cols), dtype=np.uint8)
    for _ in range(random.integers(0, 2 * cols)):
        piece = NAMES[random.integers(0, 7)]
        placed = [
            place(board, piece, rotation, column)
            for rotation in range(len(rotations(piece)))
            for column in range(cols - WIDTHS[NAMES.index(piece), rotation] + 1)
        ]
        best = random.choice(placed) if random.random() < 0.2 else min(placed, key=lambda p: p.landing_height)
        if best.over:
            break
        board = best.board
    return board


def as_rows(board):
    return tuple(map(tuple, board.tolist()))


SEEDS = st.integers(0, 10**9)


@settings(max_examples=150)
@given(seed=SEEDS)
def test_board_terms_are_those_of_the_slow_twin(seed):
    board = random_board(seed)
    slow = reference.features(as_rows(board))
    for name in CONTROLLERS:
        terms = HEURISTICS[name].board_terms(board)
        assert terms == {term: slow[term] for term in terms}
    assert HEURISTICS["two-tetrad"].board_terms(board) == reference.two_tetrad(as_rows(board))
    assert HEURISTICS["open-enclosed"].board_terms(board) == reference.open_enclosed(as_rows(board))
    assert HEURISTICS["attack"].board_terms(board) == reference.attack(as_rows(board))


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_a_value_is_the_weighted_sum_of_the_terms_of_the_slow_twin(spec):
    h = heuristic(spec)
    for seed in range(20):
        board = played_board(seed)
        for rotation, column in ((0, 0), (0, 6), (1, 3)):
            placed = place(board, "L", rotation, column, overflow="clear_first")
            counted = as_rows(placed.locked if h.before_clearing else placed.board)
            slow = reference.of_move(placed) | reference.features(counted) | reference.open_enclosed(counted)
            slow |= reference.two_tetrad(counted) | (reference.attack(counted) if h.name == "attack" else {})
            terms = h.terms(placed)
            assert tuple(terms) == tuple(name for name in h.term_names if name in terms)
            assert {*h.of_placement.names, *h.of_last.names, *h.of_board.names} & {*h.term_names} == {*terms}
            assert terms == {name: slow[name] for name in terms}
            expected = -np.inf if placed.over else sum(getattr(h, name) * term for name, term in terms.items())
            assert h(placed) == pytest.approx(expected)


def leaves(h, board, piece, clear_first):
    """The arguments of `place` after the piece, the place at rest, and the value of all placements of a piece.

    Drops and slides, and of tetrominoes the reachable placements, come from the kernels of a search.
    """
    rows, cols = board.shape
    prepare, leaf = h.kernels()[2:4]
    columns, memo, scratch = columns_of(board), np.zeros(MEMO, np.uint64), np.zeros(cols, np.uint64)
    placements, weights = np.zeros(4 * cols * (rows + 4), np.int64), h.weight_vector()
    prepare(columns, rows, memo)
    before = columns.copy(), memo.copy()
    for reach in (None, rows) if piece < 7 else (None,):
        for placement in placements[: list_placements(columns, piece, True, reach, placements)].tolist():
            rotation, column, y = at_rest(placement)
            value = leaf(columns, memo, piece, rotation, column, y, rows, clear_first, weights, scratch)
            action = action_of(placement)
            how = {"rotation": rotation, "column": column, "y": y}
            if reach is None:
                how = {"rotation": rotation, "column": action % cols, "slide": action // (4 * cols)}
            yield how, value
    assert (columns == before[0]).all()
    assert (memo == before[1]).all()


BOARDS = [
    *(played_board(seed) for seed in range(8)),
    *(played_board(seed, rows=7, cols=6) for seed in range(4)),
    *(random_board(seed, full_rows=seed % 2 == 0)[-24:] for seed in range(10)),
]


@pytest.mark.parametrize("spec", SPECS, ids=str)
@pytest.mark.parametrize("overflow", ["strict", "clear_first"])
def test_a_leaf_is_the_value_of_the_placement(spec, overflow):
    h = heuristic(spec)
    cleared = lost = 0
    for i, board in enumerate(BOARDS):
        index = (5 * i) % len(NAMES)
        for how, value in leaves(h, board, index, overflow == "clear_first"):
            placed = place(board, NAMES[index], **how, overflow=overflow)
            assert value == h(placed), (i, NAMES[index], how)
            cleared += placed.lines
            lost += placed.over
    assert cleared > 30
    assert lost > 10


@pytest.mark.parametrize("spec", SPECS, ids=str)
@settings(max_examples=60)
@given(seed=SEEDS)
def test_mirrored_boards_are_worth_the_same(spec, seed):
    board = random_board(seed)
    assert heuristic(spec).board(board[:, ::-1]) == heuristic(spec).board(board)


def test_weights_by_name():
    published = golden()["seed004_weights"]
    for name, theirs in (("start", published["initial"]), ("first-run", published["after_run_1"])):
        h = heuristic({"name": "two-tetrad", "weights": name})
        assert [getattr(h, term) for term in h.term_names] == theirs
    assert h == HEURISTICS["two-tetrad"]
    assert heuristic({"name": "two-tetrad", "weights": "start", "f8": 7}).to_json()["f8"] == 7


def test_dellacherie_prefers_far_from_the_spawn_then_its_left_then_few_turns():
    # An I lying down spawns at column 3 of 10, standing up at column 4.
    i_piece = NAMES.index("I")
    assert [priority(i_piece, 0, column, 10) for column in (0, 2, 3, 4, 6)] == [310, 110, 0, 100, 300]
    assert [priority(i_piece, 1, column, 10) for column in (0, 4, 9)] == [409, -1, 499]
    assert priority(NAMES.index("T"), 3, 4, 10) == -3
