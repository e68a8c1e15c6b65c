"""The figures of the published originals, from a reference program that shares no code: every one must come out."""

import numpy as np
import pytest
from mergefall.tetris import HEURISTICS, place

from ..tools import CONTROLLERS, cells, golden

GOLDEN = golden()
NAMES_THERE = {"eroded_cells": "eroded_piece_cells", "wells": "cumulative_wells", "diversity": "pattern_diversity"}
OVERFLOWS = ["strict", "clear_first"]


BOARDS = {key: cells(entry["rows"]) for key, entry in GOLDEN["boards"].items()}


@pytest.mark.parametrize("name", CONTROLLERS.values())
def test_features_of_boards(name):
    for key, board in BOARDS.items():
        expected = GOLDEN["boards"][key]["features"]
        terms = HEURISTICS[name].board_terms(board)
        assert terms == {term: expected[NAMES_THERE.get(term, term)] for term in terms}, key


@pytest.mark.parametrize("overflow", OVERFLOWS)
def test_features_and_values_of_placements(overflow):
    for entry in GOLDEN["afterstates"]:
        placed = place(BOARDS[entry["board"]], entry["piece"], entry["rotation"], entry["column"], overflow=overflow)
        for theirs, ours in CONTROLLERS.items():
            h = HEURISTICS[ours]
            over = entry[overflow]["game_over"]
            assert h(placed) == pytest.approx(-np.inf if over else entry["values"][theirs], rel=1e-9)
            if not over:
                expected = entry["features"]
                assert h.terms(placed) == {term: expected[NAMES_THERE.get(term, term)] for term in h.term_names}


def test_two_tetrad_terms():
    entries = [entry for entry in GOLDEN["afterstates"] if entry["seed004"]]
    assert len(entries) > 600
    for entry in entries:
        placed = place(BOARDS[entry["board"]], entry["piece"], entry["rotation"], entry["column"])
        assert HEURISTICS["two-tetrad"].terms(placed) == {f"f{i}": entry["seed004"][f"F{i}"] for i in range(1, 9)}


def test_open_enclosed_values():
    for entry in GOLDEN["seed002_value"]:
        board = cells(entry["rows"])
        assert HEURISTICS["open-enclosed"].board(board) == pytest.approx(entry["value"], rel=1e-9)
        assert HEURISTICS["open-enclosed"].board_terms(board)["full_rows"] == entry["full_rows"]
