"""The compiled Tetris searches against the same searches in plain Python, golden data, and the promises they make."""

import math

import numpy as np
import pytest
from mergefall.tetris import place
from mergefall.tetris.heuristics import HEURISTICS
from mergefall.tetris.pieces import PIECE_SETS
from mergefall_baselines import make

from .reference_search import ReferenceSearch

TETROMINOES, FIVE = PIECE_SETS["tetromino"].names, PIECE_SETS["five"].names


def positions(rows, cols, count, seed, names=TETROMINOES, known=2):
    """(board, queue of piece names) that random play comes to, some of them near the top."""
    rng, found = np.random.default_rng(seed), []
    board = np.zeros((rows, cols), dtype=np.uint8)
    while len(found) < count:
        for _ in range(int(rng.integers(1, 4))):
            piece = names[rng.integers(len(names))]
            try:
                placed = place(board, piece, int(rng.integers(4)), int(rng.integers(cols)))
            except ValueError:
                continue
            board = np.zeros_like(board) if placed.over else placed.board
        found.append((board, [names[i] for i in rng.integers(len(names), size=known)]))
    return found


def observation(board, queue, names=TETROMINOES):
    ids = [names.index(piece) for piece in queue]
    return {"board": board, "piece": np.int64(ids[0])} | ({"queue": np.array(ids[1:])} if ids[1:] else {})


def seen(queue, names=TETROMINOES):
    """How often each piece came into view in a game that begins with this queue."""
    return {piece: queue.count(piece) for piece in names}


def assert_same(player, search, board, queue, chances, names=TETROMINOES):
    ours = player.values(observation(board, queue, names))
    theirs = np.full(ours.shape, -np.inf)
    for action, value in search.action_values(board, queue, chances).items():
        theirs[action] = value
    np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-8)
    finite = np.flatnonzero(theirs > -np.inf)
    if finite.size:  # ties to within rounding: one of the best, by the player's own values
        chosen = int(player.act(observation(board, queue, names)))
        assert ours[chosen] == ours.max()
        assert chosen == np.flatnonzero(ours == ours.max())[0]


@pytest.mark.parametrize("overflow", ["strict", "clear_first"])
@pytest.mark.parametrize("placements", ["drop", "slide"])
@pytest.mark.parametrize(
    "heuristic", ["two-tetrad", *(pytest.param(one, marks=pytest.mark.slow) for one in ("bcts", "open-enclosed"))]
)
def test_two_tetrad_is_the_plain_search(heuristic, placements, overflow):
    for depth in (1, 2):
        rules = {"placements": placements, "overflow": overflow}
        player = make("tetris/two-tetrad", heuristic=heuristic, depth=depth, **rules)
        search = ReferenceSearch(HEURISTICS[heuristic], depth, slides=placements == "slide", overflow=overflow)
        for board, queue in positions(6, 5, 2, seed=depth):
            assert_same(player, search, board, queue, None)


def bag_without(queue):
    """What is left of the bags that a game's first pieces came from."""
    counts = seen(queue)
    return frozenset(piece for piece in TETROMINOES if counts[piece] == min(counts.values()))


@pytest.mark.parametrize("distribution", ["uniform", "bag", "counted"])
@pytest.mark.parametrize(("depth", "known"), [(2, 1), (3, 1), (3, 2), (3, 3), (2, 3)])
def test_expectimax_is_the_plain_search(distribution, depth, known):
    player = make("tetris/expectimax", heuristic="bcts", depth=depth, distribution=distribution)
    search = ReferenceSearch(HEURISTICS["bcts"], depth)
    for board, queue in positions(6, 4, 2, seed=10 * depth + known, known=known):
        chances = {"uniform": dict.fromkeys(TETROMINOES, 1), "bag": bag_without(queue), "counted": seen(queue)}
        assert_same(player, search, board, queue, chances[distribution])


UNIFORM = dict.fromkeys(TETROMINOES, 1)


@pytest.mark.parametrize(
    ("heuristic", "options"),
    [
        ("bcts", {"beam": 3}),
        ("two-tetrad", {"beam": 5, "lost": -1e4}),
        ("bcts", {"lost": -500.0}),
    ],
)
def test_options_of_expectimax(heuristic, options):
    options = {"depth": 3} | options
    player = make("tetris/expectimax", heuristic=heuristic, **options)
    search = ReferenceSearch(HEURISTICS[heuristic], **options)
    for board, queue in positions(5, 4, 2, seed=5, known=1):
        assert_same(player, search, board, queue, UNIFORM)


@pytest.mark.parametrize(("depth", "known", "pieces"), [(1, 2, "five"), (2, 2, "five"), (1, 1, "tetromino")])
def test_quintris_is_the_plain_search(depth, known, pieces):
    names = PIECE_SETS[pieces].names
    player = make("quintris/expectimax", depth=depth, pieces=pieces)
    search = ReferenceSearch(HEURISTICS["open-enclosed"], depth + 1, names, clears=False)
    for board, queue in positions(8, 6, 3, seed=depth, names=names, known=known):
        assert_same(player, search, board, queue, seen(queue, names), names)


@pytest.mark.parametrize("options", [{}, {"lost": -50.0}, {"lost": 100.0}])
def test_what_quintris_leaves_out_changes_nothing(options):
    """Against the same search without its bound."""
    player = make("quintris/expectimax", depth=2, **options)
    plain = make("quintris/expectimax", depth=2, **options)
    plain.bound = None
    for board, queue in positions(12, 8, 25, seed=8, names=FIVE):
        shown = observation(board, queue, FIVE)
        np.testing.assert_allclose(player.values(shown), plain.values(shown), rtol=1e-12, atol=1e-9)
        assert int(player.act(shown)) == int(plain.act(shown))


def test_ties_go_to_the_lowest_action():
    shown = observation(np.zeros((8, 6), dtype=np.uint8), ["O"])
    player = make("tetris/expectimax", heuristic="bcts", depth=1)
    values = player.values(shown)
    assert np.flatnonzero(values == values.max()).tolist() == [0, 4]  # an O at either wall
    for name in ("tetris/greedy", "tetris/bcts", "tetris/dellacherie"):
        assert int(make(name).act(shown)) == int(player.act(shown)) == 0


def test_where_all_is_lost_the_first_legal_action():
    board = np.zeros((4, 4), dtype=np.uint8)
    board[0, :3] = board[1:, 0] = 1
    for name in ("tetris/bcts", "tetris/two-tetrad", "tetris/expectimax"):
        player = make(name, **({"heuristic": "bcts"} if name == "tetris/two-tetrad" else {}))
        assert (player.values(observation(board, ["O", "O"])) == -math.inf).all()
        assert int(player.act(observation(board, ["O", "O"]))) == 0
    full = np.ones((5, 4), dtype=np.uint8)
    assert int(make("tetris/greedy", pieces="five").act({"board": full, "piece": 1})) == 4  # I5 is too wide lying
