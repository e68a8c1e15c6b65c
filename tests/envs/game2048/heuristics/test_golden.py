"""The figures of the published originals, computed by a reference program: every one must come out."""

import numpy as np
import pytest
from mergefall.game2048 import HEURISTICS, clusters
from mergefall.game2048.heuristics import TileOrder
from mergefall.game2048.heuristics.tile_order import MATRICES
from mergefall.game2048.packed import pack

ROUNDED = 1e-11  # golden figures have twelve decimals


def figures(golden, system, name):
    return np.array([entry[system][name] for entry in golden], dtype=float)


@pytest.mark.parametrize("strict", [False, True])
def test_tile_order(golden, boards, strict):
    h = TileOrder(strict=strict)
    suffix = "_strict" if strict else ""
    assert (h(boards) == figures(golden, "s000", f"total{suffix}")).all()
    assert (h(boards, to_move=True) == figures(golden, "s000", f"total_move{suffix}")).all()
    terms = h.terms(boards)
    assert (terms["average"] == np.nan_to_num(figures(golden, "s000", "average"))).all()
    assert (terms["empty"] == figures(golden, "s000", "empty")).all()
    assert (terms["merges"] == figures(golden, "s000", "potential_merge")).all()
    assert (terms["order"] == figures(golden, "s000", "order_strict" if strict else "order_lenient")).all()


def test_tile_order_as_its_program_later_was(golden, boards):
    """Good rows without equal neighbours, and another corner; the golden data has the number of good rows."""
    for strict, column in ((False, "index_lenient_later"), (True, "index_strict_later")):
        matrices = MATRICES[figures(golden, "s000", column).astype(int)]
        matrices[:, 3, 0] = 40000
        tiles = np.where(boards > 0, 2.0**boards, 0.0)
        terms = TileOrder(strict=strict, distinct=True, corner=40000).terms(boards)
        assert (terms["order"] == (tiles * matrices).sum(axis=(1, 2))).all()


def test_monotone_smooth(golden, boards):
    h = HEURISTICS["monotone-smooth"]
    names = {"monotonicity": "monotonicity", "smoothness": "smoothness", "max": "log2_max", "corner": "corner"}
    terms = h.terms(boards)
    for ours, theirs in names.items():
        assert (terms[ours] == figures(golden, "s001", theirs)).all(), ours
    np.testing.assert_allclose(terms["empty"], figures(golden, "s001", "ln_empty"), rtol=ROUNDED)
    np.testing.assert_allclose(h(boards), figures(golden, "s001", "total"), rtol=ROUNDED)


def test_prairie_fire(golden, boards):
    h = HEURISTICS["prairie-fire"]
    terms = h.terms(boards)
    for name in ("reward", "penalty", "bonus"):
        np.testing.assert_allclose(terms[name], figures(golden, "s003", name), rtol=ROUNDED)
    np.testing.assert_allclose(h(boards), figures(golden, "s003", "value"), rtol=ROUNDED)


def test_clusters(golden):
    for entry in golden:
        expected = [
            (
                of_rank["rank"],
                tuple(cluster["cells"]),
                tuple(cluster["bbox"]),
                {(rank, direction): cells for rank, direction, cells in cluster["adjacent"]},
            )
            for of_rank in entry["s003"]["ranks"]
            for cluster in of_rank["clusters"]
        ]
        found = [(c.rank, c.cells, c.box, c.neighbours) for c in clusters(entry["ranks"])]
        assert found == expected, entry["id"]


def test_nneonneo_in_single_precision_bit_for_bit(golden):
    h = HEURISTICS["nneonneo"]
    tables, weights = h.tables(), h.weight_vector()
    known = [entry for entry in golden if entry["nneonneo"]["heur_f32"] is not None]
    assert len(known) > 200
    for entry in known:
        board = np.uint64(pack(entry["ranks"].ravel(), 4, 4))
        assert h.kernels().packed(board, False, tables, weights) == entry["nneonneo"]["heur_f32"], entry["id"]
