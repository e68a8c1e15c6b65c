"""What the documents say in words, on boards of our own."""

import math

import numpy as np
import pytest
from mergefall.game2048 import HEURISTICS, clusters
from mergefall.game2048.heuristics import TileOrder
from mergefall.game2048.heuristics.tile_order import GAME_OVER
from mergefall.game2048.reference import from_text

SMOOTH = HEURISTICS["monotone-smooth"]
ORDER = HEURISTICS["tile-order"]


@pytest.mark.parametrize(
    ("board", "sums", "best"),
    [
        # Each row falls by 3 from left to right, nothing changes from top to bottom, and three like it.
        ("16 8 4 2/16 8 4 2/16 8 4 2/16 8 4 2", (0, -12, 0, 0), 0),
        ("2 4 8 16/4 8 16 32/8 16 32 64/16 32 64 128", (-12, 0, -12, 0), 0),
        ("2 4 8 16/2 4 8 16/4 8 16 32/2 4 8 16", (-12, 0, -4, -4), -4),
        ("2 4 2 4/4 2 4 2/2 4 2 4/4 2 4 2", (-6, -6, -6, -6), -12),
    ],
)
def test_monotonicity_takes_the_better_of_two_sides(board, sums, best):
    ranks = np.array(from_text(board), dtype=int)
    steps, falls = np.diff(ranks, axis=1), np.diff(ranks, axis=0)
    found = (-steps.clip(0).sum(), steps.clip(max=0).sum(), -falls.clip(0).sum(), falls.clip(max=0).sum())
    assert found == sums
    assert SMOOTH.terms(ranks)["monotonicity"] == best == max(sums[:2]) + max(sums[2:])


def test_eight_neighbours_one_step_apart_cost_eight():
    assert SMOOTH.terms(from_text("2 . . ./4 2 . ./2 . . ./. . . ."))["smoothness"] == -6
    assert SMOOTH.terms(from_text("2 4 . ./4 2 . ./. . . ./. . . ."))["smoothness"] == -8
    assert SMOOTH.terms(from_text("2 . . 4/. . . ./. . . ./4 . . 2"))["smoothness"] == -8  # empty cells are seen across
    assert SMOOTH.terms(from_text("2 2 . ./2 2 . ./. . . ./. . . 8"))["smoothness"] == 0


def test_six_empty_cells_are_the_natural_logarithm_of_six():
    board = from_text("2048 4 2 ./4 2 . ./2 . . ./8 4 2 16")
    assert SMOOTH.terms(board)["empty"] == pytest.approx(math.log(6))
    assert SMOOTH.terms(board)["max"] == 11
    assert SMOOTH.terms(from_text("2 4/8 16"))["empty"] == 0


def test_corner_is_lost_only_if_no_largest_tile_stands_in_one():
    assert SMOOTH.terms(from_text("8 2 . ./. . . ./. 8 . ./. . . ."))["corner"] == 0
    assert SMOOTH.terms(from_text("2 8 . ./. . . ./. 8 . ./. . . ."))["corner"] == -3


def test_merges_count_a_cell_once_in_its_row_and_once_in_its_column():
    rows = {"2 2 2 .": 4, "2 2 2 2": 8, "2 2 4 4": 12, "2 . 2 .": 0}
    for row, value in rows.items():
        assert ORDER.terms(from_text(f"{row}/. . . ./. . . ./. . . ."))["merges"] == value
    assert ORDER.terms(from_text("8 8 . ./8 8 . ./. . . ./. . . ."))["merges"] == 4 * 16


def test_average_is_rounded_down_and_nothing_on_an_empty_board():
    assert ORDER.terms(from_text("2 2 4 ./. . . ./. . . ./. . . ."))["average"] == 2
    assert ORDER.terms(np.zeros((4, 4), int))["average"] == 0


@pytest.mark.parametrize(
    ("lower", "top"),
    [
        (". . . ./. . . ./4 8 16 32", (10, 7, 4, 1)),
        (". . . ./. . . ./64 32 16 8", (1, 4, 7, 10)),
        (". . . ./64 128 256 512/4096 2048 1024 1024", (10, 7, 4, 1)),
        ("32 16 8 4/64 128 256 512/4096 2048 1024 1024", (1, 4, 7, 10)),
    ],
)
def test_good_rows_choose_the_matrix(lower, top):
    without = ORDER.terms(from_text(f". . . ./{lower}"))["order"]
    for c, weight in enumerate(top):
        row = " ".join("2" if k == c else "." for k in range(4))
        assert ORDER.terms(from_text(f"{row}/{lower}"))["order"] - without == 2 * weight


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
