"""Trained n-tuple networks of 2048: models of `mergefall train ntuple` as networks and as players.

What is learnt, and how, is in `ntuple_td.py`. The player here is `2048/ntuple`: it runs compiled, searches if it is
told a depth, and needs nothing but the search players.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from mergefall.checks import integer, typed
from mergefall_baselines import Player
from mergefall_baselines.game2048.network import Network, touched_entries
from mergefall_baselines.game2048.ntuple import NTuple
from numpy.typing import NDArray

from mergefall_training.learn.models import load_model
from mergefall_training.learn.run import model_file, read_checkpoint, read_config, read_curve


def player(
    spec: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
    depth: Any = 1,
    downgrade: int | None = None,
    cutoff: float | None = None,
    table: bool | str = True,
    order: Any = None,
    threads: int = 1,
    time_limit: float | None = None,
) -> Player:
    """The player of a model; the options are those of `2048/ntuple`."""
    network = Network.unpacked(spec["network"], arrays)
    return NTuple(network, depth, downgrade, cutoff, table, order, threads, time_limit)


def network_of(path: str | os.PathLike[str]) -> Network:
    """The last network in a run folder, or that in a model file, with the run as its record: to be pruned and saved.

    What holds no n-tuple network is a ValueError.
    """
    found = load_model(model_file(path, "last"))
    if found.spec["algorithm"] != "ntuple":
        raise ValueError(f"{path} was trained by {found.spec['algorithm']}; expected ntuple")
    network = Network.unpacked(found.spec["network"], found.arrays)
    network.record = {name: value for name, value in found.spec.items() if name != "network"}
    if Path(path).is_dir():
        network.record["hyperparameters"] = read_config(path).hyperparameters
        network.record["curve"] = [[point.step, round(point.mean)] for point in read_curve(path)]
    return network


def prune(network: Network, folder: str | os.PathLike[str], entries: int) -> None:
    """Make all but so many entries of a network untouched: those stay that its run adjusted most, ties with them.

    What an entry was adjusted by is the sum of its errors' sizes, which temporal coherence keeps and the run's
    checkpoint holds. A ValueError if it holds none, or if it is another network's.
    """
    integer("entries", entries, 1)
    _, state, _ = read_checkpoint(folder)
    if not len(state["coherence"]) or len(state["touched"]) != -(-network.weights.size // 8):
        raise ValueError(f"{folder} holds no errors of this network's entries; expected a run with temporal coherence")
    touched = touched_entries(state["touched"], network.weights.size)
    adjusted = np.zeros(network.weights.size, dtype=np.float32)
    adjusted[touched] = typed("coherence", state["coherence"], np.float32, int(np.count_nonzero(touched)), 2)[:, 1]
    if entries < np.count_nonzero(adjusted):
        least = np.partition(adjusted, -entries)[-entries]
        network.weights[adjusted < least] = 0
        first = slice(0, network.shape.size)
        network.weights[first][adjusted[first] < least] = network.untouched
    network.record["entries"] = entries
