"""Making heuristics from options, and what happens with bad ones."""

import json
import pickle

import numpy as np
import pytest
from mergefall.game2048 import HEURISTICS, clusters, compare_move, heuristic

BOARD = np.array([[1, 2, 3, 4], [0, 1, 1, 0], [0, 0, 5, 0], [2, 2, 0, 6]])


def test_names_terms_and_published_weights():
    weights = {name: list(h.to_json().values())[1:] for name, h in HEURISTICS.items()}
    assert weights == {
        "tile-order": [1, 30, 40, 2, False, False, 30000],
        "monotone-smooth": [1, 0.1, 2.5, 1, 1.5],
        "prairie-fire": [1, -1, 1, *[0] * 10, []],
        "nneonneo": [200000, 270, 700, -47, -11],
    }
    for name, h in HEURISTICS.items():
        assert h.name == name
        assert tuple(h.terms(BOARD)) == h.term_names


@pytest.mark.parametrize(
    "spec",
    [
        "nneonneo",
        {"name": "tile-order", "order": 3, "strict": True},
        {"name": "prairie-fire", "reward": 2, "stages": [[11, {"penalty": -2}]]},
    ],
)
def test_round_trips(spec):
    h = heuristic(spec)
    assert heuristic(h) is h
    for copy in (heuristic(json.loads(json.dumps(h.to_json()))), pickle.loads(pickle.dumps(h))):
        assert copy == h
        assert hash(copy) == hash(h)
        assert copy(BOARD) == h(BOARD)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("snake", "no heuristic 'snake'; there are tile-order, monotone-smooth"),
        ({"reward": 1}, "no heuristic None"),
        ({"name": "nneonneo", "mono": 1}, "no weight 'mono'; it has base, empty"),
        ({"name": "nneonneo", "sum": "11"}, "'sum' of nneonneo is '11'; expected a finite number"),
        ({"name": "nneonneo", "sum": True}, "expected a finite number"),
        ({"name": "tile-order", "order": float("nan")}, "expected a finite number"),
        ({"name": "nneonneo", "empty": 1e39}, r"'empty' of nneonneo is 1e\+39; .*from -1e\+20 up to 1e\+20"),
        ({"name": "nneonneo", "empty": np.float32(-2e20)}, r"'empty' of nneonneo is np\.float32\(-2e\+20\)"),
        (
            {"name": "monotone-smooth", "max": 1e101},
            r"'max' of monotone-smooth is 1e\+101; .*from -1e\+100 up to 1e\+100",
        ),
        ({"name": "monotone-smooth", "max": 10**400}, "'max' of monotone-smooth is 1000"),
        ({"name": "monotone-smooth", "max": np.complex128(1)}, "expected a finite number"),
        ({"name": "tile-order", "corner": 1e101}, "'corner' of tile-order"),
        ({"name": "prairie-fire", "stages": [[11, {"penalty": 1e101}]]}, "'penalty' of prairie-fire"),
        ({"name": "tile-order", "strict": 1}, "strict of tile-order is 1"),
        ({"name": "prairie-fire", "stages": [[11, {"rewards": 1}]]}, "a stage of prairie-fire has no 'rewards'"),
        ({"name": "prairie-fire", "stages": [[11, {}], [9, {}]]}, "ascending ranks"),
        ({"name": "prairie-fire", "stages": [11]}, "expected .rank of the largest tile, weights"),
        ({"name": "prairie-fire", "stages": [[True, {}]]}, "from rank True"),
        ({"name": "prairie-fire", "stages": {"11": {}}}, "expected pairs .rank of the largest tile"),
        (3, "heuristic 3; expected a name, a mapping of its name and weights, a function"),
    ],
)
def test_bad_specs(spec, message):
    with pytest.raises(ValueError, match=message):
        heuristic(spec)


@pytest.mark.parametrize(
    ("ranks", "message"),
    [
        ([1, 2], "shape .2,.; expected .rows, cols. or"),
        (np.zeros((1, 4), int), r"shape \(1, 4\); expected .* 2 to 6 each"),
        (np.zeros((7, 4), int), r"shape \(7, 4\)"),
        (np.zeros((4, 4)), "dtype float64; expected integer ranks"),
        (np.full((4, 4), -1), "rank -1"),
        ([[1, 2], [1]], r"ranks \[\[1, 2\], \[1\]\] has rows of different lengths"),
        (np.full((4, 4), 2048), "rank 2048; expected .* 0 to 62"),
    ],
)
def test_bad_boards(ranks, message):
    with pytest.raises(ValueError, match=message):
        HEURISTICS["nneonneo"](ranks)
    with pytest.raises(ValueError, match=message):
        HEURISTICS["nneonneo"].terms(ranks)


def test_clusters_and_moves_of_bad_input():
    for function, arguments, message in (
        (clusters, ([1, 2, 3, 4],), r"shape \(4,\)"),
        (clusters, (np.zeros((2, 2)),), "type float64"),
        (compare_move, (BOARD, 4), "action 4; expected 0 up"),
    ):
        with pytest.raises(ValueError, match=message):
            function(*arguments)


def test_a_move_joins_splits_and_makes_clusters():
    # 2 . 2      left    4 . .
    # 4 8 .      --->    4 8 .    the 4 that stayed is joined by a new one
    # 8 2 .              8 2 .
    change = compare_move([[1, 0, 1], [2, 3, 0], [3, 1, 0]], 3)
    assert change.legal
    assert change.score == 4
    assert [c.cells for c in change.joined] == [(0, 3)]
    assert not change.split
    assert not change.new

    torn = compare_move([[0, 3, 0], [1, 3, 2], [0, 3, 0]], 3)
    assert torn.after == ((3, 0, 0), (1, 3, 2), (3, 0, 0))
    assert [c.cells for c in torn.split] == [(1, 4, 7)]
    assert (torn.fracture[0].tile_groups, torn.fracture[1].tile_groups) == (3, 5)

    merged = compare_move([[3, 3], [0, 1]], 3)
    assert [(c.rank, c.cells) for c in merged.new] == [(4, (0,))]

    still = compare_move([[1, 2], [0, 0]], 0)
    assert not still.legal
    assert (still.joined, still.split, still.new) == ((), (), ())


def test_a_move_on_the_far_side():
    change = compare_move([[0, 1, 0, 1], [0, 0, 0, 2], [0, 0, 0, 0], [0, 0, 0, 0]], 1)
    assert change.after[0] == (0, 0, 0, 2)
    assert [c.cells for c in change.joined] == [(3, 7)]
