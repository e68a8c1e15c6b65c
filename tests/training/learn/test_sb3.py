"""Learners of Stable-Baselines3: a run that was stopped ends as an unbroken one; its folder is a player."""

import json
import pickle
import shutil
from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from mergefall_baselines import make
from mergefall_training.learn.models import load_model, save_model
from mergefall_training.learn.presets import configure
from mergefall_training.learn.run import open_run, read_config
from mergefall_training.learn.sb3 import train as sb3
from mergefall_training.learn.sb3.dqn import AfterstatesDQN
from mergefall_training.learn.sb3.networks import parameters_of
from mergefall_training.learn.sb3.vec_env import make_vec_env
from mergefall_training.play.evaluation import evaluate
from mergefall_training.play.match import Match
from mergefall_training.play.workers import play_all, process_pool, task
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3 import DQN
from stable_baselines3.common.logger import configure as configure_logger

from .small_runs import AFTERSTATES, NETWORK, OFF_POLICY, ON_POLICY, SMALL_NETWORK, TETRIS
from .small_runs import G2048 as GAME

SIZES = {GAME: {"rows": 2, "cols": 3}, TETRIS: {"cols": 4, "rows": 6}}


def config(algorithm="maskable-ppo", env_id=GAME, **changed):
    changed = {"maskable-ppo": ON_POLICY, "dqn": OFF_POLICY}[algorithm] | SMALL_NETWORK | changed
    return configure(
        algorithm, env_id, env_kwargs=SIZES[env_id], changed=changed, timesteps=128, interval=48, episodes=3
    )


def train(folder, what, resume=False):
    with open_run(folder, what, resume=resume, progress=False) as run:
        run.train()
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return train(tmp_path_factory.mktemp("runs") / "masked", config())


def test_a_run_folder_is_a_player(folder):
    player = make(str(folder))
    here = evaluate(player, GAME, 6, 0, {"rows": 2, "cols": 3}, progress=False)  # side by side
    assert here.header.options == {"checksum": load_model(folder / "best.npz").checksum[:16]}
    with process_pool(1) as pool:  # one by one, in another process
        alone = play_all(task(player, Match.read(GAME, {"rows": 2, "cols": 3})), range(6), 1, pool)
        games = {episode.seed: episode for episode in sorted(alone, key=lambda episode: episode.seed)}
    assert [replace(one, seconds=games[one.seed].seconds) for one in here.episodes] == list(games.values())


def test_a_player_is_its_model(folder, tmp_path):
    last, model = make(str(folder), model="last"), load_model(folder / "model.npz")
    assert last.options == {"model": "last", "checksum": model.checksum[:16]}
    assert pickle.loads(pickle.dumps(last)).options == last.options
    save_model(tmp_path / "model.npz", model.spec | {"step": 0}, model.arrays)
    with pytest.raises(ValueError, match="another model"):
        make(str(tmp_path / "model.npz"), checksum=model.checksum[:16])
    save_model(tmp_path / "model.npz", model.spec, dict(list(model.arrays.items())[1:]))
    with pytest.raises(ValueError, match="do not fit"):
        make(str(tmp_path / "model.npz"))
    with pytest.raises(ValueError, match="rows=2"):
        evaluate(last, GAME, 1, workers=1, progress=False)


def test_models_of_0_1_0_see_ranks_as_they_are(folder, tmp_path):
    """Their policies have no extractor `scaled`; a checkpoint of theirs does not fit one that has."""
    model, boards = load_model(folder / "model.npz"), make_vec_env(GAME, 8, 0, {"rows": 2, "cols": 3}).reset()
    older = model.spec | {"network": model.spec["network"] | SMALL_NETWORK}
    save_model(tmp_path / "older.npz", older, model.arrays)
    weights = {name: torch.from_numpy(array) for name, array in model.arrays.items()}
    for path, highest in ((folder / "model.npz", 7), (tmp_path / "older.npz", 1)):
        hidden = torch.from_numpy(boards.reshape(8, 6) / np.float32(highest))
        for layer in ("mlp_extractor.policy_net.0", "action_net"):
            hidden = hidden @ weights[f"{layer}.weight"].T + weights[f"{layer}.bias"]
            hidden = hidden.tanh() if layer.startswith("mlp") else hidden.log_softmax(dim=1)
        values = make(str(path)).values(boards)
        legal = np.isfinite(values)
        np.testing.assert_allclose(values[legal], hidden.numpy()[legal], rtol=1e-5)
    learner = sb3.Learner(config(), "cpu")
    state = learner.state()
    del state["policy"]["features_extractor.scales"]
    with pytest.raises(RuntimeError, match="scales"):
        learner.restore(0, state)


def test_searches_take_q_values_in_units_of_the_reward(tmp_path):
    folder = train(tmp_path / "run", config("dqn", normalize=True))
    player, model = make(str(folder), model="last"), load_model(folder / "model.npz")
    boards = make_vec_env(GAME, 8, 0, {"rows": 2, "cols": 3}).reset()
    values, of_boards = player.search_values(boards)
    assert of_boards is None
    np.testing.assert_array_equal(player.board_values(boards), values.max(axis=1))
    unit = model.spec["network"]["reward_unit"]
    assert abs(unit - 1) > 0.1
    raw = model.spec | {"network": model.spec["network"] | {"reward_unit": 1.0}}
    save_model(tmp_path / "raw.npz", raw, model.arrays)
    legal = np.isfinite(values)
    np.testing.assert_allclose(values[legal], unit * make(str(tmp_path / "raw.npz")).values(boards)[legal], rtol=1e-5)


def test_a_folder_holds_one_run(folder, tmp_path):
    with pytest.raises(ValueError, match="holds a training run"):
        train(folder, config())
    assert read_config(folder) == config()
    assert "torch" in json.loads((folder / "config.json").read_text())["versions"]
    with open_run(tmp_path / "held", config(), progress=False), pytest.raises(ValueError, match="another run"):
        train(tmp_path / "held", config(), resume=True)


def test_damaged_folders_are_refused(folder, tmp_path):
    run = shutil.copytree(folder, tmp_path / "run")
    config_text = (run / "config.json").read_bytes()
    for name, damaged in (
        ("checkpoint.npz", (run / "checkpoint.npz").read_bytes()[:-100]),
        ("config.json", config_text[:50]),
        ("config.json", config_text.replace(b"training run", b"run")),
        ("config.json", config_text.replace(b'"seed"', b'"sead"')),
        ("curve.jsonl", (run / "curve.jsonl").read_bytes().replace(b'"mean"', b'"man"')),
    ):
        whole = (run / name).read_bytes()
        (run / name).write_bytes(damaged)
        with pytest.raises(ValueError, match=name.replace(".", r"\.")):
            train(run, config(), resume=True)
        (run / name).write_bytes(whole)


def test_a_place_beyond_the_words_of_numpys_random_state_is_refused():
    """NumPy takes it, and reads there at the next draw."""
    learner = sb3.Learner(config(), "cpu")
    state, before = learner.state(), np.random.get_state()  # noqa: NPY002
    state["random"]["numpy"] = (*before[:2], 10**8, *before[3:])
    try:
        with pytest.raises(ValueError, match=r"the place in NumPy's random state is 100000000; expected .* 0 to 624"):
            learner.restore(0, state)
    finally:
        np.random.set_state(before)  # noqa: NPY002


def test_parameters_of_another_dtype_are_refused():
    policy = sb3.build(config(), "cpu").policy
    arrays = sb3.parameters_of(policy)
    sb3.set_parameters(policy, arrays)
    with pytest.raises(ValueError, match=r"differ in action_net.bias float32\[4\], action_net.bias float64\[4\], "):
        sb3.set_parameters(policy, {name: array.astype(np.float64) for name, array in arrays.items()})


def test_ctrl_c_says_how_to_go_on(tmp_path, monkeypatch):
    monkeypatch.setattr(sb3._Between, "_on_step", Mock(side_effect=KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt) as caught:
        train(tmp_path / "run", config())
    assert "--resume" in caught.value.__notes__[0]
    assert not list((tmp_path / "run").glob(".*"))


@pytest.mark.parametrize("name", ["MlpPolicy", "AfterstatesPolicy"])
def test_policies_compute_what_distributions_compute(name):
    """Values, log-probabilities and entropies are those of sb3-contrib's own methods on the same network."""
    model = sb3.build(config(policy=name, policy_kwargs=NETWORK), "cpu")
    policy, (boards, _) = model.policy, model.policy.obs_to_tensor(model.env.reset())
    masks = torch.as_tensor(model.env.unwrapped.envs.action_masks())
    with torch.no_grad():
        policy.action_net.apply(lambda part: [p.normal_() for p in part.parameters(recurse=False)])
        actions, values, log_probs = policy(boards, action_masks=masks)
        theirs = MaskableActorCriticPolicy.evaluate_actions(policy, boards, actions, action_masks=masks)
        ours = policy.evaluate_actions(boards, actions, action_masks=masks)
        best = policy(boards, deterministic=True, action_masks=masks)[0]
        distribution = policy.get_distribution(boards, action_masks=masks)
    torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close((values, log_probs), theirs[:2])
    assert masks.gather(1, actions[:, None]).all()
    assert torch.equal(best, distribution.mode())


def test_mixed_precision_computes_nearly_the_same():
    model = sb3.build(config(policy_kwargs=NETWORK), "cpu")
    extractor, boards = model.policy.features_extractor, model.policy.obs_to_tensor(model.env.reset())[0].float()
    computed = []
    for extractor.mixed_precision in (False, True):
        computed.append(extractor(boards))
    plain, mixed = computed
    torch.testing.assert_close(mixed, plain, rtol=0.05, atol=0.02)  # of one dtype
    assert not torch.equal(mixed, plain)
    mixed.sum().backward()
    assert {parameter.grad.dtype for parameter in extractor.parameters()} == {torch.float32}


@pytest.mark.parametrize("env_id", [GAME, TETRIS])
def test_dqn_over_afterstates_learns_as_that_of_stable_baselines3(env_id):
    """From legal and illegal actions; the parameters differ by no more than rounding."""
    network = {"policy": "AfterstatesPolicy", "policy_kwargs": NETWORK if env_id == GAME else AFTERSTATES}
    what = config("dqn", env_id, **network, learning_rate=0.001, learning_starts=120, buffer_size=160)
    learners = [sb3.build(what, "cpu") for _ in range(2)]
    assert type(learners[0]) is AfterstatesDQN
    before = parameters_of(learners[0].policy)
    for learner, kind in zip(learners, (AfterstatesDQN, DQN), strict=True):
        learner.set_logger(configure_logger(None, []))
        learner.learning_starts = 160
        learner.learn(160)  # random moves, from which nothing is learnt yet
        np.random.seed(0)  # noqa: NPY002 (draws the batches)
        kind.train(learner, gradient_steps=8, batch_size=32)
    ours, theirs = (parameters_of(learner.policy) for learner in learners)
    for name, expected in theirs.items():
        assert ours[name] == pytest.approx(expected, abs=1e-5)
        assert np.abs(expected - before[name]).max() > 1e-4
    batch, q_net = learners[0].replay_buffer.sample(160), learners[0].q_net
    each = q_net.features_extractor.each(q_net.extract_features(batch.observations, q_net.features_extractor))
    legal = each[torch.arange(160), batch.actions[:, 0], -1] > 0
    assert 0 < legal.float().mean() < 1
