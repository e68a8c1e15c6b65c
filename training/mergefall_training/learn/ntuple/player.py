"""Trained n-tuple networks of 2048 as players: models of `mergefall train ntuple`.

The player is `2048/ntuple`: compiled, and a search if it gets a depth above 1. It needs only the search players.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from mergefall.checks import integer, typed
from mergefall.typing import Arrays, FilePath, Options
from mergefall_baselines import Player
from mergefall_baselines.game2048.network import TupleNetwork, touched_entries
from mergefall_baselines.game2048.ntuple import ntuple
from mergefall_baselines.game2048.tdl2048 import SUFFIX, read_tdl2048

from mergefall_training.files import model_file
from mergefall_training.learn.models import load_model
from mergefall_training.learn.run import read_checkpoint, read_config, read_curve


def player(
    spec: Options,
    arrays: Arrays,
    depth: Any = 1,
    downgrade: int | None = None,
    cutoff: float | None = None,
    table: bool | str | None = None,
    order: Sequence[int] | None = None,
    time_limit: float | None = None,
) -> Player:
    """The player of a model; the options are those of `2048/ntuple`."""
    return ntuple(TupleNetwork.unpacked(spec["network"], arrays), depth, downgrade, cutoff, table, order, time_limit)


def network_of(path: FilePath) -> TupleNetwork:
    """The last network of a run folder, or the network of a model file; its record describes the run.

    Or the network of a `.w` file of TDL2048+. Raises ValueError if the model is no n-tuple network.
    """
    if Path(path).suffix == SUFFIX:
        return read_tdl2048(path)[0]
    model = load_model(model_file(path, "last"))
    if model.spec["algorithm"] != "ntuple":
        raise ValueError(f"{path} was trained by {model.spec['algorithm']}; expected ntuple")
    network = TupleNetwork.unpacked(model.spec["network"], model.arrays)
    network.record = {name: value for name, value in model.spec.items() if name != "network"}
    if Path(path).is_dir():
        curve = [[point.step, round(point.mean)] for point in read_curve(path)]
        network.record |= {"hyperparameters": read_config(path).hyperparameters, "curve": curve}
    return network


def prune(network: TupleNetwork, folder: FilePath, entries: int) -> None:
    """Keep the `entries` entries of a network that its run in `folder` adjusted most, and make the others untouched.

    The measure is the sum of an entry's error sizes, which temporal coherence keeps in the run's checkpoint. Entries
    equal to the last one stay too. Raises ValueError if the checkpoint has no such sums, or another network's.
    """
    integer("entries", entries, 1)
    state = read_checkpoint(folder)[1]
    if not len(state["coherence"]) or len(state["touched"]) != -(-network.weights.size // 8):
        raise ValueError(f"{folder} holds no errors of this network's entries; expected a run with temporal coherence")
    touched = touched_entries(state["touched"], network.weights.size)
    adjusted = np.zeros(network.weights.size, dtype=np.float32)
    adjusted[touched] = typed("coherence", state["coherence"], np.float32, int(touched.sum()), 2)[:, 1]
    if entries < np.count_nonzero(adjusted):
        least = np.partition(adjusted, -entries)[-entries]
        network.weights[adjusted < least] = network.untouched
    network.record["entries"] = entries
