"""What the documents say in words, on boards of our own."""

import pytest
from mergefall.game2048 import HEURISTICS, clusters
from mergefall.game2048.heuristics import TileOrder
from mergefall.game2048.heuristics.tile_order import GAME_OVER
from mergefall.game2048.reference import from_text

ORDER = HEURISTICS["tile-order"]


def test_the_fourth_cell_may_be_the_second_largest_left():
    lenient = from_text(". . 2 ./. . . 32/. . . ./128 64 32 16")
    passed_over_two = from_text(". . 2 ./. . 32 32/. . . ./128 64 32 16")
    assert ORDER.terms(lenient)["order"] != TileOrder(strict=True).terms(lenient)["order"]
    assert ORDER.terms(passed_over_two)["order"] == TileOrder(strict=True).terms(passed_over_two)["order"]


def test_only_up_and_no_move_at_all():
    only_up = from_text(". . . ./2 4 8 16/32 64 128 256/16 8 4 2")
    rest = ORDER(only_up) - 2 * ORDER.terms(only_up)["order"]
    assert ORDER(only_up, to_move=True) == 2 * GAME_OVER + rest
    assert ORDER.terms(only_up, to_move=True)["order"] == GAME_OVER
    dead = from_text("2 4 2 4/4 2 4 2/2 4 2 4/4 2 4 2")
    assert ORDER(dead) == ORDER(dead, to_move=True) == GAME_OVER


@pytest.mark.parametrize(
    ("board", "shape", "turns"),
    [
        ("2 . ./. . .", "line", 0),
        ("2 2 2/. . .", "line", 0),
        ("2 2 ./. 2 .", "angled", 1),
        ("2 2 ./. 2 2", "angled", 2),
        ("2 2 2/. 2 .", "branched", 0),
        ("2 2 2/. 2 2", "round", 0),
        ("2 2 2/2 . 2/2 2 2", "angled", 4),
    ],
)
def test_shapes(board, shape, turns):
    (tiles,) = [cluster for cluster in clusters(from_text(board)) if cluster.rank == 1]
    assert (tiles.shape, tiles.turns) == (shape, turns)


def test_a_run_across_a_cluster_is_monotone():
    def monotone(board):
        return {cluster.cells: cluster.monotone for cluster in clusters(from_text(board))}

    assert monotone("2 4 8/. . .")[(1,)] == 1
    assert monotone("2 4 4/8 . .")[(1, 2)] == 0
    assert monotone("2 8 16/. 8 ./. 32 .")[(1, 4)] == 1
    assert monotone("2 8 16/4 8 32/2 4 2")[(1, 4)] == 2
    assert monotone("4 2 4/. . .")[(1,)] == 0
