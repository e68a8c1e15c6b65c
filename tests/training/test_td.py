"""TD learning against a plain twin, against the exact optimum, and its runs: interrupted, resumed, damaged."""

import json
import os
from dataclasses import asdict, replace

import numpy as np
import pytest
from mergefall.game2048 import reference
from mergefall.game2048.packed import pack
from mergefall.words import next_bits
from mergefall_baselines.game2048.network import Network
from mergefall_baselines.game2048.ntuple import NTuple
from mergefall_training.learning import td, td_kernels
from mergefall_training.learning.td import Learner, TDSettings, read_curve, train_td

SLOW = bool(os.environ.get("MERGEFALL_SLOW"))
TINY = TDSettings("0123 01", rows=2, cols=2, games=300, block=100, alpha=0.5)


class PlainLearner:
    """TD(λ) on a board of two rows of `cols`, in plain Python, with a dictionary entry for each position's images."""

    def __init__(self, learner: Learner, rate: float, trace: float = 0.0, coherent: bool = False) -> None:
        self.stream = int(learner.workers[0, td_kernels.STREAM])
        self.shape, self.rate, self.trace, self.coherent = learner.network.shape, rate, trace, coherent
        self.weights = learner.network.weights.astype(np.float64)
        self.closest = np.inf  # the least by which a chosen move was better than another
        self.net, self.size = np.zeros(self.weights.size), np.zeros(self.weights.size)

    def bits(self) -> int:
        with np.errstate(over="ignore"):
            stream, bits = next_bits.py_func(np.uint64(self.stream))
        self.stream = int(stream)
        return int(bits)

    def add_tile(self, board):
        bits, cells = self.bits(), reference.empty_cells(board)
        cell = cells[(bits >> 32) * len(cells) >> 32]
        return reference.spawn(board, cell, 2 if bits & 0xFFFFFFFF < 429496730 else 1)

    def places(self, board):
        found = []
        for image in (board, board[::-1], *(tuple(row[::-1] for row in b) for b in (board, board[::-1]))):
            cells, offset = [rank for row in image for rank in row], 0
            for pattern in self.shape.patterns:
                found.append(offset + sum(cells[cell] << 4 * i for i, cell in enumerate(reversed(pattern))))
                offset += 16 ** len(pattern)
        return found

    def value(self, board) -> float:
        return sum(self.weights[place] for place in self.places(board))

    def learn(self, board, error: float) -> None:
        for place in self.places(board):
            share = abs(self.net[place]) / self.size[place] if self.coherent and self.size[place] else 1.0
            self.weights[place] += self.rate * share * error
            self.net[place] += error
            self.size[place] += abs(error)

    def play(self, after) -> int:
        """Play on from an afterstate and learn; the number of moves."""
        board, path = self.add_tile(after), []
        while True:
            afters = [(after, gain) for after, gain, legal in (reference.move(board, a) for a in range(4)) if legal]
            moves = [(gain + self.value(after), after, gain) for after, gain in afters]
            if not moves:
                break
            moves.sort(reverse=True)
            worth, after, gain = moves[0]
            self.closest = min([self.closest, *(worth - other for other, _, _ in moves[1:])])
            if path and not self.trace:
                self.learn(path[-1][0], worth - path[-1][2])
            path.append((after, gain, worth - gain))
            board = self.add_tile(after)
        if path and not self.trace:
            self.learn(path[-1][0], -path[-1][2])
        if not self.trace:
            return len(path)
        target, value, reward = 0.0, 0.0, 0
        for after, gain, _ in reversed(path):
            target = reward + self.trace * target + (1 - self.trace) * value
            self.learn(after, target - self.value(after))
            value, reward = self.value(after), gain
        return len(path)


@pytest.mark.parametrize(
    "options", [{}, {"trace": 0.5}, {"coherence": 1.0}, {"coherence": 1.0, "trace": 1.0}], ids=["td0", "λ", "tc", "tcλ"]
)
def test_games_are_learnt_from_as_the_plain_twin_does(options):
    """Games from boards of different tiles: where two moves lead to mirror images, rounding decides."""
    learner = Learner(TDSettings("0124 35", rows=2, cols=3, alpha=0.2, coherence_alpha=0.2, **options))
    rng, worker = np.random.default_rng(2), learner.workers[0]
    learner.network.weights[:] = rng.normal(0, 10, learner.network.weights.size)
    twin = PlainLearner(learner, 0.2 / 8, learner.settings.trace, learner.settings.coherence > 0)
    moves = 0
    for _ in range(4):
        cells = rng.permutation([0, 0, 1, 2, 3, 5]).astype(np.uint8)
        worker[td_kernels.START] = pack(cells, 2, 3)
        assert learner._kernel(learner._tasks(), 0, 1 << 40)
        moves += twin.play(tuple(map(tuple, cells.reshape(2, 3).tolist())))
    assert twin.closest > 0.01
    assert int(worker[td_kernels.MOVES]) == moves > 8
    assert int(worker[td_kernels.STREAM]) == twin.stream
    assert learner.network.weights == pytest.approx(twin.weights, abs=1e-3)


def test_the_optimum_on_2x2_is_reached_and_not_passed():
    learner = Learner(TDSettings("0123", rows=2, cols=2, games=40_000, block=10_000, coherence=0.5, optimism=200.0))
    while not learner.done:
        learner.play_block()
    player = NTuple(learner.network)
    scores = [
        player.play("mergefall/Game2048-v0", seed, {"rows": 2, "cols": 2}).figures["score"] for seed in range(3000)
    ]
    error = np.std(scores) / len(scores) ** 0.5
    assert 66.964149 * 0.97 < np.mean(scores) < 66.964149 + 4 * error


@pytest.mark.skipif(not SLOW, reason="a minute: MERGEFALL_SLOW=1")
def test_2x3_comes_within_one_percent_of_the_optimum():
    settings = TDSettings("012345", rows=2, cols=3, games=2_000_000, block=100_000, optimism=600.0)
    learner = Learner(replace(settings, coherence=0.7, coherence_alpha=0.1))
    while not learner.done:
        learner.play_block()
    player = NTuple(learner.network)
    scores = [
        player.play("mergefall/Game2048-v0", seed, {"rows": 2, "cols": 3}).figures["score"] for seed in range(40_000)
    ]
    error = np.std(scores) / len(scores) ** 0.5
    assert 480.258272 * 0.99 - 2 * error < np.mean(scores) < 480.258272 + 4 * error


@pytest.mark.skipif(not SLOW, reason="half a minute and 256 MB: MERGEFALL_SLOW=1")
def test_the_known_learning_curve_of_the_usual_network():
    """Block means: 7.6k to 7.8k after 1000 games, 15.0k after 4000, 21.7k after 10 000, to within a few per cent."""
    learner, means = Learner(TDSettings(games=10_000)), []
    while not learner.done:
        means.append(learner.play_block().mean)
    for block, known in ((0, 7700), (3, 15000), (9, 21700)):
        assert means[block] == pytest.approx(known, rel=0.08)


def test_entries_start_at_their_share_of_the_optimism():
    learner = Learner(replace(TINY, optimism=160.0))
    assert learner.network([[1, 2], [0, 1]]) == 160.0
    assert np.unique(learner.network.weights).tolist() == [10.0]


def without_time(blocks):
    return [replace(block, seconds=0) for block in blocks]


@pytest.mark.parametrize("start", [{}, {"start": "restart"}, {"start": "carousel", "carousel": (8, 16)}])
def test_an_interrupted_run_ends_as_an_unbroken_one(start, tmp_path, monkeypatch):
    """With temporal coherence, and interrupted within a block: everything it needs must be in the checkpoint."""
    settings = replace(TINY, coherence=0.5, **start)
    whole = train_td(settings, tmp_path / "whole", progress=False)

    calls, share = [], td.share

    def interrupted(*arguments):
        calls.append(1)
        share(*arguments)
        if len(calls) == 7:
            raise KeyboardInterrupt

    monkeypatch.setattr(td, "AT_ONCE", 500)
    monkeypatch.setattr(td, "share", interrupted)
    with pytest.raises(KeyboardInterrupt):
        train_td(settings, tmp_path / "broken", progress=False)
    assert not (tmp_path / "broken" / "network.npz").exists()
    assert 0 < len(read_curve(tmp_path / "broken")) < 3
    resumed = train_td(settings, tmp_path / "broken", resume=True, progress=False)
    assert np.array_equal(resumed.weights, whole.weights)
    assert without_time(read_curve(tmp_path / "broken")) == without_time(read_curve(tmp_path / "whole"))
    assert not list(tmp_path.rglob("*.part"))


def test_a_finished_run_goes_on_with_more_games_and_other_threads(tmp_path):
    train_td(TINY, tmp_path, progress=False)
    with pytest.raises(ValueError, match="resume"):
        train_td(TINY, tmp_path, progress=False)
    train_td(replace(TINY, games=500, threads=2), tmp_path, resume=True, progress=False)
    assert [block.game for block in read_curve(tmp_path)] == [100, 200, 300, 400, 500]
    network, _ = Network.load(tmp_path / "network.npz")
    assert network.record["settings"]["games"] == 500
    with pytest.raises(ValueError, match=r"alpha is 0\.5 there, 0\.1 here"):
        train_td(replace(TINY, games=600, alpha=0.1), tmp_path, resume=True, progress=False)


def test_two_threads_play_all_games_and_learn():
    learner = Learner(replace(TINY, games=20_000, block=10_001, threads=2, alpha=0.05))
    blocks = [learner.play_block(), learner.play_block()]
    assert [block.games for block in blocks] == [10_001, 9_999]
    assert sum(blocks[1].tiles.values()) == 9_999
    assert blocks[1].mean > 60  # random play 19.7, the optimum 67.0
    assert len(set(learner.workers[:, td_kernels.STREAM])) == 2


def test_other_starts_add_moves_but_not_games():
    moves = {}
    for start in ({}, {"start": "restart"}, {"start": "carousel", "carousel": (8, 16)}):
        learner = Learner(replace(TINY, games=300, block=300, **start))
        block = learner.play_block()
        assert (block.games, sum(block.tiles.values())) == (300, 300)
        moves[start.get("start", "new")] = block.moves
    assert moves["restart"] > 1.3 * moves["new"]
    assert moves["carousel"] > 1.3 * moves["new"]
    for pool, rank in zip(learner.pools[0], (3, 4), strict=True):
        kept = pool[1 : 1 + min(int(pool[0]), td_kernels.POOL)]
        assert kept.size > 50
        assert all(max(int(board) >> 4 * i & 15 for i in range(16)) == rank for board in kept)


def test_damaged_folders_are_refused_by_name(tmp_path):
    train_td(TINY, tmp_path, progress=False)
    more = replace(TINY, games=400)
    checkpoint = tmp_path / "checkpoint.npz"
    whole = checkpoint.read_bytes()
    checkpoint.write_bytes(whole[:-100])
    with pytest.raises(ValueError, match=r"checkpoint\.npz"):
        train_td(more, tmp_path, resume=True, progress=False)
    checkpoint.write_bytes(whole)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ValueError, match=r"config\.json"):
        train_td(more, tmp_path, resume=True, progress=False)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "curve.jsonl").write_text("a diary\n")
    with pytest.raises(ValueError, match=r"curve\.jsonl"):
        train_td(TINY, tmp_path / "other", progress=False)
    assert (tmp_path / "other" / "curve.jsonl").read_text() == "a diary\n"


def test_settings_survive_json():
    settings = replace(TINY, stages=(8,), start="carousel", carousel=(8, 16))
    assert td.settings_from(json.loads(json.dumps(asdict(settings)))) == settings


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"games": 0}, "games is 0"),
        ({"alpha": -1}, "alpha is -1"),
        ({"alpha": float("nan")}, "alpha is nan"),
        ({"trace": 1.5}, r"trace is 1\.5"),
        ({"threads": True}, "threads is True"),
        ({"start": "middle"}, "'middle'"),
        ({"start": "carousel"}, "carousel"),
        ({"carousel": (16,)}, "carousel"),
        ({"patterns": "04"}, "'04'"),
    ],
)
def test_bad_settings_are_refused_by_name(options, message):
    with pytest.raises(ValueError, match=message):
        replace(TINY, **options)
