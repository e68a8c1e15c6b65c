"""The exact solver against golden figures, the Bellman equation in plain Python, and damaged or unfinished files.

3×3 and the 2×4 probabilities take minutes: ``MERGEFALL_SLOW=1 pytest -s tests/baselines/game2048/test_solver.py``.
"""

import json
import os
import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from mergefall.game2048 import reference
from mergefall_baselines import arrays
from mergefall_baselines.game2048 import solver
from mergefall_baselines.game2048.solver import Solution, solve
from mergefall_baselines.player import NotFiniteError

GOLDEN = json.loads((Path(__file__).parents[2] / "golden/exact2048.json").read_text())
SLOW = bool(os.environ.get("MERGEFALL_SLOW"))
# 2×4 is not in the golden file: objective -> value from the random start, to six decimals
WIDE = {"score": 2641.873036} | ({256: 0.869756, 512: 0.024639} if SLOW else {})

solved = cache(solve)


def size_id(entry: dict) -> str:
    return f"{entry['rows']}x{entry['cols']}"


def is_run(entry: dict) -> bool:
    return SLOW or entry["rows"] * entry["cols"] < 9


@pytest.fixture(scope="module", params=[game for game in GOLDEN["games"] if is_run(game)], ids=size_id)
def game(request):
    return request.param


def test_golden_counts(game):
    counts = solved(game["rows"], game["cols"], "score").counts
    assert counts == {key: game[key] for key in counts}
    assert {"starts", "states", "terminal", "afterstates", "states_up_to_symmetry"} == set(counts)


def test_golden_start_values(game):
    size = game["rows"], game["cols"]
    tolerance = 1e-6 if game["rows"] * game["cols"] == 9 else 2e-9  # the decimals of the golden figure
    assert solved(*size, "score").start_value == pytest.approx(game["optimal_score"], abs=tolerance)
    for tile, chance in game["reach"].items():
        assert solve(*size, int(tile)).start_value == pytest.approx(chance, abs=tolerance), tile


def test_golden_positions(game):
    size = game["rows"], game["cols"]
    positions = [p for p in GOLDEN["positions"] if (p["rows"], p["cols"]) == size]
    assert positions
    optimal = solved(*size, "score")
    for position in positions:
        board = np.reshape(position["board"], size)
        assert optimal.value(board) == pytest.approx(position["optimal_value"], abs=1e-6)
        if position["action_values"] is None:  # 3×3
            continue
        values = optimal.action_values(board)
        expected = [-np.inf if value is None else value for value in position["action_values"]]
        np.testing.assert_allclose(values, expected, rtol=0, atol=1e-6)
        assert np.flatnonzero(values == values.max()).tolist() == position["best_actions"]


def test_2x4():
    for objective, value in WIDE.items():
        solution = solve(2, 4, objective)
        assert solution.start_value == pytest.approx(value, abs=1e-6)
        assert solution.counts["states"] == 19_920_382


def visited(rows: int, cols: int, games: int) -> list[reference.Board]:
    """Boards with the player to move, from random games by the reference rules."""
    draw, boards = random.Random(1), []
    for _ in range(games):
        board = ((0,) * cols,) * rows
        for _ in range(2):
            board = draw.choice(reference.outcomes(board))[0]
        while True:
            boards.append(board)
            if not (legal := reference.legal_actions(board)):
                break
            board = draw.choice(reference.outcomes(reference.move(board, draw.choice(legal))[0]))[0]
    return boards


@pytest.mark.parametrize("size", [(2, 2), (2, 3), (3, 2)])
@pytest.mark.parametrize("objective", ["score", 4, 16])
def test_bellman_equation(size, objective):
    solution = solved(*size, objective)
    for board in visited(*size, games=12):
        values = solution.action_values(board)
        for action in range(4):
            after, gain, legal = reference.move(board, action)
            follow = sum(p * solution.value(state) for state, p in reference.outcomes(after)) if legal else -np.inf
            assert values[action] == pytest.approx(follow + (gain if objective == "score" else 0), abs=1e-9)
        legal_values = values[values > -np.inf]
        if objective != "score" and 2 ** max(map(max, board)) >= objective:
            assert solution.value(board) == 1
        elif not legal_values.size:
            assert solution.value(board) == 0
        else:
            assert solution.value(board) == pytest.approx(legal_values.max(), abs=1e-9)


def test_values_do_not_change_under_symmetry():
    tall, wide, square = solved(3, 2, "score"), solved(2, 3, "score"), solved(2, 2, "score")
    assert tall.start_value == pytest.approx(wide.start_value, abs=1e-9)
    assert tall.counts == wide.counts
    boards = np.array(visited(3, 2, games=20))
    np.testing.assert_allclose(tall.value(boards), wide.value(boards.transpose(0, 2, 1)), atol=1e-9)
    assert np.array_equal(tall.value(boards), [tall.value(board) for board in boards[:, ::-1]])
    assert np.array_equal(tall.action_values(boards), tall.action_values(boards[:, :, ::-1])[:, [0, 3, 2, 1]])
    boards = np.array(visited(2, 2, games=20))
    turned = square.action_values(boards.transpose(0, 2, 1))
    assert np.array_equal(square.action_values(boards), turned[:, [3, 2, 1, 0]])


@pytest.mark.parametrize(
    ("board", "message"),
    [
        ([[7, 7], [7, 0]], "board 128 128/128 . is not in the table"),
        ([[5, 5], [0, 0]], "board 32 32/. . is not in the table"),
        ([[16, 1], [0, 0]], "board 65536 2/. . is not in the table"),
        ([[-1, 1], [0, 0]], r"board \[\[-1, 1\], \[0, 0\]\] is not in the table"),
        ([[1, 1, 0], [0, 0, 0]], r"shape \(2, 3\) and dtype int64; expected integer ranks \(2, 2\)"),
        ([[1.5, 1], [0, 0]], r"shape \(2, 2\) and dtype float64; expected integer ranks \(2, 2\)"),
    ],
)
def test_boards_outside_the_table(board, message):
    with pytest.raises(ValueError, match=message):
        solved(2, 2, "score").action_values(board)


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ((4, 4), "cannot solve 2048 on 4×4"),
        ((2, 2, "tile"), "objective='tile'; expected"),
        ((2, 2, 24), "objective=24; expected"),
    ],
)
def test_what_cannot_be_solved(task, message):
    with pytest.raises(ValueError, match=message):
        solve(*task)


def test_a_saved_table_is_the_same_table(tmp_path):
    for objective in ("score", 16):
        solution, path = solved(2, 2, objective), tmp_path / "table.npz"
        solution.save(path)
        loaded = Solution.load(path)
        assert repr(loaded) == repr(solution)
        assert loaded.start_value == solution.start_value
        boards = np.array(visited(2, 2, games=5))
        assert np.array_equal(loaded.action_values(boards), solution.action_values(boards))
    assert [entry.name for entry in tmp_path.iterdir()] == ["table.npz"]


def test_damaged_files_are_refused(tmp_path):
    path = tmp_path / "table.npz"
    solved(2, 2, "score").save(path)
    whole, draw = path.read_bytes(), random.Random(0)
    for length in (0, 1, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match=r"table.npz is damaged"):
            Solution.load(path)
    refused = 0
    for _ in range(300):
        damaged = bytearray(whole)
        damaged[draw.randrange(len(whole))] ^= 1 << draw.randrange(8)
        path.write_bytes(damaged)
        try:
            loaded = Solution.load(path)
        except ValueError:
            refused += 1
        else:  # a bit of the archive's own that carries nothing, such as a date
            assert loaded.start_value == solved(2, 2, "score").start_value
            assert np.array_equal(loaded.table.values, solved(2, 2, "score").table.values)
    assert refused > 200


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_are_no_numbers_are_refused(value, tmp_path, monkeypatch):
    solution, path = solved(2, 2, "score"), tmp_path / "table.npz"
    spoilt = solution.table.values.copy()
    spoilt[-1] = value
    spoilt = replace(solution, table=solution.table._replace(values=spoilt))
    message = rf"table.npz: the array 'values' holds {value}; expected finite numbers"
    with pytest.raises(NotFiniteError, match=message):
        spoilt.save(path)
    with monkeypatch.context() as unchecked:
        unchecked.setattr(arrays, "check_finite", lambda path, arrays: None)
        spoilt.save(path)
    with pytest.raises(NotFiniteError, match=message):
        Solution.load(path)


def test_foreign_files_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "table.npz"
    np.savez(path, keys=np.arange(3))
    with pytest.raises(ValueError, match=r"table.npz is damaged or no mergefall-2048-solution"):
        Solution.load(path)
    with path.open("wb") as file:
        np.save(file, np.arange(3))
    with pytest.raises(ValueError, match=r"table.npz is damaged or no mergefall-2048-solution"):
        Solution.load(path)
    monkeypatch.setattr(solver, "VERSION", 99)
    solved(2, 2, "score").save(path)
    monkeypatch.undo()
    with pytest.raises(ValueError, match=r"table.npz has format version 99; this release reads 2\. .* solved again"):
        Solution.load(path)
    with pytest.raises(ValueError, match=r"there is no file .*missing.npz"):
        Solution.load(tmp_path / "missing.npz")


def put(place, value):
    def change(array):
        array[place] = value
        return array

    return change


@pytest.mark.parametrize(
    ("spec", "changes", "message"),
    [
        ({}, {"bounds": put(20, 1 << 40)}, "bounds holds 1099511627776; expected 0 to"),
        ({}, {"bounds": put(20, -1)}, "bounds holds -1"),
        ({}, {"bounds": put(20, 0)}, "bounds go from 0 to"),
        ({}, {"bounds": put(0, 1)}, "bounds go from 1 to"),
        ({}, {"bounds": lambda bounds: bounds[:-1]}, r"bounds is int64\[31\]; expected int64\[32\]"),
        ({}, {"bounds": lambda bounds: bounds.astype(np.int32)}, "bounds is int32"),
        ({}, {"keys": lambda keys: keys[1:]}, r"values is float64\[\d+\]; expected float64"),
        ({}, {"keys": lambda keys: keys[::-1].copy()}, r"key \d+ is no more than the one before"),
        ({}, {"keys": lambda keys: keys.astype(np.int64)}, "keys is int64"),
        ({}, {"values": lambda values: values[:-5]}, r"values is float64\[\d+\]; expected float64"),
        ({}, {"values": put(3, -1.0)}, "values hold -1.0; expected finite ones"),
        ({"rows": 1 << 40}, {}, "cannot solve 2048 on 1099511627776×2"),
        ({"cols": 3}, {}, r"bounds is int64\[32\]; expected int64\[128\]"),
        ({"objective": 12}, {}, "objective=12"),
        ({"policy": "random"}, {}, "policy is 'random'; expected 'optimal'"),
    ],
)
def test_files_whose_look_ups_would_go_astray_are_refused(spec, changes, message, tmp_path):
    path, solution = tmp_path / "table.npz", solved(2, 2, "score")
    rules = {"rows": 2, "cols": 2, "objective": "score", "policy": "optimal", "counts": dict(solution.counts)}
    held = {name: getattr(solution.table, name).copy() for name in ("keys", "values", "bounds")}
    for name, change in changes.items():
        held[name] = change(held[name])
    arrays.write_arrays(path, solver.FORMAT, solver.VERSION, rules | spec, held)
    with pytest.raises(ValueError, match=r"table\.npz is no solution of 2048: " + message):
        Solution.load(path)


def test_an_interrupted_save_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "table.npz"
    solved(2, 2, "score").save(path)
    before = path.read_bytes()

    def interrupted(file, **arrays):
        file.write(b"half of it")
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez", interrupted)
    with pytest.raises(KeyboardInterrupt):
        solved(2, 3, "score").save(path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["table.npz"]


def test_threads_may_write_one_file(tmp_path):
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: solved(2, 2, "score").save(tmp_path / "table.npz"), range(64)))
    assert Solution.load(tmp_path / "table.npz").counts == solved(2, 2, "score").counts
    assert [entry.name for entry in tmp_path.iterdir()] == ["table.npz"]
