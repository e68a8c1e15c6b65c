"""TD learning against a plain twin, against the exact optimum, and its runs: interrupted, resumed, made players of."""

import pickle
import subprocess
import sys
from collections import defaultdict

import numpy as np
import pytest
from mergefall.game2048 import reference
from mergefall.game2048.packed import line_table, pack
from mergefall.words import next_bits
from mergefall_baselines import make
from mergefall_baselines.game2048.network import TupleNetwork
from mergefall_baselines.game2048.ntuple import ntuple
from mergefall_training import evaluate
from mergefall_training.learn.ntuple import train as ntuple_train
from mergefall_training.learn.ntuple.kernels import GAMES, STREAM, Arrays, game_kernel
from mergefall_training.learn.ntuple.player import network_of, prune
from mergefall_training.learn.ntuple.train import Learner
from mergefall_training.learn.run import Config, train

from ...baselines.game2048.reference_network import ReferenceNetwork

GAME = "mergefall/Game2048-v0"


def config(patterns="0123 01", rows=2, cols=2, timesteps=6000, interval=2000, **changed):
    hyperparameters = {"patterns": patterns, "learning_rate": 0.5, "threads": 1} | changed
    return Config("ntuple", GAME, {"rows": rows, "cols": cols}, hyperparameters, timesteps, interval, episodes=5)


def learnt(asked):
    learner = Learner(asked)
    while learner.step < asked.timesteps:
        learner.learn()
    return learner


class PlainLearner(ReferenceNetwork):
    """TD(0) in plain Python; if it is coherent, with each entry's own share of the rate."""

    def __init__(self, patterns, stream, rate, coherent):
        super().__init__(patterns)
        self.stream, self.rate, self.coherent = stream, rate, coherent
        self.closest = np.inf  # the least by which a chosen move was better than another
        self.net, self.size = defaultdict(float), defaultdict(float)

    def add_tile(self, board):
        with np.errstate(over="ignore"):
            stream, bits = next_bits.py_func(np.uint64(self.stream))
        self.stream, bits, cells = int(stream), int(bits), reference.empty_cells(board)
        cell = cells[(bits >> 32) * len(cells) >> 32]
        return reference.spawn(board, cell, 2 if bits & 0xFFFFFFFF < 429496730 else 1)

    def learn(self, board, error):
        for key in list(self.keys(board)):
            share = abs(self.net[key]) / self.size[key] if self.coherent and self.size[key] else 1.0
            self.entries[key] += self.rate * share * error
            self.net[key] += error
            self.size[key] += abs(error)

    def play(self, board):
        """Play a game from a board and learn from it; the number of moves."""
        last, moves = None, 0
        while True:
            afters = [(after, gain) for after, gain, legal in (reference.move(board, a) for a in range(4)) if legal]
            ways = sorted(((gain + self.value(after), after, gain) for after, gain in afters), reverse=True)
            worth, after, gain = ways[0] if ways else (0.0, None, 0)
            if last is not None:
                self.learn(last[0], worth - last[1])
            if not ways:
                return moves
            self.closest = min([self.closest, *(worth - other for other, _, _ in ways[1:])])
            last, moves, board = (after, worth - gain), moves + 1, self.add_tile(after)


@pytest.mark.parametrize("coherence", [0.0, 1.0])
def test_games_are_learnt_from_as_the_plain_twin_does(coherence):
    """Games from boards of different tiles: where two moves lead to mirror images, rounding decides."""
    learner, rate = Learner(config("0124 35", 2, 3, coherence=coherence)), 0.2 / 8
    rng, worker, weights = np.random.default_rng(15), learner.workers[0], learner.model.weights
    weights[:] = rng.normal(0, 10, weights.size)
    twin = PlainLearner("0124 35", int(worker[STREAM]), rate, coherence > 0)
    twin.fill(weights, 6)
    play, tables = game_kernel(learner.model.shape), (line_table(3), line_table(2))
    arrays = Arrays(weights, np.zeros(2 * weights.size, np.float32), *tables, np.zeros(5 * 8, np.uint32))
    for _ in range(4):
        cells = rng.permutation([0, 0, 1, 2, 3, 5]).astype(np.uint8)
        board = twin.add_tile(tuple(map(tuple, cells.reshape(2, 3).tolist())))
        worker[STREAM] = np.uint64(twin.stream)
        start = np.uint64(pack(np.array(board, np.uint8).ravel(), 2, 3))
        assert play(worker, arrays, start, np.float32(rate), coherence > 0)[1] == twin.play(board)
        assert int(worker[STREAM]) == twin.stream
    assert twin.closest > 0.01
    found = ReferenceNetwork("0124 35")
    found.fill(weights, 6)
    assert found.entries == pytest.approx(twin.entries, abs=1e-3)


def scores(learner, games):
    kwargs = {"rows": learner.model.shape.rows, "cols": learner.model.shape.cols}
    player = ntuple(learner.model)
    return np.array([player.play(GAME, seed, kwargs).figures["score"] for seed in range(games)])


def test_the_optimum_on_2x2_is_reached_and_not_passed():
    asked = config("0123", timesteps=600_000, interval=600_000, learning_rate=0.1, coherence=0.125, coherence_rate=1.0)
    found = scores(learnt(asked), 3000)
    error = np.std(found) / len(found) ** 0.5
    assert 66.964149 * 0.97 < np.mean(found) < 66.964149 + 4 * error


def test_learning_beyond_all_numbers_ends_with_an_error(tmp_path):
    """It would else play games of no move for ever; another process, for compiled loops end for no alarm."""
    code = f"""
from mergefall_training.learn.run import Config, train
asked = {{"patterns": "0123", "learning_rate": 1e38, "threads": 1}}
train({str(tmp_path / "run")!r}, Config("ntuple", {GAME!r}, {{"rows": 2, "cols": 2}}, asked, 90_000, 90_000, 5))
"""
    done = subprocess.run([sys.executable, "-c", code], stderr=subprocess.PIPE, timeout=300)
    assert b"the network's entries are no longer finite; expected a smaller learning_rate" in done.stderr


def test_entries_start_at_their_share_of_the_optimism():
    learner = Learner(config(optimism=160.0))
    assert learner.model([[1, 2], [0, 1]]) == 160.0
    assert np.unique(learner.model.weights).tolist() == [10.0]


def test_a_run_goes_on_with_the_threads_that_it_began_with(monkeypatch):
    learner = Learner(config(threads=2))
    learner.learn()
    with pytest.raises(ValueError, match="begun with 2 threads; here are 1"):
        Learner(config()).restore(learner.step, learner.state())
    monkeypatch.setattr(ntuple_train, "cores", lambda: 1)
    again = Learner(config(threads=None))
    again.restore(learner.step, learner.state())
    assert len(again.workers) == 2
    again.learn()
    assert again.step > learner.step


def test_two_threads_share_a_network():
    learner = learnt(config(threads=2, timesteps=400_000, interval=100_000, learning_rate=0.05))
    assert len(set(learner.workers[:, STREAM])) == 2
    assert learner.workers[:, GAMES].min() > 100
    assert scores(learner, 500).mean() > 60  # random play 19.7, the optimum 67.0


def test_a_run_is_a_player_that_searches_if_told(tmp_path):
    train(tmp_path, config(timesteps=40_000, interval=20_000), progress=False)
    network = network_of(tmp_path)
    assert network.record["step"] >= 40_000
    kwargs = {"rows": 2, "cols": 2}
    for depth in (1, 3):
        agent, ours = make(str(tmp_path), model="last", depth=depth), ntuple(network, depth)
        for seed in range(5):
            moves = [player.play(GAME, seed, kwargs).actions.tolist() for player in (agent, ours)]
            assert moves[0] == moves[1]
        again = pickle.loads(pickle.dumps(agent))
        assert again.options == agent.options
    assert evaluate(agent, GAME, 20, env_kwargs=kwargs, workers=1).summary().mean.value > 45


def test_a_network_is_packed_without_the_entries_that_were_adjusted_least(tmp_path, command):
    folder, file = str(tmp_path / "run"), tmp_path / "small.npz"
    train(folder, config(coherence=1.0), progress=False)
    printed, _, _ = command("export --bits 32 --entries 20", folder, file)
    whole, (small, _) = network_of(folder), TupleNetwork.load(file)
    kept = small.weights != 0
    assert 20 <= kept.sum() < 40  # mirror images were adjusted as much
    assert f"{file}: {kept.sum()} entries" in printed
    assert np.array_equal(small.weights[kept], whole.weights[kept])
    assert whole([[0, 1], [0, 0]]) == small([[0, 1], [0, 0]])  # what every game comes to
    assert np.count_nonzero(whole.weights) > 100
    assert small.record["hyperparameters"]["patterns"] == "0123 01"
    assert small.record["entries"] == 20
    with pytest.raises(ValueError, match="entries is 0"):
        prune(whole, folder, 0)
    train(tmp_path / "fixed", config(), progress=False)
    with pytest.raises(ValueError, match="expected a run with temporal coherence"):
        prune(network_of(tmp_path / "fixed"), tmp_path / "fixed", 20)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("workers", lambda a: a[:, :-1], r"workers is uint64\[1, 3\]; expected uint64\[1, 4\]"),
        ("touched", lambda a: np.append(a, a), r"touched is uint8\[\d+\]; expected uint8\[\d+\]"),
        ("touched", lambda a: a | 255, r"touched has bits beyond the network's 1332 entries"),
        ("touched", lambda a: np.append(np.uint8(255), a[1:]), r"weights is float32\[\d+\]; expected float32\[\d+\]"),
        ("weights", lambda a: a.astype(np.float64), "weights is float64"),
        ("coherence", lambda a: a[1:], "coherence is float32"),
        ("interval", lambda _: -1, "interval is -1"),
    ],
)
def test_a_checkpoint_with_numbers_out_of_range_is_refused(name, change, message):
    """They say where the kernels look."""
    asked = config(coherence=1.0)
    learner = Learner(asked)
    learner.learn()
    state = learner.state()
    Learner(asked).restore(learner.step, state)
    with pytest.raises(ValueError, match=message):
        Learner(asked).restore(learner.step, state | {name: change(state[name])})
