"""Datasets hold a player's games as the environment plays them."""

import json
import warnings
from pathlib import Path

import minari
import numpy as np
import pytest
from mergefall_baselines import make
from mergefall_training import cli
from mergefall_training.learn import demonstrations
from mergefall_training.learn.demonstrations import demonstrate

from ...envs.tools import equal

G2048, TETRIS = "mergefall/Game2048-v0", "mergefall/Tetris-v0"
GAMES = [
    ("2048/random", G2048, {"rows": 3, "cols": 3, "reward": "log2"}, None),
    ("tetris/dellacherie", TETRIS, {"cols": 5, "rows": 6, "preview": 0}, 30),
    ("tetris/bcts", TETRIS, {"cols": 5, "rows": 6, "preview": 2, "placements": "slide"}, 30),
]


@pytest.fixture(autouse=True)
def _datasets(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "datasets"))


@pytest.mark.parametrize(("player", "env_id", "kwargs", "cap"), GAMES)
def test_a_dataset_is_what_the_gym_loop_sees(player, env_id, kwargs, cap):
    name = demonstrate(
        player,
        env_id,
        3,
        seed=1_000_007,
        env_kwargs=kwargs,
        max_episode_steps=cap,
        progress=False,
        dataset="mine/games-v0",
    )
    dataset = minari.load_dataset(name)
    assert dataset.total_episodes == 3
    assert dataset.spec.dataset_id == "mine/games-v0"
    metadata = json.loads(dataset.storage.metadata["mergefall"])
    assert (metadata["player"], metadata["seeds"]) == (player, [1_000_007, 1_000_009])
    env, searcher = dataset.recover_environment(), make(player).with_rules(metadata["env_kwargs"])
    assert env.spec.max_episode_steps == cap
    for seed, episode in enumerate(dataset.iterate_episodes(), start=1_000_007):
        observation, info = env.reset(seed=seed)
        state, time, over = searcher.start(seed), 0, False
        while not over:
            seen = episode.observations
            part = {key: value[time] for key, value in seen.items()} if isinstance(seen, dict) else seen[time]
            assert equal(plain(part), plain(observation))
            assert episode.infos["action_mask"][time].tolist() == info["action_mask"].tolist()
            action, state = searcher.predict(observation, state)
            assert episode.actions[time] == action
            observation, reward, terminated, truncated, info = env.step(int(action))
            assert episode.rewards[time] == reward
            assert (episode.terminations[time], episode.truncations[time]) == (terminated, truncated)
            time, over = time + 1, terminated or truncated
        assert time == len(episode.actions)


def plain(observation):
    """An observation without its scalars' types, which a file does not keep."""
    if isinstance(observation, dict):
        return {key: np.asarray(value).tolist() for key, value in sorted(observation.items())}
    return observation


def test_a_run_that_is_stopped_does_not_block_the_name(monkeypatch, tmp_path):
    def stopped(*_, **__):
        yield from ()
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(demonstrations, "play_all", stopped)
        with pytest.raises(KeyboardInterrupt):
            demonstrate("2048/greedy", G2048, 2, dataset="stopped-v0", progress=False)
    assert [path for path in (tmp_path / "datasets").iterdir() if path.is_dir()] == []
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # Minari warns of folders that it cannot read
        assert minari.list_local_datasets() == {}
        demonstrate("2048/greedy", G2048, 2, dataset="stopped-v0", progress=False)
        assert list(minari.list_local_datasets()) == ["stopped-v0"]


def test_names_that_cannot_be_had():
    demonstrate({"player": "2048/greedy"}, G2048, 1, dataset="taken-v0", progress=False)
    with pytest.raises(ValueError, match="there is a dataset 'taken-v0' already"):
        demonstrate("2048/greedy", G2048, 1, dataset="taken-v0", progress=False)
    for name in ("no version", "../up-v0"):
        with pytest.raises(ValueError, match="Malformed dataset ID"):
            demonstrate("2048/greedy", G2048, 1, dataset=name, progress=False)


def test_the_command(capsys):
    size = ["--env-option", "cols=4", "--env-option", "rows=4"]
    cli.main(["demonstrate", "tetris/bcts", *size, "--episodes", "2", "--workers", "1"])
    folder, _, load = capsys.readouterr().out.partition(": load it by ")
    assert Path(folder).is_dir()
    assert load == "minari.load_dataset('mergefall/Tetris/tetris-bcts-v0')\n"
    assert minari.load_dataset("mergefall/Tetris/tetris-bcts-v0").total_episodes == 2
