"""Tuple networks of Tetris: each entry where a plain twin looks for it, the same value in every form and search."""

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mergefall.tetris import place
from mergefall.tetris.field import columns_of
from mergefall.tetris.pieces import NAMES
from mergefall_baselines.tetris.expectimax import Expectimax
from mergefall_baselines.tetris.greedy import Greedy
from mergefall_baselines.tetris.network import BIAS, FIRST, locating_kernel, network_class, network_shape

from tests.baselines.tetris.reference_search import ReferenceSearch
from tests.envs.tetris.heuristics.test_interface import leaves, played_board

SHAPES = [
    network_shape("2x2 3x1", 6, 7),
    network_shape("1x6 2x3", 6, 7, ["holes", "eroded_cells", "landing_height"]),
    network_shape("2x3", 7, 6, mirrored=False),
    network_shape("", 5, 6, ["lines", "wells"]),
]


def network(shape, seed=0):
    return network_class(shape)(np.random.default_rng(seed).normal(size=shape.size))


def plain_places(shape, board):
    """The weights of blocks that count on a board, block by block, place by place, cell by cell."""
    found, begin = [], FIRST
    for high, wide in shape.blocks:
        across, up = shape.cols - wide + 1, shape.rows - high + 1
        for c in range(across):
            for y in range(up):
                cells = board[::-1][y : y + high, c : c + wide]
                if not cells.any():
                    continue
                numbers = [
                    sum(int(seen[i, j]) << (j * high + i) for i in range(high) for j in range(wide))
                    for seen in (cells, cells[:, ::-1])
                ]
                column, number = c, numbers[0]
                if shape.mirrored:
                    column = min(c, across - 1 - c)
                    number = numbers[int(c != column)] if 2 * c != across - 1 else min(numbers)
                found.append(begin + (column * up + y) * 2 ** (high * wide) + number)
        begin += ((across + 1) // 2 if shape.mirrored else across) * up * 2 ** (high * wide)
    assert begin == shape.size
    return found


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: f"{shape.text}{shape.features}")
@settings(max_examples=40)
@given(seed=st.integers(0, 10**9), piece=st.sampled_from(NAMES[:7]))
def test_a_value_is_the_sum_that_a_plain_twin_finds(shape, seed, piece):
    known = network(shape)
    board = played_board(seed, shape.rows, shape.cols)
    placed = place(board, piece, 0, 1)
    expected = sum(known.weights[at] for at in plain_places(shape, placed.board)) + known.weights[BIAS]
    of_features = dict.fromkeys(known.term_names, 0.0) | known.terms(placed)
    assert of_features["blocks"] if shape.blocks and placed.board.any() else True
    expected += sum(getattr(known, name) * of_features[name] for name in shape.features)
    assert known(placed) == (-np.inf if placed.over else pytest.approx(expected, abs=1e-9))


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: f"{shape.text}{shape.features}")
def test_what_is_located_is_what_is_summed_and_leaves_are_exact(shape):
    known, locate = network(shape), locating_kernel(shape)
    places, factors = np.zeros(shape.lookups, np.uint32), np.zeros(BIAS)
    cleared = 0
    for seed in range(12):
        board, index = played_board(seed, shape.rows, shape.cols), seed % 7
        for (rotation, column, slide), at_rest, value in leaves(known, board, index, seed % 2 == 0, True):
            overflow = "clear_first" if seed % 2 == 0 else "strict"
            placed = place(board, NAMES[index], rotation, column, slide, overflow)
            assert value == known(placed)
            if placed.over:
                continue
            cleared += placed.lines
            count = locate(columns_of(placed.board), *at_rest, placed.lines, placed.removed_cells, places, factors)
            assert sorted(places[count - len(plain_places(shape, placed.board)) : count]) == sorted(
                plain_places(shape, placed.board)
            )
            total = sum(known.weights[at] * (factors[at] if at < BIAS else 1) for at in places[:count].tolist())
            assert total == value
    assert cleared >= 2


def test_mirror_images_share_tables():
    mirrored, other = network(SHAPES[0]), network(network_shape("2x2 3x1", 6, 7, mirrored=False))
    boards = np.array([played_board(seed, 7, 6) for seed in range(20)])
    np.testing.assert_array_equal(mirrored.board(boards), mirrored.board(boards[:, :, ::-1]))
    assert (other.board(boards) != other.board(boards[:, :, ::-1])).any()


@pytest.mark.parametrize(
    "shape",
    [pytest.param(SHAPES[0], marks=pytest.mark.slow), SHAPES[1]],
    ids=["blocks", "features too"],
)
def test_a_search_by_a_network_is_the_plain_search(shape):
    known = network(shape, 3)
    player = Expectimax(known, 2, lost=-50.0, cols=shape.cols, rows=shape.rows)
    search = ReferenceSearch(known, 2, lost=-50.0)
    greedy = Greedy(known, cols=shape.cols, rows=shape.rows)
    for seed in (2, 5):
        board = played_board(seed, shape.rows, shape.cols)
        shown = {"board": board, "piece": 2, "queue": [6]}
        expected = search.action_values(board, ["T", "L"], dict.fromkeys(NAMES[:7], 1))
        found = player.values(shown)
        assert {action: found[action] for action in expected} == pytest.approx(expected)
        one_piece = ReferenceSearch(known, 1).action_values(board, ["T"], {})
        found = greedy.values(shown)
        assert {action: found[action] for action in one_piece} == pytest.approx(one_piece)


def test_weights_are_rounded_so_that_sums_are_exact():
    shape = network_shape("2x2", 4, 4)
    known = network_class(shape)(np.full(shape.size, 1 / 3, dtype=np.float32))
    assert known.weights[0] == round(2**20 / 3) / 2**20
    for weights in (np.zeros(shape.size + 1), np.full(shape.size, np.nan), np.full(shape.size, -1e303)):
        with pytest.raises(ValueError, match=f"expected {shape.size} finite numbers"):
            network_class(shape)(weights)
    with pytest.raises(ValueError, match="played from a model file"):
        known.to_json()


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        ("3", "block '3' does not fit"),
        ("0x3", "block '0x3'"),
        ("3x11", "block '3x11' does not fit 10 columns and 20 rows"),
        ("21x1", "block '21x1'"),
        ("3x7", "at most 20 cells"),
        ("3x3 3x3", "each block once"),
        ("", "without blocks and features"),
        (33, "blocks is 33; expected text"),
        ("4x5 2x10 10x2 5x4", r"make \d+ weights on 10×20; expected at most"),
    ],
)
def test_bad_blocks(blocks, message):
    with pytest.raises(ValueError, match=message):
        network_shape(blocks, 10, 20)


def test_a_network_of_blocks_is_for_one_size():
    network = network_class(network_shape("2x2", 10, 20))(np.zeros(network_shape("2x2", 10, 20).size))
    shown = {"board": np.zeros((10, 5), np.uint8), "piece": 1, "queue": [0]}
    calls = (
        lambda: network.board(shown["board"]),
        lambda: network.board_terms(shown["board"]),
        lambda: Greedy(network).values(shown),
        lambda: Expectimax(network).values(shown),
        lambda: gym.make("mergefall/Tetris-v0", rows=10, cols=5).unwrapped.afterstate_terms(network),
    )
    for call in calls:
        with pytest.raises(
            ValueError, match="board of 10 rows and 5 columns; the network is for 20 rows and 10 columns"
        ):
            call()
