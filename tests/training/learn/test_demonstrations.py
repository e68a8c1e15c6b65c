"""Datasets hold a player's games as the environment plays them."""

import json
import warnings
from pathlib import Path

import minari
import numpy as np
import pytest
from mergefall_baselines import make
from mergefall_baselines.player import chosen_by, steps
from mergefall_training.learn import demonstrations
from mergefall_training.learn.demonstrations import demonstrate

G2048, TETRIS = "mergefall/Game2048-v0", "mergefall/Tetris-v0"
GAMES = [
    ("2048/random", G2048, {"rows": 3, "cols": 3, "reward": "log2"}, None),
    ("tetris/bcts", TETRIS, {"cols": 5, "rows": 6, "preview": 2, "placements": "slide"}, 30),
]


@pytest.fixture(autouse=True)
def _datasets(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "datasets"))


@pytest.mark.parametrize(("player", "env_id", "kwargs", "cap"), GAMES)
def test_a_dataset_is_what_the_gym_loop_sees(player, env_id, kwargs, cap):
    where = {"env_kwargs": kwargs, "max_episode_steps": cap}
    name = demonstrate(player, env_id, 3, dataset="mine/games-v0", seed=1_000_007, progress=False, **where)
    dataset = minari.load_dataset(name)
    assert (dataset.spec.dataset_id, dataset.total_episodes) == ("mine/games-v0", 3)
    metadata = json.loads(dataset.storage.metadata["mergefall"])
    assert (metadata["player"], metadata["seeds"]) == (player, [1_000_007, 1_000_009])
    env, searcher = dataset.recover_environment(), make(player).with_rules(metadata["env_kwargs"])
    assert env.spec.max_episode_steps == cap
    for seed, episode in enumerate(dataset.iterate_episodes(), start=1_000_007):
        first, *played = steps(env, seed, chosen_by(searcher, seed))
        for time, step in enumerate([first, *played]):
            seen = episode.observations
            part = {key: value[time] for key, value in seen.items()} if isinstance(seen, dict) else seen[time]
            np.testing.assert_equal(part, step.observation)
            assert episode.infos["action_mask"][time].tolist() == step.info["action_mask"].tolist()
        found = zip(episode.actions, episode.rewards, episode.terminations, episode.truncations, strict=True)
        assert [*found] == [(step.action, step.reward, step.terminated, step.truncated) for step in played]


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


def test_the_command(command):
    size = "--env-option cols=4 --env-option rows=4"
    folder, _, load = command(f"demonstrate tetris/bcts {size} --episodes 2 --workers 1")[0].partition(": load it by ")
    assert Path(folder).is_dir()
    assert load == "minari.load_dataset('mergefall/Tetris/tetris-bcts-v0')\n"
    assert minari.load_dataset("mergefall/Tetris/tetris-bcts-v0").total_episodes == 2
