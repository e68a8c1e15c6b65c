"""Datasets and pools of starts hold a player's games as the environment plays them."""

import json
import warnings
from pathlib import Path

import gymnasium as gym
import minari
import numpy as np
import pytest
from mergefall_baselines import make
from mergefall_training import cli
from mergefall_training.learn.clone import demonstrations
from mergefall_training.learn.clone.demonstrations import demonstrate, recorded
from mergefall_training.play.replay import Replay, replays
from mergefall_training.play.starts import collect_starts
from mergefall_training.play.workers import task
from mergefall_training.wrappers.starts import load_starts, with_starts

from ...envs.tools import equal

G2048, TETRIS = "mergefall/Game2048-v0", "mergefall/Tetris-v0"
GAMES = [
    ("2048/random", G2048, {"rows": 3, "cols": 3, "reward": "log2"}, None),
    ("tetris/dellacherie", TETRIS, {"cols": 5, "rows": 6, "preview": 0}, 30),
    ("tetris/two-tetrad", TETRIS, {"cols": 5, "rows": 6, "preview": 2, "placements": "slide"}, 30),
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


def test_what_is_recorded_comes_back_as_it_was_played():
    name = demonstrate("tetris/bcts", TETRIS, 2, env_kwargs={"cols": 4, "rows": 4}, progress=False)
    assert name == "mergefall/Tetris/tetris-bcts-v0"
    about, found = recorded(name)
    job = task(make(about["player"], **about["options"]), about["env_id"], about["env_kwargs"], None)
    for game, again in zip(found, replays(job, [1_000_000, 1_000_001]), strict=True):
        assert isinstance(game, Replay)
        assert equal(game.__dict__ | {"observations": None}, again.__dict__ | {"observations": None})
        assert plain(game.observations) == plain(again.observations)


def test_a_run_that_is_stopped_does_not_block_the_name(monkeypatch, tmp_path):
    def stopped(*_):
        yield from ()
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(demonstrations, "replays", stopped)
        with pytest.raises(KeyboardInterrupt):
            demonstrate("2048/greedy", G2048, 2, dataset="stopped-v0", progress=False)
    assert [path for path in (tmp_path / "datasets").iterdir() if path.is_dir()] == []
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # Minari warns of folders that it cannot read
        assert minari.list_local_datasets() == {}
        demonstrate("2048/greedy", G2048, 2, dataset="stopped-v0", progress=False)
        assert list(minari.list_local_datasets()) == ["stopped-v0"]


def test_names_that_cannot_be_had(tmp_path):
    demonstrate("2048/greedy", G2048, 1, dataset="taken-v0", progress=False)
    with pytest.raises(ValueError, match="there is a dataset 'taken-v0' already"):
        demonstrate("2048/greedy", G2048, 1, dataset="taken-v0", progress=False)
    for name in ("no version", "../up-v0"):
        with pytest.raises(ValueError, match="no name that Minari takes"):
            demonstrate("2048/greedy", G2048, 1, dataset=name, progress=False)
    with pytest.raises(ValueError, match="there is no dataset 'absent-v0'"):
        recorded("absent-v0")
    folder = tmp_path / "datasets" / "taken-v0" / "data" / "metadata.json"
    folder.write_text(folder.read_text().replace("mergefall demonstrations", "another"))
    with pytest.raises(ValueError, match="not written by `mergefall demonstrate`"):
        recorded("taken-v0")


def test_the_command(capsys):
    size = ["--env-option", "cols=4", "--env-option", "rows=4"]
    cli.main(["demonstrate", "tetris/bcts", *size, "--episodes", "2", "--workers", "1"])
    folder, _, load = capsys.readouterr().out.partition(": load it by ")
    assert Path(folder).is_dir()
    assert load == "minari.load_dataset('mergefall/Tetris/tetris-bcts-v0')\n"
    assert minari.load_dataset("mergefall/Tetris/tetris-bcts-v0").total_episodes == 2


@pytest.mark.parametrize(("player", "env_id", "kwargs", "cap"), GAMES)
def test_starts_are_positions_of_the_games(tmp_path, player, env_id, kwargs, cap):
    job = task(make(player), env_id, kwargs, cap)
    every = collect_starts(
        player, env_id, 3, every=4, env_kwargs=kwargs, max_episode_steps=cap, out=tmp_path / "starts.npz"
    )
    ends = collect_starts(player, env_id, 3, before_end=[3, 5], env_kwargs=kwargs, max_episode_steps=cap)
    expected, late = [], []
    for game in replays(job, range(1_000_000, 1_000_003)):
        seen = game.observations if isinstance(game.observations, dict) else {"board": game.observations}
        expected += [{key: value[t] for key, value in seen.items()} for t in range(4, len(game), 4)]
        late += [{key: value[len(game) - t] for key, value in seen.items()} for t in (3, 5) if t < len(game)]
    assert len(expected) > 5
    assert equal(every, expected)
    assert equal(ends, late)
    assert equal(list(map(plain, load_starts(tmp_path / "starts.npz"))), list(map(plain, expected)))
    env = with_starts(gym.make(env_id, **kwargs), tmp_path / "starts.npz", ordinary=0)
    begun = {str(plain(env.reset(seed=seed)[0])) for seed in range(200)}
    boards = [start if len(start) > 1 else start["board"] for start in expected]
    assert begun <= {str(plain(board)) for board in boards}
    assert len(begun) > 4


def test_a_share_of_episodes_begins_as_ever(tmp_path):
    path = tmp_path / "starts.npz"
    collect_starts("2048/greedy", G2048, 4, every=50, out=path)
    for share in (0.0, 0.25, 1.0):
        envs = with_starts(gym.make_vec(G2048, num_envs=2000), path, ordinary=share)
        found = ((envs.reset(seed=0)[0] > 0).sum(axis=(1, 2)) == 2).mean()
        assert abs(found - share) < 0.06  # rounding to a pool of some twenty entries, and five standard errors


def test_pools_that_cannot_be_used(tmp_path):
    path = tmp_path / "starts.npz"
    with pytest.raises(ValueError, match="expected one of them"):
        collect_starts("2048/greedy", G2048, 1)
    with pytest.raises(ValueError, match="before_end is 0"):
        collect_starts("2048/greedy", G2048, 1, before_end=[0])
    with pytest.raises(ValueError, match="no game of 1 is long enough"):
        collect_starts("2048/greedy", G2048, 1, every=10**6)
    collect_starts("2048/greedy", G2048, 1, every=50, out=path)
    with pytest.raises(ValueError, match="ordinary is 2"):
        with_starts(gym.make(G2048), path, ordinary=2)
    with pytest.raises(ValueError, match=r"board has shape \(4, 4\)"):
        with_starts(gym.make(G2048, rows=3), path)
    with pytest.raises(ValueError, match="there is no file"):
        with_starts(gym.make(G2048), tmp_path / "absent.npz")
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(ValueError, match="damaged"):
        with_starts(gym.make(G2048), path)
