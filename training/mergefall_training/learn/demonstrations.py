"""Writes a player's games as a Minari dataset.

Datasets are in Minari's folder (`MINARI_DATASETS_PATH`; default: in the home folder), and `minari.load_dataset` reads
them. Their `infos` hold the action masks. Their metadata holds Minari's own, the player, and the environment.
"""

import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import minari
import numpy as np
from mergefall import __version__
from mergefall.checks import integer
from mergefall.games import stack
from mergefall.typing import Dict, Options
from mergefall_baselines.player import recorded, steps
from mergefall_baselines.registry import player_of
from minari.data_collector.episode_buffer import EpisodeBuffer
from minari.dataset.minari_dataset import parse_dataset_id
from minari.dataset.minari_storage import MinariStorage
from minari.namespace import create_namespace, list_local_namespaces
from minari.storage.datasets_root_dir import get_dataset_path

from mergefall_training.files import json_text
from mergefall_training.play.evaluation import SEEDS
from mergefall_training.play.match import Match
from mergefall_training.play.records import RECORDED, Episode, Header, actions_of
from mergefall_training.play.workers import play_all, task, workers_of
from mergefall_training.progress import progress_bar

FORMAT, VERSION = "mergefall demonstrations", 1


def demonstrate(
    player: Any,
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
        player: a Player, its name, or a mapping of the name and options.
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
    chosen = player_of(player, "player")
    match = Match.read(env_id, env_kwargs, max_episode_steps)
    job = task(chosen, match)
    seeds = range(integer("seed", seed, 0), seed + integer("episodes", episodes, 1))
    environment = env_id.rpartition("/")[2].rpartition("-v")[0]
    name = dataset or f"mergefall/{environment}/{chosen.name.strip('/').replace('/', '-')}-v0"
    namespace, target = parse_dataset_id(name)[0], Path(get_dataset_path(name))
    if target.exists():
        raise ValueError(f"there is a dataset {name!r} already; choose another name, or delete it (minari delete)")
    header = Header(player=chosen.name, options=dict(chosen.options), package=__version__, **match.said())
    about = header.first_line() | {"format": FORMAT, "version": VERSION, "seeds": [seeds[0], seeds[-1]]}
    about |= {"env_id": match.env_id.rpartition(":")[2]}  # without the module: files name none
    if namespace is not None and namespace not in list_local_namespaces():
        create_namespace(namespace)
    env = gym.make(match.env_id, max_episode_steps=match.max_episode_steps, **match.env_kwargs)
    metadata = {
        "dataset_id": name,
        "minari_version": minari.__version__,
        "algorithm_name": header.title,
        "description": (
            f"Games of {header.title} in {match.env_id}, by mergefall {__version__}; `infos` hold the action masks."
        ),
        "mergefall": json_text(about),
    }
    part = target.with_name(f".{target.name}.{os.getpid()}.part")  # hidden, so Minari does not list it
    try:
        part.mkdir()
        # `minari.create_dataset_from_buffers` only writes to the final folder, and its data collector needs jax.
        storage = MinariStorage.new(
            part / "data", env.observation_space, env.action_space, env.spec, jpeg_encoding=False
        )
        storage.update_metadata(metadata)
        with progress_bar(name, len(seeds), enabled=progress) as show:
            games: list[Episode] = []
            for game in play_all(job, seeds, workers_of(workers)):
                games.append(game)
                show(len(games), "")
            storage.update_episodes(_buffers(env, sorted(games, key=lambda game: game.seed)))
        part.rename(target)
    finally:
        env.close()
        shutil.rmtree(part, ignore_errors=True)
    return name


def _buffers(env: gym.Env[Any, Any], games: Iterable[Episode]) -> Iterator[EpisodeBuffer]:
    """The games with their observations and masks, which playing them again shows."""
    for game in games:
        if game.length > RECORDED:
            raise ValueError(
                f"the game from seed {game.seed} has {game.length} actions, of which {RECORDED} were kept; cap games "
                "by max_episode_steps"
            )
        actions = actions_of(game.actions, game.length)
        seen = list(steps(env, game.seed, recorded(actions.tolist())))
        arrays: Dict = {
            "observations": stack([step.observation for step in seen]),
            "actions": actions.astype(np.int64),
            "rewards": np.array([step.reward for step in seen[1:]], np.float64),
            "terminations": np.array([step.terminated for step in seen[1:]]),
            "truncations": np.array([step.truncated for step in seen[1:]]),
            "infos": {"action_mask": np.stack([step.info["action_mask"] for step in seen])},
        }
        yield EpisodeBuffer(seed=game.seed, **arrays)
