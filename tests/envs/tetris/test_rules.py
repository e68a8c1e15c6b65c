"""The rules of Tetris: plain Python, the compiled rules and golden data from an independent program agree."""

from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mergefall.tetris import from_text, game, identify, place, reference, rotations, to_text
from mergefall.tetris.field import boards_of, columns_of
from mergefall.tetris.pieces import NAMES, PIECE_SETS, PieceSet
from mergefall.tetris.placements import action_of, list_placements
from mergefall.tetris.rules import Rules
from mergefall.tetris.seen import LINES
from mergefall.tetris.vector_env import TetrisVectorEnv

from .tools import cells, every_action, golden, states_of

ODD = np.random.default_rng(0).integers(0, 2**63, 16, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
SIZES = [  # cols, rows, pieces, games, steps
    (10, 20, "tetromino", 20, 44),
    (6, 8, "tetromino", 240, 18),
    (4, 4, "tetromino", 600, 12),
    (9, 7, "sz", 160, 12),
    (5, 40, "sz", 10, 30),
    (16, 9, "five", 10, 16),
    (5, 12, "five", 240, 16),
]


def as_tuples(board):
    return tuple(map(tuple, np.asarray(board).tolist()))


@pytest.mark.parametrize(("cols", "rows", "pieces", "games", "steps"), SIZES)
def test_compiled_placements_are_the_references(monkeypatch, cols, rows, pieces, games, steps):
    """All placements, slides included, from states of random play under both overflow rules: 1.0 · 10⁵ for each."""
    monkeypatch.setattr(reference, "fallen", cache(reference.fallen))
    rng = np.random.default_rng(3)
    storage, names = PIECE_SETS[pieces].storage, PIECE_SETS[pieces].names
    rules = [Rules(cols, rows, pieces, placements="slide", overflow=o) for o in ("strict", "clear_first")]
    listed = np.empty(12 * cols, np.int64)
    envs = TetrisVectorEnv(games, cols, rows, pieces, placements="slide", autoreset_mode="SameStep")
    observations, infos = envs.reset(seed=1)
    for step in range(steps):
        masks, boards, ids = infos["action_mask"], observations["board"], observations["piece"]
        which = np.arange(step % 2, games, 2)  # half the games: boards a piece apart have most placements in common
        stepped = [every_action(rule, states_of(rule, boards[which], ids[which])) for rule in rules]
        for k, i in enumerate(which):
            board = reference.with_storage(as_tuples(boards[i]), storage)
            legal = reference.legal_placements(board, names[ids[i]], True)
            actions = [(slide * 4 + rotation) * cols + column for slide, rotation, column in legal]
            assert np.flatnonzero(masks[i]).tolist() == actions
            count = list_placements(columns_of(boards[i]), NAMES.index(names[ids[i]]), True, None, listed)
            assert list(map(action_of, listed[:count].tolist())) == actions
            for clear_first, (after, seen) in enumerate(stepped):
                one = slice(k * len(masks[i]), (k + 1) * len(masks[i]))
                assert np.flatnonzero(seen.legal[one]).tolist() == actions
                placed = [reference.place(board, cells, storage, bool(clear_first)) for cells in legal.values()]
                mine = boards_of(after[k, actions][:, game.COLUMNS :], rows + storage)
                np.testing.assert_array_equal(mine, [plain for plain, *_ in placed])
                np.testing.assert_array_equal(seen.boards[one][actions].reshape(-1, rows, cols), mine[:, storage:])
                assert seen.numbers[one][actions, LINES].tolist() == [lines for _, lines, _, _ in placed]
                assert seen.terminated[one][actions].tolist() == [over for *_, over in placed]
        observations, _, _, _, infos = envs.step(np.array([rng.choice(np.flatnonzero(mask)) for mask in masks]))


def test_the_census():
    for section, pieces in (("tetrominoes_10x20", "tetromino"), ("pentominoes_15x25", "five")):
        expected = golden()["census"][section]
        cols, rows = map(int, section.split("_")[1].split("x"))
        settings = Rules(cols, rows, pieces)
        names = settings.piece_set.names
        states = states_of(settings, np.zeros((len(names), rows, cols), np.uint8), range(len(names)))
        legal = every_action(settings, states)[1].legal.reshape(len(names), 4, cols)
        for piece, name in enumerate(names):
            counts = expected["pieces"][name]
            assert legal[piece].sum() == counts["total"]
            assert legal[piece].sum(axis=1).tolist() == counts["per_rotation"] + [0] * (4 - len(rotations(name)))
    assert golden()["census"]["tetrominoes_10x20"]["pieces"]["T"]["total"] == 34


def test_golden_shapes():
    shapes = golden()["shapes"]
    assert set(shapes["tetrominoes"]) | set(shapes["pentominoes"]) == set(NAMES)
    for name, turned in (shapes["tetrominoes"] | shapes["pentominoes"]).items():
        assert [sorted(map(tuple, shape["cells"])) for shape in turned] == [list(cells) for cells in rotations(name)]
        for rotation, shape in enumerate(turned):
            assert identify([(r + 7, c + 3) for r, c in shape["cells"][::-1]]) == (name, rotation)


def test_golden_placements():
    for entry in golden()["afterstates"]:
        board = cells(golden()["boards"][entry["board"]]["rows"])
        where = entry["piece"], entry["rotation"], entry["column"]
        for rule in ("strict", "clear_first"):
            placed = place(board, *where, overflow=rule)
            assert [list(cell) for cell in placed.cells] == sorted(entry["cells"])
            assert (placed.over, placed.lines) == (entry[rule]["game_over"], entry[rule]["lines"])
            before, after = cells(entry["before_clear"])[-20:], cells(entry["after"])[-20:]
            np.testing.assert_array_equal(placed.locked, before)
            cleared = rule == "clear_first" or not placed.over
            np.testing.assert_array_equal(placed.board, after if cleared else before)
            if cleared:
                assert placed.removed_cells == entry["removed_piece_cells"]
            lowest = max(row for row, _ in entry["cells"])
            highest = min(row for row, _ in entry["cells"])
            assert placed.landing_height == 19 - lowest + (lowest - highest) / 2


def test_golden_slides():
    """Every resting place by a drop or a slide, once, and no other."""
    for entry in golden()["drop_slide"]:
        board = cells(golden()["boards"][entry["board"]]["rows"])
        found = {}
        for slide, rotation, column in product(range(3), range(4), range(10)):
            try:
                placed = place(board, entry["piece"], rotation, column, slide)
            except ValueError:
                continue
            assert placed.cells not in found
            found[placed.cells] = (slide > 0, placed.lines, to_text(placed.board))
        finals = {
            tuple(sorted(map(tuple, final["cells"]))): (final["needs_slide"], final["lines"], "/".join(final["after"]))
            for final in entry["finals"]
        }
        assert found == finals
        assert len(found) == entry["count"]
        assert sum(not slid for slid, *_ in found.values()) == entry["drop_only"]


def test_golden_perft():
    """Sequences of placements counted to three plies by the batched step: alive, ended, distinct boards, lines."""
    for entry, rule in product(golden()["perft"], ("strict", "clear_first")):
        rules, expected = Rules(overflow=rule), entry[rule]
        alive = states_of(rules, [cells(golden()["boards"][entry["board"]]["rows"])], [0])
        sequences = np.ones(1, np.int64)  # that lead to each state
        for ply, name in enumerate(entry["pieces"]):
            pieces = np.arange(7) if name == "*" else np.array([rules.piece_set.names.index(name)])
            states = np.repeat(alive, len(pieces), axis=0)
            states[:, game.QUEUE] = np.tile(pieces, len(alive))
            after, seen = every_action(rules, states)
            counts = np.repeat(sequences, len(pieces) * rules.n_actions)
            assert counts[seen.legal & seen.terminated].sum() == expected["ended"][ply]
            kept = seen.legal & ~seen.terminated
            reached = after.reshape(-1, after.shape[-1])[kept]
            found = reached[:, [game.LINES, *range(game.COLUMNS, reached.shape[1])]]
            numbers = (found * ODD[: found.shape[1]]).sum(axis=1)  # that differ where two of them do
            _, first, inverse = np.unique(numbers, return_index=True, return_inverse=True)
            alive = reached[first]
            np.testing.assert_array_equal(found[first][inverse], found)
            sequences = np.bincount(inverse, counts[kept], len(alive)).astype(np.int64)
            assert sequences.sum() == expected["alive"][ply]
            boards = {board.tobytes() for board in alive[:, game.COLUMNS :]}
            assert len(boards) == expected["distinct_boards"][ply]
            lines = np.bincount(alive[:, game.LINES].astype(np.int64), sequences)
            assert {str(n): int(lines[n]) for n in np.flatnonzero(lines)} == expected["lines_histogram"][ply]
            if not len(alive):
                break


sizes = st.tuples(st.integers(4, 16), st.integers(4, 12))
fields = sizes.flatmap(
    lambda size: st.lists(st.integers(0, 2 ** size[0] - 2), min_size=size[1], max_size=size[1]).map(
        lambda rows: np.array([[row >> c & 1 for c in range(size[0])] for row in rows], dtype=np.uint8)
    )
)


@given(fields)
def test_boards_in_all_their_forms(board):
    rows, cols = board.shape
    np.testing.assert_array_equal(from_text(to_text(board)), board)
    columns = columns_of(board)
    np.testing.assert_array_equal(boards_of(columns, rows), board)
    assert columns.tolist() == [sum(int(board[rows - 1 - y, c]) << y for y in range(rows)) for c in range(cols)]


def test_an_eighth_piece_is_drawn(monkeypatch):
    monkeypatch.setitem(PIECE_SETS, "eight", PieceSet(tuple("ABCDEFGH"), tuple(range(8)), 0, 4))
    spec = spec_from_file_location("with_eight", game.__file__)
    more = module_from_spec(spec)
    spec.loader.exec_module(more)
    assert more.IDS[-1, : more.COUNTS[-1]].tolist() == list(range(8)) == list(range(more.KINDS))


def test_every_randomizer_draws_by_its_own_chances():
    bags = {"uniform": 0, "bag7": 0b11, "hidden": 0x3010}
    drawn = {name: [id for _, id in Rules(randomizer=name)._drawn(bags[name])] for name in Rules.choices("randomizer")}
    assert drawn == {"uniform": list(range(7)), "bag7": [0, 1], "hidden": [1, 3]}
    unknown = Rules()
    object.__setattr__(unknown, "randomizer", "other")
    with pytest.raises(KeyError, match="other"):  # and is not taken for another
        unknown._drawn(0)
