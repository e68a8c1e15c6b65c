"""Making heuristics from options, and what happens with bad ones."""

from mergefall.game2048 import compare_move


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

    merged = compare_move([[3, 3], [0, 1]], 3)
    assert [(c.rank, c.cells) for c in merged.new] == [(4, (0,))]

    far = compare_move([[0, 1, 0, 1], [0, 0, 0, 2], [0, 0, 0, 0], [0, 0, 0, 0]], 1)
    assert far.after[0] == (0, 0, 0, 2)
    assert [c.cells for c in far.joined] == [(3, 7)]
