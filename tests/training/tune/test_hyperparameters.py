"""Hyper-parameter search: a stopped search resumes to the same end; folders and errors are checked."""

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

pytest.importorskip("optuna")
pytest.importorskip("sb3_contrib")
import optuna
from mergefall_training import learn
from mergefall_training.cli import main
from mergefall_training.learn.presets import configure, load_preset
from mergefall_training.learn.run import EVALUATION_SEED, Run, read_config, read_curve
from mergefall_training.tune import hyperparameters
from mergefall_training.tune.hyperparameters import (
    Budget,
    HyperparameterTrial,
    Search,
    print_search,
    search,
)
from mergefall_training.tune.suggest import Choice, Range, space_of, suggest
from mergefall_training.tune.weights import FINAL_SEED, TRIAL_SEED
from mergefall_training.yaml_numbers import load_yaml

SMALL = Budget(trials=3, episodes=2, finalists=1, finals=2, seed=3)
HELD = {"n_envs": 4, "n_steps": 8, "batch_size": 16, "n_epochs": 1}
HELD |= {"policy": "MlpPolicy", "policy_kwargs": {"net_arch": []}}
HELD |= {"gae_lambda": 0.9, "ent_coef": 0.01, "clip_range": 0.2, "vf_coef": 0.5, "max_grad_norm": 0.5}
SPACE = {"gamma": [0.5, 0.99], "learning_rate": {"low": 1e-4, "high": 1.0, "log": True, "prefix": "lin_"}}


def run(out, budget=SMALL, **changed):
    arguments = {"timesteps": 96, "space": SPACE, "changed": HELD, "env_kwargs": {"rows": 2, "cols": 2}} | changed
    return search("maskable-ppo", budget=budget, out=out, device="cpu", progress=False, **arguments)


def timeless(found):
    return [replace(trial, seconds=0.0) for trial in (*found.trials, *found.finalists)]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A folder with an unbroken search, and what was found."""
    folder = tmp_path_factory.mktemp("searches") / "whole"
    return folder, run(folder)


def test_the_preset_is_first_and_finalists_have_fresh_seeds_and_games(whole):
    found = whole[1]
    assert len(found.trials) == SMALL.trials
    preset = load_preset("maskable-ppo", "mergefall/Game2048-v0")
    assert found.trials[0].hyperparameters == {name: preset[name] for name in ("learning_rate", "gamma")}
    for trial in found.trials:
        assert (trial.seeds, trial.first_game, trial.games) == ([3], TRIAL_SEED, 2)
    for trial in found.finalists:
        assert (trial.seeds, trial.first_game, trial.games) == ([4, 5], FINAL_SEED, 2)
        assert trial.hyperparameters == found.trials[trial.number].hyperparameters
    best = max(found.trials[1:], key=lambda trial: trial.value)
    assert {trial.number for trial in found.finalists} == {0, best.number}
    assert found.finalists[0].value >= found.finalists[1].value
    assert found.hyperparameters == HELD | found.finalists[0].hyperparameters
    assert FINAL_SEED + SMALL.finals * SMALL.episodes <= EVALUATION_SEED


def test_each_run_is_trained_as_its_trial_says(whole):
    folder, found = whole
    for trial in (*found.trials, *found.finalists):
        for seed in trial.seeds:
            config = read_config(folder / f"trial-{trial.number:03}" / f"seed-{seed}")
            expected = configure(
                "maskable-ppo",
                env_kwargs={"rows": 2, "cols": 2},
                changed=HELD | trial.hyperparameters,
                timesteps=96,
                interval=19,
                episodes=10,
                seed=seed,
            )
            assert config == expected


class Killed(BaseException):
    """What no handler catches, as a kill is not."""


@pytest.mark.parametrize(("checkpoints", "trials"), [(3, 0), (11, 2), (18, 3)])
def test_a_stopped_search_ends_as_an_unbroken_one(whole, tmp_path, monkeypatch, checkpoints, trials):
    """It is stopped in the middle of the first, of the last trial, and of the finals."""
    calls = 0

    def killing(run, *arguments):
        nonlocal calls
        calls += 1
        if calls == checkpoints:
            raise Killed
        return save(run, *arguments)

    save = Run.save_checkpoint
    with monkeypatch.context() as patch:
        patch.setattr(Run, "save_checkpoint", killing)
        with pytest.raises(Killed):
            run(tmp_path)
    assert len((tmp_path / "trials.jsonl").read_text().splitlines()) == 1 + trials
    assert timeless(run(tmp_path)) == timeless(whole[1])
    for curve in whole[0].rglob("curve.jsonl"):
        points = [replace(point, seconds=0.0) for point in read_curve(curve.parent)]
        again = read_curve(tmp_path / curve.parent.relative_to(whole[0]))
        assert [replace(point, seconds=0.0) for point in again] == points


def test_trials_on_file_are_not_trained_again(whole, monkeypatch):
    folder, found = whole
    before = (folder / "trials.jsonl").read_bytes()
    monkeypatch.setattr(hyperparameters, "_train_and_play", None)
    assert run(folder) == found
    assert (folder / "trials.jsonl").read_bytes() == before


def test_a_ctrl_c_says_how_to_go_on_with_the_search_alone(tmp_path, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Run, "save_checkpoint", stop)
    with pytest.raises(KeyboardInterrupt) as interrupt:
        run(tmp_path)
    notes = [f"0 trials are in {tmp_path / 'trials.jsonl'}; the same call resumes"]
    assert interrupt.value.__notes__ == notes


def test_damage_and_other_searches_are_errors(whole, tmp_path, monkeypatch):
    path = tmp_path / "trials.jsonl"
    lines = (whole[0] / "trials.jsonl").read_text().splitlines(keepends=True)
    trial = json.loads(lines[1])
    monkeypatch.setattr(hyperparameters, "_train_and_play", None)

    def complaint(*changed, **arguments):
        path.write_text("".join(changed))
        with pytest.raises(ValueError, match=r"trials\.jsonl") as error:
            run(tmp_path, **arguments)
        assert path.read_text() == "".join(changed)
        return str(error.value)

    assert "line 2" in complaint(lines[0], "{]\n")
    assert "line 2: a trial has the fields" in complaint(lines[0], '{"number": 0}\n')
    assert "line 2: means are ['high'], seconds is " in complaint(
        lines[0], json.dumps(trial | {"means": ["high"]}) + "\n"
    )
    assert "expected a mean for each seed" in complaint(lines[0], json.dumps(trial | {"seeds": [3, 4]}) + "\n")
    assert "line 3: the file has" in complaint(*lines[:2], lines[3])
    assert "another run: settings.trials is 3 there, 4 here." in complaint(*lines, budget=replace(SMALL, trials=4))
    assert "timesteps is 96 there, 192 here" in complaint(*lines, timesteps=192)
    assert "format is 'mergefall tuning'" in complaint('{"format": "mergefall tuning"}\n')


def trial_of(hyperparameters, value, number=0):
    return HyperparameterTrial(number, hyperparameters, [0], TRIAL_SEED, 1, [value], 0.0)


def test_suggestions_follow_from_the_trials_and_the_seed():
    space = space_of({"x": {"low": 0.0, "high": 1.0}, "n": {"low": 1, "high": 64, "log": True}, "c": [[1], {"a": 2}]})
    trials = [trial_of({"x": 5.0, "c": [1]}, 1.0)]  # a preset without n, and with x outside
    while len(trials) < 30:
        trying = suggest(space, trials, seed=1)
        assert trying is not None
        assert trying == suggest(
            space, [HyperparameterTrial(**json.loads(json.dumps(asdict(trial)))) for trial in trials], seed=1
        )
        assert trying != suggest(space, trials, seed=2)
        assert 0 <= trying["x"] <= 1
        assert trying["n"] in range(1, 65)
        assert trying["c"] in ([1], {"a": 2})
        trials.append(trial_of(trying, 1 - abs(trying["x"] - 0.7), len(trials)))
    late = [abs(trial.hyperparameters["x"] - 0.7) for trial in trials[20:]]
    early = [abs(trial.hyperparameters["x"] - 0.7) for trial in trials[1:11]]
    assert sum(late) < 0.7 * sum(early)  # what is better is found, not drawn at random


def test_nothing_is_tried_twice():
    space, trials = space_of({"a": [1, 2, 3], "b": {"low": 1, "high": 2}}), []
    while (trying := suggest(space, trials, seed=0)) is not None:
        trials.append(trial_of(trying, float(trying["a"])))
    assert len(trials) == 6
    assert len({tuple(trial.hyperparameters.values()) for trial in trials}) == 6


def test_optuna_is_as_talkative_as_before():
    before = optuna.logging.get_verbosity()
    suggest(space_of({"a": [1]}), [], seed=0)
    assert optuna.logging.get_verbosity() == before


def test_values_and_points_of_a_dimension():
    rate = Range(1e-4, 1e-2, log=True, prefix="lin_")
    assert [rate.point(value) for value in ("lin_0.001", "lin_1", 0.001, "lin_fast", None)] == [0.001] + [None] * 4
    assert Range(0.00012345, 1.0).value(0.00012345) == 0.00012345  # not rounded out of the range
    whole = Range(1, 8)
    assert [whole.point(value) for value in (8, 9, 2.0, True)] == [8, None, None, None]
    assert [Choice([0.0, "a"]).point(value) for value in (0.0, "a", "b")] == [0, 1, None]


@pytest.mark.filterwarnings("ignore:.*encountered:RuntimeWarning")  # as numbers grow too large
@pytest.mark.parametrize("timesteps", [256, 2560])  # evaluations after every rollout; between them, too
def test_a_run_that_learns_too_fast_for_numbers_counts_as_nothing(tmp_path, timesteps):
    changed = HELD | {"gamma": 0.9, "policy_kwargs": {"net_arch": [8], "activation_fn": "relu"}}
    budget = replace(SMALL, trials=2)
    found = run(tmp_path, space={"learning_rate": [1e25]}, changed=changed, budget=budget, timesteps=timesteps)
    assert found.trials[1].means == [0.0]
    assert found.finalists[0].number == 0
    assert found.finalists[0].value > 0


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"space": {"learning_rat": [1, 2]}}, "no 'learning_rat'"),
        ({"space": {"n_timesteps": [1, 2]}}, "n_timesteps is no hyper-parameter"),
        ({"space": {"gamma": [0.9, 1.5]}}, "gamma is 1.5"),
        ({"space": {"gamma": []}}, "space of gamma is .*no choices"),
        ({"space": {"gamma": 0.9}}, "space of gamma is 0.9: expected a list"),
        ({"space": {"gamma": {"low": 0.9}}}, "space of gamma is .*expected a list, or low and high"),
        ({"space": {"gamma": {"low": 0.9, "high": 0.99, "step": 1}}}, "step"),
        ({"space": {"gamma": {"low": 0.99, "high": 0.9}}}, "low is 0.99, high is 0.9"),
        ({"space": {"gamma": {"low": "a", "high": 0.9}}}, "low is 'a'"),
        ({"space": {"gamma": {"low": 0, "high": 0.9, "log": True}}}, "for a logarithm"),
        ({"space": {"learning_rate": {"low": 1e-4, "high": 1e-3, "prefix": "log_"}}}, "'log_0.0001'"),
        ({"space": {"n_envs": [4]}}, "n_envs is set to 4 and to be searched"),
        ({"changed": HELD | {"n_envs": 3}}, "multiple of batch_size"),
        ({"changed": {"n_envs": 32}, "space": {"n_steps": [8, 32], "batch_size": [256, 1024]}}, "multiple of batch"),
        ({"changed": {}, "space": {"batch_size": {"low": 512, "high": 1024}}}, "n_steps=4, batch_size=513"),
        ({"timesteps": 0}, "timesteps is 0"),
        ({"changed": dict.fromkeys(load_preset("maskable-ppo", "mergefall/Tetris-v0"), 1), "space": {}}, "all set"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_trained(tmp_path, changed, complaint):
    with pytest.raises(ValueError, match=complaint):
        run(tmp_path / "out", **changed)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "changed", [{"trials": 1}, {"seeds": 0}, {"episodes": 0}, {"finalists": 0}, {"finals": 1}, {"seed": 4000}]
)
def test_bad_budgets(changed):
    with pytest.raises(ValueError, match=f"{next(iter(changed))} is "):
        Budget(**changed)


def presets():
    for algorithm in sorted(load_yaml(Path(hyperparameters.__file__).with_name("spaces.yaml").read_text())):
        folder = Path(learn.__file__).parent / learn.folder_of(algorithm)
        for env_id in load_yaml((folder / "preset.yaml").read_text(encoding="utf-8"))[algorithm]:
            yield algorithm, env_id


@pytest.mark.parametrize(("algorithm", "env_id"), list(presets()))
def test_usual_spaces_hold_their_presets(algorithm, env_id, tmp_path, monkeypatch):
    class TriedError(Exception):
        pass

    def refuse(run, config, *_):
        raise TriedError

    monkeypatch.setattr(hyperparameters, "_train_and_play", refuse)
    with pytest.raises(TriedError):  # nothing before was refused
        search(algorithm, env_id, out=tmp_path, progress=False)
    preset = load_preset(algorithm, env_id)
    space = space_of(json.loads((tmp_path / "trials.jsonl").read_text())["space"])
    outside = {name for name in space if name in preset and space[name].point(preset[name]) is None}
    assert not outside


def test_every_algorithm_has_a_space():
    spaces = load_yaml(Path(hyperparameters.__file__).with_name("spaces.yaml").read_text())
    assert set(spaces) == set(learn.ALGORITHMS)


def test_the_best_is_printed_as_a_preset_and_the_command_line_take_it(capsys):
    best = {"learning_rate": "lin_0.0003", "n_epochs": 3, "policy_kwargs": {"net_arch": [8]}}
    trials = [trial_of({}, 1.0), trial_of(best, 2.0, 1)]
    finalists = [
        HyperparameterTrial(1, best, [1, 2, 3], FINAL_SEED, 5, [9.0, 10.0, 11.0], 1.0),
        HyperparameterTrial(0, {}, [1, 2, 3], FINAL_SEED, 5, [1.0, 2.0, 3.0], 1.0),
    ]
    print_search(Search(best, finalists, trials))
    first, second, third, *preset, options = capsys.readouterr().out.splitlines()
    assert first == "mean 10.0 [7.5, 12.5], 3 runs, training seeds 1-3, N=5 each, seeds 750000-750014: trial 1"
    assert second.endswith(": the preset")
    assert third == "best after 2 trials (its mean is a little high: it is the best of 2):"
    assert load_yaml("\n".join(preset)) == best
    expected = """--set learning_rate=lin_0.0003 --set n_epochs=3 --set policy_kwargs='{"net_arch": [8]}'"""
    assert options == expected


def test_the_command_searches_and_resumes(tmp_path, capsys):
    command = [
        "tune",
        "hyperparameters",
        "--trials",
        "2",
        "ppo",
        "--out",
        str(tmp_path / "out"),
        "--timesteps",
        "64",
        "--device",
        "cpu",
    ]
    command += ["--env-option", "rows=2", "--env-option", "cols=2", "--episodes", "1", "--finalists", "1"]
    command += ["--finals", "2", "--space", "gamma=[0.9, 0.99]"]
    command += [f"--set={name}={json.dumps(value)}" for name, value in HELD.items()]
    main(command)
    printed = capsys.readouterr().out
    assert "best after 2 trials" in printed
    assert "--set n_envs=4" in printed.splitlines()[-1]
    main(command)
    assert capsys.readouterr().out == printed


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["hyperparameters", "ppo", "--step", "0.5"], "--step"),
        (["hyperparameters", "ppo", "--option", "depth=2"], "--option"),
        (["weights", "2048/greedy", "--space", "gamma=[1]"], "--space"),
        (["weights", "2048/greedy", "--out", "ppo", "--timesteps", "5"], "--timesteps"),
        (["hyperparameters", "ppo", "--space", "gamma"], "NAME=VALUE"),
        (["hyperparameters", "ppo", "--trials", "0"], "trials is 0"),
    ],
)
def test_options_of_the_other_use_and_bad_ones_are_refused_by_name(capsys, arguments, complaint):
    with pytest.raises(SystemExit) as end:
        main(["tune", *arguments])
    assert end.value.code == 2
    assert complaint in capsys.readouterr().err
