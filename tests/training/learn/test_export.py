"""Exported policies are loaded by sb3-contrib and Stable-Baselines3, and choose what the agents choose."""

import gymnasium as gym
import numpy as np
import pytest
from mergefall_baselines import make
from mergefall_training.cli import main
from mergefall_training.learn.presets import configure
from mergefall_training.learn.run import train
from mergefall_training.learn.sb3.export import export
from sb3_contrib import MaskablePPO
from stable_baselines3 import DQN

GAME, TETRIS = "mergefall/Game2048-v0", "mergefall/Tetris-v0"


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
    for observations, masks in positions(GAME, {}, agent, 5):
        actions, _ = model.predict(observations, action_masks=masks, deterministic=True)
        np.testing.assert_array_equal(actions, agent.act(observations))


@pytest.mark.parametrize(
    ("algorithm", "kind", "changed"),
    [
        ("maskable-ppo", MaskablePPO, {"n_envs": 2, "n_steps": 8, "batch_size": 16}),
        ("dqn", DQN, {"n_envs": 2, "learning_starts": 8, "buffer_size": 100}),
    ],
)
def test_a_run_is_exported(tmp_path, algorithm, kind, changed, capsys):
    kwargs = {"rows": 6, "cols": 5, "preview": 0}
    config = configure(algorithm, TETRIS, env_kwargs=kwargs, changed=changed, timesteps=32, episodes=2)
    train(tmp_path / "run", config, progress=False, device="cpu")
    main(["export", str(tmp_path / "run"), str(tmp_path / "model.zip"), "--model", "last"])
    assert f"{kind.__name__}.load(" in capsys.readouterr().out
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


def test_a_file_of_sb3_is_loaded_by_a_function_of_the_user(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    export("2048/distill", "model.zip")
    with pytest.raises(SystemExit):
        main(["evaluate", "model.zip"])
    assert "model.zip is a model of Stable-Baselines3. Such a file runs code as it is loaded" in capsys.readouterr().err
    (tmp_path / "own_model.py").write_text(
        "from sb3_contrib import MaskablePPO\n\ndef load(path='model.zip'):\n    return MaskablePPO.load(path)\n"
    )
    arguments = ["--env", GAME, "--env-option", "goal=16", "--episodes", "2", "--workers", "1"]
    main(["evaluate", "own_model:load", *arguments])
    assert "own_model:load" in capsys.readouterr().out
