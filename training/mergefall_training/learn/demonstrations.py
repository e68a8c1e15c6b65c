"""Writes a player's games as a Minari dataset.

Datasets are in Minari's folder (`MINARI_DATASETS_PATH`; default: in the home folder), and `minari.load_dataset` reads
them. Their `infos` hold the action masks. Their metadata holds Minari's own, the player, and the environment.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import gymnasium as gym
import minari
from mergefall import __version__
from mergefall.checks import integer
from mergefall.typing import Options
from mergefall_baselines import Player, make
from minari.data_collector.episode_buffer import EpisodeBuffer
from minari.dataset.minari_dataset import parse_dataset_id
from minari.dataset.minari_storage import MinariStorage
from minari.namespace import create_namespace, list_local_namespaces
from minari.storage.datasets_root_dir import get_dataset_path

from mergefall_training.play.evaluation import SEEDS
from mergefall_training.play.records import Header
from mergefall_training.play.steps import Replay, replays
from mergefall_training.play.workers import Task, task

FORMAT, VERSION = "mergefall demonstrations", 1


def demonstrate(
    player: str | Player,
    env_id: str,
    episodes: int,
    *,
    dataset: str | None = None,
    seed: int = SEEDS,
    env_kwargs: Options | None = None,
    max_episode_steps: int | None = None,
    workers: int | None = 1,
    progress: bool = True,
) -> str:
    """Play games and write them as a Minari dataset; returns its name.

    Args:
        dataset: Minari's name of the dataset; default: mergefall/ENVIRONMENT/PLAYER-v0.
        seed: of the first game; episode k has seed + k. Default: 1,000,000, because evaluations use the seeds below.
        workers: number of processes; None: one per core.

    The dataset appears when it is complete; an interrupted call leaves nothing under its name. Raises ValueError if the
    name is taken or malformed.

    >>> import tempfile
    >>> from unittest.mock import patch
    >>> with patch.dict(os.environ, MINARI_DATASETS_PATH=tempfile.mkdtemp()):
    ...     name = demonstrate("2048/greedy", "mergefall/Game2048-v0", 2, progress=False)
    ...     episode = next(minari.load_dataset(name).iterate_episodes())
    >>> len(episode.observations) == len(episode.infos["action_mask"]) == len(episode.actions) + 1
    True
    """
    chosen = make(player) if isinstance(player, str) else player
    job = task(chosen, env_id, env_kwargs, max_episode_steps)
    seeds = range(integer("seed", seed, 0), seed + integer("episodes", episodes, 1))
    name = dataset_name(chosen.name, env_id) if dataset is None else dataset
    target, namespace = _free_path(name), parse_dataset_id(name)[0]
    header = Header(chosen.name, dict(chosen.options), job.env_id, job.env_kwargs, job.max_episode_steps, __version__)
    about = header.first_line() | {"format": FORMAT, "version": VERSION, "seeds": [seeds[0], seeds[-1]]}
    about["env_id"] = job.env_id.rpartition(":")[2]  # without the module: files name none
    if namespace is not None and namespace not in list_local_namespaces():
        create_namespace(namespace)
    part = target.with_name(f".{target.name}.{os.getpid()}.part")  # hidden, so Minari does not list it
    try:
        part.mkdir()
        _write(part / "data", name, job, header.title, about, replays(job, seeds, workers, name, progress))
        part.rename(target)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return name


def dataset_name(player: str, env_id: str) -> str:
    """The default name of a player's dataset.

    >>> dataset_name("2048/expectimax", "mergefall/Game2048-v0")
    'mergefall/Game2048/2048-expectimax-v0'
    """
    environment = env_id.rpartition("/")[2].rpartition("-v")[0]
    return f"mergefall/{environment}/{player.strip('/').replace('/', '-')}-v0"


def _free_path(name: str) -> Path:
    """The folder of a new dataset. Raises ValueError if the name is taken or malformed."""
    try:
        parse_dataset_id(name)
    except (ValueError, TypeError) as error:
        expected = "(FOLDERS/)NAME-v0, folders of two letters or more"
        raise ValueError(f"dataset {name!r} has no name that Minari takes; expected {expected}") from error
    path = Path(get_dataset_path(name))
    if path.exists():
        raise ValueError(f"there is a dataset {name!r} already; choose another name, or delete it (minari delete)")
    return path


def _write(path: Path, name: str, job: Task, title: str, about: Options, played: Iterator[Replay]) -> None:
    env = gym.make(job.env_id, max_episode_steps=job.max_episode_steps, **job.env_kwargs)
    # `minari.create_dataset_from_buffers` only writes to the final folder, and its data collector needs jax.
    storage = MinariStorage.new(path, env.observation_space, env.action_space, env.spec, jpeg_encoding=False)
    description = f"Games of {title} in {job.env_id}, by mergefall {__version__}; `infos` hold the action masks."
    metadata = {"dataset_id": name, "minari_version": minari.__version__, "algorithm_name": title}
    storage.update_metadata(metadata | {"description": description, "mergefall": json.dumps(about)})
    storage.update_episodes(
        EpisodeBuffer(
            seed=game.seed,
            observations=game.observations,
            actions=game.actions,  # pyright: ignore[reportArgumentType]
            rewards=game.rewards,  # pyright: ignore[reportArgumentType]
            terminations=game.terminations,  # pyright: ignore[reportArgumentType]
            truncations=game.truncations,  # pyright: ignore[reportArgumentType]
            infos={"action_mask": game.masks},
        )
        for game in played
    )
    env.close()
