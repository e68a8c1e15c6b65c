"""Trained n-tuple networks of 2048: models of `mergefall train ntuple` as networks and as players.

What is learnt, and how, is in `td.py`. The player here is `2048/ntuple`: it runs compiled, searches if it is told a
depth, and needs nothing but the search players.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from mergefall_baselines import Player
from mergefall_baselines.game2048.network import Network
from mergefall_baselines.game2048.ntuple import NTuple
from numpy.typing import NDArray

from mergefall_training.learning import import_learning
from mergefall_training.learning.models import load_model
from mergefall_training.learning.runs import model_file


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


def network_of(path: str | os.PathLike[str], model: str = "last") -> Network:
    """The network in a run folder or model file, with the run as its record: to be pruned, rounded, saved.

    `model` is the `best` or the `last` one of a folder. What holds no n-tuple network is a ValueError.
    """
    found = load_model(model_file(path, model))
    if found.spec["algorithm"] != "ntuple":
        raise ValueError(f"{path} was trained by {found.spec['algorithm']}; expected ntuple")
    network = Network.unpacked(found.spec["network"], found.arrays)
    network.record = {name: value for name, value in found.spec.items() if name != "network"}
    return network


def train(run: Any) -> None:
    """Train in a run folder (`runs.Run`); the hyper-parameters are those of `td.Hyperparameters`."""
    import_learning("td").train(run)
