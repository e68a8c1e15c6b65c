"""Reachable placements and hold: golden counts, and the compiled rules against those in plain Python."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mergefall.tetris import place, reference
from mergefall.tetris.env import TetrisEnv
from mergefall.tetris.field import columns_of
from mergefall.tetris.keys import KEYS
from mergefall.tetris.pieces import NAMES
from mergefall.tetris.placements import action_of, at_rest, list_placements, rest
from mergefall.tetris.reach import FREE, REACHED, RESTS, new_work, search
from mergefall.tetris.srs import SHAPES

from .test_rules import as_tuples, fields
from .tools import cells, golden

PIECES = NAMES[:7]


def listed(board, piece, slides, reach):
    """{action: placement} of the legal placements of a piece."""
    columns = columns_of(board)
    placements = np.empty(4 * columns.size * (len(board) + 4), np.int64)
    count = list_placements(columns, piece, slides, reach, placements)
    return {action_of(placement): at_rest(placement) for placement in placements[:count].tolist()}


def bits(words):
    return sum(word.bit_count() for word in words.ravel().tolist())


def test_golden_counts():
    """Resting places of each rotation, and distinct ones, on 23 boards; seven are asserted by another program."""
    srs, work = golden()["srs"], new_work(10)
    for entry in srs["counts_asserted_elsewhere"] + srs["counts"]:
        board = cells(entry["rows"] if "rows" in entry else golden()["boards"][entry["board"]]["rows"])
        for piece, name in enumerate(PIECES):
            search(columns_of(board), piece, len(board), work)
            assert bits(work[RESTS]) == entry["minimized"][name]
            stands = work[REACHED] & ~(work[FREE][SHAPES[piece]] << np.uint64(1))
            every = 4 * bits(work[RESTS]) if name == "O" else bits(stands)  # the search need not turn an O
            assert every == entry["all"][name]


@given(fields, st.integers(0, 6), st.booleans())
def test_search_finds_what_plain_search_finds(board, piece, full):
    """Also on boards that are full up to the top, where a piece meets cells as soon as it turns."""
    if full:
        board = np.where(board.any(axis=1, keepdims=True) | (np.arange(len(board)) < 2)[:, None], board, board[::-1])
    rows, cols = board.shape
    plain = reference.reachable(reference.with_storage(as_tuples(board), 4), PIECES[piece], 4)
    mine = listed(board, piece, False, rows)
    assert list(mine) == list(plain)
    columns = columns_of(board)
    assert [a for a in range(4 * cols * (rows + 4)) if rest(columns, piece, a, False, rows)[2] >= 0] == list(plain)
    for action, (rotation, column, y) in mine.items():
        assert action == (rotation * cols + column) * (rows + 4) + y
        placed = place(board, PIECES[piece], rotation, column, y=y)
        assert sorted((r + 4, c) for r, c in placed.cells) == sorted(plain[action])


def some_boards(count, rows, cols):
    """Random boards of all heights and densities, without full rows."""
    rng = np.random.default_rng(0)
    for i in range(count):
        board = rng.random((rows, cols)) < rng.choice([0.3, 0.5, 0.7, 0.9])
        board[: rng.integers(rows) if i % 4 else 0] = False
        board[np.arange(rows), rng.integers(cols, size=rows)] = False
        yield board.astype(np.uint8)


def legal_cells(rules, board, piece):
    """{action: cells} of a piece by the reference, the actions of a held piece not counted."""
    if rules.placements == "reachable":
        return reference.reachable(board, piece, 4)
    legal = reference.legal_placements(board, piece, rules.slides)
    return {(slide * 4 + rotation) * rules.cols + column: at for (slide, rotation, column), at in legal.items()}


@pytest.mark.parametrize("overflow", ["strict", "clear_first"])
@pytest.mark.parametrize(
    ("placements", "hold"), [("drop", True), ("slide", True), ("reachable", False), ("reachable", True)]
)
def test_games_are_the_references(placements, hold, overflow):
    """Masks, boards, queue and hold of random play; the first to begin with a held piece."""
    env = TetrisEnv(6, 8, preview=3, placements=placements, hold=hold, overflow=overflow, randomizer="bag7")
    rules, rng, n = env.rules, np.random.default_rng(2), env.rules.n_actions // (1 + hold)
    held_first = {"hold": "T"} if hold else None
    for episode in range(12):
        seen, info = env.reset(seed=episode, options=held_first if episode == 0 else None)
        over = False
        while not over:
            board = reference.with_storage(as_tuples(seen["board"]), 4)
            queue = tuple(PIECES[piece] for piece in (seen["piece"], *seen["queue"]))
            held = PIECES[seen["hold"]] if hold and seen["hold"] < 7 else None
            legal, after = legal_cells(rules, board, queue[0]), {0: (queue, held)}
            if hold:
                after[1] = reference.exchanged(queue, held)
                legal |= {n + action: at for action, at in legal_cells(rules, board, after[1][0][0]).items()}
            assert np.flatnonzero(info["action_mask"]).tolist() == list(legal)
            assert np.flatnonzero(env.afterstates()[2]).tolist() == list(legal)
            action = int(rng.choice(list(legal)))
            expected = reference.place(board, legal[action], 4, overflow == "clear_first")
            seen, lines, over, _, info = env.step(action)
            assert (as_tuples(seen["board"]), lines, over) == (expected[0][4:], expected[1], expected[3])
            queue, held = after[action // n]
            shown = tuple(PIECES[piece] for piece in (seen["piece"], *seen["queue"]))
            assert shown[: len(queue) - 1] == queue[1:]
            if hold:
                assert seen["hold"] == (7 if held is None else PIECES.index(held))


def pressed(board, piece, keys):
    """The cells in which a piece comes to rest by keys, in plain Python; the last one drops it."""
    start = reference.box(piece, 0)
    columns = [c for _, c in start]
    row = 3 - max(r for r, _ in start)
    place = 0, row, (len(board[0]) - (max(columns) - min(columns) + 1)) // 2 - min(columns)
    assert keys.pop() == KEYS.index("hard drop")
    for key in keys:
        rotation, row, column = place
        turn = {"clockwise": 1, "counterclockwise": 3}.get(KEYS[key], 0)
        move = {"left": (0, -1), "right": (0, 1), "soft drop": (1, 0)}.get(KEYS[key])
        tests = [move] if move else [(-up, right) for right, up in reference.kicks(piece, rotation, turn)]
        places = [((rotation + turn) % 4, row + down, column + right) for down, right in tests]
        place = next(place for place in places if reference.free(board, reference.at(piece, *place)))
    return reference.fallen(board, reference.at(piece, *place))


@pytest.mark.parametrize(("rows", "hold"), [(9, False), (9, True), (40, True)])
def test_keys_lead_to_the_cells_of_each_action(rows, hold):
    """Also to the floor of the highest field."""
    env = TetrisEnv(7, rows, preview=1, placements="reachable", hold=hold)
    n, soft = env.rules.n_actions // (1 + hold), 0
    for i, low in enumerate(some_boards(12 if rows == 9 else 1, 9, 7)):
        board = np.concatenate([np.zeros((rows - 9, 7), np.uint8), low])
        seen, info = env.reset(seed=i, options={"board": board, **({"hold": "S"} if hold and i % 2 else {})})
        stored, ends = reference.with_storage(as_tuples(board), 4), {}
        for action in np.flatnonzero(info["action_mask"]).tolist():
            keys = env.keys_to(action)
            held = keys[0] == KEYS.index("hold")
            other = seen["hold"] if held and seen["hold"] < 7 else seen["queue"][0]
            piece = PIECES[other if held else seen["piece"]]
            assert held == (action >= n)
            if piece not in ends:
                ends[piece] = reference.reachable(stored, piece, 4)
            assert sorted(pressed(stored, piece, keys[held:])) == sorted(ends[piece][action % n])
            soft += KEYS.index("soft drop") in keys
    assert soft > 10 or rows == 40
    env.reset(options={"board": np.eye(rows, 7, dtype=int)[::-1], "piece": "T"})
    with pytest.raises(ValueError, match="action 0 is illegal here"):
        env.keys_to(0)
