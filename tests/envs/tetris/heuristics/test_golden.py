"""The figures of the published originals, from a reference program that shares no code: every one must come out."""

import json
from pathlib import Path

import numpy as np
import pytest
from mergefall.tetris import HEURISTICS, heuristic, place
from mergefall.tetris.field import columns_of
from mergefall.tetris.heuristics import MEMO
from mergefall.tetris.pieces import NAMES, rotations
from mergefall.tetris.placements import column_of, list_placements, rotation_of, row_of

GOLDEN = json.loads((Path(__file__).parents[3] / "golden" / "tetris.json").read_text())
CONTROLLERS = {"dellacherie": "dellacherie", "bcts": "bcts", "dt10": "dt-10", "dt20": "dt-20", "el_tetris": "el-tetris"}
NAMES_THERE = {"eroded_cells": "eroded_piece_cells", "wells": "cumulative_wells", "diversity": "pattern_diversity"}
OVERFLOWS = ["strict", "clear_first"]


def cells(rows):
    return np.array([[cell == "#" for cell in row] for row in rows], dtype=np.uint8)


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


def test_two_tetrad_terms_in_both_readings():
    chosen, printed = HEURISTICS["two-tetrad"], heuristic({"name": "two-tetrad", "reading": "printed"})
    entries = [entry for entry in GOLDEN["afterstates"] if entry["seed004"]]
    assert len(entries) > 600
    for entry in entries:
        placed = place(BOARDS[entry["board"]], entry["piece"], entry["rotation"], entry["column"])
        expected = entry["seed004"]
        assert chosen.terms(placed) == {f"f{i}": expected[f"F{i}"] for i in range(1, 9)}
        found = printed.terms(placed)
        assert (found["f6"], found["f7"]) == (expected["F6_literal"], expected["F7_literal"])


def placements_of(board, piece, slides):
    """(piece index, rotation, column, y) of all placements, in the order of actions."""
    columns, found = columns_of(board), np.zeros(12 * board.shape[1], np.int64)
    index = NAMES.index(piece)
    count = list_placements(columns, index, slides, found)
    return [(index, rotation_of(p), column_of(p), row_of(p)) for p in found[:count].tolist()]


def cells_of(at_rest, rows):
    """The cells of a placement, as lists of [row, column]."""
    index, rotation, column, y = at_rest
    shape = rotations(NAMES[index])[rotation]
    height = 1 + max(row for row, _ in shape)
    return sorted([rows - y - height + row, column + c] for row, c in shape)


def values_of(h, board, placements, clear_first=False, clears=True):
    """The values of placements on a board."""
    rows, cols = board.shape
    kernels, weights = h.kernels(clears), h.weight_vector()
    columns, memo, scratch = columns_of(board), np.zeros(MEMO, np.uint64), np.zeros(cols, np.uint64)
    kernels.prepare(columns, rows, weights, memo)
    return [kernels.leaf(columns, memo, *p, rows, clear_first, weights, scratch) for p in placements]


@pytest.mark.parametrize("overflow", OVERFLOWS)
def test_best_placements(overflow):
    for entry in GOLDEN["best_placements"]:
        board, expected = BOARDS[entry["board"]], entry[overflow]
        placements = placements_of(board, entry["piece"], slides=False)
        for theirs, ours in CONTROLLERS.items():
            values = np.array(values_of(HEURISTICS[ours], board, placements, overflow == "clear_first"))
            assert (values > -np.inf).sum() == expected["non_terminal_placements"]
            best = expected["controllers"][theirs]
            if best["value"] is None:
                assert (values == -np.inf).all()
                continue
            assert values.max() == pytest.approx(best["value"], rel=1e-9)
            tied = [list(p[1:3]) for p, value in zip(placements, values, strict=True) if value > values.max() - 1e-9]
            assert tied == best["best"]


@pytest.mark.parametrize("entry", GOLDEN["seed004_search"], ids=lambda e: f"{e['board']}-{e['current']}-{e['next']}")
def test_two_tetrad_search(entry):
    weights = GOLDEN["seed004_weights"][entry["weights"]]
    h = heuristic({"name": "two-tetrad"} | {f"f{i + 1}": weight for i, weight in enumerate(weights)})
    board = BOARDS[entry["board"]]
    first = placements_of(board, entry["current"], slides=True)
    assert len(first) == entry["positions"]
    if entry["next"] is None:
        values = values_of(h, board, first)
    else:
        values = []
        for p in first:
            after, lines = after_of(board, p)
            second = placements_of(after, entry["next"], slides=True)
            values.append(h.f5 * lines + max(values_of(h, after, second), default=-np.inf))
    assert max(values) == pytest.approx(entry["value"], rel=1e-9)
    best = [cells_of(p, len(board)) for p, v in zip(first, values, strict=True) if v > max(values) - 1e-9]
    assert sorted(best) == sorted(map(sorted, entry["best"]))


def after_of(board, at_rest):
    """(the board after a placement, its lines), by hand."""
    after = board.copy()
    for row, column in cells_of(at_rest, len(board)):
        after[row, column] = 1
    kept = after[~after.all(axis=1)]
    lines = len(board) - len(kept)
    return np.concatenate([np.zeros((lines, board.shape[1]), np.uint8), kept]), lines


def test_open_enclosed_values():
    for entry in GOLDEN["seed002_value"]:
        board = cells(entry["rows"])
        assert HEURISTICS["open-enclosed"].board(board) == pytest.approx(entry["value"], rel=1e-9)
        assert HEURISTICS["open-enclosed"].board_terms(board)["full_rows"] == entry["full_rows"]


@pytest.mark.parametrize("entry", GOLDEN["seed002_max_node"], ids=lambda e: f"{e['current']}-{e['next']}")
def test_open_enclosed_search_leaves_full_rows(entry):
    board, h = cells(entry["rows"]), HEURISTICS["open-enclosed"]
    first = placements_of(board, entry["current"], slides=False)
    values = []
    for p in first:
        locked = board.copy()
        inside = all(row >= 0 for row, _ in cells_of(p, len(board)))
        for row, column in cells_of(p, len(board)) if inside else ():
            locked[row, column] = 1
        second = placements_of(locked, entry["next"], slides=False) if inside else []
        values.append(max(values_of(h, locked, second, clears=False), default=-np.inf))
    if entry["value"] is None:
        assert max(values) == -np.inf
    else:
        assert max(values) == pytest.approx(entry["value"], rel=1e-9)
        best = [list(p[1:3]) for p, v in zip(first, values, strict=True) if v > max(values) - 1e-9]
        assert best == entry["best"]
