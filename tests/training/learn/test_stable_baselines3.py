"""Beside Stable-Baselines3's own: batches as its `VecEnv`, policies that are exported, and its models as players."""

from concurrent.futures import ThreadPoolExecutor

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from mergefall.wrappers import flat, planes, replace_illegal
from mergefall_baselines import make, play_in_env
from mergefall_training import evaluate
from mergefall_training.learn.presets import configure
from mergefall_training.learn.run import train
from mergefall_training.learn.sb3.export import export
from mergefall_training.learn.sb3.vec_env import Infos, NativeVecEnv, make_vec_env
from mergefall_training.play.match import Match, environment
from mergefall_training.play.preferences import ModelPlayer, player_of_model
from mergefall_training.play.workers import task, unpack_task
from sb3_contrib import QRDQN, MaskablePPO, RecurrentPPO
from sb3_contrib.common.maskable.evaluation import evaluate_policy as masked_evaluate_policy
from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

GAMES = [  # id, arguments, cap, and whether episodes are cut off, or end, or both
    ("mergefall/Game2048-v0", {"rows": 2, "cols": 2, "illegal_limit": 2}, None, {True, False}),
    ("mergefall/Game2048-v0", {"rows": 2, "cols": 3, "reward": "log2"}, 8, {True}),
    ("mergefall/Tetris-v0", {"cols": 5, "rows": 5, "preview": 2}, None, {False}),
    ("mergefall/Tetris-v0", {"cols": 6, "rows": 10, "preview": 0}, 5, {True, False}),
    ("mergefall/Quintris-v0", {"cols": 8, "rows": 6, "illegal_limit": 1}, None, {True, False}),
]


def equal(one, other):
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(equal(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple | Infos):
        return len(one) == len(other) and all(map(equal, one, other))
    return np.asarray(one).dtype == np.asarray(other).dtype and np.array_equal(one, other)


@pytest.mark.parametrize(("env_id", "kwargs", "cap", "ends"), GAMES)
def test_as_single_environments(env_id, kwargs, cap, ends):
    native = make_vec_env(env_id, 3, env_kwargs=kwargs, max_episode_steps=cap)
    single = DummyVecEnv([lambda: gym.make(env_id, max_episode_steps=cap, **kwargs)] * 3)
    assert native.seed(7) == single.seed(7)
    assert native.observation_space == single.observation_space
    assert equal(native.reset(), single.reset())
    rng, ended = np.random.default_rng(0), set()
    for _ in range(80):
        masks = get_action_masks(native)
        np.testing.assert_array_equal(masks, get_action_masks(single))
        wanted = np.where(rng.random((3, 1)) < 0.2, ~masks, masks)  # illegal actions cut games off
        actions = np.argmax(wanted * rng.random(masks.shape), axis=1)
        found, expected = native.step(actions), single.step(actions)
        logged = [info.pop("episode", {}).keys() == {"r", "l", "t"} for info in found[3]]
        assert equal(found, expected)
        assert logged == found[2].tolist()
        ended |= {info["TimeLimit.truncated"] for info, done in zip(found[3], logged, strict=True) if done}
    assert ended == ends


def test_masks_are_one_array():
    envs = make_vec_env("mergefall/Game2048-v0", 4, seed=0)
    envs.reset()
    assert is_masking_supported(envs)
    assert is_masking_supported(VecNormalize(envs))
    masks = envs.env_method("action_masks")
    assert masks.shape == (4, 4)
    np.testing.assert_array_equal(envs.env_method("action_masks", indices=[2, 0]), masks[[2, 0]])
    assert not envs.has_attr("no_such_thing")


@pytest.mark.parametrize(
    ("name", "kwargs"), [("2048/greedy", {"rows": 2, "cols": 3}), ("tetris/dellacherie", {"cols": 5, "rows": 5})]
)
def test_search_players_play_in_the_masked_evaluate_policy(name, kwargs):
    env_id = "mergefall/Game2048-v0" if name.startswith("2048") else "mergefall/Tetris-v0"
    player, envs = make(name).with_rules(kwargs), make_vec_env(env_id, 2, 3, kwargs, max_episode_steps=40)
    found = masked_evaluate_policy(player, envs, 4, return_episode_rewards=True)
    envs.seed(3)
    assert found == evaluate_policy(player, envs, 4, return_episode_rewards=True)


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ValueError, match="autoreset_mode"):
        NativeVecEnv(gym.make_vec("mergefall/Game2048-v0", 2, autoreset_mode=AutoresetMode.NEXT_STEP))
    envs = make_vec_env("mergefall/Game2048-v0", 2)
    with pytest.raises(ValueError, match="indices=0"):
        envs.set_attr("render_mode", None, indices=0)
    envs.set_options([{}, {"board": [[1, 1, 0, 0]] + [[0] * 4] * 3}])
    with pytest.raises(ValueError, match="options differ"):
        envs.reset()
    envs.set_options({"board": [[1, 1, 0, 0]] + [[0] * 4] * 3})
    assert (envs.reset()[:, 0, :2] == 1).all()
    assert (envs.reset() > 0).sum() == 4


# -- exported policies -------------------------------------------------------------------------------------------------


G2048, TETRIS = "mergefall/Game2048-v0", "mergefall/Tetris-v0"


def positions(env_id, kwargs, player, count):
    """(observations, masks) of games that a player plays side by side."""
    envs = gym.make_vec(env_id, num_envs=64, autoreset_mode="SameStep", **kwargs)
    observations, infos = envs.reset(seed=0)
    for _ in range(count):
        yield observations, infos["action_mask"].astype(bool)
        observations, _, _, _, infos = envs.step(player.act(observations))


def test_a_policy_of_sb3_contrib_plays_as_the_agent_does(tmp_path):
    export("2048/distill", tmp_path / "model.zip")
    model, agent = MaskablePPO.load(tmp_path / "model.zip"), make("2048/distill")
    for observations, masks in positions(G2048, {}, agent, 5):
        actions, _ = model.predict(observations, action_masks=masks, deterministic=True)
        np.testing.assert_array_equal(actions, agent.act(observations))


@pytest.mark.parametrize(
    ("algorithm", "kind", "changed"),
    [
        ("maskable-ppo", MaskablePPO, {"n_envs": 2, "n_steps": 8, "batch_size": 16}),
        ("dqn", DQN, {"n_envs": 2, "learning_starts": 8, "buffer_size": 100}),
    ],
)
def test_a_run_is_exported(tmp_path, algorithm, kind, changed, command):
    kwargs = {"rows": 6, "cols": 5, "preview": 0}
    config = configure(algorithm, TETRIS, env_kwargs=kwargs, changed=changed, timesteps=32, episodes=2)
    train(tmp_path / "run", config, progress=False, device="cpu")
    assert f"{kind.__name__}.load(" in command("export --model last", tmp_path / "run", tmp_path / "model.zip")[0]
    model, agent = kind.load(tmp_path / "model.zip"), make(str(tmp_path / "run"), model="last")
    assert model.gamma == config.hyperparameters["gamma"]
    for observations, masks in positions(TETRIS, kwargs, agent, 4):
        given = {"action_masks": masks} if algorithm == "maskable-ppo" else {}
        actions, _ = model.predict(observations, deterministic=True, **given)
        rows, values = np.arange(len(actions)), agent.values(observations)
        legal = masks[rows, actions]  # without masks, a model may choose an illegal action
        assert (values[rows, actions] >= values.max(axis=1) - 1e-5)[legal].all()  # the network knows little: near ties
        assert algorithm != "maskable-ppo" or legal.all()


def test_what_cannot_be_exported(tmp_path):
    with pytest.raises(ValueError, match="tetris/afterstate is no policy of Stable-Baselines3"):
        export("tetris/afterstate", tmp_path / "model.zip")
    assert not list(tmp_path.iterdir())


def test_a_file_of_sb3_is_loaded_by_a_function_of_the_user(tmp_path, command, monkeypatch):
    monkeypatch.chdir(tmp_path)
    export("2048/distill", "model.zip")
    complaint = "model.zip is a model of Stable-Baselines3. Such a file runs code as it is loaded"
    assert complaint in command("evaluate model.zip")[1]
    (tmp_path / "own_model.py").write_text(
        "from sb3_contrib import MaskablePPO\n\ndef load(path='model.zip'):\n    return MaskablePPO.load(path)\n"
    )
    options = f"--env {G2048} --env-option goal=16 --episodes 2 --workers 1"
    assert "own_model:load" in command(f"evaluate own_model:load {options}")[0]


# -- its models as players ---------------------------------------------------------------------------------------------


FIELD = {"cols": 6, "rows": 8}


def same(env):
    return env


def assert_values(model, wrap, env_id, kwargs, normalized=same):
    """The player's values of legal actions are what the policy says of its view: Q-values, or log-probabilities."""
    (observation, info), (shown, _) = (wrapper(gym.make(env_id, **kwargs)).reset(seed=1) for wrapper in (same, wrap))
    policy, (tensors, _) = model.policy, model.policy.obs_to_tensor(normalized(shown))
    if isinstance(model, DQN):
        found = policy.q_net(tensors)
    elif isinstance(model, QRDQN):
        found = policy.quantile_net(tensors).mean(dim=1)
    else:
        found = policy.get_distribution(tensors).distribution.logits
    legal, values = info["action_mask"] == 1, task(model, Match.read(env_id, kwargs)).player.values(observation)
    np.testing.assert_allclose(values[legal], found[0].detach().numpy()[legal], rtol=1e-5)
    assert (values[~legal] == -np.inf).all()


@pytest.mark.parametrize(("kind", "wrap"), [(PPO, flat), (PPO, planes), (DQN, same), (QRDQN, same)])
@pytest.mark.parametrize(("env_id", "kwargs"), [(G2048, {"rows": 3}), (TETRIS, FIELD)])
def test_a_model_sees_what_it_was_trained_on(kind, wrap, env_id, kwargs):
    env, size = wrap(replace_illegal(gym.make(env_id, **kwargs))), "n_steps" if kind is PPO else "buffer_size"
    policy = "MultiInputPolicy" if wrap is same and env_id == TETRIS else "MlpPolicy"
    assert_values(kind(policy, env, seed=1, **{size: 64}), wrap, env_id, kwargs)


def test_a_maskable_model_plays_as_it_says_itself():
    model = MaskablePPO("MlpPolicy", gym.make(G2048), seed=2)
    found = evaluate(model, G2048, 3, progress=False)
    for episode in found.episodes:
        assert episode.score == play_in_env(model, G2048, episode.seed).figures["score"]


def test_a_model_of_other_observations_is_refused():
    model = PPO("MlpPolicy", flat(gym.make(G2048, rows=3)), n_steps=64)
    message = r"the model observes Box\(0.0, 1.0, \(168,\), float32\), but mergefall/Game2048-v0 shows Box.*\(4, 4\)"
    with pytest.raises(ValueError, match=message + r".*; by mergefall.wrappers.flat Box\(0.0, 1.0, \(288,\)"):
        evaluate(model, G2048, 1)


@pytest.mark.parametrize("wrap", [flat, same])
def test_the_statistics_of_a_normalised_model_are_applied(wrap):
    envs = VecNormalize(DummyVecEnv([lambda: wrap(replace_illegal(gym.make(G2048)))] * 4))
    model = PPO("MlpPolicy", envs, n_steps=64, batch_size=64, seed=1).learn(256)
    assert_values(model, wrap, G2048, {}, lambda shown: envs.normalize_obs(shown[None]))
    here = task(model, Match.read(G2048, None, 20))
    assert unpack_task(here.pack()).trajectory(3).actions.tolist() == here.trajectory(3).actions.tolist()


def test_threads_may_share_a_model():
    model = task(MaskablePPO("MlpPolicy", gym.make(G2048), seed=2), Match.read(G2048)).player
    boards = np.random.default_rng(0).integers(0, 5, (240, 4, 4), dtype=np.uint8)
    for player in (model, make("2048/distill")):
        with ThreadPoolExecutor(8) as pool:
            np.testing.assert_array_equal([*pool.map(player.values, boards)], [*map(player.values, boards)])


def test_what_is_no_model_or_remembers_stays_as_it_is():
    env = environment(G2048, {})
    player, recurrent = make("2048/greedy"), RecurrentPPO("MlpLstmPolicy", gym.make(G2048), n_steps=8)
    assert player_of_model(player, env, {}) is player
    assert player_of_model(recurrent, env, {}) is recurrent


def loaded(seed=4):
    return PPO("MlpPolicy", flat(gym.make(G2048)), n_steps=64, seed=seed)


def test_a_model_that_a_function_loads_travels_to_workers():
    job = task(make(f"{__name__}:loaded", seed=5), Match.read(G2048, None, 50))
    there = unpack_task(job.pack())
    assert there.trajectory(3, 50).actions.tolist() == job.trajectory(3, 50).actions.tolist()
    assert len(set(there.trajectory(3, 50).actions.tolist())) > 1


def test_a_model_of_the_game_alone_plays_matches():
    keys = "mergefall/TetrisKeys-v0"
    model = PPO("MultiInputPolicy", gym.make(keys), n_steps=64, seed=1)
    env = gym.make("mergefall/TetrisVersus-v0", opponent=model)
    observation, _ = env.reset(seed=0)
    assert not env.step(0)[2]
    player = ModelPlayer(model.policy, [], keys, {})
    alone = {name: part for name, part in observation.items() if name != "opponent"}
    np.testing.assert_array_equal(player.values(observation), player.values(alone))


def test_a_model_of_an_observation_wrapper_that_keeps_the_space_is_refused():
    env = gym.make(G2048)
    model = PPO(
        "MlpPolicy", gym.wrappers.TransformObservation(env, lambda seen: seen, env.observation_space), n_steps=64
    )
    with pytest.raises(
        ValueError, match=r"the observation wrapper TransformObservation; expected .*VecNormalize, or none"
    ):
        evaluate(model, G2048, 1)
