"""Models of Stable-Baselines3 in `evaluate`: what they see is recognised, and they choose legal actions only."""

from concurrent.futures import ThreadPoolExecutor

import gymnasium as gym
import numpy as np
import pytest
from mergefall.games import batch_of_one
from mergefall.wrappers import flat, planes, replace_illegal
from mergefall_baselines import Player, make, play_in_env
from mergefall_training import evaluate
from mergefall_training.play.match import Match, environment
from mergefall_training.play.preferences import ModelPlayer, player_of_model
from mergefall_training.play.workers import task, unpack_task
from sb3_contrib import QRDQN, MaskablePPO, RecurrentPPO
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

G2048, TETRIS = "mergefall/Game2048-v0", "mergefall/Tetris-v0"
FIELD = {"cols": 6, "rows": 8}


class ByHand(Player):
    """Asks a policy for the probabilities of one view at a time, and chooses the most probable legal action."""

    def __init__(self, model, wrap, env_id, kwargs):
        self.model, self.env = model, wrap(gym.make(env_id, **kwargs))

    def predict(self, observation, state=None, episode_start=None, deterministic=True, action_masks=None):
        seen, _ = self.model.policy.obs_to_tensor(self.env._view(batch_of_one(observation)))
        chances = self.model.policy.get_distribution(seen).distribution.probs[0].detach().numpy()
        return np.where(action_masks, chances, -1).argmax(), None


@pytest.mark.parametrize("wrap", [flat, planes])
@pytest.mark.parametrize(("env_id", "kwargs"), [(G2048, {"rows": 3}), (TETRIS, FIELD)])
def test_a_model_sees_what_it_was_trained_on(wrap, env_id, kwargs):
    model = PPO("MlpPolicy", wrap(replace_illegal(gym.make(env_id, **kwargs))), n_steps=64, seed=1)
    found = evaluate(model, env_id, 4, env_kwargs=kwargs, max_episode_steps=60, progress=False)
    for episode in found.episodes:
        game = play_in_env(ByHand(model, wrap, env_id, kwargs), env_id, episode.seed, kwargs, 60)
        assert episode.length == len(game)
        assert episode.result == game.figures[found.headline]


def test_a_maskable_model_plays_as_it_says_itself():
    model = MaskablePPO("MlpPolicy", gym.make(G2048), seed=2)
    found = evaluate(model, G2048, 3, progress=False)
    for episode in found.episodes:
        assert episode.score == play_in_env(model, G2048, episode.seed).figures["score"]


@pytest.mark.parametrize("kind", [DQN, QRDQN])
def test_values_are_q_values(kind):
    env = gym.make(TETRIS, **FIELD)
    model = kind("MultiInputPolicy", env, buffer_size=100, seed=3)
    player = task(model, Match.read(TETRIS, FIELD)).player
    observation, info = env.reset(seed=1)
    tensors, _ = model.policy.obs_to_tensor(observation)
    found = model.policy.q_net(tensors) if kind is DQN else model.policy.quantile_net(tensors).mean(dim=1)
    legal = info["action_mask"] == 1
    np.testing.assert_allclose(player.values(observation)[legal], found[0].detach().numpy()[legal], rtol=1e-5)
    assert (player.values(observation)[~legal] == -np.inf).all()


def test_a_model_of_other_observations_is_refused():
    model = PPO("MlpPolicy", flat(gym.make(G2048, rows=3)), n_steps=64)
    message = r"the model observes Box\(0.0, 1.0, \(168,\), float32\), but mergefall/Game2048-v0 shows Box.*\(4, 4\)"
    with pytest.raises(ValueError, match=message + r".*; by mergefall.wrappers.flat Box\(0.0, 1.0, \(288,\)"):
        evaluate(model, G2048, 1)


@pytest.mark.parametrize("wrap", [flat, lambda env: env])
def test_the_statistics_of_a_normalised_model_are_applied(wrap):
    envs = VecNormalize(DummyVecEnv([lambda: wrap(replace_illegal(gym.make(G2048)))] * 4))
    model = PPO("MlpPolicy", envs, n_steps=64, batch_size=64, seed=1).learn(256)
    player = task(model, Match.read(G2048)).player
    observation, info = gym.make(G2048).reset(seed=1)
    shown = wrap(gym.make(G2048)).reset(seed=1)[0]
    tensors, _ = model.policy.obs_to_tensor(envs.normalize_obs(shown[None]))
    found = model.policy.get_distribution(tensors).distribution.logits[0].detach().numpy()
    legal = info["action_mask"] == 1
    np.testing.assert_array_equal(player.values(observation)[legal], found[legal])
    here = task(model, Match.read(G2048, None, 20))
    assert unpack_task(here.pack()).trajectory(3).actions.tolist() == here.trajectory(3).actions.tolist()


def test_threads_may_share_a_model():
    players = task(MaskablePPO("MlpPolicy", gym.make(G2048), seed=2), Match.read(G2048)).player, make("2048/distill")
    boards = list(np.random.default_rng(0).integers(0, 5, (240, 4, 4), dtype=np.uint8))
    for player in players:
        expected = [player.values(board) for board in boards]
        with ThreadPoolExecutor(8) as pool:
            assert np.array_equal(expected, list(pool.map(player.values, boards)))


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
