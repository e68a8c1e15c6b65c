"""TD learning against a plain twin, against the exact optimum, and its runs: interrupted, resumed, made players of."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
from mergefall.game2048 import reference
from mergefall.game2048.packed import pack
from mergefall.words import next_bits
from mergefall_baselines import make
from mergefall_baselines.game2048.network import TupleNetwork
from mergefall_baselines.game2048.ntuple import NTuple
from mergefall_training import evaluate
from mergefall_training.cli import main
from mergefall_training.learn.ntuple import train as ntuple_train
from mergefall_training.learn.ntuple.kernels import WORKER
from mergefall_training.learn.ntuple.player import network_of, prune
from mergefall_training.learn.ntuple.train import Hyperparameters, Learner
from mergefall_training.learn.presets import configure
from mergefall_training.learn.run import Config, Run, read_checkpoint, read_curve, train

GAME = "mergefall/Game2048-v0"
WORD = {name: i for i, name in enumerate(WORKER.names or ())}  # in a checkpoint's rows of words


def config(patterns="0123 01", rows=2, cols=2, timesteps=6000, interval=2000, **changed) -> Config:
    hyperparameters = {"patterns": patterns, "learning_rate": 0.5, "threads": 1} | changed
    return Config("ntuple", GAME, {"rows": rows, "cols": cols}, hyperparameters, timesteps, interval, episodes=5)


def learnt(asked: Config) -> Learner:
    learner = Learner(asked)
    while learner.step < asked.timesteps:
        learner.learn()
    return learner


class PlainLearner:
    """TD(λ) on a board of two rows of `cols`, in plain Python, with a dictionary entry for each position's images."""

    def __init__(self, learner: Learner, rate: float) -> None:
        h = learner.hyperparameters
        self.rate, self.trace, self.coherent = rate, h.td_lambda, h.coherence > 0
        self.exploration, self.expected = h.exploration_rate, h.backup == "expected"
        self.stream = int(learner.workers["stream"][0])
        self.shape = learner.model.shape
        self.weights = learner.model.weights.astype(np.float64)
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
                radix = len(cells) + 2
                found.append(offset + sum(cells[cell] * radix**i for i, cell in enumerate(reversed(pattern))))
                offset += radix ** len(pattern)
        return found

    def value(self, board) -> float:
        return sum(self.weights[place] for place in self.places(board))

    def learn(self, board, error: float) -> None:
        for place in self.places(board):
            share = abs(self.net[place]) / self.size[place] if self.coherent and self.size[place] else 1.0
            self.weights[place] += self.rate * share * error
            self.net[place] += error
            self.size[place] += abs(error)

    def drawn(self, board):
        """The afterstate and the score of a legal move drawn from all."""
        while True:
            after, gain, legal = reference.move(board, self.bits() >> 62)
            if legal:
                return after, gain

    def moves(self, board):
        """(worth, afterstate, score) of each legal move, the best first."""
        afters = [(after, gain) for after, gain, legal in (reference.move(board, a) for a in range(4)) if legal]
        return sorted(((gain + self.value(after), after, gain) for after, gain in afters), reverse=True)

    def expectation(self, after) -> float:
        cells, found = reference.empty_cells(after), 0.0
        for cell in cells:
            for rank, probability in ((1, 0.9), (2, 0.1)):
                moves = self.moves(reference.spawn(after, cell, rank))
                found += probability / len(cells) * (moves[0][0] if moves else 0)
        return found

    def play(self, after) -> int:
        """Play on from an afterstate and learn; the number of moves."""
        board, path = self.add_tile(after), []
        while True:
            moves = self.moves(board)
            if not moves:
                break
            worth, after, gain = moves[0]
            self.closest = min([self.closest, *(worth - other for other, _, _ in moves[1:])])
            value = worth - gain
            if self.exploration and (self.bits() >> 40) / 2**24 < self.exploration:
                after, gain = self.drawn(board)
                value = self.value(after)
            if path and not self.trace and not self.expected:
                self.learn(path[-1][0], worth - path[-1][2])
            if self.expected:
                self.learn(after, self.expectation(after) - value)
            path.append((after, gain, value))
            board = self.add_tile(after)
        if path and not self.trace and not self.expected:
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
    "options",
    [
        {},
        {"td_lambda": 0.5},
        {"coherence": 1.0},
        {"coherence": 1.0, "td_lambda": 1.0},
        {"coherence": 1.0, "exploration_rate": 0.4},
        {"exploration_rate": 0.4, "backup": "expected"},
    ],
    ids=["td0", "λ", "tc", "tcλ", "tcε", "expected"],
)
def test_games_are_learnt_from_as_the_plain_twin_does(options):
    """Games from boards of different tiles: where two moves lead to mirror images, rounding decides."""
    learner = Learner(config("0124 35", 2, 3, learning_rate=0.2, coherence_rate=0.2, **options))
    rng, worker = np.random.default_rng(15), learner.workers[0]
    learner.model.weights[:] = rng.normal(0, 10, learner.model.weights.size)
    twin = PlainLearner(learner, 0.2 / 8)
    moves = 0
    for _ in range(4):
        cells = rng.permutation([0, 0, 1, 2, 3, 5]).astype(np.uint8)
        worker["start"] = pack(cells, 2, 3)
        learner._kernel(learner._tasks(), 0, 1)
        moves += twin.play(tuple(map(tuple, cells.reshape(2, 3).tolist())))
    assert twin.closest > 0.01
    assert int(worker["moves"]) == moves > 8
    assert int(worker["stream"]) == twin.stream
    assert learner.model.weights == pytest.approx(twin.weights, abs=1e-3)


def scores(learner: Learner, games: int) -> np.ndarray:
    kwargs = {"rows": learner.model.shape.rows, "cols": learner.model.shape.cols}
    player = NTuple(learner.model)
    return np.array([player.play(GAME, seed, kwargs).figures["score"] for seed in range(games)])


@pytest.mark.parametrize("seed", range(3))
def test_the_optimum_on_2x2_is_reached_and_not_passed(seed):
    asked = config("0123", timesteps=600_000, interval=600_000, learning_rate=0.1, coherence=0.125, coherence_rate=1.0)
    found = scores(learnt(Config(**{**asked.__dict__, "seed": seed})), 3000)
    error = np.std(found) / len(found) ** 0.5
    assert 66.964149 * 0.97 < np.mean(found) < 66.964149 + 4 * error


@pytest.mark.slow
def test_2x3_comes_within_one_percent_of_the_optimum():
    asked = config("012345", 2, 3, timesteps=100_000_000, interval=100_000_000, learning_rate=0.1, optimism=600.0)
    asked.hyperparameters.update(coherence=0.7, coherence_rate=0.1)
    found = scores(learnt(asked), 40_000)
    error = np.std(found) / len(found) ** 0.5
    assert 480.258272 * 0.99 - 2 * error < np.mean(found) < 480.258272 + 4 * error


@pytest.mark.slow
def test_the_known_learning_curve_of_the_usual_network(monkeypatch):
    """Means of 1000 games: 7.6k to 7.8k of the first, 15.0k of the fourth, 21.7k of the tenth, by a few per cent."""
    monkeypatch.setattr(ntuple_train, "ROUND", 20_000)
    asked = config("012345 456789 012456 45689a", 4, 4, timesteps=10**9, interval=10**9, learning_rate=0.1)
    learner, means, before = Learner(asked), [], (0, 0)
    while len(means) < 10:
        learner.learn()
        games, score = (int(learner.workers[name][0]) for name in ("games", "score"))
        if games >= 1000 * (len(means) + 1):
            means.append((score - before[1]) / (games - before[0]))
            before = games, score
    for block, known in ((0, 7700), (3, 15000), (9, 21700)):
        assert means[block] == pytest.approx(known, rel=0.08)


def test_learning_beyond_all_numbers_ends_with_an_error(tmp_path):
    """It would else play games of no move for ever; another process, for compiled loops end for no alarm."""
    asked = 'Config("ntuple", "mergefall/Game2048-v0", {"rows": 2, "cols": 2}, HYPERPARAMETERS, 90_000, 90_000, 5)'
    asked = asked.replace("HYPERPARAMETERS", '{"patterns": "0123", "learning_rate": 1e38, "threads": 1}')
    code = f"""
from mergefall_training.learn.run import Config, train
train({str(tmp_path / "run")!r}, {asked}, progress=False)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False)
    assert "the network's entries are no longer finite; expected a smaller learning_rate" in done.stderr


def test_entries_start_at_their_share_of_the_optimism():
    learner = Learner(config(optimism=160.0))
    assert learner.model([[1, 2], [0, 1]]) == 160.0
    assert np.unique(learner.model.weights).tolist() == [10.0]


STARTS = [{}, {"start": "restart"}]


@pytest.mark.parametrize("start", STARTS)
def test_an_interrupted_run_ends_as_an_unbroken_one(start, tmp_path, monkeypatch):
    """With temporal coherence, and the interrupt in the middle of an interval."""
    monkeypatch.setattr(ntuple_train, "ROUND", 500)
    asked = config(coherence=0.5, **start)
    train(tmp_path / "whole", asked, progress=False)

    calls, share = [], ntuple_train.share

    def interrupted(*arguments):
        calls.append(1)
        share(*arguments)
        if len(calls) == 7:
            raise KeyboardInterrupt

    monkeypatch.setattr(ntuple_train, "share", interrupted)
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "broken", asked, progress=False)
    assert 1 < len(read_curve(tmp_path / "broken")) < 4
    train(tmp_path / "broken", asked, resume=True, progress=False)
    whole, broken = (network_of(tmp_path / name) for name in ("whole", "broken"))
    assert np.array_equal(whole.weights, broken.weights)
    points = [[(p.step, p.mean, p.figures) for p in read_curve(tmp_path / name)] for name in ("whole", "broken")]
    assert points[0] == points[1]


def test_a_run_begins_with_what_another_knows(tmp_path, monkeypatch):
    """Killed before its first checkpoint, too: it does not begin with nothing then."""
    first = str(tmp_path / "first")
    train(first, config(coherence=1.0), progress=False)
    known = Learner(config())
    known.restore(*read_checkpoint(first)[:2])
    asked = config(coherence=1.0, warm_start=first)
    saved = Run.save_checkpoint

    def killed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Run, "save_checkpoint", killed)
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "second", asked, progress=False)
    monkeypatch.setattr(Run, "save_checkpoint", saved)
    train(tmp_path / "second", asked, resume=True, progress=False)
    learner = Learner(asked)
    learner.warm_start()
    assert np.array_equal(learner.model.weights, known.model.weights)
    assert np.array_equal(learner.coherence, known.coherence)
    while learner.step < asked.timesteps:
        learner.learn()
    assert np.array_equal(network_of(tmp_path / "second").weights, learner.model.weights)
    assert not np.array_equal(known.model.weights, learner.model.weights)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"patterns": "0123"}, "has patterns, optimism and board .'0123 01'"),
        ({"optimism": 8.0}, "has patterns"),
    ],
)
def test_a_run_begins_with_no_network_of_another_kind(tmp_path, changed, message):
    first = str(tmp_path / "first")
    train(first, config(timesteps=100), progress=False)
    with pytest.raises(ValueError, match=message):
        train(tmp_path / "second", config(warm_start=first, **changed), progress=False)
    with pytest.raises(ValueError, match="holds no training run"):
        train(tmp_path / "third", config(warm_start=str(tmp_path / "nowhere")), progress=False)


def test_the_checkpoint_of_another_number_of_threads_is_refused(tmp_path):
    learner = Learner(config(threads=2))
    learner.learn()
    with pytest.raises(ValueError, match="begun with 2 threads; here are 1"):
        Learner(config()).restore(learner.step, learner.state())


def test_by_default_a_run_has_the_threads_that_it_began_with(monkeypatch):
    learner = Learner(config(threads=2))
    learner.learn()
    monkeypatch.setattr(ntuple_train, "cores", lambda: 1)
    again = Learner(config(threads=None))
    again.restore(learner.step, learner.state())
    assert len(again.workers) == 2
    again.learn()
    assert again.step > learner.step


def test_two_threads_share_a_network():
    learner = learnt(config(threads=2, timesteps=400_000, interval=100_000, learning_rate=0.05))
    assert len(set(learner.workers["stream"])) == 2
    assert learner.workers["games"].min() > 100
    assert scores(learner, 500).mean() > 60  # random play 19.7, the optimum 67.0


def test_other_starts_add_moves_but_not_games():
    games = {}
    for start in STARTS:
        learner = learnt(config(timesteps=20_000, interval=20_000, **start))
        games[start.get("start", "new")] = int(learner.workers["games"][0])
    assert games["new"] > 1.3 * games["restart"] > 500


def test_a_run_is_a_player_that_searches_if_told(tmp_path):
    train(tmp_path, config(timesteps=40_000, interval=20_000), progress=False)
    network = network_of(tmp_path)
    assert network.record["step"] >= 40_000
    kwargs = {"rows": 2, "cols": 2}
    for depth in (1, 3):
        agent, ours = make(str(tmp_path), model="last", depth=depth), NTuple(network, depth)
        for seed in range(5):
            moves = [player.play(GAME, seed, kwargs).actions.tolist() for player in (agent, ours)]
            assert moves[0] == moves[1]
        again = pickle.loads(pickle.dumps(agent))
        assert again.options == agent.options
    assert evaluate(agent, GAME, 20, env_kwargs=kwargs, workers=1).summary().mean.value > 45
    with pytest.raises(ValueError, match="no option 'dept'; it has model, checksum, depth"):
        make(str(tmp_path), dept=2)


def test_a_network_is_packed_without_the_entries_that_were_adjusted_least(tmp_path, capsys):
    folder, file = str(tmp_path / "run"), tmp_path / "small.npz"
    train(folder, config(coherence=1.0), progress=False)
    main(["pack", folder, str(file), "--bits", "32", "--entries", "20"])
    whole, (small, _) = network_of(folder), TupleNetwork.load(file)
    kept = small.weights != 0
    assert 20 <= kept.sum() < 40  # mirror images were adjusted as much
    assert f"{file}: {kept.sum()} entries" in capsys.readouterr().out
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


def test_presets_have_names():
    for name in ("2min", "2h", "small", None):
        Hyperparameters.read(configure("ntuple", preset=name).hyperparameters)
    with pytest.raises(ValueError, match=r"no preset '3min' for .*: small, 2min, 2h"):
        configure("ntuple", preset="3min")
    with pytest.raises(ValueError, match=r"no preset '2min' for .*: none"):
        configure("cma-es", "mergefall/Tetris-v0", preset="2min")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"patterns": 123}, "patterns is 123; expected text, such as '0123' in quotation marks"),
        ({"learning_rate": -1}, "learning_rate is -1"),
        ({"learning_rate": float("nan")}, "learning_rate is nan"),
        ({"td_lambda": 1.5}, r"td_lambda is 1\.5"),
        ({"td_lambda": 0.5, "exploration_rate": 0.1}, r"td_lambda 0\.5 with exploration_rate 0\.1"),
        ({"td_lambda": 0.5, "backup": "expected"}, r"td_lambda 0\.5 with .* backup 'expected'"),
        ({"backup": "full"}, "backup is 'full'; expected one of 'sample', 'expected'"),
        ({"threads": True}, "threads is True"),
        ({"start": "middle"}, "'middle'"),
        ({"start": "carousel"}, "start is 'carousel'; expected one of 'new', 'restart'"),
        ({"stages": [16]}, "ntuple has no 'stages'"),
        ({"alpha": 1}, "no 'alpha'; it has patterns"),
    ],
)
def test_bad_hyperparameters_are_refused_by_name(options, message):
    with pytest.raises(ValueError, match=message):
        Hyperparameters.read(options)


@pytest.mark.parametrize(
    ("kwargs", "changed", "message"),
    [
        ({"reward": "log2"}, {}, "learns 2048 from its score"),
        ({"goal": 16}, {}, "without a goal"),
        ({"shaping": {"potential": "nneonneo", "gamma": 1.0}}, {"gamma": 1.0}, "no 'gamma'"),
        ({}, {"patterns": "04"}, "'04'"),
        ({"rows": 5}, {}, "5"),
    ],
)
def test_what_it_cannot_learn_is_refused(kwargs, changed, message):
    asked = {"patterns": "01", "threads": 1} | changed
    with pytest.raises(ValueError, match=message):
        Learner(Config("ntuple", GAME, {"rows": 2, "cols": 2} | kwargs, asked, 100, 100))


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("workers", lambda a: a[:, :-1], r"workers is uint64\[1, 4\]; expected uint64\[1, 5\]"),
        ("workers", (0, WORD["moves"], 1 << 63), "the workers' moves holds 9223372036854775808"),
        ("workers", (0, WORD["start"], 0x300000000), "starts from 0x300000000; expected a board"),
        ("workers", (0, WORD["start"], 0x110011), "starts from 0x110011; expected a board with an empty cell"),
        ("touched", lambda a: np.append(a, a), r"touched is uint8\[\d+\]; expected uint8\[\d+\]"),
        ("touched", lambda a: a | 255, r"touched has bits beyond the network's 1332 entries"),
        ("touched", (0, 255), r"weights is float32\[\d+\]; expected float32\[\d+\]"),
        ("weights", lambda a: a.astype(np.float64), "weights is float64"),
        ("coherence", lambda a: a[1:], "coherence is float32"),
        ("interval", lambda _: -1, "interval is -1"),
    ],
)
def test_a_checkpoint_with_numbers_out_of_range_is_refused(name, change, message):
    """They say where the kernels look."""
    asked = config(coherence=1.0, start="restart")
    learner = Learner(asked)
    learner.learn()
    state = learner.state()
    Learner(asked).restore(learner.step, state)
    if callable(change):
        value = change(state[name])
    else:
        value, place = state[name].copy(), change[:-1]
        value[place if len(place) > 1 else place[0]] = change[-1]
    with pytest.raises(ValueError, match=message):
        Learner(asked).restore(learner.step, state | {name: value})


@pytest.mark.parametrize("coherence", [0.05, 0.15])
def test_temporal_coherence_begins_at_its_step(coherence):
    """Not at the next evaluation, which a short run may not have before its end."""
    asked = config(coherence=coherence, timesteps=20_000, interval=2000)
    learner, begun = Learner(asked), None
    while learner.step < asked.timesteps:
        before = learner.step
        learner.learn()
        if begun is None and learner.coherence.size:
            begun = before
    assert begun == pytest.approx((1 - coherence) * asked.timesteps, abs=20)
