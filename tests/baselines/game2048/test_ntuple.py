"""n-tuple networks against a plain twin, their files, and their player."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mergefall.game2048 import legal_actions, move
from mergefall.game2048.packed import U, pack
from mergefall_baselines import make
from mergefall_baselines.arrays import write_arrays
from mergefall_baselines.game2048.network import FORMAT, TupleNetwork
from mergefall_baselines.game2048.ntuple import SHIPPED, network_kernels, ntuple
from mergefall_baselines.game2048.tuples import network_shape, tuple_kernels

from .reference_network import ReferenceNetwork
from .reference_search import ReferenceSearch

ENV = "mergefall/Game2048-v0"
SHAPES = [
    ("0145 02579 987 f", 4, 4),  # in two rows, scattered, backwards, alone
    ("0136 852", 3, 3),
    ("012 43", 2, 3),
]


def twins(patterns, rows, cols, untouched=0.0):
    """A network with random weights, half of them untouched, and its plain twin."""
    network = TupleNetwork(patterns, rows, cols, untouched)
    rng = np.random.default_rng(0)
    network.weights[:] = rng.normal(0, 10, network.weights.size) * (rng.random(network.weights.size) < 0.5)
    network.weights[network.weights == 0] = untouched
    twin = ReferenceNetwork(patterns, untouched)
    twin.fill(network.weights, rows * cols)
    return network, twin


def random_boards(rows, cols, count=40, top=12):
    return np.random.default_rng(1).integers(0, top, (count, rows, cols)).astype(np.uint8)


def plain(board):
    return tuple(map(tuple, board.tolist()))


@pytest.mark.parametrize("shape", SHAPES)
def test_kernels_equal_the_plain_twin(shape):
    network, twin = twins(*shape)
    _, locate, total, adjust = tuple_kernels(network.shape)
    lookups, rng = network.shape.lookups, np.random.default_rng(2)
    places = np.zeros(lookups + 5, dtype=np.uint32)
    for board in random_boards(*shape[1:]):
        expected = twin.value(plain(board))
        assert network(board) == pytest.approx(expected, abs=1e-3)
        locate(U(pack(board.reshape(-1), *shape[1:])), network.weights, places, U(5))
        assert total(network.weights, places, U(5)) == pytest.approx(expected, abs=1e-3)
        step = np.float32(rng.normal())
        adjust(network.weights, places, U(5), step)
        twin.adjust(plain(board), float(step))
        assert network(board) == pytest.approx(twin.value(plain(board)), abs=1e-3)


@pytest.mark.parametrize(
    ("shape", "bits"), [*((shape, 32) for shape in SHAPES), *((SHAPES[1], b) for b in (4, 12, 16))]
)
def test_a_file_brings_the_network_back_to_half_a_step(shape, bits, tmp_path):
    """Entries that no game touched stay as they are."""
    network, _ = twins(*shape, untouched=2.5)
    network.record = {"games": 3}
    checksum = network.save(tmp_path / "n.npz", bits)
    found, theirs = TupleNetwork.load(tmp_path / "n.npz")
    assert (found.shape, found.untouched, found.record, theirs) == (network.shape, 2.5, {"games": 3}, checksum)
    step = np.abs(network.weights).max() / (2 ** (bits - 1) - 1)
    assert np.abs(found.weights - network.weights).max() <= step / 2 * 1.01
    assert (found.weights == network.weights).all() == (bits == 32)
    for untouched in (0, 2.5):
        alone = network.weights == untouched
        assert np.array_equal(found.weights[alone], network.weights[alone])
    assert [path.name for path in tmp_path.iterdir()] == ["n.npz"]


def test_what_is_no_network_is_refused_by_a_value_error(tmp_path):
    path = tmp_path / "n.npz"
    for spec, version, message in (({"patterns": "01"}, 1, "rows"), ({}, 2, "version 2")):
        write_arrays(path, FORMAT, version, spec, {"touched": np.zeros(3, np.uint8)})
        with pytest.raises(ValueError, match=message):
            TupleNetwork.load(path)


@pytest.mark.parametrize("entry", [np.nan, -np.inf, 1e21])
def test_entries_that_are_no_numbers_are_neither_written_nor_read(entry, tmp_path, monkeypatch):
    network, path = TupleNetwork("01", 2, 2), tmp_path / "n.npz"
    network.weights[7] = entry
    with pytest.raises(ValueError, match=r"entry of the network is .*expected numbers from -1e\+20 to 1e\+20"):
        network.save(path)
    assert not path.exists()
    with monkeypatch.context() as unchecked:
        unchecked.setattr(TupleNetwork, "check", lambda self: None)
        network.save(path)
    with pytest.raises(ValueError, match=r"n\.npz cannot be read: .*an entry of the network is"):
        TupleNetwork.load(path)
    with pytest.raises(ValueError, match="untouched is"):
        TupleNetwork("01", 2, 2, untouched=entry)


@pytest.mark.parametrize("bits", [32, 8])
def test_networks_with_other_or_more_arrays_than_they_need_are_refused(bits):
    network, _ = twins("01 0", 2, 2)
    spec, arrays = network.spec, network.packed(bits)
    TupleNetwork.unpacked(spec, arrays)
    wrong = [
        ("touched", np.append(arrays["touched"], np.uint8(0)), r"touched is uint8\[\d+\]; expected uint8"),
        ("touched", arrays["touched"].astype(np.int64), "touched is int64"),
        ("touched", arrays["touched"] | 1, "touched has bits beyond the network's 42 entries"),
        ("entries", np.concatenate([arrays["entries"]] * 2, axis=1), r"entries is uint8\[., \d+\]; expected uint8"),
        ("entries", arrays["entries"].astype(np.float32), "entries is float32"),
        ("steps", np.ones(5, np.float32), r"(steps|entries) is (float32\[5\]|uint8\[4)"),
        ("more", np.ones(3), "has no 'more'; it has touched, entries, steps"),
    ]
    if bits == 32:
        wrong.append(("entries", np.full_like(arrays["entries"], 255), "an entry of the network is nan"))
    else:
        wrong.append(("steps", np.full(2, 3e38, np.float32), "an entry of the network is -?inf"))
    for name, array, message in wrong:
        with pytest.raises(ValueError, match=message):
            TupleNetwork.unpacked(spec, arrays | {name: array})
    for untouched in (float("nan"), 1e39, "0"):
        with pytest.raises(ValueError, match="untouched is"):
            TupleNetwork.unpacked(spec | {"untouched": untouched}, arrays)


@pytest.mark.parametrize("depth", [1, 2])
def test_the_player_is_the_plain_search_over_the_plain_network(depth):
    network, twin = twins("012 43", 2, 3)
    player = ntuple(network, depth)
    search = ReferenceSearch("expectimax", lambda board, to_move: twin.value(board), depth, rewards=True)
    for board in random_boards(2, 3, 25, top=4):
        if legal_actions(board).any():
            assert player.values(board) == pytest.approx(search.action_values(plain(board)), abs=1e-2)


def test_a_network_is_known_by_its_checksum(tmp_path):
    network, path = twins("0123 456", 4, 4)[0], str(tmp_path / "n.npz")
    network.save(path)
    checksum = make("2048/ntuple", network=path).options["checksum"]
    assert make("2048/ntuple", network=path, checksum=checksum, depth=9, time_limit=0.01).act(np.eye(4, dtype=int)) < 4
    with pytest.raises(ValueError, match="another network"):
        make("2048/ntuple", network=path, checksum="00")


def shown(ranks, limit):
    _, downgraded = network_kernels(network_shape("0"), limit)
    word = int(downgraded(np.array(ranks, np.uint8), 4, 4))
    return [word >> 4 * i & 15 for i in range(16)]


def test_downgrading_skips_the_largest_missing_tile():
    board = [15, 14, 12, 11, 9, 8, 3, 1, 1, 0, 0, 0, 0, 0, 0, 0]  # 13 is missing: 15 and 14 are halved
    assert shown(board, 15) == [14, 13, 12, 11, 9, 8, 3, 1, 1, 0, 0, 0, 0, 0, 0, 0]
    assert shown(board, 14) == [13, 12, 11, 10, 9, 8, 3, 1, 1, 0, 0, 0, 0, 0, 0, 0]  # then 10
    assert shown(board, 16) == board
    assert shown([16, 15, *board[2:]], 16) == [*board[:1], 14, *board[2:]]
    assert shown([15, 15, *board[2:]], 16) == [14, 14, *board[2:]]  # for these two would merge to 16


@settings(max_examples=60)
@given(st.lists(st.integers(0, 17), min_size=16, max_size=16), st.integers(8, 16))
def test_downgrading_changes_no_move(ranks, limit):
    seen = shown(ranks, limit)
    assert all((a == b) == (c == d) for a, c in zip(ranks, seen, strict=True) for b, d in zip(ranks, seen, strict=True))
    assert [rank == 0 for rank in ranks] == [rank == 0 for rank in seen]
    before, after = np.reshape(ranks, (4, 4)), np.reshape(seen, (4, 4))
    assert np.array_equal(legal_actions(before), legal_actions(after))
    for action in np.flatnonzero(legal_actions(before)):
        assert np.array_equal(move(before, action)[0] == 0, move(after, action)[0] == 0)


@pytest.mark.parametrize(
    ("name", "options", "games", "score", "size"),
    [
        ("small", {}, 100, 51_000, 4_000_000),
        pytest.param("strong", {"downgrade": 16384}, 50, 180_000, 20_000_000, marks=pytest.mark.slow),
    ],
)
def test_the_networks_that_come_with_the_package(name, options, games, score, size):
    """The small one is above 51k, what 17 four-tuples are known to score."""
    player = make("2048/ntuple", network=name, **options)
    assert np.mean([player.play(ENV, seed).figures["score"] for seed in range(games)]) > score
    assert (SHIPPED / f"{name}.npz").stat().st_size <= size
    network = player.heuristic.network
    assert network.record["hyperparameters"]["patterns"] == network.patterns


def test_the_player_names_what_it_cannot_take():
    network = TupleNetwork("01", 2, 2)
    for call, message in (
        (lambda: TupleNetwork("0123 0129", 3, 3), "'0129'"),
        (lambda: TupleNetwork("012345678"), "'012345678'"),
        (lambda: TupleNetwork(""), "without patterns"),
        (lambda: TupleNetwork("01234567 89abcdef"), "8589934592"),
        (lambda: network.packed(1), "bits=1"),
        (lambda: ntuple("nowhere.npz"), r"nowhere\.npz"),
        (lambda: ntuple(network, downgrade=1000), "downgrade=1000"),
        (lambda: ntuple(network, time_limit=0.01), r"time_limit=0\.01 with depth=1"),
        (lambda: ntuple(network).play(ENV, 0), "rows=2"),
        (lambda: network([[1, 2, 3], [0, 0, 0]]), "2×2"),
        (lambda: network([[1, 16], [0, 0]]), "16"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
