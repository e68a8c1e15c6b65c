"""TD learning of Tetris against a plain twin and the known value of a small game; runs broken, resumed, played."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from mergefall.tetris import game, place
from mergefall.tetris.field import boards_of
from mergefall.tetris.heuristics.linear import FEATURES as ALL
from mergefall.tetris.heuristics.linear import linear
from mergefall.tetris.pieces import NAMES
from mergefall_baselines import make
from mergefall_baselines.arrays import write_arrays
from mergefall_training import evaluate
from mergefall_training.learn.models import flatten, load_model
from mergefall_training.learn.presets import configure
from mergefall_training.learn.run import CHECKPOINT, Config, Run, read_checkpoint, train
from mergefall_training.learn.td import train as td_train
from mergefall_training.learn.td.kernels import HELD, SCALES
from mergefall_training.learn.td.player import player
from mergefall_training.learn.td.train import Hyperparameters, Learner

TETRIS = "mergefall/Tetris-v0"
SMALL = {"cols": 5, "rows": 6, "preview": 0}
FEATURES = ["holes", "landing_height", "eroded_cells"]


def config(timesteps=3000, interval=1000, env_kwargs=SMALL, cap=None, **changed) -> Config:
    hyperparameters = {"blocks": "2x2", "n_steps": 20, "threads": 1} | changed
    return Config("td", TETRIS, env_kwargs, hyperparameters, timesteps, interval, 5, max_episode_steps=cap)


class PlainLearner:
    """TD(λ) with dictionaries: a value is the sum of entries, named after what they see, times their factors."""

    def __init__(self, hyperparameters: Hyperparameters) -> None:
        self.h = hyperparameters
        self.weights, self.net, self.size, self.path = {}, {}, {}, []

    def seen(self, board, placed):
        """(entry, factor) of a placement, an entry twice where two places that share it look alike."""
        terms = linear(FEATURES)().terms(placed)
        found: list[tuple[tuple[Any, ...], float]] = [
            (("bias",), 1.0),
            *(((name,), terms[name]) for name in self.h.features),
        ]
        rows, cols = board.shape
        for c in range(cols - 1):
            for y in range(rows - 1):
                cells = board[::-1][y : y + 2, c : c + 2]
                if not cells.any():
                    continue
                here, mirror = cells.tolist(), cells[:, ::-1].tolist()
                right = 2 * c > cols - 2  # five columns have no place in their middle
                c_, key = (cols - 2 - c, mirror) if right else (c, here)
                found.append((("block", c_, y, str(key)), 1.0))
        return found

    def value(self, entries):
        return sum(self.weights.get(entry, 0.0) * factor for entry, factor in entries)

    def learn_backwards(self, over):
        if over:
            target, last, paid = 0.0, len(self.path), 0.0
        else:
            target, last, paid = self.value(self.path[-1]), len(self.path) - 1, 1.0
        value = target
        for entries in reversed(self.path[:last]):
            target = paid + self.h.gamma * (self.h.td_lambda * target + (1 - self.h.td_lambda) * value)
            error = target - self.value(entries)
            for entry, factor in entries:
                scale = SCALES[ALL.index(entry[0])] ** 2 if entry[0] in ALL else 1.0
                change, share = error * factor * scale, 1.0
                if self.h.coherence:
                    if self.size.get(entry, 0.0) > 0:
                        share = abs(self.net[entry]) / self.size[entry]
                    self.net[entry] = self.net.get(entry, 0.0) + change
                    self.size[entry] = self.size.get(entry, 0.0) + abs(change)
                step = self.h.learning_rate / len(entries) * share
                self.weights[entry] = self.weights.get(entry, 0.0) + step * change
            value, paid = self.value(entries), 1.0
        self.path = [] if over else self.path[-1:]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"td_lambda": 0.0, "gamma": 0.9},
        {"coherence": False, "td_lambda": 1.0},
        {"features": FEATURES, "learning_rate": 0.02},
        {"features": FEATURES, "learning_rate": 0.02, "coherence": False},
    ],
    ids=["TC", "TD(0)", "TD(1)", "features with TC", "features"],
)
def test_games_are_learnt_from_as_the_plain_twin_does(options):
    """Placements are taken from the compiled learner: where two are worth the same, rounding decides."""
    learner = Learner(config(**options))
    twin = PlainLearner(learner.hyperparameters)
    state, games = learner.states[0], 0
    for _ in range(150):
        before, piece = boards_of(state[game.COLUMNS :].copy(), 6), int(state[game.QUEUE]) & 15
        step(learner)
        pieces, after = int(state[game.PIECES]), boards_of(state[game.COLUMNS :].copy(), 6)
        if pieces == 0:
            games += 1
            twin.learn_backwards(over=True)
        else:
            placed = which(before, piece, after)
            twin.path.append(twin.seen(placed.board, placed))
            if len(twin.path) == 21:
                twin.learn_backwards(over=False)
        total = sum(twin.weights.values())
        assert learner.weights.sum(dtype=np.float64) == pytest.approx(total, rel=1e-3, abs=1e-3)
        values = sorted(value for value in twin.weights.values() if abs(value) > 1e-4)
        found = np.sort(learner.weights[np.abs(learner.weights) > 1e-4])
        np.testing.assert_allclose(found, values, rtol=1e-3, atol=1e-4)
    assert games >= 3


def step(learner):
    """One piece, or the start of another game."""
    learner.play_on(0, 1)


def which(board, piece, after):
    """The placement of a piece that made a board of another."""
    for rotation in range(4):
        for column in range(5):
            try:
                placed = place(board, NAMES[piece], rotation, column)
            except ValueError:
                continue
            if not placed.over and (placed.board == after).all():
                return placed
    raise AssertionError("no placement leads there")


def test_one_piece_a_game_has_a_known_value():
    """With γ = 0 every placement is worth the one piece after it, 0 where that ends the game."""
    learner = Learner(config(20_000, gamma=0.0, td_lambda=0.0, coherence=False, learning_rate=0.1))
    while learner.step < 20_000:
        learner.learn()
    spec = {"env_id": TETRIS, "env_kwargs": learner.config.env_kwargs, "network": learner.network()}
    agent = player(spec, learner.arrays())
    values = agent.values({"board": np.zeros((6, 5), np.uint8), "piece": 1})
    assert values.max() == pytest.approx(1.0, abs=0.05)


class Killed(BaseException):
    """What no handler catches, as a kill is not."""


def test_a_resumed_run_ends_where_an_unbroken_one_ends(tmp_path, monkeypatch):
    asked = config(features=FEATURES, learning_rate=0.02, cap=300)
    train(tmp_path / "unbroken", asked, progress=False)
    calls = []

    def dying(function):
        def called(*arguments):
            calls.append(function)
            if len(calls) in (2, 6, 9):
                raise Killed
            return function(*arguments)

        return called

    monkeypatch.setattr(Learner, "learn", dying(Learner.learn))
    monkeypatch.setattr(Run, "save_checkpoint", dying(Run.save_checkpoint))
    kills = 0
    while True:
        try:
            run = train(tmp_path / "broken", asked, resume="auto", progress=False)
            break
        except Killed:
            kills += 1
    assert kills == 3
    assert [point.step for point in run.points] == [0, 1000, 2000, 3000]
    one, other = (load_model(tmp_path / name / "model.npz") for name in ("unbroken", "broken"))
    for name in ("places", "weights"):
        np.testing.assert_array_equal(one.arrays[name], other.arrays[name])


def test_threads_learn_together_and_cannot_be_changed(monkeypatch):
    learner = Learner(config(40_000, threads=2))
    figures = learner.learn()
    assert learner.step == 1000  # to the evaluation
    assert figures["games"] > 10
    assert (learner.states[0] != learner.states[1]).any()
    with pytest.raises(ValueError, match="begun with 2 threads; here are 1"):
        Learner(config(40_000)).restore(1000, learner.state())
    monkeypatch.setattr(td_train, "cores", lambda: 1)
    again = Learner(config(40_000, threads=None))  # as on a machine with fewer cores
    again.restore(1000, learner.state())
    again.learn()
    assert len(again.workers) == 2
    assert again.step == 2000


def test_a_run_folder_is_a_player_with_options(tmp_path):
    asked = config(20_000, 20_000, env_kwargs={"cols": 6, "rows": 8, "preview": 0})
    run = train(tmp_path, asked, progress=False)
    assert run.points[-1].mean > 5 * run.points[0].mean
    assert run.points[-1].mean > 2
    agent, deeper = make(str(tmp_path)), make(str(tmp_path), depth=2)
    kwargs = {"cols": 6, "rows": 8}
    observation, _ = gym.make(TETRIS, **kwargs).reset(seed=1)
    assert (agent.values(observation) != deeper.values(observation)).any()
    found = evaluate(str(tmp_path), TETRIS, 3, env_kwargs=kwargs, workers=1, progress=False)
    assert len(found.episodes) == 3
    with pytest.raises(ValueError, match="rows=8"):
        agent.play(TETRIS, 1, {"cols": 6, "rows": 9})


def test_linear_controllers_play_fields_of_any_height(tmp_path):
    asked = config(2000, 2000, blocks="", features=FEATURES, learning_rate=0.02, coherence=False)
    train(tmp_path, asked, progress=False)
    assert make(str(tmp_path)).play(TETRIS, 1, {"cols": 5, "rows": 12}).length


def test_a_model_that_does_not_fit_is_refused():
    learner = Learner(config())
    learner.learn()
    spec = {"env_id": TETRIS, "env_kwargs": learner.config.env_kwargs, "network": learner.network()}
    arrays = learner.arrays()
    player(spec, arrays)
    for name, array in (
        ("weights", arrays["weights"][1:]),
        ("places", arrays["places"].astype(np.int64)),
        ("places", arrays["places"] + np.uint32(learner.shape.size)),
        ("places", arrays["places"][::-1]),
        ("places", np.zeros_like(arrays["places"])),
        ("weights", arrays["weights"].astype(np.float64)),
    ):
        with pytest.raises(ValueError, match="a model's places and weights are"):
            player(spec, arrays | {name: array})
    with pytest.raises(ValueError, match="has no 'more'; it has places, weights"):
        player(spec, arrays | {"more": arrays["weights"]})
    with pytest.raises(ValueError, match="blocks is None"):
        player({**spec, "network": {}}, arrays)


@pytest.mark.parametrize("env_id", [TETRIS, "mergefall/SZTetris-v0", "mergefall/Quintris-v0"])
@pytest.mark.parametrize("name", [None, "linear"])
def test_presets_are_sound(env_id, name):
    shape = Learner(configure("td", env_id, preset=name)).shape
    assert bool(shape.features) == (name == "linear")
    assert shape.mirrored == (env_id != "mergefall/Quintris-v0")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"game": 1}, "td has no 'game'; it has blocks, features"),
        ({"learning_rate": 0}, "learning_rate is 0"),
        ({"gamma": 1.1}, "gamma is 1.1"),
        ({"td_lambda": -1}, "td_lambda is -1"),
        ({"coherence": 0.5}, "coherence is 0.5; expected true or false"),
        ({"n_steps": 0}, "n_steps is 0"),
        ({"threads": 0}, "threads is 0"),
        ({"features": "holes"}, "features is 'holes'; expected a list"),
    ],
)
def test_bad_hyperparameters(changes, message):
    with pytest.raises(ValueError, match=message):
        Hyperparameters.read(changes)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"features": ["hole"]}, "features are"),
        ({"blocks": "9x9"}, "block '9x9' does not fit 5 columns and 6 rows"),
        ({"env_kwargs": SMALL | {"reward": "score"}}, "no reward but lines"),
    ],
)
def test_what_cannot_be_learnt(asked, message):
    with pytest.raises(ValueError, match=message):
        Learner(config(**asked))


def changed(tree, path, value):
    """A copy of nested dictionaries, lists and arrays with `value`, or what it makes of the old one, at a path."""
    if not path:
        return value(tree) if callable(value) else value
    copied = tree.copy() if isinstance(tree, dict | np.ndarray) else list(tree)
    copied[path[0]] = changed(tree[path[0]], path[1:], value)
    return copied


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["states"], lambda states: states[:, :-1], r"state is uint64\[1, 13\]; expected uint64\[1, 14\]"),
        (["states", 0, game.QUEUE], 9, "state of game 0 has the queue 0x9"),
        (["states", 0, game.COLUMNS], 1 << 8, "game 0 is over"),
        (["workers", 0, HELD], 21, "counts of placements holds 21; expected 0 to 20"),
        (["workers", 0, HELD], -1, "workers holds -1"),
        (["workers"], lambda workers: workers.astype(np.int32), r"workers is int32\[1, 3\]; expected int64\[1, 3\]"),
        (["places", -1], 1 << 40, "places holds 1099511627776; expected 0 to"),
        (["places", 0], -1, "places holds -1"),
        (["weights"], lambda weights: weights[1:], r"weights is float32\[\d+\]"),
        (["coherence"], lambda array: array[:0], r"coherence is float32\[0, 2\]"),
        (["paths", 0, 0, 0, 5], (1 << 32) - 1, "a path's places holds 4294967295"),
        (["paths", 0, 0, 0, 0], 5, "a path's first places are"),
        (["paths", 0, 1], lambda factors: factors[:, 1:], "a path's factors is float64"),
        (["paths", 0, 2, 0], 1 << 20, "a path's counts holds 1048576; expected 4 to"),
        (["paths", 0, 2], lambda counts: counts[1:], "a path's counts is int64"),
        (["interval"], "0", "interval is '0'"),
    ],
)
def test_a_checkpoint_with_numbers_out_of_range_is_refused(path, value, message):
    """They say where the kernels write."""
    asked = config(features=FEATURES, learning_rate=0.02)
    learner = Learner(asked)
    learner.learn()
    while learner.workers[0, HELD] < 2:
        step(learner)
    state = learner.state()
    Learner(asked).restore(learner.step, state)
    fresh = Learner(asked)
    with pytest.raises(ValueError, match=message):
        fresh.restore(learner.step, changed(state, path, value))
    assert not fresh.weights.any()


def test_a_checkpoint_that_does_not_fit_names_its_file(tmp_path):
    asked = config()
    train(tmp_path, asked, progress=False)
    step, state, seconds = read_checkpoint(tmp_path)
    for kept, message in (
        (state | {"workers": [0]}, r"checkpoint\.npz does not fit the run: workers is \[0\]"),
        ({}, r"checkpoint\.npz does not fit the run: KeyError"),
    ):
        tree, arrays = flatten(kept)
        spec = {"step": step - 1, "seconds": seconds, "state": tree}  # there is something left to train
        write_arrays(tmp_path / "checkpoint.npz", CHECKPOINT, 1, spec, arrays)
        with pytest.raises(ValueError, match=message):
            train(tmp_path, asked, resume=True, progress=False)
    for spec, message in (
        ({"step": -1, "seconds": 0}, "step is -1"),
        ({"step": 0, "seconds": "0"}, "seconds is '0'"),
        ({"step": 0, "seconds": 0, "state": {"$array": "0"}}, r"checkpoint\.npz holds no state of a learner"),
    ):
        write_arrays(tmp_path / "checkpoint.npz", CHECKPOINT, 1, spec, {})
        with pytest.raises(ValueError, match=message):
            train(tmp_path, asked, resume=True, progress=False)
