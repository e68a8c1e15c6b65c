"""Networks of TDL2048+: a file that it wrote, with the values that it computes, and damaged ones."""

import json
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mergefall_baselines import make
from mergefall_baselines.game2048.network import TupleNetwork
from mergefall_baselines.game2048.tdl2048 import read_tdl2048
from mergefall_training.cli import main

GOLDEN = Path(__file__).parents[2] / "golden"
FILE = GOLDEN / "tdl2048.w"


def test_its_values_are_those_of_tdl2048():
    network, _ = read_tdl2048(FILE)
    words, theirs = zip(*json.loads((GOLDEN / "tdl2048.json").read_text())["values"], strict=True)
    boards = np.array([[int(rank, 16) for rank in word] for word in words]).reshape(-1, 4, 4)
    np.testing.assert_allclose(network(boards), theirs, rtol=2e-6, atol=2e-3)  # sums of 16 entries below 2,000


def test_a_player_and_a_file_of_ours_are_made_of_it(tmp_path):
    player = make("2048/ntuple", network=str(FILE))
    assert player.options["checksum"] == read_tdl2048(FILE)[1][:16]
    player.heuristic.network.save(tmp_path / "ours.npz")
    ours = make("2048/ntuple", network=str(tmp_path / "ours.npz"))
    boards = np.random.default_rng(0).integers(0, 12, (50, 4, 4))
    np.testing.assert_array_equal(player.values(boards), ours.values(boards))
    assert np.ptp(player.values(boards)[np.isfinite(player.values(boards))]) > 1000


def test_it_is_packed(tmp_path):
    main(["export", str(FILE), str(tmp_path / "small.npz"), "--bits", "16"])
    small, (network, _) = TupleNetwork.load(tmp_path / "small.npz")[0], read_tdl2048(FILE)
    np.testing.assert_allclose(small.weights, network.weights, atol=np.abs(network.weights).max() / 2**15)


def table(sign, digits, entries, kind="<f4", text=0, form=4, fields=b""):
    entries = np.asarray(entries, kind)
    head = struct.pack("<BIHHHQ", form, sign, digits, text, entries.itemsize, entries.size)
    return head + entries.tobytes() + fields + struct.pack("<H", 0)


def file_of(*tables, first=b"\0"):
    return first + struct.pack("<I", len(tables)) + b"".join(tables)


@pytest.mark.parametrize("first", [b"\0", b"w\0"])
@pytest.mark.parametrize("digits", [0, 2])
def test_the_first_cell_is_the_lowest_digit(tmp_path, first, digits):
    """Of the eight images of this board, one has both tiles on cells 0 and 1, and one the first tile alone."""
    entries = np.arange(256) / 4
    further = struct.pack("<HQ", 8, 3) + bytes(24)
    path = tmp_path / "some.w"
    path.write_bytes(file_of(table(0x01, digits, entries, "<f8", fields=further), first=first))
    board = np.zeros((4, 4), int)
    board[0, 0], board[0, 1] = 3, 5
    assert read_tdl2048(path)[0](board) == (3 + 16 * 5) / 4 + 3 / 4


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "ends after 0 bytes; expected 1 more"),
        (b"c\0", "begins with the byte 99"),
        (file_of(), "without patterns"),
        (file_of(table(1, 2, np.zeros(256))) + b"c", "1 bytes follow its 1 tables"),
        (file_of(table(1, 2, np.zeros(256)), table(1, 2, np.zeros(256))), "01, 01; expected different names"),
        (file_of(table(1, 2, np.zeros(256), text=8)), "a name in letters"),
        (file_of(table(1, 2, np.zeros(256), "<f2")), "256 entries of 2 bytes"),
        (file_of(table(0xFE000001, 8, np.zeros(1 << 12))), "table fe000001 has 4096 entries"),
        (file_of(table(0x11, 2, np.zeros(256))), "'11' does not fit 4×4"),
        (file_of(table(1, 2, np.full(256, np.nan))), "nan"),
    ],
)
def test_other_files_are_refused(tmp_path, content, message):
    path = tmp_path / "some.w"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=f"some.w cannot be read as a network of TDL2048.*{message}"):
        read_tdl2048(path)


@given(st.integers(0, 60), st.binary(min_size=1, max_size=20))
def test_damage_is_an_error_or_another_network(tmp_path_factory, at, damage):
    content = bytearray(file_of(table(1, 2, np.arange(256)), table(2, 1, np.arange(16))))
    content[at : at + len(damage)] = damage
    path = tmp_path_factory.getbasetemp() / "damaged.w"
    path.write_bytes(bytes(content))
    try:
        network, _ = read_tdl2048(path)
    except ValueError:
        return
    assert np.isfinite(network.weights).all()
